//! `cargo test`, plain and quiet: one "test result:" line a suite. A test is named with its suite,
//! the program that holds it, because two suites may have a test of the same name.

use super::{Line, Runner, add_total};
use crate::engine::evidence::test_run::{TESTS_NAMED, TestRun, TestStatus, add};

#[derive(Default)]
pub(super) struct Cargo {
    run: TestRun,
    is_known: bool,
    suite: String,
    /// What may be the list of failures that ends a suite.
    list: Option<Vec<String>>,
    /// Suites that began and have not reported their end.
    open: u32,
}

impl Runner for Cargo {
    fn line(&mut self, Line { whole: line, text, at_dots }: Line<'_>) {
        if let Some(totals) = line.strip_prefix("test result: ") {
            self.totals(totals);
        } else if line.starts_with("test ") {
            self.test(at_dots);
        } else if let Some(number) = line.strip_prefix("running ") {
            let number = number.strip_suffix(" tests").or(number.strip_suffix(" test"));
            let begins = number.is_some_and(|it| it.parse::<u32>().is_ok());
            add(&mut self.open, u32::from(begins));
        } else if line == "failures:" {
            self.list = Some(Vec::new());
        } else if let (Some(list), Some(name)) = (&mut self.list, line.strip_prefix("    ")) {
            if list.len() < TESTS_NAMED {
                list.push(name.to_owned());
            }
        } else if let Some(program) = text.strip_prefix("Running ") {
            program_of(program).unwrap_or_default().clone_into(&mut self.suite);
        } else if let Some(package) = text.strip_prefix("Doc-tests ") {
            package.clone_into(&mut self.suite);
        } else if line.starts_with("error: could not compile") || was_killed(line) {
            add(&mut self.run.errors, 1);
            self.is_known = true;
        } else if !line.is_empty() {
            self.list = None;
        }
    }

    fn report(mut self: Box<Self>) -> Option<TestRun> {
        if self.open > 0 {
            self.run.unfinished =
                Some("cargo began a suite and reported no result of it".to_owned());
            self.is_known = true;
        }
        self.is_known.then_some(self.run)
    }
}

impl Cargo {
    /// "ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s"
    fn totals(&mut self, totals: &str) {
        let Some((_, counts)) = totals.split_once(". ") else { return };
        for part in counts.split("; ") {
            let Some((number, word)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u32>() else { continue };
            add_total(&mut self.run, number, word);
        }
        self.is_known = true;
        self.open = self.open.saturating_sub(1);
        for name in self.list.take().unwrap_or_default() {
            self.name(&name, TestStatus::Failed);
        }
    }

    /// `test tests::adds ... ok`
    fn test(&mut self, at_dots: Option<(&str, &str)>) {
        let Some((test, end)) = at_dots else { return };
        let Some(name) = test.strip_prefix("test ") else { return };
        let status = match end.split([' ', ',', '<']).next() {
            Some("ok") => TestStatus::Passed,
            Some("FAILED") => TestStatus::Failed,
            Some("ignored") => TestStatus::Skipped,
            _ => return,
        };
        self.name(name, status);
    }

    fn name(&mut self, name: &str, status: TestStatus) {
        if !self.run.takes(status) {
            return;
        }
        // A list of failures is without these words.
        let modes = [" - should panic", " - compile fail", " - compile"];
        let name = modes.iter().find_map(|mode| name.strip_suffix(mode)).unwrap_or(name);
        // The lines of a documentation test move with every change above it.
        let is_documentation = name.ends_with(')');
        let line = if is_documentation { name.rsplit_once(" (line ") } else { None };
        let name = line.map_or(name, |(name, _)| name);
        match &*self.suite {
            "" => self.run.name(name, status),
            suite => self.run.name(&format!("{suite}::{name}"), status),
        }
    }
}

/// Whether a suite ended without its totals: "process didn't exit successfully: … (signal: 6, …)".
fn was_killed(line: &str) -> bool {
    line.ends_with(')')
        && !line.ends_with("(exit status: 101)")
        && line.contains("process didn't exit successfully: ")
}

/// The program of "unittests src/lib.rs (target/debug/deps/shop-0123456789abcdef)".
fn program_of(running: &str) -> Option<&str> {
    let path = running.strip_suffix(')')?.rsplit_once('(')?.1;
    let file = path.rsplit(['/', '\\']).next()?;
    Some(file.rsplit_once('-').map_or(file, |(name, _)| name))
}
