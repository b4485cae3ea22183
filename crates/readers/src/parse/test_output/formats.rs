//! Readers of the formats whose lines need more than one state: `go test`, reports in the XML of
//! `JUnit`, the Test Anything Protocol, and Python's unittest.

use std::collections::BTreeSet;

use memchr::memchr;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;

use super::table::{split_last, status_of};
use super::{Line, add_total, parse_milliseconds};
use engine::evidence::test_run::{TESTS_NAMED, TestRun, TestStatus, add_to_total};
use engine::text::one_line;

#[derive(Default)]
pub(super) struct Go {
    run: TestRun,
    is_known: bool,
    /// The tests of the package that is running: its name is printed last.
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

    /// Reads the result of a test: "FAIL: TestWrong/one (0.00s)".
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

    /// Reads the result of a package: "shop\t0.003s", "shop\t(cached) [no tests to run]", "shop
    /// [build failed]".
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

/// The largest report that is read, in bytes.
const REPORT_BYTES: usize = 16 << 20;

/// Collects the lines of reports.
#[derive(Default)]
pub(super) struct JUnit {
    xml: String,
    is_open: bool,
    /// The tag that ends the report.
    end: &'static str,
}

/// The test whose element is being read.
struct Case {
    name: String,
    took: Option<u32>,
    /// The status reported within the element; a test without one passed.
    status: TestStatus,
    is_error: bool,
    message: String,
}

impl JUnit {
    /// Reads a line, if a report has begun.
    pub(super) fn take_line(&mut self, Line { whole: line, text, .. }: Line<'_>) {
        if !self.is_open {
            if !text.starts_with("<?xml") && !text.starts_with("<testsuite") {
                return;
            }
            self.end = "</testsuite>";
        }
        if line.contains("<testsuites") {
            self.end = "</testsuites>";
        }
        self.is_open = !line.ends_with(self.end);
        if self.xml.len() + line.len() < REPORT_BYTES {
            self.xml.push_str(line);
            self.xml.push('\n');
        }
    }

    /// The tests of the reports; `None` without a report, or if one was truncated, because half of
    /// the tests would be misleading.
    pub(super) fn report(self) -> Option<TestRun> {
        let mut run = TestRun::default();
        let mut reader = Reader::from_str(&self.xml);
        reader.config_mut().expand_empty_elements = true;
        let (mut open, mut is_known, mut depth) = (None::<Case>, false, 0_u32);
        loop {
            match reader.read_event().ok()? {
                Event::Start(tag) => match (tag.name().as_ref(), &mut open) {
                    (b"testsuites" | b"testsuite", _) => depth += 1,
                    (b"testcase", _) => open = Some(Case::from_tag(&tag)),
                    (_, Some(case)) => case.mark_status(&tag),
                    _ => {}
                },
                Event::End(tag) => match tag.name().as_ref() {
                    b"testsuites" | b"testsuite" => {
                        is_known = true;
                        depth = depth.saturating_sub(1);
                    }
                    b"testcase" => {
                        if let Some(case) = open.take() {
                            case.count_in(&mut run);
                        }
                    }
                    _ => {}
                },
                Event::Eof if is_known && depth == 0 => return Some(run),
                Event::Eof => return None,
                _ => {}
            }
        }
    }
}

impl Case {
    fn from_tag(tag: &BytesStart<'_>) -> Self {
        let [class, name, time] =
            ["classname", "name", "time"].map(|name| read_attribute(tag, name));
        let class = class.filter(|class| !class.is_empty()).map(|class| class + ".");
        let took = time.and_then(|seconds| parse_milliseconds(&format!("{seconds}s")));
        let name = class.unwrap_or_default() + &name.unwrap_or_default();
        let status = TestStatus::Passed;
        Self { name, took, status, is_error: false, message: String::new() }
    }

    /// Sets the status of the test by an element within it.
    fn mark_status(&mut self, tag: &BytesStart<'_>) {
        match tag.name().as_ref() {
            b"failure" => self.status = TestStatus::Failed,
            b"error" => (self.status, self.is_error) = (TestStatus::Failed, true),
            b"skipped" if !self.is_error => self.status = TestStatus::Skipped,
            _ => return,
        }
        self.message = read_attribute(tag, "message").unwrap_or_default();
    }

