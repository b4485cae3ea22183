//! The rebase onto another branch that moved. A conflict that needs a person is undone, so that the
//! working tree is as it was.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::command::{Said, locked_fault};
use super::inside::note_submodules;
use super::steps::{Steps, Underway, another_branch, conflict_fault, held_lock, undo_rebase};
use super::{Git, count_lacking, run_git, unmerged_files};
use crate::clock::Deadline;
use engine::git::{GitFault, GitStep, GitTrouble, Rebased, name_files};
use engine::text::words_of;
use readers::parse::git::{IndexEntry, in_the_way, parse_raw_diff};

const REBASE: &str =
    "rebase --no-verify --no-gpg-sign --no-autosquash --no-update-refs --autostash";
/// How long a rebase that failed is undone again and again, until git succeeds at it.
const UNDO_AGAIN: Duration = Duration::from_secs(5);
/// What git prints, with exit status 0, when uncommitted changes do not apply again.
const UNFIT: &str = "Applying autostash resulted in conflicts";

/// Rebases onto `onto`, a branch or any other name of a commit, if that has commits which this
/// branch lacks, and if `branch` is what is checked out. Nothing is fetched. What is not
/// committed is set aside until then. A conflict undoes it all.
/// `earlier_base` is the commit of `onto` that the branch was on before, where that is known.
pub fn rebase_branch(
    steps: &Steps<'_>,
    branch: Option<&str>,
    onto: &str,
    earlier_base: Option<&str>,
) -> Result<Rebased, GitFault> {
    let state = steps.begin(GitStep::Rebase)?;
    if state.branch.as_deref() != branch {
        return Err(another_branch(GitStep::Rebase, state.branch.as_deref(), branch));
    }
    match unmerged_files(steps.checkout()).first() {
        Some(path) => Err(conflict_fault(GitStep::Rebase, path)),
        None => rebase_onto(steps, branch, onto, earlier_base),
    }
}

fn rebase_onto(
    steps: &Steps<'_>,
    branch: Option<&str>,
    onto: &str,
    earlier_base: Option<&str>,
) -> Result<Rebased, GitFault> {
    let Some(tip) = Git::here(steps.checkout()).commit(onto) else {
        let (cause, cure) = (format!("there is no branch {onto}"), "git branch --all lists them");
        return Err(GitFault::new(GitStep::Rebase, GitTrouble::Other, cause, cure));
    };
    let lacking = count_lacking(steps.checkout(), &tip, "HEAD");
    let (Some(lacking), Some(head)) = (lacking, Git::here(steps.checkout()).commit("HEAD")) else {
        let (cause, cure) = ("there is no commit here yet", "git commit the first one");
        return Err(GitFault::new(GitStep::Rebase, GitTrouble::Other, cause, cure));
    };
    if lacking == 0 {
        return Ok(Rebased::NothingNew);
    }
    if let Some(lock) = held_lock(&steps.folder(), branch) {
        return Err(locked_fault(GitStep::Rebase, &lock.display().to_string()));
    }
    let staged = staged_entries(steps, &head)?;
    let underway = Underway::begin(steps, GitStep::Rebase, &head);
    let before = find_rewritten(steps.checkout(), earlier_base, &tip);
    let rebased = apply_rebase(steps, &underway, onto, (&tip, before), &head);
    if rebased.is_ok() {
        note_submodules(steps.checkout(), &head);
    }
    if !matches!(&rebased, Err(fault) if fault.trouble == GitTrouble::Unfinished) {
        stage_again(steps, staged, &head)?;
    }
    rebased.map(|()| Rebased::Onto(lacking))
}

/// Rebases onto the commit `tip` what has come since the commit `before`, or restores everything
/// except the index.
fn apply_rebase(
    steps: &Steps<'_>,
    underway: &Underway<'_>,
    onto: &str,
    (tip, before): (&str, Option<&str>),
    head: &str,
) -> Result<(), GitFault> {
    let mut arguments: Vec<&str> = words_of(REBASE).collect();
    match before {
        Some(before) => arguments.extend(["--onto", tip, before]),
        None => arguments.push(tip),
    }
    let said = Git { online: true, ..steps.git() }.said(&arguments);
    if said.is_good() && !said.text.contains(UNFIT) {
        return Ok(());
    }
    let fault = explain_failure(steps, &said, onto);
    undo_failed(steps, underway, head, said.is_good())?;
    Err(fault)
}

/// Where this branch left an earlier state of what it is rebased onto, if that was rewritten since:
/// what it had then is nobody's work here.
fn find_rewritten<'a>(
    checkout: &Path,
    earlier_base: Option<&'a str>,
    tip: &str,
) -> Option<&'a str> {
    let before = earlier_base?;
    let is_rewritten = count_lacking(checkout, before, "HEAD") == Some(0)
        && count_lacking(checkout, before, tip) != Some(0);
    if is_rewritten { Some(before) } else { None }
}

