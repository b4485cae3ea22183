//! Agents that crash: a crash that is not the iteration's fault is not retried immediately, and the
//! user can cut the wait short.

use rustix::process::Signal;

use super::{CLAIM, HANG, WORK, World};
use crate::sandbox::{DEADLINE, Sandbox, poll_until};
use crate::spawned::Running;

const CRASH: &str = "echo Thinking.; kill -KILL $$";

/// A world in which the wait after a crash is as long as it is for users.
fn patient(steps: &[&str]) -> World {
    World::of(Sandbox::new().patient(), steps)
}

/// Starts a run whose agent crashes, and returns it when it waits.
#[track_caller]
fn waiting(world: &World) -> Running {
    let running = world.sandbox.start_crew(&["run", "Build the app", "--delay", "10m"]);
    poll_until("the wait", || running.stdout().contains("Waiting until"));
    running
}

#[test]
fn the_wait_after_a_crash_does_not_count_as_time_of_an_iteration() {
    let world = patient(&[CRASH, CLAIM]);
    let ran = world.crew(&["run", "Build the app"]);
    assert_eq!((ran.code(), world.calls()), (0, 2), "{ran:?}");
    let lines = world.lines(&ran);
    let wait = "(the agent was killed by signal 9), then iteration 2";
    assert!(
        lines.lines().any(|line| line.contains("Waiting until") && line.ends_with(wait)),
        "{lines}"
    );
    let shown = world.the_loop();
    let iterations: u64 =
        shown["iterations_ms"].as_array().unwrap().iter().map(|ms| ms.as_u64().unwrap()).sum();
    assert!(iterations + 5_000 <= shown["awake_ms"].as_u64().unwrap(), "{shown:#}");
}

#[test]
#[ignore = "long"]
fn a_person_ends_a_wait_early_from_another_terminal() {
    let world = patient(&[WORK, CRASH, CLAIM]);
    let running = world.sandbox.start_crew(&["run", "Build the app", "--delay", "5s"]);
    poll_until("the wait", || running.stdout().contains("Waiting until"));
    let shown = world.crew(&["resume", "--now", "--tell", "use tabs", "-n", "+5"]).success();
    assert_eq!(shown.trim(), format!("loop {}: the wait is over, iteration 3 begins", world.id()));
    let ran = running.wait(DEADLINE);
    assert_eq!((ran.code(), world.calls()), (0, 3), "{ran:?}");
    let prompt = world.prompt(3);
    assert!(prompt.contains("use tabs") && prompt.contains("3 of 15"), "{prompt}");
}

#[test]
fn a_run_that_does_not_wait_has_no_wait_to_end() {
    let world = patient(&[HANG]);
    let running = world.hanging(&["run", "Build the app"]);
    let ran = world.crew(&["resume", "--now"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains("is running in crew run"), "{ran:?}");
    world.crew(&["cancel"]).success();
    running.wait(DEADLINE);
}

#[test]
#[ignore = "long"]
fn a_cancel_a_pause_and_a_signal_end_a_wait_after_a_crash_and_it_can_be_resumed() {
    let world = patient(&[CRASH]);
    let running = waiting(&world);
    world.crew(&["cancel"]).success();
    assert_eq!((running.wait(DEADLINE).code(), world.calls()), (14, 1));

    let world = patient(&[CRASH, CLAIM]);
    let running = waiting(&world);
    world.crew(&["pause"]).success();
    assert_eq!((running.wait(DEADLINE).code(), world.calls()), (130, 1));
    assert_eq!(world.the_loop()["status"], "paused");
    assert_eq!((world.crew(&["resume"]).code(), world.calls()), (0, 2));

    let world = patient(&[CRASH, CLAIM]);
    let running = waiting(&world);
    running.signal(Signal::INT);
    assert_eq!((running.wait(DEADLINE).code(), world.calls()), (130, 1));
    assert_eq!(world.the_loop()["outcome"], "interrupted");
    assert_eq!((world.crew(&["resume"]).code(), world.calls()), (0, 2));
}
