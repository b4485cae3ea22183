//! What the output of a check says about its tests: how many passed, failed or were skipped, and
//! each test that was named. It can only lower what an exit status means, never raise it
//! (docs/design/claims.md).

use derive_getters::Getters;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::evidence::CheckResult;
use crate::text::{count, join_first_names, one_line, text_start};

/// The maximum number of tests kept by name.
pub const TESTS_NAMED: usize = 20_000;
/// The maximum number of tests for which the reason of a failure is kept.
const FAILURES_KEPT: usize = 1000;
/// The longest test name or failure reason, in characters.
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
    /// Tests that a filter left out.
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
    /// The runner's message that nothing ran.
    pub nothing: Option<String>,
    /// What began without a report of its end.
    pub unfinished: Option<String>,
    /// The runner's message that it repeated a cached result.
    pub replayed: Option<String>,
}

/// Adds to a total without overflow, whatever the output says.
pub fn add_to_total(total: &mut u32, more: u32) {
    *total = total.saturating_add(more);
}

impl TestRun {
    /// Whether any test ran to an end.
    pub fn ran_any(&self) -> bool {
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
            && self.names_with(TestStatus::Passed).count() >= self.passed as usize
    }

    /// Whether a name can still change what is kept.
    pub fn takes_name(&self, status: TestStatus) -> bool {
        status == TestStatus::Failed || self.tests.len() < TESTS_NAMED
    }

    /// Adds a test that was named and is in the totals. A name that failed once has failed. Of very
    /// many, those that come late are left out.
    pub fn add_name(&mut self, name: &str, status: TestStatus) {
        if !self.takes_name(status) {
            return;
        }
        let name = text_start(name.trim(), NAME_CHARS);
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
    pub fn add_time(&mut self, name: &str, milliseconds: Option<u32>) {
        let name = text_start(name.trim(), NAME_CHARS);
        if let Some(milliseconds) = milliseconds
            && self.elapsed_ms.len() < TESTS_NAMED
        {
            self.elapsed_ms.insert(name.to_owned(), milliseconds);
        }
    }

    /// Keeps why a test failed.
    pub fn failed_for(&mut self, name: &str, error: &str) {
        let name = text_start(name.trim(), NAME_CHARS);
        if !error.trim().is_empty() && self.failures.len() < FAILURES_KEPT {
            self.failures.insert(name.to_owned(), one_line(error, NAME_CHARS));
        }
    }

    /// Counts a test with this end.
    pub fn count_test(&mut self, status: TestStatus) {
        let total = match status {
            TestStatus::Passed => &mut self.passed,
            TestStatus::Failed => &mut self.failed,
            TestStatus::Skipped => &mut self.skipped,
        };
        add_to_total(total, 1);
    }

    /// Whether a run in another place lacks nothing that this run has: some tests pass, none fails
    /// that does not fail `here`, and no more suites fail to load.
    pub fn is_as_good_as(&self, here: &Self) -> bool {
        let is_worse = |name: &str| here.tests.get(name) != Some(&TestStatus::Failed);
        self.passed > 0
            && self.errors <= here.errors
            && !self.names_with(TestStatus::Failed).any(is_worse)
    }

    /// Adds another run's totals and names.
    pub fn add_run(&mut self, other: Self) {
        add_to_total(&mut self.passed, other.passed);
        add_to_total(&mut self.failed, other.failed);
        add_to_total(&mut self.skipped, other.skipped);
        add_to_total(&mut self.filtered, other.filtered);
        add_to_total(&mut self.errors, other.errors);
        add_to_total(&mut self.uncounted, other.uncounted);
        self.mixed.extend(other.mixed);
        self.elapsed_ms.extend(other.elapsed_ms);
        self.failures.extend(other.failures);
        self.nothing = self.nothing.take().or(other.nothing);
        self.unfinished = self.unfinished.take().or(other.unfinished);
        self.replayed = self.replayed.take().or(other.replayed);
        for (name, status) in other.tests {
            self.add_name(&name, status);
        }
    }

    /// The tests with this end, by name.
    pub fn names_with(&self, status: TestStatus) -> impl Iterator<Item = &str> {
        self.tests.iter().filter(move |(_, it)| **it == status).map(|(name, _)| &**name)
    }
}

// A check's test results, compared with its previous run and with the first one: what is failing,
// what was fixed, broken, left out or taken away. A report never decides whether a check passed.

/// The maximum number of tests of one kind that a report keeps by name.
const NAMES_KEPT: usize = 20;
/// The number of consecutive runs with the same failures after which the agent is warned.
const STUCK_RUNS: u32 = 3;
/// The maximum number of names on a line.
const NAMES_SHOWN: usize = 3;

/// Tests of one kind: how many, and the first of them by name.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTests {
    #[getter(copy)]
    count: u32,
    first: Vec<String>,
}

