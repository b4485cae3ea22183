//! Test runs compared with earlier ones.

use insta::assert_snapshot;

use super::*;
use crate::evidence::Verdict;
use crate::evidence::test_run::{TestMemories, is_no_worse};
use crate::fixture::result;

/// A run of these tests: `+` passed, `-` failed, `?` skipped.
fn run(tests: &str) -> TestRun {
    let mut run = TestRun::default();
    for test in tests.split_whitespace() {
        let (mark, name) = test.split_at(1);
        let (total, status) = match mark {
            "+" => (&mut run.passed, TestStatus::Passed),
            "-" => (&mut run.failed, TestStatus::Failed),
            _ => (&mut run.skipped, TestStatus::Skipped),
        };
        *total += 1;
        run.add_name(name, status);
    }
    run
}

/// A run of these tests by a runner that names only failures.
fn terse(tests: &str) -> TestRun {
    let mut run = run(tests);
    run.tests.retain(|_, status| *status == TestStatus::Failed);
    run
}

fn shown(runs: &[TestRun]) -> String {
    let (last, earlier) = runs.split_last().unwrap();
    let memory = earlier.iter().fold(None, |memory: Option<TestMemory>, run| {
        Some(TestMemory::after_run(memory.as_ref(), run))
    });
    let report = TestReport::from_run(memory.as_ref(), last);
    let lines =
        report.news_words().into_iter().chain(report.still_failing()).chain(report.stuck_hint());
    lines.collect::<Vec<_>>().join(" · ")
}

#[test]
fn a_test_run_is_compared_with_the_previous_one_and_with_the_first() {
    let lines = [
        shown(&[run("+a +b")]),
        shown(&[run("+a -b -c"), run("+a +b -c")]),
        shown(&[run("+a +b"), run("-a -b")]),
        shown(&[run("-a"), run("-a"), run("-a")]),
        shown(&[run("-a -b"), run("-a"), run("-a")]),
        shown(&[run("+a +b +c +d +e +f"), run("+a")]),
        shown(&[run("+a +b +c"), run("+a +c ?b"), run("+a ?b ?c")]),
        shown(&[run("+a +b"), run("+a +renamed")]),
        shown(&[terse("+a -b"), terse("+a +b")]),
        shown(&[terse("+a +b"), terse("+a -b")]),
        shown(&[terse("+a +b"), terse("+a")]),
        shown(&[run("?a"), run("?a"), run("+a")]),
    ];
    assert_snapshot!(lines.join("\n"), @"

    1 test fixed · 1 of 3 tests failing: c
    2 tests newly broken (a, b) · 2 of 2 tests failing: a, b
    1 of 1 test failing: a · The same tests failed in each of the last 3 runs: what was tried did not help; look for another cause
    tests 2 → 1 (1 gone: b) · 1 of 1 test failing: a
    tests 6 → 1 (5 gone: b, c, d and 2 more)
    tests 3, 2 newly skipped: b, c
    tests 2 (1 gone: b)
    1 test fixed
    1 test newly broken (b) · 1 of 2 tests failing: b
    tests 2 → 1

    ");
}

#[test]
fn a_run_that_failed_to_load_or_was_filtered_removes_no_test() {
    let first = run("+a +b");
    for now in [TestRun { errors: 1, ..run("+a") }, TestRun { filtered: 1, ..run("+a") }] {
        assert_eq!(shown(&[first.clone(), now]), "");
    }
}

#[test]
fn a_check_that_ran_no_tests_ran_nothing_unless_it_never_had_any() {
    let filtered = TestRun { filtered: 57, ..TestRun::default() };
    let failed_to_load = TestRun { errors: 1, ..TestRun::default() };
    let uncounted = TestRun { uncounted: 1, ..TestRun::default() };
    let fails = Some("reports failing tests, and its exit status hides them");
    for (run, ever_ran, expected) in [
        (filtered.clone(), false, Some("ran 0 tests (57 filtered out)")),
        (filtered, true, Some("ran 0 tests (57 filtered out)")),
        (run("?a ?b"), false, Some("ran 0 tests (2 skipped)")),
        (TestRun::default(), true, Some("ran 0 tests (it ran tests before)")),
        (TestRun::default(), false, None),
        (run("+a"), true, None),
        (run("-a ?b"), false, fails),
        (uncounted, false, None),
        (failed_to_load, true, fails),
    ] {
        assert_eq!(ran_nothing(&run, ever_ran).as_deref(), expected, "{run:?} {ever_ran}");
    }
}

#[test]
fn no_worse_means_that_no_test_of_the_baseline_has_begun_to_fail() {
    let found = run("+a -b -c");
    for (now, expected) in [
        (run("+a -b -c"), true),
        (run("+a +b -c"), true),
        (run("-a -b"), false),
        (run("+a -b -new"), false),
        (run("-b"), false),
        (run("+a -b"), true),
        (TestRun { errors: 1, ..run("+a -b") }, false),
        (TestRun { failed: 2, ..run("+a -b") }, false),
        (TestRun { filtered: 9, ..TestRun::default() }, false),
    ] {
        let mut check = result("test", Verdict::Failed);
        check.test_run = Some(now.clone());
        let memory = TestMemory { as_found: true, ..TestMemory::after_run(None, &found) };
        let mut memories = TestMemories::from([("test".to_owned(), memory)]);
        assert_eq!(is_no_worse(&memories, &check), expected, "{now:?}");
        memories.get_mut("test").unwrap().as_found = false;
        assert!(!is_no_worse(&memories, &check), "the tests as found are unknown");
    }
    assert!(!is_no_worse(&TestMemories::new(), &result("test", Verdict::Failed)));
}
