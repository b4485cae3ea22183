//! A fleet as it was started: its terms, and the orders of a person. It is written by a person's
//! command alone. A job reads it and takes nothing from a branch.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::task::TaskId;
use crate::engine::git::GitBaseline;
use crate::engine::record::{Actor, Check, TaskOfFleet};

/// The format this crew writes.
pub const SCHEMA: u32 = 1;
/// The engine that is this machine.
pub const LOCAL: &str = "local";

/// A fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fleet {
    pub schema: u32,
    /// The crew version that wrote it.
    pub made_by: String,
    pub name: String,
    /// The working tree in which it was started, on the machine that started it.
    pub repository: PathBuf,
    /// The folder of the tasks, below the working tree's root: no task may change it.
    pub folder: String,
    /// The commit that tasks start from: a branch here, or one of the remote.
    pub base: String,
    /// The most iterations at once; 0 leaves it to each machine.
    pub slots: u32,
    /// What all tasks together may cost; 0 means no limit.
    pub max_cost_micros: u64,
    /// Runs once in each new working tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// The text of `.worktreeinclude` when the fleet was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// The limits that a person typed; they go before those of the file.
    pub typed: TypedTerms,
    /// What runs its jobs: `local`, `slurm`, `slurm:HOST`, or `manual` for somebody else.
    pub engine: String,
    /// Where leases and branches are kept for other machines; `None` keeps everything here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
    pub landing: LandingMode,
    /// Run with a task's own checks on the main branch as it will be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub land_checks: Vec<Check>,
    /// What a person ordered for all tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<FleetOrder>,
    /// What a person ordered for single tasks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub orders: BTreeMap<TaskId, FleetOrder>,
    /// The tasks that had a file at this machine's last start, each with the revision of its text
    /// that held then. Other machines have their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<TaskId, String>,
    /// The agent that this machine's settings named for each task at its last start, as a
    /// fingerprint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<TaskId, String>,
    pub started_at: DateTime<Utc>,
    /// When it was started last, which lifted every pause before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_at: Option<DateTime<Utc>>,
    /// The programs that the configuration of `repository` names, as the fleet found them: no step
    /// runs one that was planted since. Other machines have their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<GitBaseline>,
}

/// What was typed last of the limits of a fleet; `None` leaves them to its file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedTerms {
    pub slots: Option<u32>,
    pub max_cost_micros: Option<u64>,
}

impl TypedTerms {
    /// With what was typed before, where nothing was typed now; a 0 is typed to lift a limit, once.
    pub fn or(self, before: Self) -> Self {
        Self {
            slots: self.slots.or(before.slots).filter(|slots| *slots > 0),
            max_cost_micros: self.max_cost_micros.or(before.max_cost_micros).filter(|it| *it > 0),
        }
    }
}

/// The remote of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    /// Its name in the repository that started the fleet.
    pub name: String,
    pub url: String,
    /// The host refuses refs of crew's own: leases are branches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_branches: bool,
}

impl Remote {
    /// The ref of a fleet's memory of that name.
    pub fn lease(&self, fleet: &str, name: &str) -> String {
        let kind = if self.only_branches { "heads/" } else { "" };
        format!("refs/{kind}crew/{fleet}/{name}")
    }
}

/// What becomes of a task's branch once its loop is completed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LandingMode {
    /// It stays a branch.
    #[default]
    No,
    /// It is checked on the main branch and pushed there.
    Main,
    /// A pull request is opened.
    Pr,
}

/// What a person ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetOrder {
    pub what: FleetRequest,
    pub by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What can be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetRequest {
    /// No iteration begins until the fleet is run again.
    Pause,
    Cancel,
}

impl Fleet {
    /// The same fleet, which lands as it was started last.
    pub fn landing_as(&self, newest: &Self) -> Self {
        let Self { landing, setup, include, land_checks, .. } = newest.clone();
        Self { setup, include, landing, land_checks, ..self.clone() }
    }

    /// What other machines are told: each has programs of its own, and slots where no cluster gives
    /// the places, so that a number typed here stays here.
    pub fn shared(&self) -> Self {
        let (files, agents) = (BTreeMap::new(), BTreeMap::new());
        let mut shared = Self { trusted: None, files, agents, ..self.clone() };
        if self.engine == LOCAL && shared.typed.slots.take().is_some() {
            shared.slots = 0;
        }
        shared
    }

    /// The same fleet with what the record of this machine has of its own.
    pub fn with_own(self, here: Self) -> Self {
        let slots = if self.engine == LOCAL { here.slots } else { self.slots };
        let Self { repository, trusted, remote, .. } = here;
        Self { repository, slots, trusted, remote: remote.or(self.remote), ..self }
    }

    /// The order that holds for a task; a cancel before a pause.
    pub fn order_of(&self, task: &TaskId) -> Option<&FleetOrder> {
        let both = [self.orders.get(task), self.order.as_ref()].into_iter().flatten();
        both.min_by_key(|order| order.what == FleetRequest::Pause)
    }

    /// One of its tasks, as the record of that task's loop names it.
    pub fn task(&self, id: &TaskId) -> TaskOfFleet {
        TaskOfFleet { name: self.name.clone(), folder: self.folder.clone(), task: id.clone() }
    }

    /// Every ref of the remote that will hold a part of the fleet's memory.
    pub fn refs<'a>(&self, tasks: impl Iterator<Item = &'a TaskId>) -> Vec<String> {
        let Some(remote) = &self.remote else { return Vec::new() };
        let lands = (self.landing == LandingMode::Main).then_some("_land");
        let own = ["_fleet"].into_iter().chain(lands).map(str::to_owned);
        let names = tasks.map(ToString::to_string).chain(own);
        names.map(|name| remote.lease(&self.name, &name)).collect()
    }

    /// The command that makes an attempt at a task on any machine.
    pub fn job(&self, task: &TaskId) -> String {
        let remote = self.remote.as_ref().map(|remote| format!("--remote={}", remote.url));
        let words = ["crew", "fleet", "job", &self.name, task.as_str()];
        shell_words::join(words.into_iter().chain(remote.as_deref()))
    }

    /// The branch of a task.
    pub fn branch(&self, task: &TaskId) -> String {
        self.branch_of(&task.to_string())
    }

    /// The branches of the tasks of that name, which may be a pattern.
    pub fn branch_of(&self, name: &str) -> String {
        format!("fleet/{}/{name}", self.name)
    }
}
