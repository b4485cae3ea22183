//! What a coordinator does next, as a pure function of the record and of what happened. Nothing
//! here knows a file, a clock, git or a process.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::record::{FleetRecord, Landed, TaskRequest};
use super::spec::AttemptReport;
use crate::engine::fleet::{FleetTask, Refusal, TaskId};
use crate::engine::record::Contract;

/// A task as its file is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedTask {
    pub task: FleetTask,
    pub contract: Contract,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetEvent {
    /// The folder as it is now. The first one is the start: what was found out about attempts that
    /// an earlier coordinator started comes before it. At the start, tasks that are missing are
    /// given up; later they wait, as a checkout of another branch hides the whole folder.
    Described(Vec<DescribedTask>),
    /// A report that is newer than the last one.
    Reported(TaskId, AttemptReport),
    /// The executor took an attempt, and calls it `job`; also found out after a start.
    Started {
        task: TaskId,
        number: u32,
        job: String,
    },
    /// This commit of the task's branch was brought to the repository, and pushed where it should.
    Fetched {
        task: TaskId,
        commit: String,
    },
    /// The process or job of the running attempt is over, and no report says how it ended.
    Gone {
        task: TaskId,
        number: u32,
        why: String,
    },
    /// The executor did not take an attempt.
    NotStarted {
        task: TaskId,
        why: String,
    },
    Landed(TaskId, Landed),
    Refused(TaskId, Refusal),
    /// A landing that could not be tried: git, the remote. With `needs_person` it ends the task.
    LandingFailed {
        task: TaskId,
        why: String,
        needs_person: bool,
    },
    /// A person's or an agent's request; `None` means all tasks.
    Requested(Option<TaskId>, FleetRequest),
    /// git or the remote is out of order: nothing starts until it is back.
    Trouble(String),
    Restored,
    /// The number of SIGINT or SIGTERM so far; `is_hangup`: the terminal was closed.
    Signal {
        times: u32,
        is_hangup: bool,
    },
    Tick,
}

/// What can be asked of a fleet while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetRequest {
    Task(TaskRequest),
    /// Lifts a pause; tries again what ended without being completed.
    Resume {
        accepts_test_changes: bool,
    },
    /// A message; `by_agent` marks it as unchecked.
    Tell {
        words: String,
        by_agent: bool,
    },
}

/// Something that the coordinator has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Writes the record; before every effect that follows it.
    Save,
    /// Hands an attempt to the executor. `continues`: with the loop and the clone of this number.
    Start {
        task: TaskId,
        number: u32,
        continues: bool,
    },
    /// Passes a request on to the loop of a running attempt.
    Pass {
        task: TaskId,
        request: FleetRequest,
    },
    /// TERM, or the executor's cancel; a landing that runs is given up.
    End {
        task: TaskId,
    },
    /// Brings the attempt's commits to this repository and, with `pushes`, to the remote.
    Fetch {
        task: TaskId,
    },
    /// Lands the branch of this task; one at a time.
    Land {
        task: TaskId,
    },
    OpenRequest {
        task: TaskId,
    },
    /// Removes the clone, and the branch unless branches are kept.
    Remove {
        task: TaskId,
    },
    /// A line for people.
    Say(FleetLine),
    /// The coordinator is done.
    Finish,
}

/// A line of the coordinator's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetLine {
    Started { task: TaskId, number: u32, continues: bool },
    Adopted { task: TaskId },
    Iteration { task: TaskId, iteration: u32, of: u32, what: String },
    Waits { task: TaskId, until: Option<DateTime<Utc>>, why: String },
    Resumes { task: TaskId },
    Paused { task: TaskId },
    Lands { task: TaskId },
    SentBack { task: TaskId, why: String },
    Gone { task: TaskId, why: String },
    Ended { task: TaskId },
    Note(String),
}

/// What the coordinator knows beside the record; none of it outlives the process.
#[derive(Debug, Default)]
pub struct Coordination {
    pub described: Vec<DescribedTask>,
    /// Whether the folder was read: nothing starts, lands or finishes before.
    pub has_begun: bool,
    /// The newest report of each running attempt.
    pub reports: BTreeMap<TaskId, AttemptReport>,
    /// The tasks whose newest attempt has its clone on this machine. The coordinator fills it at the
    /// start, and takes out what it finds gone.
    pub clones: BTreeSet<TaskId>,
    /// Why nothing starts, while git or the remote is out of order.
    pub trouble: Option<String>,
    /// How many signals have come.
    pub signals: u32,
    /// Whether the terminal was closed: jobs elsewhere are not waited for.
    pub is_hangup: bool,
    /// The task that is being landed.
    pub landing: Option<TaskId>,
    /// Slots of this machine, or the most jobs at once.
    pub slots: usize,
    /// Attempts in a row that the executor did not take.
    pub starts: Backoff,
    /// Landings in a row that could not be tried.
    pub landings: Backoff,
    /// Why the coordinator gave up, where it did: the executor takes nothing.
    pub gave_up: Option<String>,
}

/// How long something that failed is not tried again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backoff {
    /// How often in a row it failed.
    pub times: u32,
    pub until: Option<DateTime<Utc>>,
}

/// Takes in what happened at `now`, and says what follows.
pub fn step(
    record: &mut FleetRecord,
    coordination: &mut Coordination,
    event: FleetEvent,
    now: DateTime<Utc>,
) -> Vec<Effect> {
    let _ = (record, coordination, event, now);
    Vec::new()
}
