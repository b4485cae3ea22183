//! The ports of a run: what it needs from the world, as traits, and the changes that it makes to
//! its record. A test drives it with twins of them in memory.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Error, Result};
use chrono::{DateTime, FixedOffset, Utc};

use crate::drive::boundary::{Boundary, DriverNotes, Open};
use crate::drive::windows::LoopTurn;
use engine::boundary::facts::{AgentFacts, AgentOutcome, ControlRequest, Facts, ProcessEnd};
use engine::boundary::window::{RateWindow, was_answered};
use engine::claim::Claim;
use engine::journal::JournalNote;
use engine::record::{
    AccountId, Ending, FallbackAgent, Loop, LoopId, LoopMoment, Moment, Pending, Status,
};
use engine::usage::Usage;
use engine::view::Page;
use engine::view::events::RunEvent;
use engine::words::programs::ReactionEnd;
use world::process::Stop;
use world::store::StoreError;

/// The time, and a sleep that a key can cut short.
pub trait Clock {
    fn now(&self) -> Moment;
    fn local_time(&self) -> DateTime<FixedOffset>;
    fn sleep(&self, step: Duration);
    /// When a wait after a crash ends, given when it is due.
    fn after_a_crash(&self, due: DateTime<Utc>) -> DateTime<Utc>;
    /// Whether Enter was pressed since the last call.
    fn enter_was_pressed(&self) -> bool;
}

