//! Records a fleet as its folder describes it: the terms, and a lease with a contract for each
//! task. What is recorded here is all that a job obeys; a task that ended stays ended, whatever its
//! file says now. What a start makes of earlier requests and of tasks without a file is here, too.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use super::describe::Described;
use super::gate;
use super::join::{
    self, agents, as_started, goes_the_same_way, is_completed, is_stale, is_up_to_date,
    keep_limits, wants_landing,
};
use super::memory::{Memory, TRIES};
use super::worktree::{continue_branches, is_merged};
use crate::engine::fleet::{
    Fleet, FleetOrder, FleetRequest, FleetTask, Lease, Start, TaskEnding, TaskId, TaskState,
};
use crate::engine::record::{Contract, Ending, Outcome};
use crate::engine::text::{distinct, named};
use crate::parse::fleet::FLEET_FILE;
use crate::world::clock;
use crate::world::files::disk;
use crate::world::git::hub;
use crate::world::git::refs::Refs;
use crate::world::store::{Home, Kept, Leases, fleets};

/// The most tasks that a note names.
const NAMED_MAX: usize = 3;

/// The tasks that may start now, for somebody else to start: each has its part of the fleet's money
/// set aside. Those of silent attempts come last: a job of theirs waits until it is sure.
pub fn starts(home: &Home, fleet: &Fleet) -> Result<Vec<TaskId>> {
    let memory = Memory::of(home, &fleet.name)?;
    let Leases { readable: leases, unreadable } = memory.leases()?;
    let plan = gate::plan(home, fleet, &leases, unreadable.is_empty());
    for Start { task, reserved_micros } in &plan.starts {
        memory.change(task, |lease| {
            let is_new = lease.reserved_micros != *reserved_micros;
            lease.reserved_micros = *reserved_micros;
            is_new && lease.state == TaskState::Waiting
        })?;
    }
    let now = clock::now().wall;
    let silent = leases.iter().filter(|lease| lease.silent_ms(now).is_some());
    let silent = silent.map(|lease| lease.id().clone());
    Ok(plan.starts.into_iter().map(|start| start.task).chain(silent).collect())
}

/// Records the fleet and its tasks, or brings those that are recorded up to date. `retry`: what
/// ended without being completed is tried again. Returns what the user should know; `None` where
/// the fleet's memory names programs that a person has to trust first: they are in `described`.
pub fn record(home: &Home, described: &mut Described, retry: bool) -> Result<Option<Vec<String>>> {
    let mut notes = Vec::new();
    described.untrusted.clear();
    for _ in 0..TRIES {
        if record_once(home, described, retry, &mut notes)? {
            return Ok(Some(distinct(notes.into_iter())));
        }
        if !described.untrusted.is_empty() {
            return Ok(None);
        }
    }
    bail!("the fleet {} is changed all the time\nhint: try again", described.fleet.name)
}

