//! How a fleet stands, as one value: how many tasks are where, what was spent, a row for each task,
//! what needs a person first, and what that person types. It reads no clock, and looks at no
//! process: an attempt runs as long as its lease says so.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::lease::{ASKED, JobPhase, Landed, Lease, TaskEnding, TaskState};
use super::manifest::{Fleet, FleetRequest, LandingMode, TaskId, UnreadableLease};
use super::plan::{FleetPlan, WaitsFor};
use crate::engine::boundary::decide::INCURABLE;
use crate::engine::record::{Outcome, fleet_run};
use crate::engine::usage::{Money, Usage};
use crate::engine::view::Step;

/// How the reason begins where a landing was refused, and the word for it.
pub const LANDING_REFUSALS: [(&str, &str); 3] =
    [("conflict: ", "conflict"), ("red: ", "red"), ("tasks folder: ", "folder")];
/// The fewest ended tasks from which the time of the others is estimated.
const ESTIMATE_LEAST: usize = 2;

/// How a fleet stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing<'a> {
    pub name: String,
    /// The branch that tasks start from and land on.
    pub base: String,
    pub landing: LandingMode,
    /// What a person ordered for all tasks.
    pub order: Option<FleetRequest>,
    pub counts: StandingCounts,
    pub spent: Usage,
    /// What all tasks together may cost; nothing without a limit.
    pub max_cost: Money,
    /// Milliseconds since its start; up to its last end, once no task is open.
    pub elapsed_ms: u64,
    /// Milliseconds that the open tasks still need, as far as the ended ones tell.
    pub left_ms: Option<u64>,
    /// A row for each task, group after group. What needs a person stands by its age, the oldest
    /// first; what is over the other way round.
    pub rows: Vec<StandingRow<'a>>,
    /// The command for the oldest thing that needs a person, or else the one that continues.
    pub next: Option<String>,
}

impl<'a> Standing<'a> {
    /// Counts and sorts; `leases` are in the order in which they start. A task whose lease cannot
    /// be read needs a person, before all others.
    pub fn of(
        fleet: &Fleet,
        leases: &'a [Lease],
        unreadable: &'a [UnreadableLease],
        plan: &FleetPlan,
        now: DateTime<Utc>,
    ) -> Self {
        let mut sorted: Vec<&Lease> = leases.iter().collect();
        sorted.sort_by_key(|lease| (group(lease), place(lease)));
        let unreadable = unreadable.iter().map(row_without_a_lease);
        let readable = sorted.into_iter().map(|lease| row(fleet, lease, plan, now));
        let rows: Vec<StandingRow> = unreadable.chain(readable).collect();
        let counts = counts(&rows);
        let is_over = counts.running + counts.waiting == 0;
        let last_end = leases.iter().map(|lease| lease.at).max().filter(|_| is_over);
        let mut spent = Usage::default();
        for lease in leases {
            spent.add(&lease.carried.usage);
        }
        Self {
            name: fleet.name.clone(),
            base: fleet.base.clone(),
            landing: fleet.landing,
            order: fleet.order.as_ref().map(|order| order.what),
            counts,
            spent,
            max_cost: Money::from_micros(fleet.max_cost_micros),
            elapsed_ms: between(fleet.started_at, last_end.unwrap_or(now)),
            left_ms: left(leases, plan, now),
            next: next(fleet, &rows),
            rows,
        }
    }

    /// Whether nothing runs, and nothing would start if a crew ran the fleet.
    pub fn is_over(&self) -> bool {
        !self.rows.iter().any(goes_on)
    }

    /// The row of a task; `None` if there is no such task.
    pub fn row_of(&self, task: &TaskId) -> Option<&StandingRow<'a>> {
        self.rows.iter().find(|row| row.task == task)
    }
}

/// The word for an end, and what is to be said of it.
pub fn end_of(ending: &TaskEnding) -> (&'static str, Option<StandingNews>) {
    let (word, why) = (ending.outcome.label(), ending.why.as_str());
    let (word, why) = match (ending.outcome, &ending.landed) {
        (Outcome::Completed, Some(Landed::Main(_))) => return ("landed", None),
        (Outcome::Completed, Some(Landed::Request(_))) => return ("requested", None),
        (Outcome::Completed, None) => return (word, None),
        (Outcome::Blocked, _) => {
            if let Some(needs) = why.strip_prefix(ASKED) {
                return (word, Some(StandingNews::Needs(needs.to_owned())));
            }
            let mut refused = LANDING_REFUSALS.iter();
            let refused =
                refused.find_map(|(begins, word)| Some((*word, why.strip_prefix(begins)?)));
            refused.unwrap_or((word, why.strip_prefix(INCURABLE).unwrap_or(why)))
        }
        _ => (word, why),
    };
    (word, Some(StandingNews::Why(why.to_owned())))
}

