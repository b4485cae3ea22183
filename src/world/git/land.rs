//! The git steps of a landing, in a working tree of its own on no branch: the work of a branch as
//! one commit on the main branch as it will be. It runs no hook and asks nobody; the branch itself
//! is never moved here.

use std::path::Path;

use super::command::Command;
use super::merge::unmerged;
use super::steps::{Said, hooks, said};
use super::worktree::roots;
use super::{Git, git, submodules};
use crate::engine::git::{GitFault, GitStep};
use crate::world::files::disk;

/// The result of putting a branch's work onto another commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Squashed {
    /// As this commit.
    Commit(String),
    /// All of it is there already.
    Nothing,
    /// These files could not be merged.
    Conflict(Vec<String>),
}

/// Makes `folder` a working tree of `repository` on this commit, with nothing else in it but what
/// git ignores: what a build left there is of use to the next one.
pub fn lay_out(repository: &Path, folder: &Path, commit: &str) -> Result<(), GitFault> {
    if !disk::exists(&folder.join(".git")) {
        let there = folder.display().to_string();
        let arguments = ["worktree", "add", "--quiet", "--force", "--detach", "--", &there, commit];
        step(repository, &arguments)?;
    }
    // An attempt may have been cut off in the middle of a merge.
    step(folder, &["reset", "--quiet", "--hard", commit])?;
    step(folder, &["checkout", "--quiet", "--detach", commit])?;
    step(folder, &["clean", "--quiet", "-ffd"])?;
    Ok(())
}

/// Removes all that git does not track: what a refused branch left must not help the next one.
pub fn clear(folder: &Path) {
    run(folder, &["clean", "--quiet", "-ffdx"]);
}

/// The tracked files that differ from the commit that is checked out.
pub fn altered(folder: &Path) -> Vec<String> {
    let listed = git(folder, &["diff", "--name-only", "--ignore-submodules=dirty", "-z", "HEAD"]);
    let listed = listed.unwrap_or_default();
    listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
}

/// Commits the work of a branch on top of what is checked out.
pub fn squash(folder: &Path, branch: &str, message: &str) -> Result<Squashed, GitFault> {
    let merged = run(folder, &["merge", "--squash", "--quiet", branch]);
    if merged.exit != Some(0) {
        let files = unmerged(folder);
        return if files.is_empty() {
            Err(merged.fault(GitStep::Merge))
        } else {
            Ok(Squashed::Conflict(files))
        };
    }
    if run(folder, &["diff", "--cached", "--quiet"]).exit == Some(0) {
        return Ok(Squashed::Nothing);
    }
    let terms = Command { input: message.as_bytes(), ..Command::default() };
    let arguments = ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--file=-"];
    said(folder, &arguments, &hooks(folder), terms, || false).well(GitStep::Commit)?;
    let commit = Git::here(folder).commit("HEAD").unwrap_or_default();
    Ok(Squashed::Commit(commit))
}

/// The paths that a branch changes against where it left another commit.
pub fn changed(repository: &Path, from: &str, branch: &str) -> Option<Vec<String>> {
    compared(repository, &[&format!("{from}...{branch}")])
}

/// The paths that differ between two commits.
pub fn differing(repository: &Path, one: &str, other: &str) -> Option<Vec<String>> {
    compared(repository, &[one, other])
}

fn compared(repository: &Path, what: &[&str]) -> Option<Vec<String>> {
    let form = ["diff", "--name-only", "--no-renames", "-z"];
    let listed = git(repository, &[&form[..], what].concat())?;
    Some(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

/// Merges a commit into the branch that is checked out. Returns the files in conflict; the merge is
/// then under way.
pub fn merge_to_conflicts(folder: &Path, commit: &str) -> Result<Vec<String>, GitFault> {
    let arguments = ["merge", "--no-edit", "--no-verify", "--no-gpg-sign", "--quiet", commit];
    let before = Git::here(folder).commit("HEAD").unwrap_or_default();
    let merged = run(folder, &arguments);
    submodules::note(folder, &before);
    let files = if merged.exit == Some(0) { Vec::new() } else { unmerged(folder) };
    if merged.exit == Some(0) || !files.is_empty() {
        Ok(files)
    } else {
        Err(merged.fault(GitStep::Merge))
    }
}

/// Commits the files in conflict with their markers: this branch alone gets them, and its agent
/// resolves them.
pub fn commit_markers(folder: &Path, files: &[String]) -> Result<(), GitFault> {
    // Only these: the loop's own commits leave out what a person had not committed.
    let add: Vec<&str> =
        ["add", "--all", "--"].into_iter().chain(files.iter().map(String::as_str)).collect();
    step(folder, &add)?;
    step(folder, &["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--no-edit"])
}

/// Removes a working tree that holds nothing that is not committed. False where it does.
pub fn remove(repository: &Path, folder: &Path) -> bool {
    let there = folder.display().to_string();
    run(repository, &["worktree", "remove", "--", &there]).exit == Some(0)
}

/// Removes the working tree of landings with all that is in it, and takes it off the list of its
/// repository. The trees of others stay on that list, also those whose folder is away. Nothing is
/// done where the repository is gone.
pub fn discard(folder: &Path) -> Result<(), GitFault> {
    let trees = roots(folder);
    let real = disk::real_path(folder).unwrap_or_else(|_| folder.to_owned());
    let [repository, others @ ..] = &trees[..] else { return Ok(()) };
    if !others.contains(&real) {
        return Ok(());
    }
    let there = real.display().to_string();
    // One that a killed git was making is locked, which takes the word twice.
    let arguments = ["worktree", "remove", "--force", "--force", "--", &there];
    run(repository, &arguments).well(GitStep::Worktree).map(drop)
}

/// A partial clone fetches the files it lacks.
fn run(folder: &Path, arguments: &[&str]) -> Said {
    let terms = Command { online: true, ..Command::default() };
    said(folder, arguments, &hooks(folder), terms, || false)
}

fn step(folder: &Path, arguments: &[&str]) -> Result<(), GitFault> {
    run(folder, arguments).well(GitStep::Merge).map(drop)
}
