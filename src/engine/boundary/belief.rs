//! What a boundary's checks are worth: the proof of an end, and everything that takes belief away
//! from it. Nothing here ever adds belief to what the checks showed.

use super::facts::Facts;
use super::protect::{changed, complaint};
use crate::engine::evidence::test_report::TestReport;
use crate::engine::evidence::test_run::TestRun;
use crate::engine::evidence::{CheckResult, Verdict};
use crate::engine::record::{Loop, Proof, Role};
use crate::engine::test_changes::finding::TestChangesFinding;
use crate::engine::test_changes::trial::Trial;

/// What the checks prove if all of them passed; `None` if one did not pass or did not run.
pub fn proof(subject: &Loop, facts: &Facts) -> Option<Proof> {
    let all_pass = Role::ALL.into_iter().all(|role| facts.all_pass(&subject.contract, role));
    if !all_pass || tampered(subject, facts).is_some() {
        return None;
    }
    let is_shown = |it: &&CheckResult| it.verdict == Verdict::Passed && !it.ran_no_test();
    let mut passing = facts.checks.iter().filter(is_shown).peekable();
    if passing.peek().is_none() {
        return Some(Proof::Claimed);
    }
    let once_failed = |run: &str| {
        let ever_failed = subject.state.checks.get(run).is_some_and(|it| it.ever_failed);
        ever_failed || facts.fails_as_found(run)
    };
    let has_failed_before = passing.any(|result| once_failed(&result.run));
    Some(match &facts.trial {
        _ if !doubts(subject, facts).is_empty() => Proof::Passing,
        Some(Trial::Proven(_)) => Proof::Proven,
        _ if has_failed_before => Proof::Checked,
        _ => Proof::Passing,
    })
}

/// What is wrong with the protected paths. A look that was wanted and failed is a complaint, too.
pub fn tampered(subject: &Loop, facts: &Facts) -> Option<String> {
    let began = subject.protected.as_ref()?;
    match facts.protected.as_ref()? {
        Ok(now) => complaint(&changed(&began.marks, now), subject.place.head.as_deref()),
        Err(unseen) => Some(unseen.complaint().to_owned()),
    }
}

/// Why the proof is at most `passing`, whatever the checks did; empty if nothing keeps it there.
pub fn doubts(subject: &Loop, facts: &Facts) -> Vec<String> {
    let of_the_tests = facts.test_changes.iter().flat_map(|finding| finding.doubts.clone());
    let of_the_start = subject.state.unrecorded.as_ref();
    let of_the_start =
        of_the_start.map(|why| format!("the tree as the loop found it is not known: {why}"));
    disagreement(facts).into_iter().chain(of_the_start).chain(of_the_tests).collect()
}

/// What a person should know of the checks that passed.
pub fn remark(subject: &Loop, facts: &Facts) -> Option<String> {
    let of_the_changes = facts.test_changes.as_ref().and_then(TestChangesFinding::remark);
    let of_the_trial = facts.trial.as_ref().and_then(Trial::why_not);
    let of_the_trial = of_the_trial.map(|why| format!("not proven: {why}"));
    let of_the_tests = facts.checks.iter().filter_map(|check| {
        let memory = facts.tests_before.get(&check.run);
        TestReport::of(memory, check.test_run.as_ref()?).taken_away()
    });
    let remarks = doubts(subject, facts).into_iter().chain(of_the_tests).chain(of_the_changes);
    let remarks: Vec<String> = remarks.chain(of_the_trial).collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// The exit status of a check that passed and its words disagree.
fn disagreement(facts: &Facts) -> Option<String> {
    let passing = facts.checks.iter().filter(|it| it.verdict == Verdict::Passed);
    let reports_failures =
        |it: &&CheckResult| it.test_run.as_ref().is_some_and(TestRun::has_failed);
    let ran_once = |run: &str| facts.tests_before.get(run).is_some_and(|it| it.ever_ran);
    let is_silent = |it: &&CheckResult| it.test_run.is_none() && ran_once(&it.run);
    if let Some(check) = passing.clone().find(reports_failures) {
        return Some(format!("`{}` reports failing tests", check.run));
    }
    let replayed = |it: &CheckResult| it.test_run.as_ref().and_then(|run| run.replayed.clone());
    if let Some((check, words)) = passing.clone().find_map(|it| Some((it, replayed(it)?))) {
        return Some(format!("`{}` repeats a cached result (\"{words}\")", check.run));
    }
    let check = passing.clone().find(is_silent)?;
    Some(format!("`{}` reports no tests, though it ran some before", check.run))
}
