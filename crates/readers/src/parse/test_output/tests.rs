use proptest::prelude::*;

use super::*;
use engine::evidence::test_run::{NAME_CHARS, TESTS_NAMED, TestStatus};

fn read(text: &str) -> Option<TestRun> {
    let mut output = TestOutput::default();
    text.lines().for_each(|line| output.take_line(line));
    output.report()
}

fn counted(run: &TestRun) -> [u32; 5] {
    [run.passed, run.failed, run.skipped, run.filtered, run.errors]
}

#[test]
fn several_runners_in_one_output_are_added_up() {
    let cargo = "test tax::adds ... ok\ntest tax::rounds ... FAILED\n\
        test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    let pytest = "FAILED test_tax.py::test_rounds - assert 1 == 2\n1 failed, 2 passed in 0.03s\n";
    let both = read(&format!("{cargo}{pytest}")).unwrap();
    assert_eq!(counted(&both), [3, 2, 0, 0, 0]);
    let failed: Vec<&str> = both.names_with(TestStatus::Failed).collect();
    assert_eq!(failed, ["tax::rounds", "test_tax.py::test_rounds"]);
}

#[test]
fn tests_reported_both_in_xml_and_in_the_runners_output_count_once() {
    let xml = "<testsuites><testsuite><testcase name=\"a\"/></testsuite></testsuites>\n";
    assert_eq!(counted(&read(xml).unwrap()), [1, 0, 0, 0, 0]);
    assert_eq!(counted(&read(&format!("{xml}1 passed in 0.01s\n")).unwrap()), [1, 0, 0, 0, 0]);
}