impl NamedTests {
    fn from_names<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self::default();
        for name in names {
            found.count += 1;
            if found.first.len() < NAMES_KEPT {
                found.first.push(name.to_owned());
            }
        }
        found
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// "a, b, c and 11 more", of what is known by name.
    pub fn join_names(&self, most: usize) -> String {
        let names = join_first_names(&self.first[..self.first.len().min(most)], most);
        match self.count as usize - self.first.len().min(most) {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }
}

/// The tests of one check at one boundary, bounded so that the record stays small.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestReport {
    #[getter(copy)]
    passed: u32,
    #[getter(copy)]
    failed: u32,
    skipped: u32,
    /// Tests that a filter left out.
    filtered: u32,
    /// Suites, files or fixtures that could not be compiled, loaded or set up.
    errors: u32,
    failing: NamedTests,
    /// How many runs in a row the same tests have failed; 0 if none failed.
    #[getter(copy)]
    same_failures: u32,
    /// Tests that failed in the previous run and pass now.
    fixed: NamedTests,
    /// Tests that passed in the previous run and fail now.
    broken: NamedTests,
    /// Tests that ran at the start of the loop and no longer exist.
    gone: NamedTests,
    /// Tests that ran at the start of the loop and are skipped now.
    newly_skipped: NamedTests,
    #[serde(flatten)]
    before: CountsBefore,
}

/// The counts of earlier runs that a report is compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct CountsBefore {
    /// How many failed in the previous run, if the number has changed.
    #[serde(rename = "failed_before")]
    failed: Option<u32>,
    /// How many ran or were skipped at the start, if the number has changed.
    #[serde(rename = "total_before")]
    total: Option<u32>,
    /// How many were skipped at the start, if that was fewer.
    #[serde(rename = "skipped_before")]
    skipped: Option<u32>,
}

/// What is remembered of a check's tests: every name, because a test that disappears has to be
/// named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestMemory {
    /// The first run whose output mentioned tests.
    pub first: TestRun,
    pub last: TestRun,
    /// How many runs in a row had the failures of the last one.
    pub same_failures: u32,
    /// Whether a test ever ran.
    pub ever_ran: bool,
    /// Whether the first run came before the first iteration.
    pub as_found: bool,
}

impl TestMemory {
    /// The memory after one more run.
    pub fn after_run(before: Option<&Self>, run: &TestRun) -> Self {
        Self {
            first: before.map_or_else(|| run.clone(), |before| before.first.clone()),
            last: run.clone(),
            same_failures: same_failures(before, run),
            ever_ran: run.ran_any() || before.is_some_and(|before| before.ever_ran),
            as_found: before.is_some_and(|before| before.as_found),
        }
    }
}

fn same_failures(before: Option<&TestMemory>, run: &TestRun) -> u32 {
    let failing =
        |run: &TestRun| run.names_with(TestStatus::Failed).map(str::to_owned).collect::<Vec<_>>();
    let now = failing(run);
    match before {
        _ if now.is_empty() => 0,
        Some(before) if failing(&before.last) == now => before.same_failures.saturating_add(1),
        _ => 1,
    }
}

