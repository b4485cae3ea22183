//! A fleet that was started before: what a later start keeps of it. A node of a cluster, which did
//! not start it, gets a clone and a copy of its terms.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::memory::Memory;
use crate::engine::fleet::{Fleet, FleetTerms, Remote};
use crate::engine::git::GitSetting;
use crate::parse::arguments::FleetRunArgs;
use crate::parse::fleet::FLEET_FILE;
use crate::parse::git_push::without_secrets;
use crate::world::files::disk;
use crate::world::git::{self, hub, steps};
use crate::world::process::signals::Signals;
use crate::world::store::{Home, Kept, Leases, fleets};

/// A fleet that is known keeps what it was started with, unless another way is typed: its remote,
/// its landing, its engine, its slots and what it may cost; its base, until all is completed or
/// given up. Returns what has come into the repository's settings since. `notes` get what the user
/// should know.
pub(super) fn keep_its_way(
    home: &Home,
    fleet: &mut Fleet,
    terms: &FleetTerms,
    arguments: &FleetRunArgs,
    notes: &mut Vec<String>,
) -> Result<Vec<GitSetting>> {
    let Some(known) = fleets::manifest(home, &fleet.name)?.map(|kept| kept.value) else {
        return Ok(Vec::new());
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
    if terms.base.is_none() && fleet.base != known.base {
        notes.push(if is_over(home, &known, fleet)? {
            let Fleet { name, base, .. } = &*fleet;
            format!("all tasks of {name} are over: those that are new start from {base}")
        } else {
            keep_base(fleet, &known)?
        });
    }
    let typed = fleet.typed.or(known.typed);
    if fleet.typed.slots.is_none() {
        fleet.slots = typed.slots.or(terms.slots).unwrap_or(0);
    }
    if fleet.typed.max_cost_micros.is_none() {
        fleet.max_cost_micros = typed.max_cost_micros.or(terms.max_cost_micros).unwrap_or(0);
    }
    fleet.typed = typed;
    let both = known.trusted.as_ref().zip(fleet.trusted.as_ref());
    let changed = both.into_iter().flat_map(|(before, now)| now.changed_since(before));
    let planted = changed.filter(|it| it.names_a_program() || it.leads_a_remote());
    Ok(planted.cloned().collect())
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
             hint: run it there"
        );
    }
    bail!(
        "there is a fleet {name} of another repository, {before}\n\
         hint: name = \"NAME\" in {FLEET_FILE}, or crew fleet forget {name}"
    )
}

/// Whether nothing is left of a fleet as it is started now: what comes then is other work.
fn is_over(home: &Home, known: &Fleet, fleet: &Fleet) -> Result<bool> {
    let Leases { readable, unreadable } =
        Memory::at(home, &known.name, known.remote.as_ref()).leases()?;
    Ok(unreadable.is_empty() && readable.iter().all(|lease| lease.is_settled(fleet)))
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
    let remote = Remote { name: "origin".to_owned(), url: url.to_owned() };
    let memory = Memory::at(home, name, Some(&remote)).with_patience(signals, Duration::ZERO);
    let Some(Kept { value, .. }) = memory.known_manifest()? else {
        bail!("{url} holds no fleet {name}\nhint: crew fleet run starts it, with --push or --land");
    };
    let trusted = steps::trusted(&clone);
    let fleet = Fleet { repository: clone, remote: Some(remote), trusted, ..value };
    let known = here.as_ref().map(|here| here.id.as_str());
    fleets::swap_manifest(home, known, &fleet)?;
    Ok(())
}
