//! The loop's record: the fixed contract and place, and the state that each boundary replaces whole.
//! It is the only thing a decision reads. `check` is called before every write and after every read,
//! so a record that breaks its own rules is never believed.

pub mod agent;
pub mod contract;
pub mod environment;
pub mod git_memory;
pub mod moment;
pub mod outcome;
pub mod owner;
pub mod run;
pub mod upgrade;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use self::contract::{Contract, Place};
use self::environment::Environment;
use self::git_memory::GitMemory;
use self::moment::Moment;
use self::outcome::{Ending, Outcome};
use self::owner::{Driver, Owner, SessionMemory};
use super::boundary::protect::{Marks, Protected};
use super::evidence::Evidence;
use super::evidence::check::{CheckResult, Verdict};
use super::git::GitBaseline;
use super::text::word;
use super::usage::Usage;
use super::usage::times::{self, Earlier, Spread};

/// The format this crew writes. It reads every earlier one, too: [`super::upgrade`].
pub const VERSION: u32 = 2;

/// A loop's name: eight characters of `a-z0-9`, the first a letter. Safe as a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LoopId(String);

impl LoopId {
    /// Spells a random number as an id.
    pub fn from_random(mut bits: u64) -> Self {
        const LETTERS: &[u8] = b"abcdefghjkmnpqrstvwxyz";
        const ALL: &[u8] = b"abcdefghjkmnpqrstvwxyz23456789";
        let mut text = String::with_capacity(8);
        for place in 0..8 {
            let alphabet = if place == 0 { LETTERS } else { ALL };
            let size = alphabet.len() as u64;
            text.push(char::from(alphabet[usize::try_from(bits % size).unwrap_or(0)]));
            bits /= size;
        }
        Self(text)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LoopId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for LoopId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let well_formed = text.len() == 8
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if well_formed { Ok(Self(text.to_owned())) } else { Err(format!("{text:?} is no loop id")) }
    }
}

impl TryFrom<String> for LoopId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<LoopId> for String {
    fn from(id: LoopId) -> Self {
        id.0
    }
}

/// One task pursued to an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    pub version: u32,
    pub id: LoopId,
    /// The crew that first wrote it in this format: named to an older one.
    pub made_by: String,
    pub started_at: DateTime<Utc>,
    pub contract: Contract,
    pub place: Place,
    /// Awake milliseconds of the newest counted iterations, [`times::KEPT`] of them.
    pub elapsed_ms: Vec<u64>,
    /// What the times of those before come to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub earlier: Earlier,
    /// What steps of git are held to; `None` outside git, and until fresh processes first have the loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<GitBaseline>,
    /// What checks are held to in a session; `None` in fresh processes, and where an older crew began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// What protected paths are held to; `None` where none are, or nobody could tell when the loop began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<Protected>,
    pub state: State,
}

/// Where a live loop stands. A finished one has an ending instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Running,
    /// The model's service is not answering; the same iteration is tried again.
    Waiting,
    Paused,
    Finished,
}

impl Status {
    /// The word used in messages, files and JSON.
    pub fn label(self) -> &'static str {
        word(&self)
    }
}

/// The part of the record that every boundary replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Rises by one with every write.
    pub generation: u64,
    /// Boundaries recorded, counted iterations or not.
    pub boundaries: u64,
    pub status: Status,
    pub ending: Option<Ending>,
    pub owner: Owner,
    /// Iterations judged and counted.
    pub completed: u32,
    pub consecutive_failures: u32,
    /// Iterations in a row without progress.
    pub still: u32,
    /// Transient API errors in a row.
    pub transient_errors: u32,
    /// Crashes of the agent in a row.
    #[serde(default, skip_serializing_if = "is_default")]
    pub crashes: u32,
    /// Counted iterations for which no agent was started.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skips: u32,
    /// When a waiting loop tries again.
    pub due: Option<DateTime<Utc>>,
    /// What it waits for; means nothing while it does not wait.
    #[serde(default)]
    pub awaited: Option<String>,
    /// Awake milliseconds over all iterations.
    pub awake_ms: u64,
    /// When the running iteration began.
    pub began: Moment,
    pub last_iteration_at: Option<DateTime<Utc>>,
    /// Hash of the working tree at the last boundary.
    pub tree: Option<String>,
    /// Where an earlier crew kept what is now [`Loop::protected`]; never written.
    #[serde(default, skip_serializing, rename = "protected")]
    pub old_marks: Option<Marks>,
    /// What is known of each check, by command.
    pub checks: BTreeMap<String, CheckMemory>,
    /// Why the last end that was asked for was refused, where no agent can change that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incurable: Option<String>,
    pub evidence: Option<Evidence>,
    /// Since the start, as far as it could be counted.
    #[serde(default)]
    pub usage: Usage,
    /// What the user wants the agent to be told with the next prompt.
    #[serde(default)]
    pub words: Vec<String>,
    /// How many of them, the oldest, went with the prompt of the iteration that runs: told, unless that
    /// iteration comes again.
    #[serde(default)]
    pub told: usize,
    /// What steps of git came to so far.
    #[serde(default, skip_serializing_if = "GitMemory::is_empty")]
    pub git: GitMemory,
    pub session: SessionMemory,
}