/// The loop's record and its boundaries, requests to it, the windows of its accounts, and what
/// others read of it.
pub trait LoopStore {
    fn load(&self, id: &LoopId) -> Result<Loop, StoreError>;
    /// Changes the record as it is now, unless another owner has taken it.
    fn write(&self, id: &LoopId, change: &RecordChange<'_>) -> Result<()>;
    /// Records what is only in `memory` since the record was `known`, and does the work that
    /// follows an end.
    fn recover(&self, known: &Loop, memory: &Loop) -> Result<Loop>;
    fn read_request(&self, id: &LoopId) -> Option<ControlRequest>;
    /// Whether a request interrupts the iteration.
    fn breaks_off(&self, id: &LoopId) -> bool;
    /// Opens the boundary of an iteration; `behind` is the record as last known on disk, if memory
    /// is ahead of it. `None` when another process has ended the loop.
    fn open_boundary(&self, behind: Option<&Loop>, record: &Loop) -> Result<Option<Open>>;
    /// A boundary that is kept in memory only.
    fn open_in_memory(&self, record: &Loop) -> Open;
    /// Judges, decides and records. `None` when the iteration is no longer running.
    fn judge(&self, open: Open, facts: Facts, notes: DriverNotes) -> Option<JudgedBoundary>;
    fn read_window(&self, account: &AccountId) -> Option<RateWindow>;
    /// The turn for which the loop must wait after a limit of the account.
    fn take_turn(&self, account: &AccountId, by: &LoopId) -> Option<LoopTurn>;
    /// Whether a window that the loop waits for was cleared or closed again.
    fn window_has_moved(&self, record: &Loop) -> bool;
    fn show_step(&self, record: &Loop, event: &RunEvent<'_>);
    fn show_record(&self, record: &Loop);
    fn add_note(&self, id: &LoopId, what: &str);
    /// Writes the page for the next process.
    fn hand_on(&self, record: &Loop, kind: &str) -> Option<PathBuf>;
    fn read_page(&self, record: &Loop) -> Page;
    /// Does the once-only work after an end.
    fn wind_up(&self, record: &Loop);
    /// Counts the usage of an iteration during which another process ended the loop.
    fn count_late(&self, id: &LoopId, usage: &Usage) -> Result<()>;
    /// Marks the reaction to the end as done.
    fn end_reaction(&self, id: &LoopId);
}

/// A boundary, and why its record is kept in memory only.
pub type JudgedBoundary = (Boundary, Option<Error>);
/// Receives the events of a run.
pub type Tell<'a> = &'a dyn Fn(&RunEvent<'_>);

/// The checks of a boundary, and the user's commands around iterations.
pub trait Checks {
    /// Reads requests and the working tree, before any check runs.
    fn look(&self, open: &Open, seen: AgentFacts, usage: Option<Usage>) -> Facts;
    /// Runs the checks that are wanted; `None` when `stop` ended one.
    fn run(&self, open: &Open, facts: Facts, stop: Stop<'_>, tell: Tell<'_>) -> Option<Facts>;
    /// Runs the user's commands for a moment.
    fn react(&self, of: &Loop, on: LoopMoment, tell: Tell<'_>, stop: Stop<'_>) -> Vec<ReactionEnd>;
}

/// The result of an attempt.
#[derive(Debug)]
pub struct IterationRun {
    pub seen: AgentFacts,
    /// The usage; `None` where nothing reports it.
    pub usage: Option<Usage>,
}

impl IterationRun {
    /// Whether the agent itself gave no reason to count the iteration as a failure.
    pub fn ended_well(&self) -> bool {
        let AgentFacts { agent, claim, .. } = &self.seen;
        was_answered(agent) && agent.process.is_some() && !matches!(claim, Claim::Failure { .. })
    }

    /// An iteration in which no agent was at work.
    pub fn from_end(process: ProcessEnd) -> Self {
        let agent = AgentOutcome { process: Some(process), ..AgentOutcome::default() };
        Self { seen: AgentFacts { agent, ..AgentFacts::default() }, usage: Some(Usage::default()) }
    }
}

/// The gate's answer before an iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    Granted,
    /// The iteration must wait; with what the run waits for.
    Later(String),
    /// The loop pauses.
    Paused,
    /// The loop ends here.
    Ends(Ending),
}

/// The gate that admits each iteration of a run.
pub trait IterationGate {
    /// Whether an iteration may begin. Called again until the answer is something other than
    /// `Later`.
    fn admit(&mut self, record: &Loop) -> Admission;
    /// The commit of the main branch that the loop's branch was on, before it is rebased again.
    fn stood_on(&self) -> Option<String>;
    /// Called when the loop waits until it is due, and needs no slot until then.
    fn wait_began(&mut self, record: &Loop);
    /// Called when an iteration has ended and its work is kept. Returns the end of a loop that may
    /// not continue.
    fn iteration_ended(&mut self, record: &Loop) -> Option<Ending>;
    /// Notes for the user since the last call.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// A change of the record between two boundaries.
pub enum RecordChange<'a> {
    /// Begins an iteration after a rest, whose time counts as the loop's and not the iteration's.
    Begin(String),
    Pause,
    End(Ending),
    /// Makes the loop wait for its turn after a limit that another loop reached.
    HoldBack(LoopTurn),
    /// Hands the work to another agent from here on.
    HandTo {
        next: Option<FallbackAgent>,
        what: String,
    },
    /// Removes a fallback from the loop.
    Lose {
        agent: String,
        what: String,
    },
    /// Makes any other change, with its line in the journal.
    Edit(JournalNote, &'a dyn Fn(&mut Loop)),
}

impl RecordChange<'_> {
    /// Whether this change is possible: only an edit changes a loop that has ended.
    pub fn suits(&self, record: &Loop) -> bool {
        record.is_live() || matches!(self, Self::Edit(..))
    }

    /// The line in the journal for the change.
    pub fn note(&self) -> JournalNote {
        match self {
            Self::Edit(note, _) => note.clone(),
            Self::Pause => "paused by the user".into(),
            Self::End(ending) => ending.reason.to_string().into(),
            Self::HoldBack(turn) => format!("waits for its turn: {}", turn.why).into(),
            Self::Begin(what) | Self::HandTo { what, .. } | Self::Lose { what, .. } => {
                what.as_str().into()
            }
        }
    }

    /// Applies the change to the record of a run that this process drives.
    pub fn apply(&self, now: Moment, record: &mut Loop) {
        let state = &mut record.state;
        let spent_ms = now.awake_ms.saturating_sub(state.time().began().awake_ms);
        match self {
            Self::Begin(_) => state.begin_iteration(now),
            Self::Pause => state.pause(now, spent_ms),
            Self::End(ending) => {
                let is_at_work = state.status() == Status::Running;
                state.finish(ending.clone(), if is_at_work { spent_ms } else { 0 });
                record.state.git_mut().pending = Pending::after_boundary(record, false);
            }
            Self::HoldBack(turn) => turn.hold_back(record),
            Self::HandTo { next, .. } => {
                state.hand_to_agent(next.clone());
                if state.status() == Status::Waiting {
                    state.begin_iteration(now);
                }
            }
            Self::Lose { agent, .. } => state.lose_agent(agent.clone()),
            Self::Edit(_, change) => change(record),
        }
    }
}
