//! The status of a fleet as one value: task counts, money spent, a row for each task, what needs a
//! person first, and the command for it. The page fits a screen, however many tasks there are: rows
//! without room are left out from the bottom, and counted.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use minijinja::{Environment, Value, context};
use serde::{Serialize, Serializer};
use serde_json::json;

mod page;

use super::files::FleetFiles;
use super::plan::FleetPlan;
use super::record::{
    FleetLimits, FleetRecord, FleetTerms, Landed, TaskEndKind, TaskEnding, TaskRecord, TaskState,
    WaitsFor,
};
use super::spec::{AttemptPhase, AttemptReport};
use super::step::lines::show_text;
use super::{attempt, store};
use crate::report::events::SCHEMA;
use engine::fleet::TaskId;
use engine::record::{LoopId, Outcome, Proof};
use engine::text::templates;
use engine::text::{variant_name, with_reason};
use engine::usage::{Money, Usage};
use engine::view::usage_value;
use world::clock;
use world::store::Home;

/// The minimum number of ended tasks for an estimate of the remaining time.
const ESTIMATE_LEAST: usize = 2;
/// The names of the task counts; completed tasks are split by where their work is.
const COUNTED: [&str; 8] =
    ["total", "landed", "requested", "completed", "running", "waiting", "needs_you", "cancelled"];

static WORDS: LazyLock<Environment<'static>> = LazyLock::new(|| {
    templates::add_templates(templates::new_environment(), &[("status", TEMPLATE)])
});
const TEMPLATE: &str = include_str!("status.j2");

/// The present state of a fleet.
#[derive(Debug)]
pub struct FleetStatus<'a> {
    record: &'a FleetRecord,
    /// The number of tasks by each word of [`COUNTED`]; all others add up to the total.
    counts: BTreeMap<&'static str, usize>,
    /// Milliseconds since its start, up to its last end once no task is open.
    elapsed_ms: u64,
    /// Milliseconds that the open tasks still need, estimated from the ended ones.
    left_ms: Option<u64>,
    /// The command for the oldest thing that needs a person, otherwise the one that continues the
    /// fleet.
    next: Option<String>,
    /// The tasks, sorted by group. Tasks that need a person are sorted by age, the oldest first;
    /// tasks that have ended, the newest first.
    tasks: Vec<TaskStatus<'a>>,
}

/// The groups of tasks on the page, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusGroup {
    /// Ended without being done, and not because a person cancelled it.
    NeedsYou,
    Running,
    Waiting,
    /// Completed, wherever its work is.
    Done,
    Cancelled,
}

/// What a task is doing, or how it ended, in one or two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TaskWord {
    Paused,
    Waits,
    Lands,
    Prepares,
    Queued,
    Runs,
    Ended(&'static str),
}

impl TaskWord {
    fn column_label(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Waits => "waits",
            Self::Lands => "lands",
            Self::Prepares => "prepares",
            Self::Queued => "queued",
            Self::Runs => "runs",
            Self::Ended(word) => word,
        }
    }
}

impl Serialize for TaskWord {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.column_label().serialize(to)
    }
}

/// The status of one task: a row of the page, and an object of `--json`. Every key is always
/// present, and null if there is nothing to say.
#[derive(Debug, Serialize)]
struct TaskStatus<'a> {
    task: &'a TaskId,
    group: StatusGroup,
    /// The state in one or two words: `conflict`, `test changes`, `runs`, `waits`, `landed`.
    what: TaskWord,
    /// The full reason, or what it does or waits for.
    #[serde(rename = "why")]
    news: String,
    waits: Option<WaitsFor>,
    /// When its wait for the model's service ends; `None` if it does not wait.
    until: Option<DateTime<Utc>>,
    /// When its state last changed, or its iteration began.
    since: DateTime<Utc>,
    #[serde(flatten)]
    end: EndStatus<'a>,
    #[serde(flatten)]
    work: WorkStatus<'a>,
    #[serde(flatten)]
    place: PlaceStatus<'a>,
    #[serde(flatten)]
    progress: TaskProgress<'a>,
}

