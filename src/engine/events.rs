//! Every moment of a run that somebody may want to hear of, as it happens. The driver tells them to a
//! `EventSink` and knows nothing of screens; a line, an event for programs and the live line are all made from
//! these and from nothing else.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::evidence::check::CheckResult;
use super::record::Loop;
use super::record::outcome::Outcome;
use super::record::run::LoopMoment;
use super::words::handoff::Since;

/// A moment of a run.
#[derive(Debug, Clone, Copy)]
pub enum RunEvent<'a> {
    /// A loop begins.
    Started(&'a Loop),
    /// A loop goes on in this process.
    Resumed(&'a Loop),
    /// Worth knowing; changes nothing.
    Noted(&'a str),
    /// A prompt is longer than its budget, and is sent all the same.
    OverBudget {
        tokens: u64,
        budget: u64,
    },
    /// The agent is started.
    IterationStarted(&'a Loop),
    /// A reaction to the start of an iteration failed: no agent was started.
    Skipped {
        record: &'a Loop,
        why: &'a str,
    },
    /// A line of the agent's, as a person may see it.
    Said(&'a str),
    /// A check begins.
    CheckStarted(&'a str),
    CheckEnded(&'a CheckResult),
    /// An iteration was judged and counted.
    IterationEnded {
        after: &'a Loop,
        /// Of the agent's process; `None` where it did not exit by itself.
        exit: Option<i32>,
        /// What the loop ends as, where it ends here.
        ends: Option<Outcome>,
    },
    /// The next iteration begins no earlier.
    Delayed {
        record: &'a Loop,
        until: DateTime<Utc>,
    },
    /// The model's service does not answer; the record says until when, and why.
    Waiting(&'a Loop),
    Paused(&'a Loop),
    /// A user's command at a moment of the loop failed.
    ReactionFailed {
        on: LoopMoment,
        run: &'a str,
        why: &'a str,
    },
    Committed {
        commit: &'a str,
        /// `None` on a detached head.
        branch: Option<&'a str>,
        subject: &'a str,
    },
    CommitFailed {
        why: &'a str,
    },
    Pushed {
        branch: &'a str,
        remote: &'a str,
    },
    /// `why` names the class: refused, unreachable, or behind the remote's branch.
    PushFailed {
        why: &'a str,
    },
    Rebased {
        onto: &'a str,
    },
    /// The record cannot be written; the run goes on with its counters in memory. Told once.
    Unsaved {
        why: &'a str,
    },
    /// A person asked for the end; the agent is being ended.
    Stopping,
    Finished {
        record: &'a Loop,
        since: &'a Since,
        handoff: Option<&'a Path>,
        /// Whether the record tells of the end: only then can the loop be resumed from here.
        saved: bool,
    },
}

/// Hears of a run.
pub trait EventSink {
    /// Takes one moment, when it happens.
    fn hear(&mut self, news: &RunEvent<'_>);

    /// Time goes by: called about every 100 ms while something is waited for.
    fn tick(&mut self) {}
}
