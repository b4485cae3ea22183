//! How an agent failed, and how long the next iteration is delayed because of it.

use super::*;
use crate::fixture::{SetState, a_run};

#[test]
fn crew_waits_after_a_crash_or_a_timeout_but_not_after_an_exit_status_or_a_request() {
    let signal = Some("the agent was killed by signal 9");
    let table = [
        (ProcessEnd::Signal(9), false, signal),
        (ProcessEnd::Signal(9), true, signal),
        (
            ProcessEnd::NotStarted("no such file".to_owned()),
            false,
            Some("the agent could not be started: no such file"),
        ),
        (ProcessEnd::Exit(0), true, Some("the agent ended without its closing event")),
        (ProcessEnd::Exit(1), true, Some("the agent ended without its closing event")),
        (ProcessEnd::Exit(1), false, None),
        (ProcessEnd::Exit(0), false, None),
        (ProcessEnd::TimedOut(60), true, Some("the iteration ran into its timeout of 1m")),
        (ProcessEnd::Silent(60), true, Some("the agent printed nothing for 1m and was ended")),
        (ProcessEnd::OutOfTime, true, None),
        (ProcessEnd::Waited, true, None),
        (ProcessEnd::BrokenOff(None), true, None),
    ];
    for (process, unclosed, expected) in table {
        let closing = if unclosed { AgentClosing::Missing } else { AgentClosing::Plain };
        let mut agent = AgentOutcome { process: Some(process), closing, ..AgentOutcome::default() };
        assert_eq!(crash_reason(&agent).as_deref(), expected, "{agent:?}");
        agent.error =
            Some(ApiError::Transient { message: String::new(), reset: None, is_limit: false });
        assert_eq!(crash_reason(&agent), None, "the service's failure has its own wait");
    }
    assert_eq!(crash_reason(&AgentOutcome::default()), None);
}

#[test]
fn a_failure_within_two_seconds_of_the_start_is_a_crash_and_a_later_one_is_not() {
    let failed = Some("the agent exited with status 3 within 2 s of its start");
    let table = [
        (3, Some(0), failed),
        (3, Some(2000), failed),
        (3, Some(2001), None),
        (3, None, None),
        (0, Some(0), None),
    ];
    for (code, ran_ms, expected) in table {
        let process = Some(ProcessEnd::Exit(code));
        let agent = AgentOutcome { process, ran_ms, ..AgentOutcome::default() };
        assert_eq!(crash_reason(&agent).as_deref(), expected, "{agent:?}");
    }
}

#[test]
fn the_wait_grows_with_each_crash_and_is_never_shorter_than_the_delay() {
    let mut skipped = a_run(None);
    for (what, count) in [("completed", 3), ("tally.iterations_skipped", 2), ("crashes", 1)] {
        skipped.state.set(what, count);
    }
    assert_eq!(wait_s(&skipped), 5, "an agent that was never started has not worked");
    let table = [
        (1, 1, 0, 5),
        (2, 2, 0, 30),
        (3, 3, 0, 300),
        (9, 9, 0, 300),
        (2, 1, 0, 15),
        (9, 2, 0, 120),
        (9, 3, 0, 900),
        (1, 1, 60, 60),
        (3, 3, 60, 300),
    ];
    for (completed, crashes, delay_s, expected) in table {
        let mut subject = a_run(None);
        subject.state.set("completed", completed);
        subject.state.set("crashes", crashes);
        subject.contract.run.as_mut().unwrap().pace.delay_s = delay_s;
        assert_eq!(wait_s(&subject), expected, "{completed} {crashes} {delay_s}");
    }
}
