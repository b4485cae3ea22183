//! Crashes: an agent that could not start, was ended by a signal crew did not send, or ended
//! without its closing event. An immediate retry mostly crashes again, so the next iteration waits.
//! A plain exit status is not a crash, and a failure of the model's service has its own wait.

use super::facts::{AgentClosing, AgentOutcome, ProcessEnd};
use crate::engine::record::Loop;

/// Seconds before the next iteration, by crashes in a row; the last value applies to all further
/// ones.
const NEVER_WORKED_S: [u64; 3] = [5, 30, 300];
/// The same for an agent that has worked in this loop: the cause is likely to last longer.
const WORKED_S: [u64; 3] = [15, 120, 900];

/// What crashed, in words; `None` if the end was not a crash.
pub fn of(agent: &AgentOutcome) -> Option<String> {
    ended_badly(agent).filter(|_| agent.error.is_none())
}

/// The same, whether or not the model's service failed, too.
pub(super) fn ended_badly(agent: &AgentOutcome) -> Option<String> {
    match agent.process.as_ref()? {
        ProcessEnd::Signal(signal) => Some(format!("the agent was ended by signal {signal}")),
        ProcessEnd::NotStarted(why) => Some(format!("the agent could not be started: {why}")),
        ProcessEnd::Exit(_) if agent.closing == AgentClosing::Missing => {
            Some("the agent ended without its closing event".to_owned())
        }
        _ => None,
    }
}

/// Seconds that the next iteration waits; `subject` has already counted the crash.
pub fn wait_s(subject: &Loop) -> u64 {
    let state = &subject.state;
    let waits = if state.completed > state.crashes.saturating_add(state.skips) {
        WORKED_S
    } else {
        NEVER_WORKED_S
    };
    let index = (state.crashes.max(1) as usize - 1).min(waits.len() - 1);
    let delay = subject.contract.run.as_ref().map_or(0, |run| run.pace.delay_s);
    waits[index].max(delay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::boundary::facts::ApiError;
    use crate::engine::fixture::a_run;

    #[test]
    fn an_end_by_nobodys_wish_is_a_crash_and_a_plain_status_or_an_end_by_crew_is_none() {
        let signal = Some("the agent was ended by signal 9");
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
            (ProcessEnd::TimedOut(1), true, None),
            (ProcessEnd::Silent(1), true, None),
            (ProcessEnd::OutOfTime, true, None),
            (ProcessEnd::Waited, true, None),
            (ProcessEnd::BrokenOff(String::new()), true, None),
        ];
        for (process, unclosed, expected) in table {
            let closing = if unclosed { AgentClosing::Missing } else { AgentClosing::Plain };
            let mut agent =
                AgentOutcome { process: Some(process), closing, ..AgentOutcome::default() };
            assert_eq!(of(&agent).as_deref(), expected, "{agent:?}");
            agent.error =
                Some(ApiError::Transient { message: String::new(), reset: None, is_limit: false });
            assert_eq!(of(&agent), None, "the service's failure has its own wait");
        }
        assert_eq!(of(&AgentOutcome::default()), None);
    }

    #[test]
    fn the_wait_grows_with_the_row_is_longer_once_the_agent_worked_and_never_shorter_than_the_delay()
     {
        let mut skipped = a_run(None);
        (skipped.state.completed, skipped.state.skips, skipped.state.crashes) = (3, 2, 1);
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
            subject.state.completed = completed;
            subject.state.crashes = crashes;
            subject.contract.run.as_mut().unwrap().pace.delay_s = delay_s;
            assert_eq!(wait_s(&subject), expected, "{completed} {crashes} {delay_s}");
        }
    }
}
