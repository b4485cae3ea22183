//! What a boundary's checks are worth: the proof of an end, and everything that takes belief away
//! from it. Nothing here ever adds belief to what the checks showed.

use super::facts::Facts;
use crate::evidence::test_run::{TestReport, TestRun, TestStatus};
use crate::evidence::{CheckResult, NoProofCause, Verdict, passes_more};
use crate::protect::protected_complaint;
use crate::record::{CheckMemory, CompletionBasis, EndReason, Ending, Loop, Outcome, Proof, Role};
use crate::test_changes::{BaselineResult, TestChangesFinding, WithoutWork};

/// What the checks prove if all of them passed; `None` if one did not pass or did not run.
pub fn find_proof(subject: &Loop, facts: &Facts) -> Option<Proof> {
    let all_pass = Role::ALL.into_iter().all(|role| facts.all_pass(&subject.contract, role));
    if !all_pass || find_tampering(subject, facts).is_some() {
        return None;
    }
    if passing_checks(facts).next().is_none() {
        return Some(Proof::Claimed);
    }
    Some(match &facts.without_work {
        _ if !list_lasting_doubts(subject, facts).is_empty() => Proof::Passing,
        Some(WithoutWork::Proven(_)) => Proof::Proven,
        _ if find_cause(subject, facts).is_ok() => Proof::Checked,
        _ => Proof::Passing,
    })
}

/// The checks that passed and ran something.
fn passing_checks(facts: &Facts) -> impl Iterator<Item = &CheckResult> {
    facts.checks.iter().filter(|check| check.verdict == Verdict::Passed && !check.ran_no_test())
}

/// Whether a recorded failure, or a failure on the tree as found, shows that the work made a check
/// pass; otherwise the reason why not, which is `None` if no check failed.
pub fn find_cause(subject: &Loop, facts: &Facts) -> Result<(), Option<NoProofCause>> {
    let memories = subject.state.seen().checks();
    let may_have_failed = !subject.state.seen().checked_as_found()
        || passing_checks(facts)
            .any(|check| memories.get(&check.run).is_some_and(CheckMemory::ever_failed));
    if facts.unchanged == Some(true) && may_have_failed {
        return Err(Some(NoProofCause::NothingChanged));
    }
    let mut why_not = match facts.baseline {
        Some(BaselineResult::NoCause(why)) => Some(why),
        _ => None,
    };
    for result in passing_checks(facts) {
        if facts.fails_on_baseline(&result.run) {
            return Ok(());
        }
        let Some(memory) = memories.get(&result.run) else { continue };
        let Some(least) = memory.failed_with else {
            let missing = memory.program_missing().then_some(NoProofCause::ProgramMissing);
            why_not = why_not.or(missing);
            continue;
        };
        let tests = facts.tests_before.get(&result.run);
        let runs = tests.into_iter().flat_map(|tests| [&tests.first, &tests.last]);
        let red = runs.flat_map(|run| run.names_with(TestStatus::Failed));
        match passes_more(least, red, result.test_run.as_ref()) {
            Ok(()) => return Ok(()),
            Err(why) => why_not = Some(why),
        }
    }
    Err(why_not)
}

/// The result of running a loop's checks again after its end.
#[derive(Debug, Default)]
pub struct ProofRuns {
    pub without_work: Option<WithoutWork>,
    pub baseline: Option<BaselineResult>,
    /// The reason to lower the proof; `None` if there is none.
    pub against: Option<String>,
}

/// How a completed loop ends after these runs; `None` for any other loop. They raise or lower its
/// proof and never change its outcome.
pub fn end_after_runs(record: &Loop, runs: &ProofRuns) -> Option<Ending> {
    let ending = record.state.end().ending().as_ref()?;
    if ending.outcome != Outcome::Completed {
        return None;
    }
    let had = ending.proof?;
    let had_failed = record.state.seen().checks().values().any(CheckMemory::ever_failed);
    let (proof, basis) = match (&runs.without_work, &runs.baseline) {
        _ if had != Proof::Claimed && runs.against.is_some() => {
            (Proof::Passing, Some(CompletionBasis::ChecksPass))
        }
        (Some(WithoutWork::Proven(how)), _) => {
            (Proof::Proven, Some(CompletionBasis::WithoutWork(how.clone())))
        }
        (_, Some(BaselineResult::Failed(_))) if had == Proof::Passing => (Proof::Checked, None),
        (Some(WithoutWork::Failed(_)), _) if had == Proof::Proven && had_failed => {
            (Proof::Checked, None)
        }
        (Some(WithoutWork::Failed(_)), _) if had == Proof::Proven => (Proof::Passing, None),
        _ => (had, None),
    };
    let reason = match basis {
        None if proof == had => ending.reason.clone(),
        basis => {
            let basis = basis.unwrap_or(CompletionBasis::Proof(proof));
            EndReason::Completed { basis, remark: None }
        }
    };
    let without_work = if runs.against.is_none() { runs.without_work.as_ref() } else { None };
    let notes = proof_notes(without_work, runs.baseline.as_ref());
    let no_cause = match runs.baseline {
        Some(BaselineResult::NoCause(why)) => Some(format!("not checked: {}", why.reason_words())),
        _ => None,
    };
    let proof_notes = runs.against.clone().into_iter().chain(notes).chain(no_cause).collect();
    Some(Ending { outcome: Outcome::Completed, proof: Some(proof), reason, proof_notes })
}

