//! The table of runners: how each of their lines reads, and what it means (`runners.txt`). A form
//! is compared piece by piece, without regular expressions, because this runs for every line of a
//! log.

use derive_getters::Getters;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use memchr::memrchr;

use super::{Line, add_total, first_number, parse_counts, parse_milliseconds};
use engine::evidence::test_run::{NAME_CHARS, TESTS_NAMED, TestRun, TestStatus, add_to_total};
use engine::text::{is_word_of, text_start};

/// The table; its header explains the format.
const RUNNERS: &str = include_str!("runners.txt");

/// The fields that count tests: one for each result, and `total` for all.
pub(super) const NUMBERS: [&str; 5] = ["total", "passed", "failed", "skipped", "errors"];

/// The values taken from a line.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LineMatch<'l> {
    pub(super) name: &'l str,
    word: &'l str,
    counts: &'l str,
    suite: &'l str,
    numbers: [Option<u32>; NUMBERS.len()],
    milliseconds: Option<u32>,
}

/// A row of the table.
#[derive(Getters, Debug)]
pub(super) struct Row {
    /// The index of its runner.
    runner: usize,
    means: &'static str,
    /// Whether it begins with a word, so that no other runner matches its lines.
    is_distinct: bool,
    is_indented: bool,
    /// The text before the first field.
    head: &'static str,
    /// The name of each field, with the text behind it.
    fields: Vec<(&'static str, &'static str)>,
}

/// The rows by the runners, and by the first letters of their lines.
#[derive(Getters)]
pub(super) struct Table {
    /// The name of each runner, and its separator between a suite and a test.
    runners: Vec<(&'static str, &'static str)>,
    rows: Vec<Row>,
    /// The rows for a line whose first byte after its blanks is this one.
    by_byte: Vec<Vec<usize>>,
}

/// The table, read once.
pub(super) static TABLE: LazyLock<Table> = LazyLock::new(Table::new);

impl Table {
    fn new() -> Self {
        let (mut runners, mut rows) = (Vec::new(), Vec::new());
        for line in RUNNERS.lines() {
            if let Some(runner) = line.strip_prefix('[') {
                let (name, rest) = runner.split_once(']').unwrap_or((runner, ""));
                runners.push((name, rest.trim().trim_matches('"')));
            } else if !line.starts_with(['#', '='])
                && let Some((means, form)) = line.split_once(": ")
            {
                rows.push(Row::new(runners.len().saturating_sub(1), means, form));
            }
        }
        let mut by_byte = vec![Vec::new(); usize::from(u8::MAX) + 1];
        for (at, row) in rows.iter().enumerate() {
            for byte in row.first_bytes() {
                by_byte[usize::from(byte)].push(at);
            }
        }
        Self { runners, rows, by_byte }
    }

    /// The sentences with this meaning, which have no form.
    pub(super) fn sentences(&self, means: &'static str) -> impl Iterator<Item = &'static str> {
        self.rows.iter().filter(move |row| row.means == means).map(|row| row.head)
    }
}

impl Row {
    fn new(runner: usize, means: &'static str, form: &'static str) -> Self {
        let rest = form.strip_prefix("{ }");
        let is_indented = rest.is_some() || means == "nothing";
        let mut parts = rest.unwrap_or(form).split('{');
        let head = parts.next().unwrap_or_default();
        let fields = parts.filter_map(|part| part.split_once('}')).collect();
        let is_distinct = head.starts_with(char::is_alphabetic);
        Self { runner, means, is_distinct, is_indented, head, fields }
    }

    /// The bytes that a line of this form may begin with, after its blanks.
    fn first_bytes(&self) -> RangeInclusive<u8> {
        match self.head.trim_start().bytes().next() {
            Some(first) => first..=first,
            None => match self.fields.first() {
                Some((_, " [")) => b'A'..=b'Z',
                Some(("counts" | "time", _)) => b'0'..=b'9',
                Some((field, _)) if NUMBERS.contains(field) => b'0'..=b'9',
                _ => 0..=u8::MAX,
            },
        }
    }

