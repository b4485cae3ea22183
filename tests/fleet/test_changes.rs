//! A task whose agent changes what its checks rest on: a person accepts that, and nothing more.

use super::{FleetWorld, LONG, ONE};

/// An agent that changes its check, and does not do what it asked for.
const CHANGES: &str = "touch \"work-$task\"; echo 'test ! -e bad' > check.sh; claim";
const ACCEPTS: [&str; 6] = ["tell", "--fleet", "repo", "--task", "a", "--accept-test-changes"];
const ACCEPTED: &str = "a: its tests and check settings count as it ended with them; crew fleet run tasks tries it again\n";

fn world(agent: &str) -> FleetWorld {
    FleetWorld::new(agent)
        .tasks(&["a"], "verify = [\"sh check.sh\"]\nfailure-threshold = 2")
        .file("check.sh", "test -e done\n")
        .shared()
        .ready()
}

/// A task is blocked by its changed check, and its reason names the command that accepts it.
#[track_caller]
fn is_blocked(world: &FleetWorld, code: i32) {
    assert_eq!((code, world.state("a")), (13, "blocked".to_owned()));
    let why = world.why("a");
    assert!(why.contains("check.sh changed since the loop began"), "{why}");
    assert!(why.ends_with(": crew tell --fleet repo --task a --accept-test-changes"), "{why}");
}

#[test]
fn a_task_with_a_changed_check_lands_once_a_person_accepts_that_check() {
    let world = world(CHANGES);
    is_blocked(&world, world.run(&["--land"]).code());
    is_blocked(&world, world.run(&["--land"]).code());
    let id = world.lease("a")["loop_id"].as_str().unwrap().to_owned();
    let page = world.crew(&["show", &id]).success();
    let command = "then    crew tell --fleet repo --task a --accept-test-changes\n";
    assert!(page.contains(command) && !page.contains("crew resume"), "{page}");

    let told = world.crew(&[&ACCEPTS[..], &["mind", "the", "gap"]].concat()).success();
    assert_eq!((told.as_str(), world.begun("a")), (ACCEPTED, vec![1, 2]));
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_eq!(world.begun("a"), [1, 2, 3]);
    assert!(world.prompt("a", 3).contains("mind the gap"));
    assert_eq!(world.shown("main", "check.sh"), "test ! -e bad\n");
    let lease = world.lease("a");
    assert_eq!(
        (&lease["state"]["proof"], &lease["accepted_test_changes"]),
        (&"passing".into(), &().into())
    );
}

#[test]
fn a_check_that_is_changed_after_it_was_accepted_lowers_the_proof() {
    let again = "echo true > check.sh; touch bad; claim";
    let world = world(&format!("if [ $call -gt 2 ]; then {again}; else {CHANGES}; fi"));
    is_blocked(&world, world.run(&["--land"]).code());
    assert_eq!(world.crew(&ACCEPTS).success(), ACCEPTED);
    assert_eq!((world.run(&["--land"]).code(), world.state("a")), (0, "completed".to_owned()));
    assert_eq!(world.lease("a")["state"]["proof"], "passing");
    let why = world.why("a");
    assert!(why.contains("it passes only with the change of check.sh"), "{why}");
}

#[test]
fn a_changed_text_does_not_accept_the_changed_check_of_the_loop_before() {
    let world = world(CHANGES);
    is_blocked(&world, world.run(&["--land"]).code());
    let task =
        "+++\nverify = [\"sh check.sh\"]\nfailure-threshold = 2\n+++\nLeave check.sh alone.\n";
    let world = world.file("tasks/a.md", task);
    is_blocked(&world, world.run(&["--land", "--retry"]).code());
    assert!(world.prompt("a", 3).contains("Leave check.sh alone."));
}

#[test]
fn a_check_that_comes_with_a_new_text_is_held_as_the_others_are() {
    let world = world("touch w; [ $call -gt 1 ] || exit 0; echo true > check.sh; claim");
    let world = world.file("tasks/a.md", "+++\nmax-iterations = 1\n+++\nDo task a.\n");
    assert_eq!((world.run(&["--land"]).code(), world.state("a")), (10, "exhausted".into()));
    let world = world
        .tasks(&["a"], "verify = [\"sh check.sh\"]\nfailure-threshold = 2\nmax-iterations = 6");
    is_blocked(&world, world.run(&["--land", "--retry"]).code());
}

#[test]
fn a_machine_that_never_saw_the_loop_takes_the_accepted_check_as_it_is() {
    let world = FleetWorld::new(CHANGES)
        .tasks(&["a"], "verify = [\"sh check.sh\"]\nfailure-threshold = 2")
        .file("check.sh", "test -e done\n")
        .by_hand(&[]);
    is_blocked(&world, world.on("home").job("a").wait(LONG).code());
    assert_eq!(world.crew(&ACCEPTS).success(), ACCEPTED);
    let ran = world.on("elsewhere").job("a").wait(LONG);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let lease = world.lease("a");
    assert_eq!(
        (&lease["state"]["proof"], &lease["accepted_test_changes"]),
        (&"passing".into(), &().into())
    );
}

#[test]
fn a_task_that_needs_a_person_for_another_reason_cannot_be_freed_by_accepting_its_checks() {
    let agent = "case $task in
    asks) echo '<promise>BLOCKED: may I type crew resume --accept-test-changes?</promise>';;
    folder) echo new > tasks/done.md; claim;;
    spent) echo true > check.sh; claim;;
    *) ONE;;
    esac"
        .replace("ONE", ONE);
    let world = FleetWorld::new(&agent)
        .tasks(&["asks", "done", "folder"], "")
        .tasks(&["spent"], "verify = [\"sh check.sh\"]\nfailure-threshold = 2\nmax-iterations = 2")
        .file("check.sh", "test -e done\n")
        .shared()
        .ready();
    assert_eq!(world.run(&["--land"]).code(), 13);
    let refused = |task: &str| {
        let ran = world.crew(&["tell", "--fleet", "repo", "--task", task, "--accept-test-changes"]);
        format!("{} {} {}", world.state(task), ran.code(), ran.stderr)
    };
    insta::assert_snapshot!(["asks", "done", "folder", "spent", "nobody"].map(refused).concat(), @"
    blocked 1 crew: task asks is not blocked by a change of its tests
    hint: crew fleet show asks says how it stands
    completed 1 crew: task done is not blocked by a change of its tests
    hint: crew fleet show done says how it stands
    blocked 1 crew: task folder is not blocked by a change of its tests
    hint: crew fleet show folder says how it stands
    blocked 1 crew: task spent has used up its max-iterations
    hint: raise max-iterations in tasks/spent.md, type crew fleet run tasks, then accept
     1 crew: there is no task nobody
    hint: crew fleet status names them
    ");
}
