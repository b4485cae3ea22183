//! A task as the fleet holds it: its contract, its branch, its attempt, what its attempts have
//! used, and how it ended or why its landing was refused. A lease is written over the state that
//! was read.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::manifest::{Fleet, FleetOrder, FleetRequest, FleetTask, LandingMode, SCHEMA, TaskId};
use super::refusal::Refusal;
use crate::engine::boundary::limits::LimitName;
use crate::engine::evidence::Verdict;
use crate::engine::record::{CheckMemory, Contract, Ending, Loop, LoopId, Outcome, Proof};
use crate::engine::test_changes::Baseline;
use crate::engine::test_changes::finding::ACCEPT;
use crate::engine::text::{clip_at_word, count, one_line, word};
use crate::engine::usage::Earlier;
use crate::engine::usage::Usage;

/// How the reason begins where an agent asked for a person; its own words follow.
pub const ASKED: &str = "the agent said BLOCKED: ";
/// The most characters of what was last seen.
const LAST_CHARS: usize = 120;
/// The most characters of a commit's subject.
const SUBJECT_CHARS: usize = 72;
/// The most characters of a task's first line.
const FIRST_CHARS: usize = 1000;
/// How long a lease that other machines read stands still at most while its attempt lives, in
/// milliseconds: five heartbeats.
const STILL_MS: u64 = 5 * 60 * 1000;

/// A task as the fleet holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub schema: u32,
    pub fleet: String,
    pub task: FleetTask,
    /// As a person trusted it. Its limits are the task's, however many attempts it takes.
    pub contract: Contract,
    /// The branch of its work.
    pub branch: String,
    /// The branch's commit when the lease was last written; `None` before the first.
    pub commit: Option<String>,
    /// The commit of the main branch that its newest iteration began with.
    pub stands_on: Option<String>,
    pub state: TaskState,
    /// Its newest loop, on the machine of the newest attempt.
    pub loop_id: Option<LoopId>,
    /// How many attempts have begun.
    pub attempts: u32,
    /// What all attempts have used, as of the last boundary.
    pub carried: Carried,
    /// The most it may cost, set aside from the fleet's money while it runs, in millionths of a
    /// dollar; 0 without a limit.
    pub reserved_micros: u64,
    /// Why a landing has sent it back to its loop, once; then, why the next one was refused.
    pub sent_back: Option<Refusal>,
    /// The files into which a landing has merged conflicts: none may keep a marker.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// Whether its text has changed since its newest loop began.
    #[serde(default)]
    pub is_renewed: bool,
    /// How its newest loop ended, where what is left is to push or land its branch.
    pub loop_end: Option<TaskEnding>,
    /// Whether a person asked for another attempt after it ended.
    #[serde(default)]
    pub is_retried: bool,
    /// After how many iterations a person accepted its tests as they were then; no later change is.
    pub accepted_test_changes: Option<u32>,
    /// A person's messages to its agent that no loop has taken yet.
    #[serde(default)]
    pub messages: Vec<String>,
    pub at: DateTime<Utc>,
}

/// What is happening to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "is")]
pub enum TaskState {
    /// Nobody works on it.
    Waiting,
    Running(Attempt),
    Ended(TaskEnding),
}

/// One process that works on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Random: two attempts of one process id or host differ.
    pub id: String,
    pub host: String,
    /// A hash of that machine's name, of its start and of its `$CREW_HOME`: whether the process
    /// lives can be told there alone.
    pub seat: String,
    pub pid: i32,
    /// What the engine calls it; `None` for a process of this machine.
    pub job: Option<String>,
    pub began_at: DateTime<Utc>,
    pub phase: JobPhase,
}

impl Attempt {
    /// Whether its loop waits for the model's service, or after a crash.
    pub fn rests(&self) -> bool {
        matches!(self.phase, JobPhase::Rests { .. })
    }

    /// The slot in which an iteration of it runs.
    pub fn slot(&self) -> Option<u32> {
        if let JobPhase::Works { slot, .. } = self.phase { slot } else { None }
    }
}

/// What an attempt does now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "does")]
pub enum JobPhase {
    /// Its working tree is made and set up.
    Prepares,
    /// In the line for a slot.
    Lines,
    /// An iteration runs.
    Works { slot: Option<u32>, since: DateTime<Utc> },
    /// For the model's service, or after a crash.
    Rests { until: Option<DateTime<Utc>>, why: String },
    /// Its branch is being landed.
    Lands,
}

impl JobPhase {
    /// The words of the lease's title.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Prepares => "prepares",
            Self::Lines => "waits for a slot",
            Self::Works { .. } => "works",
            Self::Rests { .. } => "rests",
            Self::Lands => "lands",
        }
    }
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnding {
    /// Its loop's; `Blocked` also where a landing needs a person.
    pub outcome: Outcome,
    pub proof: Option<Proof>,
    pub why: String,
    /// Where it went.
    pub landed: Option<Landed>,
}

