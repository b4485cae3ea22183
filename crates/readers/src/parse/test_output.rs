//! Reads what test runners print, line by line, so that a log of any length fits. The forms of
//! their lines are a table (`runners.txt`); `formats.rs` reads runners whose lines need more than
//! one state. A line that no runner recognises is not a test.

mod formats;
mod nothing;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

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
    /// The line without its indentation.
    text: &'a str,
}

/// Reads the output of a check.
#[derive(Default)]
pub struct TestOutput {
    /// What each runner of the table has reported, by its index.
    reported: BTreeMap<usize, ReportedTests>,
    /// The runner whose list of failures is being read.
    lists: Option<usize>,
    /// The runner whose next non-blank line explains why a test failed.
    explains: Option<usize>,
    unittest: formats::Unittest,
    tap: formats::Tap,
    go: formats::Go,
    junit: formats::JUnit,
    nothing: nothing::NothingRan,
}

impl TestOutput {
    /// Reads the next line, without its line break.
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
        let whole = without_prefix(line.trim_end());
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
        for at in &TABLE.by_byte()[usize::from(first)] {
            let row = &TABLE.rows()[*at];
            if read >> *row.runner() & 1 == 0
                && let Some(taken) = row.match_line(line)
                && self.reported.entry(*row.runner()).or_default().take_line(row, line, taken)
            {
                read |= 1 << *row.runner();
                match row.means() {
                    "nothing" => self.nothing.note_nothing_ran(line),
                    "idle" if is_action(taken.name) => self.nothing.note_nothing_ran(line),
                    "cached" if is_action(taken.name) => self.nothing.note_replay(line),
                    "list" => self.lists = Some(*row.runner()),
                    "explained" | "panic" => self.explains = Some(*row.runner()),
                    "test" => {
                        is_test = true;
                        if *row.is_distinct() {
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
            self.reported.entry(runner).or_default().explain_failure(line.text);
        }
        // Any other line shows that it was not the list of failures.
        if let Some(runner) = self.lists.take_if(|at| read >> *at & 1 == 0 && !whole.is_empty()) {
            self.reported.entry(runner).or_default().list = None;
        }
    }

    /// What all runners reported together; `None` if no runner reported a test. A report in XML
    /// counts only alone: it repeats what a runner says in words.
    pub fn report(self) -> Option<TestRun> {
        let reported = self.reported.into_iter();
        let reports = reported.filter_map(|(runner, reported)| reported.report(runner));
        let others = [self.unittest.report(), self.tap.report(), self.go.report()];
        let all = reports.chain(others.into_iter().flatten()).reduce(|mut all, report| {
            all.add_run(report);
            all
        });
        self.nothing.add_to_run(all.or_else(|| self.junit.report()))
    }
}

/// The counts in a text such as "3 passed, 1 failed", also with other separators: each number with
/// its word, and the text after the word.
fn parse_counts(text: &str) -> impl Iterator<Item = (u32, &str)> {
    text.split([',', ';', '|']).filter_map(first_number)
}

/// The number that a part begins with, and the text after it.
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

/// Adds a number of a runner's summary by the word after it. Other words are ignored.
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

/// A line without the prefix of turbo (`pkg:test: `), pnpm (`packages/web test: `), lerna
/// (`@acme/web: `), compose (`app-1  | `), concurrently (`[web] `), yarn (`[@acme/web]: `) or
/// GitHub Actions (`2026-01-02T03:04:05.6789Z `).
pub(super) fn without_prefix(line: &str) -> &str {
    let line = if line.starts_with("20") { without_time(line) } else { line };
    if let Some((name, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']'))
        && let Some(rest) = rest.strip_prefix(": ").or_else(|| rest.strip_prefix(' '))
        && is_name(name)
    {
        return rest;
    }
    let (first, rest) = split_word(line);
    if first.strip_suffix(':').is_some_and(is_script) {
        return rest;
    }
    if let Some(behind) = rest.trim_start().strip_prefix("| ")
        && is_container(first)
    {
        return behind;
    }
    let (second, behind) = split_word(rest);
    if second.ends_with(':') && is_script(&line[..first.len() + second.len()]) {
        return behind;
    }
    line
}

/// The first word, and the text after its blank. This runs for every line of a log.
fn split_word(text: &str) -> (&str, &str) {
    memchr(b' ', text.as_bytes()).map_or((text, ""), |at| (&text[..at], &text[at + 1..]))
}

fn without_time(line: &str) -> &str {
    match line.split_once(' ') {
        Some((time, rest)) if time.ends_with('Z') && time.contains('T') => rest,
        _ => line,
    }
}

/// Whether the text names a container, such as "app-1".
fn is_container(head: &str) -> bool {
    head.rsplit_once('-').is_some_and(|(name, number)| {
        !name.is_empty()
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && !head.contains(' ')
    })
}

/// Whether the text names a script, such as "shop:test", "@acme/web:unit", "packages/web test" or
/// "@acme/web".
fn is_script(head: &str) -> bool {
    const WORDS: [&str; 7] = ["test", "unit", "spec", "check", "verify", "e2e", "integration"];
    let Some((package, script)) = head.split_once([':', ' ']) else {
        return head.starts_with('@') && head.contains('/');
    };
    let is_test = script.split([':', '-', '.']).any(|word| WORDS.contains(&word));
    is_test && is_name(package) && !script.contains(' ')
}

/// Whether a string can name a package or a script: it has a letter and no blank.
fn is_name(text: &str) -> bool {
    text.contains(char::is_alphabetic) && !text.contains(' ')
}

#[cfg(test)]
mod prefix_tests {
    use super::*;

    #[test]
    fn only_a_prefix_of_a_known_form_is_removed() {
        let table = [
            ("shop:test: Tests: 1 passed, 1 total", "Tests: 1 passed, 1 total"),
            ("@acme/web:test:unit: 1 passed", "1 passed"),
            ("packages/web test:  Tests  2 passed (2)", " Tests  2 passed (2)"),
            ("packages/web test:", ""),
            ("web:unit: 1 passed", "1 passed"),
            ("@acme/web: 1 passed", "1 passed"),
            ("[web] 1 passed", "1 passed"),
            ("[@acme/web]: 1 passed", "1 passed"),
            ("[INFO] Tests run: 3, Failures: 0", "Tests run: 3, Failures: 0"),
            ("[  PASSED  ] 0 tests.", "[  PASSED  ] 0 tests."),
            ("[1/3] 0 passed", "[1/3] 0 passed"),
            ("app-1  | 1 passed in 0.01s", "1 passed in 0.01s"),
            ("2026-01-02T03:04:05.6789Z 1 passed in 0.01s", "1 passed in 0.01s"),
            ("test result: ok. 1 passed; 0 failed", "test result: ok. 1 passed; 0 failed"),
            ("FAIL: test_a (test.A)", "FAIL: test_a (test.A)"),
            ("a | b", "a | b"),
            ("é: ü", "é: ü"),
        ];
        for (line, expected) in table {
            assert_eq!(without_prefix(line), expected, "{line}");
        }
    }
}
