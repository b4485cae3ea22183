//! Runs checks on the tree as a loop found it, in the scratch folder, where none ran there before
//! iteration 1: in a session, and in a run that was resumed with the work of a cut-off attempt.

use super::exam;
use super::scratch::ScratchFolder;
use super::trial::{NO_SNAPSHOTS, all_runs, tree_as_found, within};
use crate::engine::evidence::test_report::{TestMemories, TestMemory};
use crate::engine::evidence::test_run::TestRun;
use crate::engine::evidence::{CheckResult, Verdict};
use crate::engine::exam::ExamMode;
use crate::engine::exam::trial::{AsFound, TRIAL_TIMEOUT_S};
use crate::engine::record::{Check, Loop};
use crate::world::clock::Deadline;
use crate::world::process::Stop;
use crate::world::store::Home;

/// Adds what a check said about its tests as the loop found them to what is remembered, unless that
/// is known. `now` is the snapshot of what the agent left, and `here` what the check said of it in
/// the working tree. Nothing is added where it cannot run there, or says worse of `now`.
pub fn remember(
    home: &Home,
    subject: &Loop,
    (check, here): (&Check, &TestRun),
    now: Option<&str>,
    memories: &mut TestMemories,
    latest: Option<Deadline>,
    stop: Stop<'_>,
) {
    if memories.get(&check.run).is_some_and(|memory| memory.as_found) {
        return;
    }
    let run = || {
        let (mut scratch, Trees { found, now }) = trees(home, subject, now, latest, stop)?;
        scratch.lay_out(&now)?;
        let control = tests_of(scratch.run(check)?);
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

/// Whether a check fails there and passes on `now`, the snapshot of what the agent left, in the
/// same folder.
pub fn look(
    home: &Home,
    subject: &Loop,
    now: Option<&str>,
    latest: Option<Deadline>,
    stop: Stop<'_>,
) -> AsFound {
    let runs = || {
        let (mut scratch, Trees { found, now }) = trees(home, subject, now, latest, stop)?;
        let mut checks: Vec<Check> = Vec::new();
        for check in subject.contract.before_the_first() {
            if checks.iter().all(|other| other.run != check.run) {
                checks.push(check.clone());
            }
        }
        let fails = |_: &CheckResult, found: &CheckResult| found.verdict == Verdict::Failed;
        all_runs(&mut scratch, &checks, &now, &found, fails)
    };
    runs().map_or_else(AsFound::Unknown, |runs| AsFound::of(&runs))
}

struct Trees {
    found: String,
    now: String,
}

/// The tree as the loop found it and `now`, what the agent left, to be compared in one folder. What
/// the checks rest on is as it is held, because git may ignore it; where a change of it is only
/// reported, `now` has its own. What was ignored when the loop began is in neither.
fn trees<'a>(
    home: &'a Home,
    subject: &'a Loop,
    now: Option<&str>,
    latest: Option<Deadline>,
    stop: Stop<'a>,
) -> Result<(ScratchFolder<'a>, Trees), String> {
    let now = now.ok_or(NO_SNAPSHOTS)?;
    let within = within(TRIAL_TIMEOUT_S, latest);
    let scratch = ScratchFolder::open(home, subject, within, stop)?;
    let held = |tree: &str| exam::as_held(&scratch.snapshots, subject, tree);
    let found = held(&tree_as_found(&scratch.snapshots, subject)?)?;
    let now = match subject.contract.exam {
        ExamMode::Hold => held(now)?,
        ExamMode::Tell => now.to_owned(),
    };
    let revealed = scratch.snapshots.revealed(&subject.id, &found, &now)?;
    let now = scratch.snapshots.with_files_of(&now, &found, &revealed)?;
    Ok((scratch, Trees { found, now }))
}
