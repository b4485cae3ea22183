//! Checks that git still finds the repository in which the loop started, and what is checked out
//! there. If that is uncertain it refuses: a step in the wrong repository cannot be undone.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::command::Command;
use super::git;
use crate::engine::git::GitTrouble::{Other, Repository};
use crate::engine::git::{GitFault, GitStep};
use crate::engine::record::Place;
use crate::parse::git::{Stand, complaint, stand as read};
use crate::world::files::disk;
use crate::world::process::{ExitCause, FinishedProcess};

/// git's own folder of a working tree, with the path that git prints.
pub fn repository(top: &Path) -> Option<PathBuf> {
    let named = git(top, &["rev-parse", "--absolute-git-dir"])?;
    Some(named.trim_end_matches('\n').into())
}

/// Whether the repository seems to be there, without starting git: for iterations in which crew
/// changes nothing.
pub fn seems_there(place: &Place) -> bool {
    let Some(repository) = &place.repository else { return true };
    disk::exists(&place.checkout.join(".git")) && disk::size(&repository.join("HEAD")) > 0
}

/// What is checked out, if the repository is the one in which the loop started.
pub fn stand(place: &Place, step: GitStep) -> Result<Stand, GitFault> {
    let start = place.head.as_ref().map(|head| format!("{head}^{{commit}}"));
    let mut arguments = vec!["rev-parse", "--show-toplevel"];
    arguments.extend(place.repository.is_some().then_some("--absolute-git-dir"));
    arguments.extend(start.as_deref());
    arguments.extend(["HEAD", "HEAD^{tree}", "--symbolic-full-name", "HEAD"]);
    let ended = started(place, &arguments, false);
    let (end, text) = match ended {
        Ok(ended) => (ended.cause, ended.text()),
        Err(error) => {
            let cause = format!("git cannot be started: {error}");
            return Err(GitFault::new(step, Other, cause, "make sure that git is on PATH"));
        }
    };
    let ExitCause::Exit(code) = end else {
        return Err(GitFault::new(step, Other, "git gave no answer", "try git status here"));
    };
    let lost = |cause: String| GitFault::new(step, Repository, cause, way_back(place));
    let Some(rest) = text.strip_prefix(&pinned(place)) else {
        return Err(lost(other(place, &text)));
    };
    let mut lines = rest.lines();
    if let Some(start) = &place.head
        && lines.next() != Some(start)
    {
        let start = start.get(..12).unwrap_or(start);
        let cause = format!("{} does not hold {start}, where this loop began", named(place));
        return Err(lost(cause));
    }
    if code == 0 {
        return Ok(read(lines));
    }
    let branch = super::head(&place.checkout).0;
    if place.head.is_none() {
        return Ok(Stand { branch, ..Stand::default() });
    }
    let branch = branch.map_or_else(|| "HEAD".to_owned(), |branch| format!("the branch {branch}"));
    Err(lost(format!("{branch} no longer has a commit")))
}

/// The hint when a repository cannot be found. Of a working tree that shares one, git itself makes
/// the lost link anew, from the shared one alone without a complaint.
fn way_back(place: &Place) -> String {
    let is_lost = disk::is_missing(&place.checkout.join(".git"));
    let trees = place.repository.as_ref().and_then(|own| own.parent()).filter(|_| is_lost);
    let shared = trees.filter(|trees| trees.ends_with("worktrees")).and_then(Path::parent);
    let back = shared.map_or("put it back as it was".to_owned(), |shared| {
        let shared = shared.to_string_lossy();
        format!("git -C {} worktree repair puts it back", shell_words::quote(&shared))
    });
    format!("{back}, then crew resume")
}

/// What git's answer must start with in the repository where the loop started.
fn pinned(place: &Place) -> String {
    let mut text = format!("{}\n", place.checkout.display());
    if let Some(repository) = &place.repository {
        let _ = writeln!(text, "{}", repository.display());
    }
    text
}

fn named(place: &Place) -> String {
    let usual = place.checkout.join(".git");
    place.repository.as_ref().unwrap_or(&usual).display().to_string()
}

/// The reason why git does not find it.
fn other(place: &Place, found: &str) -> String {
    let link = place.checkout.join(".git");
    if disk::is_missing(&link) {
        return format!("{} is gone", link.display());
    }
    if let Some(found) = found.lines().nth(1) {
        return format!("git finds another repository here, {found}, not {}", named(place));
    }
    let said = started(place, &["rev-parse", "--git-dir"], true);
    let said = said.map_or_else(|error| error.to_string(), |ended| complaint(&ended.text()));
    format!("{} cannot be read: {said}", named(place))
}

fn started(place: &Place, arguments: &[&str], with_errors: bool) -> io::Result<FinishedProcess> {
    let command = Command { with_errors, ..Command::default() };
    command.run(&place.checkout, arguments, || false)
}
