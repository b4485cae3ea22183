//! The end of a wait for the model's service: the agent's prompt, and the files in the checkout.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::Door;
use crate::sandbox::{DEADLINE, poll_until};

#[test]
fn a_loop_that_the_service_refuses_permanently_needs_a_person() {
    let mut door = Door::new();
    door.sandbox = door.sandbox.env("CLAUDE_CODE_SESSION_ATTENDED", "1");
    let id = door.begin("\"Build it\"");
    let refused = || {
        let failed = door.event("StopFailure").with("error", "authentication_failed");
        failed.with("last_assistant_message", "Invalid API key")
    };
    let early = refused().companion();
    refused().send().assert_lets_go();
    // The client starts both at once, and either may be the first.
    for notice in [early, refused().companion()] {
        let shown: Value = serde_json::from_str(&notice.wait(DEADLINE).success()).unwrap();
        let sequence = shown["terminalSequence"].as_str().unwrap();
        let expected = format!("\u{1b}]9;crew: loop {id} needs you: ");
        assert!(sequence.starts_with(&expected), "{sequence:?}");
    }
}

#[test]
fn a_wake_gives_its_reason_and_the_loop_counts_as_running() {
    let mut door = Door::new();
    door.sandbox = door.sandbox.env("CLAUDE_CODE_SESSION_ATTENDED", "1");
    let id = door.begin("\"Build it\" --stall 0");
    door.stop("one").assert_goes_on();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let refused = format!("API Error: usage limit reached|{}", now + 2);
    let failed = door.event("StopFailure").with("error", "rate_limit");
    let waiter = failed.with("last_assistant_message", refused).start();
    poll_until("the loop waits", || door.status(&id)["status"] == "waiting");
    assert_eq!(door.view()["loop"]["status"], "waiting");
    let shown = door.event("StopFailure").with("error", "rate_limit").companion();
    let shown: Value = serde_json::from_str(&shown.wait(DEADLINE).success()).unwrap();
    let sequence = shown["terminalSequence"].as_str().unwrap();
    let expected = format!("\u{1b}]9;crew: loop {id}: waiting until ");
    assert!(sequence.starts_with(&expected), "{sequence:?}");
    assert!(sequence.ends_with(" then iteration 2 of 10 again\u{7}"), "{sequence:?}");
    let woken = waiter.wait(DEADLINE);
    assert_eq!(woken.code(), 2, "{woken:#?}");
    let expected = "iteration 2 of 10. Once more.\n\nThis is not an error and not your doing. The model's service refused a request, and crew waited ";
    assert!(woken.stderr.contains(expected), "{}", woken.stderr);
    assert_eq!(door.view()["loop"]["status"], "running");
    door.stop("two").assert_goes_on();
    assert!(!door.remarks(&id).contains("state.json"), "{}", door.remarks(&id));
}
