//! Runs the checks of a finished job in a scratch folder: on the final tree, without the work, and
//! on the tree as the loop found it if none ran there before iteration 1. It judges nothing, and
//! never touches the user's working tree.

use super::test_changes;
use crate::drive::checks::scratch::{ScratchFolder, ScratchTerms};
use crate::drive::checks::test_changes::Changes;
use engine::evidence::test_run::{TestMemories, TestMemory, TestRun};
use engine::evidence::{CheckResult, Verdict};
use engine::record::{Check, Loop, Role};
use engine::test_changes::{
    Baseline, BaselineResult, TriedCheck, WithoutWork, cannot_be_separated, check_passed,
    judge_without_work,
};
use readers::parse::test_changes::files::inline_tests;
use world::git::snapshots::Snapshots;

/// Runs the checks without the work of a loop. If one is ended early, the work stays unproven.
pub fn run_trial(terms: ScratchTerms<'_>) -> WithoutWork {
    try_work(terms).unwrap_or_else(WithoutWork::Impossible)
}

fn try_work(terms: ScratchTerms<'_>) -> Result<WithoutWork, String> {
    let (found, now) = terms.both_trees()?;
    let ScratchTerms { home, subject, .. } = terms;
    let snapshots = Snapshots::of(home, subject);
    let (files, mixed) = try_checks(&snapshots, subject, &found, now)?;
    if files.is_empty() {
        return Ok(WithoutWork::Failed(match &mixed[..] {
            [] if snapshots.paths(&found, now).is_ok_and(|paths| paths.is_empty()) => {
                "nothing was changed".to_owned()
            }
            [] => "nothing but tests was changed".to_owned(),
            mixed => cannot_be_separated(mixed),
        }));
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let without = snapshots.mixed(now, &found, &files)?;
    // The checks that a claim needs, else all.
    let mut checks: Vec<&Check> = subject.contract.of_role(Role::Verify).collect();
    if checks.is_empty() {
        checks = subject.contract.checks.iter().collect();
    }
    let mut scratch = terms.open_folder()?;
    let runs = scratch.try_each(&checks, now, &without)?;
    Ok(judge_without_work(&runs, &mixed, scratch.is_linked()))
}

/// The changed files of work, without those that were ignored when the loop began: first those that
/// can be removed, then those that stay because tests in them changed as well.
fn try_checks(
    snapshots: &Snapshots,
    subject: &Loop,
    found: &str,
    now: &str,
) -> Result<(Vec<String>, Vec<String>), String> {
    let revealed = snapshots.revealed(&subject.id, found, now)?;
    let [before, after] = [found, now].map(|commit| Baseline {
        commit: commit.to_owned(),
        ..subject.state.seen().baseline().clone().unwrap_or_default()
    });
    let changes = Changes::between(snapshots, subject, &before, &after)?;
    let mut files: Vec<String> = changes.into_work().into_iter().collect();
    files.retain(|path| !revealed.contains(path) && !path.contains('\u{fffd}'));
    let paths: Vec<&str> = files.iter().map(String::as_str).collect();
    let [before, after] = [found, now].map(|commit| snapshots.texts(commit, &paths));
    let mut texts = before.into_iter().zip(after);
    Ok(files.into_iter().partition(|path| {
        let texts = texts.next().unwrap_or_default();
        inline_tests(path, &texts.0) == inline_tests(path, &texts.1)
    }))
}

/// Adds a check's result on the original tests to the remembered ones, unless it is known. `here`
/// is its result in the working tree. Nothing is added if the check cannot run on the agent's work,
/// or if its result there is worse than `here`.
pub fn remember_as_found(
    terms: ScratchTerms<'_>,
    check: &Check,
    here: &TestRun,
    memories: &mut TestMemories,
) {
    if memories.get(&check.run).is_some_and(|memory| memory.as_found) {
        return;
    }
    let Ok(Some(found)) = run_as_found(terms, check, here) else { return };
    let known = memories.entry(check.run.clone());
    let known = known.or_insert_with(|| TestMemory::after_run(None, &found));
    (known.first, known.as_found) = (found, true);
}

/// Runs a check on the tree as the loop found it and returns its tests.
fn run_as_found(
    terms: ScratchTerms<'_>,
    check: &Check,
    here: &TestRun,
) -> Result<Option<TestRun>, String> {
    let (mut scratch, found, now) = scratch_trees(terms)?;
    scratch.lay_out(&now)?;
    let mut control = tests_of(scratch.run_check(check)?);
    if control.as_ref().is_none_or(|run| run.passed == 0) && scratch.set_up_again()? {
        control = tests_of(scratch.run_check(check)?);
    }
    if !control.is_some_and(|control| control.is_as_good_as(here)) {
        return Ok(None);
    }
    scratch.lay_out(&found)?;
    Ok(tests_of(scratch.run_check(check)?))
}

/// The tests of a run, if it finished.
fn tests_of(result: CheckResult) -> Option<TestRun> {
    let is_whole = matches!(result.verdict, Verdict::Passed | Verdict::Failed);
    result.test_run.filter(|run| is_whole && run.ran_any())
}

/// Whether a check fails twice on the tree as the loop found it, and passes on what the agent left
/// in the same folder. If all pass in the first run, nothing else runs.
pub fn look_as_found(terms: ScratchTerms<'_>) -> BaselineResult {
    run_tried(terms)
        .map_or_else(BaselineResult::Unknown, |tried| BaselineResult::judge_checks(&tried))
}

fn run_tried(terms: ScratchTerms<'_>) -> Result<Vec<TriedCheck>, String> {
    let (mut scratch, found, now) = scratch_trees(terms)?;
    scratch.lay_out(&found)?;
    let mut red = Vec::new();
    for check in terms.subject.contract.unique_checks() {
        let without = scratch.run_check(check)?;
        if without.verdict != Verdict::Passed {
            let tried = TriedCheck { without: Some(without), ..TriedCheck::default() };
            red.push((check, tried));
        }
    }
    if red.is_empty() {
        return Ok(Vec::new());
    }
    let checks: Vec<&Check> = red.iter().map(|(check, _)| *check).collect();
    for ((_, tried), control) in red.iter_mut().zip(scratch.run_controls(&checks, &now)?) {
        tried.control = control;
    }
    scratch.lay_out(&found)?;
    for (check, tried) in &mut red {
        if check_passed(&tried.control) {
            tried.again = Some(scratch.run_check(check)?);
        }
    }
    Ok(red.into_iter().map(|(_, tried)| tried).collect())
}

/// The scratch folder, and the two trees that are compared in it: as the loop found it, and as the
/// agent left it. Neither contains what was ignored when the loop began.
fn scratch_trees(terms: ScratchTerms<'_>) -> Result<(ScratchFolder<'_>, String, String), String> {
    let (found, now) = terms.both_trees()?;
    let subject = terms.subject;
    let scratch = terms.open_folder()?;
    // The ignored files of both that checks read.
    let found =
        subject.state.seen().baseline().as_ref().map_or(found, |baseline| baseline.commit.clone());
    let now = test_changes::find_baseline(terms.home, subject, Some(now))?.commit;
    let revealed = scratch.snapshots.revealed(&subject.id, &found, &now)?;
    let revealed: Vec<&str> = revealed.iter().map(String::as_str).collect();
    let now = scratch.snapshots.mixed(&now, &found, &revealed)?;
    Ok((scratch, found, now))
}