/// False where somebody else was first, whose record has to be read, or where a person has to be
/// asked.
fn record_once(
    home: &Home,
    described: &mut Described,
    retry: bool,
    notes: &mut Vec<String>,
) -> Result<bool> {
    let Described { fleet, terms, typed, names_its_way, head, tasks, untrusted, .. } = described;
    let here = fleets::manifest(home, &fleet.name)?;
    let own = here.as_ref().map(|here| &here.value);
    if let Err(error) = fleets::remove_taken(home) {
        notes.push(format!("a fleet was forgotten, but {error}"));
    }
    if fleet.remote.is_some() {
        notes.extend(join_remote(home, fleet, own)?);
    }
    let memory = Memory::at(home, &fleet.name, fleet.remote.as_ref());
    let known = memory.known_manifest()?;
    // A question of trust may have stood for long since the folder was read.
    fleet.started_at = clock::now().wall;
    fleet.ran_at = Some(fleet.started_at);
    let files = own.map(|own| own.files.clone()).unwrap_or_default();
    let names: BTreeSet<&TaskId> = tasks.iter().map(|(task, _)| &task.id).collect();
    if let Some(known) = &known {
        goes_the_same_way(fleet, &known.value, *names_its_way)?;
        is_up_to_date(&memory, fleet, head.as_deref())?;
        *untrusted = join::untrusted(home, &memory, fleet, own, tasks, retry)?;
        if !untrusted.is_empty() {
            return Ok(false);
        }
        fleet.started_at = known.value.started_at;
        // Another machine may have typed others since this one last did. Slots are its own.
        fleet.typed = *typed;
        let (mut before, there) = (known.value.typed, known.value.typed.slots);
        let here = own.and_then(|own| own.typed.slots);
        before.slots = if fleet.is_local() { here } else { there.or(here) };
        keep_limits(fleet, terms, before);
        notes.extend(settle(&memory, fleet, &known.value, (&files, &names))?);
        fleet.orders = standing_orders(&memory, &known.value)?;
    }
    let Leases { readable: found, unreadable } = memory.leases()?;
    notes.extend(unreadable.iter().map(|it| format!("{} needs you: {}", it.task, it.why)));
    let (all, told) = as_started(&memory, fleet, own, tasks, &found, retry)?;
    notes.extend(told);
    let is_known = |id: &TaskId| found.iter().any(|lease| lease.id() == id);
    let is_new = |id: &TaskId| !is_known(id) && !unreadable.iter().any(|it| it.task == *id);
    let new = all.iter().filter(|(task, _)| is_new(&task.id));
    let new = new.map(|(task, contract)| known_here(home, fleet, (task, contract), retry));
    let mut new = new.collect::<Result<Vec<Lease>>>()?;
    if !new.is_empty() {
        notes.extend(continue_branches(&memory, fleet, &mut new)?);
    }
    fleet.files.clone_from(&files);
    fleet.agents = own.map(|own| own.agents.clone()).unwrap_or_default();
    let adds_nothing = !retry && new.is_empty() && unreadable.is_empty();
    if let (true, Some(known)) = (adds_nothing, &known) {
        fleet.order = standing_cancel(fleet, &known.value, &found);
    }
    if !memory.put_manifest(known.as_ref().map(|it| it.id.as_str()), fleet)? {
        return Ok(false);
    }
    if memory.is_shared() {
        fleets::swap_manifest(home, here.as_ref().map(|it| it.id.as_str()), fleet)?;
    }
    notes.extend(revise_all(&memory, fleet, (&all, &found), &files, retry)?);
    if !memory.put_new(&new)? {
        return Ok(false);
    }
    remember(home, &memory, tasks, &files)?;
    Ok(true)
}

/// Brings the leases that are `found` up to date, except those of tasks without a file.
fn revise_all(
    memory: &Memory,
    fleet: &Fleet,
    (tasks, found): (&[(FleetTask, Contract)], &[Lease]),
    files: &BTreeMap<TaskId, String>,
    retry: bool,
) -> Result<Vec<String>> {
    let (mut notes, mut completed, mut stale) = (Vec::new(), Vec::new(), Vec::new());
    for lease in found {
        let Some((task, contract)) = tasks.iter().find(|(task, _)| task.id == *lease.id()) else {
            continue;
        };
        if is_completed(lease) && !wants_landing(fleet, lease) {
            let is_new = lease.task.revision != task.revision;
            completed.extend(is_new.then(|| task.id.to_string()));
        } else if memory.is_shared() && is_stale(lease, task, files) {
            notes.extend(revise(memory, fleet, lease, (&lease.task, &lease.contract), retry)?);
            stale.push(task.id.to_string());
        } else {
            notes.extend(revise(memory, fleet, lease, (task, contract), retry)?);
        }
    }
    notes.extend(changed_in_vain(&completed));
    notes.extend(changed_elsewhere(&stale));
    Ok(notes)
}

/// Makes the fleet's own repository, and finds out whether its remote takes refs of crew's own.
fn join_remote(home: &Home, fleet: &mut Fleet, here: Option<&Fleet>) -> Result<Option<String>> {
    let hub = home.fleet(&fleet.name).join("hub.git");
    hub::make(&hub, &fleet.repository, fleet.trusted.as_ref())?;
    let Some(remote) = &mut fleet.remote else { return Ok(None) };
    let known = here.and_then(|here| here.remote.as_ref()).filter(|known| known.url == remote.url);
    if let Some(known) = known {
        // One refusal that passes must not move the memory of a fleet to other names.
        remote.only_branches = known.only_branches;
        return Ok(None);
    }
    let refs = Refs { folder: &hub, remote: &remote.url, stop: &|| false, patience: None };
    let probe = remote.lease(&fleet.name, "_probe");
    remote.only_branches = !refs.takes(&probe)?;
    Ok(remote.only_branches.then(|| {
        format!("{} takes no refs/crew/*: leases are branches crew/{}/*", remote.name, fleet.name)
    }))
}