/// The progress of a task.
#[derive(Debug, Serialize)]
struct TaskProgress<'a> {
    /// The current or next iteration; the last one for a task that nothing works on.
    iteration: u32,
    max_iterations: u32,
    last: String,
    revision: &'a str,
    elapsed_ms: u64,
    #[serde(serialize_with = "usage_json")]
    usage: Usage,
    reserved_usd: f64,
}

/// Where the loop of a task runs.
#[derive(Debug, Serialize)]
struct PlaceStatus<'a> {
    #[serde(rename = "loop")]
    loop_id: Option<&'a LoopId>,
    host: Option<String>,
    job: Option<&'a str>,
    slot: Option<u32>,
}

/// Where the work of a task is.
#[derive(Debug, Serialize)]
struct WorkStatus<'a> {
    attempt: u32,
    branch: Option<String>,
    commit: Option<&'a str>,
    /// Whether its attempt has reported commits that have not been fetched or pushed yet.
    is_behind: bool,
}

/// How a task ended.
#[derive(Debug, Serialize)]
struct EndStatus<'a> {
    outcome: Option<Outcome>,
    reason: Option<TaskEndKind>,
    proof: Option<Proof>,
    landed: Option<&'a Landed>,
    was_sent_back: bool,
}

fn usage_json<S: Serializer>(used: &Usage, to: S) -> Result<S::Ok, S::Error> {
    usage_value(used).serialize(to)
}

impl<'a> FleetStatus<'a> {
    /// Reads the current status of a fleet on this machine, including the reports of attempts
    /// running here. An attempt whose process is gone waits for the next coordinator.
    pub fn read_status(home: &Home, record: &'a FleetRecord) -> Self {
        let files = FleetFiles::new(home, &record.terms.name);
        let is_coordinated = store::is_coordinated(home, &record.terms.name);
        let mut plan = FleetPlan::from_record(record, is_coordinated);
        let mut reports = BTreeMap::new();
        for (id, task) in &record.tasks {
            let is_here = task.is_running() && record.is_local();
            let is_alone = !is_coordinated && (task.landing().is_some() || is_here);
            if is_alone && !(is_here && attempt::is_alive(&files, id, task.attempt)) {
                plan.waits.insert(id.clone(), WaitsFor::Run);
            } else if is_here {
                let report = attempt::read_report(&files, id, task.attempt);
                reports.extend(report.map(|report| (id.clone(), report)));
            }
        }
        Self::from_plan(record, &reports, &plan, clock::now().wall)
    }

    /// Counts and sorts the tasks. The plan overrides the record for waiting tasks.
    fn from_plan(
        record: &'a FleetRecord,
        reports: &BTreeMap<TaskId, AttemptReport>,
        plan: &FleetPlan,
        now: DateTime<Utc>,
    ) -> Self {
        let ids = record.tasks.keys();
        let rows =
            ids.filter_map(|id| TaskStatus::new(record, id, reports.get(id), plan.waits.get(id)));
        let mut tasks: Vec<TaskStatus<'a>> = rows.collect();
        let landing = tasks.iter().filter(|row| row.what == TaskWord::Lands);
        let landing = landing.map(|row| row.since).min();
        for row in &mut tasks {
            if row.what != TaskWord::Lands || Some(row.since) <= landing {
                continue;
            }
            (row.group, row.what) = (StatusGroup::Waiting, TaskWord::Waits);
            "for its turn to land".clone_into(&mut row.news);
        }
        tasks.sort_by_key(|row| match (row.group, row.since.timestamp_millis()) {
            (group @ StatusGroup::Waiting, _) => (group, 0),
            (group @ (StatusGroup::Done | StatusGroup::Cancelled), since) => (group, -since),
            (group, since) => (group, since),
        });
        let mut counts = BTreeMap::from(COUNTED.map(|word| (word, 0)));
        for row in &tasks {
            let is_done = row.group == StatusGroup::Done;
            let word = if is_done { row.what.column_label() } else { variant_name(&row.group) };
            for word in ["total", word] {
                *counts.entry(word).or_default() += 1;
            }
        }
        let is_over = counts["running"] + counts["waiting"] == 0;
        let last_end = record.tasks.values().map(|task| task.at).max().unwrap_or(now);
        let elapsed_ms = ms_between(record.started_at, if is_over { last_end } else { now });
        let (left_ms, next) = (remaining_ms(&tasks, now), next(record, &tasks));
        Self { record, counts, elapsed_ms, left_ms, next, tasks }
    }

