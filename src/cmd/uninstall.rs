//! `crew uninstall`: undoes what install did, and nothing else. The records of loops are never
//! touched.

use std::path::Path;

use anyhow::Result;

use super::install::refusal_to_an_agent;
use super::{home, print, refuse_an_agent};
use crate::drive::install::{self, InstallScope, status_line};
use crate::exit::Exit;
use crate::report::install as words;
use crate::world::files::disk;

/// Uninstalls for this person, or from this repository's settings.
pub fn uninstall(scope: InstallScope, client: Option<&Path>) -> Result<Exit> {
    refuse_an_agent(&refusal_to_an_agent("uninstall"))?;
    if scope == InstallScope::Project {
        install::unshare(client)?;
        print::out(words::UNSHARED);
        return Ok(Exit::SUCCESS);
    }
    let line = status_line::remove();
    let removed = install::uninstall(client)?;
    let found = (removed.was_registered, removed.was_there);
    let home = home()?;
    let records = disk::exists(home.root()).then(|| home.root());
    print::out(&words::uninstalled(&removed.folder, found, &removed.shared, records));
    if let Some(file) = line? {
        print::out(&words::without_a_line(&file));
    }
    Ok(Exit::SUCCESS)
}