    /// The values taken from a line of this form.
    pub(super) fn match_line<'l>(&self, line: Line<'l>) -> Option<LineMatch<'l>> {
        let text = if self.is_indented { line.text } else { line.whole };
        let mut rest = text.strip_prefix(self.head)?;
        if self.fields.is_empty() {
            let is_match = self.means == "nothing" || rest.is_empty();
            return if is_match { Some(LineMatch::default()) } else { None };
        }
        let (_, tail) = self.fields.last()?;
        rest = rest.strip_suffix(tail)?;
        let mut taken = LineMatch::default();
        for (index, (field, behind)) in self.fields.iter().enumerate() {
            let (value, after) = match *field {
                _ if index + 1 == self.fields.len() => (rest, ""),
                // The rest of the line may hold what is behind a name once more, and not the last.
                "name" | "suite" | "counts" => split_last(rest, behind)?,
                _ => rest.split_once(behind)?,
            };
            rest = after;
            match *field {
                "name" => taken.name = value,
                "word" => taken.word = value,
                "counts" => taken.counts = value,
                "suite" => taken.suite = value,
                "time" => taken.milliseconds = Some(parse_milliseconds(value)?),
                field => {
                    if let Some(at) = NUMBERS.iter().position(|name| *name == field) {
                        // A form without a head is not indented.
                        let is_first = index == 0 && self.head.is_empty();
                        let number = if is_first { value } else { value.trim() };
                        taken.numbers[at] = Some(number.parse().ok()?);
                    }
                }
            }
        }
        Some(taken)
    }
}

/// The text before and after the last `mark`. A search for a text would build tables each time.
pub(super) fn split_last<'l>(text: &'l str, mark: &str) -> Option<(&'l str, &'l str)> {
    let first = *mark.as_bytes().first()?;
    let mut end = text.len();
    while let Some(at) = memrchr(first, &text.as_bytes()[..end]) {
        if let Some(behind) = text.get(at..).and_then(|rest| rest.strip_prefix(mark)) {
            return Some((&text[..at], behind));
        }
        end = at;
    }
    None
}

/// What one runner of the table reported.
#[derive(Debug, Default)]
pub(super) struct ReportedTests {
    run: TestRun,
    is_known: bool,
    suite: String,
    /// The headings that a more indented line belongs to, each with its indentation.
    headings: Vec<(usize, String)>,
    /// The test that the next non-blank line explains.
    unexplained: String,
    /// A possible list of the failures in a suite, printed at its end.
    pub(super) list: Option<Vec<String>>,
    /// Runs that were announced and have not reported their end.
    open: u32,
    /// Tests whose last try failed: a later try may pass.
    tried: BTreeSet<String>,
}

impl ReportedTests {
    /// Reads a line of this runner; returns `false` if the line is not the runner's after all.
    pub(super) fn take_line(&mut self, row: &Row, line: Line<'_>, taken: LineMatch<'_>) -> bool {
        match row.means {
            "test" => return self.take_test(row.runner, taken),
            "failed" | "explained" => return self.take_failure(row.runner, taken),
            "panic" => self.unexplained = self.full_test_name(row.runner, taken.name),
            "heading" | "took" => return self.take_heading(row, line, taken),
            "verbose" => {
                let Some((name, word)) = parse_verbose(line.whole) else { return false };
                return self.take_test(row.runner, LineMatch { name, word, ..taken });
            }
            "time" => self.run.add_time(taken.name.trim(), taken.milliseconds),
            "tally" if !taken.counts.split(", ").all(is_a_number_of_tests) => return false,
            "totals" | "tally" => self.take_totals(row.runner, taken),
            "begins" => add_to_total(&mut self.open, 1),
            "ends" => self.open = self.open.saturating_sub(1),
            "suite" => {
                taken.suite.trim().clone_into(&mut self.suite);
                self.headings.clear();
            }
            "list" => self.list = Some(Vec::new()),
            "listed" => {
                let Some(list) = &mut self.list else { return false };
                if list.len() < TESTS_NAMED {
                    list.push(taken.name.to_owned());
                }
            }
            "errors" => {
                let named = taken.numbers.into_iter().flatten().max();
                add_to_total(&mut self.run.errors, named.unwrap_or(1));
                self.is_known = true;
            }
            "unfinished" => {
                self.run.unfinished = Some(line.text.to_owned());
                self.is_known = true;
            }
            "known" => self.is_known = true,
            _ => {}
        }
        true
    }

    fn take_totals(&mut self, runner: usize, taken: LineMatch<'_>) {
        let [total, numbers @ ..] = taken.numbers;
        // Where it is said how many passed, the rest is of other ends.
        if numbers[0].is_none() && taken.counts.is_empty() {
            let others = numbers.into_iter().flatten().fold(0, u32::saturating_add);
            add_to_total(&mut self.run.passed, total.unwrap_or_default().saturating_sub(others));
        }
        let named = numbers.into_iter().zip(NUMBERS.into_iter().skip(1));
        let named = named.filter_map(|(number, word)| Some((number?, word)));
        for (number, word) in named.chain(parse_counts(taken.counts)) {
            add_total(&mut self.run, number, word);
        }
        self.is_known = true;
        self.open = self.open.saturating_sub(1);
        for listed in self.list.take().unwrap_or_default() {
            if let Some(name) = name_of(&listed, runner) {
                self.record_test(runner, name, TestStatus::Failed, None);
            }
        }
    }

