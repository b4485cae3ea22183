//! What a later start keeps and what it takes anew: limits, finished work, cancels and new texts;
//! and work that no commit holds, which is never called done.

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE, TWO};

#[test]
fn work_that_git_ignores_does_not_count_as_landed() {
    let world = FleetWorld::new("echo done > out.log; claim")
        .file(".gitignore", "*.log\n")
        .tasks(&["a"], "verify = [\"test -e out.log\"]")
        .shared()
        .ready();
    let before = world.git_there(&["rev-parse", "main"]);
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    assert_eq!(world.why("a"), "red: `test -e out.log` fails on main with this work");
    assert_eq!(world.git_there(&["rev-parse", "main"]), before);
}

#[test]
fn work_that_could_not_be_committed_needs_a_person_and_is_committed_when_it_is_tried_again() {
    let world = FleetWorld::new(&format!("touch \"$(git rev-parse --git-dir)/index.lock\"; {ONE}"))
        .tasks(&["a"], "verify = [\"test -e work-a\"]")
        .ready();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    assert!(world.why("a").starts_with("its branch lacks its work: "), "{}", world.why("a"));
    let lock = world.sandbox.repository().join(".git/worktrees/a/index.lock");
    let page = world.crew(&["fleet", "show", "a"]).success();
    assert!(page.contains(&format!("if there is none, remove {}\n", lock.display())), "{page}");
    std::fs::remove_file(lock).unwrap();
    let again = world.run(&["--retry"]);
    assert_eq!((again.code(), world.begun("a")), (0, vec![1]), "{again:#?}");
    assert_eq!(world.work("a", "work-a"), "1\n");
}

#[test]
fn a_working_tree_that_lost_its_link_to_the_repository_names_the_commands_that_help() {
    let world =
        FleetWorld::new(&format!("[ $call -gt 1 ] || rm .git; {ONE}")).tasks(&["a"], "").ready();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    let own = world.sandbox.repository().join(".git").display().to_string();
    let why = world.why("a");
    let told = why.split_once(".git is gone; ").map(|(_, told)| told);
    let ways =
        format!("git -C {own} worktree repair puts it back, then crew fleet run tasks --retry");
    assert_eq!(told, Some(ways.as_str()), "{why}");
    world.sandbox.git(&["-C", &own, "worktree", "repair"]);
    let again = world.run(&["--retry"]);
    assert_eq!((again.code(), world.work("a", "work-a")), (0, "1\n2\n".into()), "{again:#?}");
}

#[test]
fn a_completed_loop_whose_end_was_refused_is_not_taken_for_the_end_of_another_text() {
    let locks = "[ $call -gt 1 ] || touch \"$(git rev-parse --git-dir)/index.lock\"";
    let world = FleetWorld::new(&format!("{locks}\n{ONE}"))
        .tasks(&["a"], "verify = [\"test -e work-a\"]")
        .ready();
    assert_eq!((world.run(&[]).code(), world.state("a")), (13, "blocked".into()));
    let lock = world.sandbox.repository().join(".git/worktrees/a/index.lock");
    std::fs::remove_file(lock).unwrap();
    let world = world.tasks(&["a"], "verify = [\"grep -q 2 work-a\"]");
    let again = world.run(&["--retry"]);
    assert_eq!((again.code(), world.begun("a")), (0, vec![1, 2]), "{again:#?}");
    assert_eq!(world.work("a", "work-a"), "1\n2\n", "the work of both is committed");
}

#[test]
fn what_a_killed_attempt_left_uncommitted_is_work_also_for_a_fleet_that_was_forgotten_since() {
    let agent = "[ $call -gt 1 ] || { echo first > work-a; touch $NOTES/here; wait_for never; }
        echo second > more-a; claim";
    let world = FleetWorld::new(agent)
        .file(".gitignore", "ignored\n")
        .tasks(&["a"], "")
        .terms("setup = \"touch made-by-setup ignored\"")
        .ready();
    let running = world.start(&[]);
    world.until_noted("here");
    running.signal(Signal::KILL);
    world.kill_job("a");
    running.wait(LONG);
    world.until("it can be forgotten", |world| {
        world.crew(&["fleet", "forget", "repo"]).status.success()
    });
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let files = ["work-a", "more-a", "made-by-setup"].map(|file| world.work("a", file));
    assert_eq!(files, ["first\n", "second\n", ""]);
}

