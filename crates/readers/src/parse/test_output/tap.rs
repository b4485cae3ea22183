//! The Test Anything Protocol and those who print it: `node --test` (also its reporter "spec"),
//! prove. Where totals are printed they count, else the lines of the outermost tests.

use super::table::status_of;
use super::{Line, add_total, parse_milliseconds};
use engine::evidence::test_run::{TESTS_NAMED, TestRun, TestStatus, add_to_total};
use engine::text::one_line;

#[derive(Default)]
pub(super) struct Tap {
    /// Counted line by line.
    counted: TestRun,
    /// As printed by node.
    node: Option<TestRun>,
    /// As summed up by prove, where all tests are those that passed.
    prove: Option<TestRun>,
    is_known: bool,
    /// The last test of the outermost.
    last: String,
    /// The file whose tests prove reports.
    file: String,
    /// How many tests the outermost plans announce; `None` without a plan.
    planned: Option<u32>,
    /// Whether a test had no number, and the plan cannot be compared.
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

    /// "2 - is empty # SKIP later"
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

    /// "pass 3", one of node's totals.
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

    /// "✖ is wrong (3.640153ms)" of node's reporter "spec".
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

    /// "t/b.t (Wstat: 512 (exited 2) Tests: 3 Failed: 2)"
    fn prove_file(&mut self, file: &str, rest: &str) {
        file.trim_end().clone_into(&mut self.file);
        let prove = self.prove.get_or_insert_default();
        add_to_total(&mut prove.failed, number_after("Failed: ", rest).unwrap_or(0));
        add_to_total(&mut prove.errors, u32::from(number_after("Tests: ", rest) == Some(0)));
    }

    /// "2-3, 7"
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

/// The number of "1..4", also with a reason behind it.
fn parse_plan(line: &str) -> Option<u32> {
    line.strip_prefix("1..")?.split(' ').next()?.parse().ok()
}