    fn take_test(&mut self, runner: usize, taken: LineMatch<'_>) -> bool {
        // "TRY 1 FAIL": another try may follow.
        let word = taken.word.strip_prefix("TRY ").and_then(|rest| rest.split_once(' '));
        let is_try = word.is_some();
        let word = word.map_or(taken.word, |(_, word)| word);
        let Some(status) = status_of(word, runner) else { return false };
        if !self.run.takes_name(status) && self.tried.is_empty() {
            return true;
        }
        let Some(name) = name_of(taken.name, runner) else { return false };
        if is_try && status == TestStatus::Failed && self.tried.len() < TESTS_NAMED {
            self.tried.insert(name.to_owned());
            return true;
        }
        self.tried.remove(name);
        let behind = word.split_once(' ').map(|(_, rest)| rest.trim_matches(['<', '>', '(', ')']));
        self.record_test(
            runner,
            name,
            status,
            taken.milliseconds.or(behind.and_then(parse_milliseconds)),
        );
        true
    }

    fn take_failure(&mut self, runner: usize, taken: LineMatch<'_>) -> bool {
        let Some(name) = name_of(taken.name, runner) else { return false };
        self.record_test(runner, name, TestStatus::Failed, None);
        self.unexplained = self.full_test_name(runner, name);
        let error = taken.name.strip_prefix(name).and_then(|rest| rest.strip_prefix(" - "));
        if let Some(error) = error {
            self.run.failed_for(name, error);
        }
        true
    }

    fn record_test(&mut self, runner: usize, name: &str, status: TestStatus, took: Option<u32>) {
        if !self.run.takes_name(status) {
            return;
        }
        let name = self.full_test_name(runner, name);
        self.run.add_name(&name, status);
        self.run.add_time(&name, took);
    }

    /// The name of a test, after the name of its suite.
    fn full_test_name(&self, runner: usize, name: &str) -> String {
        let (_, joint) = TABLE.runners[runner];
        let suite = if joint.is_empty() { "" } else { &self.suite };
        if suite.is_empty() { name.to_owned() } else { format!("{suite}{joint}{name}") }
    }

    /// A heading in the tree of a suite, or the time of a test below its headings.
    fn take_heading(&mut self, row: &Row, line: Line<'_>, taken: LineMatch<'_>) -> bool {
        let depth = line.whole.len() - line.text.len();
        if self.suite.is_empty() || depth == 0 || !self.unexplained.is_empty() {
            return false;
        }
        self.headings.retain(|(above, _)| *above < depth);
        if row.means == "heading" {
            self.headings.push((depth, text_start(taken.name, NAME_CHARS).to_owned()));
            return true;
        }
        let (_, joint) = TABLE.runners[row.runner];
        let headings: String =
            self.headings.iter().flat_map(|(_, heading)| [heading, joint]).collect();
        let name = self.full_test_name(row.runner, &(headings + taken.name));
        self.run.add_time(&name, taken.milliseconds);
        true
    }

    /// Stores the runner's explanation of the failure that it has just named.
    pub(super) fn explain_failure(&mut self, why: &str) {
        let name = std::mem::take(&mut self.unexplained);
        self.run.failed_for(&name, why);
    }

    /// What the runner reported; `None` if no line was its own.
    pub(super) fn report(mut self, runner: usize) -> Option<TestRun> {
        let (name, _) = TABLE.runners[runner];
        if self.open > 0 {
            let why = format!("{name} announced tests and never reported their end");
            self.run.unfinished.get_or_insert(why);
            self.is_known = true;
        }
        for name in std::mem::take(&mut self.tried) {
            self.run.add_name(&name, TestStatus::Failed);
        }
        // A thread that panicked may not be a test, or be one that should panic.
        let TestRun { failures, tests, .. } = &mut self.run;
        failures.retain(|name, _| tests.get(name) == Some(&TestStatus::Failed));
        if self.is_known { Some(self.run) } else { None }
    }
}

/// Whether a part belongs to pytest's totals.
fn is_a_number_of_tests(part: &str) -> bool {
    const WORDS: &str = "passed xpassed failed skipped xfailed deselected error errors warning \
                         warnings rerun";
    let word = first_number(part).map(|(_, word)| word);
    word.is_some_and(|word| is_word_of(WORDS, word.strip_prefix("subtests ").unwrap_or(word)))
}

/// The name and the word of `test_a.py::test_b[1] PASSED     [ 33%]`: either may hold blanks.
fn parse_verbose(line: &str) -> Option<(&str, &str)> {
    let words = [" PASSED", " FAILED", " ERROR", " SKIPPED", " XFAIL", " XPASS"];
    words.iter().find_map(|word| {
        let (name, behind) = line.split_once(word)?;
        let is_whole = behind.is_empty() || behind.starts_with(' ');
        if is_whole { Some((name, word.trim_start())) } else { None }
    })
}

