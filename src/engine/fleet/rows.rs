//! What is said of one task of a fleet, and how many tasks are where. It decides nothing.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::lease::Landed;
use super::manifest::FleetRequest;
use super::plan::WaitsFor;
use super::task::TaskId;
use crate::engine::record::Proof;
use crate::engine::usage::Usage;

/// Where a task stands, from the top of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StandingGroup {
    /// It ended undone, and not because a person ended it; or its lease cannot be read.
    NeedsYou,
    /// An attempt works on it, or rests until the model's service answers again.
    Running,
    Waiting,
    /// It is completed, wherever its work went.
    Done,
    Cancelled,
}

impl StandingGroup {
    /// All of them, from the top.
    pub const ALL: [Self; 5] =
        [Self::NeedsYou, Self::Running, Self::Waiting, Self::Done, Self::Cancelled];
}

/// How many tasks are where. All but the total add up to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StandingCounts {
    pub total: usize,
    /// Completed, and on the main branch.
    pub landed: usize,
    /// Completed, and in a pull request.
    pub requested: usize,
    /// Completed, and only on a branch.
    pub completed: usize,
    pub running: usize,
    pub waiting: usize,
    pub needs_you: usize,
    pub cancelled: usize,
}

/// What a row says beyond its word and its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandingNews {
    /// Why it ended, as crew saw it.
    Why(String),
    /// What its agent needs, in the agent's words.
    Needs(String),
    /// It rests until then, or for a time that nobody knows.
    Rests { until: Option<DateTime<Utc>>, why: String },
    /// Its lease has not moved for so many milliseconds: its attempt may be gone.
    Silent(u64),
    /// What it waits for.
    Waits(WaitsFor),
    /// A person's order, which it obeys after its iteration.
    Obeys(FleetRequest),
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingRow {
    pub task: TaskId,
    pub group: StandingGroup,
    /// One word: `conflict`, `blocked`, `works`, `rests`, `waits`, `landed`.
    pub what: &'static str,
    pub news: Option<StandingNews>,
    /// The iteration that runs or is next; of a task that nobody works on, the last one.
    pub iteration: u32,
    /// The most iterations; 0 without a limit.
    pub of: u32,
    /// When it ended, or when its iteration or its preparation began; `None` where no one moment
    /// says it.
    pub since: Option<DateTime<Utc>>,
    /// Milliseconds of work in all attempts, as of the last boundary.
    pub elapsed_ms: u64,
    pub usage: Usage,
    /// What was last seen of it.
    pub last: String,
    pub slot: Option<u32>,
    /// The machine of its attempt.
    pub host: Option<String>,
    pub branch: String,
    /// Whether a landing has sent it back to its loop.
    pub was_sent_back: bool,
    pub proof: Option<Proof>,
    pub landed: Option<Landed>,
}
