//! How a fleet is doing, as one value: how many tasks are where, what was spent, a row for each
//! task, what needs a person first, and what that person types. It reads no clock and looks at no
//! process. The page fits a screen, however many tasks there are: what has no room is left out from
//! below, and is counted.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use minijinja::{Environment, Value, context};
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr;

use super::files::FleetFiles;
use super::lines::shown;
use super::plan::FleetPlan;
use super::record::{EndReason, FleetRecord, Landed, TaskEnding, TaskRecord, TaskState, WaitsFor};
use super::spec::{AttemptPhase, AttemptReport};
use super::{attempt, store};
use crate::engine::fleet::{Carried, TaskId};
use crate::engine::record::{Outcome, Proof};
use crate::engine::text::{ago, brief, clock_time, named, quoted, start, with_reason, word};
use crate::engine::usage::Money;
use crate::engine::view::columns::{ALWAYS, CellColour, Column};
use crate::engine::view::usage;
use crate::engine::words::templates;
use crate::report::colour::{STRONG, marked, quiet, words};
use crate::report::events::SCHEMA;
use crate::report::page::{Reading, wrapped};
use crate::report::table::{self, fitting};
use crate::world::store::Home;

/// The fewest ended tasks from which the time of the others is estimated.
const ESTIMATE_LEAST: usize = 2;
/// The most rows of a group on a page, the most lines of one reason, and how many tasks that are
/// done have their names on it.
const ROWS_MAX: usize = 20;
const WHY_LINES: usize = 4;
const NAMED: usize = 8;
/// The widest column of tasks, and the columns that a row takes beside its task and its news.
const TASK_COLUMNS: usize = 24;
const BESIDE: usize = 26;
/// Below this width there is no time, cost or place.
const NARROW: usize = 60;
/// How many characters of a commit are shown.
const COMMIT_CHARS: usize = 7;

static WORDS: LazyLock<Environment<'static>> =
    LazyLock::new(|| templates::with(templates::environment(), &[("status", TEMPLATE)]));
const TEMPLATE: &str = include_str!("status.j2");

/// A fleet, as it is now.
#[derive(Debug)]
pub struct FleetStatus<'a> {
    record: &'a FleetRecord,
    pub counts: StatusCounts,
    /// Milliseconds since its start; up to its last end, once no task is open.
    elapsed_ms: u64,
    /// Milliseconds that the open tasks still need, as far as the ended ones show.
    left_ms: Option<u64>,
    /// The command for the oldest thing that needs a person, or else the one that continues.
    pub next: Option<String>,
    /// Group after group. What needs a person is sorted by its age, the oldest first; what is over
    /// the other way round.
    pub tasks: Vec<TaskStatus<'a>>,
}

/// What a person does about a task, in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusGroup {
    /// It ended undone, and not because a person ended it.
    NeedsYou,
    Running,
    Waiting,
    /// It is completed, wherever its work went.
    Done,
    Cancelled,
}

/// How many tasks are where. All but the total add up to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StatusCounts {
    pub total: usize,
    /// Completed, and on the base.
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

/// One task.
#[derive(Debug)]
pub struct TaskStatus<'a> {
    pub task: &'a TaskId,
    pub record: &'a TaskRecord,
    /// Of the attempt that runs.
    report: Option<&'a AttemptReport>,
    waits: Option<&'a WaitsFor>,
    pub group: StatusGroup,
    /// One or two words: `conflict`, `test changes`, `runs`, `waits`, `landed`.
    pub what: &'static str,
    /// Why, or what it does or waits for, in full.
    pub news: String,
    /// The iteration that runs or is next; of a task that nobody works on, the last one.
    iteration: u32,
    /// When its state changed last, or its iteration began.
    since: DateTime<Utc>,
}

