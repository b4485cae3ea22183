//! What may start next, and what every other task waits for. A task waits for one named thing. The
//! fleet's money is kept by setting aside what each running task may still cost.

use std::collections::BTreeMap;

use super::lease::{Attempt, Landed, Lease, TaskState};
use super::manifest::{Fleet, FleetRequest, LOCAL, LandingMode};
use super::task::{FleetTask, TaskId};
use crate::engine::record::Outcome;

/// Whether two tasks may touch the same files, and by which globs.
pub type Overlap<'a> = &'a dyn Fn(&FleetTask, &FleetTask) -> Option<(String, String)>;

/// What a waiting task waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitsFor {
    /// Nothing: it starts now.
    Nothing,
    /// No crew runs the fleet: nobody starts it.
    Run,
    /// A person who starts its job: the fleet leaves that to somebody else.
    Job,
    /// As many tasks run as there are slots.
    Slot,
    /// A task that comes before it is not done yet.
    Task(TaskId),
    /// A task that comes before it ended without being done, or its lease cannot be read.
    Ended(TaskId),
    /// A task that runs touches the same files: its globs and ours.
    Files { of: TaskId, theirs: String, ours: String },
    /// What is left of the fleet's money is set aside for the tasks that run.
    Money,
    /// A person's order.
    Order(FleetRequest),
}

/// A task that starts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub task: TaskId,
    /// The most that it may cost, earlier attempts included; 0 without a limit.
    pub reserved_micros: u64,
}

/// What starts, in this order, and what every waiting task waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetPlan {
    pub starts: Vec<Start>,
    pub waits: BTreeMap<TaskId, WaitsFor>,
}

/// How many tasks may run at once, and which attempts take such a place: machines whose slots are
/// their own have nothing to do with each other's.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    pub slots: usize,
    pub takes_one: &'a dyn Fn(&Attempt) -> bool,
}

impl From<usize> for Places<'_> {
    fn from(slots: usize) -> Self {
        Self { slots, takes_one: &|_| true }
    }
}

impl FleetPlan {
    /// The same while no crew runs the fleet: what could start now or next waits for that.
    pub fn unattended(mut self) -> Self {
        self.starts.clear();
        let waits = self.waits.values_mut();
        waits
            .filter(|it| matches!(it, WaitsFor::Nothing | WaitsFor::Slot | WaitsFor::Files { .. }))
            .for_each(|it| *it = WaitsFor::Run);
        self
    }

    /// The same for a fleet whose jobs are started by somebody else: what could start waits for
    /// that.
    pub fn by_hand(mut self) -> Self {
        for Start { task, .. } in self.starts.drain(..) {
            self.waits.insert(task, WaitsFor::Job);
        }
        self
    }

    /// The same while nobody knows what some tasks have cost: nothing starts.
    pub fn without_money(mut self) -> Self {
        for Start { task, .. } in self.starts.drain(..) {
            self.waits.insert(task, WaitsFor::Money);
        }
        self
    }

    /// Decides for all tasks; `leases` are in the order in which they start. A job that only waits
    /// for the model's service takes no place, but of all jobs there are at most twice as many: a
    /// limit of the account holds each new one, too.
    pub fn of<'a>(
        fleet: &Fleet,
        leases: &[Lease],
        places: impl Into<Places<'a>>,
        overlap: Overlap<'_>,
    ) -> Self {
        let Places { slots, takes_one } = places.into();
        let mut plan = Self::default();
        let mut money = Money::of(fleet, leases);
        let is_busy = |lease: &&Lease| lease.attempt().is_some();
        let mut busy: Vec<&Lease> = leases.iter().filter(is_busy).collect();
        let here = || leases.iter().filter_map(Lease::attempt).filter(|it| takes_one(it));
        let active = here().filter(|attempt| !attempt.rests()).count();
        let most = slots.saturating_mul(2).saturating_sub(here().count());
        let mut free = slots.saturating_sub(active).min(most);
        for lease in leases.iter().filter(|lease| lease.state == TaskState::Waiting) {
            let files = || files(lease, &busy, overlap);
            let order = fleet.order_of(lease.id()).map(|order| WaitsFor::Order(order.what));
            let waits = order.or_else(|| before(fleet, lease, leases)).or_else(files);
            let waits = waits.or_else(|| (free == 0).then_some(WaitsFor::Slot));
            let reserved = if waits.is_none() { money.reserve(lease) } else { None };
            let waits = match (waits, reserved) {
                (Some(waits), _) => waits,
                (None, None) => WaitsFor::Money,
                (None, Some(reserved_micros)) => {
                    free -= 1;
                    busy.push(lease);
                    plan.starts.push(Start { task: lease.id().clone(), reserved_micros });
                    WaitsFor::Nothing
                }
            };
            plan.waits.insert(lease.id().clone(), waits);
        }
        plan
    }
}

