//! Every reportable moment of a run, as it happens. The driver sends them to an `EventSink` and
//! knows nothing of screens. Lines for people, events for programs and the live line are made only
//! from these.

use chrono::{DateTime, Utc};

use super::Page;
use crate::evidence::CheckResult;
use crate::record::{Loop, LoopMoment, LoopStep, Outcome};

/// A moment of a run.
#[derive(Debug, Clone, Copy)]
pub enum RunEvent<'a> {
    /// A loop begins.
    Started(&'a Loop),
    /// A loop continues in this process.
    Resumed(&'a Loop),
    /// For information; changes nothing.
    Noted(&'a str),
    /// A prompt is longer than its budget, and is sent anyway.
    OverBudget { tokens: u64, budget: u64 },
    /// A step begins that has no event of its own; with the command that it runs.
    StepStarted(LoopStep, &'a str),
    /// The agent is started.
    IterationStarted(&'a Loop),
    /// A reaction to the start of an iteration failed, so no agent was started.
    Skipped { record: &'a Loop, why: &'a str },
    /// A line from the agent, safe to show a person.
    Said(&'a str),
    /// A check begins.
    CheckStarted(&'a str),
    /// A check ended.
    CheckEnded(&'a CheckResult),
    /// The checks run with the work and without it, before the loop ends.
    TrialStarted,
    /// An iteration was judged and counted. `exit` is the agent's exit status, `None` if it did not
    /// exit by itself; `ends` is the loop's outcome, if it ends here.
    IterationEnded { after: &'a Loop, exit: Option<i32>, ends: Option<Outcome> },
    /// The next iteration begins at `until` or later.
    Delayed { record: &'a Loop, until: DateTime<Utc> },
    /// The loop waits for the model's service or after a crash; the record says until when and why.
    Waiting(&'a Loop),
    /// The loop is paused.
    Paused(&'a Loop),
    /// A user's command for a moment of the loop failed.
    /// `is_reported` says that the iteration's own line has the same reason.
    ReactionFailed { on: LoopMoment, run: &'a str, why: &'a str, is_reported: bool },
    /// crew committed the work; `branch` is `None` on a detached head.
    Committed { commit: &'a str, branch: Option<&'a str>, subject: &'a str },
    /// A commit failed.
    CommitFailed { why: &'a str },
    /// A push succeeded.
    Pushed { branch: &'a str, remote: &'a str },
    /// `why` names the class: refused, unreachable, or behind the remote's branch.
    PushFailed { why: &'a str },
    /// A rebase onto this branch succeeded.
    Rebased { onto: &'a str },
    /// The record cannot be written; the run continues with its counters in memory. Reported once.
    Unsaved { why: &'a str },
    /// A person asked for the end; the agent is being stopped.
    Stopping,
    /// The loop is over. It can be resumed from here only if its end was recorded (`saved`).
    Finished { record: &'a Loop, page: &'a Page, saved: bool },
}

impl<'a> RunEvent<'a> {
    /// The step that begins now, and the command that it runs.
    pub fn begun_step(&self) -> Option<(LoopStep, &'a str)> {
        match *self {
            Self::StepStarted(step, run) => Some((step, run)),
            Self::Delayed { .. } => Some((LoopStep::Delay, "")),
            Self::IterationStarted(_) => Some((LoopStep::Agent, "")),
            Self::CheckStarted(run) => Some((LoopStep::Check, run)),
            Self::TrialStarted => Some((LoopStep::TestChanges, "")),
            _ => None,
        }
    }
}

/// Receives the events of a run.
pub trait EventSink {
    /// Takes one event when it happens.
    fn on_event(&mut self, event: &RunEvent<'_>);

    /// Called about every 100 ms during a wait.
    fn on_tick(&mut self) {}
}
