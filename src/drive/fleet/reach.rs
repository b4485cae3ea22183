//! What a fleet needs beyond its folder, looked at before a person is asked anything: the branch
//! that it starts from at its remote, and the host's command line for pull requests. It writes
//! nothing.

use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};

use super::engines::LOCAL;
use crate::engine::fleet::{Fleet, LandingMode, Remote};
use crate::engine::git::{GitFault, GitTrouble, RemoteRef};
use crate::engine::text::{count, named};
use crate::parse::arguments::FleetRunArgs;
use crate::world::client::on_path;
use crate::world::files::disk;
use crate::world::git;
use crate::world::git::refs::Refs;
use crate::world::store::{Home, fleets};

/// The most fleets that a note names.
const NAMED_MAX: usize = 5;

/// Returns what the user should know: commits that the remote does not have.
///
/// # Errors
/// If the remote has no such branch or does not answer, if requests cannot be opened from here, or
/// if not all commits are here or would be there.
pub fn reach(home: &Home, fleet: &Fleet) -> Result<Vec<String>> {
    let Fleet { repository, base, remote, landing, engine, .. } = fleet;
    let Some(Remote { name, url, .. }) = remote else { return Ok(Vec::new()) };
    // Another engine's jobs run it on machines of their own.
    if *landing == LandingMode::Pr && engine == LOCAL && on_path("gh").is_empty() {
        bail!(
            "--land pr opens pull requests with gh, which is not on PATH\n\
             hint: install the GitHub CLI, and log in with gh auth login"
        );
    }
    if git::is_shallow(repository) {
        bail!(
            "this clone is shallow, and a fleet that pushes needs all of it\nhint: git fetch --unshallow"
        );
    }
    let branch = format!("refs/heads/{base}");
    // An agent may have written into the repository since the fleet was started.
    let hub = home.fleet(&fleet.name).join("hub.git");
    let folder = if disk::exists(&hub) { &hub } else { repository };
    let refs = Refs { folder, remote: url, stop: &|| false, patience: None };
    let there = refs.list(&[&branch, "refs/crew/*/_fleet", "refs/heads/crew/*/_fleet"]);
    let there = there.map_err(|fault| unreached(home, fleet, name, fault))?;
    let named =
        |it: &RemoteRef| Some(it.name.strip_suffix("/_fleet")?.rsplit('/').next()?.to_owned());
    let fleets: Vec<String> = there.iter().filter_map(named).collect();
    has_its_memory(home, fleet, &fleets)?;
    let mut notes: Vec<String> = others(home, fleet, &fleets).into_iter().collect();
    let Some(tip) = there.into_iter().find(|it| it.name == branch) else {
        return Err(no_base(fleet, name));
    };
    // The tip is not here if others pushed since the last fetch.
    let tracked = format!("refs/remotes/{name}/{base}");
    let lacks = |known: String| Some((git::lacking(repository, &branch, &known)?, known));
    let (ahead, known) = [tip.id, tracked].into_iter().find_map(lacks).unwrap_or_default();
    if ahead == 0 {
        return Ok(notes);
    }
    let branches = format!("refs/heads/{}", fleet.branch_of(""));
    if *landing == LandingMode::Main
        && let Some(task) = git::begun_beyond(repository, &branch, &known, &branches)
    {
        bail!(
            "{task} began on commits that {name}/{base} lacks, and would land them too\n\
             hint: git push {name} {base}"
        );
    }
    let is_behind = git::lacking(repository, &known, &branch) != Some(0);
    let pull =
        if is_behind { format!("git pull --rebase {name} {base}, and ") } else { String::new() };
    let commits = count(ahead, "commit");
    let them = if ahead == 1 { "it" } else { "them" };
    notes.push(format!(
        "{base} here is {commits} ahead of {name}/{base}: the tasks start without {them}\n\
         hint: {pull}git push {name} {base}"
    ));
    Ok(notes)
}