/// Whether a task that comes before another is done: it is on the branch that the other starts
/// from, or will be merged into it.
fn is_done(fleet: &Fleet, lease: &Lease) -> bool {
    lease.ending().is_some_and(|ending| {
        let is_landed = matches!(ending.landed, Some(Landed::Main(_)));
        ending.outcome == Outcome::Completed && (fleet.landing != LandingMode::Main || is_landed)
    })
}

fn before(fleet: &Fleet, lease: &Lease, leases: &[Lease]) -> Option<WaitsFor> {
    let of = |id: &TaskId| leases.iter().find(|other| other.id() == id);
    let waits = lease.task.after.iter().filter_map(|id| match of(id) {
        Some(found) if is_done(fleet, found) => None,
        Some(found) if found.ending().is_none() => Some(WaitsFor::Task(id.clone())),
        // Without a lease that can be read, nobody knows whether it is done.
        Some(_) | None => Some(WaitsFor::Ended(id.clone())),
    });
    // One that ended needs a person; the others only need time.
    let all: Vec<WaitsFor> = waits.collect();
    all.iter().find(|it| matches!(it, WaitsFor::Ended(_))).or(all.first()).cloned()
}

fn files(lease: &Lease, busy: &[&Lease], overlap: Overlap<'_>) -> Option<WaitsFor> {
    busy.iter().find_map(|other| {
        let (theirs, ours) = overlap(&other.task, &lease.task)?;
        Some(WaitsFor::Files { of: other.id().clone(), theirs, ours })
    })
}

/// What a task has cost at most, in millionths of a dollar, rounded up.
pub fn cost(lease: &Lease) -> u64 {
    lease.carried.usage.cost_at_most().micros()
}

/// What may stay set aside for a task below the fleet's limit, beside what the others have cost and
/// what is set aside for those that run: all of it, or for a task without a limit of its own what
/// is left. `None` where that leaves it nothing.
pub fn fitting(fleet: &Fleet, task: &Lease, leases: &[Lease]) -> Option<u64> {
    let others = leases.iter().filter(|other| other.id() != task.id());
    let others: Vec<Lease> = others.cloned().collect();
    let Some(left) = Money::of(fleet, &others).left else { return Some(task.reserved_micros) };
    let is_shared_out = own(task) == 0 && left > cost(task);
    let most = if is_shared_out { left } else { task.reserved_micros };
    (task.reserved_micros.min(most) <= left).then(|| task.reserved_micros.min(most))
}

/// The fleet's money.
struct Money {
    /// What is neither spent nor set aside; `None` without a limit.
    left: Option<u64>,
    /// How many tasks without a limit of their own share it.
    sharers: u64,
    /// Whether every job finds the loops of those before it.
    is_local: bool,
}

impl Money {
    fn of(fleet: &Fleet, leases: &[Lease]) -> Self {
        let aside = |lease: &Lease| {
            let runs = lease.attempt().is_some();
            if runs { lease.reserved_micros.max(cost(lease)) } else { cost(lease) }
        };
        let gone = leases.iter().map(aside).fold(0, u64::saturating_add);
        let left = fleet.max_cost_micros.saturating_sub(gone);
        // Nobody knows what a task may still cost that runs without a limit: it ends its iteration,
        // and waits for its share.
        let is_unknown = leases.iter().any(|it| it.attempt().is_some() && it.lacks_a_share(fleet));
        let left = (fleet.max_cost_micros > 0).then_some(if is_unknown { 0 } else { left });
        let waits = |lease: &&Lease| lease.state == TaskState::Waiting && own(lease) == 0;
        let sharers = leases.iter().filter(waits).count() as u64;
        Self { left, sharers, is_local: fleet.engine == LOCAL }
    }

    /// Sets aside what a task may still cost, or all of its share. `None` where it does not fit.
    fn reserve(&mut self, lease: &Lease) -> Option<u64> {
        let own = own(lease);
        let Some(left) = self.left else { return Some(own) };
        let more = match own {
            0 => left / self.sharers.max(1),
            own => own.saturating_sub(cost(lease)),
        };
        if more > left || more == 0 {
            // What is completed costs nothing more, where its loop or its branch is at hand. A 0
            // would be no limit.
            let is_at_hand = self.is_local || lease.commit.is_some();
            return (lease.loop_end.is_some() && is_at_hand).then(|| cost(lease).max(1));
        }
        self.left = Some(left - more);
        if own == 0 {
            self.sharers -= 1;
        }
        Some(cost(lease).saturating_add(more))
    }
}

/// The limit that the task itself names; 0 without one.
fn own(lease: &Lease) -> u64 {
    lease.contract.limits.max_cost_micros
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
