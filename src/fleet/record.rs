//! The record of a fleet: its terms and how far each task is. Only its coordinator writes it, by
//! the methods here, which keep its invariants. It is `fleet.json` on this machine and, with a
//! remote, also the message of one commit that a ref there points to.

mod ending;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use super::record::ending::{Landed, TaskEndKind, TaskEnding, TaskReason, Unsettled};
use engine::failure::Failure;
pub use engine::fleet::LOCAL;
use engine::fleet::{Carried, LandingMode, Refusal, Remote, TaskId};
use engine::git::GitBaseline;
use engine::record::{Actor, Check, CheckMemory, LoopId, Outcome};
use engine::text::distinct_texts;
use engine::usage::Usage;
use readers::parse::git::is_id;
use readers::parse::remote::{MESSAGE_BYTES, is_ref_name};

/// The format that this crew writes, and the newest that it reads.
pub const SCHEMA: u32 = 1;
/// The maximum number of bytes in a record: with a title it is the message of a commit.
pub const RECORD_BYTES_MAX: usize = MESSAGE_BYTES - 1024;
/// The maximum number of messages that wait for a task's loop.
pub const MESSAGES_MAX: usize = 5;
/// The maximum number of attempts at one task that are believed of a record.
const ATTEMPTS_MAX: u32 = 1_000_000;
/// The maximum number of characters in an executor's name of a job.
const JOB_CHARS: usize = 200;

/// A fleet: what applies to all of its tasks, and each of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetRecord {
    pub schema: u32,
    /// The crew version that wrote it.
    pub made_by: String,
    pub terms: FleetTerms,
    /// A random number of its first start, which distinguishes it from another fleet with its name.
    pub id: String,
    pub started_at: DateTime<Utc>,
    /// The coordinator that has it, or had it last.
    pub holder: Holder,
    /// Grows with each renewal at the remote; without a change the record has no coordinator.
    pub beat: u64,
    /// What a person asked for all tasks; the next start lifts it.
    pub request: Option<TaskRequest>,
    pub tasks: BTreeMap<TaskId, TaskRecord>,
}

/// What a start has read from the folder, the command line and the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetTerms {
    pub name: String,
    /// The working tree in which the fleet was started.
    pub repository: PathBuf,
    /// The folder of the tasks, below the root of the repository: no task may change it.
    pub folder: String,
    /// The branch that tasks start from and land on.
    pub base: String,
    #[serde(flatten)]
    pub limits: FleetLimits,
    #[serde(flatten)]
    pub clones: CloneSetup,
    /// `local`, `slurm`, `slurm:HOST`, or the name of an `[executor.NAME]`.
    pub executor: String,
    /// `None`: nothing leaves this machine.
    pub remote: Option<Remote>,
    pub landing: LandingMode,
    pub land_checks: Vec<Check>,
    /// Globs of ignored files that the clean checkout of a landing keeps.
    pub land_keep: Vec<String>,
    pub keeps_branches: bool,
}

/// What all tasks of a fleet may use together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetLimits {
    /// The maximum number of iterations at once; 0 leaves it to the machine, or to the executor.
    pub slots: u32,
    /// Millionths of a US dollar for all tasks together; 0 for an unlimited cost.
    pub max_cost_micros: u64,
    /// The number of slots, if it was typed; otherwise a start uses the one in fleet.toml.
    pub typed_slots: Option<u32>,
    /// The cost limit, if it was typed, in millionths of a dollar.
    pub typed_max_cost_micros: Option<u64>,
}

/// How each new clone, and each checkout of a landing, is made ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloneSetup {
    /// Prepares each new clone, and each landing; with its time limit in seconds.
    pub setup: Option<String>,
    pub setup_timeout_s: u64,
    /// The text of `.worktreeinclude` at the start.
    pub include: Option<String>,
    /// The git configuration that a person agreed to.
    pub trusted: Option<GitBaseline>,
}

/// Who coordinates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub host: String,
    /// A random text written once into `$CREW_HOME`: two containers of one image differ in it.
    pub home: String,
    pub pid: i32,
    pub since: DateTime<Utc>,
}

