//! The git steps around an iteration, as values: the result of a step, or why it failed and how to
//! fix that. A failed step is reported; it never ends a loop by itself.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::text::{self, table_rows, variant_name, words_of};

/// The maximum number of files that a message names.
const FILES_NAMED: usize = 10;

/// The settings that crew checks, in lower case: what each names, and patterns in which a star is
/// any text.
const SETTINGS: &str = include_str!("git_settings.txt");

/// A setting of a repository's own configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSetting {
    pub name: String,
    pub value: String,
}

impl GitSetting {
    /// Whether one of these rows of [`SETTINGS`] includes it.
    fn is_one_that(&self, names: &[&str]) -> bool {
        let rows = table_rows(SETTINGS).filter(|(what, _)| names.contains(what));
        let mut patterns = rows.flat_map(|(_, patterns)| words_of(patterns));
        patterns.any(|pattern| match (pattern.split_once('*'), &self.name) {
            (None, name) => name == pattern,
            (Some((start, end)), name) => {
                name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
            }
        })
    }

    /// Whether git may run what this setting names, or what it enables. What is included may hold
    /// in another working tree alone.
    pub fn names_a_program(&self) -> bool {
        self.is_one_that(&["program"])
    }

    /// Whether it decides where a push goes, or what protects the push on its way. At an address on
    /// this machine, hooks would run there.
    pub fn names_a_place(&self) -> bool {
        self.is_one_that(&["place", "remote"])
    }

    /// Whether the setting affects a push whose branch and remote name are known: a proxy or an
    /// unchecked certificate lets others read and change what is pushed.
    pub fn leads_a_remote(&self) -> bool {
        self.is_one_that(&["remote"])
    }

    /// Whether it applies to a single branch other than `branch`.
    pub fn is_of_another_branch(&self, branch: &str) -> bool {
        let rest = self.name.strip_prefix("branch.").and_then(|rest| rest.rsplit_once('.'));
        rest.is_some_and(|(whose, _)| whose != branch)
    }
}

/// The settings of a repository's own configuration that name a program or a place to push to, as a
/// loop first found them: an agent that can write files may have changed them since. Values may
/// hold secrets, so only their hashes are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitBaseline(pub Vec<GitSetting>);

impl GitBaseline {
    /// The settings that were added or removed since `before`.
    pub fn changed_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a GitSetting> {
        let new = self.0.iter().filter(|setting| !before.0.contains(setting));
        new.chain(before.0.iter().filter(|setting| !self.0.contains(setting)))
    }
}

/// A git step that crew takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitStep {
    Commit,
    Push,
    Rebase,
    Merge,
    Worktree,
    /// Reading or moving the refs that fleets share.
    Refs,
    /// Opening a pull request, or asking about one.
    Request,
}

/// Why a step failed, sorted by the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitTrouble {
    /// The remote does not know this user, or does not let them do this.
    Auth,
    /// The remote could not be reached.
    Network,
    /// The branch on the remote has commits that this one lacks.
    NonFastForward,
    /// No remote, or no repository at its address.
    NoRemote,
    /// A hook or a rule of the remote rejected it.
    Rejected,
    /// Two changes to the same lines, which a person must resolve.
    Conflict,
    /// git does not know who commits.
    NoIdentity,
    /// A merge, a rebase or a similar operation is in progress.
    Unfinished,
    /// The repository's configuration names other programs than when the run began.
    Changed,
    /// The repository the loop began in is gone, broken or replaced, or its branch has lost every
    /// commit.
    Repository,
    /// A branch other than the loop's is checked out.
    Branch,
    /// What the commits refer to, of a submodule or of git LFS, is not on its remote.
    Incomplete,
    /// The disk has no space left, or rejects further writes.
    DiskFull,
    /// Anything else, in git's own words.
    Other,
}

impl GitTrouble {
    /// Whether only a person can help, as long as no other process works in the repository.
    pub fn needs_a_person(self) -> bool {
        !matches!(
            self,
            Self::Network
                | Self::NoRemote
                | Self::Repository
                | Self::Branch
                | Self::DiskFull
                | Self::Other
        )
    }
}

/// A failed step. The working tree is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{} failed: {cause}", variant_name(.step))]
pub struct GitFault {
    pub step: GitStep,
    pub trouble: GitTrouble,
    /// A sentence fragment.
    pub cause: String,
    /// What to do, as a sentence fragment.
    pub hint: String,
}

impl GitFault {
    /// Why a step failed, with a hint.
    pub fn new(
        step: GitStep,
        trouble: GitTrouble,
        cause: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { step, trouble, cause: cause.into(), hint: hint.into() }
    }

