//! What a start would make of the tasks, for the page before it. It writes nothing.

use std::collections::BTreeSet;

use anyhow::Result;

use super::begin::{lease, may_be_retried, moves, stays_exhausted};
use super::describe::Described;
use super::joined::as_started;
use super::memory::Memory;
use super::settle::wants_landing;
use crate::engine::fleet::{FleetTask, Lease, TaskId, TaskState};
use crate::engine::record::Contract;
use crate::world::store::{Home, Kept, Leases, fleets};

/// The leases as they will be once the fleet is recorded, in the order in which tasks start.
/// Nothing is written.
pub fn foreseen(home: &Home, described: &Described, retry: bool) -> Result<Vec<Lease>> {
    let Described { fleet, tasks, .. } = described;
    let here = fleets::manifest(home, &fleet.name)?.map(|kept| kept.value);
    let (mut known, mut tasks) = (Leases::default(), tasks.clone());
    if here.is_some() {
        let memory = Memory::of(home, &fleet.name)?;
        known = memory.leases()?;
        tasks = as_started(&memory, fleet, here.as_ref(), &tasks, &known.readable, retry)?.0;
    }
    let gets_a_remote = fleet.remote.is_some() && here.is_some_and(|here| here.remote.is_none());
    let is_readable = |id: &TaskId| !known.unreadable.iter().any(|it| it.task == *id);
    let of = |(task, contract): &(FleetTask, Contract)| {
        let found = known.readable.iter().find(|kept| *kept.value.id() == task.id);
        let is_free = |lease: &&Kept<Lease>| lease.value.state == TaskState::Waiting;
        let Some(kept) = found.filter(|kept| !is_free(kept)) else {
            return lease(fleet, task, contract);
        };
        let mut lease = kept.value.clone();
        if wants_landing(fleet, &lease) || (gets_a_remote && moves(&lease)) {
            lease.state = TaskState::Waiting;
        } else if retry && may_be_retried(&lease) && !stays_exhausted(&lease, contract) {
            lease.try_again();
            lease.renew(task, contract);
        }
        lease
    };
    Ok(in_order(tasks.iter().filter(|(task, _)| is_readable(&task.id)).map(of).collect()))
}

/// Puts each task behind those that come before it, and else leaves the order as it is.
fn in_order(mut left: Vec<Lease>) -> Vec<Lease> {
    let mut names: BTreeSet<TaskId> = left.iter().map(|lease| lease.id().clone()).collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let is_first = |lease: &Lease| !lease.task.after.iter().any(|id| names.contains(id));
        let lease = left.remove(left.iter().position(is_first).unwrap_or(0));
        names.remove(lease.id());
        ordered.push(lease);
    }
    ordered
}
