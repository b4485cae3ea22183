//! How a fleet stands, as one value: how many tasks are where, what was spent, and a row for each
//! task, what needs a person first. It holds no sentence for people, reads no clock, and looks at
//! no process: an attempt runs as long as its lease says so.

use chrono::{DateTime, Utc};

use super::lease::{ASKED, JobPhase, Landed, Lease, TaskEnding, TaskState};
use super::manifest::{Fleet, FleetRequest, LandingMode};
use super::plan::{FleetPlan, WaitsFor};
pub use super::rows::{StandingCounts, StandingGroup, StandingNews, StandingRow};
use super::stored::UnreadableLease;
use super::task::TaskId;
use crate::engine::boundary::decide::INCURABLE;
use crate::engine::record::{Outcome, fleet_run};
use crate::engine::usage::{Money, Usage};

/// How the reason begins where a landing was refused, and the word for it.
pub const LANDING_REFUSALS: [(&str, &str); 3] =
    [("conflict: ", "conflict"), ("red: ", "red"), ("tasks folder: ", "folder")];
/// The fewest ended tasks from which the time of the others is estimated.
const ESTIMATE_LEAST: usize = 2;

/// How a fleet stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
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
    pub rows: Vec<StandingRow>,
    /// The command for the oldest thing that needs a person, or else the one that continues.
    pub next: Option<String>,
}

