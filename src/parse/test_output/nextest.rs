//! `cargo nextest run`: a line a test, and a summary. What a filter leaves out is "skipped" there,
//! like what is ignored.

use std::collections::BTreeSet;

use super::{Line, Runner, add_total, counts};
use crate::engine::evidence::test_run::{TESTS_NAMED, TestRun, TestStatus};

#[derive(Default)]
pub(super) struct Nextest {
    run: TestRun,
    is_known: bool,
    /// Tests whose last try failed: a later try may pass.
    tried: BTreeSet<String>,
}

impl Runner for Nextest {
    fn letters(&self) -> &'static str {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    }

    fn line(&mut self, Line { text: line, .. }: Line<'_>) {
        if let Some(summary) = line.strip_prefix("Summary [") {
            self.summary(summary);
        } else if line.starts_with(|first: char| first.is_ascii_uppercase())
            && let Some((word, rest)) = line.split_once(" [")
        {
            self.test(word, rest);
        }
    }

    fn report(self: Box<Self>) -> Option<TestRun> {
        self.is_known.then_some(self.run)
    }
}

impl Nextest {
    /// "   0.007s] 5 tests run: 4 passed (1 slow), 1 failed, 1 skipped"
    fn summary(&mut self, summary: &str) {
        let Some((_, totals)) = summary.split_once(" run: ") else { return };
        for (number, word) in counts(totals) {
            add_total(&mut self.run, number, word.split(' ').next().unwrap_or_default());
        }
        self.is_known = true;
        for name in std::mem::take(&mut self.tried) {
            self.run.name(&name, TestStatus::Failed);
        }
    }

    /// `PASS [   0.005s] (1/3) shop tests::adds`
    fn test(&mut self, word: &str, rest: &str) {
        let attempt = word.strip_prefix("TRY ").and_then(|rest| rest.split_once(' '));
        let status = match attempt.map_or(word, |(_, word)| word) {
            "PASS" | "LEAK" | "SLOW" => TestStatus::Passed,
            "FAIL" | "TIMEOUT" | "ABORT" | "XFAIL" => TestStatus::Failed,
            word if word.starts_with("SIG") => TestStatus::Failed,
            word if word.starts_with("FLAKY") => TestStatus::Passed,
            _ => return,
        };
        let Some((time, name)) = rest.split_once("] ") else { return };
        let is_time = time.trim().strip_suffix('s').is_some_and(|it| it.parse::<f64>().is_ok());
        if !is_time || word == "SLOW" {
            return;
        }
        let name = name.trim_start();
        let number = name.strip_prefix('(').and_then(|name| name.split_once(") "));
        let name = number.map_or(name, |(_, name)| name.trim_start());
        match (attempt.is_some(), status) {
            (true, TestStatus::Failed) if self.tried.len() < TESTS_NAMED => {
                self.tried.insert(name.to_owned());
            }
            _ => {
                self.tried.remove(name);
                self.run.name(name, status);
            }
        }
    }
}