    fn count_in(self, run: &mut TestRun) {
        if self.is_error {
            add_to_total(&mut run.errors, 1);
        } else {
            run.count_test(self.status);
        }
        run.add_name(&self.name, self.status);
        run.add_time(&self.name, self.took);
        if self.status == TestStatus::Failed {
            run.failed_for(&self.name, &self.message);
        }
    }
}

fn read_attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.try_get_attribute(name).ok()??;
    Some(found.unescape_value().ok()?.into_owned())
}

#[derive(Default)]
pub(super) struct Tap {
    /// The tests counted line by line.
    counted: TestRun,
    /// The totals that node prints.
    node: Option<TestRun>,
    /// The totals that prove prints, which counts every test as passed.
    prove: Option<TestRun>,
    is_known: bool,
    /// The last test that is not nested.
    last: String,
    /// The file whose tests prove reports.
    file: String,
    /// How many tests the outermost plans announce; `None` without a plan.
    planned: Option<u32>,
    /// Whether a test had no number, so that the plan cannot be compared.
    is_loose: bool,
    bailed_out: Option<String>,
}

impl Tap {
    pub(super) fn take_line(&mut self, Line { whole: line, text }: Line<'_>) {
        if let Some(number) = parse_plan(line) {
            self.is_known = true;
            add_to_total(self.planned.get_or_insert_default(), number);
        } else if line.starts_with("TAP version ") {
            self.is_known = true;
        } else if line.starts_with("Bail out!") {
            self.is_known = true;
            self.bailed_out = Some(one_line(line, 100));
        } else if line == "ok" || line == "not ok" {
            self.is_loose = true;
        } else if let Some(test) = line.strip_prefix("ok ") {
            self.take_test(test, TestStatus::Passed);
        } else if let Some(test) = line.strip_prefix("not ok ") {
            self.take_test(test, TestStatus::Failed);
        } else if let Some(number) = line.strip_prefix("  duration_ms: ") {
            self.counted.add_time(&self.last, parse_milliseconds(&format!("{number}ms")));
        } else if let Some(total) = line.strip_prefix("# ").or(line.strip_prefix("ℹ ")) {
            self.node_total(total);
        } else if line.ends_with(')')
            && let Some((file, rest)) = line.split_once(" (Wstat: ")
        {
            self.prove_file(file, rest);
        } else if let Some(totals) = line.strip_prefix("Files=") {
            let tests = totals.split(", Tests=").nth(1).and_then(|rest| rest.split(',').next());
            if let Some(tests) = tests.and_then(|tests| tests.parse::<u32>().ok()) {
                add_to_total(&mut self.prove.get_or_insert_default().passed, tests);
            }
        } else if let Some(numbers) =
            line.strip_prefix("  Failed tests:  ").or(line.strip_prefix("  Failed test:  "))
        {
            self.prove_failures(numbers);
        } else if text.starts_with(['✖', '✔', '﹣']) {
            self.take_spec_line(text);
        }
    }

    pub(super) fn report(self) -> Option<TestRun> {
        let Self { counted: mut run, node, prove, is_known, planned, .. } = self;
        run.unfinished = self.bailed_out;
        let prove = prove.map(|totals| {
            let others = totals.failed.saturating_add(run.skipped);
            let passed = totals.passed.saturating_sub(others);
            TestRun { passed, skipped: run.skipped, ..totals }
        });
        if let Some(totals) = prove.or(node) {
            let TestRun { tests, elapsed_ms, unfinished, .. } = run;
            return Some(TestRun { tests, elapsed_ms, unfinished, ..totals });
        }
        let planned = planned.unwrap_or(0);
        if planned > run.total() && !self.is_loose && run.unfinished.is_none() {
            let reported = run.total();
            run.unfinished = Some(format!("{reported} of {planned} planned tests reported"));
        }
        if is_known { Some(run) } else { None }
    }