/// That the remote lacks the branch that the tasks start from.
fn no_base(fleet: &Fleet, name: &str) -> Error {
    let Fleet { repository, base, .. } = fleet;
    let hint = "base = \"BRANCH\" in fleet.toml";
    if git::is_a_commit(repository, &format!("refs/heads/{base}")) {
        return anyhow!(
            "{name} has no branch {base}\nhint: git push {name} {base}, or {hint} names another"
        );
    }
    if git::head(repository) == (None, Some(base.clone())) {
        return anyhow!(
            "no branch is checked out, so the tasks have nothing to start from at {name}\n\
             hint: git switch BRANCH, or {hint}"
        );
    }
    anyhow!(
        "the tasks start from {base}, which is no branch, so {name} has none for them\nhint: {hint}"
    )
}

/// Refuses a remote at another address than before that lacks the fleet's memory: there all of it
/// would be done again.
fn has_its_memory(home: &Home, fleet: &Fleet, names: &[String]) -> Result<()> {
    let Some(known) = fleets::manifest(home, &fleet.name)? else { return Ok(()) };
    let (Some(before), Some(now)) = (known.value.remote, &fleet.remote) else { return Ok(()) };
    if before.url == now.url || names.contains(&fleet.name) {
        return Ok(());
    }
    bail!(
        "the leases of the fleet {0} are at {1}, and {2} has none of them\n\
         hint: push refs/crew/{0}/* to {2}, or crew fleet forget {0} to begin anew there",
        fleet.name,
        before.url,
        now.name
    )
}

/// Why the remote gave no list. Only a fleet that has not pushed yet goes on without it.
fn unreached(home: &Home, fleet: &Fleet, name: &str, fault: GitFault) -> Error {
    use GitTrouble::{Auth, Network, NoRemote};
    let GitFault { trouble: Auth | Network | NoRemote, cause, cure, .. } = fault else {
        return fault.into();
    };
    let known = fleets::manifest(home, &fleet.name).ok().flatten();
    let has_pushed = known.is_some_and(|known| known.value.remote.is_some());
    let url = fleet.remote.as_ref().map(|remote| &*remote.url);
    let has_moved =
        || url.is_some_and(|url| git::remotes::at(&fleet.repository, url, name).is_none());
    let without = match has_pushed {
        false => "; without --push, --land and --on it is not needed",
        true if has_moved() => "; --push or --land goes to the address that there is now",
        true => "",
    };
    anyhow!("the remote {name} cannot be reached: {cause}\nhint: {cure}{without}")
}

/// The note about other fleets of the remote, where this one is new: a clone in a folder of another
/// name would begin all over.
fn others(home: &Home, fleet: &Fleet, names: &[String]) -> Option<String> {
    if names.is_empty() || names.contains(&fleet.name) || fleets::is_kept(home, &fleet.name) {
        return None;
    }
    let way_out = match names {
        [one] => format!("name = \"{one}\" in fleet.toml joins it, if these are its tasks"),
        _ => "name = \"NAME\" in fleet.toml joins the one that has these tasks".to_owned(),
    };
    Some(format!(
        "the fleet {} is new, and its remote has {}\nhint: {way_out}",
        fleet.name,
        named(names, NAMED_MAX)
    ))
}

/// The remote of a fleet that pushes.
pub(super) fn remote(top: &Path, arguments: &FleetRunArgs) -> Result<Option<Remote>> {
    let is_elsewhere = arguments.on.as_ref().is_some_and(|on| on != LOCAL);
    if !arguments.push && arguments.land.is_none() && !is_elsewhere {
        return Ok(None);
    }
    let Some((name, url)) = git::remotes::of(top) else {
        bail!(
            "this repository has no remote to push to\nhint: git remote add origin ADDRESS, or leave --push, --land and --on out"
        );
    };
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split('/').next());
    if url.starts_with("http") && authority.is_some_and(|it| it.contains('@')) {
        bail!(
            "the address of {name} holds a name or a password, and every user of a machine sees the words of its processes\n\
             hint: git remote set-url {name} without it, and a credential helper"
        );
    }
    Ok(Some(Remote { name, url, only_branches: false }))
}