/// What is known of a fleet beside its record: the reports of the attempts that run here, and what
/// every other task waits for. An attempt whose process is gone waits for the next coordinator.
pub fn look(home: &Home, record: &FleetRecord) -> (BTreeMap<TaskId, AttemptReport>, FleetPlan) {
    let files = FleetFiles::of(home, &record.terms.name);
    let is_coordinated = store::is_coordinated(home, &record.terms.name);
    let (mut reports, mut plan) = (BTreeMap::new(), FleetPlan::recorded(record, is_coordinated));
    for (id, task) in &record.tasks {
        let is_alive = || attempt::is_alive(&files, id, task.attempt);
        let is_left = match task.state {
            TaskState::Running { .. } => record.is_local() && !is_coordinated && !is_alive(),
            TaskState::Landing { .. } => !is_coordinated,
            TaskState::Waiting | TaskState::Ended(_) => false,
        };
        if is_left {
            plan.waits.insert(id.clone(), WaitsFor::Run);
        } else if task.is_running() && record.is_local() {
            let report = attempt::read_report(&files, id, task.attempt);
            reports.extend(report.map(|report| (id.clone(), report)));
        }
    }
    (reports, plan)
}

impl<'a> FleetStatus<'a> {
    /// Counts and sorts. A task that waits by the plan waits, whatever the record says.
    pub fn of(
        record: &'a FleetRecord,
        reports: &'a BTreeMap<TaskId, AttemptReport>,
        plan: &'a FleetPlan,
        now: DateTime<Utc>,
    ) -> Self {
        let row = |(id, task)| {
            let task = TaskStatus::of(id, task, reports.get(id), plan.waits.get(id));
            task.with_news(record)
        };
        let mut tasks: Vec<TaskStatus<'a>> = record.tasks.iter().map(row).collect();
        let landing = tasks.iter().filter(|row| row.what == "lands").map(|row| row.since).min();
        for row in tasks.iter_mut().filter(|row| row.what == "lands" && Some(row.since) > landing) {
            (row.group, row.what) = (StatusGroup::Waiting, "waits");
            row.news = "for its turn to land".to_owned();
        }
        tasks.sort_by_key(|row| match (row.group, row.since.timestamp_millis()) {
            (group @ StatusGroup::Waiting, _) => (group, 0),
            (group @ (StatusGroup::Done | StatusGroup::Cancelled), since) => (group, -since),
            (group, since) => (group, since),
        });
        let counts = counts(&tasks);
        let is_over = counts.running + counts.waiting == 0;
        let last_end = record.tasks.values().map(|task| task.at).max().filter(|_| is_over);
        let elapsed_ms = between(record.started_at, last_end.unwrap_or(now));
        let (left_ms, next) = (left(&tasks, now), next(record, &tasks));
        Self { record, counts, elapsed_ms, left_ms, next, tasks }
    }

    /// Whether nothing runs, and nothing would start if a coordinator had the fleet.
    pub fn is_over(&self) -> bool {
        !self.tasks.iter().any(TaskStatus::continues)
    }

    /// "$18.20 of $50.00", "unknown of $50.00"; `None` where nothing is known and nothing limits
    /// it.
    fn cost(&self) -> Option<String> {
        let (spent, most) = (self.record.spent(), self.record.terms.max_cost_micros);
        let known = spent.cost_text(most > 0);
        if most == 0 {
            return known;
        }
        let none = if spent.is_lower_bound() { "unknown" } else { "$0.00" };
        let known = known.unwrap_or_else(|| none.to_owned());
        Some(format!("{known} of {}", Money::from_micros(most)))
    }
}

/// What `crew fleet status --json` prints: every key is always there, and null where there is
/// nothing to say. The remote goes by its name: its address may hold a password.
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
            "slots": terms.slots,
            "remote": terms.remote.as_ref().map(|remote| &remote.name),
            "landing": terms.landing,
            "request": self.record.request,
            "counts": self.counts,
            "usage": usage(&self.record.spent()),
            "max_cost_usd": Money::from_micros(terms.max_cost_micros).dollars(),
            "started_at": self.record.started_at,
            "elapsed_ms": self.elapsed_ms,
            "left_ms": self.left_ms,
            "next": self.next,
            "tasks": self.tasks.iter().map(|row| row.json(self.record)).collect::<Vec<_>>(),
        });
        value.serialize(to)
    }
}