    /// Whether nothing runs, and nothing would start under a coordinator.
    pub fn is_over(&self) -> bool {
        !self.tasks.iter().any(TaskStatus::continues)
    }

    /// Keeps only the row of this task.
    pub fn with_only(mut self, id: &TaskId) -> Self {
        self.tasks.retain(|row| row.task == id);
        self
    }

    /// The status of a task on one line: "waits: after vat", "conflict: src/pay.rs changed on main
    /// too".
    pub fn line_of(&self, id: &TaskId) -> String {
        let row = self.tasks.iter().find(|row| row.task == id);
        row.map_or_else(String::new, |row| {
            with_reason(row.what.column_label(), &show_text(&row.news))
        })
    }
}

/// Serializes what `crew fleet status --json` prints. Every key is always present, and null if
/// there is nothing to say. The remote is given by name, because its address may contain a
/// password.
impl Serialize for FleetStatus<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let terms = &self.record.terms;
        let value = json!({
            "schema": SCHEMA,
            "fleet": terms.name,
            "repository": terms.repository,
            "folder": terms.folder,
            "base": terms.base,
            "executor": terms.executor,
            "slots": terms.limits.slots,
            "remote": terms.remote.as_ref().map(|remote| &remote.name),
            "landing": terms.landing,
            "request": self.record.request,
            "counts": self.counts,
            "usage": usage_value(&self.record.spent()),
            "max_cost_usd": Money::from_micros(terms.limits.max_cost_micros).dollars(),
            "started_at": self.record.started_at,
            "elapsed_ms": self.elapsed_ms,
            "left_ms": self.left_ms,
            "next": self.next,
            "tasks": self.tasks,
        });
        value.serialize(to)
    }
}

impl<'a> EndStatus<'a> {
    fn of_task(task: &'a TaskRecord) -> Self {
        let ending = task.ending();
        Self {
            outcome: ending.map(|ending| ending.outcome),
            reason: ending.map(|ending| ending.reason.kind()),
            proof: ending.and_then(|ending| ending.proof),
            landed: task.landed(),
            was_sent_back: task.refused.sent_back.is_some(),
        }
    }
}

impl<'a> TaskStatus<'a> {
    fn new(
        record: &'a FleetRecord,
        id: &'a TaskId,
        report: Option<&AttemptReport>,
        waits: Option<&WaitsFor>,
    ) -> Option<Self> {
        let task = record.task(id)?;
        let report = report.filter(|report| report.number == task.attempt && task.is_running());
        let (ending, is_behind) = (task.ending(), !task.is_fetched());
        let waits = match waits {
            _ if ending.is_some() => None,
            None if task.landing().is_some() && is_behind => Some(&WaitsFor::Fetch),
            waits => waits,
        };
        let phase = report.map(|report| &report.phase);
        let (group, what) = match task.ending() {
            Some(ending) => ended_group(ending),
            None => phase_words(task, waits, phase),
        };
        let (slot, since, until) = match phase {
            Some(AttemptPhase::Running { slot, since }) => (*slot, *since, None),
            Some(AttemptPhase::Waiting { until, .. }) => (None, task.at, *until),
            _ => (None, task.at, None),
        };
        let newest = report.map(|report| &report.carried);
        let newest = newest.filter(|newest| newest.completed >= task.carried.completed);
        let carried = newest.unwrap_or(&task.carried);
        let is_iterating = task.is_running() && group == StatusGroup::Running;
        let iteration = carried.completed.saturating_add(u32::from(is_iterating));
        let most = if task.text.max_iterations > 0 { task.text.max_iterations } else { u32::MAX };
        let job = if let TaskState::Running { job, .. } = &task.state { &**job } else { "" };
        let mut row = Self {
            task: id,
            group,
            what,
            news: String::new(),
            waits: waits.cloned(),
            until,
            since,
            end: EndStatus::of_task(task),
            work: WorkStatus {
                attempt: task.attempt,
                branch: Some(task.attempt)
                    .filter(|number| *number > 0)
                    .map(|number| record.branch(id, number)),
                commit: task.work.commit.as_deref(),
                is_behind,
            },
            place: PlaceStatus {
                loop_id: task.loop_id.as_ref(),
                host: report.map(|report| report.host.clone()),
                job: Some(job).filter(|job| !job.is_empty()),
                slot,
            },
            progress: TaskProgress {
                iteration: iteration.min(most),
                max_iterations: task.text.max_iterations,
                last: carried.last.clone(),
                revision: &task.text.revision,
                elapsed_ms: carried.awake_ms,
                usage: carried.usage.clone(),
                reserved_usd: Money::from_micros(task.reserved_micros).dollars(),
            },
        };
        row.news = row.task_news(record, phase);
        Some(row)
    }

