//! `go test`, plain, `-v` and `-json`. Plain, a package that passes does not say how many tests it
//! ran.

use serde::Deserialize;

use super::{Line, Runner};
use crate::engine::evidence::test_run::{TESTS_NAMED, TestRun, TestStatus, add};

#[derive(Default)]
pub(super) struct Go {
    run: TestRun,
    is_known: bool,
    /// The tests of the package that runs: its name comes last.
    open: Vec<(String, TestStatus)>,
}

/// An event of `-json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    test: Option<String>,
    #[serde(default)]
    output: String,
}

impl Runner for Go {
    fn letters(&self) -> &'static str {
        "{oF?"
    }

    fn line(&mut self, Line { whole: line, text, .. }: Line<'_>) {
        if line.starts_with("{\"") {
            if line.contains("\"Action\":")
                && let Ok(event) = serde_json::from_slice::<Event>(line.as_bytes())
            {
                self.event(&event);
            }
        } else if text.ends_with("s)")
            && let Some((_, rest)) = text.split_once("--- ")
        {
            // What a test prints without a line's end comes before it.
            self.test(rest);
        } else if let Some(rest) = line.strip_prefix("ok  \t") {
            self.package(rest, true);
        } else if let Some(rest) = line.strip_prefix("FAIL\t") {
            self.package(rest, false);
        } else if line.starts_with("?   \t") && line.ends_with("[no test files]") {
            self.is_known = true;
        }
    }

    fn report(self: Box<Self>) -> Option<TestRun> {
        self.is_known.then_some(self.run)
    }
}

impl Go {
    /// "FAIL: TestWrong/one (0.00s)"
    fn test(&mut self, rest: &str) {
        let Some((word, rest)) = rest.split_once(": ") else { return };
        let Some((name, _)) = rest.rsplit_once(" (").filter(|(_, time)| time.ends_with("s)"))
        else {
            return;
        };
        if let Some(status) = status_of(&word.to_ascii_lowercase())
            && self.open.len() < TESTS_NAMED
        {
            self.open.push((name.to_owned(), status));
        }
    }

    /// "shop\t0.003s", "shop\t(cached) [no tests to run]", "shop [build failed]"
    fn package(&mut self, rest: &str, passed: bool) {
        self.is_known = true;
        let package = rest.split(['\t', ' ']).next().unwrap_or(rest);
        let failed = std::mem::take(&mut self.open);
        let has_passed = failed.iter().any(|(_, status)| *status != TestStatus::Failed);
        if passed && !has_passed && !rest.contains("[no tests to run]") {
            add(&mut self.run.uncounted, 1);
        }
        if !passed && failed.is_empty() {
            add(&mut self.run.errors, 1);
        }
        for (name, status) in failed {
            self.count(package, &name, status);
        }
    }

    fn event(&mut self, event: &Event) {
        let status = status_of(&event.action);
        match (&event.test, status) {
            (Some(test), Some(status)) => {
                self.is_known = true;
                self.count(&event.package, test, status);
            }
            // A package that could not be built has an output instead of tests.
            (None, _)
                if event.output.starts_with("FAIL\t") && event.output.contains(" failed]") =>
            {
                self.is_known = true;
                add(&mut self.run.errors, 1);
            }
            (None, Some(_)) => self.is_known = true,
            _ => {}
        }
    }

    fn count(&mut self, package: &str, test: &str, status: TestStatus) {
        match status {
            TestStatus::Passed => add(&mut self.run.passed, 1),
            TestStatus::Failed => add(&mut self.run.failed, 1),
            TestStatus::Skipped => add(&mut self.run.skipped, 1),
        }
        if self.run.takes(status) {
            self.run.name(&format!("{package}.{test}"), status);
        }
    }
}

fn status_of(word: &str) -> Option<TestStatus> {
    match word {
        "pass" => Some(TestStatus::Passed),
        "fail" => Some(TestStatus::Failed),
        "skip" => Some(TestStatus::Skipped),
        _ => None,
    }
}