impl TaskEnding {
    /// The end of a task by that of its loop.
    pub fn of(ending: Ending) -> Self {
        let (why, Ending { outcome, proof, .. }) = (ending.reason(), ending);
        Self { outcome, proof, why, landed: None }
    }

    /// Whether it waits for a person to accept a change of its tests.
    pub fn is_blocked_by_test_changes(&self) -> bool {
        let is_asked = self.why.starts_with(ASKED);
        self.outcome == Outcome::Blocked && !is_asked && self.why.contains(ACCEPT)
    }
}

/// Where a task's work went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Landed {
    /// As this commit of the main branch; `None` where that had the work already.
    Main(Option<String>),
    /// As a pull request at this address.
    Request(String),
}

/// What the loops of a task have used so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    pub completed: u32,
    pub consecutive_failures: u32,
    pub iterations_without_progress: u32,
    pub awake_ms: u64,
    pub usage: Usage,
    pub times: Earlier,
    /// What each check has shown, so that a proof rests on all attempts.
    pub checks: BTreeMap<String, CheckMemory>,
    /// The tests and check configuration as its loop found them, on the machine that has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// What was last seen of it, in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last: String,
}

impl Carried {
    /// What a loop has used, with what it was given at its start.
    pub fn of(record: &Loop) -> Self {
        let state = &record.state;
        let mut times = record.earlier;
        record.elapsed_ms.iter().for_each(|ms| times.add(*ms));
        Self {
            completed: state.completed,
            consecutive_failures: state.consecutive_failures,
            iterations_without_progress: state.iterations_without_progress,
            awake_ms: state.awake_ms,
            usage: record.use_so_far(),
            times,
            checks: state.checks.clone(),
            baseline: state.baseline.clone(),
            last: last(record),
        }
    }

    /// Gives it to a loop that begins: the limits are the task's.
    pub fn give(&self, record: &mut Loop) {
        let state = &mut record.state;
        state.completed = self.completed;
        state.consecutive_failures = self.consecutive_failures;
        state.iterations_without_progress = self.iterations_without_progress;
        state.awake_ms = self.awake_ms;
        state.usage = self.usage.clone();
        state.checks = self.checks.clone();
        state.baseline.clone_from(&self.baseline);
        record.earlier = self.times;
    }
}

/// What the last iteration showed, in one line: a check that failed, or whether anything changed.
fn last(record: &Loop) -> String {
    let Some(evidence) = &record.state.evidence else { return String::new() };
    let failed = evidence.checks.iter().find(|check| check.verdict != Verdict::Passed);
    failed.map_or_else(
        || evidence.progress_words(["files changed", "nothing changed", ""]),
        |check| one_line(&format!("{} {}", check.run, check.what_happened()), LAST_CHARS),
    )
}

impl Lease {
    /// That of a task on which nobody has worked yet.
    pub fn new(fleet: &Fleet, task: FleetTask, contract: Contract, at: DateTime<Utc>) -> Self {
        Self {
            schema: SCHEMA,
            fleet: fleet.name.clone(),
            branch: fleet.branch(&task.id),
            task,
            contract,
            commit: None,
            stands_on: None,
            state: TaskState::Waiting,
            loop_id: None,
            attempts: 0,
            carried: Carried::default(),
            reserved_micros: 0,
            sent_back: None,
            conflicts: Vec::new(),
            is_renewed: false,
            loop_end: None,
            is_retried: false,
            accepted_test_changes: None,
            messages: Vec::new(),
            at,
        }
    }

    /// The attempt that works on it.
    pub fn attempt(&self) -> Option<&Attempt> {
        match &self.state {
            TaskState::Running(attempt) => Some(attempt),
            TaskState::Waiting | TaskState::Ended(_) => None,
        }
    }

    /// Whether this attempt works on it.
    pub fn is_of(&self, attempt: &str) -> bool {
        self.attempt().is_some_and(|found| found.id == attempt)
    }

    /// For how many milliseconds its attempt has not been heard of, if that is more than five
    /// heartbeats. Only where other machines read the lease does an attempt that lives renew it.
    pub fn silent_ms(&self, now: DateTime<Utc>) -> Option<u64> {
        let still = u64::try_from((now - self.at).num_milliseconds()).unwrap_or_default();
        (self.attempt().is_some() && still > STILL_MS).then_some(still)
    }

    /// How it ended.
    pub fn ending(&self) -> Option<&TaskEnding> {
        match &self.state {
            TaskState::Ended(ending) => Some(ending),
            TaskState::Waiting | TaskState::Running(_) => None,
        }
    }

