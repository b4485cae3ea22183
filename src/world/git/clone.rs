//! A clone of a remote, for working trees of its branches. One that was cut off is made anew.

use std::path::Path;
use std::time::Duration;

use super::command::Command;
use super::push::ssh;
use super::steps::said;
use crate::engine::git::{GitFault, GitStep, GitTrouble};
use crate::world::files::{disk, tree};
use crate::world::process::Stop;

/// The longest that it may take.
const WITHIN: Duration = Duration::from_secs(30 * 60);

/// Clones the remote into a folder that does not exist, or does nothing. `stop` ends git at once.
pub fn clone(url: &str, folder: &Path, stop: Stop<'_>) -> Result<(), GitFault> {
    if disk::exists(folder) {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(folder);
    let part = folder.with_extension("part");
    let refuse = |why: std::io::Error| {
        GitFault::new(GitStep::Lease, GitTrouble::Other, why.to_string(), "try again")
    };
    tree::remove(&part).map_err(refuse)?;
    let there = part.display().to_string();
    let arguments = ["clone", "--quiet", "--no-checkout", "--", url, &there];
    let variables = ssh(parent);
    let terms = Command {
        variables: &variables,
        online: true,
        climbs: true,
        within: Some(WITHIN),
        ..Command::default()
    };
    said(parent, &arguments, &[], terms, stop).well(GitStep::Lease)?;
    disk::rename(&part, folder).map_err(refuse)
}
