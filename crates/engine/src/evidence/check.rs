//! The result of a check, and what ties a check that passes to the work: a run of it that failed,
//! and in which it passed less. A check that did not finish is never taken for a failure.

use serde::{Deserialize, Serialize};

use super::test_run::{TestReport, TestRun, TestStatus};
use crate::text::variant_name;

/// When a check runs, and what its failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Must pass before a claim is believed.
    Verify,
    /// As `Verify`, and runs after every iteration; if it fails, the iteration is a failure.
    Gate,
    /// Ends the loop when it passes; no claim is needed.
    Until,
}

impl Role {
    /// All of them, in the order contracts list checks.
    pub const ALL: [Self; 3] = [Self::Verify, Self::Gate, Self::Until];

    /// The word used in messages, options and files.
    pub fn label(self) -> &'static str {
        variant_name(&self)
    }
}

/// What a check did at this boundary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Passed,
    Failed,
    /// Ended by its own timeout: a failed check.
    TimedOut,
    /// Died by a signal crew did not send, or did not run: never taken for a failure.
    #[default]
    Unknown,
}

impl Verdict {
    /// "failed (exit 1)", "timed out after 600 s": the result, for people and for the agent.
    pub fn what_happened(self, exit: Option<i32>, elapsed_ms: u64) -> String {
        match (self, exit) {
            (Self::Passed, Some(code)) if code != 0 => format!("passed (exit {code})"),
            (Self::Passed, _) => "passed".to_owned(),
            (Self::Failed, Some(code)) => format!("failed (exit {code})"),
            (Self::Failed, None) => "failed".to_owned(),
            (Self::TimedOut, _) => format!("timed out after {} s", elapsed_ms / 1000),
            (Self::Unknown, _) => "did not finish; its result is unknown".to_owned(),
        }
    }
}

/// One check, run once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The command.
    pub run: String,
    /// Every role of the command in the loop.
    // Only in the evidence.
    pub roles: Vec<Role>,
    pub verdict: Verdict,
    /// Its exit status; `None` if it did not exit by itself.
    pub exit: Option<i32>,
    pub elapsed_ms: u64,
    /// The last lines of its output; empty for a check that passed.
    // Bounded; outside of the evidence also that of a check that passed.
    pub tail: String,
    /// Why it did not pass, with the remedy, if no agent can change the reason; else `None`. In a
    /// sentence the command comes before it. Not in the evidence.
    #[serde(skip)]
    pub incurable: Option<String>,
    /// Whether it failed because a program was not found, or could not be run: that is no failure
    /// of what it checks. Not in the evidence.
    #[serde(skip)]
    pub program_missing: bool,
    /// What its output said about tests; `None` if it spoke of none. Not in the evidence.
    #[serde(skip)]
    pub test_run: Option<TestRun>,
    /// What its output says about tests, beside earlier runs; `None` if it does not speak of any.
    // Only in the evidence.
    pub tests: Option<TestReport>,
}

impl CheckResult {
    /// Why no agent can make it pass: "`make test` was not run: the time is over".
    pub fn incurable_words(&self) -> Option<String> {
        Some(format!("`{}` {}", self.run, self.incurable.as_ref()?))
    }

    /// Whether it passed and, by its own words, ran no test: it has neither passed nor failed then.
    pub fn ran_no_test(&self) -> bool {
        let ran_none = |run: &TestRun| run.nothing.is_some() || !run.ran_any() && !run.has_failed();
        self.verdict == Verdict::Passed && self.test_run.as_ref().is_some_and(ran_none)
    }

    /// "failed (exit 1)", "timed out after 600 s": the result, for people and for the agent.
    pub fn what_happened(&self) -> String {
        self.verdict.what_happened(self.exit, self.elapsed_ms)
    }
}

/// Why checks that pass do not show that the work made them pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoProofCause {
    /// The final tree is the one that the loop found.
    NothingChanged,
    /// The only run that did not pass found no program.
    ProgramMissing,
    /// No test that failed passes now, and no more pass than in a run that failed.
    AsManyPass,
}

