//! Python's unittest: "Ran 5 tests in 0.001s", then one line with what did not pass.

use std::collections::BTreeSet;

use memchr::memchr;

use super::Line;
use super::table::split_last;
use engine::evidence::test_run::{TESTS_NAMED, TestRun, TestStatus, add_to_total};

#[derive(Default)]
pub(super) struct Unittest {
    run: TestRun,
    is_known: bool,
    /// The number of a "Ran" line whose second line is still to come.
    ran: Option<u32>,
    failed: BTreeSet<String>,
    /// The name before a test's own words, which have the line's end.
    begun: Option<String>,
}

/// How a line on a failed test begins.
const FAILURES: [&str; 3] = ["FAIL: ", "ERROR: ", "UNEXPECTED SUCCESS: "];

impl Unittest {
    pub(super) fn take_line(&mut self, Line { whole: line, .. }: Line<'_>) {
        let ran = line.strip_prefix("Ran ").and_then(|rest| rest.split_once(" test"));
        if let Some((number, rest)) = ran {
            self.ran = if rest.contains(" in ") { number.parse().ok() } else { None };
        } else if let (Some(ran), false) = (self.ran, line.is_empty()) {
            self.ran = None;
            self.take_totals(ran, line);
        } else if line.starts_with(['F', 'E', 'U'])
            && let Some(rest) = FAILURES.iter().find_map(|word| line.strip_prefix(word))
        {
            self.take_failure(rest);
        } else {
            self.take_verbose(line);
        }
    }

    pub(super) fn report(self) -> Option<TestRun> {
        if self.is_known { Some(self.run) } else { None }
    }

    /// "FAILED (failures=1, errors=1, skipped=1)", "OK", "NO TESTS RAN"
    fn take_totals(&mut self, ran: u32, line: &str) {
        if !["OK", "FAILED", "NO TESTS RAN"].iter().any(|word| line.starts_with(word)) {
            return;
        }
        self.is_known = true;
        let counts = line.split_once(" (").map_or("", |(_, counts)| counts.trim_end_matches(')'));
        let (mut skipped, mut stated) = (0, 0);
        for (word, number) in counts.split(", ").filter_map(|part| part.split_once('=')) {
            let number: u32 = number.parse().unwrap_or(0);
            if matches!(word, "skipped" | "expected failures") {
                add_to_total(&mut skipped, number);
            } else {
                add_to_total(&mut stated, number);
            }
        }
        let not_loaded = self.run.errors.min(ran);
        let failed = match std::mem::take(&mut self.failed).len() {
            // The lines that name them were cut off.
            0 => stated.saturating_sub(not_loaded).min(ran),
            named => u32::try_from(named).unwrap_or(u32::MAX),
        };
        add_to_total(&mut self.run.failed, failed);
        add_to_total(&mut self.run.skipped, skipped);
        add_to_total(
            &mut self.run.passed,
            ran.saturating_sub(failed.saturating_add(skipped).saturating_add(not_loaded)),
        );
    }

    /// `test_c (test_a.Shop.test_c)`, with the values of a subtest behind; of a module that could
    /// not be loaded, or a class that could not be set up, `test_a (unittest.loader._FailedTest…)`.
    fn take_failure(&mut self, rest: &str) {
        match name_of(rest) {
            Some(name) if is_a_test(rest) => {
                if self.failed.len() < TESTS_NAMED {
                    self.failed.insert(name.clone());
                }
                self.run.add_name(&name, TestStatus::Failed);
            }
            Some(_) => add_to_total(&mut self.run.errors, 1),
            None => {}
        }
    }

    /// `test_a (test_a.Shop.test_a) ... ok`; with a docstring, its words are on a second line.
    fn take_verbose(&mut self, line: &str) {
        let begun = self.begun.take();
        // Every line of a log is asked: a name ends in a parenthesis.
        if begun.is_none() && memchr(b')', line.as_bytes()).is_none() {
            return;
        }
        let Some((head, end)) = split_last(line, " ... ") else {
            let is_name = line.starts_with("test") && line.ends_with(')');
            self.begun = if is_name { name_of(line) } else { None };
            return;
        };
        let status = match end {
            "ok" => TestStatus::Passed,
            // xmlrunner has the time behind it: "ok (0.002s)".
            _ if end.starts_with("ok (") => TestStatus::Passed,
            _ if end.starts_with("skipped") || end.starts_with("expected ") => TestStatus::Skipped,
            _ => return,
        };
        let named = if head.ends_with(')') { name_of(head) } else { None };
        if let Some(name) = named.or(begun) {
            self.run.add_name(&name, status);
        }
    }
}

fn is_a_test(rest: &str) -> bool {
    !rest.contains("_FailedTest") && !rest.starts_with("setUp") && !rest.starts_with("tearDown")
}

/// The full name in `test_c (test_a.Shop.test_c)`, or of older Pythons `test_c (test_a.Shop)`.
fn name_of(text: &str) -> Option<String> {
    let (test, rest) = text.split_once('(')?;
    let test = test.strip_suffix(' ')?;
    let (place, _) = rest.split_once(')')?;
    let is_whole = place.rsplit('.').next() == Some(test);
    Some(if is_whole { place.to_owned() } else { format!("{place}.{test}") })
}