impl<'a> TaskStatus<'a> {
    fn of(
        id: &'a TaskId,
        task: &'a TaskRecord,
        report: Option<&'a AttemptReport>,
        waits: Option<&'a WaitsFor>,
    ) -> Self {
        let report = report.filter(|it| it.number == task.attempt && task.is_running());
        let waits = waits.filter(|_| task.ending().is_none());
        let phase = report.map(|report| &report.phase);
        let (group, what) = match (&task.state, waits, phase) {
            (TaskState::Ended(ending), ..) => ended(ending),
            (_, Some(WaitsFor::Request { request }), _) if request.ending().is_none() => {
                (StatusGroup::Waiting, "paused")
            }
            (TaskState::Waiting, ..) | (_, Some(_), _) => (StatusGroup::Waiting, "waits"),
            (TaskState::Landing { .. }, ..) => (StatusGroup::Running, "lands"),
            (_, _, Some(AttemptPhase::Preparing)) => (StatusGroup::Running, "prepares"),
            (_, _, Some(AttemptPhase::Queued)) => (StatusGroup::Running, "queued"),
            (_, _, Some(AttemptPhase::Waiting { .. })) => (StatusGroup::Running, "waits"),
            _ => (StatusGroup::Running, "runs"),
        };
        let since = match phase {
            Some(AttemptPhase::Running { since, .. }) => *since,
            _ => task.at,
        };
        let mut row = Self {
            task: id,
            record: task,
            report,
            waits,
            group,
            what,
            news: String::new(),
            iteration: 0,
            since,
        };
        let is_iterating = task.is_running() && group == StatusGroup::Running;
        let iteration = row.carried().completed.saturating_add(u32::from(is_iterating));
        let of = task.max_iterations;
        row.iteration = if of > 0 { iteration.min(of) } else { iteration };
        row
    }

    fn with_news(mut self, record: &FleetRecord) -> Self {
        let Some(ending) = self.record.ending() else {
            let before = match self.waits {
                Some(WaitsFor::Ended { task }) => {
                    record.task(task).and_then(|task| Some(word(&task.ending()?.outcome)))
                }
                _ => None,
            };
            self.news = render(context! {
                waits => self.waits,
                before,
                phase => self.report.map(|report| &report.phase),
                request => record.request_of(self.task),
                what => self.what,
                last => self.carried().last,
                name => record.terms.name,
                run => record.terms.run_command(),
                is_any_running => record.tasks.values().any(TaskRecord::is_running),
            });
            return self;
        };
        let why = &ending.why;
        self.news = match ending.reason {
            EndReason::Asked => quoted(why),
            // The word before it says the kind already.
            _ => {
                let rest = why.strip_prefix(self.what).and_then(|it| it.strip_prefix(": "));
                rest.unwrap_or(why).to_owned()
            }
        };
        if self.record.sent_back.is_some() && self.group == StatusGroup::NeedsYou {
            self.news += "; sent back once";
        }
        self
    }

    /// What it has used, as is known newest.
    fn carried(&self) -> &'a Carried {
        let newest = self.report.map(|report| &report.carried);
        let known = &self.record.carried;
        newest.filter(|newest| newest.completed >= known.completed).unwrap_or(known)
    }

    /// Until when it waits for the model's service.
    fn until(&self) -> Option<DateTime<Utc>> {
        match &self.report?.phase {
            AttemptPhase::Waiting { until, .. } => *until,
            _ => None,
        }
    }

    /// Whether it runs, or would start if a coordinator had the fleet.
    fn continues(&self) -> bool {
        let waits = self.waits.is_some_and(|waits| waits.passes() || *waits == WaitsFor::Run);
        self.group == StatusGroup::Running || waits
    }

    /// How it is in one line: "waits: after vat", "conflict: src/pay.rs changed on main too".
    pub fn line(&self) -> String {
        with_reason(self.what, &shown(&self.news))
    }

    fn slot(&self) -> Option<u32> {
        match &self.report?.phase {
            AttemptPhase::Running { slot, .. } => *slot,
            _ => None,
        }
    }

    fn job(&self) -> Option<&'a str> {
        match &self.record.state {
            TaskState::Running { job, .. } if !job.is_empty() => Some(job),
            _ => None,
        }
    }

    fn json(&self, record: &FleetRecord) -> Json {
        let (task, ending, carried) = (self.record, self.record.ending(), self.carried());
        let branch = (task.attempt > 0).then(|| record.branch(self.task, task.attempt));
        json!({
            "task": self.task,
            "group": self.group,
            "what": self.what,
            "why": self.news,
            "waits": self.waits,
            "until": self.until(),
            "since": self.since,
            "outcome": ending.map(|it| it.outcome),
            "reason": ending.map(|it| it.reason),
            "proof": ending.and_then(|it| it.proof),
            "landed": task.landed(),
            "was_sent_back": task.sent_back.is_some(),
            "attempt": task.attempt,
            "branch": branch,
            "commit": task.commit,
            "loop": task.loop_id,
            "host": self.report.map(|it| &it.host),
            "job": self.job(),
            "slot": self.slot(),
            "iteration": self.iteration,
            "max_iterations": task.max_iterations,
            "last": carried.last,
            "revision": task.revision,
            "elapsed_ms": carried.awake_ms,
            "usage": usage(&carried.usage),
            "reserved_usd": Money::from_micros(task.reserved_micros).dollars(),
        })
    }
}

