//! Runs checks on the tree as a loop found it, in the scratch folder, where none ran there before
//! iteration 1: in a session, and in a run that was resumed with the work of a cut-off attempt.

use super::scratch::{ScratchFolder, ScratchTerms};
use super::test_changes;
use crate::engine::evidence::test_report::{TestMemories, TestMemory};
use crate::engine::evidence::test_run::TestRun;
use crate::engine::evidence::{CheckResult, Verdict};
use crate::engine::record::Check;
use crate::engine::test_changes::trial::{AsFound, TriedCheck, passed};

/// Adds what a check said about its tests as the loop found them to what is remembered, unless that
/// is known. `here` is what the check said in the working tree. Nothing is added where it cannot
/// run on what the agent left, or says worse of that than `here`.
pub fn remember(
    terms: ScratchTerms<'_>,
    check: &Check,
    here: &TestRun,
    memories: &mut TestMemories,
) {
    if memories.get(&check.run).is_some_and(|memory| memory.as_found) {
        return;
    }
    let run = || {
        let (mut scratch, found, now) = trees(terms)?;
        scratch.lay_out(&now)?;
        let mut control = tests_of(scratch.run(check)?);
        if control.as_ref().is_none_or(|run| run.passed == 0) && scratch.set_up_again()? {
            control = tests_of(scratch.run(check)?);
        }
        if !control.is_some_and(|control| control.is_as_good_as(here)) {
            return Ok(None);
        }
        scratch.lay_out(&found)?;
        Ok::<_, String>(tests_of(scratch.run(check)?))
    };
    let Ok(Some(found)) = run() else { return };
    let found = TestMemory::as_found(&found);
    let known = memories.entry(check.run.clone()).or_insert_with(|| found.clone());
    (known.first, known.as_found) = (found.first, true);
}

/// The tests of a run that came to its end.
fn tests_of(result: CheckResult) -> Option<TestRun> {
    let is_whole = matches!(result.verdict, Verdict::Passed | Verdict::Failed);
    result.test_run.filter(|run| is_whole && run.ran())
}

/// Whether a check fails there twice and passes on what the agent left, in the same folder. Where
/// all of them pass at once, nothing else runs.
pub fn look(terms: ScratchTerms<'_>) -> AsFound {
    tried(terms).map_or_else(AsFound::Unknown, |tried| AsFound::of(&tried))
}

fn tried(terms: ScratchTerms<'_>) -> Result<Vec<TriedCheck>, String> {
    let (mut scratch, found, now) = trees(terms)?;
    scratch.lay_out(&found)?;
    let mut red = Vec::new();
    for check in terms.subject.contract.commands() {
        let without = scratch.run(check)?;
        if without.verdict != Verdict::Passed {
            let tried = TriedCheck { without: Some(without), ..TriedCheck::default() };
            red.push((check, tried));
        }
    }
    if red.is_empty() {
        return Ok(Vec::new());
    }
    scratch.lay_out(&now)?;
    for is_prepared in [false, true] {
        if is_prepared && !scratch.prepare()? {
            break;
        }
        for (check, tried) in &mut red {
            tried.control = scratch.run(check)?;
        }
        if red.iter().any(|(_, tried)| passed(&tried.control)) {
            break;
        }
    }
    scratch.lay_out(&found)?;
    for (check, tried) in &mut red {
        if passed(&tried.control) {
            tried.again = Some(scratch.run(check)?);
        }
    }
    Ok(red.into_iter().map(|(_, tried)| tried).collect())
}

/// The scratch folder, and to be compared in it the tree as the loop found it and what the agent
/// left. What was ignored when the loop began is in neither.
fn trees(terms: ScratchTerms<'_>) -> Result<(ScratchFolder<'_>, String, String), String> {
    let (found, now) = terms.trees()?;
    let subject = terms.subject;
    let scratch = terms.open()?;
    // The ignored files of both that checks read.
    let found = subject.state.baseline.as_ref().map_or(found, |baseline| baseline.commit.clone());
    let now = test_changes::left(terms.home, subject, Some(now))?.commit;
    let revealed = scratch.snapshots.revealed(&subject.id, &found, &now)?;
    let revealed: Vec<&str> = revealed.iter().map(String::as_str).collect();
    let now = scratch.snapshots.mixed(&now, &found, &revealed)?;
    Ok((scratch, found, now))
}
