//! Whose agent works on a task that several people have: they share its text, and each names an
//! agent in settings of their own. The first start decides, until a person who has started it since
//! names another one.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use super::engines::LOCAL;
use super::memory::Memory;
use crate::drive::start::agent::missing_program;
use crate::engine::fleet::{Fleet, FleetTask, Lease, TaskEnding, TaskId};
use crate::engine::record::{Contract, Run};
use crate::engine::text::named;
use crate::world::clock;
use crate::world::store::{Kept, hash};

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
