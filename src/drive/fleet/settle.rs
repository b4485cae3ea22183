//! What a start makes of the orders of before, and of tasks that have lost their files, before it
//! forgets those orders. It ends no task that somebody works on.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use super::begin::{lease, may_be_retried, moves, stays_exhausted};
use super::describe::Described;
use super::engines::LOCAL;
use super::memory::Memory;
use crate::drive::start::agent::missing_program;
use crate::engine::fleet::lease::{Landed, Lease, TaskEnding, TaskState};
use crate::engine::fleet::manifest::{Fleet, FleetOrder, FleetRequest, LandingMode};
use crate::engine::fleet::task::{FleetTask, TaskId};
use crate::engine::record::{Contract, Ending, Outcome, Run};
use crate::engine::text::named;
use crate::world::clock;
use crate::world::files::disk;
use crate::world::store::Home;
use crate::world::store::fleets::{self, Kept, Leases};
use crate::world::store::home::hash;

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

// What a start would make of the tasks, for the page before it. It writes nothing.

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

// Whose agent works on a task that several people have: they share its text, and each names an
// agent in settings of their own. The first start decides, until a person who has started it since
// names another one.

/// The most names of tasks that a note lists.
const NAMED_MAX: usize = 3;
/// How much of a hash a person sees, as of a task's text.
const FINGERPRINT_DIGITS: usize = 12;

/// Tasks, each with the contract of its loop.
type Tasks = Vec<(FleetTask, Contract)>;

/// The tasks as they were read here, each with the agent of its lease where that counts, and its
/// own where that is not on this machine. Returns what the user should know, too.
///
/// # Errors
/// If it is not here, and another machine works with it: that would get the agent of this one.
pub(super) fn as_started(
    memory: &Memory,
    fleet: &Fleet,
    here: Option<&Fleet>,
    tasks: &[(FleetTask, Contract)],
    found: &[Kept<Lease>],
    retry: bool,
) -> Result<(Tasks, Vec<String>)> {
    let now = clock::now().wall;
    let is_elsewhere = |lease: &Lease| lease.attempt().is_some_and(|it| !memory.is_here(it));
    let works_there = |lease: &Lease| is_elsewhere(lease) && lease.silent_ms(now).is_none();
    let works_elsewhere = found.iter().any(|kept| works_there(&kept.value));
    let (mut theirs, mut own) = (Vec::new(), Vec::new());
    let mut all = tasks.to_vec();
    for (task, contract) in all.iter_mut().filter(|_| memory.is_shared()) {
        let lease = found.iter().map(|kept| &kept.value).find(|lease| *lease.id() == task.id);
        let Some(lease) = lease.filter(|lease| counts(lease, task, contract, here)) else {
            continue;
        };
        let is_open = is_open(lease, retry);
        let (Some(run), Some(started)) = (&mut contract.run, &lease.contract.run) else { continue };
        if !is_here(fleet, started) {
            if is_open && works_elsewhere {
                bail!(
                    "another machine works on this fleet with the agent {}, which is not here\n\
                     hint: install it, or join once nobody works there",
                    started.agent.name
                );
            }
            if is_open && lease.attempt().is_none() {
                own.push(task.id.to_string());
            }
            continue;
        }
        run.agent.clone_from(&started.agent);
        run.fallback.clone_from(&started.fallback);
        run.model.clone_from(&started.model);
        run.account.clone_from(&started.account);
        (run.permissions, run.max_turns) = (started.permissions, started.max_turns);
        if is_open {
            let command = shell_words::join(&started.agent.command);
            let asked = started.permissions.label();
            theirs.push(format!("{} (`{command}`, permissions {asked})", task.id));
        }
    }
    let notes = [
        ("the agent that another machine has started them with works on", theirs),
        ("the agent of another machine is not here, so yours works on", own),
    ];
    let notes = notes.into_iter().filter(|(_, tasks)| !tasks.is_empty());
    let told = notes.map(|(what, tasks)| format!("{what}: {}", named(&tasks, NAMED_MAX)));
    Ok((all, told.collect()))
}

/// Whether a start leaves a task to somebody who works on it.
pub(super) fn is_open(lease: &Lease, retry: bool) -> bool {
    let is_undone = |ending: &TaskEnding| ending.outcome.leaves_a_task_undone();
    lease.ending().is_none_or(|ending| retry && is_undone(ending))
}

/// Whether the agent of a run is where its jobs run, as far as this machine knows.
pub(super) fn is_here(fleet: &Fleet, run: &Run) -> bool {
    fleet.engine != LOCAL || missing_program(&run.agent, &fleet.repository).is_none()
}

/// Whether the agent of a lease counts, and not the one that this machine's settings name.
pub(super) fn counts(
    lease: &Lease,
    task: &FleetTask,
    contract: &Contract,
    here: Option<&Fleet>,
) -> bool {
    let own = fingerprint(contract);
    let is_changed = here.is_some_and(|here| {
        let (file, agent) = (here.files.get(&task.id), here.agents.get(&task.id));
        file == Some(&task.revision) && agent.is_some_and(|agent| *agent != own)
    });
    let is_another = fingerprint(&lease.contract) != own;
    is_another && lease.task.revision == task.revision && !is_changed
}

/// The agents that this machine's settings name, to be compared at its next start. One that is new
/// here and has not come into its lease yet is new at that start, too.
pub(super) fn agents(
    tasks: &[(FleetTask, Contract)],
    leases: &[Kept<Lease>],
    before: &BTreeMap<TaskId, String>,
) -> BTreeMap<TaskId, String> {
    let of = |lease: &Lease| (lease.id().clone(), fingerprint(&lease.contract));
    let taken: BTreeSet<(TaskId, String)> = leases.iter().map(|kept| of(&kept.value)).collect();
    let now = tasks.iter().map(|(task, contract)| (task.id.clone(), fingerprint(contract)));
    let kept = now.map(|(id, own)| {
        let last = before.get(&id).filter(|_| !taken.contains(&(id.clone(), own.clone())));
        (id, last.cloned().unwrap_or(own))
    });
    kept.collect()
}

pub(super) fn fingerprint(contract: &Contract) -> String {
    let of = |run: &Run| {
        let who = (run.agent.clone(), run.fallback.clone(), run.model.clone(), run.account.clone());
        (who, run.permissions, run.max_turns)
    };
    let whole = hash(&serde_json::to_vec(&contract.run.as_ref().map(of)).unwrap_or_default());
    whole[..FINGERPRINT_DIGITS].to_owned()
}
