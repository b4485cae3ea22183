//! Branches: an agent that leaves another one checked out, a main branch that moves again while a
//! task is back in its loop, and work that a person merges, removes or has not pushed.

use serde_json::json;

use super::{FleetWorld, LONG, ONE};

#[test]
fn a_branch_that_an_agent_creates_is_merged_and_the_next_task_builds_on_it() {
    let agent = "[ $task = b ] || git checkout --quiet -b feature
        ls > $NOTES/seen-$task; echo x > work-$task; claim";
    let world = FleetWorld::new(agent).tasks(&["a"], "").tasks(&["b"], "after = [\"a\"]").ready();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.work("a", "work-a")), (0, "x\n".into()), "{ran:#?}");
    assert!(world.noted("seen-b").contains("work-a"), "{}", world.noted("seen-b"));
}

#[test]
fn a_conflict_between_tasks_that_come_before_another_names_them() {
    let world = FleetWorld::new("echo $task > same; claim").file("same", "base\n");
    let world = world.tasks(&["a", "b"], "").tasks(&["c"], "after = [\"a\", \"b\"]").ready();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.state("c")), (13, "blocked".into()), "{ran:#?}");
    assert_eq!(world.task("c")["state"]["reason"]["is"], "work_conflict");
    let why = "conflict: b, which comes before, and main or a change the same lines in same";
    assert_eq!(world.why("c"), why);
}

#[test]
fn a_clone_left_on_an_older_commit_removes_nothing_from_the_pushed_branch() {
    let agent = "echo x > work-$iteration
        case $iteration in 2) git checkout --quiet HEAD~1 ;; 3) claim ;; esac";
    let world = FleetWorld::new(agent)
        .tasks(&["a"], "max-iterations = 5\nverify = [\"test -e work-3\"]")
        .shared()
        .ready();
    let ran = world.run(&["--push"]);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    assert!(world.why("a").starts_with("its branch lacks its work: "), "{}", world.why("a"));
    assert_eq!(world.shown("fleet/repo/a/1", "work-1"), "x\n");

    let clone = world.clone_of("a").display().to_string();
    let there = |arguments: &[&str]| world.sandbox.git(&[&["-C", &clone], arguments].concat());
    let beside = there(&["rev-parse", "HEAD"]);
    there(&["switch", "--quiet", "fleet/repo/a/1"]);
    there(&["cherry-pick", &format!("fleet/repo/a/1..{beside}")]);
    world.crew(&["resume", "repo/a"]).success();
    let again = world.run(&["--push"]);
    assert_eq!((again.code(), world.work("a", "work-3")), (0, "x\n".into()), "{again:#?}");
    assert_eq!(world.shown("fleet/repo/a/1", "work-3"), "x\n");
    assert_eq!(world.noted("calls").lines().count(), 3, "no agent ran again");
}

#[test]
fn a_branch_that_was_deleted_at_the_remote_is_pushed_again() {
    let agent = "echo $iteration >> work-a; [ $iteration = 1 ] || { wait_for go; claim; }";
    let world = FleetWorld::new(agent).tasks(&["a"], "").shared().ready();
    let running = world.start(&["--push"]);
    world.until("the branch is there", |world| world.shown("fleet/repo/a/1", "work-a") == "1\n");
    world.git_there(&["update-ref", "-d", "refs/heads/fleet/repo/a/1"]);
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.shown("fleet/repo/a/1", "work-a")), (0, "1\n2\n".into()));
}

#[test]
fn locks_left_by_an_agents_killed_git_process_stop_neither_a_rebase_nor_a_commit() {
    let agent = "echo $iteration >> work-a; [ $iteration = 1 ] || { claim; exit; }
        wait_for moved; touch .git/packed-refs.lock .git/refs/heads/main.lock";
    let world = FleetWorld::new(agent).tasks(&["a"], "verify = \"test -e new\"").shared().ready();
    let running = world.start(&["--land"]);
    world.until("a works", |world| world.begun("a") == [1]);
    let world = world.file("new", "new\n").ready();
    world.allow("moved");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert_eq!(world.shown("main", "work-a"), "1\n2\n");
}

/// Pushes a commit to main, once, as another person would at the same time.
const MOVES: &str = "if mkdir $NOTES/moved 2>/dev/null; then
git clone --quiet $HUB $NOTES/person; cd $NOTES/person; echo person > same
git commit --quiet --all --message Person; git push --quiet origin main; exit 1; fi";

#[test]
fn conflicts_that_come_with_a_failed_check_are_in_the_prompt_and_no_marker_lands() {
    let agent = "case $call in 1) echo task > same ;; 3) echo both > same ;; esac; claim";
    let world =
        FleetWorld::new(agent).file("same", "base\n").tasks(&["a"], "max-iterations = 4").shared();
    let moves = MOVES.replace("$HUB", &world.hub().display().to_string());
    let world = world.file("moves.sh", &moves).terms("[land]\ncheck = [\"sh moves.sh\"]").ready();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.shown("main", "same")), (0, "both\n".into()), "{ran:#?}");
    assert!(world.prompt("a", 2).contains("These files have conflicts: same"));
    assert_eq!(world.noted("calls").lines().count(), 3);
}