#[test]
fn an_ended_task_that_its_fleet_takes_to_a_remote_is_pushed_and_begins_nothing() {
    let agent = "[ $call -lt 2 ] || wait_for go; echo $call >> work-a; claim";
    let world = FleetWorld::new(agent)
        .tasks(&["a"], "verify = [\"grep -q 3 work-a\"]")
        .terms("setup = \"true\"")
        .ready();
    let running = world.start(&[]);
    world.until("a is in its second iteration", |world| world.begun("a") == [1, 2]);
    running.signal(Signal::INT);
    running.wait(LONG);
    let world = world.terms("setup = \"false\"");
    assert_eq!((world.run(&[]).code(), world.state("a")), (10, "error".into()));
    let why = world.why("a");
    let world = world.terms("setup = \"true\"").shared().ready();
    let pushed = world.run(&["--push"]);
    assert_eq!((pushed.code(), world.state("a"), world.why("a")), (10, "error".into(), why));
    assert_eq!((world.begun("a"), world.work("a", "work-a")), (vec![1, 2], "1\n".into()));
    world.allow("go");
    let again = world.run(&["--push", "--retry"]);
    assert_eq!((again.code(), world.begun("a").len()), (0, 3), "{again:#?}");
    assert_eq!(world.work("a", "work-a"), "1\n3\n");
}

#[test]
fn tasks_that_run_when_their_fleet_is_started_with_land_land_once_they_are_done() {
    let world = FleetWorld::new(&format!("wait_for go; {ONE}")).tasks(&["a"], "").shared().ready();
    let running = world.start(&["--push"]);
    world.until("a works", |world| world.begun("a") == [1]);
    let joining = world.start(&["--land"]);
    world.until("the fleet lands", |world| {
        world
            .git_there(&["log", "-1", "--format=%B", "refs/crew/repo/_fleet"])
            .contains("\"landing\": \"main\"")
    });
    world.allow("go");
    let ran = [running, joining].map(|it| it.wait(LONG));
    assert!(ran.iter().all(|it| it.code() == 0), "{ran:#?}");
    assert_eq!((world.shown("main", "work-a"), world.begun("a")), ("1\n".into(), vec![1]));
}

#[test]
fn a_cancel_during_the_iteration_that_completes_a_task_keeps_it_from_landing() {
    let world = FleetWorld::new(&format!("wait_for go; {ONE}")).tasks(&["a"], "").shared().ready();
    let before = world.git_there(&["rev-parse", "main"]);
    let running = world.start(&["--land"]);
    world.until("a works", |world| world.begun("a") == [1]);
    world.crew(&["fleet", "cancel", "a", "--reason", "not needed"]).success();
    world.allow("go");
    running.wait(LONG);
    assert_eq!(
        (world.state("a"), world.git_there(&["rev-parse", "main"])),
        ("cancelled".into(), before)
    );
    assert!(world.why("a").contains("not needed"), "{}", world.why("a"));
    assert_eq!(world.work("a", "work-a"), "1\n", "its work stays on its branch");
}

#[test]
fn a_cancel_after_a_landing_has_sent_the_task_back_ends_it_cancelled() {
    let agent = format!("[ $call -lt 2 ] || wait_for go; {ONE}");
    let world = FleetWorld::new(&agent)
        .tasks(&["a"], "")
        .terms("[land]\ncheck = [\"false\"]")
        .shared()
        .ready();
    let running = world.start(&["--land"]);
    world.until("a is at it again", |world| world.begun("a").len() == 2);
    world.crew(&["fleet", "cancel", "a"]).success();
    world.allow("go");
    running.wait(LONG);
    assert_eq!(world.state("a"), "cancelled", "{}", world.why("a"));
}

