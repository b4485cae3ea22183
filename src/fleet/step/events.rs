//! The events of a fleet, the requests to it, and the effects that its coordinator carries out.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::fleet::record::{Landed, TaskRequest};
use crate::fleet::spec::{AttemptReport, DescribedTask};
use engine::fleet::{Refusal, TaskId};

/// Something that happened.
#[expect(clippy::large_enum_variant, reason = "only a few live at a time")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetEvent {
    /// The folder as it is now. The first one is the start: what was found out about attempts that
    /// an earlier coordinator started comes before it. At the start, tasks that are missing are
    /// given up; later they wait, as a checkout of another branch hides the whole folder.
    Described(Vec<DescribedTask>),
    /// A report that is newer than the last one.
    Reported(TaskId, AttemptReport),
    /// The executor took an attempt, and calls it `job`; also found out after a start.
    Started { task: TaskId, number: u32, job: String },
    /// This commit of the task's branch was brought to the repository, and pushed where it should.
    Fetched { task: TaskId, commit: String },
    /// Its commits cannot be brought.
    FetchFailed { task: TaskId, why: String, concerns: FetchConcern },
    /// The process or job of the running attempt is over, and no report says how it ended.
    Gone { task: TaskId, number: u32, why: String },
    /// The executor refused an attempt.
    NotStarted { task: TaskId, why: String },
    /// The executor was asked for the end of a job; `why`: it could not be.
    EndAsked { task: TaskId, why: Option<String> },
    /// Its work is where it belongs.
    Landed(TaskId, Landed),
    /// Its branch may not land.
    Refused(TaskId, Refusal),
    /// A landing that could not be tried: git, the remote. With `needs_person` it ends the task.
    LandingFailed { task: TaskId, why: String, needs_person: bool },
    /// A person's or an agent's request; `None` means all tasks.
    Requested(Option<TaskId>, FleetRequest),
    /// This part, such as the remote, does not work and nothing starts; `None`: it works again.
    Trouble { of: &'static str, why: Option<String> },
    /// The number of SIGINT or SIGTERM so far; `is_hangup`: the terminal was closed.
    Signal { times: u32, is_hangup: bool },
    /// Time passed: decides what starts, lands and is fetched.
    Tick,
}

/// What a failed fetch concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchConcern {
    /// The remote or the repository, and so every task.
    All,
    /// The clone or the branch of the task, which is broken.
    Task,
    /// The branch of the task, which the rules of the remote refuse.
    Rules,
}

/// What can be asked of a fleet while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetRequest {
    /// A pause or a cancel.
    Task(TaskRequest),
    /// Lifts a pause; tries again what ended without being completed.
    Resume { accepts_test_changes: bool },
    /// A message; `by_agent` marks it as unchecked.
    Tell { words: String, by_agent: bool },
}

/// An effect that the coordinator carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Writes the record; before every effect that follows it.
    Save,
    /// Hands an attempt to the executor. `continues`: with the loop and the clone of this number.
    Start { task: TaskId, number: u32, continues: bool },
    /// Passes a request on to the loop of a running attempt.
    Pass { task: TaskId, request: FleetRequest },
    /// TERM, or the executor's cancel, answered by `EndAsked`; a landing that runs is given up.
    End { task: TaskId },
    /// Brings the attempt's commits to this repository and, where the fleet pushes, to the remote.
    Fetch { task: TaskId },
    /// Lands the branch of this task; one at a time.
    Land { task: TaskId },
    /// Opens a pull request for its branch.
    OpenPull { task: TaskId },
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
