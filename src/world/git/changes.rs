//! What differs from the commit in a working tree, as `git status` lists it. Changes nothing.

use super::steps::Steps;
use crate::engine::git::{GitFault, GitStep};
use crate::parse::git::BRANCHES;
use crate::parse::git_changes::{FileChange, changes as read};

const STATUS: [&str; 6] = [
    "status",
    "--porcelain=v2",
    "-z",
    "--no-renames",
    "--untracked-files=all",
    "--ignore-submodules=dirty",
];

/// What differs from the commit in a working tree, except what crew itself writes there.
pub(super) fn changes(steps: &Steps<'_>, step: GitStep) -> Result<Vec<FileChange>, GitFault> {
    let printed = steps.printed(step, &STATUS)?;
    let mut changes = read(&printed);
    changes.retain(|change| !change.path.starts_with(BRANCHES));
    Ok(changes)
}
