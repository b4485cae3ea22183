//! A task whose agent changes files that its checks depend on: a person accepts that change, and
//! nothing more.

use super::{FleetWorld, LONG};

/// An agent that changes its check instead of satisfying it.
const CHANGES: &str = "touch \"work-$task\"; echo 'test ! -e bad' > check.sh; claim";
const CHECKED: &str = "verify = [\"sh check.sh\"]\nfailure-threshold = 2";
const ACCEPTS: [&str; 3] = ["resume", "repo/a", "--accept-test-changes"];

fn world(agent: &str) -> FleetWorld {
    FleetWorld::new(agent)
        .tasks(&["a"], CHECKED)
        .file("check.sh", "test -e done\n")
        .shared()
        .ready()
}

/// A task is blocked by its changed check.
#[track_caller]
fn is_blocked(world: &FleetWorld, code: i32) {
    assert_eq!((code, world.state("a")), (13, "blocked".to_owned()));
    let state = world.task("a")["state"].clone();
    assert_eq!(state["reason"]["of"]["reason"]["of"]["is"], "test_changes", "{state:#}");
    assert!(world.why("a").contains("check.sh changed since the loop began"), "{state:#}");
}

#[test]
fn a_task_with_a_changed_check_lands_once_a_person_accepts_that_check() {
    let world = world(CHANGES);
    is_blocked(&world, world.run(&["--land"]).code());
    is_blocked(&world, world.run(&["--land"]).code());
    let page = world.crew(&["show", "repo/a"]).success();
    assert!(page.contains("crew resume repo/a --accept-test-changes"), "{page}");

    world.crew(&["tell", "repo/a", "mind", "the", "gap"]).success();
    world.crew(&ACCEPTS).success();
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_eq!((world.begun("a"), world.attempt("a")), (vec![1, 2, 3], 1));
    assert!(world.prompt("a", 3).contains("mind the gap"));
    assert_eq!(world.shown("main", "check.sh"), "test ! -e bad\n");
    let task = world.task("a");
    assert_eq!(
        (&task["state"]["proof"], &task["accepts_test_changes"]),
        (&"passing".into(), &false.into())
    );
}

#[test]
#[ignore = "long"]
fn a_check_that_is_changed_after_it_was_accepted_lowers_the_proof() {
    let again = "echo true > check.sh; touch bad; claim";
    let world = world(&format!("if [ $call -gt 2 ]; then {again}; else {CHANGES}; fi"));
    is_blocked(&world, world.run(&["--land"]).code());
    world.crew(&ACCEPTS).success();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.state("a")), (0, "completed".to_owned()), "{ran:#?}");
    assert_eq!(world.task("a")["state"]["proof"], "passing");
    let why = world.why("a");
    assert!(why.contains("it passes only with the change of check.sh"), "{why}");
}

#[test]
#[ignore = "long"]
fn a_check_that_a_person_changes_after_it_was_accepted_is_named() {
    let world = world(&format!("if [ $call -gt 2 ]; then touch bad; claim; else {CHANGES}; fi"));
    is_blocked(&world, world.run(&["--land"]).code());
    world.crew(&ACCEPTS).success();
    std::fs::write(world.clone_of("a").join("check.sh"), "true\n").unwrap();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.state("a")), (0, "completed".to_owned()), "{ran:#?}");
    assert_eq!(world.task("a")["state"]["proof"], "passing");
    let why = world.why("a");
    assert!(why.contains("it passes only with the change of check.sh"), "{why}");
}

#[test]
#[ignore = "long"]
fn a_changed_prompt_does_not_accept_a_changed_check_of_the_previous_attempt() {
    // The check is there from the start, or comes with the new text.
    for (before, code, claims) in
        [(CHECKED, 13, ""), ("max-iterations = 1", 10, "[ $call -gt 1 ] || exit 0; ")]
    {
        let world = world(&format!("{claims}{CHANGES}")).tasks(&["a"], before);
        let ran = world.run(&["--land"]);
        assert_eq!(ran.code(), code, "{ran:#?}");
        let text = format!("+++\n{CHECKED}\nmax-iterations = 6\n+++\nLeave check.sh alone.\n");
        let world = world.file("tasks/a.md", &text);
        world.crew(&["resume", "repo/a"]).success();
        is_blocked(&world, world.run(&["--land"]).code());
        let call = world.begun("a").len();
        assert_eq!(world.attempt("a"), 2);
        assert!(world.prompt("a", u32::try_from(call).unwrap()).contains("Leave check.sh alone."));
    }
}

#[test]
#[ignore = "long"]
fn a_new_node_uses_the_accepted_check() {
    let world = FleetWorld::new(CHANGES)
        .tasks(&["a"], CHECKED)
        .file("check.sh", "test -e done\n")
        .with_nodes();
    for (node, attempt, code) in [("home", "a.1", 13), ("elsewhere", "a.2", 0)] {
        let running = world.start(&["--on", "nodes"]);
        world.until_noted(&format!("scripts/{attempt}"));
        let ran = world.on(node).runs(attempt).wait(LONG);
        assert_eq!(ran.code(), code, "{ran:#?}");
        let ran = running.wait(LONG);
        assert_eq!(ran.code(), code, "{ran:#?}");
        if code > 0 {
            is_blocked(&world, code);
            world.crew(&ACCEPTS).success();
        }
    }
    let task = world.task("a");
    assert_eq!(
        (&task["state"]["proof"], &task["accepts_test_changes"]),
        (&"passing".into(), &false.into())
    );
}
