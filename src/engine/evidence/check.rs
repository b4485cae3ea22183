//! The result of a check. A check that did not finish is never taken for a failure.

use serde::{Deserialize, Serialize};

/// What a check did at this boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Passed,
    Failed,
    /// Ended by its own timeout: a failed check.
    TimedOut,
    /// Died by a signal crew did not send, or did not run: never taken for a failure.
    Unknown,
}

impl Verdict {
    /// "failed (exit 1)", "timed out after 600 s": the result, for people and for the agent.
    pub fn what_happened(self, exit: Option<i32>, elapsed_ms: u64) -> String {
        match (self, exit) {
            (Self::Passed, _) => "passed".to_owned(),
            (Self::Failed, Some(code)) => format!("failed (exit {code})"),
            (Self::Failed, None) => "failed".to_owned(),
            (Self::TimedOut, _) => format!("timed out after {} s", elapsed_ms / 1000),
            (Self::Unknown, _) => "did not finish; its result is unknown".to_owned(),
        }
    }
}

/// One check, run once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The command as in the contract.
    pub run: String,
    pub verdict: Verdict,
    /// `None` if it did not exit by itself.
    pub exit: Option<i32>,
    pub elapsed_ms: u64,
    /// The last lines of its output, bounded.
    pub tail: String,
    /// Why it did not pass, with the remedy, if no agent can change the reason; else `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incurable: Option<String>,
}
