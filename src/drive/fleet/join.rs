//! A fleet that was started before, here or on another machine: what a later start keeps of it,
//! whose agent works on a task that several people have, and what a person has to trust of it
//! first. A machine that did not start a fleet gets a clone, and a copy of its terms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::memory::Memory;
use crate::drive::start::agent::missing_program;
use crate::engine::fleet::{
    Fleet, FleetTask, FleetTerms, LandingMode, Lease, Remote, TaskId, TypedTerms, touches_the_fleet,
};
use crate::engine::git::GitSetting;
use crate::engine::record::{Contract, Outcome, Reaction, Run};
use crate::engine::text::named;
use crate::parse::arguments::FleetRunArgs;
use crate::parse::fleet::FLEET_FILE;
use crate::parse::git_push::without_secrets;
use crate::parse::settings::merge::ValueOrigin;
use crate::parse::settings::trust::TrustRequest;
use crate::world::clock;
use crate::world::files::disk;
use crate::world::git::{self, hub, land, steps};
use crate::world::process::signals::Signals;
use crate::world::store::{Home, Kept, Leases, fleets, hash, trust};

/// A fleet that is known goes on as it was started, unless another way is typed: with its remote,
/// its landing, its engine, its slots and what it may cost; with its base, until all is completed
/// or given up. Returns whether the start names a base, or the fleet is over and takes the one that
/// is checked out, and what has come into the repository's settings since. `notes` get what the
/// user should know.
pub(super) fn keep_its_way(
    home: &Home,
    fleet: &mut Fleet,
    terms: &FleetTerms,
    arguments: &FleetRunArgs,
    notes: &mut Vec<String>,
) -> Result<(bool, Vec<GitSetting>)> {
    let mut takes_a_base = terms.base.is_some();
    let Some(known) = fleets::manifest(home, &fleet.name)?.map(|kept| kept.value) else {
        return Ok((takes_a_base, Vec::new()));
    };
    same_repository(fleet, &known)?;
    if known.folder != fleet.folder {
        bail!(
            "the fleet {} is of the tasks in {}\nhint: name = \"NAME\" in {}/{FLEET_FILE} makes this a fleet of its own",
            fleet.name,
            known.folder,
            fleet.folder
        );
    }
    notes.extend(keep_remote(fleet, &known));
    if arguments.land.is_none() {
        fleet.landing = known.landing;
    }
    if arguments.on.is_none() {
        fleet.engine.clone_from(&known.engine);
    }
    if !takes_a_base && fleet.base != known.base {
        takes_a_base = is_over(home, &known, fleet.landing)?;
        notes.push(if takes_a_base {
            let Fleet { name, base, .. } = &*fleet;
            format!("all tasks of {name} are over: those that are new start from {base}")
        } else {
            keep_base(fleet, &known)?
        });
    }
    keep_limits(fleet, terms, known.typed);
    let both = known.trusted.as_ref().zip(fleet.trusted.as_ref());
    let changed = both.into_iter().flat_map(|(before, now)| now.changed_since(before));
    let planted = changed.filter(|it| it.names_a_program() || it.leads_a_remote());
    Ok((takes_a_base, planted.cloned().collect()))
}

/// Keeps the remote that holds the fleet's memory: the branch that is checked out may follow
/// another one. Where no remote has that address any more, a start that names its way goes to the
/// one that it finds; any other stays, for an agent may have set another address.
fn keep_remote(fleet: &mut Fleet, known: &Fleet) -> Option<String> {
    let before = known.remote.as_ref()?;
    let there = hub::remote_at(&fleet.repository, &before.url, &before.name);
    let is_gone = there.is_none() && fleet.remote.is_none();
    fleet.remote = match (there, fleet.remote.take()) {
        (None, Some(found)) => Some(found),
        (Some(name), _) => Some(Remote { name, ..before.clone() }),
        (None, None) => Some(before.clone()),
    };
    is_gone.then(|| {
        format!(
            "the fleet stays at {}, which is the address of no remote here any more\n\
             hint: --push or --land goes to the one that there is",
            without_secrets(&before.url)
        )
    })
}

