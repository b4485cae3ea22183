//! What an iteration, or a whole loop, changed in the working tree: paths, lines and commits, from
//! two snapshots, and what became of the commits of its repository. It reads no repository and
//! judges nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::text::{count, join_first_names, one_line};

/// The maximum number of files kept by name.
pub const FILES_KEPT: usize = 100;

/// The maximum number of paths left out of a snapshot that a line names.
const LEFT_OUT_NAMED: usize = 3;

/// How a file changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Created,
    Modified,
    Deleted,
    /// The path before.
    Renamed {
        from: String,
    },
}

impl ChangeKind {
    /// The kind as one word: "new", "changed", "deleted", "renamed".
    pub fn kind_word(&self) -> &'static str {
        match self {
            Self::Created => "new",
            Self::Modified => "changed",
            Self::Deleted => "deleted",
            Self::Renamed { .. } => "renamed",
        }
    }
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// From the root of the working tree; bytes that are not UTF-8 are replaced.
    pub path: String,
    pub kind: ChangeKind,
    /// Lines added and removed; `None` for a file that is not text.
    pub lines: Option<(u64, u64)>,
    /// Whether it had uncommitted changes when the loop began.
    #[serde(default)]
    pub yours: bool,
}

impl ChangedFile {
    /// Its path, and the former one if it was renamed, each in at most `characters`.
    pub fn short_name(&self, characters: usize) -> String {
        let path = one_line(&self.path, characters);
        match &self.kind {
            ChangeKind::Renamed { from } => format!("{} → {path}", one_line(from, characters)),
            _ => path,
        }
    }
}

/// What happened to the commit and the branch of the working tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeadMove {
    /// Commits that are new on the branch.
    pub commits: u64,
    /// The number of commits that are no longer on the branch.
    pub gone: u64,
    /// The branch, or the commit of a detached head, that is checked out instead.
    pub switched_to: Option<String>,
    /// Whether the new commit has different files from the old one.
    pub holds_work: bool,
}

/// All changes between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    /// The changed files, at most 100 of them.
    pub files: Vec<ChangedFile>,
    pub created: u64,
    pub modified: u64,
    pub deleted: u64,
    pub renamed: u64,
    /// Lines added in all files.
    pub added: u64,
    /// Lines removed in all files.
    pub removed: u64,
    pub head: Option<HeadMove>,
    /// Whether the files differ in white space alone.
    pub white_space: bool,
    /// Files that snapshots leave out, by path, if one of them may have changed.
    pub left_out: Vec<String>,
    /// Submodules and other repositories inside the tree that changed, by path.
    pub repositories: Vec<String>,
    /// New commits on other branches, or in other working trees.
    pub elsewhere: u64,
}

impl Changes {
    /// The changes that consist of these files.
    pub fn from_files(files: impl IntoIterator<Item = ChangedFile>) -> Self {
        Self::default().with_files(files)
    }

    /// These changes with more files added.
    pub fn with_files(self, files: impl IntoIterator<Item = ChangedFile>) -> Self {
        let mut sum = self;
        for file in files {
            *match file.kind {
                ChangeKind::Created => &mut sum.created,
                ChangeKind::Modified => &mut sum.modified,
                ChangeKind::Deleted => &mut sum.deleted,
                ChangeKind::Renamed { .. } => &mut sum.renamed,
            } += 1;
            let (added, removed) = file.lines.unwrap_or_default();
            sum.added += added;
            sum.removed += removed;
            if sum.files.len() < FILES_KEPT {
                sum.files.push(file);
            }
        }
        sum
    }

    /// How many files changed in any way.
    pub fn file_count(&self) -> u64 {
        self.created + self.modified + self.deleted + self.renamed
    }

    /// Marks the files that had uncommitted changes when the loop began.
    pub fn mark_yours(&mut self, yours: &[String]) {
        for file in &mut self.files {
            let before = match &file.kind {
                ChangeKind::Renamed { from } => from,
                _ => &file.path,
            };
            file.yours = yours.contains(before);
        }
    }

    /// The first few files that snapshots leave out, for a message.
    pub fn left_out_named(&self) -> String {
        join_first_names(&self.left_out, LEFT_OUT_NAMED)
    }

