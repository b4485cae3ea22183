//! An empty repository that lives for a moment, to find out what git can do on this machine: who
//! commits, and whether a remote takes a ref. Nothing of any other repository is read.

use std::path::PathBuf;

use super::command::Command;
use super::refs::Refs;
use super::steps::said;
use crate::engine::git::{GitFault, GitStep, GitTrouble};
use crate::world::env;
use crate::world::files::disk;
use crate::world::process::Stop;

/// Dropping it removes its folder.
#[derive(Debug)]
pub struct Probe {
    folder: PathBuf,
}

impl Probe {
    /// Makes it in the folder for temporary files.
    pub fn new() -> Result<Self, GitFault> {
        let folder = disk::make_scratch_folder(&env::temporary_folder(), env::random());
        let folder = folder.map_err(|error| {
            let cure = "set TMPDIR to a folder that can be written";
            GitFault::new(GitStep::Commit, GitTrouble::Other, error.to_string(), cure)
        })?;
        let probe = Self { folder };
        probe.git(&["init", "--quiet", "--bare", "."])?;
        Ok(probe)
    }

    /// Whether git knows who commits here, by the same rules as for a commit of crew.
    pub fn identity(&self) -> Result<(), GitFault> {
        ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"]
            .iter()
            .try_for_each(|who| self.git(&["var", who]))
    }

    /// Whether the remote at this address takes a ref of this name; see [`Refs::takes`].
    pub fn takes(&self, url: &str, name: &str, stop: Stop<'_>) -> Result<bool, GitFault> {
        Refs { folder: &self.folder, remote: url, stop, patience: None }.takes(name)
    }

    fn git(&self, arguments: &[&str]) -> Result<(), GitFault> {
        let terms = Command { climbs: true, ..Command::default() };
        said(&self.folder, arguments, &[], terms, || false).well(GitStep::Commit).map(drop)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // What is left of it is one small folder below the temporary ones.
        let _ = disk::remove_scratch_folder(&self.folder);
    }
}
