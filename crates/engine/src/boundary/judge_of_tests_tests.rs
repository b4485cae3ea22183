//! What the output of a check says about its own tests, and how that lowers the value of a claim.

use super::*;
use crate::boundary::belief::list_lasting_doubts;
use crate::boundary::decide::{Decision, apply_decision, decide_next};
use crate::evidence::test_run::{TestMemory, TestRun, TestStatus};
use crate::fixture::{a_loop_with, facts, result};

fn tests(passed: u32, failed: u32, skipped: u32, filtered: u32) -> TestRun {
    TestRun { passed, failed, skipped, filtered, ..TestRun::default() }
}

/// What comes of a claim whose check passes with these tests, in a loop whose check had failed
/// before, and had run tests then or not.
fn claimed(before: &Loop, run: impl Into<Option<TestRun>>, ever_ran: bool) -> (Loop, String) {
    let mut facts = facts(Claim::Success);
    facts.checks = vec![result("test", Verdict::Passed)];
    facts.checks[0].test_run = run.into();
    if ever_ran {
        let memory = TestMemory::after_run(None, &tests(1, 0, 0, 0));
        facts.tests_before.insert("test".to_owned(), memory);
    }
    let judged = judge_boundary(before, &facts);
    let decision = decide_next(&judged, &facts);
    let after = apply_decision(judged, &decision);
    let words = match (&decision, after.state.seen().evidence().as_ref().map(|last| &last.claim)) {
        (Decision::Finish(ending), _) => {
            let proof = ending.proof.map_or("", Proof::label);
            format!("{} {proof} ({})", ending.outcome.label(), ending.full_reason())
        }
        (_, Some(ClaimResult::Refused(why))) => format!("refused: {why}"),
        other => format!("{other:?}"),
    };
    (after, words)
}

fn failed_before() -> Loop {
    let mut subject = a_loop_with(&[("test", Role::Verify)]);
    let memory = CheckMemory::from_result(&result("test", Verdict::Failed), 0, None);
    subject.state.remember_check("test".to_owned(), memory);
    subject
}