impl NoProofCause {
    /// The reason, for the final report to a person.
    pub fn reason_words(self) -> &'static str {
        match self {
            Self::NothingChanged => "nothing was changed",
            Self::ProgramMissing => "the program was missing",
            Self::AsManyPass => "as many tests pass as before",
        }
    }

    /// Whether the agent can do something about it.
    pub fn is_curable(self) -> bool {
        self != Self::ProgramMissing
    }
}

/// Whether a run that did not pass counts as a failure of what it checks.
pub fn is_failure(result: &CheckResult) -> bool {
    matches!(result.verdict, Verdict::Failed | Verdict::TimedOut) && !result.program_missing
}

/// Whether a check that passes has passed less before: `least` is the fewest tests that passed in a
/// run that failed, `red` are tests that failed, `now` is what the check says of its tests.
pub fn passes_more<'a>(
    least: u32,
    mut red: impl Iterator<Item = &'a str>,
    now: Option<&TestRun>,
) -> Result<(), NoProofCause> {
    // Suites without a number of tests cannot be compared.
    let Some(run) = now.filter(|run| run.ran_any() && run.uncounted == 0) else { return Ok(()) };
    let is_fixed = |name: &str| run.tests.get(name) == Some(&TestStatus::Passed);
    if run.passed > least || red.any(is_fixed) { Ok(()) } else { Err(NoProofCause::AsManyPass) }
}

/// What a check that passes `now` and did not pass in the tree as `found` shows, in one folder.
pub fn of_both(found: &CheckResult, now: &CheckResult) -> Result<(), NoProofCause> {
    if !is_failure(found) {
        return Err(NoProofCause::ProgramMissing);
    }
    let run = found.test_run.as_ref();
    let red = run.into_iter().flat_map(|run| run.names_with(TestStatus::Failed));
    passes_more(run.map_or(0, |run| run.passed), red, now.test_run.as_ref())
}

#[cfg(test)]
mod cause_tests {
    use super::*;
    use crate::fixture::result;

    /// "2 a b!": so many pass, and these are named; those with a mark fail.
    fn run(words: &str) -> Option<TestRun> {
        let mut words = words.split_whitespace();
        let mut run = TestRun { passed: words.next()?.parse().unwrap(), ..TestRun::default() };
        for word in words {
            let status = if word.ends_with('!') { TestStatus::Failed } else { TestStatus::Passed };
            run.failed += u32::from(status == TestStatus::Failed);
            run.add_name(word.trim_end_matches('!'), status);
        }
        Some(run)
    }

    #[test]
    fn a_failure_is_a_cause_where_a_test_is_fixed_or_more_pass() {
        let table = [
            // As found, and now.
            ("1 a b!", "2 a b", true),
            // The test is gone, is skipped, or is another one.
            ("1 a b!", "1 a", false),
            ("2 a c b!", "2 b a", true),
            // A runner that names only what fails.
            ("1 b!", "2", true),
            ("1 b!", "1", false),
            ("0 a! b!", "0", true),
            // It could not be built, or speaks of no test.
            ("", "3", true),
            ("", "", true),
            ("1 b!", "", true),
        ];
        for (found, now, expected) in table {
            let found = CheckResult { test_run: run(found), ..result("t", Verdict::Failed) };
            let now = CheckResult { test_run: run(now), ..result("t", Verdict::Passed) };
            assert_eq!(of_both(&found, &now).is_ok(), expected, "{found:?}, {now:?}");
        }
    }

    #[test]
    fn a_program_that_was_missing_is_no_failure() {
        let found = CheckResult { program_missing: true, ..result("t", Verdict::Failed) };
        let now = result("t", Verdict::Passed);
        assert_eq!(of_both(&found, &now), Err(NoProofCause::ProgramMissing));
    }
}
