//! The way of a fleet: what a later start keeps of the ones before it, unless it names another. It
//! writes nothing.

use anyhow::{Result, bail};

use super::memory::Memory;
use crate::engine::fleet::{
    Fleet, FleetTerms, Landed, LandingMode, Lease, Remote, TypedTerms, touches_the_fleet,
};
use crate::engine::git::GitSetting;
use crate::engine::record::Outcome;
use crate::parse::arguments::FleetRunArgs;
use crate::parse::fleet::FLEET_FILE;
use crate::parse::git_push::without_secrets;
use crate::world::git::{self, land};
use crate::world::store::fleets;
use crate::world::store::{Home, Leases};

/// What a start has kept.
#[derive(Debug, Default)]
pub(super) struct KeptWay {
    /// What has come into the repository's settings since.
    pub planted: Vec<GitSetting>,
    /// What the user should know of the remote and the base.
    pub notes: Vec<String>,
    /// Whether the start names a base, or the fleet is over and takes the one that is checked out.
    pub takes_a_base: bool,
}

/// A fleet that is known goes on as it was started, unless another way is typed: with its remote,
/// its landing, its engine, its slots and what it may cost; with its base, until all is completed
/// or given up.
pub(super) fn keep_its_way(
    home: &Home,
    fleet: &mut Fleet,
    terms: &FleetTerms,
    arguments: &FleetRunArgs,
) -> Result<KeptWay> {
    let takes_a_base = terms.base.is_some();
    let mut kept = KeptWay { takes_a_base, ..KeptWay::default() };
    let Some(known) = fleets::manifest(home, &fleet.name)?.map(|kept| kept.value) else {
        return Ok(kept);
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
    kept.notes.extend(keep_remote(fleet, &known));
    if arguments.land.is_none() {
        fleet.landing = known.landing;
    }
    if arguments.on.is_none() {
        fleet.engine.clone_from(&known.engine);
    }
    if !takes_a_base && fleet.base != known.base {
        kept.takes_a_base = is_over(home, &known, fleet.landing)?;
        kept.notes.push(if kept.takes_a_base {
            let Fleet { name, base, .. } = &*fleet;
            format!("all tasks of {name} are over: those that are new start from {base}")
        } else {
            keep_base(fleet, &known)?
        });
    }
    keep_limits(fleet, terms, known.typed);
    let (Some(before), Some(now)) = (&known.trusted, &fleet.trusted) else {
        return Ok(kept);
    };
    let concerns = |it: &&GitSetting| it.names_a_program() || it.leads_a_remote();
    let changed = now.changed_since(before).filter(concerns);
    kept.planted = changed.cloned().collect();
    Ok(kept)
}

/// Keeps the remote that holds the fleet's memory: the branch that is checked out may follow
/// another one. Where no remote has that address any more, a start that names its way goes to the
/// one that it finds; any other stays, for an agent may have set another address.
fn keep_remote(fleet: &mut Fleet, known: &Fleet) -> Option<String> {
    let before = known.remote.as_ref()?;
    let there = git::remotes::at(&fleet.repository, &before.url, &before.name);
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
    let url = git::remotes::of(now).map(|(_, url)| url);
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
    let Leases { readable, unreadable } = Memory::described(home, known).leases()?;
    let is_done = |lease: &Lease| {
        lease.ending().is_some_and(|ending| match (ending.outcome, &ending.landed) {
            (Outcome::Cancelled, _) | (Outcome::Completed, Some(Landed::Main(_))) => true,
            (Outcome::Completed, None) => landing == LandingMode::No,
            _ => false,
        })
    };
    Ok(unreadable.is_empty() && readable.iter().all(|kept| is_done(&kept.value)))
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
    let mut changed = land::changed(hub, head, &tip).unwrap_or_default();
    let differing = land::differing(hub, head, &tip).unwrap_or_default();
    changed.retain(|path| differing.contains(path));
    if let Some(path) = touches_the_fleet(&fleet.folder, &changed) {
        bail!(
            "{path} has changed on the remote's {0}, and this clone lacks that\n\
             hint: git pull, or merge {0}",
            fleet.base
        );
    }
    Ok(())
}
