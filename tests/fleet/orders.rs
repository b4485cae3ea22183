//! What a person orders of a fleet while it runs: pause, cancel, and a message to every agent.

use super::{FleetWorld, LONG, TWO};
use crate::child::Running;

/// Two tasks at work on two slots, each in its first iteration until the note `go`, and one that
/// waits.
fn at_work(terms: &str) -> (FleetWorld, Running) {
    let world = FleetWorld::new(&format!("wait_for go; {TWO}"))
        .tasks(&["a", "b", "c"], &format!("verify = [\"grep -q 2 work-*\"]\n{terms}"))
        .terms("slots = 2")
        .ready();
    let running = world.start(&[]);
    world.until("two work", |world| world.noted("log").lines().count() == 2);
    (world, running)
}

#[test]
fn a_pause_lets_running_iterations_end_and_nothing_begin_until_the_fleet_is_run_again() {
    let (world, running) = at_work("");
    world.crew(&["fleet", "pause"]).success();
    world.allow("go");
    let paused = running.wait(LONG);
    assert_eq!(paused.code(), 130, "{paused:#?}");
    assert_eq!(["a", "b", "c"].map(|task| world.begun(task)), [vec![1], vec![1], vec![]]);
    assert_eq!(world.work("a", "work-a"), "1\n", "the iteration that ended is kept");
    let by_hand = world.on("home").job("c").wait(LONG);
    assert_eq!((by_hand.code(), world.begun("c")), (130, vec![]), "{by_hand:#?}");

    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert_eq!(["a", "b", "c"].map(|task| world.begun(task)), [[1, 2]; 3]);
}

#[test]
fn a_pause_now_breaks_the_running_iterations_off_and_they_are_repeated() {
    let (world, running) = at_work("");
    world.crew(&["fleet", "pause", "--now"]).success();
    let paused = running.wait(LONG);
    assert_eq!(paused.code(), 130, "{paused:#?}");
    world.allow("go");
    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert_eq!(world.begun("a"), [1, 1, 2]);
    assert_eq!(
        ["a", "b", "c"].map(|task| world.work(task, &format!("work-{task}"))),
        ["1\n2\n"; 3]
    );
}

#[test]
fn a_cancelled_task_ends_and_the_others_do_not() {
    let (world, running) = at_work("");
    world.crew(&["fleet", "cancel", "b", "c"]).success();
    assert_eq!(world.state("c"), "cancelled", "nobody works on it");
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let states =
        [("a", "completed".to_owned()), ("b", "cancelled".into()), ("c", "cancelled".into())];
    assert_eq!(world.states(&["a", "b", "c"]), states);
    assert_eq!((world.begun("b"), world.begun("c")), (vec![1], vec![]));
    assert_eq!(world.work("b", "work-b"), "1\n", "its work is kept");
}

#[test]
fn a_cancel_of_all_now_ends_everything_and_no_job_undoes_it() {
    let (world, running) = at_work("");
    world.crew(&["fleet", "cancel", "--now", "--reason", "enough"]).success();
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 14, "{ran:#?}");
    let log = world.noted("log");
    world.allow("go");
    for task in ["a", "b", "c"] {
        let job = world.on("home").job(task).wait(LONG);
        assert_eq!((task, job.code(), world.state(task)), (task, 14, "cancelled".to_owned()));
    }
    assert_eq!(world.noted("log"), log, "nothing runs any more");
    assert!(world.why("c").contains("enough"), "{}", world.why("c"));
}

#[test]
fn a_message_to_the_fleet_is_in_the_next_prompt_of_every_task_once() {
    let (world, running) = at_work("");
    world.crew(&["tell", "--fleet", "repo", "Mind the gap"]).success();
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let reads = |task, call| world.prompt(task, call).matches("Mind the gap").count();
    let read = ["a", "b", "c"].map(|task| [reads(task, 1), reads(task, 2)]);
    assert_eq!(read, [[0, 1], [0, 1], [1, 0]]);
}
