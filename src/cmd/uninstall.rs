//! `crew uninstall`: undoes what install did, and nothing else. The records of loops are never
//! touched.

use anyhow::Result;

use super::install::refuse_an_agent;
use super::{home, print};
use crate::cli::{ScopeArg, UninstallArgs};
use crate::drive::install;
use crate::exit::Exit;
use crate::report::install as words;
use crate::world::files::disk;

/// Uninstalls for this person, or from this repository's settings.
pub fn uninstall(arguments: &UninstallArgs) -> Result<Exit> {
    refuse_an_agent("uninstall")?;
    let client = arguments.client.as_deref();
    if arguments.scope == ScopeArg::Project {
        install::unshare(client)?;
        print::out(words::UNSHARED);
        return Ok(Exit::SUCCESS);
    }
    let removed = install::uninstall(client)?;
    let found = (removed.was_registered, removed.was_there);
    let home = home()?;
    let records = disk::exists(home.root()).then(|| home.root());
    print::out(&words::uninstalled(&removed.folder, found, &removed.shared, records));
    Ok(Exit::SUCCESS)
}