    /// The outcome with which it ended.
    pub fn outcome(&self) -> Option<Outcome> {
        self.ending().map(|ending| ending.outcome)
    }

    /// Where its work went, if it ended so.
    pub fn landed(&self) -> Option<&Landed> {
        self.ending()?.landed.as_ref()
    }

    /// Whether the main branch has its work.
    pub fn is_on_main(&self) -> bool {
        matches!(self.landed(), Some(Landed::Main(_)))
    }

    /// Whether the loop of its attempt waits for the model's service, or after a crash.
    pub fn rests(&self) -> bool {
        self.attempt().is_some_and(Attempt::rests)
    }

    /// Says what the attempt that works on it does.
    pub fn set_phase(&mut self, phase: JobPhase) {
        if let TaskState::Running(attempt) = &mut self.state {
            attempt.phase = phase;
        }
    }

    /// Takes in what a loop of it has used, with what it was given at its start.
    pub fn carry(&mut self, record: &Loop) {
        self.carried = Carried::of(record);
        self.loop_id = Some(record.id.clone());
    }

    /// The first of its limits that its attempts have used up, by its name in files: another one
    /// would end at once.
    pub fn spent_limit(&self) -> Option<String> {
        let (Carried { completed, awake_ms, usage, .. }, limits) =
            (&self.carried, &self.contract.limits);
        let is_spent = |key: &LimitName| limits.is_spent(*key, *completed, *awake_ms, usage);
        Some(word(&LimitName::BOUNDS.into_iter().find(is_spent)?).to_owned())
    }

    /// Whether it was started before the money of its fleet had a limit.
    pub fn lacks_a_share(&self, fleet: &Fleet) -> bool {
        fleet.max_cost_micros > 0 && self.reserved_micros == 0
    }

    /// Takes the task as its file is now, for its next attempt. A task that ended, or has only to
    /// be pushed or landed, takes other limits alone, unless a person has it tried again.
    fn renew(&mut self, fresh: &Self) {
        let (task, contract) = (&fresh.task, &fresh.contract);
        let as_before = Contract { limits: self.contract.limits.clone(), ..contract.clone() };
        if as_before != self.contract {
            if self.ending().is_some() || (self.loop_end.is_some() && !self.is_retried) {
                self.contract.limits = contract.limits.clone();
                return;
            }
            self.is_renewed = true;
        }
        self.task = task.clone();
        self.contract = contract.clone();
    }

    /// Whether it is completed, and has still to land where the fleet lands.
    pub fn wants_landing(&self, fleet: &Fleet) -> bool {
        let is_completed = self.outcome() == Some(Outcome::Completed);
        is_completed && fleet.landing != LandingMode::No && self.landed().is_none()
    }

    /// Whether it is completed or given up, and has nothing to land.
    pub fn is_settled(&self, fleet: &Fleet) -> bool {
        let is_over = matches!(self.outcome(), Some(Outcome::Completed | Outcome::Cancelled));
        is_over && !self.wants_landing(fleet)
    }

    /// Lets it wait for what is left after its loop: that its branch lands or is pushed.
    pub fn reopen(&mut self) {
        self.loop_end = self.ending().cloned();
        self.state = TaskState::Waiting;
    }

    /// What a start of its fleet makes of it, and what the user should know of that. `fresh` is the
    /// task as its file is now, and `is_merged` says that a person has merged its branch into main.
    /// What runs or is completed stays as it is, but what has still to land does that.
    pub fn next(
        &self,
        fleet: &Fleet,
        fresh: &Self,
        retry: bool,
        is_merged: bool,
    ) -> (Self, Option<String>) {
        let (id, mut next) = (self.id(), self.clone());
        let is_new = self.task.revision != fresh.task.revision;
        if self.wants_landing(fleet) {
            next.reopen();
            return (next, Some(format!("{id} is completed, and lands now")));
        }
        if self.attempt().is_some() {
            let told = format!("{id} has changed, but it runs; the next start takes it");
            return (next, is_new.then_some(told));
        }
        let has_ended = self.ending().is_some();
        if self.outcome() == Some(Outcome::Completed) {
            return (next, None);
        }
        if has_ended && retry && is_merged {
            next.try_again();
            next.renew(fresh);
            let ending = Ending::new(Outcome::Completed, "its branch was merged by hand");
            next.loop_end = Some(TaskEnding::of(ending));
            (next.loop_id, next.is_renewed) = (None, false);
            return (next, Some(format!("{id} is on {}, and is checked there", fleet.base)));
        }
        let spent = Self { contract: fresh.contract.clone(), ..self.clone() }.spent_limit();
        let spent = spent.filter(|_| retry && has_ended);
        // An exhausted task would end again at once.
        let stays = spent.is_some() && self.outcome() == Some(Outcome::Exhausted);
        if has_ended && retry && !stays {
            next.try_again();
        }
        next.renew(fresh);
        let told = match spent {
            Some(limit) => {
                let what = if stays {
                    "stays exhausted"
                } else {
                    "is tried again, but has no iteration left"
                };
                Some(format!(
                    "{id} {what}: its {limit} is used up\n\
                     hint: raise {limit} in {}/{id}.md, or under [task] in fleet.toml, and try again",
                    fleet.folder
                ))
            }
            None if has_ended && retry => Some(format!("{id} is tried again")),
            None if has_ended => Some(format!("{id} ended and stays so; --retry tries it again")),
            None if !is_new => None,
            None if self.loop_end.is_some() => {
                Some(format!("{id} has changed, but its work only has to land"))
            }
            None => Some(format!("{id} has changed: its new text counts")),
        };
        (next, told)
    }