    /// "2 files changed, 1 new, +40 −3, 1 commit"; `None` if nothing changed.
    pub fn change_words(&self) -> Option<String> {
        let some = |number: u64, word: &str| (number > 0).then(|| format!("{number} {word}"));
        let counted = |number: u64, noun: &str| (number > 0).then(|| count(number, noun));
        let (modified, added, removed) = (self.modified, self.added, self.removed);
        let new = if modified > 0 {
            some(self.created, "new")
        } else {
            counted(self.created, "new file")
        };
        let is_large = self.file_count() == 0 && !self.left_out.is_empty();
        let parts = [
            counted(modified, "file").map(|files| files + " changed"),
            new,
            some(self.renamed, "renamed"),
            some(self.deleted, "deleted"),
            (added + removed > 0).then(|| format!("+{added} −{removed}")),
            is_large.then(|| format!("{}, too large for snapshots", self.left_out_named())),
            (!self.repositories.is_empty()).then(|| {
                format!("work in {}", join_first_names(&self.repositories, LEFT_OUT_NAMED))
            }),
        ];
        let head = self.head.iter().flat_map(HeadMove::move_words);
        let elsewhere = counted(self.elsewhere, "commit").map(|commits| commits + " elsewhere");
        let words = parts.into_iter().flatten();
        let words: Vec<String> = words.chain(head).chain(elsewhere).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

impl HeadMove {
    /// "1 commit", "switched to main", "HEAD moved back by 2 commits".
    fn move_words(&self) -> Vec<String> {
        let switched = self.switched_to.iter().map(|branch| format!("switched to {branch}"));
        let moved = match (self.gone, self.commits) {
            _ if self.switched_to.is_some() && self.gone > 0 => None,
            (0, 0) => None,
            (0, commits) => Some(count(commits, "commit")),
            (gone, 0) => Some(format!("HEAD moved back by {}", count(gone, "commit"))),
            (gone, commits) => Some(format!("{} rewritten as {commits}", count(gone, "commit"))),
        };
        switched.chain(moved).collect()
    }
}

/// Commits made since the start, each as "1a2b3c4 Add the list", newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commits {
    /// The commits that are checked out and were not at the start; `None` if they are not known.
    #[serde(rename = "commits")]
    pub made: Option<Vec<String>>,
    /// The branch, or the commit of a detached head, that is checked out instead of the loop's;
    /// `None` if the loop's is.
    pub switched_to: Option<String>,
    /// The commits from before the loop that the branch of its start no longer has.
    #[serde(rename = "lost_commits")]
    pub lost: Vec<String>,
    /// The commits that crew made and that the checked-out branch does not have, each with its
    /// branch.
    #[serde(rename = "commits_elsewhere")]
    pub apart: Vec<String>,
    /// How many of the files that the loop changed are in no commit; `None` if nothing counted
    /// them.
    #[serde(rename = "uncommitted_files")]
    pub uncommitted: Option<u64>,
    /// How many ignored files changed, by the top-level name that they have or are below. Only a
    /// completed loop that commits has such counts.
    #[serde(rename = "ignored_files")]
    pub ignored: BTreeMap<String, u64>,
}

impl Commits {
    /// The maximum number of commits and of files that are looked up.
    pub const MOST: usize = 1000;

    /// The commits made since the start, as far as they are known.
    pub fn known_commits(&self) -> &[String] {
        self.made.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod changes_tests {
    use super::*;

    fn file(kind: ChangeKind, lines: Option<(u64, u64)>) -> ChangedFile {
        ChangedFile { path: "a".to_owned(), kind, lines, yours: false }
    }

    #[test]
    fn changes_are_summarized_in_one_line() {
        use ChangeKind::{Created, Deleted, Modified};
        let renamed = ChangeKind::Renamed { from: "b".to_owned() };
        let head = |commits, gone, to: Option<&str>| {
            let switched_to = to.map(str::to_owned);
            Some(HeadMove { commits, gone, switched_to, holds_work: true })
        };
        let table = [
            (vec![], None, None),
            (
                vec![(Modified, Some((38, 3))), (Modified, None), (Created, Some((2, 0)))],
                head(1, 0, None),
                Some("2 files changed, 1 new, +40 −3, 1 commit"),
            ),
            (vec![(Created, Some((0, 0)))], None, Some("1 new file")),
            (vec![(renamed, None), (Deleted, None)], None, Some("1 renamed, 1 deleted")),
            (vec![], head(0, 2, None), Some("HEAD moved back by 2 commits")),
            (vec![], head(1, 1, None), Some("1 commit rewritten as 1")),
            (vec![], head(3, 0, Some("feat")), Some("switched to feat, 3 commits")),
            (vec![], head(3, 1, Some("feat")), Some("switched to feat")),
        ];
        let inside =
            Changes { repositories: vec!["lib".to_owned()], elsewhere: 2, ..Changes::default() };
        assert_eq!(inside.change_words().as_deref(), Some("work in lib, 2 commits elsewhere"));
        for (files, head, expected) in table {
            let files = files.into_iter().map(|(kind, lines)| file(kind, lines));
            let changes = Changes { head, ..Changes::from_files(files) };
            assert_eq!(changes.change_words().as_deref(), expected);
        }
    }

    #[test]
    fn all_files_are_counted_and_a_hundred_are_named() {
        let files = std::iter::repeat_n(file(ChangeKind::Created, Some((1, 0))), 130);
        let changes = Changes::from_files(files);
        assert_eq!((changes.created, changes.added, changes.files.len()), (130, 130, FILES_KEPT));
    }
}
