//! A mark in a working tree's own git folder while a step of crew's changes that tree. A crew that
//! is killed leaves it, and with it the next one knows that a lock or a rebase there is crew's own.
//! Without the mark nothing is put back: an agent may have left that on purpose.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::Command;
use super::pin::repository;
use super::steps::{Said, Steps, hooks, said};
use super::{git, shared_folder};
use crate::engine::git::{GitFault, GitStep, GitTrouble};
use crate::world::clock::Deadline;
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree;
#[cfg(target_os = "linux")]
use crate::world::process::table;

/// Its name, and the most that is read of it, in bytes.
const MARK: &str = "crew-step";
const MARK_BYTES: u64 = 4096;
/// How long the git of a killed crew is waited for, and how often it is looked for.
const GIT_ENDS: Duration = Duration::from_secs(5);
const GIT_STEP: Duration = Duration::from_millis(20);

/// The mark, which is removed when this is dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct Underway(PathBuf);

impl Underway {
    /// Marks that a step begins, with the commit that is checked out. A lock that is there already
    /// is somebody else's: then there is no mark, and the step will fail.
    pub fn begin(steps: &Steps<'_>, step: GitStep, head: &str) -> Self {
        let mark = steps.folder().join(MARK);
        let locks = locks(steps.checkout(), &steps.folder(), steps.place.branch.as_deref());
        if !locks.iter().any(|lock| disk::exists(lock)) {
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
    let ended = || (!git_works(checkout)).then_some(());
    if Deadline::after(GIT_ENDS).poll(GIT_STEP, ended).is_none() {
        let cause = "another git works here";
        return Err(GitFault::new(GitStep::Commit, GitTrouble::Unfinished, cause, "let it finish"));
    }
    for lock in locks(checkout, &folder, branch) {
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

/// The locks that a step of crew's may make: of the working tree's git folder, and of the one that
/// all working trees share.
fn locks(checkout: &Path, folder: &Path, branch: Option<&str>) -> Vec<PathBuf> {
    let own = ["index", "HEAD", "ORIG_HEAD", "AUTO_MERGE", "MERGE_HEAD", "CHERRY_PICK_HEAD"];
    let mut locks: Vec<PathBuf> =
        own.iter().map(|name| folder.join(format!("{name}.lock"))).collect();
    if let Some(shared) = shared_folder(checkout) {
        let of_branch = branch.map(|branch| format!("refs/heads/{branch}"));
        let names = ["packed-refs", "config"].into_iter().map(str::to_owned).chain(of_branch);
        locks.extend(names.map(|name| shared.join(format!("{name}.lock"))));
    }
    locks
}

/// Whether a git lives that works in this tree, whoever started it: a lock may be its own.
#[cfg(target_os = "linux")]
fn git_works(checkout: &Path) -> bool {
    let is_git = |pid| {
        let command = table::command(pid);
        let program = command.split(' ').next().unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or_default();
        name.starts_with("git") && table::works_in(pid, checkout)
    };
    table::table().into_iter().any(|(pid, row)| !row.has_ended && is_git(pid))
}

#[cfg(not(target_os = "linux"))]
fn git_works(_: &Path) -> bool {
    false
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