/// How far a task is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    #[serde(flatten)]
    pub text: TaskText,
    /// The number of its newest attempt, counted from 1; 0 before the first.
    pub attempt: u32,
    pub state: TaskState,
    /// The loop of its newest attempt, on whichever machine.
    pub loop_id: Option<LoopId>,
    /// What its iterations used, summed over all attempts, and what the next one resumes from.
    pub carried: Carried,
    /// Millionths of a US dollar that are set aside while it runs.
    pub reserved_micros: u64,
    #[serde(flatten)]
    pub work: TaskWork,
    #[serde(flatten)]
    pub refused: RefusedLanding,
    /// How often in a row its process disappeared without a finished iteration.
    pub gone: u32,
    #[serde(flatten)]
    pub asked: TaskInput,
    /// What it waits for, while it waits.
    pub waits: Option<WaitsFor>,
    /// When its state changed last.
    pub at: DateTime<Utc>,
}

/// What a person asked of a task, as far as its loop does not have it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskInput {
    /// A person's request: a pause, or a cancel that is not carried out yet.
    pub request: Option<TaskRequest>,
    /// Messages for its next iteration, as far as no loop has them.
    pub messages: Vec<String>,
    /// How many of them are in the spec of the running attempt.
    pub given: usize,
    /// Whether its next start accepts the tests that its agent left as the original ones.
    pub accepts_test_changes: bool,
    /// A person has resumed it since it ended: its next start resumes a loop that is over.
    pub is_resumed: bool,
}

/// The part of a refused landing that the loop must settle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedLanding {
    /// Why its landing sent it back; a task is sent back once.
    pub sent_back: Option<Refusal>,
    /// Files that were in conflict then. Each must be resolved before it lands.
    pub conflicts: Vec<String>,
    /// The checks of landings that its loop has, because a landing sent it back.
    pub land_checks: Vec<Check>,
    /// Whether its next start gets a new number in any case, because a landing sent it back.
    pub begins_anew: bool,
}

/// The commits of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWork {
    /// The last commit that was fetched from one of its attempts: a new attempt starts from it, and
    /// nothing else lands.
    pub commit: Option<String>,
    /// The newest commit that its attempt reported. Where it differs from `commit`, that has to be
    /// fetched before the task lands or gets a new number.
    pub tip: Option<String>,
    /// Whether the remote of the fleet lacks `commit`: an earlier start had another remote, or
    /// none.
    pub needs_push: bool,
    /// The commit of the base that this contains, as far as is known.
    pub stands_on: Option<String>,
}

/// The text that a task works by, as far as it is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskText {
    /// Fingerprint of its terms: prompt, options and setup.
    pub revision: String,
    /// The agents that its loop has and how they are started: settings outside of the fleet may
    /// change that.
    pub agents: String,
    /// The limit of its iterations, for rows; 0 without one.
    pub max_iterations: u32,
}

/// Where a task is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "is")]
pub enum TaskState {
    /// Nothing works on it.
    #[default]
    Waiting,
    /// An attempt has been handed to the executor, which calls it `job`; empty until that is known.
    Running { job: String, since: DateTime<Utc> },
    /// Its loop is completed, and its branch is landed or waits for its turn.
    Landing(TaskEnding),
    /// Nothing works on it until it is resumed.
    Ended(TaskEnding),
}

/// What a person asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "what")]
pub enum TaskRequest {
    /// No iteration starts until it is resumed; `now` also ends the one that runs.
    Pause { now: bool },
    /// The task ends.
    Cancel { now: bool, by_agent: bool, reason: Option<String> },
}

/// What a waiting task waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitsFor {
    /// Nothing: it starts now.
    Nothing,
    /// A coordinator: the fleet has none.
    Run,
    /// As many tasks run as there are slots.
    Slot,
    /// A task that comes before it is not done yet.
    Task { task: TaskId },
    /// A task that comes before it ended without being done, or is not there.
    Ended { task: TaskId },
    /// A task that runs touches the same files: its globs and ours.
    Files { task: TaskId, theirs: String, ours: String },
    /// A share of the fleet's money: the rest is set aside for the tasks that run.
    Money,
    /// A person's pause or cancel.
    Request { request: TaskRequest },
    /// Its file, which was there when the fleet was started.
    File,
    /// Its work, which is still to be fetched from its clone.
    Fetch,
    /// git, the remote or the executor does not work.
    Trouble { why: String },
    /// The coordinator ends, because of a signal.
    Signal,
}