impl TestReport {
    /// "fails" of one test, "fail" of any other number.
    pub fn verb(&self) -> &'static str {
        if self.failed == 1 { "fails" } else { "fail" }
    }

    /// Reports a run beside those remembered.
    pub fn from_run(before: Option<&TestMemory>, run: &TestRun) -> Self {
        let mut report = Self {
            passed: run.passed,
            failed: run.failed,
            skipped: run.skipped,
            filtered: run.filtered,
            errors: run.errors,
            failing: NamedTests::from_names(run.names_with(TestStatus::Failed)),
            same_failures: same_failures(before, run),
            ..Self::default()
        };
        let Some(TestMemory { first, last, .. }) = before else { return report };
        report.before.failed = Some(last.failed).filter(|failed| *failed != run.failed);
        report.fixed = NamedTests::from_names(
            last.names_with(TestStatus::Failed).filter(|name| passed_in(run, name)),
        );
        report.broken = NamedTests::from_names(
            run.names_with(TestStatus::Failed).filter(|name| passed_in(last, name)),
        );
        if first.filtered == run.filtered && run.errors == 0 && first.errors == 0 {
            if run.names_all() && first.names_all() {
                let known = first.tests.keys().map(String::as_str);
                report.gone =
                    NamedTests::from_names(known.filter(|name| !run.tests.contains_key(*name)));
            }
            let is_counted = run.uncounted == 0 && first.uncounted == 0;
            let before = Some(first.total()).filter(|total| is_counted && *total != run.total());
            report.before.total = before;
        }
        let is_known =
            |name: &&str| first.tests.get(*name).is_some_and(|it| *it != TestStatus::Skipped);
        report.newly_skipped =
            NamedTests::from_names(run.names_with(TestStatus::Skipped).filter(is_known));
        report.before.skipped = Some(first.skipped).filter(|before| *before < run.skipped);
        report
    }

    /// How many tests failed in the previous run, if the number has changed.
    pub fn failed_before(&self) -> Option<u32> {
        self.before.failed
    }

    /// "3 tests fixed", "1 newly broken (a)", "212 tests passed": the news of a run, in few words.
    pub fn news_words(&self) -> Vec<String> {
        let mut news = Vec::new();
        if !self.fixed.is_empty() {
            news.push(format!("{} fixed", count(self.fixed.count, "test")));
        }
        if !self.broken.is_empty() {
            let broken = self.broken.join_names(NAMES_SHOWN);
            news.push(format!("{} newly broken ({broken})", count(self.broken.count, "test")));
        }
        news.extend(self.taken_away());
        news
    }

    /// "4 of 212 tests failing: a, b, c and 1 more"; `None` if none is.
    pub fn still_failing(&self) -> Option<String> {
        let failing = &self.failing;
        (!failing.is_empty()).then(|| {
            let total = count(self.total(), "test");
            format!("{} of {total} failing: {}", failing.count, failing.join_names(NAMES_KEPT))
        })
    }

    /// A hint to an agent whose last runs all failed in the same tests.
    pub fn stuck_hint(&self) -> Option<String> {
        (self.same_failures >= STUCK_RUNS).then(|| {
            format!(
                "The same tests failed in each of the last {} runs: what was tried did not help; look for \
                 another cause",
                self.same_failures
            )
        })
    }

    /// What happened to the tests themselves since the loop began; `None` if nothing did:
    /// "tests 212 → 198 (14 gone: a, b, c and 11 more), 3 newly skipped: x".
    pub fn taken_away(&self) -> Option<String> {
        let CountsBefore { total, skipped, .. } = self.before;
        let fewer = total.filter(|before| *before > self.total());
        if fewer.is_none() && self.gone.is_empty() && self.newly_skipped.is_empty() {
            return skipped.map(|before| format!("skipped {before} → {}", self.skipped));
        }
        let mut text = match total {
            Some(before) => format!("tests {before} → {}", self.total()),
            None => format!("tests {}", self.total()),
        };
        if !self.gone.is_empty() {
            let _ =
                write!(text, " ({} gone: {})", self.gone.count, self.gone.join_names(NAMES_SHOWN));
        }
        if !self.newly_skipped.is_empty() {
            let skipped = self.newly_skipped.join_names(NAMES_SHOWN);
            let _ = write!(text, ", {} newly skipped: {skipped}", self.newly_skipped.count);
        }
        if self.newly_skipped.is_empty()
            && let Some(before) = skipped
        {
            let _ = write!(text, ", skipped {before} → {}", self.skipped);
        }
        Some(text)
    }

    /// How many ran or were skipped.
    pub fn total(&self) -> u32 {
        self.passed.saturating_add(self.failed).saturating_add(self.skipped)
    }
}

/// Whether a test passed in a run: by its name, or because the run names only what fails.
fn passed_in(run: &TestRun, name: &str) -> bool {
    match run.tests.get(name) {
        Some(status) => *status == TestStatus::Passed,
        None => !run.names_all() && run.ran_any() && run.errors == 0 && run.filtered == 0,
    }
}

