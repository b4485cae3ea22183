//! What a later start does with tasks that have ended: work that no commit contains, a text that
//! has changed, a landing that was refused, a fleet that lands from now on.

use super::{FleetWorld, LONG, ONE, TWO};

/// Locks the index of the clone, so that git cannot commit.
const LOCKS: &str = "[ $call -gt 1 ] || touch \"$(git rev-parse --git-dir)/index.lock\"";

#[test]
fn work_that_could_not_be_committed_is_committed_by_a_resume_without_an_agent() {
    let world = FleetWorld::new(&format!("{LOCKS}\n{ONE}"))
        .tasks(&["a"], "verify = [\"test -e work-a\"]")
        .ready();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    assert!(world.why("a").starts_with("its branch lacks its work: "), "{}", world.why("a"));
    std::fs::remove_file(world.clone_of("a").join(".git/index.lock")).unwrap();
    world.crew(&["resume", "repo/a"]).success();
    let again = world.run(&[]);
    assert_eq!((again.code(), world.begun("a")), (0, vec![1]), "{again:#?}");
    assert_eq!(world.work("a", "work-a"), "1\n");
}

#[test]
fn a_clone_that_its_agent_has_broken_is_replaced_by_a_new_one() {
    let world =
        FleetWorld::new(&format!("[ $call -gt 1 ] || rm -rf .git\n{ONE}")).tasks(&["a"], "");
    let world = world.ready();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    assert_eq!(world.begun("a"), [1]);
    std::fs::remove_dir_all(world.clone_of("a")).unwrap();
    world.crew(&["resume", "repo/a"]).success();
    let again = world.run(&[]);
    assert_eq!((again.code(), world.attempt("a")), (0, 2), "{again:#?}");
    assert_eq!(world.work("a", "work-a"), "2\n");
}

#[test]
fn a_changed_task_resumes_with_its_new_prompt_and_checks_and_the_work_so_far() {
    let world = FleetWorld::new(ONE)
        .tasks(&["a"], "verify = [\"grep -q never work-a\"]\nmax-iterations = 1")
        .ready();
    assert_eq!((world.run(&[]).code(), world.state("a")), (10, "exhausted".into()));
    let task = "+++\nverify = [\"grep -q 2 work-a\"]\nmax-iterations = 3\n+++\nCount to two.\n";
    let world = world.file("tasks/a.md", task);
    assert_eq!((world.run(&[]).code(), world.begun("a")), (10, vec![1]), "what ended stays ended");
    world.crew(&["resume", "repo/a"]).success();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.begun("a"), world.attempt("a")), (0, vec![1, 2], 2), "{ran:#?}");
    let prompt = world.prompt("a", 2);
    assert!(prompt.contains("Count to two.") && !prompt.contains("Do task a."), "{prompt}");
    assert_eq!(world.work("a", "work-a"), "1\n2\n");
}

#[test]
fn a_check_that_needs_an_ignored_file_lands_nothing_until_the_task_names_another() {
    let world = FleetWorld::new("echo $call > work; echo done > out.log; claim")
        .file(".gitignore", "*.log\n")
        .tasks(&["a"], "verify = [\"ls out.log\"]")
        .shared()
        .ready();
    let before = world.git_there(&["rev-parse", "main"]);
    assert_eq!((world.run(&["--land"]).code(), world.state("a")), (13, "blocked".into()));
    assert!(world.why("a").contains("`ls out.log` fails on main"), "{}", world.why("a"));
    assert!(world.task("a")["state"]["reason"]["of"]["refusal"]["red"].is_object());
    assert_eq!(world.git_there(&["rev-parse", "main"]), before);
    assert_eq!(world.begun("a").len(), 2, "once it went back to its loop");
    let page = world.crew(&["show", "repo/a"]).success();
    assert!(page.contains("`ls out.log` printed last:") && page.contains("No such file"), "{page}");

    let world = world.tasks(&["a"], "verify = [\"test -e work\"]");
    world.crew(&["resume", "repo/a"]).success();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.state("a")), (0, "completed".into()), "{ran:#?}");
    assert!(!world.shown("main", "work").is_empty());
    assert_eq!(world.shown("main", "out.log"), "");
}

#[test]
fn work_that_only_a_person_may_land_is_found_on_main_once_it_is_merged() {
    let agent = format!("[ $task != a ] || echo new > tasks/new.md; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").shared().ready();
    assert_eq!((world.run(&["--land"]).code(), world.state("a")), (13, "blocked".into()));
    let branch = "crew/repo/a";
    let page = world.crew(&["show", "repo/a"]).success();
    assert!(page.contains("tasks/new.md"), "{page}");
    world.sandbox.git(&["merge", "--quiet", branch]);
    world.sandbox.git(&["push", "--quiet", "origin", "main"]);
    // What was merged is trusted with everything else.
    std::fs::remove_file(world.sandbox.file("tasks/new.md")).unwrap();
    world.crew(&["resume", "repo/a"]).success();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.state("a")), (0, "completed".into()), "{ran:#?}");
    assert_eq!((world.begun("a"), world.attempt("a")), (vec![1], 1), "no agent runs for it");
}

#[test]
fn a_changed_prompt_does_not_let_conflict_markers_land() {
    let agent = "[ $task != b ] || [ $call -gt 1 ] || wait_for go
        [ $call -lt 2 ] || { echo $call > work-$task; claim; exit; }
        echo \"$task $call\" > same; claim";
    let world = FleetWorld::new(agent)
        .file("same", "one\n")
        .tasks(&["a", "b"], "max-iterations = 2")
        .terms("slots = 2")
        .shared()
        .ready();
    let running = world.start(&["--land"]);
    world.until("a is on main", |world| world.shown("main", "same") == "a 1\n");
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.state("b")), (13, "blocked".into()), "{ran:#?}");
    assert_eq!(world.begun("b"), [1, 2]);
    let world = world.tasks(&["b"], "max-iterations = 3\ntimeout = \"9m\"");
    world.crew(&["resume", "repo/b"]).success();
    let ran = world.run(&["--land"]);
    assert_ne!(world.state("b"), "completed", "{ran:#?}");
    assert_eq!((world.begun("b").len(), world.shown("main", "same")), (3, "a 1\n".into()));
}

#[test]
fn a_fleet_that_gets_a_remote_lands_finished_tasks_and_continues_others() {
    let world = FleetWorld::new(&format!("[ $task = c ] || {{ {TWO}; exit; }}\n{ONE}"))
        .tasks(&["a"], "verify = [\"grep -q 2 work-a\"]")
        .tasks(&["b"], "verify = [\"grep -q 2 work-b\"]\nmax-iterations = 1")
        .tasks(&["c"], "after = [\"b\"]")
        .ready();
    assert_eq!(world.run(&[]).code(), 10);
    world.crew(&["cancel", "repo/c"]).success();
    let world = world
        .shared()
        .ready()
        .tasks(&["b"], "verify = [\"grep -q 2 work-b\"]\nmax-iterations = 3")
        .terms("setup = \"true\"");
    world.crew(&["resume", "repo/b"]).success();
    let ran = world.run(&["--land"]);
    let states = ["a", "b", "c"].map(|task| world.state(task));
    assert_eq!(states, ["completed", "completed", "cancelled"], "{ran:#?}");
    assert_eq!(world.shown("main", "work-a"), "1\n2\n");
    assert_eq!(world.shown("main", "work-b"), "1\n2\n");
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1, 2], vec![1, 2]));
}