    /// Reads the text of a test line: "2 - is empty # SKIP later".
    fn take_test(&mut self, test: &str, status: TestStatus) {
        let (number, name) = test.split_once(' ').unwrap_or((test, ""));
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            self.is_loose = true;
            return;
        }
        let (name, directive) = match name.rsplit_once("# ") {
            Some((name, directive)) => (name.trim_end(), directive.to_ascii_uppercase()),
            None => (name, String::new()),
        };
        let is_spared = directive.starts_with("SKIP") || directive.starts_with("TODO");
        let status = if is_spared { TestStatus::Skipped } else { status };
        self.counted.count_test(status);
        self.last = match name.trim_start_matches("- ") {
            "" => format!("test {number}"),
            name => name.to_owned(),
        };
        self.counted.add_name(&self.last, status);
    }

    /// Reads one of node's totals: "pass 3".
    fn node_total(&mut self, total: &str) {
        let Some((word, number)) = total.split_once(' ') else { return };
        // tape aligns its totals: "pass  2".
        let Ok(number) = number.trim().parse::<u32>() else { return };
        if word == "tests" {
            self.node.get_or_insert_default();
        } else if let Some(node) = &mut self.node {
            add_total(node, number, word);
        }
    }

    /// Reads a line of node's reporter "spec": "✖ is wrong (3.640153ms)".
    fn take_spec_line(&mut self, text: &str) {
        let Some((sign, name)) = text.split_once(' ') else { return };
        let name = name.split(" # ").next().unwrap_or(name);
        if let Some(status) = status_of(sign, usize::MAX)
            && let Some((name, time)) = name.rsplit_once(" (")
            && let Some(time) = time.strip_suffix("ms)")
        {
            self.counted.add_name(name, status);
            self.counted.add_time(name, parse_milliseconds(&format!("{time}ms")));
        }
    }

    /// Reads prove's line about a file: "t/b.t (Wstat: 512 (exited 2) Tests: 3 Failed: 2)".
    fn prove_file(&mut self, file: &str, rest: &str) {
        file.trim_end().clone_into(&mut self.file);
        let prove = self.prove.get_or_insert_default();
        add_to_total(&mut prove.failed, number_after("Failed: ", rest).unwrap_or(0));
        add_to_total(&mut prove.errors, u32::from(number_after("Tests: ", rest) == Some(0)));
    }

    /// Reads the numbers of failed tests: "2-3, 7".
    fn prove_failures(&mut self, numbers: &str) {
        let mut left = TESTS_NAMED;
        for range in numbers.split(", ") {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
                continue;
            };
            for number in (first..=last).take(left) {
                left -= 1;
                self.counted.add_name(&format!("{} test {number}", self.file), TestStatus::Failed);
            }
        }
    }
}

/// The number behind a label, up to a blank or a parenthesis.
fn number_after(label: &str, text: &str) -> Option<u32> {
    let rest = text.split(label).nth(1)?;
    rest.split([' ', ')']).next()?.parse().ok()
}

/// The number of a plan such as "1..4", which a reason may follow.
fn parse_plan(line: &str) -> Option<u32> {
    line.strip_prefix("1..")?.split(' ').next()?.parse().ok()
}

#[derive(Default)]
pub(super) struct Unittest {
    run: TestRun,
    is_known: bool,
    /// The number of a "Ran" line whose second line is still to come.
    ran: Option<u32>,
    failed: BTreeSet<String>,
    /// The name of a test whose result follows its own output.
    begun: Option<String>,
}

/// Prefixes of a line about a failed test.
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

    /// Reads the totals: "FAILED (failures=1, errors=1, skipped=1)", "OK", "NO TESTS RAN".
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

    /// Reads a failure: `test_c (test_a.Shop.test_c)`, which a subtest's values may follow; for a
    /// module that could not be loaded, or a class that could not be set up, `test_a
    /// (unittest.loader._FailedTest…)`.
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

    /// Reads a verbose result: `test_a (test_a.Shop.test_a) ... ok`; a docstring is printed on a
    /// second line.
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