/// The lease of a task that is new to the fleet's memory. One that a local fleet has worked on here
/// goes on from there once the fleet has a remote: its job finds its loop, and pushes the work.
fn known_here(
    home: &Home,
    fleet: &Fleet,
    (task, contract): (&FleetTask, &Contract),
    retry: bool,
) -> Result<Lease> {
    let Some(found) = fleets::lease(home, &fleet.name, &task.id)?.map(|kept| kept.value) else {
        return Ok(lease(fleet, task, contract));
    };
    if fleets::is_held(home, &fleet.name, &task.id) {
        bail!("task {0} still runs here\nhint: wait for it, or crew fleet pause {0}", task.id);
    }
    let before = fleets::manifest(home, &fleet.name)?.map(|kept| kept.value);
    let cancel = before.as_ref().and_then(|before| before.cancel_of(&task.id));
    if let (Some(order), None) = (cancel, found.ending()) {
        let state = TaskState::Ended(TaskEnding::of(order.ending()));
        return Ok(Lease { state, commit: None, ..found });
    }
    let is_retried = retry && may_be_retried(&found) && spent(&found, contract).is_none();
    let ending = found.ending().cloned();
    let has_ended = ending.is_some();
    let mut lease = found;
    if is_retried {
        lease.try_again();
    } else if !has_ended || moves(&lease) {
        lease.state = TaskState::Waiting;
        lease.loop_end = ending.or(lease.loop_end.take());
    }
    if is_retried || !has_ended {
        lease.renew(task, contract);
    }
    if lease.state != TaskState::Waiting {
        lease.commit = None;
    }
    Ok(lease)
}

/// Whether the job of a task has something to push, once its fleet has a remote.
pub(super) fn moves(found: &Lease) -> bool {
    found.loop_id.is_some() && found.outcome() != Some(Outcome::Cancelled)
}

/// Whether a task ended without being completed.
pub(super) fn may_be_retried(found: &Lease) -> bool {
    found.outcome().is_some_and(|outcome| outcome != Outcome::Completed)
}

pub(super) fn lease(fleet: &Fleet, task: &FleetTask, contract: &Contract) -> Lease {
    Lease::new(fleet, task.clone(), contract.clone(), clock::now().wall)
}

/// Whether an exhausted task would end again at once.
pub(super) fn stays_exhausted(found: &Lease, contract: &Contract) -> bool {
    found.outcome() == Some(Outcome::Exhausted) && spent(found, contract).is_some()
}

/// The limit that leaves a task no further iteration, by its name in files.
fn spent(found: &Lease, contract: &Contract) -> Option<String> {
    Lease { contract: contract.clone(), ..found.clone() }.spent_limit()
}

/// Lets a completed task land, too.
pub(super) fn land_too(memory: &Memory, found: &Lease) -> Result<Lease> {
    let kept = memory.change(found.id(), |lease| {
        let is_meant = lease.state == found.state;
        lease.state = TaskState::Waiting;
        lease.loop_end = found.ending().cloned();
        is_meant
    })?;
    Ok(kept.value)
}

/// The note for the completed tasks whose files have changed.
fn changed_in_vain(completed: &[String]) -> Option<String> {
    let names = named(completed, NAMED_MAX);
    let rest = match completed.len() {
        0 => return None,
        1 => {
            "is completed, so what changed in its file or in fleet.toml is for a new task: give it another name"
        }
        _ => {
            "are completed, so what changed in their files or in fleet.toml is for new tasks: give them other names"
        }
    };
    Some(format!("{names} {rest}"))
}

/// The note for tasks whose files here are older than what another machine has started.
fn changed_elsewhere(stale: &[String]) -> Option<String> {
    let names = named(stale, NAMED_MAX);
    (!stale.is_empty()).then(|| {
        format!(
            "the text that another machine has started counts, and not that of the file here: {names}\n\
             hint: pull it, or change the file"
        )
    })
}

