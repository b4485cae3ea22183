//! Records a fleet as its folder describes it: the terms, and a lease with a contract for each
//! task. What is recorded here is all that a job obeys; a task that ended stays ended, whatever its
//! file says now. One machine starts a fleet: another one is refused, and changes nothing.

use std::collections::BTreeSet;

use anyhow::{Error, Result, anyhow, bail};

use super::describe::Described;
use super::memory::{Memory, TRIES};
use super::worktree::{continue_branches, is_merged};
use crate::engine::fleet::{Fleet, FleetOrder, FleetRequest, Lease, TaskEnding, TaskId, TaskState};
use crate::engine::record::Outcome;
use crate::engine::text::{distinct, named};
use crate::world::clock;
use crate::world::files::disk;
use crate::world::git::hub;
use crate::world::git::refs::Refs;
use crate::world::store::{Home, Kept, Leases, fleets};

/// The most tasks that a note names.
const NAMED_MAX: usize = 3;

/// Records the fleet and its tasks, or brings those that are recorded up to date. `retry`: what
/// ended without being completed is tried again. Returns what the user should know.
pub fn record(home: &Home, described: &Described, retry: bool) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for _ in 0..TRIES {
        if record_once(home, described, retry, &mut notes)? {
            return Ok(distinct(notes.into_iter()));
        }
    }
    bail!("the fleet {} is changed all the time\nhint: try again", described.fleet.name)
}

/// False where somebody else was first, whose record has to be read.
fn record_once(
    home: &Home,
    described: &Described,
    retry: bool,
    notes: &mut Vec<String>,
) -> Result<bool> {
    let (mut fleet, tasks) = (described.fleet.clone(), &described.tasks);
    let here = fleets::manifest(home, &fleet.name)?;
    let own = here.as_ref().map(|here| &here.value);
    if let Err(error) = fleets::remove_taken(home) {
        notes.push(format!("a fleet was forgotten, but {error}"));
    }
    if fleet.remote.is_some() {
        reach_remote(home, &fleet, own)?;
    }
    let memory = Memory::at(home, &fleet.name, fleet.remote.as_ref());
    let known = memory.known_manifest()?;
    let known_id = known.as_ref().map(|known| known.id.as_str());
    let known = known.as_ref().map(|known| &known.value);
    // A question of trust may have stood for long since the folder was read.
    let now = clock::now().wall;
    fleet.started_at = own.map_or(now, |own| own.started_at);
    fleet.ran_at = Some(now);
    if known.is_some_and(|known| known.started_at != fleet.started_at) {
        return Err(elsewhere(&fleet));
    }
    let Leases { readable: mut found, unreadable } = memory.leases()?;
    if let Some(known) = known {
        notes.extend(settle(&memory, &fleet, known, &mut found, tasks)?);
    }
    notes.extend(unreadable.iter().map(|it| format!("{} needs you: {}", it.task, it.why)));
    let open = found.iter().filter(|lease| lease.attempt().is_some()).map(Lease::id);
    let open = open.chain(unreadable.iter().map(|it| &it.task));
    // One that runs, or may run, has not obeyed its cancel yet.
    let cancels = open.filter_map(|id| Some((id.clone(), known?.cancel_of(id)?.clone()))).collect();
    fleet.orders = cancels;
    let is_known = |id: &TaskId| {
        found.iter().any(|lease| lease.id() == id) || unreadable.iter().any(|it| it.task == *id)
    };
    let fresh = tasks.iter().filter(|task| !is_known(task.id()));
    let mut new = fresh
        .map(|fresh| left_here(home, &fleet, own, fresh, retry))
        .collect::<Result<Vec<Lease>>>()?;
    if !new.is_empty() {
        notes.extend(continue_branches(&memory, &fleet, &mut new)?);
    }
    if let (Some(known), false, true, true) = (known, retry, new.is_empty(), unreadable.is_empty())
    {
        fleet.order = standing_cancel(&fleet, known, &found);
    }
    // A new fleet is recorded here first: a start that was cut off then knows it for its own.
    let begun = if own.is_none() { fleets::swap_manifest(home, None, &fleet)? } else { None };
    if own.is_none() && begun.is_none() {
        return Ok(false);
    }
    if memory.is_shared() && !memory.put_manifest(known_id, &fleet)? {
        return take_back(home, &memory, &fleet, begun).map(|()| false);
    }
    let here = here.as_ref().map(|here| here.id.as_str());
    if here.is_some() && fleets::swap_manifest(home, here, &fleet)?.is_none() {
        return Ok(false);
    }
    notes.extend(revise(&memory, &fleet, &found, tasks, retry)?);
    memory.put_new(&new)
}

