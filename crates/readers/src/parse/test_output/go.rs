//! `go test`, plain, `-v` and `-json`. Plain, a package that passes does not say how many tests it
//! ran.

use serde_json::Value;

use super::table::status_of;
use super::{Line, parse_milliseconds};
use engine::evidence::test_run::{TESTS_NAMED, TestRun, TestStatus, add_to_total};

#[derive(Default)]
pub(super) struct Go {
    run: TestRun,
    is_known: bool,
    /// The tests of the package that runs: its name comes last.
    open: Vec<(String, TestStatus, Option<u32>)>,
}

impl Go {
    pub(super) fn take_line(&mut self, Line { whole: line, text }: Line<'_>) {
        if line.starts_with("{\"") {
            if line.contains("\"Action\":")
                && let Ok(event) = serde_json::from_slice::<Value>(line.as_bytes())
            {
                self.take_event(&event);
            }
        } else if text.ends_with("s)")
            && let Some((_, rest)) = text.split_once("--- ")
        {
            // What a test prints without a line's end comes before it.
            self.take_test(rest);
        } else if let Some(rest) = line.strip_prefix("ok  \t") {
            self.take_package(rest, true);
        } else if let Some(rest) = line.strip_prefix("FAIL\t") {
            self.take_package(rest, false);
        } else if line.starts_with("?   \t") && line.ends_with("[no test files]") {
            self.is_known = true;
        }
    }

    pub(super) fn report(self) -> Option<TestRun> {
        if self.is_known { Some(self.run) } else { None }
    }

    /// "FAIL: TestWrong/one (0.00s)"
    fn take_test(&mut self, rest: &str) {
        let Some((word, rest)) = rest.split_once(": ") else { return };
        let Some((name, time)) = rest.rsplit_once(" (") else { return };
        if let Some(status) = status_of(&word.to_ascii_lowercase(), usize::MAX)
            && self.open.len() < TESTS_NAMED
        {
            let took = parse_milliseconds(time.trim_end_matches(')'));
            self.open.push((name.to_owned(), status, took));
        }
    }

    /// "shop\t0.003s", "shop\t(cached) [no tests to run]", "shop [build failed]"
    fn take_package(&mut self, rest: &str, passed: bool) {
        self.is_known = true;
        let package = rest.split(['\t', ' ']).next().unwrap_or(rest);
        let tests = std::mem::take(&mut self.open);
        let has_passed = tests.iter().any(|(_, status, _)| *status != TestStatus::Failed);
        if passed && !has_passed && !rest.contains("[no tests to run]") {
            add_to_total(&mut self.run.uncounted, 1);
        }
        if !passed && tests.is_empty() {
            add_to_total(&mut self.run.errors, 1);
        }
        for (name, status, took) in tests {
            self.count_test(package, &name, status, took);
        }
    }

    fn take_event(&mut self, event: &Value) {
        let [action, output, package] =
            ["Action", "Output", "Package"].map(|name| event[name].as_str().unwrap_or_default());
        match (event["Test"].as_str(), status_of(action, usize::MAX)) {
            (Some(test), Some(status)) => {
                self.is_known = true;
                let seconds = event["Elapsed"].as_f64();
                let took = seconds.and_then(|seconds| parse_milliseconds(&format!("{seconds}s")));
                self.count_test(package, test, status, took);
            }
            // A package that could not be built has an output instead of tests.
            (None, _) if output.starts_with("FAIL\t") && output.contains(" failed]") => {
                self.is_known = true;
                add_to_total(&mut self.run.errors, 1);
            }
            (None, Some(_)) => self.is_known = true,
            _ => {}
        }
    }

    fn count_test(&mut self, package: &str, test: &str, status: TestStatus, took: Option<u32>) {
        self.run.count_test(status);
        if self.run.takes_name(status) {
            let name = format!("{package}.{test}");
            self.run.add_name(&name, status);
            self.run.add_time(&name, took);
        }
    }
}
