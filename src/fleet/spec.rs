//! The messages between the coordinator and an attempt. A spec is all that an attempt needs: a file
//! on this machine, or part of an executor's script. The attempt answers with reports: a file, or a
//! ref at the remote.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::record::{CloneSetup, FleetRecord, TaskEnding, TaskReason, TaskRecord};
use engine::boundary::limits::LimitName;
use engine::fleet::{Carried, FleetTask, Refusal, TaskId};
use engine::record::{Contract, Limits, LoopId, ProcessIdentity, TaskOfFleet};
use engine::text::variant_name;

/// The pause after a first failure, in seconds, and how often it is doubled at most.
const BACKOFF_S: i64 = 5;
const BACKOFF_DOUBLED_MAX: u32 = 5;

/// What one attempt at a task needs to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptSpec {
    pub task: TaskOfFleet,
    /// Its number, counted from 1. As part of the branch's name it fences an attempt that was given
    /// up.
    pub number: u32,
    /// The branch: `fleet/<fleet>/<task>/<number>`.
    pub branch: String,
    #[serde(flatten)]
    pub origin: CloneOrigin,
    /// The loop's contract, limited to the task's share of the money, and with the landing checks
    /// after a refused landing.
    pub contract: Contract,
    pub carried: Carried,
    /// Why a landing sent the task back: the base is merged into the branch before the loop begins.
    pub sent_back: Option<Refusal>,
    pub accepts_test_changes: bool,
    /// Whether a person has resumed the task since its loop ended.
    pub is_resumed: bool,
    pub messages: Vec<String>,
    #[serde(flatten)]
    pub clones: CloneSetup,
    #[serde(flatten)]
    pub turn: SlotTurn,
}

/// How an attempt gets a slot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotTurn {
    /// The number of slots on this machine; 0 if the executor places the job.
    pub slots: u32,
    pub priority: u8,
}

/// The repository that a clone is made from, and the commits that it begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloneOrigin {
    pub source: Source,
    pub base: String,
    /// The commit where it begins; `None` for the newest of the base.
    pub start: Option<String>,
    /// The base commit that the work so far contains, if known. It shows whether the base was
    /// rewritten between two attempts.
    pub stands_on: Option<String>,
    /// The earlier tasks whose work a first start merges, with their commits.
    pub before: Vec<(TaskId, String)>,
}

/// Where the clone of an attempt comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The user's repository on this machine, and the address that `origin` gets, if any.
    Local { repository: PathBuf, url: Option<String> },
    /// The remote, cloned on a node. The attempt pushes its branch and its reports there.
    Remote { url: String },
}

/// An attempt's progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// What an attempt is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "does")]
pub enum AttemptPhase {
    /// It makes the clone, and runs the setup and the checks before the first iteration.
    #[default]
    Preparing,
    /// It waits in the queue for a slot.
    Queued,
    /// It runs an iteration.
    Running { slot: Option<u32>, since: DateTime<Utc> },
    /// It waits for a rate limit or after an outage.
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
    /// It could not begin or continue. With `needs_person` another try would be useless.
    Failed { reason: TaskReason, needs_person: bool },
}

/// A task as its file now describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedTask {
    pub task: FleetTask,
    pub contract: Contract,
}

/// What the coordinator knows besides the record. None of it outlives the process.
#[derive(Debug, Default)]
pub struct Coordination {
    /// The tasks, sorted by when they start.
    pub described: Vec<DescribedTask>,
    /// Whether the folder has been read: nothing starts, lands or finishes before that.
    pub has_begun: bool,
    /// The newest report of each running attempt.
    pub reports: BTreeMap<TaskId, AttemptReport>,
    /// The running tasks that continue after they report a pause: it has been lifted, or it was for
    /// a new share of the fleet's money. Each with the iterations that it had finished then: a
    /// pause ends the one in progress.
    pub to_continue: BTreeMap<TaskId, u32>,
    /// The tasks whose newest attempt has its clone on this machine. The coordinator fills it at
    /// the start, and removes clones that are gone.
    pub clones: BTreeSet<TaskId>,
    /// Why nothing starts, keyed by the part that does not work.
    pub troubles: BTreeMap<&'static str, String>,
    pub stop: StopCause,
    /// The task that is being landed.
    pub landing: Option<TaskId>,
    /// The number of slots on this machine, or the maximum number of jobs at once.
    pub slots: usize,
    pub backoffs: Backoffs,
    /// The tasks whose work is being fetched, with what their attempts had reported then.
    pub fetching: BTreeMap<TaskId, Option<String>>,
}

/// Why the coordinator stops.
#[derive(Debug, Default)]
pub struct StopCause {
    /// The number of signals received.
    pub signals: u32,
    /// Whether the terminal was closed, so that jobs elsewhere are not waited for.
    pub is_hangup: bool,
    /// Why the coordinator gave up on the executor, if it did.
    pub gave_up: Option<String>,
}

/// The failed operations that are retried later.
#[derive(Debug, Default)]
pub struct Backoffs {
    /// Attempts in a row that the executor refused.
    pub starts: Backoff,
    /// Landings in a row that could not be carried out.
    pub landings: Backoff,
    /// How many times in a row a task's commits could not be fetched.
    pub fetches: BTreeMap<TaskId, Backoff>,
    /// The pauses between two fetches, which are the same for all tasks.
    pub fetch_pause: Backoff,
    /// How many times in a row a task's job could not be cancelled.
    pub ends: BTreeMap<TaskId, Backoff>,
}

