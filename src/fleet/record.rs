//! The record of a fleet: its terms and how far each task is. Only its coordinator writes it, by
//! the methods here, which keep its invariants. It is `fleet.json` on this machine and, with a
//! remote, also the message of one commit that a ref there points to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::plan::WaitsFor;
use crate::engine::fleet::{Carried, LandingMode, Refusal, Remote, TaskId};
use crate::engine::git::GitBaseline;
use crate::engine::record::{Check, LoopId, Outcome, Proof};

/// The format that this crew writes, and the newest that it reads.
pub const SCHEMA: u32 = 1;

/// A fleet: what holds for all of its tasks, and each of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetRecord {
    pub schema: u32,
    /// The crew version that wrote it.
    pub made_by: String,
    pub terms: FleetSetup,
    /// Tells it from another fleet of its name: a random number of its first start.
    pub id: String,
    pub started_at: DateTime<Utc>,
    /// The coordinator that has it, or had it last.
    pub holder: Holder,
    /// Grows with each renewal at the remote; a record that stands still has no coordinator.
    pub beat: u64,
    /// What a person asked for all tasks; the next start lifts it.
    pub request: Option<TaskRequest>,
    pub tasks: BTreeMap<TaskId, TaskRecord>,
}

/// What a start has read from the folder, the command line and the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetSetup {
    pub name: String,
    /// The working tree in which the fleet was started.
    pub repository: PathBuf,
    /// The folder of the tasks, below the root of the repository: no task may change it.
    pub folder: String,
    /// The branch that tasks start from and land on.
    pub base: String,
    /// The most iterations at once; 0 leaves it to the machine, or to the executor.
    pub slots: u32,
    /// Millionths of a US dollar for all tasks together; 0 is no limit.
    pub max_cost_micros: u64,
    /// Prepares each new clone, and each landing; with its time limit in seconds.
    pub setup: Option<String>,
    pub setup_timeout_s: u64,
    /// The text of `.worktreeinclude` at the start.
    pub include: Option<String>,
    /// `local`, `slurm`, `slurm:HOST`, or the name of an `[executor.NAME]`.
    pub executor: String,
    /// `None`: nothing leaves this machine.
    pub remote: Option<Remote>,
    pub landing: LandingMode,
    pub land_checks: Vec<Check>,
    /// Globs of ignored files that the clean checkout of a landing keeps.
    pub land_keep: Vec<String>,
    pub keeps_branches: bool,
    /// The git configuration that a person agreed to.
    pub trusted: Option<GitBaseline>,
}

/// Who coordinates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub host: String,
    /// A random text written once into `$CREW_HOME`: two containers of one image differ in it.
    pub home: String,
    pub pid: i32,
    pub since: DateTime<Utc>,
}

/// How far a task is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Fingerprint of the text that it works by: prompt, options and setup.
    pub revision: String,
    /// The number of its newest attempt, counted from 1; 0 before the first.
    pub attempt: u32,
    pub state: TaskState,
    /// The loop of its newest attempt, on whichever machine.
    pub loop_id: Option<LoopId>,
    /// What its iterations used, summed over all attempts, and what the next one resumes from.
    pub carried: Carried,
    /// Millionths of a US dollar that are set aside while it runs.
    pub reserved_micros: u64,
    /// The last commit that was fetched from one of its attempts: a new attempt starts from it, and
    /// nothing else lands.
    pub commit: Option<String>,
    /// The newest commit that its attempt reported. Where it differs from `commit`, that has to be
    /// fetched before the task lands or gets a new number.
    pub tip: Option<String>,
    /// The commit of the base that this contains, as far as is known.
    pub stands_on: Option<String>,
    /// Why its landing sent it back; a task is sent back once.
    pub sent_back: Option<Refusal>,
    /// Files that were in conflict then. Each must be resolved before it lands.
    pub conflicts: Vec<String>,
    /// Its next start gets a new number whatever is there: a landing sent it back.
    pub begins_anew: bool,
    /// How often in a row its process was gone without a finished iteration.
    pub gone: u32,
    /// What a person asked of it: a pause, or a cancel that it has not obeyed yet.
    pub request: Option<TaskRequest>,
    /// Messages for its next iteration, as far as no loop has them.
    pub messages: Vec<String>,
    /// How many of them are in the spec of the running attempt.
    pub given: usize,
    /// Its next start takes the tests as its agent left them for the original ones.
    pub accepts_test_changes: bool,
    /// What it waits for, while it waits.
    pub waits: Option<WaitsFor>,
    /// The limit of its iterations, for rows; 0 without one.
    pub max_iterations: u32,
    /// When its state changed last.
    pub at: DateTime<Utc>,
}

/// Where a task is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "is")]
pub enum TaskState {
    #[default]
    Waiting,
    /// An attempt has been handed to the executor, which calls it `job`; empty until that is known.
    Running {
        job: String,
        since: DateTime<Utc>,
    },
    /// Its loop is completed with this proof, and its branch is landed or waits for its turn.
    Landing {
        proof: Option<Proof>,
        why: String,
    },
    Ended(TaskEnding),
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnding {
    pub outcome: Outcome,
    pub proof: Option<Proof>,
    pub why: String,
    pub reason: EndReason,
    pub landed: Option<Landed>,
}

/// What kind of reason it is, for rows, hints and exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The loop's own end.
    Loop,
    /// The agent said BLOCKED.
    Asked,
    /// Refused claims because tests were changed; a person can accept them.
    TestChanges,
    Conflict,
    Red,
    /// The landing was refused for another reason.
    Landing,
    /// git, the remote or the executor.
    Machine,
    /// A person's cancel, or its file is gone.
    Person,
}

/// Where completed work went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Landed {
    /// On the base as this commit; `None` where the base had all of it.
    Main(Option<String>),
    /// The address of a pull request.
    Request(String),
}

/// What a person asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "what")]
pub enum TaskRequest {
    /// No iteration begins until it is resumed; `now` also ends the one that runs.
    Pause { now: bool },
    /// It ends.
    Cancel { now: bool, by_agent: bool, reason: Option<String> },
}
