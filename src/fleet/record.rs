//! The record of a fleet: its terms and how far each task is. Only its coordinator writes it,
//! through the methods here, which keep its invariants. It is stored in `fleet.json` and, with a
//! remote, as the message of a commit that a ref there points to.

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

/// The record format that this version of crew writes, and the newest that it reads.
pub const SCHEMA: u32 = 1;
/// The maximum size of a record in bytes: with a title it becomes a commit message.
pub const RECORD_BYTES_MAX: usize = MESSAGE_BYTES - 1024;
/// The maximum number of messages that wait for a task's loop.
pub const MESSAGES_MAX: usize = 5;
/// The maximum number of attempts at one task in a valid record.
const ATTEMPTS_MAX: u32 = 1_000_000;
/// The maximum number of characters in a job's id.
const JOB_CHARS: usize = 200;

/// A fleet: what applies to all of its tasks, and each of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetRecord {
    pub schema: u32,
    /// The crew version that wrote it.
    pub made_by: String,
    pub terms: FleetTerms,
    /// A random number from its first start, which distinguishes fleets with the same name.
    pub id: String,
    pub started_at: DateTime<Utc>,
    /// The current or last coordinator.
    pub holder: Holder,
    /// A counter of renewals at the remote; if it stops changing, the coordinator is gone.
    pub beat: u64,
    /// A person's request for all tasks; the next start lifts it.
    pub request: Option<TaskRequest>,
    pub tasks: BTreeMap<TaskId, TaskRecord>,
}

/// The terms of a fleet, which a start reads from the folder, the command line and the repository.
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
    /// The executor's name: `local`, `slurm`, `slurm:HOST`, or that of an `[executor.NAME]`.
    pub executor: String,
    /// The remote; with `None` nothing leaves this machine.
    pub remote: Option<Remote>,
    pub landing: LandingMode,
    pub land_checks: Vec<Check>,
    /// Globs of ignored files that a landing's clean checkout keeps.
    pub land_keep: Vec<String>,
    pub keeps_branches: bool,
}

/// The limits on what all tasks of a fleet use together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetLimits {
    /// The maximum number of iterations at once; 0 leaves it to the machine or the executor.
    pub slots: u32,
    /// The cost limit of all tasks together, in millionths of a US dollar; 0 means no limit.
    pub max_cost_micros: u64,
    /// The two values as typed on the command line, if any; a start otherwise uses fleet.toml.
    pub typed_slots: Option<u32>,
    /// The cost limit, if it was typed, in millionths of a dollar.
    pub typed_max_cost_micros: Option<u64>,
}

/// How each new clone, and each landing's checkout, is prepared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloneSetup {
    /// The command that prepares each new clone and each landing, and its time limit in seconds.
    pub setup: Option<String>,
    pub setup_timeout_s: u64,
    /// The contents of `.worktreeinclude` at the start.
    pub include: Option<String>,
    /// The git configuration that a person agreed to.
    pub trusted: Option<GitBaseline>,
}

/// The process that coordinates a fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub host: String,
    /// A random string written once into `$CREW_HOME`; it distinguishes two containers of one
    /// image.
    pub home: String,
    pub pid: i32,
    pub since: DateTime<Utc>,
}

/// The record of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    #[serde(flatten)]
    pub text: TaskText,
    /// The number of its newest attempt, counted from 1; 0 before the first.
    pub attempt: u32,
    pub state: TaskState,
    /// The loop of its newest attempt, on any machine.
    pub loop_id: Option<LoopId>,
    /// The usage of all attempts, and what the next attempt resumes from.
    pub carried: Carried,
    /// The money set aside while it runs, in millionths of a US dollar.
    pub reserved_micros: u64,
    #[serde(flatten)]
    pub work: TaskWork,
    #[serde(flatten)]
    pub refused: RefusedLanding,
    /// How many times in a row its process disappeared without a finished iteration.
    pub gone: u32,
    #[serde(flatten)]
    pub asked: TaskInput,
    /// What a waiting task waits for.
    pub waits: Option<WaitsFor>,
    /// When its state last changed.
    pub at: DateTime<Utc>,
}

/// Input of the user to a task that its loop does not have yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskInput {
    /// A pause, or a cancel that has not been carried out yet.
    pub request: Option<TaskRequest>,
    /// Messages for its next iteration that no loop has yet.
    pub messages: Vec<String>,
    /// The number of messages in the running attempt's spec.
    pub given: usize,
    /// Whether its next start accepts the tests as its agent left them as the original ones.
    pub accepts_test_changes: bool,
    /// Whether a person has resumed it since it ended, so that its next start resumes a finished
    /// loop.
    pub is_resumed: bool,
}

