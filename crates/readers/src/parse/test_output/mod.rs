//! Reads what test runners print, line by line, so that a log of any length fits. The forms of
//! their lines are a table (`runners.txt`); a runner whose lines need more than one state has a
//! file. What none of them knows is not a test.

mod go;
mod junit;
mod nothing;
mod prefix;
mod table;
mod tap;
#[cfg(test)]
mod tests;
mod unittest;

use memchr::memchr;

use self::nothing::is_action;
use self::table::{ReportedTests, TABLE};
use crate::parse::amounts::to_count;
use engine::evidence::test_run::{TestRun, add_to_total};
use engine::text::plain_text;

/// A line without its break, its terminal codes and the blanks at its end.
#[derive(Clone, Copy)]
struct Line<'a> {
    whole: &'a str,
    /// It without its indentation.
    text: &'a str,
}

/// Reads the output of a check.
pub struct TestOutput {
    /// What each runner of the table reported.
    reported: Vec<ReportedTests>,
    /// The runner whose list of failures is open.
    lists: Option<usize>,
    /// The runner whose next line that is not blank says why a test failed.
    explains: Option<usize>,
    unittest: unittest::Unittest,
    tap: tap::Tap,
    go: go::Go,
    junit: junit::JUnit,
    nothing: nothing::NothingRan,
}

impl Default for TestOutput {
    /// The readers of all runners, before the first line.
    fn default() -> Self {
        Self {
            reported: TABLE.runners.iter().map(|_| ReportedTests::default()).collect(),
            lists: None,
            explains: None,
            unittest: unittest::Unittest::default(),
            tap: tap::Tap::default(),
            go: go::Go::default(),
            junit: junit::JUnit::default(),
            nothing: nothing::NothingRan::default(),
        }
    }
}

impl TestOutput {
    /// Takes the next line, without its break.
    pub fn take_line(&mut self, line: &str) {
        if memchr(b'\x1b', line.as_bytes()).is_some() {
            for line in plain_text(line).lines() {
                self.take_plain_line(line);
            }
        } else {
            self.take_plain_line(line);
        }
    }

    fn take_plain_line(&mut self, line: &str) {
        let whole = prefix::without_prefix(line.trim_end());
        let line = Line { whole, text: whole.trim_start() };
        self.junit.take_line(line);
        self.unittest.take_line(line);
        // Every line of a log is asked: the first letter says whose it may be.
        let first = line.text.bytes().next().unwrap_or_default();
        let may_end_so = whole.ends_with(')');
        // The signs of node's reporters begin with one of the last two bytes.
        if may_end_so
            || matches!(
                first,
                b'0'..=b'9' | b'T' | b'B' | b'o' | b'n' | b'd' | b'#' | b'F' | 0xe2 | 0xef
            )
        {
            self.tap.take_line(line);
        }
        if may_end_so || matches!(first, b'{' | b'o' | b'F' | b'?') {
            self.go.take_line(line);
        }
        let (mut read, mut is_test) = (0_u64, false);
        for at in &TABLE.by_byte[usize::from(first)] {
            let row = &TABLE.rows[*at];
            if read >> row.runner & 1 == 0
                && let Some(taken) = row.match_line(line)
                && self.reported[row.runner].take_line(row, line, taken)
            {
                read |= 1 << row.runner;
                match row.means {
                    "nothing" => self.nothing.note_nothing_ran(line),
                    "idle" if is_action(taken.name) => self.nothing.note_nothing_ran(line),
                    "cached" if is_action(taken.name) => self.nothing.note_replay(line),
                    "list" => self.lists = Some(row.runner),
                    "explained" | "panic" => self.explains = Some(row.runner),
                    "test" => {
                        is_test = true;
                        if row.is_distinct {
                            break;
                        }
                    }
                    _ => {}
                }
            }
        }
        if !is_test {
            self.nothing.take_line(line);
        }
        if let Some(runner) = self.explains.take_if(|at| read >> *at & 1 == 0 && !whole.is_empty())
        {
            self.reported[runner].explain_failure(line.text);
        }
        // Any other line shows that it was not the list of failures.
        if let Some(runner) = self.lists.take_if(|at| read >> *at & 1 == 0 && !whole.is_empty()) {
            self.reported[runner].list = None;
        }
    }

    /// What all runners reported together; `None` where none reported a test. A report in XML
    /// counts only alone: it repeats what a runner says in words.
    pub fn report(self) -> Option<TestRun> {
        let reported = self.reported.into_iter().enumerate();
        let reports = reported.filter_map(|(runner, reported)| reported.report(runner));
        let others = [self.unittest.report(), self.tap.report(), self.go.report()];
        let all = reports.chain(others.into_iter().flatten()).reduce(|mut all, report| {
            all.add_run(report);
            all
        });
        self.nothing.add_to_run(all.or_else(|| self.junit.report()))
    }
}

/// "3 passed, 1 failed", with other marks between them, too: each number with its word, and what
/// follows the word.
fn parse_counts(text: &str) -> impl Iterator<Item = (u32, &str)> {
    text.split([',', ';', '|']).filter_map(first_number)
}

/// The number that a part begins with, and what follows.
fn first_number(part: &str) -> Option<(u32, &str)> {
    let (number, word) = part.trim().split_once(' ')?;
    Some((number.parse().ok()?, word.trim()))
}

/// A duration such as "0.005s" or "12 ms".
fn parse_milliseconds(text: &str) -> Option<u32> {
    let text = text.trim();
    let (number, factor) = match text.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => (text.strip_suffix('s')?, 1000.0),
    };
    let number: f64 = number.trim_end().parse().ok()?;
    u32::try_from(to_count(number * factor)).ok()
}

/// Adds a number of a runner's summary by the word behind it. Other words are ignored.
fn add_total(run: &mut TestRun, number: u32, word: &str) {
    let total = match word.split(' ').next().unwrap_or_default() {
        "pass" | "passed" | "xpassed" | "measured" => &mut run.passed,
        "fail" | "failed" | "cancelled" | "exec" | "timed" => &mut run.failed,
        "skipped" | "ignored" | "todo" | "xfailed" => &mut run.skipped,
        "filtered" | "deselected" => &mut run.filtered,
        "error" | "errors" => &mut run.errors,
        _ => return,
    };
    add_to_total(total, number);
}