    /// The error that the user reads.
    pub fn to_failure(&self) -> Failure {
        Failure::new(self.to_string(), &self.hint)
    }

    /// Cause and hint on one line: the reason for a loop's end, or a line of progress.
    pub fn cause_and_hint(&self) -> String {
        let Self { step, trouble, cause, hint } = self;
        format!("{} failed ({}): {cause}; {hint}", variant_name(step), variant_name(trouble))
    }
}

/// The result of a push.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pushed {
    pub remote: String,
    /// The branch on the remote.
    pub branch: String,
    /// Whether the remote had everything already.
    pub was_up_to_date: bool,
    /// Whether this push set the upstream.
    pub upstream_was_set: bool,
    /// The commit that the remote branch is now at.
    pub commit: String,
}

/// The result of a rebase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rebased {
    /// This branch already has every commit of the other one.
    NothingNew,
    /// Onto this many commits that were missing.
    Onto(u64),
}

/// A ref as it is at a remote or in a local repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRef {
    /// The full name, `refs/...`.
    pub name: String,
    /// The object it points to.
    pub id: String,
}

/// What one atomic push does to one ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefUpdate {
    /// The full name, `refs/...`.
    pub name: String,
    /// The object it must point to before; `None` if it must not exist.
    pub old: Option<String>,
    /// The object it points to afterwards; `None` deletes it.
    pub new: Option<String>,
}

/// The result of moving refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwapResult {
    /// Every ref is as it should be.
    Done,
    /// One of the refs was moved by another process, so none was moved.
    Refused,
}

/// The result of a push without a clear answer, determined from the refs at the remote afterwards;
/// `None` if these refs were not moved at all.
pub fn swap_result(updates: &[RefUpdate], seen: &[RemoteRef]) -> Option<SwapResult> {
    let mut is_done = true;
    for RefUpdate { name, old, new } in updates {
        let now = seen.iter().find(|seen| seen.name == *name).map(|seen| &seen.id);
        // If some are old and some new, no other process prevents the same push.
        if now != old.as_ref() && now != new.as_ref() {
            return Some(SwapResult::Refused);
        }
        is_done &= now == new.as_ref();
    }
    is_done.then_some(SwapResult::Done)
}

/// A separate working tree for a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    pub path: PathBuf,
    /// Whether it was created just now.
    pub is_new: bool,
}

/// The first few names of files, for a message.
pub fn name_files(files: &[String]) -> String {
    text::join_first_names(files, FILES_NAMED)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn a_git_failure_names_the_step_the_cause_and_a_hint() {
        let fault = GitFault {
            step: GitStep::Push,
            trouble: GitTrouble::NoRemote,
            cause: "this repository has no remote".to_owned(),
            hint: "git remote add origin URL".to_owned(),
        };
        assert_snapshot!(fault.to_failure().with_hint(), @"
        push failed: this repository has no remote
        hint: git remote add origin URL
        ");
        assert_snapshot!(fault.cause_and_hint(), @"push failed (no-remote): this repository has no remote; git remote add origin URL");
    }

    #[test]
    fn the_outcome_of_an_unanswered_push_is_read_from_the_remote() {
        let id = |id: &str| Some(id.to_owned()).filter(|id| !id.is_empty());
        let update =
            |name: &str, old, new| RefUpdate { name: name.to_owned(), old: id(old), new: id(new) };
        let both = [update("record", "1", "2"), update("branch", "", "b")];
        let delete = [update("record", "1", "")];
        let (done, refused) = (Some(SwapResult::Done), Some(SwapResult::Refused));
        let table = [
            (&both[..], "record=2 branch=b", done),
            (&both, "record=1", None),
            (&both, "record=1 branch=b", None),
            (&both, "record=3", refused),
            (&both, "record=2 branch=c", refused),
            (&both, "", refused),
            (&delete, "", done),
            (&delete, "record=1", None),
            (&delete, "record=2", refused),
        ];
        for (updates, seen, expected) in table {
            let refs = seen.split_whitespace().map(|one| {
                let (name, id) = one.split_once('=').unwrap();
                RemoteRef { name: name.to_owned(), id: id.to_owned() }
            });
            let refs: Vec<RemoteRef> = refs.collect();
            assert_eq!(swap_result(updates, &refs), expected, "{updates:?} {seen}");
        }
    }

    #[test]
    fn a_long_list_of_files_is_truncated_and_counted() {
        let files: Vec<String> = (0..12).map(|number| format!("f{number}")).collect();
        assert_snapshot!(name_files(&files), @"f0, f1, f2, f3, f4, f5, f6, f7, f8, f9 and 2 more");
        assert_snapshot!(name_files(&files[..2]), @"f0, f1");
    }
}