    fn task_news(&self, record: &FleetRecord, phase: Option<&AttemptPhase>) -> String {
        let ending_of = |task| record.task(task).and_then(TaskRecord::ending);
        let before = match &self.waits {
            Some(WaitsFor::Ended { task }) => {
                ending_of(task).map(|ending| variant_name(&ending.outcome))
            }
            _ => None,
        };
        // The word before it already says the kind.
        let why = ending_of(self.task).map(|ending| ending.reason.without_its_kind());
        let news = render_template(context! {
            row => self, phase, before, why,
            request => record.request_of(self.task),
            paused => resume_command(record, self.task),
            lacks => missing_step(record),
            run => record.terms.run_command(),
            is_any_running => record.tasks.values().any(TaskRecord::is_running),
        });
        match self.waits {
            Some(WaitsFor::Fetch) => news,
            _ if self.work.is_behind => {
                format!("{news} · its newest commit is not {} yet", missing_step(record))
            }
            _ => news,
        }
    }

    /// Whether it runs, or would start under a coordinator.
    fn continues(&self) -> bool {
        let waits =
            self.waits.as_ref().is_some_and(|wait| wait.ends_by_itself() || *wait == WaitsFor::Run);
        self.group == StatusGroup::Running || waits
    }

    /// The command that a person types for this task, and its rank among those of all tasks, lowest
    /// first; `None` if it needs no person.
    fn next(&self, record: &FleetRecord) -> Option<(u8, Option<String>)> {
        let (task, FleetRecord { terms, .. }) = (self.task, record);
        let resume = |task| Some(format!("crew resume {}", record.full_name(task)));
        let is_answered = record.task(task).is_some_and(|task| !task.asked.messages.is_empty());
        Some(match (self.group, &self.waits) {
            // An interrupted task only has to continue.
            (StatusGroup::NeedsYou, _)
                if is_answered || self.end.outcome == Some(Outcome::Interrupted) =>
            {
                (1, resume(task))
            }
            (StatusGroup::NeedsYou, _) => {
                (0, Some(format!("crew show {}", record.full_name(task))))
            }
            (_, Some(waits)) if *waits == WaitsFor::Run || waits.is_cancel() => {
                (2, Some(terms.run_command()))
            }
            _ if self.what == TaskWord::Paused => (3, Some(resume_command(record, task))),
            _ if self.continues() => (4, None),
            (_, Some(WaitsFor::Ended { task })) => (5, resume(task)),
            (_, Some(WaitsFor::Money)) => {
                let run = FleetTerms {
                    limits: FleetLimits { typed_max_cost_micros: None, ..terms.limits.clone() },
                    ..terms.clone()
                }
                .run_command();
                (5, Some(format!("{run} --max-cost MORE")))
            }
            _ => return None,
        })
    }
}

fn render_template(values: Value) -> String {
    let text = WORDS.get_template("status").and_then(|template| template.render(values));
    text.map_or_else(|error| format!("{error:#}"), |text| text.trim_end().to_owned())
}

/// The command that ends the pause of a task or of its whole fleet.
fn resume_command(record: &FleetRecord, task: &TaskId) -> String {
    let is_alone = record.request.is_none();
    let name = if is_alone { record.full_name(task) } else { record.terms.name.clone() };
    format!("crew resume {name}")
}