/// What the loop has to settle after a refused landing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedLanding {
    /// Why its landing sent it back to its loop, which happens once.
    pub sent_back: Option<Refusal>,
    /// The files that were in conflict, each of which must be resolved before the task lands.
    pub conflicts: Vec<String>,
    /// The landing checks that its loop also runs, because a landing sent it back.
    pub land_checks: Vec<Check>,
    /// Whether its next start gets a new number, because a landing sent it back.
    pub begins_anew: bool,
}

/// The commits of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWork {
    /// The last commit fetched from one of its attempts. A new attempt starts from it, and only it
    /// lands.
    pub commit: Option<String>,
    /// The newest commit that its attempt reported. If it differs from `commit`, it must be fetched
    /// before the task lands or gets a new number.
    pub tip: Option<String>,
    /// Whether the remote of the fleet lacks `commit`: an earlier start had another remote, or
    /// none.
    pub needs_push: bool,
    /// The base commit that the work contains, if known.
    pub stands_on: Option<String>,
}

/// The recorded text and settings of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskText {
    /// A fingerprint of its prompt, options and setup.
    pub revision: String,
    /// Its loop's agents and how they are started, which settings outside the fleet may change.
    pub agents: String,
    /// Its iteration limit, for display; 0 if there is none.
    pub max_iterations: u32,
}

/// The state of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "is")]
pub enum TaskState {
    /// No attempt works on it.
    #[default]
    Waiting,
    /// An attempt was submitted to the executor; `job` is its id, empty until it is known.
    Running { job: String, since: DateTime<Utc> },
    /// Its loop is completed, and its branch is landing or waits for its turn.
    Landing(TaskEnding),
    /// No attempt works on it until it is resumed.
    Ended(TaskEnding),
}

/// A person's request to stop a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "what")]
pub enum TaskRequest {
    /// A pause: no iteration starts until it is resumed. `now` also ends the current one.
    Pause { now: bool },
    /// A cancel: the task ends.
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
    /// A slot: as many tasks run as there are slots.
    Slot,
    /// An earlier task, which is not done yet.
    Task { task: TaskId },
    /// An earlier task, which ended without being done, or does not exist.
    Ended { task: TaskId },
    /// A running task that touches the same files, with its globs and ours.
    Files { task: TaskId, theirs: String, ours: String },
    /// Money: the rest of the fleet's is set aside for running tasks.
    Money,
    /// The end of the user's pause or cancel.
    Request { request: TaskRequest },
    /// Its file, which existed when the fleet was started.
    File,
    /// Its work, which has not been fetched from its clone yet.
    Fetch,
    /// git, the remote or the executor, which does not work.
    Trouble { why: String },
    /// The next start: the coordinator is ending because of a signal.
    Signal,
}

impl FleetRecord {
    /// Creates the record of a new fleet. `id` is random.
    pub fn begin_fleet(terms: FleetTerms, id: String, holder: Holder, now: DateTime<Utc>) -> Self {
        let mut record = Self { id, started_at: now, ..Self::default() };
        record.take_up(terms, holder);
        record
    }

    /// Adopts the terms of a later start, which lifts the request for all tasks and every pause.
    /// Nothing of the old terms is kept: a record may come from a remote that others can write. A
    /// different remote lacks the work so far.
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

    /// Forgets the processes of its attempts: another home started them, and has their clones,
    /// reports and locks.
    pub fn forget_processes(&mut self) {
        let is_local = self.is_local();
        for task in self.tasks.values_mut() {
            if let (true, TaskState::Running { job, .. }) = (is_local, &mut task.state) {
                job.clear();
            }
        }
    }

    /// Reads a record. `name` and `away` are for the error: what the record is, and how to move a
    /// broken one away.
    ///
    /// # Errors
    /// If a newer version of crew wrote it, if it is not a record, or if it has values that crew
    /// never writes: names that git would misread, paths that leave their folder.
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

    /// The task with this id.
    pub fn task(&self, id: &TaskId) -> Option<&TaskRecord> {
        self.tasks.get(id)
    }

    /// Whether its attempts are processes on this machine.
    pub fn is_local(&self) -> bool {
        self.terms.executor == LOCAL
    }

    /// The running tasks, with the numbers of their attempts.
    pub fn running_attempts(&self) -> Vec<(TaskId, u32)> {
        let running = self.tasks.iter().filter(|(_, task)| task.is_running());
        running.map(|(id, task)| (id.clone(), task.attempt)).collect()
    }

    /// The usage of all tasks.
    pub fn spent(&self) -> Usage {
        let mut spent = Usage::default();
        self.tasks.values().for_each(|task| spent.add_usage(&task.carried.usage));
        spent
    }

    /// The name of an attempt's branch.
    pub fn branch(&self, task: &TaskId, number: u32) -> String {
        task.branch_name(&self.terms.name, number)
    }

    /// A task's name with its fleet's, as a person types it.
    pub fn full_name(&self, task: &TaskId) -> String {
        format!("{}/{task}", self.terms.name)
    }

