//! What the user had staged, remembered before a rebase: git stashes it together with the unstaged
//! changes and restores both unstaged.

use std::collections::BTreeSet;

use super::command::Command;
use super::steps::Steps;
use crate::engine::git::{GitFault, GitStep};
use crate::parse::git_changes::{IndexEntry, entries};

/// The entries in which the index differs from a commit.
pub(super) struct Staged(Vec<IndexEntry>);

impl Staged {
    pub fn read(steps: &Steps<'_>, head: &str) -> Result<Self, GitFault> {
        let arguments =
            ["diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", head];
        Ok(Self(entries(&steps.printed(GitStep::Rebase, &arguments)?)))
    }

    /// Stages it again, except paths that differ between `before` and the commit that is checked
    /// out now: there it would revert the other branch's change.
    pub fn put_back(mut self, steps: &Steps<'_>, before: &str) -> Result<(), GitFault> {
        if self.0.is_empty() {
            return Ok(());
        }
        // This must run to its end: nothing else remembers what was staged.
        let steps = &steps.to_the_end();
        let arguments =
            ["diff-tree", "-r", "--raw", "--no-renames", "--no-abbrev", "-z", before, "HEAD"];
        let moved = entries(&steps.printed(GitStep::Rebase, &arguments)?);
        let moved: BTreeSet<Vec<u8>> = moved.into_iter().map(|entry| entry.path).collect();
        self.0.retain(|entry| !moved.contains(&entry.path));
        let input: Vec<u8> = self.0.iter().flat_map(IndexEntry::line).collect();
        let terms = Command { input: &input, ..Command::default() };
        let arguments = ["update-index", "-z", "--index-info"];
        steps.run_with(&arguments, terms).well(GitStep::Rebase).map(drop)
    }
}
