//! What the output of a check says about its tests: how many of which end, and each test that was
//! named. It can only lower what an exit status means, never raise it (DESIGN §12).

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use serde::{Deserialize, Serialize};

use crate::engine::text::{one_line, start};

/// The most tests that are kept by name.
pub const TESTS_NAMED: usize = 20_000;
/// The most tests whose failure is kept in words.
const FAILURES_KEPT: usize = 1000;
/// The longest name of a test, or the words of a failure, in characters.
pub const NAME_CHARS: usize = 300;

/// The end of one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestStatus {
    Passed,
    Failed,
    /// Not run, or run and ignored: marked as skipped, planned, or expected to fail.
    Skipped,
}

/// One run of tests: the totals of all its suites, and what was named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestRun {
    pub passed: u32,
    pub failed: u32,
    pub skipped: u32,
    /// Left out by a filter.
    pub filtered: u32,
    /// Suites, files or fixtures that could not be compiled, loaded or set up.
    pub errors: u32,
    /// Suites that passed without saying how many tests they ran.
    pub uncounted: u32,
    /// The tests the runner named, by the name it gave them.
    pub tests: BTreeMap<String, TestStatus>,
    /// Names that both passed and failed: several tests have them.
    pub mixed: BTreeSet<String>,
    /// How long a test took, in milliseconds, where its runner says so.
    pub elapsed_ms: BTreeMap<String, u32>,
    /// Why a test failed, in one line, where its runner says so.
    pub failures: BTreeMap<String, String>,
    /// The words in which a runner reported that nothing ran.
    pub nothing: Option<String>,
    /// What began and never reported its end.
    pub unfinished: Option<String>,
    /// The words in which a runner reported that it repeated a cached result.
    pub replayed: Option<String>,
}

/// Adds to a total, which a strange output must not overflow.
pub fn add(total: &mut u32, more: u32) {
    *total = total.saturating_add(more);
}

impl TestRun {
    /// Whether any test ran to an end.
    pub fn ran(&self) -> bool {
        [self.passed, self.failed, self.uncounted] != [0; 3]
    }

    /// Whether a test failed, or a suite could not be loaded.
    pub fn has_failed(&self) -> bool {
        self.failed > 0 || self.errors > 0
    }

    /// How many ran or were skipped.
    pub fn total(&self) -> u32 {
        self.passed.saturating_add(self.failed).saturating_add(self.skipped)
    }

    /// Whether it named every test that passed, and not only what failed.
    pub fn names_all(&self) -> bool {
        let is_bounded = self.tests.len() == TESTS_NAMED;
        !is_bounded
            && self.uncounted == 0
            && self.named(TestStatus::Passed).count() >= self.passed as usize
    }

    /// Whether a name can still change what is kept.
    pub fn takes(&self, status: TestStatus) -> bool {
        status == TestStatus::Failed || self.tests.len() < TESTS_NAMED
    }

    /// Adds a test that was named and is in the totals. A name that failed once has failed. Of very
    /// many, those that come late are left out.
    pub fn name(&mut self, name: &str, status: TestStatus) {
        if !self.takes(status) {
            return;
        }
        let name = start(name.trim(), NAME_CHARS);
        let is_full = self.tests.len() == TESTS_NAMED;
        let known = match self.tests.entry(name.to_owned()) {
            Entry::Vacant(_) if is_full || name.is_empty() => return,
            entry => entry.or_insert(status),
        };
        if *known != status && [*known, status].iter().all(|it| *it != TestStatus::Skipped) {
            self.mixed.insert(name.to_owned());
        }
        if status == TestStatus::Failed {
            *known = status;
        }
    }

    /// Keeps how long a test took.
    pub fn took(&mut self, name: &str, milliseconds: Option<u32>) {
        let name = start(name.trim(), NAME_CHARS);
        if let Some(milliseconds) = milliseconds
            && self.elapsed_ms.len() < TESTS_NAMED
        {
            self.elapsed_ms.insert(name.to_owned(), milliseconds);
        }
    }

    /// Keeps why a test failed.
    pub fn failed_for(&mut self, name: &str, error: &str) {
        let name = start(name.trim(), NAME_CHARS);
        if !error.trim().is_empty() && self.failures.len() < FAILURES_KEPT {
            self.failures.insert(name.to_owned(), one_line(error, NAME_CHARS));
        }
    }

    /// Counts a test with this end.
    pub fn count(&mut self, status: TestStatus) {
        let total = match status {
            TestStatus::Passed => &mut self.passed,
            TestStatus::Failed => &mut self.failed,
            TestStatus::Skipped => &mut self.skipped,
        };
        add(total, 1);
    }

    /// Whether the same tests in another place show that it lacks nothing: some pass, none fails
    /// that does not fail `here`, and no more suites fail to load.
    pub fn is_as_good_as(&self, here: &Self) -> bool {
        let is_worse = |name: &str| here.tests.get(name) != Some(&TestStatus::Failed);
        self.passed > 0
            && self.errors <= here.errors
            && !self.named(TestStatus::Failed).any(is_worse)
    }

    /// Adds another run's totals and names.
    pub fn add(&mut self, other: Self) {
        add(&mut self.passed, other.passed);
        add(&mut self.failed, other.failed);
        add(&mut self.skipped, other.skipped);
        add(&mut self.filtered, other.filtered);
        add(&mut self.errors, other.errors);
        add(&mut self.uncounted, other.uncounted);
        self.mixed.extend(other.mixed);
        self.elapsed_ms.extend(other.elapsed_ms);
        self.failures.extend(other.failures);
        self.nothing = self.nothing.take().or(other.nothing);
        self.unfinished = self.unfinished.take().or(other.unfinished);
        self.replayed = self.replayed.take().or(other.replayed);
        for (name, status) in other.tests {
            self.name(&name, status);
        }
    }

    /// The tests with this end, by name.
    pub fn named(&self, status: TestStatus) -> impl Iterator<Item = &str> {
        self.tests.iter().filter(move |(_, it)| **it == status).map(|(name, _)| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::TestStatus::{Failed, Passed};
    use super::*;

    fn run(tests: &[(&str, TestStatus)], errors: u32) -> TestRun {
        let mut run = TestRun { errors, ..TestRun::default() };
        for (name, status) in tests {
            add(if *status == Failed { &mut run.failed } else { &mut run.passed }, 1);
            run.name(name, *status);
        }
        run
    }

    #[test]
    fn a_place_lacks_nothing_where_some_tests_pass_and_none_fails_that_passes_here() {
        let failing = |a, b| run(&[("a", a), ("b", b)], 0);
        let table = [
            // What ran there, and here.
            (failing(Failed, Passed), failing(Failed, Passed), true),
            (failing(Failed, Passed), failing(Failed, Failed), true),
            (failing(Passed, Passed), failing(Failed, Passed), true),
            (failing(Failed, Failed), failing(Failed, Failed), false),
            (failing(Failed, Passed), failing(Passed, Failed), false),
            (failing(Failed, Passed), run(&[("b", Passed)], 0), false),
            (run(&[("a", Passed)], 1), failing(Passed, Failed), false),
        ];
        for (there, here, expected) in table {
            assert_eq!(there.is_as_good_as(&here), expected, "{there:?}, {here:?}");
        }
    }
}
