//! What takes a stand-in out of its loop: only a person can help it, and without it the loop waits
//! for the agent in whose place it works. It takes nothing from a loop's own agent.

use super::facts::{ApiError, Facts, ProcessEnd};
use super::progress::progress;
use crate::engine::claim::Claim;
use crate::engine::evidence::Progress;
use crate::engine::record::{Driver, Loop};

/// Why the agent that stands in is out, and what a person can do.
pub fn of(subject: &Loop, facts: &Facts) -> Option<String> {
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
        _ => denied(subject, facts, progress(subject, facts).progress),
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