fn group(lease: &Lease) -> StandingGroup {
    match &lease.state {
        TaskState::Waiting => StandingGroup::Waiting,
        TaskState::Running(_) => StandingGroup::Running,
        TaskState::Ended(ending) => match ending.outcome {
            outcome if outcome.leaves_a_task_undone() => StandingGroup::NeedsYou,
            Outcome::Cancelled => StandingGroup::Cancelled,
            _ => StandingGroup::Done,
        },
    }
}

/// Where a row stands in its group; the smallest comes first.
fn place(lease: &Lease) -> i64 {
    match group(lease) {
        StandingGroup::NeedsYou => lease.at.timestamp_millis(),
        StandingGroup::Running => lease.attempt().map_or(0, |it| it.began_at.timestamp_millis()),
        StandingGroup::Waiting => 0,
        StandingGroup::Done | StandingGroup::Cancelled => -lease.at.timestamp_millis(),
    }
}

fn row<'a>(
    fleet: &Fleet,
    lease: &'a Lease,
    plan: &FleetPlan,
    now: DateTime<Utc>,
) -> StandingRow<'a> {
    let waits = plan.waits.get(lease.id());
    let (what, news, since) = match &lease.state {
        TaskState::Waiting => {
            let is_paused = matches!(waits, Some(WaitsFor::Order { order: FleetRequest::Pause }));
            let what = if is_paused { "paused" } else { "waits" };
            (what, waits.cloned().map(StandingNews::Waits), None)
        }
        TaskState::Running(attempt) => {
            let order = fleet.order_of(lease.id());
            let (what, news, since) = match &attempt.phase {
                JobPhase::Prepares => ("prepares", None, Some(attempt.began_at)),
                JobPhase::Lines => ("lines", None, None),
                JobPhase::Works { since, .. } => {
                    ("works", order.map(|order| StandingNews::Obeys(order.what)), Some(*since))
                }
                JobPhase::Rests { until, why } => {
                    ("rests", Some(StandingNews::Rests { until: *until, why: why.clone() }), None)
                }
                JobPhase::Lands => ("lands", None, None),
            };
            let silent = lease.silent_ms(now).filter(|_| fleet.remote.is_some());
            (what, silent.map(StandingNews::Silent).or(news), since)
        }
        TaskState::Ended(ending) => {
            let (what, news) = end_of(ending);
            (what, news, Some(lease.at))
        }
    };
    let of = lease.contract.limits.max_iterations;
    let is_iterating = lease.loop_end.is_none()
        && lease.attempt().is_some_and(|attempt| attempt.phase != JobPhase::Lands);
    let iteration = lease.carried.completed.saturating_add(u32::from(is_iterating));
    let iteration = if of > 0 { iteration.min(of) } else { iteration };
    StandingRow {
        task: lease.id(),
        group: group(lease),
        what,
        news,
        iteration,
        since,
        lease: Some(lease),
    }
}

fn row_without_a_lease(found: &UnreadableLease) -> StandingRow<'_> {
    StandingRow {
        task: &found.task,
        group: StandingGroup::NeedsYou,
        what: "unreadable",
        news: Some(StandingNews::Why(found.why.clone())),
        iteration: 0,
        since: None,
        lease: None,
    }
}