/// The status that a runner's word or sign for the end of a test means.
pub(super) fn status_of(word: &str, runner: usize) -> Option<TestStatus> {
    Some(match word.split([' ', ',', '<']).next()? {
        // What nextest could not start has the word that others have for an expected failure.
        "XFAIL" if TABLE.runners.get(runner).is_some_and(|(name, _)| *name == "nextest") => {
            TestStatus::Failed
        }
        "ok" | "pass" | "PASS" | "PASSED" | "XPASS" | "LEAK" | "FLAKY" | "✓" | "✔" => {
            TestStatus::Passed
        }
        "fail" | "FAIL" | "FAILED" | "ERROR" | "TIMEOUT" | "ABORT" | "×" | "✖" => {
            TestStatus::Failed
        }
        "skip" | "ignored" | "SKIPPED" | "XFAIL" | "↓" | "□" | "﹣" => TestStatus::Skipped,
        word if word.starts_with("SIG") => TestStatus::Failed,
        _ => return None,
    })
}

/// The name of a test without its runner's decoration; `None` if it is not a name.
fn name_of(text: &str, runner: usize) -> Option<&str> {
    match TABLE.runners[runner].0 {
        "cargo" => {
            // A list of failures is without these words.
            let modes = [" - should panic", " - compile fail", " - compile"];
            let name = modes.iter().find_map(|mode| text.strip_suffix(mode)).unwrap_or(text);
            // The lines of a documentation test move with every change above it.
            let line = if name.ends_with(')') { name.rsplit_once(" (line ") } else { None };
            Some(line.map_or(name, |(name, _)| name))
        }
        "nextest" => {
            let name = text.trim_start();
            let number = name.strip_prefix('(').and_then(|name| name.split_once(") "));
            Some(number.map_or(name, |(_, name)| name.trim_start()))
        }
        "pytest" => {
            let name = before_the_message(text);
            // A log line has blanks after its level: "ERROR    app:client.py:42 no answer".
            let is_file = matches!(name.rsplit_once('.'), Some((_, "py")));
            let is_test = name.contains(".py::") || is_file;
            Some(name).filter(|name| is_test && !name.starts_with(' '))
        }
        "vitest" => {
            // " |project| " may be before it.
            let name = text.trim();
            let project = name.strip_prefix('|').and_then(|rest| rest.split_once("| "));
            Some(project.map_or(name, |(_, name)| name)).filter(|name| name.contains(" > "))
        }
        _ => Some(text),
    }
}

/// The name before " - message"; the values in its brackets may contain the same characters.
fn before_the_message(text: &str) -> &str {
    let mut depth = 0_u32;
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && text[at..].starts_with(" - ") => return &text[..at],
            _ => {}
        }
    }
    match text.split_once(" - ") {
        Some((name, _)) if depth > 0 => name,
        _ => text,
    }
}

#[cfg(test)]
mod number_tests {
    use super::*;

    #[test]
    fn a_pattern_may_name_the_counts_of_a_test_run() {
        let table = [
            (
                "{passed} success{_} / {failed} failure{_} / {errors} error{_} / {skipped} pending : {_}",
                "3 successes / 1 failure / 0 errors / 2 pending : 0.002 seconds",
                [3, 1, 2, 0],
            ),
            ("OK ({total} test{_}, {_})", "OK (3 tests, 3 assertions)", [3, 0, 0, 0]),
            (
                "Tests: {total}, Assertions: {_}, Errors: {errors}, Failures: {failed}.",
                "Tests: 4, Assertions: 4, Errors: 1, Failures: 1.",
                [2, 1, 0, 1],
            ),
            (
                "test cases: {_} | {passed} passed | {failed} failed",
                "test cases: 3 | 2 passed | 1 failed",
                [2, 1, 0, 0],
            ),
            ("{total} test{_}, {failed} failure{_}", "4 tests, 1 failure", [3, 1, 0, 0]),
            ("{total} tests, {passed} passed", "4 tests, 0 passed", [0, 0, 0, 0]),
            ("Tests  {counts} ({total})", "Tests  1 failed | 3 passed (5)", [3, 1, 0, 0]),
        ];
        for (form, text, expected) in table {
            let (row, line) = (Row::new(0, "totals", form), Line { whole: text, text });
            let mut reported = ReportedTests::default();
            assert!(reported.take_line(&row, line, row.match_line(line).unwrap()), "{text}");
            let run = reported.report(0).unwrap();
            assert_eq!([run.passed, run.failed, run.skipped, run.errors], expected, "{text}");
            let no_number = text.replace(|c: char| c.is_ascii_digit(), "x");
            assert!(
                row.match_line(Line { whole: &no_number, text: &no_number }).is_none(),
                "{text}"
            );
        }
    }
}
