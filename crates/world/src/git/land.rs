//! The git steps of a landing, in a separate working tree with a detached HEAD: a branch's work
//! becomes one commit on top of the main branch. Also merges into a task's branch, and finds that
//! branch's newest commit even if its agent has checked out another one. No hook runs and no
//! question is asked.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::inside::note_submodules;
use super::steps::{is_unfinished, stays_inside};
use super::{Git, count_lacking, find_commit, read_head, run_git, unmerged_files};
use crate::files::tree;
use crate::process::{ExitCause, Stop};
use engine::git::{GitFault, GitStep};
use engine::text::distinct_texts;
use readers::parse::git::zero_ended_names;

/// The result of squashing a branch onto another commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Squashed {
    /// The new commit.
    Commit(String),
    /// Nothing to commit: the main branch has all of it already.
    Nothing,
    /// These files could not be merged.
    Conflict(Vec<String>),
}

/// The paths in which two commits differ.
pub fn changed_paths(repository: &Path, from: &str, to: &str) -> Option<Vec<String>> {
    differing_paths(repository, &[from, to])
}

/// The paths that `git diff` lists for these arguments; a renamed file counts as two.
fn differing_paths(folder: &Path, what: &[&str]) -> Option<Vec<String>> {
    let form = ["diff", "--name-only", "--no-renames", "-z"];
    let listed = run_git(folder, &[&form[..], what].concat())?;
    Some(listed.split_terminator('\0').map(str::to_owned).collect())
}

/// Merges a commit into the current branch. Returns the files in conflict; the merge is then still
/// in progress.
pub fn merge_to_conflicts(folder: &Path, commit: &str) -> Result<Vec<String>, GitFault> {
    let arguments = ["merge", "--no-edit", "--no-verify", "--no-gpg-sign", "--quiet", commit];
    let before = Git::here(folder).commit("HEAD").unwrap_or_default();
    let files = find_conflicts(Git::lazily(folder), &arguments);
    note_submodules(folder, &before);
    files
}

/// The files in conflict after this merge, according to git's exit status and index.
fn find_conflicts(git: Git<'_>, merge: &[&str]) -> Result<Vec<String>, GitFault> {
    let merged = git.said(merge);
    let files = if merged.is_good() { Vec::new() } else { unmerged_files(git.folder) };
    if files.is_empty() { merged.check(GitStep::Merge).map(|()| files) } else { Ok(files) }
}

/// Commits the files in conflict with their markers. Only this branch gets them, and its agent
/// resolves them.
pub fn commit_markers(folder: &Path, files: &[String]) -> Result<(), GitFault> {
    // No other files: the loop's own commits leave out what a person had not committed.
    let add: Vec<&str> =
        ["add", "--all", "--"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let commit = ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--no-edit"];
    let steps = [&add[..], &commit];
    steps.iter().try_for_each(|step| Git::lazily(folder).well(GitStep::Merge, step).map(drop))
}

/// Merges a branch, or any other name of a commit. Returns the files in conflict; the working tree
/// is then as it was before.
pub fn merge_branch(folder: &Path, branch: &str) -> Result<Vec<String>, GitFault> {
    let files = merge_to_conflicts(folder, branch)?;
    if !files.is_empty() {
        run_git(folder, &["merge", "--abort"]);
    }
    Ok(files)
}

/// How a working tree relates to its own branch.
#[derive(Debug, PartialEq, Eq)]
pub struct OwnTip {
    /// The newest commit of the branch; `None` before the first one.
    pub commit: Option<String>,
    /// What is checked out instead, if it lacks commits of the branch.
    pub astray: Option<String>,
}

/// Finds the newest commit of a working tree's own branch. If something else is checked out that
/// continues the branch, the branch is moved there and checked out again.
pub fn own_tip(checkout: &Path, own: &str) -> OwnTip {
    let (current, newest) = read_head(checkout);
    let name = format!("refs/heads/{own}");
    if current.as_deref() == Some(own) || come_back(checkout, &name, newest.as_deref()) {
        return OwnTip { commit: newest, astray: None };
    }
    let there = current.map_or("no branch".to_owned(), |branch| format!("the branch {branch}"));
    let astray = format!("{there} is checked out, without all commits of {own}");
    OwnTip { commit: find_commit(checkout, &name), astray: Some(astray) }
}

/// Returns to the branch; false if the checked-out commit does not continue it, or a git operation
/// is in progress.
fn come_back(checkout: &Path, own: &str, newest: Option<&str>) -> bool {
    let Some(newest) = newest else { return false };
    if is_unfinished(checkout) {
        return false;
    }
    let tip = find_commit(checkout, own);
    if tip.as_ref().is_some_and(|tip| count_lacking(checkout, tip, newest) != Some(0)) {
        return false;
    }
    let before = tip.unwrap_or_default();
    let back = [vec!["update-ref", own, newest, &before], vec!["symbolic-ref", "HEAD", own]];
    back.iter().all(|step| Git::here(checkout).said(step).is_good())
}

/// The clone in which landings are tried.
#[derive(Clone, Copy)]
pub struct LandTree<'a> {
    pub folder: &'a Path,
    /// The condition that ends a running git process early.
    pub stop: Stop<'a>,
}

