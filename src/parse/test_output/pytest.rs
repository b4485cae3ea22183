//! pytest: its last line has the totals; the short summary names what failed, `-v` every test.

use memchr::memchr_iter;

use super::{Line, Runner, add_total, counts};
use crate::engine::evidence::test_run::{TestRun, TestStatus, add};
use crate::engine::text::is_word_of;

#[derive(Default)]
pub(super) struct Pytest {
    run: TestRun,
    is_known: bool,
    /// Runs that collected tests and have not reported their end.
    open: u32,
}

impl Runner for Pytest {
    fn line(&mut self, Line { whole: line, .. }: Line<'_>) {
        if let Some(failed) = line.strip_prefix("FAILED ").or(line.strip_prefix("ERROR ")) {
            let name = name_of(failed);
            // A log line has blanks after its level: "ERROR    app:client.py:42 no answer".
            let is_test =
                name.contains(".py::") || matches!(name.rsplit_once('.'), Some((_, "py")));
            if is_test && !name.starts_with(' ') {
                self.run.name(name, TestStatus::Failed);
            }
        } else if is_collected(line) {
            add(&mut self.open, 1);
        } else if let Some((name, status)) = verbose(line) {
            self.run.name(name, status);
        } else if line.ends_with('=') || line.ends_with(['s', ')']) && line.contains(" in ") {
            self.totals(line.trim_matches('=').trim());
        }
    }

    fn report(mut self: Box<Self>) -> Option<TestRun> {
        if self.open > 0 {
            self.run.unfinished = Some("pytest collected tests and reported no result".to_owned());
            self.is_known = true;
        }
        self.is_known.then_some(self.run)
    }
}

impl Pytest {
    /// "1 failed, 3 passed, 2 deselected in 0.03s (0:01:02)"
    fn totals(&mut self, line: &str) {
        let Some((totals, time)) = line.rsplit_once(" in ") else { return };
        let is_time = time.split('s').next().is_some_and(|it| it.parse::<f64>().is_ok());
        if totals.ends_with(" collected") {
            self.open = self.open.saturating_sub(1);
        }
        let is_totals = totals == "no tests ran"
            || totals.split(", ").all(|part| counts(part).any(|(_, word)| is_a_word(word)));
        if !is_time || !is_totals {
            return;
        }
        self.is_known = true;
        self.open = self.open.saturating_sub(1);
        for (number, word) in counts(totals) {
            add_total(&mut self.run, number, word);
        }
    }
}

/// "collected 3 items", "collecting ... collected 3 items / 1 deselected / 2 selected"
fn is_collected(line: &str) -> bool {
    let line = line.strip_prefix("collecting ... ").unwrap_or(line);
    let number = line.strip_prefix("collected ").and_then(|rest| rest.split_once(" item"));
    number.is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

fn is_a_word(word: &str) -> bool {
    const WORDS: &str = "passed xpassed failed skipped xfailed deselected error errors warning \
                         warnings rerun";
    is_word_of(WORDS, word.strip_prefix("subtests ").unwrap_or(word))
}

/// The name before " - message"; the values in its brackets may hold the same.
fn name_of(text: &str) -> &str {
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

/// `test_a.py::test_b[1] PASSED     [ 33%]`, and from its workers
/// `[ 33%] PASSED test_a.py::test_b` behind their names.
fn verbose(line: &str) -> Option<(&str, TestStatus)> {
    // Every line of a log is asked, and the search for a text is slow.
    let bytes = line.as_bytes();
    if !memchr_iter(b'y', bytes)
        .any(|at| bytes[..at].ends_with(b".p") && bytes[at..].starts_with(b"y::"))
    {
        return None;
    }
    if let Some(rest) = line.strip_prefix('[') {
        let (_, rest) = rest.split_once("%] ")?;
        let (word, name) = rest.split_once(' ')?;
        return Some((name, status_of(word)?));
    }
    let words = [" PASSED", " FAILED", " ERROR", " SKIPPED", " XFAIL", " XPASS"];
    let (at, word) = words.iter().filter(|word| line.contains(**word)).find_map(|word| {
        let at = line.find(*word)?;
        let after = line[at + word.len()..].chars().next();
        after.is_none_or(|it| it == ' ').then_some((at, word.trim_start()))
    })?;
    Some((&line[..at], status_of(word)?))
}

fn status_of(word: &str) -> Option<TestStatus> {
    Some(match word {
        "PASSED" | "XPASS" => TestStatus::Passed,
        "FAILED" | "ERROR" => TestStatus::Failed,
        "SKIPPED" | "XFAIL" => TestStatus::Skipped,
        _ => return None,
    })
}