fn render(values: Value) -> String {
    let text = WORDS.get_template("status").and_then(|template| template.render(values));
    text.map_or_else(|error| format!("{error:#}"), |text| text.trim_end().to_owned())
}

/// The group of a task that ended so, and the word for it.
fn ended(ending: &TaskEnding) -> (StatusGroup, &'static str) {
    let group = match ending.outcome {
        Outcome::Completed => StatusGroup::Done,
        Outcome::Cancelled => StatusGroup::Cancelled,
        _ => StatusGroup::NeedsYou,
    };
    let what = match (group, &ending.landed, ending.reason) {
        (StatusGroup::Done, Some(Landed::Main(_)), _) => "landed",
        (StatusGroup::Done, Some(Landed::Request(_)), _) => "requested",
        (StatusGroup::NeedsYou, _, EndReason::TestChanges) => "test changes",
        (StatusGroup::NeedsYou, _, EndReason::Conflict) => "conflict",
        (StatusGroup::NeedsYou, _, EndReason::Red) => "red",
        (StatusGroup::NeedsYou, _, EndReason::Landing) => "not landed",
        _ => ending.outcome.label(),
    };
    (group, what)
}

fn counts(tasks: &[TaskStatus<'_>]) -> StatusCounts {
    let mut counts = StatusCounts { total: tasks.len(), ..StatusCounts::default() };
    for row in tasks {
        *match (row.group, row.record.landed()) {
            (StatusGroup::NeedsYou, _) => &mut counts.needs_you,
            (StatusGroup::Running, _) => &mut counts.running,
            (StatusGroup::Waiting, _) => &mut counts.waiting,
            (StatusGroup::Cancelled, _) => &mut counts.cancelled,
            (StatusGroup::Done, Some(Landed::Main(_))) => &mut counts.landed,
            (StatusGroup::Done, Some(Landed::Request(_))) => &mut counts.requested,
            (StatusGroup::Done, None) => &mut counts.completed,
        } += 1;
    }
    counts
}

/// The work that is left, shared by the tasks that run: each needs as long as the ended ones did on
/// average. One that waits for a person is not counted, as nobody knows when it starts.
fn left(tasks: &[TaskStatus<'_>], now: DateTime<Utc>) -> Option<u64> {
    let used = |row: &TaskStatus<'_>| row.carried().awake_ms;
    let is_over = |row: &&TaskStatus<'_>| row.record.ending().is_some() && used(row) > 0;
    let worked: Vec<u64> = tasks.iter().filter(is_over).map(used).collect();
    let running = tasks.iter().filter(|row| row.group == StatusGroup::Running).count() as u64;
    if worked.len() < ESTIMATE_LEAST || running == 0 {
        return None;
    }
    let mean = worked.iter().copied().fold(0, u64::saturating_add) / worked.len() as u64;
    let is_next = |row: &TaskStatus<'_>| {
        matches!(row.waits, Some(WaitsFor::Task { .. } | WaitsFor::Money)) || row.continues()
    };
    let needs = |row: &TaskStatus<'_>| {
        let now = if row.what == "runs" { between(row.since, now) } else { 0 };
        mean.saturating_sub(used(row).saturating_add(now))
    };
    let open = tasks.iter().filter(|row| is_next(row)).map(needs);
    Some(open.fold(0, u64::saturating_add) / running).filter(|left| *left > 0)
}

/// Milliseconds; none where a clock went backwards.
fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> u64 {
    u64::try_from((to - from).num_milliseconds()).unwrap_or_default()
}