    /// The request for a task, its own or that for all tasks; a cancel takes precedence over a
    /// pause.
    pub fn request_of(&self, task: &TaskId) -> Option<&TaskRequest> {
        let own = self.tasks.get(task).and_then(|task| task.asked.request.as_ref());
        let both = [own, self.request.as_ref()].into_iter().flatten();
        both.min_by_key(|request| matches!(request, TaskRequest::Pause { .. }))
    }

    /// The ending of a task whose cancel has not been carried out yet.
    pub fn cancel_of(&self, task: &TaskId) -> Option<TaskEnding> {
        self.request_of(task)?.ending()
    }
}

impl TaskRecord {
    /// Creates a task that no attempt has worked on yet.
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

    /// Whether it neither runs, lands nor has ended.
    pub fn is_waiting(&self) -> bool {
        self.state == TaskState::Waiting
    }

    /// How it ended.
    pub fn ending(&self) -> Option<&TaskEnding> {
        if let TaskState::Ended(ending) = &self.state { Some(ending) } else { None }
    }

    /// Where its work has landed.
    pub fn landed(&self) -> Option<&Landed> {
        self.ending()?.landed.as_ref()
    }

    /// Whether it is completed, and later tasks find its work.
    pub fn is_done(&self, landing: LandingMode) -> bool {
        let is_completed = self.ending().is_some_and(TaskEnding::is_completed);
        let is_there = match landing {
            LandingMode::Main => matches!(self.landed(), Some(Landed::Main(_))),
            LandingMode::Pr | LandingMode::No => self.is_fetched(),
        };
        is_completed && is_there
    }

    /// Whether all that its attempt reported is in the repository and, if the fleet pushes, at the
    /// remote.
    pub fn is_fetched(&self) -> bool {
        (self.work.tip.is_none() || self.work.tip == self.work.commit) && !self.work.needs_push
    }

    /// The commit of completed work that the base lacks, if known.
    pub fn work_not_on_main(&self) -> Option<String> {
        let is_on_main = matches!(self.landed(), Some(Landed::Main(_)));
        if is_on_main { None } else { self.work.commit.clone() }
    }

    /// The upper bound of its cost so far, in millionths of a dollar, rounded up.
    pub fn cost(&self) -> u64 {
        self.carried.usage.cost_at_most().micros()
    }

    /// Changes its state. Releases the money set aside unless it runs, and drops its request once
    /// it has ended.
    pub fn set(&mut self, state: TaskState, now: DateTime<Utc>) {
        (self.state, self.at, self.waits) = (state, now, None);
        if !self.is_running() {
            self.reserved_micros = 0;
        }
        if self.ending().is_some() {
            self.asked.request = None;
        }
    }

    /// Queues the work that its loop has completed for landing.
    pub fn land(&mut self, ending: TaskEnding, now: DateTime<Utc>) {
        self.set(TaskState::Landing(ending.for_landing()), now);
    }

    /// How its loop ended, while its work is landing or waits for its turn.
    pub fn landing(&self) -> Option<&TaskEnding> {
        if let TaskState::Landing(ending) = &self.state { Some(ending) } else { None }
    }

    /// Resets what ended it, as when a loop is resumed. `accepts`: the tests count as original as
    /// they are now, and earlier failures of its checks no longer count.
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

    /// Sends it back to its loop, once, to settle why it did not land. Merging the base also
    /// changes tests and check configuration.
    pub fn send_back(&mut self, refusal: Refusal, now: DateTime<Utc>) {
        if let Refusal::Conflict(files) = &refusal {
            self.add_conflicts(files);
        }
        self.refused.sent_back = Some(refusal);
        self.carried.baseline = None;
        self.refused.begins_anew = true;
        self.set(TaskState::Waiting, now);
    }

    /// Adds files that were in conflict.
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
    /// Whether it also ends the current iteration.
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

    /// The ending of a cancelled task; `None` for a pause.
    pub fn ending(&self) -> Option<TaskEnding> {
        let Self::Cancel { by_agent, reason, .. } = self else { return None };
        let by = if *by_agent { Actor::Agent } else { Actor::User };
        let reason = TaskReason::Cancelled { by, reason: reason.clone() };
        Some(TaskEnding::new(Outcome::Cancelled, reason))
    }
}

/// Describes the first of these strings that is not valid.
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

/// Whether git reads it as a branch's short name, and as nothing else.
fn is_branch(text: &str) -> bool {
    is_ref_name(&format!("refs/heads/{text}")) && !text.split('/').any(|part| part.starts_with('-'))
}

/// Whether it can be an argument of an executor's command; empty if the job's id is unknown.
fn is_job(text: &str) -> bool {
    let is_short = text.chars().count() <= JOB_CHARS;
    is_short && !text.starts_with('-') && !text.contains(|c: char| c.is_control() || c == ' ')
}

#[cfg(test)]
mod tests;