/// Why a check that passed has shown nothing: by its own words tests fail, or it ran no test,
/// although it ran tests before, or left all of them out, or it began and reported no end; `None`
/// if it did run one, or there never was a test.
pub fn ran_nothing(run: &TestRun, ever_ran: bool) -> Option<String> {
    if run.has_failed() {
        return Some("reports failing tests, and its exit status hides them".to_owned());
    }
    if let Some(what) = &run.unfinished {
        return Some(format!("did not finish its tests ({what})"));
    }
    if let Some(words) = &run.nothing {
        return Some(format!("ran nothing (\"{words}\")"));
    }
    let what = match (run.filtered, run.skipped) {
        _ if run.ran_any() => return None,
        (0, 0) if !ever_ran => return None,
        (0, 0) => "it ran tests before".to_owned(),
        (0, skipped) => format!("{skipped} skipped"),
        (filtered, _) => format!("{filtered} filtered out"),
    };
    Some(format!("ran 0 tests ({what})"))
}

/// Whether a check that failed fails in nothing that passed before the first iteration. A test that
/// is new, a suite that cannot be loaded and a failure without a name count as worse.
pub fn is_no_worse(before: &TestMemories, now: &CheckResult) -> bool {
    let found = before.get(&now.run).filter(|memory| memory.as_found).map(|memory| &memory.first);
    let (Some(found), Some(run)) = (found, &now.test_run) else { return false };
    let names_failures =
        |run: &TestRun| run.names_with(TestStatus::Failed).count() >= run.failed as usize;
    let is_there = |(name, status): (&String, &TestStatus)| {
        *status != TestStatus::Passed || run.tests.contains_key(name)
    };
    let are_named = found.names_all() && run.names_all();
    let are_all_there =
        if are_named { found.tests.iter().all(is_there) } else { run.passed >= found.passed };
    run.ran_any()
        && are_all_there
        && run.errors == 0
        && names_failures(found)
        && names_failures(run)
        && newly_failing(before, now).is_empty()
}

/// The tests that fail now and did not before the first iteration, by name.
pub fn newly_failing(before: &TestMemories, now: &CheckResult) -> Vec<String> {
    let found = before.get(&now.run).filter(|memory| memory.as_found).map(|memory| &memory.first);
    let (Some(found), Some(run)) = (found, &now.test_run) else { return Vec::new() };
    let is_new = |name: &&str| {
        found.tests.get(*name) != Some(&TestStatus::Failed) || found.mixed.contains(*name)
    };
    run.names_with(TestStatus::Failed).filter(is_new).map(str::to_owned).collect()
}

/// What is remembered of the tests of a loop's checks, by command.
pub type TestMemories = BTreeMap<String, TestMemory>;

/// The memories of checks that ran before the first iteration; `None` if none spoke of tests.
pub fn mark_as_found(checks: &[CheckResult]) -> Option<TestMemories> {
    let mut memories = update_memories(&TestMemories::new(), checks)?;
    for memory in memories.values_mut() {
        memory.as_found = true;
    }
    Some(memories)
}

/// The memories after these checks; `None` if none of them spoke of tests.
pub fn update_memories(before: &TestMemories, checks: &[CheckResult]) -> Option<TestMemories> {
    let mut after = before.clone();
    let mut is_new = false;
    for (check, run) in checks.iter().filter_map(|check| Some((check, check.test_run.as_ref()?))) {
        after.insert(check.run.clone(), TestMemory::after_run(before.get(&check.run), run));
        is_new = true;
    }
    is_new.then_some(after)
}

#[cfg(test)]
#[path = "test_report_tests.rs"]
mod report_tests;

#[cfg(test)]
mod tests {
    use super::TestStatus::{Failed, Passed};
    use super::*;

    fn run(tests: &[(&str, TestStatus)], errors: u32) -> TestRun {
        let mut run = TestRun { errors, ..TestRun::default() };
        for (name, status) in tests {
            add_to_total(if *status == Failed { &mut run.failed } else { &mut run.passed }, 1);
            run.add_name(name, *status);
        }
        run
    }

    #[test]
    fn a_folder_lacks_nothing_if_some_tests_pass_and_none_fails_that_passes_here() {
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
