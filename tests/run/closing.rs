//! The closing event of an agent that has one: how it decides about an iteration, a failure, a
//! claim.

use super::World;
use super::claude::answer;
use crate::sandbox::Sandbox;

const STEADY: [&str; 8] =
    ["run", "Build the app", "--stall", "0", "--idle-timeout", "0", "--timeout", "0"];

fn impatient(steps: &[&str]) -> World {
    let sandbox = Sandbox::new().with_faults().env("CREW_LINGER_MS", "1500");
    World::of(sandbox, steps).speaks_claude("")
}

#[test]
fn an_agent_that_stays_after_its_closing_event_is_ended_and_its_iterations_are_whole() {
    let world = impatient(&[&format!("{}; sleep 300", answer("Wrote a line."))]);
    let ran = world.crew(&[&STEADY[..], &["-n", "3"]].concat());
    let shown = world.the_loop();
    assert_eq!((ran.code(), world.calls()), (10, 3), "{ran:?}");
    assert_eq!(shown["consecutive_failures"], 0, "{shown:#}");
    let note = "the agent reported that it was done, then was silent for 30 s: crew ended it, and the iteration counts in full";
    assert!(ran.stderr.contains(note), "{ran:?}");
}

#[test]
fn an_agent_that_resumes_after_its_background_work_is_not_ended_and_its_last_word_counts() {
    let event = |fields: &str| format!("printf '%s\\n' '{{\"type\":\"system\",{fields}}}'");
    let [task, shown, turn] = [
        event(r#""subtype":"task_started","task_id":"b""#),
        event(r#""subtype":"task_notification","task_id":"b""#),
        event(r#""subtype":"init","model":"m""#),
    ];
    let first = answer("<promise>COMPLETE</promise>");
    let last = answer("The build failed after all.");
    let world = impatient(&[&format!("{task}; {first}; sleep 5; {shown}; {turn}; {last}")]);
    let ran = world.crew(&[&STEADY[..], &["-n", "1"]].concat());
    assert_eq!(ran.code(), 10, "{ran:?}");
    assert!(!ran.stderr.contains("reported that it was done"), "{ran:?}");
    let evidence = &world.record()["state"]["evidence"];
    assert_eq!(
        (&evidence["claim"]["is"], &evidence["failure"]),
        (&"none".into(), &None::<u8>.into())
    );
}

#[test]
fn an_error_in_the_closing_event_is_a_failure_whatever_the_exit_status() {
    let claim = answer("<promise>COMPLETE</promise>");
    for (from, to) in [
        ("\"is_error\":false", "\"is_error\":true"),
        ("\"subtype\":\"success\"", "\"subtype\":\"error_during_execution\""),
    ] {
        let world = World::claude(&[&claim.replace(from, to)], "");
        let ran = world.crew(&["run", "Build the app", "-n", "1"]);
        assert_eq!(ran.code(), 10, "{ran:?}");
        let evidence = &world.record()["state"]["evidence"];
        assert_eq!(evidence["claim"]["is"], "none", "{to}");
        let failure = "the agent's closing event says error: <promise>COMPLETE</promise>";
        assert_eq!(evidence["failure"], failure, "{to}");
    }
}

#[test]
fn an_agent_that_claims_without_its_closing_event_has_crashed() {
    let claim = answer("<promise>COMPLETE</promise>");
    let (said, _) = claim.split_once("}}' '").unwrap();
    let world = World::claude(&[&format!("{said}}}}}'")], "");
    let ran = world.crew(&["run", "Build the app", "-n", "9"]);
    assert_eq!((ran.code(), world.calls()), (11, 3), "{ran:?}");
    let evidence = &world.record()["state"]["evidence"];
    assert_eq!(evidence["claim"]["is"], "none");
    assert_eq!(evidence["failure"], "the agent ended without its closing event");
    assert!(ran.stdout.contains("(the agent ended without its closing event)"), "{ran:?}");
}

#[test]
fn a_cost_that_cannot_be_read_blocks_a_loop_whose_cost_is_limited() {
    let unreadable = answer("Wrote a line.").replace("\"costUSD\":0.01", "\"costUSD\":-1");
    let world = World::claude(&[&unreadable], "");
    let ran = world.crew(&["run", "Build the app", "--max-cost", "5"]);
    assert_eq!((ran.code(), world.calls()), (13, 1), "{ran:?}");
    assert!(world.the_loop()["why"].as_str().unwrap().contains("cannot be kept"));
}