impl FleetRecord {
    /// The record of a new fleet. `id` is random.
    pub fn begin_fleet(terms: FleetTerms, id: String, holder: Holder, now: DateTime<Utc>) -> Self {
        let mut record = Self { id, started_at: now, ..Self::default() };
        record.take_up(terms, holder);
        record
    }

    /// Takes the terms of a later start, which lifts what was asked for all tasks, and each pause.
    /// Nothing of the old terms is kept: a record may come from a remote that others write. Where
    /// the remote is another one, it lacks the work so far.
    pub fn take_up(&mut self, terms: FleetTerms, holder: Holder) {
        self.schema = SCHEMA;
        env!("CARGO_PKG_VERSION").clone_into(&mut self.made_by);
        let (pushes, is_new) = (terms.remote.is_some(), terms.remote != self.terms.remote);
        (self.terms, self.holder, self.request) = (terms, holder, None);
        for task in self.tasks.values_mut() {
            task.asked.request.take_if(|request| matches!(request, TaskRequest::Pause { .. }));
            let has_work = task.work_not_on_main().is_some();
            task.work.needs_push = pushes && has_work && (is_new || task.work.needs_push);
        }
    }

    /// Forgets which processes its attempts are: another home started them, and their clones,
    /// reports and locks are there.
    pub fn forget_processes(&mut self) {
        let is_local = self.is_local();
        for task in self.tasks.values_mut() {
            if let (true, TaskState::Running { job, .. }) = (is_local, &mut task.state) {
                job.clear();
            }
        }
    }

    /// Reads a record. `name` and `away` are for the error: what it is, and how a broken one is put
    /// out of the way.
    ///
    /// # Errors
    /// If a newer crew wrote it, if it is not a record, or if it has values that crew never writes:
    /// names that git would take for something else, paths that leave their folder.
    pub fn read_record(name: &str, bytes: &[u8], away: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Format {
            schema: u32,
        }
        let broken = |why: &dyn Display| {
            Failure::new(
                format!("{name} cannot be read: {why}"),
                format!("{away}, and crew fleet run starts again"),
            )
            .into()
        };
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(broken(&"it is too long"));
        }
        let Format { schema } = serde_json::from_slice(bytes).map_err(|error| broken(&error))?;
        if schema > SCHEMA {
            bail!(Failure::new(format!("{name} was made by a newer crew"), "update crew"));
        }
        let record: Self = serde_json::from_slice(bytes).map_err(|error| broken(&error))?;
        record.find_fault().map_or(Ok(record), |fault| Err(broken(&fault)))
    }

    /// The first value that crew never writes.
    fn find_fault(&self) -> Option<String> {
        let Self { id, terms, tasks, .. } = self;
        let mut tasks = tasks.iter();
        (terms.name.parse::<TaskId>().err())
            .or_else(|| find_odd([id], is_fleet_id, "an id of a fleet"))
            .or_else(|| find_odd([&terms.base], is_branch, "a branch"))
            .or_else(|| find_odd([&terms.folder], is_inside, "a folder of a repository"))
            .or_else(|| {
                tasks.find_map(|(id, task)| Some(format!("task {id}: {}", task.find_fault()?)))
            })
    }

    /// The task of that name.
    pub fn task(&self, id: &TaskId) -> Option<&TaskRecord> {
        self.tasks.get(id)
    }

    /// Whether its attempts are processes of this machine.
    pub fn is_local(&self) -> bool {
        self.terms.executor == LOCAL
    }

    /// The tasks that run, with the numbers of their attempts.
    pub fn running_attempts(&self) -> Vec<(TaskId, u32)> {
        let running = self.tasks.iter().filter(|(_, task)| task.is_running());
        running.map(|(id, task)| (id.clone(), task.attempt)).collect()
    }

    /// What all tasks have used.
    pub fn spent(&self) -> Usage {
        let mut spent = Usage::default();
        self.tasks.values().for_each(|task| spent.add_usage(&task.carried.usage));
        spent
    }

    /// The branch of an attempt.
    pub fn branch(&self, task: &TaskId, number: u32) -> String {
        task.branch_name(&self.terms.name, number)
    }

    /// What a person calls a task.
    pub fn full_name(&self, task: &TaskId) -> String {
        format!("{}/{task}", self.terms.name)
    }

    /// What was asked of a task, or of all; a cancel before a pause.
    pub fn request_of(&self, task: &TaskId) -> Option<&TaskRequest> {
        let own = self.tasks.get(task).and_then(|task| task.asked.request.as_ref());
        let both = [own, self.request.as_ref()].into_iter().flatten();
        both.min_by_key(|request| matches!(request, TaskRequest::Pause { .. }))
    }

    /// The ending of a task with a cancel that is not carried out yet.
    pub fn cancel_of(&self, task: &TaskId) -> Option<TaskEnding> {
        self.request_of(task)?.ending()
    }
}

