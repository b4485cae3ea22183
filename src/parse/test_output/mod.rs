//! Reads what test runners print, line by line, so that a log of any length fits. Each runner has a
//! file; what none of them knows is not a test.

mod cargo;
mod go;
mod jest;
mod junit;
mod nextest;
mod nothing;
mod prefix;
mod pytest;
mod tap;
#[cfg(test)]
mod tests;
mod unittest;
mod vitest;

use memchr::{memchr, memrchr};

use crate::engine::evidence::test_run::{TestRun, add};
use crate::engine::text::plain;

/// A line without its break, its terminal codes and the blanks at its end. What several runners
/// look for in it is found once.
#[derive(Clone, Copy)]
struct Line<'a> {
    whole: &'a str,
    /// It without its indentation.
    text: &'a str,
    /// What is before and behind its last " ... ".
    at_dots: Option<(&'a str, &'a str)>,
}

/// A reader of one runner's output.
trait Runner {
    /// The first letters of the lines that it reads, besides those that end with a parenthesis;
    /// empty if it reads all.
    fn letters(&self) -> &'static str {
        ""
    }
    fn line(&mut self, line: Line<'_>);
    /// What it reported; `None` if no line was its own.
    fn report(self: Box<Self>) -> Option<TestRun>;
}

/// Reads the output of a check.
pub struct TestOutput {
    runners: [Box<dyn Runner>; 8],
    /// Which of them read a line that begins with this byte: one bit each.
    readers: [u8; 256],
    junit: junit::JUnit,
    nothing: nothing::Nothing,
}

impl TestOutput {
    /// The readers of all runners, before the first line.
    pub fn new() -> Self {
        let runners: [Box<dyn Runner>; 8] = [
            Box::<cargo::Cargo>::default(),
            Box::<nextest::Nextest>::default(),
            Box::<pytest::Pytest>::default(),
            Box::<unittest::Unittest>::default(),
            Box::<jest::Jest>::default(),
            Box::<vitest::Vitest>::default(),
            Box::<tap::Tap>::default(),
            Box::<go::Go>::default(),
        ];
        let mut readers = [0; 256];
        for (index, runner) in runners.iter().enumerate() {
            let letters = runner.letters().as_bytes();
            for (byte, readers) in (0..=u8::MAX).zip(&mut readers) {
                let is_read = letters.is_empty() || letters.contains(&byte);
                *readers |= u8::from(is_read) << index;
            }
        }
        let (junit, nothing) = (junit::JUnit::default(), nothing::Nothing::default());
        Self { runners, readers, junit, nothing }
    }

    /// Takes the next line, without its break.
    pub fn line(&mut self, line: &str) {
        if memchr(b'\x1b', line.as_bytes()).is_some() {
            return plain(line).lines().for_each(|line| self.plain_line(line));
        }
        self.plain_line(line);
    }

    fn plain_line(&mut self, line: &str) {
        let whole = prefix::without_prefix(line.trim_end());
        let line = Line { whole, text: whole.trim_start(), at_dots: at_dots(whole) };
        self.junit.line(line);
        self.nothing.line(line);
        let first = line.text.bytes().next().unwrap_or_default();
        let readers = if whole.ends_with(')') { u8::MAX } else { self.readers[usize::from(first)] };
        for (index, runner) in self.runners.iter_mut().enumerate() {
            if readers >> index & 1 == 1 {
                runner.line(line);
            }
        }
    }

    /// What all runners reported together; `None` where no tests were spoken of. A report in XML
    /// counts only alone: it repeats what a runner says in words.
    pub fn report(self) -> Option<TestRun> {
        let reports = self.runners.into_iter().filter_map(Runner::report);
        let all = reports.reduce(|mut all, report| {
            all.add(report);
            all
        });
        self.nothing.beside(all.or_else(|| self.junit.report()))
    }
}

/// What is before and behind the last " ... ". Every line of a log is asked: the search for a text
/// builds tables each time, and that for a byte does not.
fn at_dots(text: &str) -> Option<(&str, &str)> {
    let mut end = text.len();
    while let Some(dot) = memrchr(b'.', &text.as_bytes()[..end]) {
        let behind = text[dot + 1..].strip_prefix(' ');
        if let (Some(before), Some(behind)) = (text[..=dot].strip_suffix(" ..."), behind) {
            return Some((before, behind));
        }
        end = dot;
    }
    None
}

/// "3 passed, 1 failed": each number with its word, and what follows the word.
fn counts(text: &str) -> impl Iterator<Item = (u32, &str)> {
    text.split(", ").filter_map(|part| {
        let (number, word) = part.trim().split_once(' ')?;
        Some((number.parse().ok()?, word.trim()))
    })
}

/// Adds a number of a runner's summary by the word behind it. Words of other numbers count nothing.
fn add_total(run: &mut TestRun, number: u32, word: &str) {
    let total = match word {
        "pass" | "passed" | "xpassed" | "measured" => &mut run.passed,
        "fail" | "failed" | "cancelled" | "exec" | "timed" => &mut run.failed,
        "skipped" | "ignored" | "todo" | "xfailed" => &mut run.skipped,
        "filtered out" | "deselected" => &mut run.filtered,
        "error" | "errors" => &mut run.errors,
        _ => return,
    };
    add(total, number);
}