/// Takes the terms that this start has begun with back, where another machine was faster.
fn take_back(home: &Home, memory: &Memory, fleet: &Fleet, begun: Option<String>) -> Result<()> {
    let is_anothers = |known: Kept<Fleet>| known.value.started_at != fleet.started_at;
    if let Some(begun) = begun
        && memory.known_manifest()?.is_some_and(is_anothers)
    {
        fleets::remove_manifest(home, &fleet.name, &begun)?;
    }
    Ok(())
}

/// That the terms at the remote are of a start that this machine knows nothing of.
fn elsewhere(fleet: &Fleet) -> Error {
    let remote = fleet.remote.as_ref().map_or("", |remote| &remote.name);
    anyhow!(
        "another machine started the fleet {0}, or it was forgotten here: its leases are at {remote}\n\
         hint: run it there, or name = \"NAME\" in {1}/fleet.toml makes this one of its own; if nobody runs it any \
         more, git ls-remote {remote} '{2}' | cut -f2 | xargs git push {remote} --delete lets it begin here, with \
         the work of its branches",
        fleet.name,
        fleet.folder,
        fleet.lease("*")
    )
}

/// Makes the fleet's own repository, and finds out whether a remote that is new to it takes the
/// refs of leases.
fn reach_remote(home: &Home, fleet: &Fleet, own: Option<&Fleet>) -> Result<()> {
    let hub = home.fleet(&fleet.name).join("hub.git");
    hub::make(&hub, &fleet.repository, fleet.trusted.as_ref())?;
    let Some(remote) = &fleet.remote else { return Ok(()) };
    let known = own.and_then(|own| own.remote.as_ref());
    if known.is_some_and(|known| known.url == remote.url) {
        return Ok(());
    }
    let refs = Refs { folder: &hub, remote: &remote.url, stop: &|| false, patience: None };
    if !refs.takes(&fleet.lease("_probe"))? {
        bail!(
            "{} takes no refs/crew/*, which hold the leases\n\
             hint: have its rules take them, or leave --push, --land and --on out",
            remote.name
        );
    }
    Ok(())
}

/// The lease of a task that is new to the fleet's memory. One that a local fleet has worked on here
/// resumes from there once the fleet has a remote: its job finds its loop, and pushes the work.
fn left_here(
    home: &Home,
    fleet: &Fleet,
    own: Option<&Fleet>,
    fresh: &Lease,
    retry: bool,
) -> Result<Lease> {
    let id = fresh.id();
    let (Some(kept), Some(own)) = (fleets::lease(home, &fleet.name, id)?, own) else {
        return Ok(fresh.clone());
    };
    if fleets::is_held(home, &fleet.name, id) {
        bail!("task {id} still runs here\nhint: wait for it, or crew fleet pause {id}");
    }
    let mut lease = kept.value;
    if lease.attempt().is_some() {
        lease.state = TaskState::Waiting;
    }
    if let Some(ending) = lease.given_up(fleet, own, false) {
        lease.state = TaskState::Ended(TaskEnding::of(ending));
        return Ok(lease.moved());
    }
    Ok(lease.next(fleet, fresh, retry, false).0.moved())
}