/// The longest time a checkout may take.
const CHECKOUT_WITHIN: Duration = Duration::from_secs(30 * 60);
/// The maximum number of co-authors that a commit names.
const CO_AUTHORS_MAX: usize = 50;

impl LandTree<'_> {
    pub(super) fn git(&self) -> Git<'_> {
        Git { stop: Some(self.stop), ..Git::lazily(self.folder) }
    }

    fn well(&self, arguments: &[&str]) -> Result<String, GitFault> {
        self.git().well(GitStep::Merge, arguments)
    }

    /// Checks out this commit on no branch, and removes everything else except ignored files that
    /// `keep`, patterns as in `.gitignore`, names. Every file is compared by content.
    pub fn lay_out(&self, commit: &str, keep: &[String]) -> Result<(), GitFault> {
        self.well(&["update-ref", "--no-deref", "HEAD", commit])?;
        self.well(&["read-tree", commit])?;
        let listed = self.git().printed(&["ls-files", "--stage", "-z"]).unwrap_or_default();
        for entry in listed.split(|byte| *byte == 0) {
            if entry.starts_with(b"160000 ") {
                let path = entry.splitn(2, |byte| *byte == b'\t').nth(1).unwrap_or_default();
                let _ = tree::remove_folder(&self.folder.join(OsStr::from_bytes(path)));
            }
        }
        // This fails if a file differs, and the next step then writes that file.
        self.git().said(&["update-index", "-q", "--really-refresh"]);
        self.put_back(commit)?;
        let keep = keep.iter().flat_map(|glob| ["-e", glob]);
        let arguments: Vec<&str> = ["clean", "--quiet", "-ffdx"].into_iter().chain(keep).collect();
        self.well(&arguments).map(drop)
    }

    /// Restores the tracked files of this commit.
    pub fn put_back(&self, commit: &str) -> Result<(), GitFault> {
        let git = Git { within: Some(CHECKOUT_WITHIN), ..self.git() };
        git.well(GitStep::Merge, &["reset", "--quiet", "--hard", commit]).map(drop)
    }

    /// Commits a branch's work on top of the checked-out commit.
    pub fn squash(&self, tip: &str, message: &str) -> Result<Squashed, GitFault> {
        let files = find_conflicts(self.git(), &["merge", "--squash", "--quiet", tip])?;
        if !files.is_empty() {
            return Ok(Squashed::Conflict(files));
        }
        if self.git().said(&["diff", "--cached", "--quiet", "HEAD"]).is_good() {
            return Ok(Squashed::Nothing);
        }
        let arguments =
            ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--file=-"];
        let git = Git { input: message.as_bytes(), ..self.git() };
        git.well(GitStep::Commit, &arguments)?;
        Ok(Squashed::Commit(self.git().commit("HEAD").unwrap_or_default()))
    }

    /// Whether this commit is still checked out, on no branch, in the clone's own repository: a
    /// check runs code that an agent wrote.
    pub fn is_at(&self, commit: &str) -> bool {
        stays_inside(self.folder, GitStep::Merge).is_ok()
            && self.git().head() == (None, Some(commit.to_owned()))
    }

    /// The tracked files whose content, mode or index entry differs from a commit; `None` if git
    /// fails.
    pub fn altered_files(&self, commit: &str) -> Option<Vec<String>> {
        let staged =
            differing_paths(self.folder, &["--cached", "--ignore-submodules=dirty", commit])?;
        let files = differing_paths(self.folder, &["--ignore-submodules=dirty", commit])?;
        Some(distinct_texts(files.into_iter().chain(staged)))
    }

    /// The `Co-authored-by` trailers of the commits that main lacks, each once.
    pub fn co_authors(&self, main: &str, tip: &str) -> Vec<String> {
        let form = "--format=%(trailers:key=Co-authored-by,unfold)";
        let listed = self.git().run(&["log", "--reverse", form, tip, "--not", main, "--"]);
        let listed = listed.unwrap_or_default();
        let lines = listed.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut authors = distinct_texts(lines.map(str::to_owned));
        authors.truncate(CO_AUTHORS_MAX);
        authors
    }

    /// The files with unresolved conflicts: no commit of the branch has changed them since its
    /// newest merge of main in which they were in conflict, or conflict markers from git are still
    /// in them. Without such a merge, every file that differs from main counts as unresolved.
    pub fn unresolved_files(
        &self,
        main: &str,
        tip: &str,
        files: &[String],
    ) -> Result<Vec<String>, GitFault> {
        // A person may have merged the branch and resolved them there.
        if files.is_empty() || count_lacking(self.folder, tip, main) == Some(0) {
            return Ok(Vec::new());
        }
        let own = changed_paths(self.folder, main, tip).unwrap_or_default();
        let list = ["rev-list", "--merges", "--parents", "--topo-order", tip, "--not", main, "--"];
        let listed = self.well(&list)?;
        let mut merges: Vec<Vec<&str>> =
            listed.lines().map(|line| line.split(' ').collect()).collect();
        // Keep the merges of main.
        merges.retain(|merge| {
            merge[1..].iter().any(|parent| count_lacking(self.folder, parent, main) == Some(0))
        });
        let mut left = Vec::new();
        for file in files {
            let merge = merges.iter().find(|merge| self.conflicts_in(merge, file));
            let is_settled = match merge {
                Some(merge) => {
                    let path = format!(":(literal,top){file}");
                    let since = ["--no-merges", tip, "--not", merge[0], main, "--", &path];
                    self.git().count_commits(&since).is_some_and(|commits| commits > 0)
                        && !self.keeps_markers(merge, tip, file)
                }
                // The file was merged without a conflict, because main had moved.
                None => !merges.is_empty() || !own.contains(file),
            };
            if !is_settled {
                left.push(file.clone());
            }
        }
        Ok(left)
    }

    /// Whether a file is in conflict when this merge is repeated. Before version 2.38 git cannot
    /// report that, and every file counts as in conflict.
    fn conflicts_in(&self, merge: &[&str], file: &str) -> bool {
        let &[_, ours, theirs] = merge else { return true };
        let form = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z"];
        let ended = self.git().start(&[&form[..], &[ours, theirs]].concat());
        match ended {
            Ok(ended) if ended.cause() == ExitCause::Exit(0) => false,
            Ok(ended) if ended.cause() == ExitCause::Exit(1) && !ended.cut() => {
                zero_ended_names(ended.output()).skip(1).any(|name| name == file)
            }
            _ => true,
        }
    }

    /// Whether a file still contains a conflict marker from git, of any length: a line that neither
    /// side of the merge had.
    fn keeps_markers(&self, merge: &[&str], tip: &str, file: &str) -> bool {
        let sides: BTreeSet<Vec<u8>> =
            merge[1..].iter().flat_map(|side| self.lines_of(side, file)).collect();
        let left = self.lines_of(tip, file);
        self.lines_of(merge[0], file).iter().any(|line| {
            [b"<<", b">>", b"||"].iter().any(|begin| line.starts_with(*begin))
                && !sides.contains(line)
                && left.contains(line)
        })
    }

    fn lines_of(&self, commit: &str, file: &str) -> BTreeSet<Vec<u8>> {
        let blob = self.git().printed(&["cat-file", "blob", &format!("{commit}:{file}")]);
        let blob = blob.unwrap_or_default();
        blob.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }
}