/// Takes the working tree in which a fleet was started before, where this is another one of the
/// same repository. Refuses another repository.
fn same_repository(fleet: &mut Fleet, known: &Fleet) -> Result<()> {
    let (before, now) = (&known.repository, &fleet.repository);
    if before == now {
        return Ok(());
    }
    if git::top(before).is_some() && git::shared_folder(before) == git::shared_folder(now) {
        fleet.repository.clone_from(before);
        return Ok(());
    }
    let url = hub::remote_of(now).map(|(_, url)| url);
    let is_moved = url.is_some() && url.as_ref() == known.remote.as_ref().map(|it| &it.url);
    if git::top(before).is_none() && is_moved {
        return Ok(());
    }
    let (name, before) = (&fleet.name, before.display());
    if is_moved {
        bail!(
            "the fleet {name} was started in another clone of this remote, {before}\n\
             hint: run it there; or crew fleet forget {name}, and join it here"
        );
    }
    bail!(
        "there is a fleet {name} of another repository, {before}\n\
         hint: name = \"NAME\" in {FLEET_FILE}, or crew fleet forget {name}"
    )
}

/// Whether every task of a fleet is completed or given up, and has nothing to land: what comes then
/// is other work.
fn is_over(home: &Home, known: &Fleet, landing: LandingMode) -> Result<bool> {
    let Leases { readable, unreadable } =
        Memory::at(home, &known.name, known.remote.as_ref()).leases()?;
    let is_done = |lease: &Lease| match lease.outcome() {
        Some(Outcome::Cancelled) => true,
        Some(Outcome::Completed) if lease.landed().is_none() => landing == LandingMode::No,
        Some(Outcome::Completed) => lease.is_on_main(),
        _ => false,
    };
    Ok(unreadable.is_empty() && readable.iter().all(is_done))
}

/// Keeps the base of a fleet that is not over, and returns what the user should know.
fn keep_base(fleet: &mut Fleet, known: &Fleet) -> Result<String> {
    let (base, here) = (&known.base, std::mem::replace(&mut fleet.base, known.base.clone()));
    let is_local = known.remote.is_none() && fleet.remote.is_none();
    if is_local && !git::is_a_commit(&fleet.repository, base) {
        bail!(
            "the tasks start from {base}, as the fleet was started, and that is no branch here any more\n\
             hint: base = \"{here}\" in {FLEET_FILE} changes that"
        );
    }
    Ok(format!(
        "the tasks start from {base}, as the fleet was started, and not from {here}\n\
         hint: base = \"{here}\" in {FLEET_FILE} changes that"
    ))
}

/// Keeps the limits that were typed before, unless others are typed now.
pub(super) fn keep_limits(fleet: &mut Fleet, terms: &FleetTerms, before: TypedTerms) {
    let typed = fleet.typed.or(before);
    if fleet.typed.slots.is_none() {
        fleet.slots = typed.slots.or(terms.slots).unwrap_or(0);
    }
    if fleet.typed.max_cost_micros.is_none() {
        fleet.max_cost_micros = typed.max_cost_micros.or(terms.max_cost_micros).unwrap_or(0);
    }
    fleet.typed = typed;
}

/// Refuses to change a fleet's way for all of its machines by a start that does not name one:
/// another clone knows only what it started itself.
pub(super) fn goes_the_same_way(
    fleet: &Fleet,
    known: &Fleet,
    [lands, places, bases]: [bool; 3],
) -> Result<()> {
    let is_another = (!lands && fleet.landing != known.landing)
        || (!places && fleet.engine != known.engine)
        || (!bases && fleet.base != known.base);
    if is_another {
        let way = match known.landing {
            LandingMode::No => "--push",
            LandingMode::Main => "--land",
            LandingMode::Pr => "--land pr",
        };
        let Fleet { name, engine, base, .. } = known;
        bail!(
            "the fleet {name} was last started elsewhere, with {way} --on {engine} from {base}\n\
             hint: type the same on {base} to join it"
        );
    }
    Ok(())
}

