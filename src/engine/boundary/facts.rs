//! Everything a boundary may look at. `Seen` is the cheap look; `Facts` adds what was worth its cost.
//! An absent value means *not looked at*, never zero.

use crate::engine::evidence::check::{CheckResult, Verdict};
use crate::engine::record::moment::Moment;
use chrono::{DateTime, Utc};

use super::protect::{Marks, Unseen};
use crate::engine::claim::Claim;
use crate::engine::record::contract::{Contract, Role};
use crate::engine::usage::Usage;

/// An order from outside the loop, waiting in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlRequest {
    Cancel {
        /// `user` or `agent`.
        by: String,
        reason: Option<String>,
    },
    Pause,
}

/// Why the model's service did not answer, by what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiError {
    /// Rate limit, overload, 5xx, network, unknown: neither an iteration nor a failure.
    Transient { message: String, reset: Option<DateTime<Utc>> },
    /// Auth, billing, model, organisation: only a person helps.
    Fatal { cause: String, cure: String },
    /// Invalid, too long, output cut, refusal: a failed iteration, and the next prompt says which.
    Request { message: String },
}

/// How the process of one iteration ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    Exit(i32),
    /// By a signal crew did not send.
    Signal(i32),
    /// By crew, at the iteration's timeout of so many seconds.
    TimedOut(u64),
    /// By crew, because the loop's own time was over.
    OutOfTime,
    /// By crew, because it printed nothing for so many seconds while no tool call was open.
    Silent(u64),
    /// By crew, because a person asked for it; says how.
    BrokenOff(String),
    /// It could not be started, and why.
    NotStarted(String),
    /// It was not to be started, and why: a reaction of the user's stood against it.
    Skipped(String),
}

/// What the closing event of an agent says of its iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AgentClosing {
    /// Nothing else than how its process ended; or the agent has no such event.
    #[default]
    Plain,
    /// That it failed; says how.
    Failed(String),
    /// It never came, though the agent has one.
    Missing,
}

/// How the agent's iteration ended, as its client or its process told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentOutcome {
    /// `None` for an agent in a session: its process lives on.
    pub process: Option<ProcessEnd>,
    /// What else failed around the iteration: a reaction of the user's.
    pub failed_around: Option<String>,
    pub error: Option<ApiError>,
    pub closing: AgentClosing,
    /// Tools that were denied.
    pub denied: Vec<String>,
    /// Work the client still runs in the background and that is worth waiting for.
    pub background: Option<String>,
    /// The answer was cut by the token limit: whatever it says is no claim, and how it ended is no failure.
    pub cut: bool,
    /// The last lines its process wrote to standard error, bounded.
    pub errors: String,
    /// Milliseconds of its time in which crew itself was stopped, so that nobody watched: they count for
    /// neither the iteration nor the loop.
    pub missed_ms: u64,
}

/// The cheap look: enough to know which checks and which diffs are worth their cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub order: Option<ControlRequest>,
    /// As it was read; what counts of it is [`Seen::heard`].
    pub claim: Claim,
    pub agent: AgentOutcome,
    /// A number from 0 to 999 that spreads waits of many loops.
    pub jitter: u16,
}

impl Seen {
    /// The claim that counts: an answer that was cut makes none.
    pub fn heard(&self) -> &Claim {
        if self.agent.cut { &Claim::None } else { &self.claim }
    }

    /// Whether an order breaks the iteration off: any cancel, and a pause that finds the agent at work. Where
    /// its process has ended by itself, a pause only keeps the next one from beginning.
    pub fn breaks_off(&self) -> bool {
        match self.order {
            Some(ControlRequest::Cancel { .. }) => true,
            Some(ControlRequest::Pause) => {
                matches!(
                    self.agent.process,
                    None | Some(ProcessEnd::BrokenOff(_) | ProcessEnd::Skipped(_))
                )
            }
            None => false,
        }
    }

    /// A transient or fatal API error, or a pending background task without a claim, ends no iteration.
    pub fn ran_an_iteration(&self) -> bool {
        let failed_to_run =
            matches!(self.agent.error, Some(ApiError::Transient { .. } | ApiError::Fatal { .. }));
        !failed_to_run && self.waits_for().is_none()
    }

    /// The background work a boundary waits for. A near miss is no claim: "I will say it when the build is
    /// done" waits too.
    pub fn waits_for(&self) -> Option<&str> {
        let work = self.agent.background.as_deref()?;
        matches!(self.heard(), Claim::None | Claim::NearMiss(_)).then_some(work)
    }

    /// Which looks are worth their cost, before any check has run.
    pub fn looks(&self, contract: &Contract) -> Looks {
        let may_time_out = self.agent.process.is_some() && contract.bounds_an_iteration();
        let tree = contract.limits.stall > 0 || may_time_out || !self.agent.denied.is_empty();
        let is_one = !self.breaks_off() && self.ran_an_iteration();
        match self.agent.process {
            Some(ProcessEnd::BrokenOff(_)) => Looks::default(),
            Some(ProcessEnd::Skipped(_)) if is_one => Looks { tree, ..Looks::default() },
            _ if is_one => Looks { tree, protected: !contract.protect.is_empty(), checks: true },
            _ => Looks::default(),
        }
    }
}

/// What is worth looking at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looks {
    /// The state of the working tree.
    pub tree: bool,
    /// That of the protected paths.
    pub protected: bool,
    /// What the checks say; which of them, `wants` says.
    pub checks: bool,
}

/// All that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub seen: Seen,
    /// When the looking was over: an iteration's time includes its checks.
    pub now: Moment,
    /// In the order they ran; empty when none was worth running.
    pub checks: Vec<CheckResult>,
    /// Hash of the working tree as the agent left it; `None` when nobody could tell, or when not looked at.
    pub tree: Option<String>,
    /// The same after the checks, whose own files are no progress of the agent's.
    pub tree_checked: Option<String>,
    /// What stands at protected paths; `None` when not looked at.
    pub protected: Option<Result<Marks, Unseen>>,
    /// Used since the last boundary; `None` where nothing tells.
    pub usage: Option<Usage>,
}

impl Facts {
    /// The verdict of a command at this boundary; `None` when it was not run.
    pub fn verdict(&self, run: &str) -> Option<Verdict> {
        self.checks.iter().find(|result| result.run == run).map(|result| result.verdict)
    }

    /// Whether every check of a role passed at this boundary; a contract may have none.
    pub fn all_pass(&self, contract: &Contract, role: Role) -> bool {
        contract.of_role(role).all(|check| self.verdict(&check.run) == Some(Verdict::Passed))
    }
}
