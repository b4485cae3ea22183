//! Waits for the model's service: the same iteration is repeated, the user's requests end them
//! immediately, and none exceeds the loop's limits.

use rustix::process::Signal;
use serde_json::Value;

use super::claude::{answer, limited};
use super::{HANG, WORK, World};
use crate::sandbox::{DEADLINE, poll_until};
use crate::spawned::Running;

/// Starts a run and returns it when it waits.
#[track_caller]
fn waiting(world: &World, arguments: &[&str]) -> Running {
    let running = world.sandbox.start_crew(arguments);
    poll_until("the wait", || running.stdout().contains("Waiting until"));
    running
}

#[test]
fn a_limit_with_a_reset_is_waited_for_and_the_same_iteration_is_repeated() {
    let work = format!("echo line >> work.txt; {}", answer("Wrote a line."));
    let world = World::claude(&[&work, &limited(3), &work], "");
    let ran = world.crew(&["run", "Do it", "-n", "3"]);
    assert_eq!((ran.code(), world.calls()), (10, 4), "{ran:#?}");
    let iteration = |call| world.prompt(call).lines().next().unwrap_or_default().to_owned();
    assert_eq!(iteration(2), iteration(3));
    let shown = world.the_loop();
    assert_eq!(shown["completed_iterations"], 3, "{shown:#}");
    assert_eq!(shown["consecutive_failures"], 0);
    let lines = world.lines(&ran);
    let lines: Vec<&str> = lines.lines().filter(|line| line.contains("ration 2")).collect();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(lines[1].contains("(It did not answer (rate_limit)), then iteration 2 again"));
}

#[test]
fn a_pause_ends_a_wait_and_a_resume_retries_at_once() {
    let world = World::claude(&[&limited(600), &answer("<promise>COMPLETE</promise>")], "");
    let running = waiting(&world, &["run", "Do it"]);
    world.crew(&["pause"]).success();
    let ran = running.wait(DEADLINE);
    assert_eq!((ran.code(), world.calls()), (130, 1), "{ran:#?}");
    assert_eq!(world.the_loop()["status"], "paused");
    let resumed = world.crew(&["resume"]);
    assert_eq!((resumed.code(), world.calls()), (0, 2), "{resumed:#?}");
    assert_eq!(world.the_loop()["completed_iterations"], 1);
}

#[test]
fn a_cancel_kills_the_agent_and_a_pause_lets_it_end_unless_it_is_immediate() {
    let world = World::new(&[HANG]);
    let running = world.hanging(&["run", "Do it"]);
    world.crew(&["cancel"]).success();
    let ran = running.wait(DEADLINE);
    assert_eq!(ran.code(), 14, "{ran:#?}");

    let slow = "touch \"$notes/hangs\"; while ! [ -e \"$notes/go\" ]; do sleep 0.05; done";
    let world = World::new(&[slow]);
    let running = world.hanging(&["run", "Do it"]);
    world.crew(&["pause"]).success();
    std::fs::write(world.note("go"), "").unwrap();
    let ran = running.wait(DEADLINE);
    let shown = world.the_loop();
    assert_eq!((ran.code(), shown["completed_iterations"].as_u64()), (130, Some(1)), "{ran:#?}");

    let world = World::new(&[HANG]);
    let running = world.hanging(&["run", "Do it"]);
    world.crew(&["pause", "--now"]).success();
    let ran = running.wait(DEADLINE);
    let shown = world.the_loop();
    assert_eq!((ran.code(), shown["completed_iterations"].as_u64()), (130, Some(0)), "{ran:#?}");
    assert_eq!(shown["status"], "paused");
}

#[test]
fn a_signal_during_a_request_changes_nothing() {
    let world = World::claude(&[&limited(600)], "");
    let running = waiting(&world, &["run", "Do it"]);
    world.crew(&["cancel"]).success();
    running.signal(Signal::INT);
    assert_eq!(running.wait(DEADLINE).code(), 14);
}

#[test]
fn a_cancel_ends_a_running_check_and_nothing_begins_after_it() {
    // The look before the first iteration ends in one of them, that after it in the other.
    for (role, passes, calls) in
        [("--gate", "test -e work.txt || exit 0; ", 1), ("--verify", "", 0)]
    {
        let world = World::new(&[WORK]);
        let first = format!("{passes}touch '{}'; sleep 600", world.note("ready").display());
        let second = format!("{passes}touch '{}'", world.note("second").display());
        let arguments = ["run", "Do it", role, &first, role, &second];
        let running = world.sandbox.start_crew(&arguments);
        poll_until("the check", || world.note("ready").exists());
        world.crew(&["cancel"]).success();
        let ran = running.wait(DEADLINE);
        assert_eq!((ran.code(), world.calls()), (14, calls), "{ran:#?}");
        assert!(!world.note("second").exists(), "{role}: another check was run");
    }
}

#[test]
fn the_usage_of_a_cancelled_iteration_is_counted() {
    let step = format!("{}; {HANG}", answer("Wrote a line."));
    let world = World::claude(&[&step], "");
    let running = world.hanging(&["run", "Do it"]);
    world.crew(&["cancel", "--reason", "enough"]).success();
    let ran = running.wait(DEADLINE);
    assert_eq!(ran.code(), 14, "{ran:#?}");
    let record = world.record();
    let tokens = &record["state"]["usage"]["tokens"];
    assert_eq!((&tokens["input"], &tokens["output"]), (&100.into(), &10.into()), "{record:#}");
    assert_eq!(record["state"]["ending"]["why"], "cancelled by the user: enough");
    let result = world.sandbox.crew_home().join("loops").join(world.id()).join("result.json");
    let result: Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
    assert_eq!(result["usage"], record["state"]["usage"]);
    assert_eq!(result["generation"], record["state"]["generation"]);
}

#[test]
fn the_time_limit_ends_a_running_iteration_without_a_failure() {
    let world = World::new(&[HANG]);
    let ran = world.crew(&["run", "Do it", "--max-duration", "2s", "--timeout", "0"]);
    assert_eq!((ran.code(), world.calls()), (10, 1), "{ran:#?}");
    let shown = world.the_loop();
    assert_eq!(shown["why"], "the time limit of 2s is reached");
    assert_eq!(shown["consecutive_failures"], 0, "{shown:#}");
}