/// Why the runs for a better proof did not find one.
pub fn proof_notes(trial: Option<&WithoutWork>, as_found: Option<&BaselineResult>) -> Vec<String> {
    let trial = trial.and_then(WithoutWork::why_not).map(|why| format!("not proven: {why}"));
    let as_found =
        as_found.and_then(BaselineResult::why_not).map(|why| format!("not checked: {why}"));
    trial.into_iter().chain(as_found).collect()
}

/// The complaint about the protected paths. If they had to be compared and could not be, that is a
/// complaint, too.
pub fn find_tampering(subject: &Loop, facts: &Facts) -> Option<String> {
    subject.protected.as_ref()?;
    match facts.protected.as_ref()? {
        Ok(changed) => protected_complaint(changed, subject.place.head.as_deref()),
        Err(why) => Some(format!("the protected paths cannot be compared: {why}")),
    }
}

/// Why the proof is at most `passing`; empty if nothing keeps it there, or only that no check was
/// seen to fail.
pub fn list_doubts(subject: &Loop, facts: &Facts) -> Vec<String> {
    let mut doubts = list_lasting_doubts(subject, facts);
    if !matches!(facts.without_work, Some(WithoutWork::Proven(_)))
        && passing_checks(facts).next().is_some()
        && let Err(Some(why)) = find_cause(subject, facts)
    {
        doubts.push(why.reason_words().to_owned());
    }
    doubts
}

/// Why the proof is at most `passing`, whatever else a run of the checks may show.
pub fn list_lasting_doubts(subject: &Loop, facts: &Facts) -> Vec<String> {
    let tests = facts.test_changes.iter().flat_map(|finding| finding.doubts.clone());
    let unrecorded = subject.state.seen().unrecorded().as_ref();
    let start = unrecorded.map(|why| format!("the tree as the loop found it is not known: {why}"));
    find_disagreement(facts).into_iter().chain(start).chain(tests).collect()
}

/// What the user should know about the checks that passed.
pub fn remark_on_checks(subject: &Loop, facts: &Facts) -> Option<String> {
    let of_the_changes = facts.test_changes.as_ref().and_then(TestChangesFinding::remark_text);
    let of_the_tests = facts.checks.iter().filter_map(|check| {
        let memory = facts.tests_before.get(&check.run);
        TestReport::from_run(memory, check.test_run.as_ref()?).taken_away()
    });
    let remarks = list_doubts(subject, facts).into_iter().chain(of_the_tests).chain(of_the_changes);
    let remarks: Vec<String> = remarks.collect();
    if remarks.is_empty() { None } else { Some(remarks.join("; ")) }
}

/// A check that passed by its exit status although its output says otherwise. Of several such
/// checks, the first with the worst output is named.
fn find_disagreement(facts: &Facts) -> Option<String> {
    let passing = facts.checks.iter().filter(|check| check.verdict == Verdict::Passed);
    let found = passing.filter_map(|check| {
        let (rank, why) = match &check.test_run {
            Some(run) if run.has_failed() => (0, "reports failing tests".to_owned()),
            Some(TestRun { replayed: Some(words), .. }) => {
                (1, format!("repeats a cached result (\"{words}\")"))
            }
            None if facts.tests_before.get(&check.run)?.ever_ran => {
                (2, "reports no tests, though it ran tests before".to_owned())
            }
            _ => return None,
        };
        Some((rank, format!("`{}` {why}", check.run)))
    });
    Some(found.min_by_key(|(rank, _)| *rank)?.1)
}