fn counts(rows: &[StandingRow<'_>]) -> StandingCounts {
    let mut counts = StandingCounts { total: rows.len(), ..StandingCounts::default() };
    for row in rows {
        let count = match (row.group, row.lease.and_then(Lease::landed)) {
            (StandingGroup::NeedsYou, _) => &mut counts.needs_you,
            (StandingGroup::Running, _) => &mut counts.running,
            (StandingGroup::Waiting, _) => &mut counts.waiting,
            (StandingGroup::Cancelled, _) => &mut counts.cancelled,
            (StandingGroup::Done, Some(Landed::Main(_))) => &mut counts.landed,
            (StandingGroup::Done, Some(Landed::Request(_))) => &mut counts.requested,
            (StandingGroup::Done, None) => &mut counts.completed,
        };
        *count += 1;
    }
    counts
}

/// The work that is left, shared by the tasks that run. A task needs as long as the ended ones did
/// on average; one that waits for a person is not counted, as nobody knows when it starts.
fn left(leases: &[Lease], plan: &FleetPlan, now: DateTime<Utc>) -> Option<u64> {
    let has_worked =
        |lease: &&Lease| lease.ending().is_some_and(|it| it.outcome != Outcome::Cancelled);
    let ended = || leases.iter().filter(has_worked);
    let running = leases.iter().filter(|lease| lease.attempt().is_some()).count() as u64;
    if ended().count() < ESTIMATE_LEAST || running == 0 {
        return None;
    }
    let mean = sum(ended().map(|lease| lease.carried.awake_ms)) / ended().count() as u64;
    let is_held = |lease: &Lease| {
        let waits = plan.waits.get(lease.id());
        matches!(waits, Some(WaitsFor::Ended { .. } | WaitsFor::Order { .. }))
    };
    let open = leases.iter().filter(|lease| lease.ending().is_none() && !is_held(lease));
    let left = sum(open.map(|lease| mean.saturating_sub(used(lease, now)))) / running;
    (left > 0).then_some(left)
}

fn used(lease: &Lease, now: DateTime<Utc>) -> u64 {
    let running = match lease.attempt().map(|attempt| &attempt.phase) {
        Some(JobPhase::Works { since, .. }) => between(*since, now),
        _ => 0,
    };
    lease.carried.awake_ms.saturating_add(running)
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// Milliseconds; none where a clock went backwards.
fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> u64 {
    u64::try_from((to - from).num_milliseconds()).unwrap_or_default()
}

/// An interrupted loop only has to go on. Everything else is to be looked at before a retry spends
/// more on it. What only a person's decision frees comes last.
fn next(fleet: &Fleet, rows: &[StandingRow<'_>]) -> Option<String> {
    let needs = || rows.iter().filter(|row| row.group == StandingGroup::NeedsYou);
    if let Some(row) = needs().find(|row| row.what != Outcome::Interrupted.label()) {
        return Some(format!("crew fleet show {}", row.task));
    }
    let run = fleet_run(&fleet.folder);
    if needs().next().is_some() {
        return Some(format!("{run} --retry"));
    }
    if rows.iter().any(is_for_a_run) {
        return Some(run);
    }
    if rows.iter().any(goes_on) {
        return None;
    }
    let more = rows.iter().find_map(|row| match &row.news {
        Some(StandingNews::Waits(WaitsFor::Money)) => Some("--max-cost MORE"),
        Some(StandingNews::Waits(WaitsFor::Ended { task: other })) => {
            let other = rows.iter().find(|row| row.task == other)?;
            (other.group == StandingGroup::Cancelled).then_some("--retry")
        }
        _ => None,
    })?;
    Some(format!("{run} {more}"))
}

/// Whether a task waits until the fleet is run again, or may do so.
fn is_for_a_run(row: &StandingRow<'_>) -> bool {
    let Some(StandingNews::Waits(waits)) = &row.news else {
        return matches!(row.news, Some(StandingNews::Silent(_)));
    };
    matches!(waits, WaitsFor::Run | WaitsFor::Order { order: FleetRequest::Pause })
}

/// Whether a task runs, or would start if a crew ran the fleet.
fn goes_on(row: &StandingRow<'_>) -> bool {
    match &row.news {
        _ if row.group == StandingGroup::Running => true,
        Some(StandingNews::Waits(waits)) => {
            matches!(waits, WaitsFor::Nothing | WaitsFor::Slot | WaitsFor::Run)
        }
        _ => false,
    }
}

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "is", content = "of", rename_all = "lowercase")]
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
pub struct StandingRow<'a> {
    pub task: &'a TaskId,
    pub group: StandingGroup,
    /// One word: `conflict`, `blocked`, `works`, `rests`, `waits`, `landed`.
    pub what: &'static str,
    pub news: Option<StandingNews>,
    /// The iteration that runs or is next; of a task that nobody works on, the last one.
    pub iteration: u32,
    /// When it ended, or when its iteration or its preparation began; `None` where no one moment
    /// says it.
    pub since: Option<DateTime<Utc>>,
    /// `None` if it cannot be read.
    pub lease: Option<&'a Lease>,
}