    /// How a start ends it, if it does: by an order of a person from `before` that it has not
    /// obeyed, or because its file is gone. An order for all tasks leaves what is completed.
    pub fn given_up(&self, fleet: &Fleet, before: &Fleet, is_gone: bool) -> Option<Ending> {
        let is_undone = self.outcome().is_some_and(Outcome::leaves_a_task_undone);
        let is_waiting = self.state == TaskState::Waiting;
        let is_open = is_waiting || self.wants_landing(fleet) || (is_gone && is_undone);
        if !is_open {
            return None;
        }
        let order =
            if is_waiting { before.order_of(self.id()) } else { before.orders.get(self.id()) };
        let cancel = order.filter(|order| order.what == FleetRequest::Cancel);
        let gone = || is_gone.then(|| Ending::new(Outcome::Cancelled, "its file is gone"));
        cancel.map(FleetOrder::ending).or_else(gone)
    }

    /// As it comes to the remote that its fleet gets, where nobody works on it: what its loop has
    /// done is pushed before its end counts there.
    pub fn moved(mut self) -> Self {
        let has_work = self.loop_id.is_some() && self.outcome() != Some(Outcome::Cancelled);
        if self.ending().is_some() && has_work {
            self.reopen();
        }
        if self.state != TaskState::Waiting {
            self.commit = None;
        }
        self
    }

    /// Lets it be tried again after it ended; what ended it is forgiven once, as when a loop is
    /// resumed.
    pub fn try_again(&mut self) {
        self.state = TaskState::Waiting;
        self.is_retried = true;
        // What is completed has only to land.
        self.loop_end.take_if(|ending| ending.outcome != Outcome::Completed);
        self.sent_back = None;
        self.carried.consecutive_failures = 0;
        self.carried.iterations_without_progress = 0;
    }

    /// The same for one that only a change of its tests keeps from its end: a person accepts that.
    /// That its checks failed before no longer counts.
    pub fn accept_test_changes(&mut self) {
        self.try_again();
        self.accepted_test_changes = Some(self.carried.completed);
        self.carried.baseline = None;
        self.carried.checks.values_mut().for_each(CheckMemory::forget_failures);
    }

    /// Whether nothing has happened between the two: a heartbeat moves its time alone.
    pub fn is_still(&self, before: &Self) -> bool {
        Self { at: before.at, ..self.clone() } == *before
    }

    /// Its state in one line, for people who read the journal of a ref.
    pub fn title(&self) -> String {
        let (id, done) = (self.id(), count(self.carried.completed, "iteration"));
        let state = match &self.state {
            TaskState::Waiting => "waits".to_owned(),
            TaskState::Running(Attempt { host, phase, .. }) => {
                format!("{} on {host}", phase.label())
            }
            TaskState::Ended(ending) => format!("is {}", ending.outcome.label()),
        };
        format!("{id} {state} after {done}")
    }

    /// The message of the commit that lands: the task's first line, in full where it is too long
    /// for a subject, and where it came from.
    pub fn landing_message(&self) -> String {
        let prompt = self.task.prompt.trim_start_matches(['#', ' ', '\n']);
        let first = one_line(prompt.lines().next().unwrap_or_default(), FIRST_CHARS);
        let subject = clip_at_word(&first, SUBJECT_CHARS);
        let id = self.id();
        let whole = if subject == first { String::new() } else { format!("{first}\n\n") };
        let subject = if first.is_empty() { id.to_string() } else { subject };
        format!("{subject}\n\n{whole}Task {id} of fleet {}, branch {}.\n", self.fleet, self.branch)
    }

    /// Its name.
    pub fn id(&self) -> &TaskId {
        &self.task.id
    }
}
