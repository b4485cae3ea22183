//! A mark in a working tree's own git folder while a step of crew's changes that tree. A crew that
//! is killed leaves it, and with it the next one knows that a lock or a rebase there is crew's own.
//! Without the mark nothing is put back: an agent may have left that on purpose.

use std::path::{Path, PathBuf};

use super::command::Command;
use super::pin::repository;
use super::steps::{Said, Steps, hooks, said};
use super::{git, shared_folder};
use crate::engine::git::{GitFault, GitStep};
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree;

/// Its name, and the most that is read of it, in bytes.
const MARK: &str = "crew-step";
const MARK_BYTES: u64 = 4096;

/// The mark, which is removed when this is dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct Underway(PathBuf);

impl Underway {
    /// Marks that a step begins, with the commit that is checked out. A lock that is there already
    /// is somebody else's: then there is no mark, and the step will fail.
    pub fn begin(steps: &Steps<'_>, step: GitStep, head: &str) -> Self {
        let folder = steps.folder();
        let mark = folder.join(MARK);
        if !disk::exists(&folder.join("index.lock")) {
            let text = format!("{} {head}", step.label());
            let _ = disk::write(&mark, text.as_bytes(), Durability::Remade);
        }
        Self(mark)
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let _ = disk::remove(&self.0);
    }
}

/// Puts back what a step of a killed crew left in a working tree: its locks, a rebase in progress,
/// a commit that the index lacks. The caller sees to it that no crew works there now. Nothing is
/// done without a mark.
///
/// # Errors
/// If git cannot put it back; the mark then stays.
pub fn put_back(checkout: &Path, branch: Option<&str>) -> Result<(), GitFault> {
    let Some(folder) = repository(checkout) else { return Ok(()) };
    let mark = folder.join(MARK);
    let Some(text) = disk::read_text(&mark, MARK_BYTES).ok().flatten() else { return Ok(()) };
    let of_branch =
        |branch| Some(shared_folder(checkout)?.join(format!("refs/heads/{branch}.lock")));
    let locks = ["index.lock", "HEAD.lock"].map(|lock| folder.join(lock));
    for lock in locks.into_iter().chain(branch.and_then(of_branch)) {
        let _ = disk::remove(&lock);
    }
    match text.split_once(' ') {
        Some(("rebase", head)) => undo_rebase(checkout, &folder, head)?,
        Some(("commit", head)) => {
            let list = ["diff-tree", "-r", "--name-only", "--no-renames", "-z", head, "HEAD"];
            let paths = git(checkout, &list).unwrap_or_default();
            let update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            run(checkout, &update, paths.as_bytes()).well(GitStep::Commit)?;
        }
        _ => {}
    }
    let _ = disk::remove(&mark);
    Ok(())
}

fn run(checkout: &Path, arguments: &[&str], input: &[u8]) -> Said {
    let terms = Command { input, ..Command::default() };
    said(checkout, arguments, &hooks(checkout), terms, || false)
}

fn undo_rebase(checkout: &Path, folder: &Path, head: &str) -> Result<(), GitFault> {
    let begun = ["rebase-merge", "rebase-apply"].map(|name| folder.join(name));
    let Some(begun) = begun.iter().find(|it| disk::exists(it)) else { return Ok(()) };
    let stash = disk::read_text(&begun.join("autostash"), MARK_BYTES).ok().flatten();
    let step = |arguments: &[&str]| run(checkout, arguments, &[]).well(GitStep::Rebase);
    let Some(stash) = stash.filter(|_| disk::is_missing(&begun.join("head-name"))) else {
        return step(&["rebase", "--abort"]).map(drop);
    };
    // git had only set aside what is not committed, and cannot undo that itself.
    step(&["reset", "-q", "--hard", head])?;
    step(&["stash", "apply", "-q", "--index", stash.trim_end()])?;
    let _ = tree::remove(begun);
    Ok(())
}
