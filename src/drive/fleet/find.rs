//! Which fleet a person means: the one of a name, else the newest of the repository they are in. An
//! order without a name never reaches the fleet of another repository.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::engine::fleet::Fleet;
use crate::engine::text::Shown;
use crate::parse::arguments::UsageError;
use crate::world::git::worktree;
use crate::world::store::{Home, fleets};

/// The fleet of that name. Without one, the newest of the repository that holds `folder`, whichever
/// of its working trees started it; outside a repository the only one of this machine.
///
/// # Errors
/// If there is none, with those that there are, or if there is more than one. `tell` hears of one
/// that cannot be read and is not meant.
pub fn find(
    home: &Home,
    name: Option<&str>,
    folder: &Path,
    tell: impl FnMut(io::Error),
) -> Result<Fleet> {
    let known = known(home, name, tell)?;
    if known.is_empty() {
        bail!("there is no fleet on this machine\nhint: crew fleet run FOLDER starts one");
    }
    if let Some(name) = name {
        let Some(found) = known.iter().find(|fleet| fleet.name == name) else {
            bail!("there is no fleet {}\nhint: name one of these: {}", Shown(name), listed(&known));
        };
        return Ok(found.clone());
    }
    let trees = worktree::roots(folder);
    match (newest(&known, &trees), &known[..]) {
        (Some(found), _) => Ok(found.clone()),
        (None, [only]) if trees.is_empty() => Ok(only.clone()),
        (None, _) if trees.is_empty() => bail!(UsageError::new(
            "there is more than one fleet on this machine",
            format!("name one of these: {}", listed(&known))
        )),
        (None, _) => bail!(
            "there is no fleet of this repository\n\
             hint: crew fleet status NAME, or --fleet NAME with any other command, means one of these: {}",
            listed(&known)
        ),
    }
}

/// The newest fleet of the repository that holds `folder`. What cannot be read is left out.
pub fn newest_here(home: &Home, folder: &Path) -> Option<Fleet> {
    let known = known(home, None, drop).ok().filter(|known| !known.is_empty())?;
    newest(&known, &worktree::roots(folder)).cloned()
}

/// Which fleets of this machine can be named, as a hint.
pub(super) fn names(home: &Home) -> io::Result<String> {
    let known = fleets::names(home)?;
    if known.is_empty() {
        return Ok("crew fleet run FOLDER starts one".to_owned());
    }
    Ok(format!("name one of these: {}", known.join(", ")))
}

fn known(
    home: &Home,
    name: Option<&str>,
    mut tell: impl FnMut(io::Error),
) -> io::Result<Vec<Fleet>> {
    let mut known = Vec::new();
    for found in fleets::names(home)? {
        match fleets::manifest(home, &found) {
            Ok(fleet) => known.extend(fleet.map(|kept| kept.value)),
            Err(error) if name == Some(&*found) => return Err(error),
            Err(error) if name.is_none() => tell(error),
            Err(_) => {}
        }
    }
    Ok(known)
}

fn newest<'a>(known: &'a [Fleet], trees: &[PathBuf]) -> Option<&'a Fleet> {
    let ours = known.iter().filter(|fleet| trees.contains(&fleet.repository));
    ours.max_by_key(|fleet| fleet.started_at)
}

/// "shop (/home/me/shop), billing (/home/me/billing)".
fn listed(known: &[Fleet]) -> String {
    let one =
        |fleet: &Fleet| format!("{} ({})", fleet.name, Shown(&fleet.repository.to_string_lossy()));
    known.iter().map(one).collect::<Vec<_>>().join(", ")
}