/// Brings the lease of a known task up to date, unless it runs. One that is completed only lands.
fn revise(
    memory: &Memory,
    fleet: &Fleet,
    found: &Lease,
    (task, contract): (&FleetTask, &Contract),
    retry: bool,
) -> Result<Option<String>> {
    if wants_landing(fleet, found) {
        land_too(memory, found)?;
        let how = if found.is_requested() { "if its pull request is still open" } else { "now" };
        return Ok(Some(format!("{} is completed, and lands {how}", task.id)));
    }
    let id = &task.id;
    let is_new = found.task.revision != task.revision;
    if found.attempt().is_some() {
        let why = "it runs; the next start takes it";
        return Ok(is_new.then(|| format!("{id} has changed, but {why}")));
    }
    let has_ended = found.ending().is_some();
    if has_ended && retry && is_merged(memory, fleet, found)? {
        memory.change(id, |lease| {
            let is_meant = lease.state == found.state;
            lease.try_again();
            lease.renew(task, contract);
            let why = "its branch was merged by hand";
            lease.loop_end = Some(TaskEnding::of(Ending::new(Outcome::Completed, why)));
            (lease.loop_id, lease.is_renewed) = (None, false);
            is_meant
        })?;
        return Ok(Some(format!("{id} is on {}, and is checked there", fleet.base)));
    }
    let spent = spent(found, contract).filter(|_| retry && has_ended);
    let retry = retry && !stays_exhausted(found, contract);
    memory.change(id, |lease| {
        if lease.attempt().is_some() {
            return false;
        }
        if has_ended && retry {
            lease.try_again();
        }
        lease.renew(task, contract);
        lease != found
    })?;
    if let Some(limit) = spent {
        let what =
            if retry { "is tried again, but has no iteration left" } else { "stays exhausted" };
        return Ok(Some(format!(
            "{id} {what}: its {limit} is used up\n\
             hint: raise {limit} in {}/{id}.md, or under [task] in {FLEET_FILE}, and try again",
            fleet.folder
        )));
    }
    Ok(match (has_ended, retry) {
        (true, true) => Some(format!("{id} is tried again")),
        (true, false) => Some(format!("{id} ended and stays so; --retry tries it again")),
        (false, _) if found.loop_end.is_some() => {
            is_new.then(|| format!("{id} has changed, but its work only has to land"))
        }
        (false, _) => is_new.then(|| format!("{id} has changed: its new text counts")),
    })
}

/// The cancels that a task has not obeyed yet: one that runs, or may run.
pub(super) fn standing_orders(
    memory: &Memory,
    known: &Fleet,
) -> Result<BTreeMap<TaskId, FleetOrder>> {
    let leases = memory.leases()?;
    let running = leases.readable.iter().filter(|lease| lease.attempt().is_some()).map(Lease::id);
    let open = running.chain(leases.unreadable.iter().map(|it| &it.task));
    let cancels = open.filter_map(|id| Some((id.clone(), known.cancel_of(id)?.clone())));
    Ok(cancels.collect())
}

/// The cancel of a whole fleet, as long as nothing is left of it that could go on.
pub(super) fn standing_cancel(fleet: &Fleet, known: &Fleet, found: &[Lease]) -> Option<FleetOrder> {
    let is_over = |lease: &Lease| {
        matches!(lease.outcome(), Some(Outcome::Completed | Outcome::Cancelled))
            && !wants_landing(fleet, lease)
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
    for lease in memory.leases()?.readable {
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
        let is_undone = lease.outcome().is_some_and(Outcome::leaves_a_task_undone);
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
            Some(order) => order.ending(),
            None if !has_no_file => continue,
            None => {
                notes.push(format!("{id} is cancelled: its file is gone"));
                Ending::new(Outcome::Cancelled, "its file is gone")
            }
        };
        memory.end(id, ending, |found| found.state == lease.state)?;
    }
    Ok(notes)
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
    for lease in &leases {
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
        let found = known.readable.iter().find(|lease| *lease.id() == task.id);
        let Some(found) = found.filter(|lease| lease.state != TaskState::Waiting) else {
            return lease(fleet, task, contract);
        };
        let mut lease = found.clone();
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
