//! The branch of a loop's working tree, where its agent may have checked out another one or none.
//! It is moved forward only, and no file is touched.

use std::path::Path;

use super::command::Command;
use super::steps::{hooks, is_unfinished, said};
use super::{commit, head, lacking};

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
    let steps = [vec!["update-ref", own, newest, &before], vec!["symbolic-ref", "HEAD", own]];
    let hooks = hooks(checkout);
    let step =
        |arguments: &Vec<&str>| said(checkout, arguments, &hooks, Command::default(), || false);
    steps.iter().all(|arguments| step(arguments).exit == Some(0))
}

#[cfg(test)]
mod tests {
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
