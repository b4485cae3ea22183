//! The git steps of a landing, in a working tree of its own on no branch: the work of a branch as
//! one commit on the main branch as it will be. Merges into a task's branch, and the newest commit
//! of that branch, where its agent may have checked out another one or none. They run no hook and
//! ask nobody.

use std::path::Path;

use super::head::roots;
use super::inside::note_submodules;
use super::steps::is_unfinished;
use super::{Git, commit, git, head, lacking, unmerged};
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
    Git::lazily(folder).said(&["clean", "--quiet", "-ffdx"]);
}

/// The tracked files that differ from the commit that is checked out.
pub fn altered(folder: &Path) -> Vec<String> {
    differing(folder, &["--ignore-submodules=dirty", "HEAD"]).unwrap_or_default()
}

/// Commits the work of a branch on top of what is checked out.
pub fn squash(folder: &Path, branch: &str, message: &str) -> Result<Squashed, GitFault> {
    let files = conflicts(folder, &["merge", "--squash", "--quiet", branch])?;
    if !files.is_empty() {
        return Ok(Squashed::Conflict(files));
    }
    if Git::lazily(folder).said(&["diff", "--cached", "--quiet"]).is_good() {
        return Ok(Squashed::Nothing);
    }
    let arguments = ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--file=-"];
    Git { input: message.as_bytes(), ..Git::here(folder) }.well(GitStep::Commit, &arguments)?;
    let commit = Git::here(folder).commit("HEAD").unwrap_or_default();
    Ok(Squashed::Commit(commit))
}

/// The paths that a branch changes against where it left another commit, as far as they still
/// differ from that.
pub fn changed_and_differing(repository: &Path, from: &str, branch: &str) -> Option<Vec<String>> {
    let mut changed = differing(repository, &[&format!("{from}...{branch}")])?;
    let still = differing(repository, &[from, branch])?;
    changed.retain(|path| still.contains(path));
    Some(changed)
}

/// The paths that a `git diff` of these names; a renamed file is two.
fn differing(folder: &Path, what: &[&str]) -> Option<Vec<String>> {
    let form = ["diff", "--name-only", "--no-renames", "-z"];
    let listed = git(folder, &[&form[..], what].concat())?;
    Some(listed.split_terminator('\0').map(str::to_owned).collect())
}

/// Merges a commit into the branch that is checked out. Returns the files in conflict; the merge is
/// then under way.
pub fn merge_to_conflicts(folder: &Path, commit: &str) -> Result<Vec<String>, GitFault> {
    let arguments = ["merge", "--no-edit", "--no-verify", "--no-gpg-sign", "--quiet", commit];
    let before = Git::here(folder).commit("HEAD").unwrap_or_default();
    let files = conflicts(folder, &arguments);
    note_submodules(folder, &before);
    files
}

/// The files in conflict after this merge.
fn conflicts(folder: &Path, merge: &[&str]) -> Result<Vec<String>, GitFault> {
    let merged = Git::lazily(folder).said(merge);
    let files = if merged.is_good() { Vec::new() } else { unmerged(folder) };
    if files.is_empty() { merged.check(GitStep::Merge).map(|()| files) } else { Ok(files) }
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
    Git::lazily(repository).said(&["worktree", "remove", "--", &there]).is_good()
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
    Git::lazily(repository).well(GitStep::Worktree, &arguments).map(drop)
}

fn step(folder: &Path, arguments: &[&str]) -> Result<(), GitFault> {
    Git::lazily(folder).well(GitStep::Merge, arguments).map(drop)
}

/// Merges a branch, or another name of a commit. Returns the files that could not be merged; the
/// working tree is then as it was.
pub fn merge(folder: &Path, branch: &str) -> Result<Vec<String>, GitFault> {
    let files = merge_to_conflicts(folder, branch)?;
    if !files.is_empty() {
        git(folder, &["merge", "--abort"]);
    }
    Ok(files)
}

/// What a working tree has of its own branch.
#[derive(Debug, PartialEq, Eq)]
pub struct OwnTip {
    /// The newest commit of the branch; `None` before the first one.
    pub commit: Option<String>,
    /// What is checked out instead, where that does not hold all of the branch's commits.
    pub astray: Option<String>,
}

/// The newest commit of a working tree's own branch. What is checked out beside it, and continues
/// it, becomes the branch, which is checked out again.
pub fn own_tip(checkout: &Path, own: &str) -> OwnTip {
    let (current, newest) = head(checkout);
    let name = format!("refs/heads/{own}");
    if current.as_deref() == Some(own) || come_back(checkout, &name, newest.as_deref()) {
        return OwnTip { commit: newest, astray: None };
    }
    let there = current.map_or("no branch".to_owned(), |branch| format!("the branch {branch}"));
    let astray = format!("{there} is checked out, without all commits of {own}");
    OwnTip { commit: commit(checkout, &name), astray: Some(astray) }
}

/// False where what is checked out does not continue the branch, or git is in the middle of
/// something.
fn come_back(checkout: &Path, own: &str, newest: Option<&str>) -> bool {
    let Some(newest) = newest.filter(|_| !is_unfinished(checkout)) else { return false };
    let tip = commit(checkout, own);
    if tip.as_ref().is_some_and(|tip| lacking(checkout, tip, newest) != Some(0)) {
        return false;
    }
    let before = tip.unwrap_or_default();
    let back = [vec!["update-ref", own, newest, &before], vec!["symbolic-ref", "HEAD", own]];
    back.iter().all(|step| Git::here(checkout).said(step).is_good())
}

#[cfg(test)]
mod branch_tests {
    use super::*;
    use crate::world::git::git;

    #[test]
    fn a_branch_takes_in_what_continues_it_and_keeps_what_anything_else_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        let run = |arguments: &[&str]| git(top, arguments).unwrap();
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
        assert_eq!((own_tip(top, "own"), head(top).0), (is_back, Some("own".to_owned())));
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
    fn a_rebase_that_is_under_way_moves_no_branch() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        let run = |arguments: &[&str]| git(top, arguments).unwrap();
        run(&["init", "--quiet", "--initial-branch=own"]);
        run(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-mx"]);
        run(&["checkout", "--quiet", "--detach"]);
        std::fs::create_dir(top.join(".git/rebase-merge")).unwrap();
        let astray = Some("no branch is checked out, without all commits of own".to_owned());
        assert_eq!((own_tip(top, "own").astray, head(top).0), (astray, None));
    }
}
