//! The loop's record: the fixed contract and place, and the state that each boundary replaces
//! whole. A decision reads only this and the boundary's facts. `check_rules` is called before every
//! write and after every read; a record that breaks its own rules is refused.

mod contract;
mod environment;
pub mod id;
mod memory;
mod outcome;
mod owner;
mod reason;
mod state;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use self::contract::*;
pub use self::environment::*;
pub use self::id::LoopId;
pub use self::memory::*;
pub use self::outcome::*;
pub use self::owner::*;
pub use self::reason::*;
pub use self::state::*;
use crate::evidence::Evidence;
pub use crate::evidence::Role;
use crate::failure::Failure;
use crate::git::GitBaseline;
use crate::protect::Protected;
use crate::test_changes::ACCEPT;
use crate::text::variant_name;
use crate::usage::{self, Earlier, Spread, Usage};

/// The format version of a record. A record of a newer crew is neither read nor written.
pub const VERSION: u32 = 2;
/// The maximum number of characters in one message to the agent.
pub const MESSAGE_CHARS: usize = 400;

/// A loop: one task, worked on until it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    pub version: u32,
    pub id: LoopId,
    /// The crew version that wrote it; an older crew that cannot read it names this version.
    pub made_by: String,
    pub started_at: DateTime<Utc>,
    pub contract: Contract,
    pub place: Place,
    /// Awake milliseconds of the newest counted iterations, [`usage::TIMES_KEPT`] of them.
    pub elapsed_ms: Vec<u64>,
    /// The totals of the iteration times before those.
    pub earlier: Earlier,
    /// The git configuration that git steps require; `None` outside git, and until fresh processes
    /// first drive the loop.
    pub trusted: Option<GitBaseline>,
    /// The environment that checks require in a session; `None` in fresh processes.
    pub environment: Option<Environment>,
    /// The state that protected paths must keep; `None` if none are protected.
    pub protected: Option<Protected>,
    /// The task of a fleet that it works on; `None` for a loop that a person started.
    pub fleet: Option<TaskOfFleet>,
    pub state: State,
}

impl Loop {
    /// A loop that begins now.
    pub fn begin_at(
        id: LoopId,
        contract: Contract,
        place: Place,
        owner: Owner,
        now: Moment,
    ) -> Self {
        Self {
            version: VERSION,
            id,
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: now.wall,
            contract,
            place,
            elapsed_ms: Vec::new(),
            earlier: Earlier::default(),
            trusted: None,
            environment: None,
            protected: None,
            fleet: None,
            state: State::begin_first(owner, now),
        }
    }

    /// The result of a check at the last boundary, or else of its last run, with the iteration of
    /// that run; `None` if it has never finished.
    pub fn last_of(&self, run: &str) -> Option<String> {
        let seen = self.state.seen().evidence().iter().flat_map(|evidence| &evidence.checks);
        if let Some(result) = seen.into_iter().find(|result| result.run == run) {
            return Some(result.what_happened());
        }
        let memory = self.state.seen().checks().get(run)?;
        let happened = memory.what_happened();
        Some(match memory.after() {
            0 if self.state.counts().completed() > 0 => {
                format!("{happened} before iteration 1, not run since")
            }
            0 => format!("{happened} before iteration 1"),
            after => format!("{happened} after iteration {after}"),
        })
    }

    /// The running iteration, 1-based; for a finished loop the last one counted, 0 if none was.
    pub fn iteration(&self) -> u32 {
        self.state.counts().completed() + u32::from(self.is_live())
    }

    /// Whether the loop can still continue: running, waiting or paused.
    pub fn is_live(&self) -> bool {
        self.state.status() != Status::Finished
    }

    /// Adds the time of one more counted iteration.
    pub fn add_time(&mut self, ms: u64) {
        self.elapsed_ms.push(ms);
        let more = self.elapsed_ms.len().saturating_sub(usage::TIMES_KEPT);
        self.elapsed_ms.drain(..more).for_each(|ms| self.earlier.add_time(ms));
    }

    /// The spread of all its iteration times.
    pub fn time_spread(&self) -> Option<Spread> {
        usage::spread_times(&self.earlier, &self.elapsed_ms)
    }

    /// When it last changed: when it ended, or otherwise its last iteration, or its start if no
    /// iteration has ended.
    pub fn last_at(&self) -> DateTime<Utc> {
        self.state
            .end()
            .ended_at()
            .or(self.state.time().last_iteration_at())
            .unwrap_or(self.started_at)
    }