/// The pause before a failed operation is retried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backoff {
    /// The number of failures in a row.
    pub times: u32,
    pub until: Option<DateTime<Utc>>,
}

impl AttemptReport {
    /// Whether its loop has everything from the spec, and accepts requests.
    pub fn has_loop(&self) -> bool {
        self.loop_id.is_some() && self.phase != AttemptPhase::Preparing
    }

    /// Whether the attempt waits for the model's service, or after an outage.
    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, AttemptPhase::Waiting { .. })
    }
}

impl TaskRecord {
    /// Applies a report, and returns whether it finished an iteration. Usage never decreases,
    /// whatever a report says.
    pub fn take_report(&mut self, report: &AttemptReport) -> bool {
        let (completed, known) = (report.carried.completed, self.carried.completed);
        let cost = report.carried.usage.cost_at_most().micros();
        if completed >= known && cost >= self.cost() {
            self.carried = report.carried.clone();
        }
        if completed > known {
            self.gone = 0;
        }
        self.work.tip = report.commit.clone().or(self.work.tip.take());
        self.work.stands_on = report.stands_on.clone().or(self.work.stands_on.take());
        self.loop_id = report.loop_id.clone().or(self.loop_id.take());
        self.add_conflicts(&report.conflicts);
        completed > known
    }

    /// The first of these limits that the task has used up, by its name in files.
    pub fn spent_limit(&self, limits: &Limits) -> Option<&'static str> {
        let Carried { completed, awake_ms, usage, .. } = &self.carried;
        let mut names = LimitName::BOUNDS.into_iter();
        Some(variant_name(
            &names.find(|limit| limits.is_spent(*limit, *completed, *awake_ms, usage))?,
        ))
    }
}

impl Coordination {
    /// The task as its file is now.
    pub fn described_task(&self, id: &TaskId) -> Option<&DescribedTask> {
        self.described.iter().find(|task| task.task.id == *id)
    }

    /// The first reason why nothing starts.
    pub fn first_trouble(&self) -> Option<&str> {
        self.troubles.values().next().map(String::as_str)
    }
}

impl DescribedTask {
    /// Its agents and how they are started, as one string.
    pub fn agent_names(&self) -> String {
        let Some(run) = &self.contract.run else { return String::new() };
        let commands: Vec<_> = run.agents().map(|agent| &agent.command).collect();
        let how = (commands, &run.model, &run.words, run.permissions);
        serde_json::to_string(&how).unwrap_or_default()
    }
}

impl Backoff {
    /// Counts a failure: the next try is after 5 s, then after twice as long each time, at most
    /// after 160 s.
    pub fn add_failure(&mut self, now: DateTime<Utc>) {
        let wait = BACKOFF_S << self.times.min(BACKOFF_DOUBLED_MAX);
        self.times = self.times.saturating_add(1);
        self.until = Some(now + TimeDelta::seconds(wait));
    }

    /// Whether it is too early for the next try. Setting the clock back does not prolong the pause.
    pub fn is_active(&self, now: DateTime<Utc>) -> bool {
        let longest = TimeDelta::seconds(BACKOFF_S << BACKOFF_DOUBLED_MAX);
        self.until.is_some_and(|until| now < until && until - now <= longest)
    }
}

impl FleetRecord {
    /// Builds the spec of an attempt that `step` has started. `None` if the task's file is gone. A
    /// share of the fleet's money becomes the task's limit; after a refused landing the landing
    /// checks are added.
    pub fn spec_of(
        &self,
        coordination: &Coordination,
        id: &TaskId,
        number: u32,
        source: Source,
    ) -> Option<AttemptSpec> {
        let DescribedTask { task: described, contract: own } = coordination.described_task(id)?;
        let (terms, task, mut contract) = (&self.terms, self.task(id)?, own.clone());
        if task.reserved_micros > 0 {
            contract.limits.max_cost_micros = task.reserved_micros;
        }
        if task.refused.sent_back.is_some() {
            let checks = terms.land_checks.iter().filter(|check| !own.checks.contains(check));
            contract.checks.extend(checks.cloned());
        }
        // A task's own work already contains that of earlier tasks.
        let after: &[TaskId] = if task.work.commit.is_none() { &described.after } else { &[] };
        let before = after.iter();
        let before = before.filter_map(|id| Some((id.clone(), self.task(id)?.work_not_on_main()?)));
        let slots = if self.is_local() { coordination.slots } else { 0 };
        Some(AttemptSpec {
            task: TaskOfFleet { name: terms.name.clone(), task: id.clone() },
            number,
            branch: self.branch(id, number),
            contract,
            carried: task.carried.clone(),
            sent_back: task.refused.sent_back.clone(),
            accepts_test_changes: task.asked.accepts_test_changes,
            is_resumed: task.asked.is_resumed,
            messages: task.asked.messages.clone(),
            origin: CloneOrigin {
                base: terms.base.clone(),
                start: task.work.commit.clone(),
                stands_on: task.work.stands_on.clone(),
                before: before.collect(),
                source,
            },
            clones: terms.clones.clone(),
            turn: SlotTurn {
                slots: u32::try_from(slots).unwrap_or(u32::MAX),
                priority: described.priority,
            },
        })
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
