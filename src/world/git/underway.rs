//! A mark in a working tree's own git folder while a step of crew's changes that tree. A crew that
//! is killed leaves it, and with it the next one knows that a lock or a rebase there is crew's own.
//! Without the mark nothing is put back: an agent may have left that on purpose.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::Command;
use super::pin::repository;
use super::steps::{Said, Steps, hooks, said};
use super::{git, worktree};
use crate::engine::git::{GitFault, GitStep, GitTrouble};
use crate::world::clock::Deadline;
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree;
#[cfg(not(target_os = "linux"))]
use crate::world::process;
#[cfg(target_os = "linux")]
use crate::world::process::identity;

/// Its name, and the most that is read of it, in bytes.
const MARK: &str = "crew-step";
const MARK_BYTES: u64 = 4096;
/// The most names of a folder, or of all refs, that are searched for locks.
const LOCKS_MAX: usize = 10_000;
/// Longer than a program holds a lock that is no git; the longest wait for a git; and between two
/// looks.
const LOCK_HELD: Duration = Duration::from_secs(1);
const GIT_ENDS: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);

/// The mark. When this is dropped it is removed, and so are the locks that a git of the step left
/// because it was killed.
#[derive(Debug)]
#[must_use]
pub(super) struct Underway<'a> {
    checkout: &'a Path,
    folder: PathBuf,
    /// The locks that were there before: they are somebody else's.
    before: Vec<PathBuf>,
}

impl<'a> Underway<'a> {
    /// Marks that a step begins, with the commit that is checked out.
    pub fn begin(steps: &Steps<'a>, step: GitStep, head: &str) -> Self {
        let (checkout, folder) = (steps.checkout(), steps.folder());
        let before = locks(&folder);
        let theirs = before.iter().map(|it| it.display().to_string());
        let lines: Vec<String> =
            [format!("{} {head}", step.label())].into_iter().chain(theirs).collect();
        let text = lines.join("\n");
        let _ = disk::write(&folder.join(MARK), text.as_bytes(), Durability::Remade);
        Self { checkout, folder, before }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        remove_locks(self.checkout, &self.folder, &self.before);
        let _ = disk::remove(&self.folder.join(MARK));
    }
}

/// Puts back what a step of a killed crew left in a working tree: its locks, a rebase in progress,
/// a commit that the index lacks. The caller sees to it that no crew works there now. Nothing is
/// done without a mark.
///
/// # Errors
/// If a git works there that may have made a lock, or git cannot put it back; the mark then stays.
pub fn put_back(checkout: &Path) -> Result<(), GitFault> {
    let Some(folder) = repository(checkout) else { return Ok(()) };
    let mark = folder.join(MARK);
    let Some(text) = disk::read_text(&mark, MARK_BYTES).ok().flatten() else { return Ok(()) };
    let mut lines = text.lines();
    let step = lines.next().unwrap_or_default();
    if !remove_locks(checkout, &folder, &lines.map(PathBuf::from).collect::<Vec<_>>()) {
        let (cause, cure) = ("another git holds a lock here", "let it finish");
        return Err(GitFault::new(GitStep::Commit, GitTrouble::Unfinished, cause, cure));
    }
    match step.split_once(' ') {
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

/// Removes the locks that were not there before, once no git works in the repository. False if one
/// still does. Another program than git holds a lock for less than is waited here.
fn remove_locks(checkout: &Path, folder: &Path, before: &[PathBuf]) -> bool {
    let mut left = locks(folder);
    left.retain(|lock| !before.contains(lock));
    let trees = if left.is_empty() { Vec::new() } else { worktree::roots(checkout) };
    let held = Deadline::after(LOCK_HELD);
    let is_quiet = || {
        left.retain(|lock| disk::exists(lock));
        (left.is_empty() || (held.passed() && !git_works(&trees))).then_some(())
    };
    let is_quiet = Deadline::after(GIT_ENDS).poll(LOOK, is_quiet).is_some();
    for lock in left.iter().filter(|_| is_quiet) {
        let _ = disk::remove(lock);
    }
    is_quiet
}

/// The locks of git now: in the folder of a working tree, in that of the repository, and of refs.
fn locks(folder: &Path) -> Vec<PathBuf> {
    let shared = disk::read_text(&folder.join("commondir"), MARK_BYTES).ok().flatten();
    let shared = shared.map_or_else(|| folder.to_owned(), |path| folder.join(path.trim_end()));
    let refs = tree::files(&shared.join("refs"), LOCKS_MAX);
    let mut found: Vec<PathBuf> = refs.iter().map(|name| shared.join("refs").join(name)).collect();
    for folder in [folder, &shared] {
        // The index of each crew has its own lock.
        let names = disk::names(folder, LOCKS_MAX).into_iter().filter(|it| !it.starts_with("crew"));
        found.extend(names.map(|name| folder.join(name)));
    }
    found.retain(|path| path.extension().is_some_and(|it| it == "lock"));
    found
}

/// Whether a git lives that works in one of these trees, whoever started it.
#[cfg(target_os = "linux")]
fn git_works(trees: &[PathBuf]) -> bool {
    let is_git = |pid| {
        let command = identity::command(pid);
        let name = command.split(' ').next().and_then(|program| program.rsplit('/').next());
        name.is_some_and(|name| name == "git" || name.starts_with("git-"))
    };
    let works = |pid| is_git(pid) && trees.iter().any(|tree| identity::works_in(pid, tree));
    identity::table().into_iter().any(|(pid, row)| !row.has_ended && works(pid))
}

#[cfg(not(target_os = "linux"))]
fn git_works(_: &[PathBuf]) -> bool {
    process::output_of("pgrep", &["-x", "git"]).is_some()
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