/// Finds the cause in the working tree as git left it.
fn explain_failure(steps: &Steps<'_>, said: &Said, onto: &str) -> GitFault {
    if said.exit.is_none() {
        return said.fault(GitStep::Rebase);
    }
    let files = unmerged_files(steps.checkout());
    let in_the_way = in_the_way(&said.text);
    let by_hand = format!("run git rebase {onto} yourself, resolve the conflict, then crew resume");
    let (cause, hint) = if said.text.contains(UNFIT) {
        let files = if files.is_empty() { "files".to_owned() } else { name_files(&files) };
        let cause = format!("what is not committed in {files} conflicts with {onto}");
        (cause, format!("commit it, then {by_hand}"))
    } else if !files.is_empty() {
        (format!("this branch conflicts with {onto} in {}", name_files(&files)), by_hand)
    } else if !in_the_way.is_empty() {
        let cause =
            format!("{onto} brings files that are untracked here: {}", name_files(&in_the_way));
        (cause, "move them away or commit them, then crew resume".to_owned())
    } else {
        return said.fault(GitStep::Rebase);
    };
    GitFault::new(GitStep::Rebase, GitTrouble::Conflict, cause, hint)
}

/// Restores the branch, the files and the uncommitted changes.
fn undo_failed(
    steps: &Steps<'_>,
    underway: &Underway<'_>,
    head: &str,
    is_finished: bool,
) -> Result<(), GitFault> {
    // This must run to its end, because it restores the user's state.
    let steps = &steps.to_the_end();
    if !is_finished {
        // Something may end this git, too.
        let again = Deadline::after(UNDO_AGAIN);
        let undone = loop {
            underway.clear_locks();
            let undone = undo_rebase(steps.git(), &steps.folder(), head);
            if undone.is_ok() || again.passed() {
                break undone;
            }
        };
        if let Err(fault) = undone {
            return Err(not_undone(head, &format!(": {}", fault.cause)));
        }
    } else if let Some((place, stash)) = set_aside(steps, head) {
        steps.well(GitStep::Rebase, &["reset", "-q", "--hard", head])?;
        steps.well(GitStep::Rebase, &["stash", "apply", "-q", "--index", &stash])?;
        steps.well(GitStep::Rebase, &["stash", "drop", "-q", &format!("stash@{{{place}}}")])?;
    }
    if Git::here(steps.checkout()).commit("HEAD").as_deref() == Some(head) {
        return Ok(());
    }
    Err(not_undone(head, ""))
}

fn not_undone(head: &str, why: &str) -> GitFault {
    let cause = format!("it failed and could not be undone{why}");
    let cure = format!("git status shows its state; the branch was at {head}");
    GitFault::new(GitStep::Rebase, GitTrouble::Unfinished, cause, cure)
}

/// git's stash of the uncommitted changes on top of `head`: its place in the list, and the commit.
/// All working trees of a repository share the list, so stashes of others may be above it.
fn set_aside(steps: &Steps<'_>, head: &str) -> Option<(usize, String)> {
    let list = run_git(steps.checkout(), &["stash", "list", "--format=%H %P"])?;
    for (place, line) in list.lines().enumerate() {
        if let Some((stash, parents)) = line.split_once(' ')
            && parents.starts_with(head)
        {
            return Some((place, stash.to_owned()));
        }
    }
    None
}

/// The entries in which the index differs from a commit.
fn staged_entries(steps: &Steps<'_>, head: &str) -> Result<Vec<IndexEntry>, GitFault> {
    let form = ["diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", head];
    Ok(parse_raw_diff(&steps.printed(GitStep::Rebase, &form, &[])?))
}

/// Stages them again, except paths that differ between `before` and the commit that is checked out
/// now: there it would revert the other branch's change.
fn stage_again(
    steps: &Steps<'_>,
    mut staged: Vec<IndexEntry>,
    before: &str,
) -> Result<(), GitFault> {
    if staged.is_empty() {
        return Ok(());
    }
    // This must run to its end: nothing else remembers what was staged.
    let steps = &steps.to_the_end();
    let form = ["diff-tree", "-r", "--raw", "--no-renames", "--no-abbrev", "-z", before, "HEAD"];
    let moved = parse_raw_diff(&steps.printed(GitStep::Rebase, &form, &[])?);
    let moved: BTreeSet<Vec<u8>> = moved.into_iter().map(|entry| entry.path).collect();
    staged.retain(|entry| !moved.contains(&entry.path));
    let input: Vec<u8> = staged.iter().flat_map(IndexEntry::index_info).collect();
    steps.printed(GitStep::Rebase, &["update-index", "-z", "--index-info"], &input).map(drop)
}