/// What needs a person is looked at before anything else spends more on it; what was interrupted
/// only has to continue.
fn next(record: &FleetRecord, tasks: &[TaskStatus<'_>]) -> Option<String> {
    let (name, run) = (&record.terms.name, record.terms.run_command());
    let needs = || tasks.iter().filter(|row| row.group == StatusGroup::NeedsYou);
    let is_to_read = |row: &&TaskStatus<'_>| row.what != Outcome::Interrupted.label();
    if let Some(row) = needs().find(is_to_read) {
        return Some(format!("crew show {name}/{}", row.task));
    }
    if let Some(row) = needs().next() {
        return Some(format!("crew resume {name}/{}", row.task));
    }
    if tasks.iter().any(|row| row.waits == Some(&WaitsFor::Run)) {
        return Some(run);
    }
    if tasks.iter().any(|row| row.what == "paused") {
        return Some(format!("crew resume {name}"));
    }
    if tasks.iter().any(TaskStatus::continues) {
        return None;
    }
    tasks.iter().find_map(|row| match row.waits {
        Some(WaitsFor::Ended { task }) => Some(format!("crew resume {name}/{task}")),
        Some(WaitsFor::Money) => Some(format!("{run} --max-cost MORE")),
        _ => None,
    })
}

// The page: the whole fleet in the first lines, then its tasks, and the next command.

impl FleetStatus<'_> {
    /// The page, in at most `rows` lines where a screen has no more; `remark` is the last line.
    pub fn page(&self, at: Reading, rows: Option<usize>, remark: Option<&str>) -> Vec<String> {
        let most = rows.unwrap_or(usize::MAX);
        let labelled = |name: &str, value: &str| {
            format!("  {} {}", quiet(&format!("{name:<9}")), shown(value))
        };
        let end = self.next.iter().map(|next| labelled("next", next));
        let end: Vec<String> = end.chain(remark.map(|remark| labelled("note", remark))).collect();
        let mut lines = self.head(at.width);
        for tasks in self.tasks.chunk_by(|one, other| one.group == other.group) {
            let room = most.saturating_sub(lines.len() + end.len() + 2);
            let block = match tasks[0].group {
                StatusGroup::Done => self.done(tasks),
                _ => table(tasks, at, room.min(ROWS_MAX)),
            };
            if room > 0 {
                lines.push(String::new());
                lines.extend(block.into_iter().take(room));
            }
        }
        if !end.is_empty() {
            lines.push(String::new());
            lines.extend(end);
        }
        lines.iter().take(most).map(|line| fitting(line, at.width)).collect()
    }

    /// "fleet shop: 12 of 20 landed · 4 run · 1 needs you", and below it the money and the time.
    fn head(&self, width: usize) -> Vec<String> {
        let StatusCounts { running, waiting, .. } = self.counts;
        let asked = match &self.record.request {
            Some(request) if request.ending().is_some() => ", cancelled",
            Some(_) => ", paused",
            None => "",
        };
        let counts =
            render(context! { counts => self.counts, landing => self.record.terms.landing });
        let counts = counts.lines().collect::<Vec<_>>().join(" · ");
        let name = shown(&self.record.terms.name);
        let first = format!("fleet {name}{asked}: {counts}");
        // Nights between two runs count, so it is not the time of work.
        let elapsed = match brief(self.elapsed_ms) {
            all if running + waiting == 0 => all,
            so_far => format!("begun {so_far} ago"),
        };
        let minutes = |ms: u64| brief(ms.next_multiple_of(60_000));
        let left = self.left_ms.map(|ms| format!("about {} left", minutes(ms)));
        let used = [self.cost(), Some(elapsed), left].into_iter().flatten();
        let used = format!("  {}", used.collect::<Vec<_>>().join(" · "));
        let first = words(&wrapped(&first, width, usize::MAX).join("\n"));
        let first = first.replacen(&name, &marked(STRONG, &name), 1);
        first.lines().map(str::to_owned).chain([used]).collect()
    }

    /// "landed    main 4f2c9d1: user-model, addresses and 8 more": what ended so, and where the
    /// newest of it is.
    fn done(&self, tasks: &[TaskStatus<'_>]) -> Vec<String> {
        let mut tasks: Vec<&TaskStatus<'_>> = tasks.iter().collect();
        tasks.sort_by_key(|row| row.what);
        let line = |rows: &[&TaskStatus<'_>]| {
            let terms = &self.record.terms;
            let place = match rows[0].record.landed() {
                Some(Landed::Main(commit)) => {
                    let commit = commit.as_deref().unwrap_or_default();
                    format!("{} {}", shown(&terms.base), start(commit, COMMIT_CHARS))
                }
                _ => format!("crew/{}/*", terms.name),
            };
            let name = |row: &&TaskStatus<'_>| {
                let proof = row.record.ending().and_then(|ending| ending.proof);
                let is_claimed = proof == Some(Proof::Claimed);
                format!("{}{}", row.task, if is_claimed { " (claimed)" } else { "" })
            };
            let names: Vec<String> = rows.iter().map(name).collect();
            let what = words(&format!("{:<9}", rows[0].what));
            format!("  {what} {}: {}", place.trim_end(), named(&names, NAMED))
        };
        tasks.chunk_by(|one, other| one.what == other.what).map(line).collect()
    }
}