/// Refuses a clone whose tasks are older than those of the base at the remote: it would put back
/// what others have changed, and cancel what they have added.
/// `head` is what is checked out where they were read.
pub(super) fn is_up_to_date(memory: &Memory, fleet: &Fleet, head: Option<&str>) -> Result<()> {
    let (Some(hub), Some(head)) = (memory.hub(), head) else { return Ok(()) };
    let Some(tip) = memory.fetch_branch(&fleet.base)? else { return Ok(()) };
    let changed = land::changed_and_differing(hub, head, &tip).unwrap_or_default();
    if let Some(path) = touches_the_fleet(&fleet.folder, &changed) {
        bail!(
            "{path} has changed on the remote's {0}, and this clone lacks that\n\
             hint: git pull, or merge {0}",
            fleet.base
        );
    }
    Ok(())
}

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
    found: &[Lease],
    retry: bool,
) -> Result<(Tasks, Vec<String>)> {
    let now = clock::now().wall;
    let is_elsewhere = |lease: &Lease| lease.attempt().is_some_and(|it| !memory.is_here(it));
    let works_there = |lease: &Lease| is_elsewhere(lease) && lease.silent_ms(now).is_none();
    let works_elsewhere = found.iter().any(works_there);
    let (mut theirs, mut own) = (Vec::new(), Vec::new());
    let mut all = tasks.to_vec();
    for (task, contract) in all.iter_mut().filter(|_| memory.is_shared()) {
        let lease = found.iter().find(|lease| *lease.id() == task.id);
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
    lease.outcome().is_none_or(|outcome| retry && outcome.leaves_a_task_undone())
}

/// Whether the agent of a run is where its jobs run, as far as this machine knows.
pub(super) fn is_here(fleet: &Fleet, run: &Run) -> bool {
    !fleet.is_local() || missing_program(&run.agent, &fleet.repository).is_none()
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
    leases: &[Lease],
    before: &BTreeMap<TaskId, String>,
) -> BTreeMap<TaskId, String> {
    let of = |lease: &Lease| (lease.id().clone(), fingerprint(&lease.contract));
    let taken: BTreeSet<(TaskId, String)> = leases.iter().map(of).collect();
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
    // What this machine's own settings name.
    let own = tasks.iter().map(|(_, contract)| fingerprint(contract));
    let known = here.into_iter().flat_map(|here| here.agents.values().cloned());
    let known_agents: BTreeSet<String> = known.chain(own).collect();
    let runs = tasks.iter().filter_map(|(_, contract)| contract.run.as_ref());
    let known_reactions: BTreeSet<String> = runs.flat_map(reactions).collect();
    let leases = if memory.is_shared() { memory.leases()?.readable } else { Vec::new() };
    for lease in leases {
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
        let commands = commands.filter(|command| !known_reactions.contains(command));
        let agent = fingerprint(&lease.contract);
        let is_new = !known_agents.contains(&agent) && is_here(fleet, run);
        let agent = is_new.then(|| agent_of(run, &agent));
        for what in agent.into_iter().chain(commands) {
            let asked = trust_request(fleet, PathBuf::from(&fleet.folder), &what);
            if !needs.contains(&asked) {
                needs.push(asked);
            }
        }
    }
    Ok(trust::untrusted(home, &fleet.repository, needs)?)
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

/// How long a job waits for another that clones the repository.
const CLONE_WAIT: Duration = Duration::from_secs(30 * 60);

/// Makes a fleet known on this machine by the address of its remote. One that is known already, as
/// where it was started, keeps its repository. A signal ends the wait for another job and the clone
/// at once, and soon what else asks the remote.
pub fn join(home: &Home, name: &str, url: &str, signals: &Signals) -> Result<()> {
    let stop = || signals.times() > 0;
    home.make().with_context(|| format!("cannot keep fleets in {}", home.root().display()))?;
    let folder = home.fleet(name);
    let lock = fleets::hold_clone(home, name, CLONE_WAIT, &stop)?;
    let _lock = lock.with_context(|| {
        let other = "another job has cloned this fleet's repository for half an hour";
        if stop() { "the wait for the fleet's repository was ended" } else { other }
    })?;
    let here = fleets::manifest(home, name)?;
    if let Some(Kept { value: known, .. }) = &here {
        let there = known.remote.as_ref().map(|remote| &*remote.url);
        if there != Some(url) {
            let own = known.repository.display().to_string();
            bail!(
                "there is a fleet {name} of {} on this machine\n\
                 hint: crew fleet forget {name} forgets it here; name = \"NAME\" in fleet.toml makes them two",
                there.unwrap_or(&own)
            );
        }
        if disk::exists(&known.repository) {
            return Ok(());
        }
    }
    let clone = folder.join("clone");
    hub::clone(url, &clone, &stop)?;
    hub::make(&folder.join("hub.git"), &clone, None)?;
    let fleet = terms(home, name, url, &clone, signals)?;
    let known = here.as_ref().map(|here| here.id.as_str());
    fleets::swap_manifest(home, known, &fleet)?;
    Ok(())
}

/// The terms as the remote has them, under refs of crew's own or under branches.
fn terms(home: &Home, name: &str, url: &str, clone: &Path, signals: &Signals) -> Result<Fleet> {
    for only_branches in [false, true] {
        let remote = Remote { name: "origin".to_owned(), url: url.to_owned(), only_branches };
        let memory = Memory::at(home, name, Some(&remote)).with_patience(signals, Duration::ZERO);
        if let Some(Kept { value, .. }) = memory.known_manifest()? {
            let trusted = steps::trusted(clone);
            let repository = clone.to_owned();
            return Ok(Fleet { repository, remote: Some(remote), trusted, ..value });
        }
    }
    bail!("{url} holds no fleet {name}\nhint: crew fleet run starts it, with --push or --land")
}

/// Whether another machine has changed a task since this one's last start, and its file here is
/// still that of before.
pub(super) fn is_stale(lease: &Lease, task: &FleetTask, files: &BTreeMap<TaskId, String>) -> bool {
    let before = files.get(&task.id);
    before == Some(&task.revision) && before != Some(&lease.task.revision)
}

/// Whether a task is completed and still has to land, because the fleet lands now, or no longer by
/// pull requests.
pub(super) fn wants_landing(fleet: &Fleet, lease: &Lease) -> bool {
    is_completed(lease)
        && match fleet.landing {
            LandingMode::No => false,
            LandingMode::Pr => lease.landed().is_none(),
            LandingMode::Main => !lease.is_on_main(),
        }
}

/// Whether a task is completed, landed or not.
pub(super) fn is_completed(lease: &Lease) -> bool {
    lease.outcome() == Some(Outcome::Completed)
}

/// What a person has to trust of a task: its options, word for word, and its prompt.
pub(super) fn need(fleet: &Fleet, task: &FleetTask, contract: &Contract) -> TrustRequest {
    let FleetTask { id, revision, words, .. } = task;
    let mut words = shell_words::join(words);
    if task.words.iter().any(|word| word == "--verify=auto") {
        let found: Vec<&str> = contract.checks.iter().map(|check| check.run.as_str()).collect();
        words = format!("{words} (auto: {})", found.join("; "));
    }
    let path = Path::new(&fleet.folder).join(format!("{id}.md"));
    trust_request(fleet, path, &format!("task {id}, fingerprint {revision}: {words}"))
}

/// What a person has to trust because of this file.
pub(super) fn trust_request(fleet: &Fleet, path: PathBuf, what: &str) -> TrustRequest {
    let text = format!("[fleet {}] {what}", fleet.name);
    TrustRequest { text, origin: ValueOrigin::File { path, line: 1 } }
}
