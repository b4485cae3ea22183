//! A fleet on a machine that did not start it: its own repository, a clone for the working trees,
//! and a copy of the terms that says where they are. Several jobs may begin here at once.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::memory::Memory;
use crate::engine::fleet::{Fleet, Remote};
use crate::world::files::disk;
use crate::world::git::{clone, hub, steps};
use crate::world::process::signals::Signals;
use crate::world::store::fleets;
use crate::world::store::{Home, Kept};

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
    if let Some(here) = &here {
        if is_joined(&here.value, url) {
            return Ok(());
        }
        other_fleet(&here.value, url)?;
    }
    let clone = folder.join("clone");
    clone::clone(url, &clone, &stop)?;
    hub::make(&folder.join("hub.git"), &clone, None)?;
    let fleet = terms(home, name, url, &clone, signals)?;
    let known = here.as_ref().map(|here| here.id.as_str());
    fleets::swap_manifest(home, known, &fleet)?;
    Ok(())
}

/// Fails if the fleet of that name here is another one: of another remote, or of this machine
/// alone.
fn other_fleet(fleet: &Fleet, url: &str) -> Result<()> {
    let of = match &fleet.remote {
        Some(remote) if remote.url == url => return Ok(()),
        Some(remote) => remote.url.clone(),
        None => fleet.repository.display().to_string(),
    };
    Err(anyhow!(
        "there is a fleet {0} of {of} on this machine\n\
         hint: crew fleet forget {0} forgets it here; name = \"NAME\" in fleet.toml makes them two",
        fleet.name
    ))
}

fn is_joined(fleet: &Fleet, url: &str) -> bool {
    let is_its_own = fleet.remote.as_ref().is_some_and(|remote| remote.url == url);
    is_its_own && disk::exists(&fleet.repository)
}

/// The terms as the remote has them, under refs of crew's own or under branches.
fn terms(home: &Home, name: &str, url: &str, clone: &Path, signals: &Signals) -> Result<Fleet> {
    for only_branches in [false, true] {
        let remote = Remote { name: "origin".to_owned(), url: url.to_owned(), only_branches };
        let memory = Memory::shared_by(home, name, &remote).with_patience(signals, Duration::ZERO);
        if let Some(Kept { value, .. }) = memory.known_manifest()? {
            let trusted = steps::trusted(clone);
            let repository = clone.to_owned();
            return Ok(Fleet { repository, remote: Some(remote), trusted, ..value });
        }
    }
    Err(anyhow!(
        "{url} holds no fleet {name}\nhint: crew fleet run starts it, with --push or --land"
    ))
}