#[test]
fn the_limits_of_a_fleet_stay_until_others_are_named() {
    let world =
        FleetWorld::new(ONE).tasks(&["a", "b"], "verify = [\"false\"]\nmax-iterations = 1").ready();
    let told = |more: &[&str]| {
        let dry = world.crew(&[&["fleet", "run", "tasks", "--dry-run"], more].concat());
        dry.success()
    };
    world.run(&["--max-cost", "5", "--slots", "3"]);
    let kept = told(&[]);
    assert!(kept.contains("3 at once") && kept.contains("$5.00"), "{kept}");
    let other = told(&["--max-cost", "0", "--slots", "1"]);
    assert!(other.contains("1 at once") && !other.contains('$'), "{other}");
}

#[test]
fn a_limit_that_was_typed_goes_before_that_of_the_file_until_it_is_lifted() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").terms("max-cost = 50").ready();
    world.run(&["--max-cost", "10"]);
    let budget = |more: &[&str]| {
        let dry = world.crew(&[&["fleet", "run", "tasks", "--dry-run"], more].concat()).success();
        let money = ["$10.00", "$50.00"].map(|limit| dry.contains(&format!("at most {limit}")));
        (money[0], money[1])
    };
    assert_eq!(budget(&[]), (true, false));
    assert_eq!(budget(&["--max-cost", "50"]), (false, true));
    assert_eq!(budget(&["--max-cost", "0"]), (false, false));
}

#[test]
fn no_other_text_lets_the_markers_of_a_conflict_land() {
    let agent = "case $task in b) wait_for go;; esac; echo \"$task $call\" > same; claim";
    let leaves = "[ $call -lt 2 ] || { echo $call > work-$task; claim; exit; }";
    let world = FleetWorld::new(&format!("{leaves}\n{agent}"))
        .file("same", "one\n")
        .tasks(&["a", "b"], "max-iterations = 2")
        .terms("slots = 2")
        .shared()
        .ready();
    let running = world.start(&["--land"]);
    world.until("a is on main", |world| world.shown("main", "same") == "a 1\n");
    world.allow("go");
    assert_eq!((running.wait(LONG).code(), world.state("b")), (13, "blocked".into()));
    let world = world.tasks(&["b"], "max-iterations = 3\ntimeout = \"9m\"");
    let ran = world.run(&["--land", "--retry"]);
    assert_eq!((ran.code(), world.state("b")), (10, "exhausted".into()), "{ran:#?}");
    assert_eq!(world.shown("main", "same"), "a 1\n");
}

#[test]
fn a_loop_goes_on_committing_once_a_person_has_agreed_to_a_setting_that_came_meanwhile() {
    let agent = "[ $call -gt 1 ] || git config filter.x.clean cat
        echo \"$iteration\" >> work-$task; [ \"$iteration\" -lt 3 ] || claim";
    let world = FleetWorld::new(agent).tasks(&["a"], "max-iterations = 2").ready();
    assert_eq!((world.run(&[]).code(), world.work("a", "work-a")), (10, String::new()));
    let world = world.tasks(&["a"], "max-iterations = 4");
    let ran = world.run(&["--retry"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2, 3]), "{ran:#?}");
    assert_eq!(world.work("a", "work-a"), "1\n2\n3\n");
}