impl State {
    /// The state of a loop whose first iteration begins now.
    pub fn begin(owner: Owner, now: Moment) -> Self {
        Self {
            generation: 0,
            boundaries: 0,
            status: Status::Running,
            ending: None,
            owner,
            completed: 0,
            consecutive_failures: 0,
            still: 0,
            transient_errors: 0,
            crashes: 0,
            skips: 0,
            due: None,
            awaited: None,
            awake_ms: 0,
            began: now,
            last_iteration_at: None,
            tree: None,
            old_marks: None,
            checks: BTreeMap::new(),
            incurable: None,
            evidence: None,
            usage: Usage::default(),
            words: Vec::new(),
            told: 0,
            git: GitMemory::default(),
            session: SessionMemory::default(),
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What a loop remembers of a check: how it ended last, an unknown end aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckMemory {
    pub last: Verdict,
    pub ever_failed: bool,
    /// The iterations that were done then; `None` in records of an older crew.
    #[serde(default)]
    pub after: Option<u32>,
    #[serde(default)]
    pub exit: Option<i32>,
    #[serde(default)]
    pub elapsed_ms: u64,
    /// The end of what it printed before the first iteration, for the first prompt; bounded as in the evidence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

impl CheckMemory {
    /// What is remembered of a result, in place of `before`.
    pub fn of(result: &CheckResult, after: u32, before: Option<&Self>) -> Self {
        let failed = result.verdict != Verdict::Passed;
        Self {
            last: result.verdict,
            ever_failed: failed || before.is_some_and(|before| before.ever_failed),
            after: Some(after),
            exit: result.exit,
            elapsed_ms: result.elapsed_ms,
            tail: String::new(),
        }
    }

    /// "failed (exit 1)": what happened, as far as it was kept.
    pub fn what_happened(&self) -> String {
        self.last.what_happened(self.exit, self.elapsed_ms)
    }
}

impl Loop {
    /// How a check ended at the last boundary, else when it last ran, which is then named; `None` where it
    /// never ran to its end.
    pub fn last_of(&self, run: &str) -> Option<String> {
        let seen = self.state.evidence.iter().flat_map(|evidence| &evidence.checks);
        if let Some(result) = seen.into_iter().find(|result| result.run == run) {
            return Some(result.what_happened());
        }
        let memory = self.state.checks.get(run)?;
        let happened = memory.what_happened();
        Some(match memory.after {
            Some(0) => format!("{happened} before iteration 1"),
            Some(after) => format!("{happened} after iteration {after}"),
            None => format!("{happened} when it last ran"),
        })
    }

    /// The iteration that runs now, 1-based; of a finished loop the last one counted, 0 if none was.
    pub fn iteration(&self) -> u32 {
        self.state.completed + u32::from(self.is_live())
    }

    /// Whether the loop can still go on by itself: running, waiting or paused.
    pub fn is_live(&self) -> bool {
        self.state.status != Status::Finished
    }

    /// Takes the time of one more counted iteration.
    pub fn took(&mut self, ms: u64) {
        self.elapsed_ms.push(ms);
        let more = self.elapsed_ms.len().saturating_sub(times::KEPT);
        self.elapsed_ms.drain(..more).for_each(|ms| self.earlier.add(ms));
    }

    /// What the times of all its iterations come to.
    pub fn spread(&self) -> Option<Spread> {
        times::spread(&self.earlier, &self.elapsed_ms)
    }

    /// Whether an iteration is judged by what it changed in the working tree: for the stall rule, and for one
    /// that runs into its timeout.
    pub fn watches_the_tree(&self) -> bool {
        let may_time_out =
            || self.driver() == Driver::Process && self.contract.bounds_an_iteration();
        self.contract.limits.stall > 0 || may_time_out()
    }

    /// Which driver has the loop.
    pub fn driver(&self) -> Driver {
        self.state.owner.driver
    }

    /// The procedure it runs; `None` for a task of its own.
    pub fn procedure(&self) -> Option<&str> {
        self.contract.run.as_ref()?.procedure.as_deref()
    }

    /// The branch it pushes: that of the start, unless a person went on with another; `None` where it was none.
    pub fn branch(&self) -> Option<&str> {
        let named = self.contract.run.as_ref().and_then(|run| run.git.branch.as_deref());
        named.or(self.place.branch.as_deref())
    }

    /// The outcome of a finished loop.
    pub fn outcome(&self) -> Option<Outcome> {
        self.state.ending.as_ref().map(|ending| ending.outcome)
    }

    /// `running`, `waiting`, `paused`, or the outcome: one word for people and for the view.
    pub fn standing(&self) -> &'static str {
        self.outcome().map_or(self.state.status.label(), Outcome::label)
    }

    /// "$1.84 · 123k tokens"; `None` while nothing is known to be used.
    pub fn spent(&self) -> Option<String> {
        self.state.usage.spoken(self.contract.limits.max_cost_micros > 0)
    }

    /// Finds what is wrong with this record.
    pub fn check(&self) -> Result<(), String> {
        let state = &self.state;
        let limits = &self.contract.limits;
        if !(1..=VERSION).contains(&self.version) {
            return Err(format!("format {} is not between 1 and {VERSION}", self.version));
        }
        if (state.status == Status::Finished) != state.ending.is_some() {
            return Err("a loop has an ending exactly when it is finished".to_owned());
        }
        if limits.max_iterations > 0 && state.completed > limits.max_iterations {
            return Err(format!("{} iterations of {}", state.completed, limits.max_iterations));
        }
        let times = self.earlier.count + self.elapsed_ms.len() as u64;
        if times != u64::from(state.completed) {
            return Err(format!("{times} times for {} iterations", state.completed));
        }
        if state.consecutive_failures > state.completed || state.still > state.completed {
            return Err("a counter is ahead of the iterations".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
