//! What another machine has put into leases that count here: a person trusts it first, as the text
//! of a file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;

use super::describe::need;
use super::joined::{counts, fingerprint, is_here, is_open};
use super::memory::Memory;
use super::settle::{is_stale, wants_landing};
use crate::engine::fleet::{Fleet, FleetTask, LandingMode};
use crate::engine::record::{Contract, Reaction, Run};
use crate::engine::settings::ValueOrigin;
use crate::engine::settings::trust::TrustRequest;
use crate::world::store::{Home, Kept, trust};

/// What another machine has put into a lease that counts, and nobody here has trusted yet: the text
/// of a task, and an agent.
pub(super) fn untrusted(
    home: &Home,
    memory: &Memory,
    fleet: &Fleet,
    here: Option<&Fleet>,
    tasks: &[(FleetTask, Contract)],
    retry: bool,
) -> Result<Vec<TrustRequest>> {
    let mut needs: Vec<TrustRequest> = Vec::new();
    let known = Known::of(here, tasks);
    let leases = if memory.is_shared() { memory.leases()?.readable } else { Vec::new() };
    for Kept { value: lease, .. } in leases {
        let own = tasks.iter().find(|(task, _)| task.id == *lease.id());
        let before = here.and_then(|here| here.files.get(lease.id()));
        // A start leaves these as they are, and this machine may take them up.
        let stays = lease.attempt().is_some() || (lease.loop_end.is_some() && !lease.is_retried);
        let is_left = match own {
            Some((task, _)) => here.is_some_and(|here| is_stale(&lease, task, &here.files)),
            // One that was here is cancelled, unless it runs.
            None => before.is_none(),
        };
        let is_open = is_open(&lease, retry && own.is_some());
        // A landing runs the checks of its lease, and may send the task back to its loop.
        let lands = fleet.landing == LandingMode::Main
            && wants_landing(fleet, &lease)
            && (own.is_some() || before.is_none());
        let is_whole = lands || (is_open && (stays || is_left));
        let has_its_agent = own.is_some_and(|(task, own)| counts(&lease, task, own, here));
        let is_asked = is_whole || (is_open && has_its_agent);
        if !is_asked {
            continue;
        }
        if own.is_none_or(|(task, _)| task.revision != lease.task.revision) {
            needs.push(need(fleet, &lease.task, &lease.contract));
        }
        let Some(run) = &lease.contract.run else { continue };
        let commands = is_whole.then(|| reactions(run)).into_iter().flatten();
        let commands = commands.filter(|command| !known.reactions.contains(command));
        let agent = fingerprint(&lease.contract);
        let is_new = !known.agents.contains(&agent) && is_here(fleet, run);
        let agent = is_new.then(|| agent_of(run, &agent));
        for what in agent.into_iter().chain(commands) {
            let text = format!("[fleet {}] {what}", fleet.name);
            let origin = ValueOrigin::File { path: PathBuf::from(&fleet.folder), line: 1 };
            let asked = TrustRequest { text, origin };
            if !needs.contains(&asked) {
                needs.push(asked);
            }
        }
    }
    Ok(trust::untrusted(home, &fleet.repository, needs)?)
}

/// What this machine's own settings name.
struct Known {
    agents: BTreeSet<String>,
    reactions: BTreeSet<String>,
}

impl Known {
    fn of(here: Option<&Fleet>, tasks: &[(FleetTask, Contract)]) -> Self {
        let before = here.map(|here| here.agents.clone()).unwrap_or_default();
        let own = tasks.iter().map(|(_, contract)| fingerprint(contract));
        let runs = tasks.iter().filter_map(|(_, contract)| contract.run.as_ref());
        Self {
            agents: before.into_values().chain(own).collect(),
            reactions: runs.flat_map(reactions).collect(),
        }
    }
}

/// An agent, by all that it would run.
fn agent_of(run: &Run, fingerprint: &str) -> String {
    let commands = run.agents().map(|agent| {
        let variables = agent.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let asks = agent.permissions.get(&run.permissions).into_iter().flatten();
        let words = variables.chain(agent.command.iter().chain(asks).cloned());
        shell_words::join(words.collect::<Vec<_>>())
    });
    format!(
        "an agent of another machine, fingerprint {fingerprint}, permissions {}: {}",
        run.permissions.label(),
        commands.collect::<Vec<_>>().join("; or ")
    )
}

/// The reactions of a run, each with its command at the end.
fn reactions(run: &Run) -> Vec<String> {
    let words = |reaction: &Reaction| {
        format!("a reaction of another machine, on {}: {}", reaction.on.label(), reaction.run)
    };
    run.reactions.iter().map(words).collect()
}