    /// Whether the working tree is examined: for the stall rule, for an iteration that times out,
    /// for test changes, and for what a commit leaves out.
    pub fn watches_the_tree(&self) -> bool {
        let contract = &self.contract;
        contract.limits.stall > 0
            || !contract.checks.is_empty()
            || !contract.protect.is_empty()
            || (self.driver() == Driver::Process && contract.bounds_an_iteration())
            || contract.run.as_ref().is_some_and(|run| run.git.commit)
    }

    /// The driver that runs the loop.
    pub fn driver(&self) -> Driver {
        self.state.owner().driver
    }

    /// The procedure it runs; `None` if it runs a task.
    pub fn procedure(&self) -> Option<&str> {
        self.contract.run.as_ref()?.procedure.as_deref()
    }

    /// The branch it pushes: the one it started on, unless a person resumed it on another; `None`
    /// if there was none.
    pub fn branch(&self) -> Option<&str> {
        let named = self.contract.run.as_ref().and_then(|run| run.git.branch.as_deref());
        named.or(self.place.branch.as_deref())
    }

    /// The outcome of a finished loop.
    pub fn outcome(&self) -> Option<Outcome> {
        self.state.end().ending().as_ref().map(|ending| ending.outcome)
    }

    /// `running`, `waiting`, `paused`, or the outcome: one word for people and for the view.
    pub fn status_word(&self) -> &'static str {
        self.outcome().map_or(variant_name(&self.state.status()), Outcome::label)
    }

    /// "$1.84 · 123k tokens"; `None` while no use is known.
    pub fn usage_text(&self) -> Option<String> {
        self.state.work().usage().usage_text(self.contract.limits.max_cost_micros > 0)
    }

    /// What it used, a lower bound if its last iteration did not report its usage.
    pub fn use_so_far(&self) -> Usage {
        let mut usage = self.state.work().usage().clone();
        usage.lost |= self.state.seen().evidence().as_ref().is_some_and(Evidence::hides_its_use);
        usage
    }

    /// How full the last iteration's context was, if that passed the run's redline.
    pub fn past_redline(&self) -> Option<u8> {
        let redline = self.contract.run.as_ref()?.redline;
        let percent = self.state.seen().evidence().as_ref()?.context_percent?;
        (redline > 0 && percent >= redline).then_some(percent)
    }

    /// The command that resumes it within its fleet; `None` if it belongs to none.
    pub fn fleet_resume(&self) -> Option<String> {
        self.fleet.as_ref().map(TaskOfFleet::resume_command)
    }

    /// Why it cannot be resumed on its own; `None` if it does not belong to a fleet.
    pub fn refusal_of_its_fleet(&self) -> Option<Failure> {
        let task = self.fleet.as_ref()?;
        let (resume, tell) = (task.resume_command(), task.tell_command());
        Some(Failure::new(
            format!("loop {} is that of {task}", self.id),
            format!("{resume} resumes it; {tell} \"...\" answers it"),
        ))
    }

    /// The command by which a person accepts its tests and check settings as they are now.
    pub fn accept_test_changes(&self) -> String {
        self.fleet
            .as_ref()
            .map_or_else(|| format!("crew resume {ACCEPT}"), TaskOfFleet::accept_test_changes)
    }

    /// Counts an iteration.
    pub fn end_iteration(&mut self, end: IterationEnd) {
        self.add_time(end.spent_ms);
        self.state.end_iteration(end);
    }

    /// Checks this record's own rules. The error says which one is broken.
    pub fn check_rules(&self) -> Result<(), String> {
        let state = &self.state;
        let limits = &self.contract.limits;
        if !(1..=VERSION).contains(&self.version) {
            return Err(format!("format {} is not between 1 and {VERSION}", self.version));
        }
        if (state.status() == Status::Finished) != state.end().ending().is_some() {
            return Err("a loop has an ending exactly when it is finished".to_owned());
        }
        if limits.max_iterations > 0 && state.counts().completed() > limits.max_iterations {
            return Err(format!(
                "{} iterations of {}",
                state.counts().completed(),
                limits.max_iterations
            ));
        }
        let times = self.earlier.count + self.elapsed_ms.len() as u64;
        if times != u64::from(state.counts().completed()) {
            return Err(format!("{times} times for {} iterations", state.counts().completed()));
        }
        if state.counts().consecutive_failures().max(state.counts().iterations_without_progress())
            > state.counts().completed()
        {
            return Err("a counter is ahead of the iterations".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod history_tests;
#[cfg(test)]
pub mod names_tests;
#[cfg(test)]
mod tests;
