//! What the coordinator and an attempt say to each other. The coordinator writes a spec, and the
//! attempt needs nothing else to work: on this machine it is a file, for an executor it is part of
//! the script. The attempt answers with reports: a file, or a ref at the remote.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::record::{EndReason, TaskEnding};
use crate::engine::fleet::{Carried, Refusal, TaskId};
use crate::engine::git::GitBaseline;
use crate::engine::record::{Contract, LoopId, ProcessIdentity, TaskOfFleet};

/// One attempt at one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptSpec {
    pub task: TaskOfFleet,
    /// Counted from 1; part of the branch's name, which fences an attempt that was given up.
    pub number: u32,
    /// `fleet/<fleet>/<task>/<number>`.
    pub branch: String,
    pub base: String,
    /// The commit where it begins; `None`: the newest of the base.
    pub start: Option<String>,
    /// The commit of the base that the work so far contains, as far as is known. Without it nobody
    /// could see that the base was rewritten between two attempts.
    #[serde(default)]
    pub stands_on: Option<String>,
    /// The tasks whose work is merged into a first start, with their commits.
    pub before: Vec<(TaskId, String)>,
    pub source: Source,
    /// With the task's share of the money as its limit, and with the checks of a landing that sent
    /// it back.
    pub contract: Contract,
    pub carried: Carried,
    /// Why a landing sent it back: the base is merged into the branch before the loop begins.
    pub sent_back: Option<Refusal>,
    pub accepts_test_changes: bool,
    pub messages: Vec<String>,
    pub setup: Option<String>,
    pub setup_timeout_s: u64,
    pub include: Option<String>,
    /// Slots of this machine; 0 where the executor gives the place.
    pub slots: u32,
    pub priority: u8,
    pub trusted: Option<GitBaseline>,
}

/// Where the clone of an attempt comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The person's repository on this machine, and the address that `origin` gets, if any.
    Local { repository: PathBuf, url: Option<String> },
    /// The remote, cloned on a node. The attempt pushes its branch and its reports there.
    Remote { url: String },
}

/// How far an attempt is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptReport {
    pub number: u32,
    pub host: String,
    pub process: Option<ProcessIdentity>,
    pub loop_id: Option<LoopId>,
    pub phase: AttemptPhase,
    pub carried: Carried,
    /// The newest commit of its branch.
    pub commit: Option<String>,
    pub stands_on: Option<String>,
    /// Files in conflict when the base was merged in.
    pub conflicts: Vec<String>,
    pub end: Option<AttemptEnd>,
    pub at: DateTime<Utc>,
}

/// What an attempt does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "does")]
pub enum AttemptPhase {
    /// Clone, include, setup, checks before the first iteration.
    Preparing,
    /// In the queue for a slot.
    Queued,
    /// An iteration.
    Running { slot: Option<u32>, since: DateTime<Utc> },
    /// For a rate window or after an outage.
    Waiting { until: Option<DateTime<Utc>>, why: String },
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "how")]
pub enum AttemptEnd {
    /// Its loop ended.
    Ended(TaskEnding),
    /// Its loop is paused.
    Paused,
    /// A signal ended it; the loop can be resumed.
    Interrupted,
    /// It could not begin or continue. With `needs_person` trying again is of no use.
    Failed { why: String, reason: EndReason, needs_person: bool },
}