#[test]
fn only_a_person_lands_a_conflict_without_markers_that_no_commit_resolves() {
    let agent = "[ $task = a ] || wait_for go
        case $task.$call in a.1) git rm --quiet same ;; b.1) echo b > same ;; esac; claim";
    let world = FleetWorld::new(agent)
        .file("same", "base\n")
        .tasks(&["a", "b"], "max-iterations = 3")
        .terms("slots = 2")
        .shared()
        .ready();
    let running = world.start(&["--land"]);
    world.until("a is on main", |world| world.state("a") == "completed");
    world.allow("go");
    assert_eq!(running.wait(LONG).code(), 13);
    let reason = &world.task("b")["state"]["reason"];
    assert_eq!(reason["of"]["refusal"], json!({ "conflict": ["same"] }), "{reason:#}");
    assert_eq!((world.shown("main", "same"), world.begun("b").len()), (String::new(), 2));
    world.sandbox.git(&["pull", "--quiet", "origin", "main"]);
    world.sandbox.git(&["merge", "--quiet", "--no-edit", "crew/repo/b"]);
    let world = world.file("same", "both\n").ready();
    let pushed = world.git_there(&["rev-parse", "main"]);
    world.crew(&["resume", "repo/b"]).success();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.begun("b").len()), (0, 2), "{ran:#?}");
    assert_eq!(world.git_there(&["rev-parse", "main"]), pushed);
}

#[test]
fn completed_work_lands_without_its_clone_and_squashed_work_is_found_on_main() {
    let world = FleetWorld::new(ONE).tasks(&["a", "b"], "max-iterations = 1").ready();
    assert_eq!(world.run(&[]).code(), 0);
    for task in ["a", "b"] {
        std::fs::remove_dir_all(world.clone_of(task)).unwrap();
    }
    world.sandbox.git(&["merge", "--quiet", "--squash", "crew/repo/b"]);
    world.sandbox.git(&["update-ref", "-d", "refs/remotes/crew/repo/b"]);
    let world = world.shared().ready();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.begun("a"), world.begun("b")), (0, vec![1], vec![1]), "{ran:#?}");
    let on_main = ["work-a", "work-b"].map(|file| world.shown("main", file));
    assert_eq!(on_main, ["1\n", "1\n"]);
    let subjects = world.git_there(&["log", "--format=%s", "main"]);
    assert_eq!(subjects, "Do task a.\nTasks\nTasks\nBegin");
}

#[test]
fn commits_of_a_person_that_are_not_pushed_do_not_land_with_a_task() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let world = world.file("draft", "unpushed\n");
    world.sandbox.git(&["add", "draft"]);
    world.sandbox.git(&["commit", "--quiet", "--message", "Draft"]);
    assert_eq!(world.run(&[]).code(), 0);
    let refused = world.run(&["--land"]);
    let why =
        "began on commits that origin/main lacks, and would land them too: git push origin main";
    assert!(refused.code() == 1 && refused.stderr.contains(why), "{refused:#?}");
    world.sandbox.git(&["push", "--quiet", "origin", "main"]);
    assert_eq!(world.run(&["--land"]).code(), 0);
    assert_eq!(world.git_there(&["log", "--format=%s", "main"]), "Do task a.\nDraft\nTasks\nBegin");
}

#[test]
fn a_new_clone_has_the_work_so_far_and_no_file_of_setup_in_its_branch() {
    let agent = "echo x > work-$iteration; [ $call -lt 2 ] || claim";
    let check = "echo \\\"slot ${CREW_SLOT:-none}\\\" >> $NOTES/checks; test -e work-2";
    let terms = |most| format!("verify = [\"{check}\"]\nmax-iterations = {most}");
    let world = FleetWorld::new(agent)
        .tasks(&["a"], &terms(1))
        .terms("setup = \"date +%N > made-by-setup\"")
        .ready();
    assert_eq!((world.run(&[]).code(), world.state("a")), (10, "exhausted".into()));
    std::fs::remove_dir_all(world.clone_of("a")).unwrap();
    let world = world.tasks(&["a"], &terms(3));
    world.crew(&["resume", "repo/a"]).success();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.begun("a"), world.attempt("a")), (0, vec![1, 2], 2), "{ran:#?}");
    let files = ["work-1", "work-2", "made-by-setup"].map(|file| world.work("a", file));
    assert_eq!(files, ["x\n", "x\n", ""]);
    assert!(
        world.noted("checks").lines().all(|line| line == "slot 0"),
        "{}",
        world.noted("checks")
    );
}

#[test]
fn a_task_whose_setup_failed_begins_once_the_setup_is_fixed() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").terms("setup = \"false\"").shared().ready();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    assert_eq!(world.why("a"), "setup `false` exits 1");
    let world = world.terms("setup = \"true\"");
    world.crew(&["resume", "repo/a"]).success();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.shown("main", "work-a")), (0, "1\n".into()), "{ran:#?}");
}