#[test]
fn what_a_check_says_about_its_tests_can_only_lower_the_proof() {
    let ends: Vec<String> = [
        (tests(3, 0, 0, 0), true),
        (tests(0, 0, 0, 57), true),
        (tests(0, 0, 4, 0), false),
        (tests(0, 0, 0, 0), true),
        (tests(0, 0, 0, 0), false),
        (tests(3, 1, 0, 0), true),
        (TestRun { errors: 1, ..tests(3, 0, 0, 0) }, true),
        (TestRun { uncounted: 1, ..TestRun::default() }, true),
    ]
    .into_iter()
    .map(|(run, ever_ran)| claimed(&failed_before(), run, ever_ran).1)
    .collect();
    insta::assert_snapshot!(ends.join("\n"), @"
    completed checked (a check that had failed now passes)
    refused: `test` ran 0 tests (57 filtered out)
    refused: `test` ran 0 tests (4 skipped)
    refused: `test` ran 0 tests (it ran tests before)
    completed claimed (nothing was checked: this is the agent's word)
    refused: `test` reports failing tests, and its exit status hides them
    refused: `test` reports failing tests, and its exit status hides them
    completed checked (a check that had failed now passes)
    ");
}

#[test]
fn a_check_that_reports_no_tests_or_a_cached_result_proves_passing_at_most() {
    let silent = claimed(&failed_before(), None, true).1;
    let replayed = Some("cache hit, replaying logs".to_owned());
    let replayed = claimed(&failed_before(), TestRun { replayed, ..tests(3, 0, 0, 0) }, true).1;
    insta::assert_snapshot!([silent, replayed].join("\n"), @r#"
    completed passing (the checks pass; `test` reports no tests, though it ran tests before)
    completed passing (the checks pass; `test` repeats a cached result ("cache hit, replaying logs"))
    "#);
}

#[test]
fn a_check_with_failing_tests_is_named_before_a_cached_one_and_that_before_a_silent_one() {
    let (silent, failing) = (None, Some(tests(3, 1, 0, 0)));
    let replayed = Some("cached".to_owned());
    let cached = Some(TestRun { replayed, ..tests(3, 0, 0, 0) });
    for (runs, expected) in [
        ([&silent, &cached, &failing], "`c` reports failing tests"),
        ([&silent, &cached, &cached], "`b` repeats a cached result (\"cached\")"),
        ([&silent, &silent, &None], "`a` reports no tests, though it ran tests before"),
    ] {
        let mut facts = facts(Claim::Success);
        for (name, run) in ["a", "b", "c"].into_iter().zip(runs) {
            let memory = TestMemory::after_run(None, &tests(1, 0, 0, 0));
            facts.tests_before.insert(name.to_owned(), memory);
            facts
                .checks
                .push(CheckResult { test_run: run.clone(), ..result(name, Verdict::Passed) });
        }
        assert_eq!(list_lasting_doubts(&a_loop_with(&[]), &facts), [expected]);
    }
}

#[test]
fn a_check_that_ran_nothing_and_that_no_agent_can_change_blocks_at_the_second_refusal() {
    let (once, _) = claimed(&failed_before(), tests(0, 0, 0, 57), true);
    assert!(once.is_live());
    let (_, twice) = claimed(&once, tests(0, 0, 0, 57), true);
    insta::assert_snapshot!(twice, @"blocked  (refused for a reason that only a person can change: `test` ran 0 tests (57 filtered out))");
}

#[test]
fn a_check_without_tests_has_neither_passed_nor_failed_until_it_runs_one() {
    let subject = a_loop_with(&[("test", Role::Gate)]);
    let mut empty = facts(Claim::None);
    empty.checks = vec![result("test", Verdict::Passed)];
    empty.checks[0].test_run = Some(tests(0, 0, 0, 0));
    let judged = judge_boundary(&subject, &empty);
    assert_eq!(
        (
            judged.after.state.seen().checks().len(),
            judged.after.state.counts().consecutive_failures()
        ),
        (0, 0)
    );
    empty.checks[0].test_run = Some(tests(1, 0, 0, 0));
    assert_eq!(
        judge_boundary(&judged.after, &empty).after.state.seen().checks()["test"].last(),
        Verdict::Passed
    );
}

#[test]
fn an_until_that_ran_nothing_does_not_end_the_loop() {
    let subject = a_loop_with(&[("test", Role::Until)]);
    let mut facts = facts(Claim::None);
    facts.checks = vec![result("test", Verdict::Passed)];
    facts.checks[0].test_run = Some(tests(0, 0, 2, 0));
    assert_eq!(decide_next(&judge_boundary(&subject, &facts), &facts), Decision::Continue);
    facts.checks[0].test_run = Some(tests(1, 0, 2, 0));
    assert!(matches!(decide_next(&judge_boundary(&subject, &facts), &facts), Decision::Finish(_)));
}

#[test]
fn the_evidence_keeps_the_results_of_the_tests() {
    let subject = a_loop_with(&[("test", Role::Gate)]);
    let mut facts = facts(Claim::None);
    facts.checks = vec![result("test", Verdict::Failed)];
    let mut run = tests(1, 1, 0, 0);
    run.add_name("adds", TestStatus::Failed);
    run.add_name("counts", TestStatus::Passed);
    facts.checks[0].test_run = Some(run);
    let evidence = judge_boundary(&subject, &facts).after.state.seen().evidence().clone().unwrap();
    let report = evidence.checks[0].tests.clone().unwrap();
    assert_eq!((report.failed(), report.failing().first().clone()), (1, vec!["adds".to_owned()]));
    assert_eq!(evidence.checks[0].test_run, None);
    assert_eq!(facts.tests_after().unwrap()["test"].same_failures, 1);
}
