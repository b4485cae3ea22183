//! The files of git LFS, of which commits hold pointers alone. A remote that lacks one has a branch
//! that nobody can check out, and git itself accepts such a push.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::Command;
use super::head::{common, folder};
use super::push::{fault, setting, ssh};
use super::steps::{Said, Steps};
use crate::engine::git::{GitFault, GitStep, GitTrouble};
use crate::engine::text::count;
use crate::parse::git_push::lfs_pointers;
use crate::world::files::disk;

/// The longest that git LFS may take to send its files.
const WITHIN: Duration = Duration::from_secs(600);
/// The most that is read of `.gitattributes`, in bytes.
const ATTRIBUTES_BYTES: u64 = 1 << 20;
/// Every object that is small enough for a pointer, which has at most 1,024 bytes.
const SMALL: &str = "--filter=combine:blob:limit=1025+object:type=blob";

impl Steps<'_> {
    /// Sends the files that a branch has and the remote may lack. Fails if they are not all there
    /// afterwards, or if that cannot be known.
    pub(super) fn send_lfs(&self, remote: &str, branch: &str) -> Result<(), GitFault> {
        if !uses_lfs(self.checkout()) {
            return Ok(());
        }
        let (own, seen) = (format!("refs/heads/{branch}"), format!("--remotes={remote}"));
        let list = ["rev-list", "--objects", "--no-object-names", SMALL, &own, "--not", &seen];
        let objects = self.printed(GitStep::Push, &list)?;
        let terms = Command { input: &objects, ..Command::default() };
        let batch = self.printed_with(GitStep::Push, &["cat-file", "--batch"], terms)?;
        let files = lfs_pointers(&batch);
        if files.is_empty() {
            return Ok(());
        }
        let variables = ssh(self.checkout());
        let within = Some(WITHIN);
        let terms = Command { variables: &variables, online: true, within, ..Command::default() };
        let said = self.run_with(&["lfs", "push", remote, &own], terms);
        let why = match said {
            Said { exit: Some(0), .. } => return Ok(()),
            said if !said.text.contains("is not a git command") => said.fault(GitStep::Push).cause,
            _ if self.are_at(remote, &files) => return Ok(()),
            _ => "git-lfs is not installed here".to_owned(),
        };
        let files = count(files.len() as u64, "file");
        let cause = format!("{files} of git LFS may be missing on {remote}: {why}");
        Err(fault(GitTrouble::Incomplete, cause, format!("git lfs push {remote} {branch}")))
    }

    /// Whether a remote on this machine has all of these files.
    fn are_at(&self, remote: &str, files: &[String]) -> bool {
        let url = |key: &str| setting(self.checkout(), &format!("remote.{remote}.{key}"));
        let address = url("pushurl").or_else(|| url("url")).unwrap_or_else(|| remote.to_owned());
        let path = self.checkout().join(address.strip_prefix("file://").unwrap_or(&address));
        let stores = [path.join("lfs/objects"), path.join(".git/lfs/objects")];
        let has = |store: &PathBuf, id: &String| {
            disk::is_file(&store.join(&id[..2]).join(&id[2..4]).join(id))
        };
        stores.iter().any(|store| files.iter().all(|id| has(store, id)))
    }
}

/// Whether git LFS is, or was, used in the repository of a checkout.
fn uses_lfs(checkout: &Path) -> bool {
    let store = folder(checkout).map(|folder| common(&folder).join("lfs"));
    let attributes = disk::read_text(&checkout.join(".gitattributes"), ATTRIBUTES_BYTES);
    store.is_some_and(|store| disk::exists(&store))
        || attributes.ok().flatten().is_some_and(|text| text.contains("filter=lfs"))
}