impl Standing {
    /// Counts and sorts; `leases` are in the order in which they start. A task whose lease cannot
    /// be read needs a person, before all others.
    pub fn of(
        fleet: &Fleet,
        leases: &[Lease],
        unreadable: &[UnreadableLease],
        plan: &FleetPlan,
        now: DateTime<Utc>,
    ) -> Self {
        let mut sorted: Vec<&Lease> = leases.iter().collect();
        sorted.sort_by_key(|lease| (group(lease), place(lease)));
        let unreadable = unreadable.iter().map(|it| row_without_a_lease(fleet, it));
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
    pub fn row_of(&self, task: &TaskId) -> Option<&StandingRow> {
        self.rows.iter().find(|row| row.task == *task)
    }
}

/// The word for an end, and what is to be said of it.
pub fn end_of(ending: &TaskEnding) -> (&'static str, Option<StandingNews>) {
    let why = ending.why.as_str();
    let word = ending.outcome.label();
    match (ending.outcome, &ending.landed) {
        (Outcome::Completed, Some(Landed::Main(_))) => ("landed", None),
        (Outcome::Completed, Some(Landed::Request(_))) => ("requested", None),
        (Outcome::Completed, None) => (word, None),
        (Outcome::Blocked, _) => blocked(why),
        _ => (word, Some(StandingNews::Why(why.to_owned()))),
    }
}

fn blocked(why: &str) -> (&'static str, Option<StandingNews>) {
    let refused = LANDING_REFUSALS.iter().find_map(|(begins, word)| {
        let why = why.strip_prefix(begins)?;
        Some((*word, StandingNews::Why(why.to_owned())))
    });
    let (word, news) = refused.unwrap_or_else(|| {
        let news = match why.strip_prefix(ASKED) {
            Some(needs) => StandingNews::Needs(needs.to_owned()),
            None => StandingNews::Why(why.strip_prefix(INCURABLE).unwrap_or(why).to_owned()),
        };
        (Outcome::Blocked.label(), news)
    });
    (word, Some(news))
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

fn row(fleet: &Fleet, lease: &Lease, plan: &FleetPlan, now: DateTime<Utc>) -> StandingRow {
    let waits = plan.waits.get(lease.id());
    let (what, news) = match &lease.state {
        TaskState::Waiting => {
            let is_paused = matches!(waits, Some(WaitsFor::Order(FleetRequest::Pause)));
            (if is_paused { "paused" } else { "waits" }, waits.cloned().map(StandingNews::Waits))
        }
        TaskState::Running(attempt) => {
            let (what, news) = doing(&attempt.phase);
            let works = matches!(attempt.phase, JobPhase::Works { .. });
            let order = fleet.order_of(lease.id()).filter(|_| works);
            let news = order.map(|order| StandingNews::Obeys(order.what)).or(news);
            let silent = lease.silent_ms(now).filter(|_| fleet.remote.is_some());
            (what, silent.map(StandingNews::Silent).or(news))
        }
        TaskState::Ended(ending) => end_of(ending),
    };
    let attempt = lease.attempt();
    let (slot, since) = match attempt.map(|attempt| (&attempt.phase, attempt.began_at)) {
        Some((JobPhase::Works { slot, since }, _)) => (*slot, Some(*since)),
        Some((JobPhase::Prepares, began_at)) => (None, Some(began_at)),
        Some(_) => (None, None),
        None => (None, lease.ending().map(|_| lease.at)),
    };
    let of = lease.contract.limits.max_iterations;
    let is_over = lease.loop_end.is_some();
    let is_iterating = attempt.is_some_and(|attempt| !is_over && attempt.phase != JobPhase::Lands);
    let iteration = lease.carried.completed.saturating_add(u32::from(is_iterating));
    StandingRow {
        task: lease.id().clone(),
        group: group(lease),
        what,
        news,
        iteration: if of > 0 { iteration.min(of) } else { iteration },
        of,
        since,
        elapsed_ms: lease.carried.awake_ms,
        usage: lease.carried.usage.clone(),
        last: lease.carried.last.clone(),
        slot,
        host: attempt.map(|attempt| attempt.host.clone()),
        branch: lease.branch.clone(),
        was_sent_back: lease.sent_back.is_some(),
        proof: lease.ending().and_then(|ending| ending.proof),
        landed: lease.ending().and_then(|ending| ending.landed.clone()),
    }
}

fn row_without_a_lease(fleet: &Fleet, found: &UnreadableLease) -> StandingRow {
    StandingRow {
        task: found.task.clone(),
        group: StandingGroup::NeedsYou,
        what: "unreadable",
        news: Some(StandingNews::Why(found.why.clone())),
        iteration: 0,
        of: 0,
        since: None,
        elapsed_ms: 0,
        usage: Usage::default(),
        last: String::new(),
        slot: None,
        host: None,
        branch: fleet.branch(&found.task),
        was_sent_back: false,
        proof: None,
        landed: None,
    }
}

fn doing(phase: &JobPhase) -> (&'static str, Option<StandingNews>) {
    match phase {
        JobPhase::Prepares => ("prepares", None),
        JobPhase::Lines => ("lines", None),
        JobPhase::Works { .. } => ("works", None),
        JobPhase::Rests { until, why } => {
            ("rests", Some(StandingNews::Rests { until: *until, why: why.clone() }))
        }
        JobPhase::Lands => ("lands", None),
    }
}

fn counts(rows: &[StandingRow]) -> StandingCounts {
    let mut counts = StandingCounts { total: rows.len(), ..StandingCounts::default() };
    for row in rows {
        let count = match (row.group, &row.landed) {
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
        matches!(waits, Some(WaitsFor::Ended(_) | WaitsFor::Order(_) | WaitsFor::Job))
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
/// more on it. What nobody starts comes last, and then what only a person's decision frees.
fn next(fleet: &Fleet, rows: &[StandingRow]) -> Option<String> {
    let needs = || rows.iter().filter(|row| row.group == StandingGroup::NeedsYou);
    if let Some(row) = needs().find(|row| row.what != Outcome::Interrupted.label()) {
        return Some(format!("crew fleet show {}", row.task));
    }
    let run = fleet_run(&fleet.folder);
    if needs().next().is_some() {
        return Some(format!("{run} --retry"));
    }
    let by_hand = rows.iter().find(|row| row.news == Some(StandingNews::Waits(WaitsFor::Job)));
    match by_hand {
        // A run sets its money aside before it prints the command.
        Some(row) if fleet.max_cost_micros == 0 => return Some(fleet.job(&row.task)),
        by_hand if by_hand.is_some() || rows.iter().any(is_for_a_run) => return Some(run),
        _ if rows.iter().any(goes_on) => return None,
        _ => {}
    }
    let more = rows.iter().find_map(|row| match &row.news {
        Some(StandingNews::Waits(WaitsFor::Money)) => Some("--max-cost MORE"),
        Some(StandingNews::Waits(WaitsFor::Ended(other))) => {
            let other = rows.iter().find(|row| row.task == *other)?;
            (other.group == StandingGroup::Cancelled).then_some("--retry")
        }
        _ => None,
    })?;
    Some(format!("{run} {more}"))
}

/// Whether a task waits until the fleet is run again, or may do so.
fn is_for_a_run(row: &StandingRow) -> bool {
    let Some(StandingNews::Waits(waits)) = &row.news else {
        return matches!(row.news, Some(StandingNews::Silent(_)));
    };
    matches!(waits, WaitsFor::Run | WaitsFor::Order(FleetRequest::Pause))
}

/// Whether a task runs, or would start if a crew ran the fleet.
fn goes_on(row: &StandingRow) -> bool {
    match &row.news {
        _ if row.group == StandingGroup::Running => true,
        Some(StandingNews::Waits(waits)) => {
            matches!(waits, WaitsFor::Nothing | WaitsFor::Slot | WaitsFor::Run | WaitsFor::Job)
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