/// Brings the leases that are `found` up to date, except those of tasks without a file.
fn revise(
    memory: &Memory,
    fleet: &Fleet,
    found: &[Lease],
    tasks: &[Lease],
    retry: bool,
) -> Result<Vec<String>> {
    let (mut notes, mut changed_in_vain) = (Vec::new(), Vec::new());
    for lease in found {
        let Some(fresh) = tasks.iter().find(|task| task.id() == lease.id()) else { continue };
        let is_merged = retry && lease.ending().is_some() && is_merged(memory, fleet, lease)?;
        let (next, mut told) = lease.next(fleet, fresh, retry, is_merged);
        if next != *lease {
            memory.change(lease.id(), |lease| {
                let next = lease.next(fleet, fresh, retry, is_merged);
                told = next.1;
                let is_changed = next.0 != *lease;
                *lease = next.0;
                is_changed
            })?;
        }
        notes.extend(told);
        let is_over = next.outcome() == Some(Outcome::Completed);
        if is_over && lease.task.revision != fresh.task.revision {
            changed_in_vain.push(lease.id().to_string());
        }
    }
    let names = named(&changed_in_vain, NAMED_MAX);
    let (are, their, for_new) = match changed_in_vain.len() {
        0 => return Ok(notes),
        1 => ("is", "its file", "for a new task: give it another name"),
        _ => ("are", "their files", "for new tasks: give them other names"),
    };
    notes.push(format!(
        "{names} {are} completed, so what changed in {their} or in fleet.toml is {for_new}"
    ));
    Ok(notes)
}

/// The cancel of a whole fleet, as long as nothing is left of it that could go on.
fn standing_cancel(fleet: &Fleet, known: &Fleet, found: &[Lease]) -> Option<FleetOrder> {
    let cancel = known.order.as_ref().filter(|order| order.what == FleetRequest::Cancel);
    let is_over = found.iter().all(|lease| lease.is_settled(fleet));
    if is_over { cancel.cloned() } else { None }
}

/// Ends what a person's orders ended, and what is in no file any more, before the orders are
/// forgotten. Returns what the user should know.
fn settle(
    memory: &Memory,
    fleet: &Fleet,
    known: &Fleet,
    found: &mut [Lease],
    tasks: &[Lease],
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for lease in found {
        let id = lease.id().clone();
        let is_missed = !tasks.iter().any(|task| *task.id() == id);
        // Another working tree of the repository may have tasks of its own.
        let own = fleet.repository.join(&fleet.folder).join(format!("{id}.md"));
        let has_no_file = is_missed && !disk::exists(&own);
        if is_missed && !has_no_file && lease.ending().is_none() {
            let there = own.display();
            notes.push(format!("{id} stays: its file is {there}\nhint: crew fleet cancel {id}"));
        }
        if has_no_file && lease.attempt().is_some() {
            notes.push(format!("{id} runs on without its file\nhint: crew fleet cancel {id}"));
        }
        let ending = lease.given_up(fleet, known, has_no_file);
        let Some(ending) = ending.filter(|_| !memory.is_held(&id)) else { continue };
        if has_no_file {
            notes.push(format!("{id} is cancelled: its file is gone"));
        }
        *lease = memory.end(&id, ending, |found| found.state == lease.state)?;
    }
    Ok(notes)
}

/// The leases as they will be once the fleet is recorded, in the order in which tasks start.
/// Nothing is written.
pub fn foreseen(home: &Home, described: &Described, retry: bool) -> Result<Vec<Lease>> {
    let Described { fleet, tasks, .. } = described;
    let here = fleets::manifest(home, &fleet.name)?.map(|kept| kept.value);
    let mut known = Leases::default();
    let mut gets_a_remote = false;
    if let Some(here) = here {
        known = Memory::at(home, &fleet.name, here.remote.as_ref()).leases()?;
        gets_a_remote = fleet.remote.is_some() && here.remote.is_none();
    }
    let is_readable = |task: &Lease| !known.unreadable.iter().any(|it| it.task == *task.id());
    let of = |fresh: &Lease| {
        let found = known.readable.iter().find(|lease| lease.id() == fresh.id());
        let next = found.map(|found| found.next(fleet, fresh, retry, false).0);
        let next = next.unwrap_or_else(|| fresh.clone());
        if gets_a_remote { next.moved() } else { next }
    };
    Ok(in_order(tasks.iter().filter(|task| is_readable(task)).map(of).collect()))
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