/// The commands, in their order; none for a task that is open, completed or cancelled.
pub fn way_out(fleet: &Fleet, lease: &Lease) -> Vec<Step> {
    let ending = lease.ending();
    let undone = ending.filter(|ending| ending.outcome.leaves_a_task_undone());
    let Some(ending) = undone else { return Vec::new() };
    let task = fleet.task(lease.id());
    let remote = fleet.remote.as_ref().filter(|_| fleet.landing == LandingMode::Main);
    // What is red would be so on the main branch, too.
    let mut merges = LANDING_REFUSALS.iter().filter(|(_, word)| *word != "red");
    let is_merged_by_hand = merges.any(|(begins, _)| ending.why.starts_with(begins));
    let (first, then) = if ending.is_blocked_by_test_changes() {
        let accept = step(task.accept_test_changes(), "if you accept that change");
        return vec![accept, step(task.run(), "tries it again")];
    } else if ending.why.starts_with(ASKED) {
        let answer = step(format!("{} \"your answer\"", task.tell()), "no secrets in it");
        (Some(answer), "tries it again with your answer")
    } else if let Some(remote) = remote.filter(|_| is_merged_by_hand) {
        let (name, base, branch) = (&remote.name, &fleet.base, &lease.branch);
        let merge =
            format!("git fetch {name} && git merge {name}/{base} && git merge {name}/{branch}");
        let markers = if lease.conflicts.is_empty() { "" } else { ", without its <<<<<<< markers" };
        let what = format!("on {}, if you want what it changes{markers}; then push", fleet.base);
        (Some(step(merge, &what)), "finds its work there")
    } else {
        (None, "once its cause is gone")
    };
    first.into_iter().chain([step(task.retry(), then)]).collect()
}

fn step(command: String, what: &str) -> Step {
    Step { command, what: what.to_owned() }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;

#[cfg(test)]
mod way_out_tests {
    use super::*;
    use crate::engine::fleet::fixture::{a_fleet, a_lease, ended, landed};
    use crate::engine::fleet::manifest::Remote;
    use crate::engine::record::Outcome;

    #[test]
    fn every_task_that_needs_a_person_names_the_command_that_tries_it_again() {
        let remote = Remote { name: "origin".to_owned(), url: "/hub.git".to_owned() };
        let lands = Fleet { remote: Some(remote), landing: LandingMode::Main, ..a_fleet() };
        let blocked = |why: &str| ended("vat", Outcome::Blocked, why, 1);
        let leases = vec![
            a_lease("vat"),
            landed("vat", "4f2c9d1", 1),
            ended("vat", Outcome::Cancelled, "cancelled by the user", 1),
            blocked("tasks folder: it changes tasks/vat.md, which only a person may land"),
            blocked("conflict: src/tax.rs changed on main too"),
            blocked("red: `cargo test` fails on main with this work"),
            blocked("its branch lacks its work: commit failed"),
            blocked("worktree failed: the setting filter.lfs.clean changed during this run"),
            blocked("the agent said BLOCKED: which port?"),
            blocked("check.sh changed: crew tell --fleet f --task vat --accept-test-changes"),
            ended("vat", Outcome::Error, "setup `npm ci` exits 1", 1),
        ];
        let told = |fleet: &Fleet, lease: &Lease| {
            let steps = way_out(fleet, lease).into_iter();
            let steps = steps.map(|it| format!("\n  {} · {}", it.command, it.what));
            let why = lease.ending().map_or("open", |ending| &ending.why);
            format!("{why}{}", steps.collect::<String>())
        };
        let all: Vec<String> = leases.iter().map(|lease| told(&lands, lease)).collect();
        insta::assert_snapshot!(all.join("\n"), @r#"
        open
        done
        cancelled by the user
        tasks folder: it changes tasks/vat.md, which only a person may land
          git fetch origin && git merge origin/main && git merge origin/fleet/billing-cleanup/vat · on main, if you want what it changes; then push
          crew fleet run tasks --retry · finds its work there
        conflict: src/tax.rs changed on main too
          git fetch origin && git merge origin/main && git merge origin/fleet/billing-cleanup/vat · on main, if you want what it changes; then push
          crew fleet run tasks --retry · finds its work there
        red: `cargo test` fails on main with this work
          crew fleet run tasks --retry · once its cause is gone
        its branch lacks its work: commit failed
          crew fleet run tasks --retry · once its cause is gone
        worktree failed: the setting filter.lfs.clean changed during this run
          crew fleet run tasks --retry · once its cause is gone
        the agent said BLOCKED: which port?
          crew tell --fleet billing-cleanup --task vat "your answer" · no secrets in it
          crew fleet run tasks --retry · tries it again with your answer
        check.sh changed: crew tell --fleet f --task vat --accept-test-changes
          crew tell --fleet billing-cleanup --task vat --accept-test-changes · if you accept that change
          crew fleet run tasks · tries it again
        setup `npm ci` exits 1
          crew fleet run tasks --retry · once its cause is gone
        "#);
        let before = blocked("conflict: fleet/f/a, which comes before, and others");
        insta::assert_snapshot!(told(&a_fleet(), &before), @"
        conflict: fleet/f/a, which comes before, and others
          crew fleet run tasks --retry · once its cause is gone
        ");
    }
}
