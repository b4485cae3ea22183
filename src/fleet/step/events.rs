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
    /// The folder as it is now. The first one is the start; findings about an earlier coordinator's
    /// attempts come before it. At the start, missing tasks are given up; later they wait, because
    /// a checkout of another branch hides the whole folder.
    Described(Vec<DescribedTask>),
    /// A new report of an attempt.
    Reported(TaskId, AttemptReport),
    /// The executor accepted an attempt as `job`; may also be found out later.
    Started { task: TaskId, number: u32, job: String },
    /// This commit of the task's branch was fetched, and pushed if the fleet pushes.
    Fetched { task: TaskId, commit: String },
    /// The task's commits could not be fetched or pushed.
    FetchFailed { task: TaskId, why: String, concerns: FetchConcern },
    /// The process or job of the running attempt has ended, and no report says how.
    Gone { task: TaskId, number: u32, why: String },
    /// The executor refused an attempt.
    NotStarted { task: TaskId, why: String },
    /// The executor was asked to cancel a job; `why` is the reason if that failed.
    EndAsked { task: TaskId, why: Option<String> },
    /// The task's work has landed.
    Landed(TaskId, Landed),
    /// The task's branch may not land.
    Refused(TaskId, Refusal),
    /// A landing failed because of git or the remote. With `needs_person` it ends the task.
    LandingFailed { task: TaskId, why: String, needs_person: bool },
    /// A person's or an agent's request; `None` means all tasks.
    Requested(Option<TaskId>, FleetRequest),
    /// This part, such as the remote, does not work, so nothing starts; with `None` it works again.
    Trouble { of: &'static str, why: Option<String> },
    /// The number of SIGINT or SIGTERM signals so far; `is_hangup` means that the terminal was
    /// closed.
    Signal { times: u32, is_hangup: bool },
    /// Time passed: decides what starts, lands and is fetched.
    Tick,
}

/// What a failed fetch concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchConcern {
    /// The remote or the repository, and therefore every task.
    All,
    /// The task's clone or branch, which is broken.
    Task,
    /// The task's branch, which the remote's rules refuse.
    Rules,
}

/// What can be asked of a fleet while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetRequest {
    /// A pause or a cancel.
    Task(TaskRequest),
    /// Lifts a pause, or retries a task that ended without being completed.
    Resume { accepts_test_changes: bool },
    /// A message; `by_agent` marks it as unchecked.
    Tell { words: String, by_agent: bool },
}

/// An effect that the coordinator carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Writes the record, before any later effect.
    Save,
    /// Submits an attempt to the executor; if it `continues`, with this number's existing loop and
    /// clone.
    Start { task: TaskId, number: u32, continues: bool },
    /// Passes a request on to the loop of a running attempt.
    Pass { task: TaskId, request: FleetRequest },
    /// Ends an attempt by TERM or the executor's cancel, answered by `EndAsked`; gives up a landing
    /// in progress.
    End { task: TaskId },
    /// Fetches the attempt's commits to this repository and, if the fleet pushes, pushes them to
    /// the remote.
    Fetch { task: TaskId },
    /// Lands the task's branch; one task at a time.
    Land { task: TaskId },
    /// Opens a pull request for the task's branch.
    OpenPull { task: TaskId },
    /// Removes the task's clones, and its branches unless they are kept.
    Remove { task: TaskId },
    /// Prints a line for people.
    Say(FleetLine),
    /// Ends the coordinator, whose work is done.
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
