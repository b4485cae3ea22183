//! A merge into what is checked out. It runs no hook and asks nobody; a conflict is undone.

use std::path::Path;

use super::command::Command;
use super::git;
use super::steps::{hooks, said};
use crate::engine::git::{GitFault, GitStep};

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeResult {
    Done,
    /// These files could not be merged; the working tree is as it was.
    Conflict(Vec<String>),
}

/// Merges a branch, or another name of a commit, with a commit of its own.
pub fn merge(folder: &Path, branch: &str) -> Result<MergeResult, GitFault> {
    let arguments = ["merge", "--no-edit", "--no-verify", "--no-gpg-sign", "--quiet", branch];
    // A partial clone fetches the files it lacks.
    let terms = Command { online: true, ..Command::default() };
    let said = said(folder, &arguments, &hooks(folder), terms, || false);
    if said.exit == Some(0) {
        return Ok(MergeResult::Done);
    }
    let files = unmerged(folder);
    if files.is_empty() {
        return Err(said.fault(GitStep::Merge));
    }
    git(folder, &["merge", "--abort"]);
    Ok(MergeResult::Conflict(files))
}

/// The files with a conflict.
pub fn unmerged(folder: &Path) -> Vec<String> {
    let listed = git(folder, &["diff", "--name-only", "--diff-filter=U", "-z"]).unwrap_or_default();
    listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
}
