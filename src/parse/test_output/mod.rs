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

use crate::engine::evidence::test_run::TestRun;
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
    fn line(&mut self, line: Line<'_>);
    /// What it reported; `None` if no line was its own.
    fn report(self: Box<Self>) -> Option<TestRun>;
}

/// Reads the output of a check.
pub struct TestOutput {
    runners: [Box<dyn Runner>; 8],
    junit: junit::JUnit,
    nothing: nothing::Nothing,
}

impl TestOutput {
    /// The readers of all runners, before the first line.
    pub fn new() -> Self {
        Self {
            runners: [
                Box::<cargo::Cargo>::default(),
                Box::<nextest::Nextest>::default(),
                Box::<pytest::Pytest>::default(),
                Box::<unittest::Unittest>::default(),
                Box::<jest::Jest>::default(),
                Box::<vitest::Vitest>::default(),
                Box::<tap::Tap>::default(),
                Box::<go::Go>::default(),
            ],
            junit: junit::JUnit::default(),
            nothing: nothing::Nothing::default(),
        }
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
        self.runners.iter_mut().for_each(|runner| runner.line(line));
    }

    /// What all runners reported together; `None` where no tests were spoken of. A report in XML
    /// counts only alone: it repeats what a runner says in words.
    pub fn report(self) -> Option<TestRun> {
        let reports: Vec<TestRun> = self.runners.into_iter().filter_map(Runner::report).collect();
        let mut all = TestRun::default();
        if reports.is_empty() {
            let junit = self.junit.report();
            return self.nothing.beside(junit);
        }
        for report in reports {
            all.add(report);
        }
        self.nothing.beside(Some(all))
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
