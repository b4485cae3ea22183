//! What a coordinator does next, as a pure function of the record and of what happened. Nothing
//! here knows a file, a clock, git or a process.

use chrono::{DateTime, Utc};

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
    /// The folder as it is now, at the start or later. Tasks that are missing lost their file.
    Described(Vec<DescribedTask>),
    /// A report that is newer than the last one.
    Reported(TaskId, AttemptReport),
    /// The process or job of the running attempt is over, and no report says how it ended.
    Gone { task: TaskId, number: u32, why: String },
    /// The executor did not take a job.
    NotStarted { task: TaskId, why: String },
    Landed(TaskId, Landed),
    Refused(TaskId, Refusal),
    /// A landing that could not be tried: git, the remote. With `needs_person` it ends the task.
    LandingFailed { task: TaskId, why: String, needs_person: bool },
    /// A person's or an agent's request; `None` means all tasks.
    Requested(Option<TaskId>, FleetRequest),
    /// git or the remote is out of order: nothing starts until it is back.
    Trouble(String),
    Restored,
    /// The number of SIGINT or SIGTERM so far; `is_hangup`: the terminal was closed.
    Signal { times: u32, is_hangup: bool },
    Tick,
}

/// What can be asked of a fleet while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetRequest {
    Task(TaskRequest),
    /// Lifts a pause; tries again what ended without being completed.
    Resume { accepts_test_changes: bool },
    /// A message; `by_agent` marks it as unchecked.
    Tell { words: String, by_agent: bool },
}

/// Something that the coordinator has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Writes the record; before every effect that follows it.
    Save,
    /// Hands an attempt to the executor. `continues`: with the loop and the clone of this number.
    Start { task: TaskId, number: u32, continues: bool },
    /// Passes a request on to the loop of a running attempt.
    Pass { task: TaskId, request: FleetRequest },
    /// TERM, or the executor's cancel.
    End { task: TaskId },
    /// Brings the attempt's commits to this repository and, with `pushes`, to the remote.
    Fetch { task: TaskId },
    /// Lands the branch of this task; one at a time.
    Land { task: TaskId },
    OpenRequest { task: TaskId },
    /// Removes the clone, and the branch unless branches are kept.
    Remove { task: TaskId },
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
    /// Why nothing starts, while git or the remote is out of order.
    pub trouble: Option<String>,
    /// How many signals have come.
    pub signals: u32,
    /// The task that is being landed.
    pub landing: Option<TaskId>,
    /// Slots of this machine, or the most jobs at once.
    pub slots: usize,
}

/// Takes in what happened at `now`, and says what follows.
pub fn step(
    record: &mut FleetRecord,
    now_known: &mut Coordination,
    event: FleetEvent,
    now: DateTime<Utc>,
) -> Vec<Effect> {
    let _ = (record, now_known, event, now);
    Vec::new()
}