#[test]
fn finished_work_lands_later_though_the_setup_has_changed_and_what_was_cancelled_stays_so() {
    let world = FleetWorld::new(&format!("[ $task != b ] || wait_for never; {ONE}"))
        .tasks(&["a", "b"], "")
        .terms("slots = 2")
        .shared()
        .ready();
    let running = world.start(&[]);
    world.until("both began", |world| !world.begun("a").is_empty() && !world.begun("b").is_empty());
    world.crew(&["fleet", "cancel", "b", "--now", "--reason", "never do this"]).success();
    running.wait(LONG);
    let world = world.terms("slots = 2\nsetup = \"true\"");
    let ran = world.run(&["--land"]);
    assert_eq!(world.states(&["a", "b"]), [("a", "completed".into()), ("b", "cancelled".into())]);
    assert_eq!(world.shown("main", "work-a"), "1\n", "{ran:#?}");
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1], vec![1]));
}

#[test]
fn a_changed_task_that_is_tried_again_has_its_new_prompt_and_its_new_checks() {
    let world = FleetWorld::new(ONE)
        .tasks(&["a"], "verify = [\"grep -q never work-a\"]\nmax-iterations = 1")
        .ready();
    assert_eq!((world.run(&[]).code(), world.state("a")), (10, "exhausted".into()));
    let task = "+++\nverify = [\"grep -q 2 work-a\"]\nmax-iterations = 3\n+++\nCount to two.\n";
    let world = world.file("tasks/a.md", task);
    let dry = world.crew(&["fleet", "run", "tasks", "--retry", "--dry-run"]).success();
    assert!(dry.contains("  verify  `grep -q 2 work-a`\n"), "{dry}");
    let ran = world.run(&["--retry"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    let prompt = world.prompt("a", 2);
    assert!(prompt.contains("Count to two.") && !prompt.contains("Do task a."), "{prompt}");
    assert_eq!(world.work("a", "work-a"), "1\n2\n");
}

#[test]
fn a_new_text_waits_until_a_loop_has_room_for_it() {
    let agent = "[ $call -gt 1 ] || { echo '<promise>BLOCKED: why?</promise>'; exit; }";
    let world =
        FleetWorld::new(&format!("{agent}\n{ONE}")).tasks(&["a"], "max-iterations = 1").ready();
    assert_eq!((world.run(&[]).code(), world.state("a")), (13, "blocked".into()));
    let task = |most: u32| format!("+++\nmax-iterations = {most}\n+++\nThe new text.\n");
    let world = world.file("tasks/a.md", &task(1));
    let refused = world.run(&["--retry"]);
    assert!(refused.stderr.contains("its max-iterations is used up"), "{refused:#?}");
    let world = world.file("tasks/a.md", &task(3));
    let ran = world.run(&["--retry"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert!(world.prompt("a", 2).contains("The new text."));
}

#[test]
fn a_check_that_cannot_pass_on_main_is_corrected_in_the_file_and_the_work_lands() {
    let world = FleetWorld::new("echo done > out.log; echo x > work; claim")
        .file(".gitignore", "*.log\n")
        .tasks(&["a"], "verify = [\"test -e out.log\"]")
        .shared()
        .ready();
    assert_eq!((world.run(&["--land"]).code(), world.state("a")), (13, "blocked".into()));
    let before = world.begun("a").len();
    let world = world.tasks(&["a"], "verify = [\"test -e work\"]");
    let ran = world.run(&["--land", "--retry"]);
    assert_eq!((ran.code(), world.begun("a").len()), (0, before), "{ran:#?}");
    assert_eq!(world.shown("main", "work"), "x\n");
}

#[test]
fn a_changed_local_task_goes_on_from_its_work_when_the_fleet_gets_a_remote() {
    let world = FleetWorld::new(TWO)
        .tasks(&["a"], "verify = [\"grep -q 2 work-a\"]\nmax-iterations = 1")
        .ready();
    assert_eq!((world.run(&[]).code(), world.state("a")), (10, "exhausted".into()));
    let world = world.shared().ready();
    let task = "+++\nverify = [\"grep -q 2 work-a\"]\nmax-iterations = 3\n+++\nCount to two.\n";
    let world = world.file("tasks/a.md", task);
    let ran = world.run(&["--push", "--retry"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert_eq!(world.work("a", "work-a"), "1\n2\n");
}