#[cfg(test)]
mod branch_tests {
    use super::*;
    use crate::git::run_git;

    #[test]
    fn a_branch_is_fast_forwarded_and_never_loses_a_commit() {
        let folder = testkit::folder();
        let top = folder.path();
        let run = |arguments: &[&str]| run_git(top, arguments).unwrap();
        let commit = |words: &str| {
            let person = ["-c", "user.name=a", "-c", "user.email=a@b"];
            run(&[&person[..], &["commit", "-q", "--allow-empty", "-m", words]].concat())
        };
        let id = |name: &str| run(&["rev-parse", name]).trim_end().to_owned();
        run(&["init", "--quiet", "--initial-branch=own"]);
        commit("one");
        run(&["checkout", "--quiet", "-b", "feature"]);
        commit("two");
        let feature = id("feature");
        let is_back = OwnTip { commit: Some(feature.clone()), astray: None };
        assert_eq!((own_tip(top, "own"), read_head(top).0), (is_back, Some("own".to_owned())));
        assert_eq!(id("own"), feature);

        run(&["checkout", "--quiet", "HEAD~1"]);
        commit("three");
        let at = id("HEAD");
        let astray = Some("no branch is checked out, without all commits of own".to_owned());
        let expected = OwnTip { commit: Some(feature.clone()), astray };
        assert_eq!((own_tip(top, "own"), id("HEAD"), id("own")), (expected, at, feature));

        run(&["checkout", "--quiet", "own"]);
        run(&["branch", "--quiet", "--move", "renamed"]);
        commit("four");
        let renamed = id("renamed");
        let is_back = OwnTip { commit: Some(renamed.clone()), astray: None };
        assert_eq!((own_tip(top, "own"), id("own")), (is_back, renamed));
    }

    #[test]
    fn a_branch_is_not_moved_during_a_rebase() {
        let folder = testkit::folder();
        let top = folder.path();
        let run = |arguments: &[&str]| run_git(top, arguments).unwrap();
        run(&["init", "--quiet", "--initial-branch=own"]);
        run(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-mx"]);
        run(&["checkout", "--quiet", "--detach"]);
        std::fs::create_dir(top.join(".git/rebase-merge")).unwrap();
        let astray = Some("no branch is checked out, without all commits of own".to_owned());
        assert_eq!((own_tip(top, "own").astray, read_head(top).0), (astray, None));
    }
}
