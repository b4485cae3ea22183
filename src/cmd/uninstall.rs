//! `crew uninstall`: undoes what install did, and nothing else. The records of loops are never
//! touched.

use std::path::Path;

use anyhow::{Result, bail};

use super::install::refusal_to_an_agent;
use super::{all, home, listed, print, refuse_an_agent};
use crate::drive::install::{self, InstallScope, status_line};
use crate::drive::owner::needs_hooks;
use crate::engine::record::Loop;
use crate::exit::Exit;
use crate::report::install as words;
use crate::world::files::disk;

/// Uninstalls for this person, or from this repository's settings. Without `yes` it leaves the
/// hooks to loops that live by them.
pub fn uninstall(scope: InstallScope, client: Option<&Path>, yes: bool) -> Result<Exit> {
    refuse_an_agent(&refusal_to_an_agent("uninstall"))?;
    if scope == InstallScope::Project {
        install::unshare(client)?;
        print::out(words::UNSHARED);
        return Ok(Exit::SUCCESS);
    }
    let home = home()?;
    let mut loops = all(&home)?;
    loops.retain(|record| needs_hooks(&home, record));
    if !yes && let Some(first) = loops.first() {
        let (what, hint) = words::loops_in_sessions(&first.id, loops.len());
        bail!("{what}\nhint: {hint}\n{}", listed(&home, &loops).trim_end());
    }
    let line = status_line::remove();
    let removed = install::uninstall(client)?;
    let found = (removed.was_registered, removed.was_there);
    let records = disk::exists(home.root()).then(|| home.root());
    print::out(&words::uninstalled(&removed.folder, found, &removed.shared, records));
    if let Some(file) = line? {
        print::out(&words::without_a_line(&file));
    }
    for Loop { id, .. } in &loops {
        print::out(&words::unjudged(id));
    }
    Ok(Exit::SUCCESS)
}
