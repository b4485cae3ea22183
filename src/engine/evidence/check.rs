//! The result of a check. A check that did not finish is never taken for a failure.

use serde::{Deserialize, Serialize};

use super::test_report::TestReport;
use super::test_run::TestRun;
use crate::engine::record::contract::Role;

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
    /// The command as in the contract.
    pub run: String,
    /// Every role of the command in the contract; only in the evidence.
    pub roles: Vec<Role>,
    pub verdict: Verdict,
    /// `None` if it did not exit by itself.
    pub exit: Option<i32>,
    pub elapsed_ms: u64,
    /// The last lines of its output, bounded; in the evidence to [`TAIL_CHARS`], and empty for a
    /// check that passed.
    ///
    /// [`TAIL_CHARS`]: super::TAIL_CHARS
    pub tail: String,
    /// Why it did not pass, with the remedy, if no agent can change the reason; else `None`. Not in
    /// the evidence.
    #[serde(skip)]
    pub incurable: Option<String>,
    /// Whether it failed because a program was not found, or could not be run: that is no failure
    /// of what it checks. Not in the evidence.
    #[serde(skip)]
    pub program_missing: bool,
    /// What its output said about tests; `None` if it spoke of none. Not in the evidence.
    #[serde(skip)]
    pub test_run: Option<TestRun>,
    /// The same beside earlier runs; only in the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestReport>,
}

impl CheckResult {
    /// Whether it passed and, by its own words, ran no test: it has neither passed nor failed then.
    pub fn ran_no_test(&self) -> bool {
        let ran_none = |run: &TestRun| run.nothing.is_some() || !run.ran() && !run.has_failed();
        self.verdict == Verdict::Passed && self.test_run.as_ref().is_some_and(ran_none)
    }

    /// "failed (exit 1)", "timed out after 600 s": the result, for people and for the agent.
    pub fn what_happened(&self) -> String {
        self.verdict.what_happened(self.exit, self.elapsed_ms)
    }
}