/// Rows in columns. A reason that has no room there is written in full below its row.
fn table(tasks: &[TaskStatus<'_>], at: Reading, most: usize) -> Vec<String> {
    let width = at.width.saturating_sub(2);
    let widest = tasks.iter().map(|row| row.task.as_str().width()).max().unwrap_or_default();
    let task = widest.min(TASK_COLUMNS).min(width / 3);
    let is_ended = matches!(tasks[0].group, StatusGroup::NeedsYou | StatusGroup::Cancelled);
    let room = width.saturating_sub(task + BESIDE);
    let is_below = |row: &TaskStatus<'_>| is_ended && shown(&row.news).width() > room;
    let columns = [
        Column::text(ALWAYS, task),
        Column::text(ALWAYS, 12).coloured(CellColour::Words),
        Column::number(ALWAYS, 8),
        Column::number(ALWAYS, 8),
        Column::number(ALWAYS, 8),
        Column::rest(ALWAYS, 8),
        Column::text(0, 20),
    ];
    let shown_rows = &tasks[..tasks.len().min(most)];
    let rows =
        table::lines(columns, shown_rows.iter().map(|row| cells(row, at, is_below(row))), width);
    let (mut lines, mut kept) = (Vec::new(), 0);
    for (row, line) in shown_rows.iter().zip(rows) {
        let mut block = vec![format!("  {line}")];
        if is_below(row) {
            let why = wrapped(&shown(&row.news), width.saturating_sub(4), WHY_LINES);
            block.extend(why.iter().map(|line| format!("      {line}")));
        }
        // The last line says how many are left out.
        if lines.len() + block.len() + usize::from(kept + 1 < tasks.len()) > most {
            break;
        }
        lines.extend(block);
        kept += 1;
    }
    if kept < tasks.len() {
        lines.push(format!("  … {} more", tasks.len() - kept));
    }
    lines
}

fn cells(row: &TaskStatus<'_>, at: Reading, has_news_below: bool) -> [String; 7] {
    let until = row.until().map(|until| format!("until {}: ", clock_time(until, at.clock())));
    let news = if has_news_below { String::new() } else { shown(&row.news) };
    let news = until.unwrap_or_default() + &news;
    let [mut count, mut when, mut cost, mut place] = [const { String::new() }; 4];
    let since = (at.now - row.since).num_milliseconds();
    match row.group {
        StatusGroup::Waiting | StatusGroup::Done => {}
        _ if at.width < NARROW => {}
        StatusGroup::Running => {
            count = match row.record.max_iterations {
                0 => row.iteration.to_string(),
                of => format!("{}/{of}", row.iteration),
            };
            when = brief(u64::try_from(since).unwrap_or_default());
            cost = row.carried().usage.cost_text(false).unwrap_or_default();
            let slot = row.slot().map(|slot| format!("slot {slot}"));
            place = slot.or_else(|| Some(shown(&row.report?.host))).unwrap_or_default();
        }
        StatusGroup::NeedsYou | StatusGroup::Cancelled => when = ago(since),
    }
    [row.task.to_string(), row.what.to_owned(), count, when, cost, news, place]
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