#[test]
fn words_that_belong_to_no_runner_are_not_tests() {
    for text in
        ["", "all tests passed\n", "5 passed\n", "ok\n", "Tests: none\n", "FAILED to connect\n"]
    {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn lines_that_only_look_like_test_results_are_not_miscounted() {
    // tape's aligned totals, pytest's live log, a warning of jest's, a retry of nextest's, the
    // end of unittest's output, and a program of Go's that ends its output without a line break.
    for (text, expected) in [
        ("TAP version 13\nok 1 a\nok 2 b\n\n1..2\n# tests 2\n# pass  2\n\n# ok\n", [2, 0, 0, 0, 0]),
        (
            "test_a.py::test_b \n--- live log call ---\nERROR    app:a.py:42 upstream said 503\nPASSED   \
             [100%]\n=== 1 passed in 0.02s ===\n",
            [1, 0, 0, 0, 0],
        ),
        (
            "PASS ./a.test.js\n  ●  Cannot log after tests are done. Did you forget to wait?\nTests:       1 passed, \
             1 total\n",
            [1, 0, 0, 0, 0],
        ),
        (
            "  TRY 1 FAIL [   0.165s] (───) shop tests::rounds\n        PASS [   0.007s] (1/2) shop \
             tests::adds\n  TRY 2 FAIL [   0.099s] (2/2) shop tests::rounds\n     Summary [   0.369s] 2 tests \
             run: 1 passed, 1 failed, 0 skipped\n",
            [1, 1, 0, 0, 0],
        ),
        ("Ran 2 tests in 0.001s\n\nFAILED (failures=1)\n", [1, 1, 0, 0, 0]),
        (
            "=== RUN   TestA\nhello--- PASS: TestA (0.00s)\nPASS\nok  \tshop\t0.002s\n",
            [1, 0, 0, 0, 0],
        ),
    ] {
        assert_eq!(counted(&read(text).unwrap()), expected, "{text}");
    }
}

#[test]
fn of_very_many_tests_the_totals_are_right_and_a_bounded_number_is_named() {
    let mut output = TestOutput::default();
    for number in 0..TESTS_NAMED + 10 {
        output.take_line(&format!("test case_{number} ... ok"));
    }
    output.take_line(&format!("test {} ... FAILED", "long".repeat(1000)));
    output.take_line("test result: FAILED. 20010 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s");
    let run = output.report().unwrap();
    assert_eq!((run.passed, run.failed, run.tests.len()), (20_010, 1, TESTS_NAMED));
    assert!(run.tests.keys().all(|name| name.chars().count() <= NAME_CHARS));
}

proptest! {
    #[test]
    fn any_output_is_parsed_without_a_panic(text in "(test |ok |not ok |FAILED |1\\.\\.|Tests: |# |\\{\"Action\":|<testcase|\\PC|\n|\t| ){0,60}") {
        let run = read(&text).unwrap_or_default();
        let lines = u32::try_from(text.lines().count()).unwrap();
        prop_assert!(u32::try_from(run.tests.len()).unwrap() <= lines);
    }
}

#[test]
fn a_truncated_report_is_ignored_and_the_runners_output_counts() {
    let cut = "<testsuites><testsuite><testcase name=\"a\"/>\n";
    assert_eq!(read(cut), None);
    assert_eq!(read("<testsuite><testcase name=\"a\"\n"), None);
    let empty = ["<testsuite tests=\"0\"></testsuite>\n", "<testsuite tests=\"0\"/>\n"].map(read);
    assert!(empty[0].is_some() && empty[0] == empty[1], "nothing ran, in either spelling");
    assert_eq!(
        counted(&read(&format!("{cut}2 failed, 1 passed in 0.01s\n")).unwrap()),
        [1, 2, 0, 0, 0]
    );
}

#[test]
fn a_suite_that_was_killed_is_an_error() {
    let killed = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s\n\
        error: test failed, to rerun pass `--test side`\n\nCaused by:\n  \
        process didn't exit successfully: `/shop/target/debug/deps/side-0` (signal: 6, SIGABRT: process abort signal)\n";
    assert_eq!(counted(&read(killed).unwrap()), [2, 0, 0, 0, 1]);
}

#[test]
fn the_name_of_a_documentation_test_has_no_line_and_no_mode() {
    let text =
        include_str!("../../../../../tests/fixtures/tests/cargo/doc_tests.4p-2f-0s-0x-0e.txt");
    let tests = read(text).unwrap().tests;
    let names: Vec<&str> = tests.keys().map(String::as_str).collect();
    assert_eq!(names, ["shop::src/lib.rs - add", "shop::src/lib.rs - other"]);
}

#[test]
fn absurd_totals_neither_overflow_nor_take_long() {
    let most = format!("{} passed in 1s\n", u32::MAX);
    assert_eq!(counted(&read(&format!("{most}{most}")).unwrap()), [u32::MAX, 0, 0, 0, 0]);
    let ranges = "1-9999, ".repeat(8000);
    let prove = format!(
        "t/a.t (Wstat: 0 Tests: 9 Failed: 9)\n  Failed tests:  {ranges}\nFiles=1, Tests=9, 1 wallclock\n"
    );
    assert!(read(&prove).unwrap().tests.len() <= TESTS_NAMED);
}

proptest::proptest! {
    #[test]
    fn a_line_is_split_at_its_last_dots(text in "[ .a]{0,12}") {
        proptest::prop_assert_eq!(table::split_last(&text, " ... "), text.rsplit_once(" ... "));
    }
}

#[test]
fn every_field_of_the_table_is_a_known_one_or_free_text() {
    let known = [&table::NUMBERS[..], &["_", "name", "word", "time", "counts", "suite"]].concat();
    for row in TABLE.rows() {
        let unknown = row.fields().iter().find(|(field, _)| !known.contains(field));
        assert_eq!(unknown, None, "{row:?}");
    }
}

#[test]
fn an_indented_total_is_ignored_for_a_runner_that_does_not_indent() {
    let text = "collecting ... collected 3 items\n";
    for (end, is_unfinished) in
        [("3 tests collected in 0.01s", false), ("   3 tests collected in 0.01s", true)]
    {
        let mut output = TestOutput::default();
        text.lines().chain([end]).for_each(|line| output.take_line(line));
        let run = output.report();
        assert_eq!(run.is_some_and(|run| run.unfinished.is_some()), is_unfinished, "{end:?}");
    }
}

#[test]
fn the_example_of_each_row_of_the_table_is_matched_by_no_earlier_row() {
    let mut rows = TABLE.rows().iter();
    let mut row = rows.next().unwrap();
    let mut is_new = false;
    for line in include_str!("runners.txt").lines() {
        if let Some(example) = line.strip_prefix("= ") {
            let whole = without_prefix(example);
            let line = Line { whole, text: whole.trim_start() };
            let is_replay = row.means() == "replayed";
            assert!(is_replay || row.match_line(line).is_some(), "{example}");
            let first = line.text.bytes().next().unwrap();
            let mut read = TABLE.by_byte()[usize::from(first)].iter();
            let fits = read.find_map(|at| {
                let other = &TABLE.rows()[*at];
                if *other.runner() != *row.runner() {
                    return None;
                }
                let taken = other.match_line(line)?;
                let mut reported = ReportedTests::default();
                reported.list = (row.means() == "listed").then(Vec::new);
                // A heading is below its suite.
                let suite = Line { whole: "PASS ./a.test.js", text: "PASS ./a.test.js" };
                let mut rows = TABLE.rows().iter().filter(|one| *one.runner() == *row.runner());
                rows.find_map(|one| Some(reported.take_line(one, suite, one.match_line(suite)?)));
                reported.take_line(other, line, taken).then_some(other)
            });
            assert!(is_replay || fits.is_some_and(|fit| std::ptr::eq(fit, row)), "{example}");
            is_new = true;
        } else if !line.starts_with(['#', '[']) && !line.is_empty() && is_new {
            row = rows.next().unwrap();
            is_new = false;
        }
    }
    assert!(rows.next().is_none() && is_new, "a row without an example");
}

#[test]
fn the_duration_and_the_failure_of_a_test_are_kept_where_the_runner_prints_them() {
    let xml = "<testsuite><testcase classname=\"a\" name=\"b\" time=\"0.25\"><failure \
        message=\"1 is not 2\"/></testcase></testsuite>";
    let skips = "<testsuite><testcase classname=\"a\" name=\"b\"><error message=\"1 is not 2\"/>\
        <skipped/></testcase></testsuite>";
    for (text, took, error) in [
        (skips, None, Some("1 is not 2")),
        ("test a ... ok <0.012s>\ntest result: ok. 1 passed; 0 failed", Some(12), None),
        ("PASS [   0.005s] (1/1) shop a\nSummary [ 0.3s] 1 test run: 1 passed", Some(5), None),
        (" ✓ a.test.js > a 3ms\n Tests  1 passed (1)", Some(3), None),
        ("--- PASS: TestA (0.01s)\nok  \tshop\t0.002s", Some(10), None),
        ("✔ a (3.64ms)\nℹ tests 1\nℹ pass 1", Some(3), None),
        ("TAP version 13\nok 1 - a\n  ---\n  duration_ms: 2.11\n  ...\n1..1", Some(2), None),
        (
            "FAIL ./b.js\n  cart\n    vat\n      ✓ adds (2 ms)\n    ✕ is wrong (4 ms)\n\n  ● cart › is wrong\n\n    \
             expect(received).toBe(expected)\n\n    Expected: 2\n\nTests:       1 failed, 1 total",
            Some(4),
            Some("expect(received).toBe(expected)"),
        ),
        (
            " FAIL  b.test.js > a\n FAIL  b.test.js > b\nAssertionError: 1 is not 2\n Tests  2 failed (2)",
            None,
            None,
        ),
        (
            " FAIL  b.test.js > a\nAssertionError: 1 is not 2\n Tests  1 failed (1)",
            None,
            Some("AssertionError: 1 is not 2"),
        ),
        (
            "test a ... FAILED\nfailures:\n\n---- a stdout ----\n\nthread 'a' (345) panicked at src/lib.rs:10:46:\n\
             left is not right\n  left: 2\n\nfailures:\n    a\n\ntest result: FAILED. 0 passed; 1 failed",
            None,
            Some("left is not right"),
        ),
        (
            "thread 'a' panicked at a.rs:1:2:\nas it should\ntest a - should panic ... ok\ntest result: ok. 1 passed; 0 failed",
            None,
            None,
        ),
        ("0.50s call   a.py::a\nFAILED a.py::a - no\n1 failed in 1s", Some(500), Some("no")),
        (xml, Some(250), Some("1 is not 2")),
    ] {
        let run = read(text).unwrap();
        let name = run.tests.keys().next().unwrap();
        assert_eq!(run.elapsed_ms.get(name).copied(), took, "{text}");
        assert_eq!(run.failures.get(name).map(String::as_str), error, "{text}");
    }
}