impl TaskRecord {
    /// A task on which nothing has worked yet.
    pub fn new(revision: &str, max_iterations: u32, now: DateTime<Utc>) -> Self {
        Self {
            at: now,
            text: TaskText { revision: revision.to_owned(), max_iterations, ..TaskText::default() },
            ..Self::default()
        }
    }

    /// Whether an attempt was submitted to the executor and its result is not known yet.
    pub fn is_running(&self) -> bool {
        matches!(self.state, TaskState::Running { .. })
    }

    /// Whether nothing works on it, and it has not ended.
    pub fn is_waiting(&self) -> bool {
        self.state == TaskState::Waiting
    }

    /// How it ended.
    pub fn ending(&self) -> Option<&TaskEnding> {
        if let TaskState::Ended(ending) = &self.state { Some(ending) } else { None }
    }

    /// Where its work went.
    pub fn landed(&self) -> Option<&Landed> {
        self.ending()?.landed.as_ref()
    }

    /// Whether it is completed, and its work is where the tasks after it find it.
    pub fn is_done(&self, landing: LandingMode) -> bool {
        let is_completed = self.ending().is_some_and(TaskEnding::is_completed);
        let is_there = match landing {
            LandingMode::Main => matches!(self.landed(), Some(Landed::Main(_))),
            LandingMode::Pr | LandingMode::No => self.is_fetched(),
        };
        is_completed && is_there
    }

    /// Whether all that its attempt reported is in the repository and, where the fleet pushes, at
    /// the remote.
    pub fn is_fetched(&self) -> bool {
        (self.work.tip.is_none() || self.work.tip == self.work.commit) && !self.work.needs_push
    }

    /// The commit of completed work that the base lacks, as far as is known.
    pub fn work_not_on_main(&self) -> Option<String> {
        let is_on_main = matches!(self.landed(), Some(Landed::Main(_)));
        if is_on_main { None } else { self.work.commit.clone() }
    }

    /// What it has cost at most, in millionths of a dollar, rounded up.
    pub fn cost(&self) -> u64 {
        self.carried.usage.cost_at_most().micros()
    }

    /// Changes its state. Unless it runs, the money set aside is free again; once it has ended, its
    /// request is done.
    pub fn set(&mut self, state: TaskState, now: DateTime<Utc>) {
        (self.state, self.at, self.waits) = (state, now, None);
        if !self.is_running() {
            self.reserved_micros = 0;
        }
        if self.ending().is_some() {
            self.asked.request = None;
        }
    }

    /// Lets what its loop has completed wait for its turn to land.
    pub fn land(&mut self, ending: TaskEnding, now: DateTime<Utc>) {
        self.set(TaskState::Landing(ending.for_landing()), now);
    }

    /// How its loop has ended, while its work is landed or waits for its turn.
    pub fn landing(&self) -> Option<&TaskEnding> {
        if let TaskState::Landing(ending) = &self.state { Some(ending) } else { None }
    }

    /// Forgives what ended it, as when a loop is resumed. With `accepts` the tests are taken as
    /// they are now, and that its checks failed before no longer counts.
    pub fn try_again(&mut self, accepts: bool) {
        (self.gone, self.asked.is_resumed) = (0, true);
        self.asked.request = None;
        self.carried.consecutive_failures = 0;
        self.carried.iterations_without_progress = 0;
        if accepts {
            self.asked.accepts_test_changes = true;
            self.carried.baseline = None;
            self.carried.checks.values_mut().for_each(CheckMemory::forget_failures);
        }
    }

