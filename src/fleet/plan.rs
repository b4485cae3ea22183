//! What may start next, and what every other task waits for. A task waits for one named thing. The
//! fleet's money is kept by setting aside what each running task may still cost. Two tasks whose
//! globs may cover one path do not run at once: it says yes wherever it is not sure.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::record::{FleetRecord, TaskRequest};
use super::step::Coordination;
use crate::engine::fleet::TaskId;

/// What a waiting task waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitsFor {
    /// Nothing: it starts now.
    Nothing,
    /// Nobody coordinates the fleet.
    Run,
    /// As many tasks run as there are slots.
    Slot,
    /// A task that comes before it is not done yet.
    Task { task: TaskId },
    /// A task that comes before it ended without being done, or is not there.
    Ended { task: TaskId },
    /// A task that runs touches the same files: its globs and ours.
    Files { task: TaskId, theirs: String, ours: String },
    /// What is left of the fleet's money is set aside for the tasks that run.
    Money,
    /// A person's pause or cancel.
    Request { request: TaskRequest },
    /// Its file, which was there when the fleet was started.
    File,
    /// Its work, which is still to be fetched from its clone.
    Fetch,
    /// git, the remote or the executor is out of order.
    Trouble { why: String },
    /// The coordinator ends, because of a signal.
    Signal,
}

/// A task that starts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub task: TaskId,
    /// The most that it may cost, earlier attempts included, in millionths of a dollar; 0 without a
    /// limit.
    pub reserved_micros: u64,
}

/// What starts, in this order, and what every waiting task waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetPlan {
    pub starts: Vec<Start>,
    pub waits: BTreeMap<TaskId, WaitsFor>,
}

/// Decides for all tasks.
pub fn waits(record: &FleetRecord, coordination: &Coordination, now: DateTime<Utc>) -> FleetPlan {
    let _ = (record, coordination, now);
    FleetPlan::default()
}