/// The group of a task that has not ended, and the word for it.
fn phase_words(
    task: &TaskRecord,
    waits: Option<&WaitsFor>,
    phase: Option<&AttemptPhase>,
) -> (StatusGroup, TaskWord) {
    match (waits, phase) {
        (Some(WaitsFor::Request { request }), _) if !request.is_cancel() => {
            (StatusGroup::Waiting, TaskWord::Paused)
        }
        (Some(WaitsFor::Run), _) if task.asked.request.is_some() => {
            (StatusGroup::Waiting, TaskWord::Paused)
        }
        (Some(_), _) => (StatusGroup::Waiting, TaskWord::Waits),
        _ if task.is_waiting() => (StatusGroup::Waiting, TaskWord::Waits),
        _ if task.landing().is_some() => (StatusGroup::Running, TaskWord::Lands),
        (_, Some(AttemptPhase::Preparing)) => (StatusGroup::Running, TaskWord::Prepares),
        (_, Some(AttemptPhase::Queued)) => (StatusGroup::Running, TaskWord::Queued),
        (_, Some(AttemptPhase::Waiting { .. })) => (StatusGroup::Running, TaskWord::Waits),
        _ => (StatusGroup::Running, TaskWord::Runs),
    }
}

/// The next step for reported work that is not fetched or pushed yet.
fn missing_step(record: &FleetRecord) -> &'static str {
    if record.is_local() && record.terms.remote.is_some() { "pushed" } else { "fetched" }
}

/// The group of a task with this ending, and the word for it.
fn ended_group(ending: &TaskEnding) -> (StatusGroup, TaskWord) {
    let (group, word) = match (ending.outcome, &ending.landed, ending.reason.kind()) {
        (Outcome::Completed, Some(Landed::Main(_)), _) => (StatusGroup::Done, "landed"),
        (Outcome::Completed, Some(Landed::Request(_)), _) => (StatusGroup::Done, "requested"),
        (Outcome::Completed, None, _) => (StatusGroup::Done, "completed"),
        (Outcome::Cancelled, ..) => (StatusGroup::Cancelled, "cancelled"),
        (_, _, TaskEndKind::TestChanges) => (StatusGroup::NeedsYou, "test changes"),
        (_, _, TaskEndKind::Conflict) => (StatusGroup::NeedsYou, "conflict"),
        (_, _, TaskEndKind::Red) => (StatusGroup::NeedsYou, "red"),
        (_, _, TaskEndKind::Landing) => (StatusGroup::NeedsYou, "not landed"),
        (outcome, ..) => (StatusGroup::NeedsYou, outcome.label()),
    };
    (group, TaskWord::Ended(word))
}

/// The remaining time, shared by the running tasks: each open task takes as long as the ended ones
/// did on average. A task that waits for a person is not counted, because it is unknown when it
/// starts.
fn remaining_ms(tasks: &[TaskStatus<'_>], now: DateTime<Utc>) -> Option<u64> {
    let over = tasks.iter().filter(|row| row.end.outcome.is_some() && row.progress.elapsed_ms > 0);
    let worked: Vec<u64> = over.map(|row| row.progress.elapsed_ms).collect();
    let running = tasks.iter().filter(|row| row.group == StatusGroup::Running).count() as u64;
    if worked.len() < ESTIMATE_LEAST || running == 0 {
        return None;
    }
    let mean = worked.iter().copied().fold(0, u64::saturating_add) / worked.len() as u64;
    let mut left: u64 = 0;
    for row in tasks {
        let waits = matches!(row.waits, Some(WaitsFor::Task { .. } | WaitsFor::Money));
        if waits || row.continues() {
            let now = if row.what == TaskWord::Runs { ms_between(row.since, now) } else { 0 };
            let used = row.progress.elapsed_ms.saturating_add(now);
            left = left.saturating_add(mean.saturating_sub(used));
        }
    }
    Some(left / running).filter(|left| *left > 0)
}

/// Milliseconds between two times; 0 if a clock went backwards.
fn ms_between(from: DateTime<Utc>, to: DateTime<Utc>) -> u64 {
    u64::try_from((to - from).num_milliseconds()).unwrap_or_default()
}

/// The next command: what needs a person comes first, before anything else costs more.
fn next(record: &FleetRecord, tasks: &[TaskStatus<'_>]) -> Option<String> {
    let commands = tasks.iter().filter_map(|row| row.next(record));
    commands.min_by_key(|(later, _)| *later)?.1
}

#[cfg(test)]
mod tests;