    /// Lets its loop settle why it did not land, which happens once. What the base brings changes
    /// tests and check configuration, too.
    pub fn send_back(&mut self, refusal: Refusal, now: DateTime<Utc>) {
        if let Refusal::Conflict(files) = &refusal {
            self.add_conflicts(files);
        }
        self.refused.sent_back = Some(refusal);
        self.carried.baseline = None;
        self.refused.begins_anew = true;
        self.set(TaskState::Waiting, now);
    }

    /// Notes files that were in conflict.
    pub fn add_conflicts(&mut self, files: &[String]) {
        self.refused.conflicts =
            distinct_texts(self.refused.conflicts.drain(..).chain(files.iter().cloned()));
    }

    /// The first value that crew never writes.
    fn find_fault(&self) -> Option<String> {
        let Self { work, refused, asked, attempt, .. } = self;
        let landed = match self.landed() {
            Some(Landed::Main(commit)) => commit.as_ref(),
            _ => None,
        };
        let job = if let TaskState::Running { job, .. } = &self.state { Some(job) } else { None };
        let commits =
            [&work.commit, &work.tip, &work.stands_on].into_iter().flatten().chain(landed);
        let is_file = |path: &str| !path.is_empty() && is_inside(path);
        let is_begun = self.is_running() || self.landing().is_some();
        let is_overfull = asked.messages.len() > MESSAGES_MAX || asked.given > asked.messages.len();
        let counts = [
            (is_overfull, "it has more messages than crew keeps"),
            (*attempt > ATTEMPTS_MAX, "it has more attempts than crew makes"),
            (*attempt == 0 && is_begun, "it runs without an attempt"),
        ];
        let count = counts.into_iter().find(|(is_odd, _)| *is_odd);
        count
            .map(|(_, fault)| fault.to_owned())
            .or_else(|| find_odd(commits, is_id, "a commit"))
            .or_else(|| find_odd(&refused.conflicts, is_file, "a file of a repository"))
            .or_else(|| find_odd(job, is_job, "a job"))
    }
}

impl TaskRequest {
    /// Whether it also ends the iteration that runs.
    pub fn is_now(&self) -> bool {
        let (Self::Pause { now } | Self::Cancel { now, .. }) = self;
        *now
    }

    /// Whether it is a cancel, which only another try lifts.
    pub fn is_cancel(&self) -> bool {
        matches!(self, Self::Cancel { .. })
    }

    /// Replaces an earlier request, except that a pause does not replace a cancel.
    pub fn replace_request(&self, before: &mut Option<Self>) {
        if self.is_cancel() || !before.as_ref().is_some_and(Self::is_cancel) {
            *before = Some(self.clone());
        }
    }

    /// How a cancel ends a task; `None` for a pause.
    pub fn ending(&self) -> Option<TaskEnding> {
        let Self::Cancel { by_agent, reason, .. } = self else { return None };
        let by = if *by_agent { Actor::Agent } else { Actor::User };
        let reason = TaskReason::Cancelled { by, reason: reason.clone() };
        Some(TaskEnding::new(Outcome::Cancelled, reason))
    }
}

/// The first of these strings that does not have its format, and what it should be.
fn find_odd<'text>(
    texts: impl IntoIterator<Item = &'text String>,
    has_form: fn(&str) -> bool,
    what: &str,
) -> Option<String> {
    let text = texts.into_iter().find(|text| !has_form(text))?;
    Some(format!("{text:?} is not {what}"))
}

fn is_fleet_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a relative path stays below its folder.
fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.contains('\0') && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Whether git reads it as the short name of a branch, and as nothing else.
fn is_branch(text: &str) -> bool {
    is_ref_name(&format!("refs/heads/{text}")) && !text.split('/').any(|part| part.starts_with('-'))
}

/// Whether it can be a word of an executor's command; empty where the job is not known.
fn is_job(text: &str) -> bool {
    let is_short = text.chars().count() <= JOB_CHARS;
    is_short && !text.starts_with('-') && !text.contains(|c: char| c.is_control() || c == ' ')
}

#[cfg(test)]
mod tests;
