//! What a start makes of the orders of before, and of tasks that have lost their files, before it
//! forgets those orders. It ends no task that somebody works on.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::joined::agents;
use super::memory::Memory;
use crate::engine::fleet::{
    Fleet, FleetOrder, FleetRequest, FleetTask, Landed, LandingMode, Lease, TaskEnding, TaskId,
    TaskState,
};
use crate::engine::record::{Contract, Ending, Outcome};
use crate::world::clock;
use crate::world::files::disk;
use crate::world::store::fleets;
use crate::world::store::{Home, Kept};

/// How often a record is written again because somebody else was first.
const TRIES: u32 = 20;

/// The cancels that a task has not obeyed yet: one that runs, or may run.
pub(super) fn standing_orders(
    memory: &Memory,
    known: &Fleet,
) -> Result<BTreeMap<TaskId, FleetOrder>> {
    let leases = memory.leases()?;
    let running = leases.readable.iter().map(|kept| &kept.value);
    let running = running.filter(|lease| lease.attempt().is_some()).map(Lease::id);
    let open = running.chain(leases.unreadable.iter().map(|it| &it.task));
    let cancels = open.filter_map(|id| {
        let order = known.order_of(id)?;
        (order.what == FleetRequest::Cancel).then(|| (id.clone(), order.clone()))
    });
    Ok(cancels.collect())
}

/// The cancel of a whole fleet, as long as nothing is left of it that could go on.
pub(super) fn standing_cancel(
    fleet: &Fleet,
    known: &Fleet,
    found: &[Kept<Lease>],
) -> Option<FleetOrder> {
    let is_over = |kept: &Kept<Lease>| {
        let outcome = kept.value.ending().map(|ending| ending.outcome);
        matches!(outcome, Some(Outcome::Completed | Outcome::Cancelled))
            && !wants_landing(fleet, &kept.value)
    };
    let cancel = known.order.as_ref().filter(|order| order.what == FleetRequest::Cancel);
    cancel.filter(|_| found.iter().all(is_over)).cloned()
}

/// Ends what a person's orders ended, and what is in no file any more, before the orders are
/// forgotten. `files` had one at this machine's last start, and `names` have one now: another
/// machine may have added others. Returns what the user should know.
pub(super) fn settle(
    memory: &Memory,
    fleet: &Fleet,
    known: &Fleet,
    (files, names): (&BTreeMap<TaskId, String>, &BTreeSet<&TaskId>),
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for Kept { value: lease, .. } in memory.leases()?.readable {
        let id = lease.id();
        // Another working tree of the repository may have tasks of its own.
        let own = fleet.repository.join(&fleet.folder).join(format!("{id}.md"));
        let is_missed = files.contains_key(id) && !names.contains(id);
        let has_no_file = is_missed && !disk::exists(&own);
        if is_missed && !has_no_file && lease.ending().is_none() {
            let there = own.display();
            notes.push(format!("{id} stays: its file is {there}\nhint: crew fleet cancel {id}"));
        }
        if has_no_file && lease.attempt().is_some() {
            notes.push(format!("{id} runs on without its file\nhint: crew fleet cancel {id}"));
        }
        let is_undone = lease.ending().is_some_and(|it| it.outcome.leaves_a_task_undone());
        let is_open = lease.state == TaskState::Waiting
            || wants_landing(fleet, &lease)
            || (has_no_file && is_undone);
        if !is_open || memory.is_held(id) {
            continue;
        }
        // An order for all tasks leaves what is completed.
        let order = match lease.state {
            TaskState::Waiting => known.order_of(id),
            _ => known.orders.get(id),
        };
        let order = order.filter(|order| order.what == FleetRequest::Cancel);
        let ending = match order {
            Some(order) => Ending::cancelled(order.by, order.reason.as_deref()),
            None if !has_no_file => continue,
            None => {
                notes.push(format!("{id} is cancelled: its file is gone"));
                Ending::new(Outcome::Cancelled, "its file is gone")
            }
        };
        let ending = TaskEnding::of(ending);
        memory.change(id, |found| {
            let is_free = found.state == lease.state;
            if is_free {
                found.state = TaskState::Ended(ending.clone());
                found.at = clock::now().wall;
            }
            is_free
        })?;
    }
    Ok(notes)
}

/// Whether a task is completed and still has to land, because the fleet lands now, or no longer by
/// pull requests.
pub(super) fn wants_landing(fleet: &Fleet, lease: &Lease) -> bool {
    let ending = lease.ending().filter(|ending| ending.outcome == Outcome::Completed);
    ending.is_some_and(|ending| match (fleet.landing, &ending.landed) {
        (LandingMode::No, _) | (_, Some(Landed::Main(_))) => false,
        (LandingMode::Pr, landed) => landed.is_none(),
        (LandingMode::Main, _) => true,
    })
}

/// Whether a task is completed, landed or not.
pub(super) fn is_completed(lease: &Lease) -> bool {
    lease.ending().is_some_and(|ending| ending.outcome == Outcome::Completed)
}

/// Whether another machine has changed a task since this one's last start, and its file here is
/// still that of before.
pub(super) fn is_stale(lease: &Lease, task: &FleetTask, files: &BTreeMap<TaskId, String>) -> bool {
    let before = files.get(&task.id);
    before == Some(&task.revision) && before != Some(&lease.task.revision)
}

/// Keeps on this machine which tasks have had a file, each with the text that its lease has after
/// the start, and with the agent that the settings here name. A file that is older than its lease
/// stays so.
pub(super) fn remember(
    home: &Home,
    memory: &Memory,
    tasks: &[(FleetTask, Contract)],
    before: &BTreeMap<TaskId, String>,
) -> Result<()> {
    let mut files = before.clone();
    let leases = memory.leases()?.readable;
    for Kept { value: lease, .. } in &leases {
        let file = tasks.iter().find(|(task, _)| task.id == *lease.id());
        if file.is_some_and(|(task, _)| !is_stale(lease, task, before)) {
            files.insert(lease.id().clone(), lease.task.revision.clone());
        }
    }
    for _ in 0..TRIES {
        let Some(Kept { value, id }) = fleets::manifest(home, &memory.fleet)? else { break };
        let agents = agents(tasks, &leases, &value.agents);
        let fleet = Fleet { files: files.clone(), agents, ..value };
        if fleets::swap_manifest(home, Some(&id), &fleet)?.is_some() {
            break;
        }
    }
    Ok(())
}
