//! How an agent's process failed. A crash is an agent that could not start, was ended by a signal
//! crew did not send, ended without its closing event, or failed at once. An immediate retry mostly
//! crashes again, so the next iteration waits, and so it does after a timeout. An agent that fails
//! later has worked; a failure of the model's service has its own wait.

use super::facts::{AgentClosing, AgentOutcome, ApiError, Facts, ProcessEnd};
use super::progress::progress;
use crate::engine::claim::Claim;
use crate::engine::evidence::Progress;
use crate::engine::record::{Driver, Loop};
use crate::engine::text::period;

/// Seconds before the next iteration, by crashes in a row; the last value applies to all further
/// ones.
const NEVER_WORKED_S: [u64; 3] = [5, 30, 300];
/// The same for an agent that has worked in this loop: the cause is likely to last longer.
const WORKED_S: [u64; 3] = [15, 120, 900];

/// An agent that fails within this many milliseconds of its start has done no work.
const AT_ONCE_MS: u64 = 2000;

/// Why the next iteration waits, in words; `None` if the end was neither a crash nor a timeout.
pub fn crashed(agent: &AgentOutcome) -> Option<String> {
    let why = ended_badly(agent).or_else(|| failed_at_once(agent));
    why.or_else(|| overdue(agent.process.as_ref()?)).filter(|_| agent.error.is_none())
}

/// Crashes in a row after one more iteration. One that ran into its timeout while it made progress
/// begins a row: the wait is to let a cause pass, and the agent was able to work.
pub(super) fn in_a_row(before: u32, agent: &AgentOutcome, progress: Progress) -> u32 {
    let was_at_work = agent.process.as_ref().and_then(overdue).is_some();
    match crashed(agent) {
        Some(_) if was_at_work && progress == Progress::Made => 1,
        Some(_) => before + 1,
        None => 0,
    }
}

fn failed_at_once(agent: &AgentOutcome) -> Option<String> {
    let is_at_once = agent.ran_ms.is_some_and(|ms| ms <= AT_ONCE_MS);
    match agent.process.as_ref()? {
        ProcessEnd::Exit(code) if *code != 0 && is_at_once => {
            Some(format!("{} within {} s of its start", exited(*code), AT_ONCE_MS / 1000))
        }
        _ => None,
    }
}

/// How an agent crashed, whether or not the model's service failed, too.
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

/// Why crew ended the agent, if its time or its silence was the reason.
pub(super) fn overdue(end: &ProcessEnd) -> Option<String> {
    match end {
        ProcessEnd::TimedOut(limit) => {
            Some(format!("the iteration ran into its timeout of {}", period(*limit)))
        }
        ProcessEnd::Silent(limit) => {
            Some(format!("the agent printed nothing for {} and was ended", period(*limit)))
        }
        _ => None,
    }
}

/// The failure of an agent whose process exited with `code`.
pub fn exited(code: i32) -> String {
    format!("the agent exited with status {code}")
}

/// Seconds that the next iteration waits; `subject` has already counted the crash.
pub fn wait_s(subject: &Loop) -> u64 {
    let state = &subject.state;
    let waits = if state.completed > state.crashes.saturating_add(state.tally.skipped) {
        WORKED_S
    } else {
        NEVER_WORKED_S
    };
    let index = (state.crashes.max(1) as usize - 1).min(waits.len() - 1);
    let delay = subject.contract.run.as_ref().map_or(0, |run| run.pace.delay_s);
    waits[index].max(delay)
}

// What takes a stand-in out of its loop: only a person can help it, and without it the loop waits
// for the agent in whose place it works. It takes nothing from a loop's own agent.

/// Why the agent that stands in is out, and what a person can do.
pub fn unfit(subject: &Loop, facts: &Facts) -> Option<String> {
    subject.stand_in()?;
    let agent = &facts.seen.agent;
    match (&agent.error, &agent.process) {
        (Some(ApiError::Fatal { cause, cure }), _) => Some(format!("{cause}; {cure}")),
        (_, Some(ProcessEnd::NotStarted(why))) => Some(format!("it could not be started: {why}")),
        (Some(ApiError::Transient { .. }), _) => None,
        (None, Some(ProcessEnd::Exit(0)))
            if facts.usage.is_none() && subject.contract.limits.bound_usage() =>
        {
            Some("it does not report what it used, and the loop limits that".to_owned())
        }
        _ => denied(subject, facts, progress(subject, facts).0),
    }
}

/// What was denied to an agent in a process that changed nothing.
pub(super) fn denied(subject: &Loop, facts: &Facts, progress: Progress) -> Option<String> {
    let tools = &facts.seen.agent.denied;
    let is_denied = !tools.is_empty()
        && subject.driver() == Driver::Process
        && progress == Progress::None
        && *facts.seen.heard() != Claim::Success;
    is_denied.then(|| {
        let tools = tools.join(", ");
        format!("denied: {tools}, and nothing changed; allow them with --permissions")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixture::a_run;

    #[test]
    fn an_end_by_nobodys_wish_or_a_timeout_is_waited_after_and_a_plain_status_or_an_order_is_not() {
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
            (ProcessEnd::TimedOut(60), true, Some("the iteration ran into its timeout of 1m")),
            (ProcessEnd::Silent(60), true, Some("the agent printed nothing for 1m and was ended")),
            (ProcessEnd::OutOfTime, true, None),
            (ProcessEnd::Waited, true, None),
            (ProcessEnd::BrokenOff(String::new()), true, None),
        ];
        for (process, unclosed, expected) in table {
            let closing = if unclosed { AgentClosing::Missing } else { AgentClosing::Plain };
            let mut agent =
                AgentOutcome { process: Some(process), closing, ..AgentOutcome::default() };
            assert_eq!(crashed(&agent).as_deref(), expected, "{agent:?}");
            agent.error =
                Some(ApiError::Transient { message: String::new(), reset: None, is_limit: false });
            assert_eq!(crashed(&agent), None, "the service's failure has its own wait");
        }
        assert_eq!(crashed(&AgentOutcome::default()), None);
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
            assert_eq!(crashed(&agent).as_deref(), expected, "{agent:?}");
        }
    }

    #[test]
    fn the_wait_grows_with_the_row_is_longer_once_the_agent_worked_and_never_shorter_than_the_delay()
     {
        let mut skipped = a_run(None);
        (skipped.state.completed, skipped.state.tally.skipped, skipped.state.crashes) = (3, 2, 1);
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
