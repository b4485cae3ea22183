//! What a loop remembers of a check from one boundary to the next.

use serde::{Deserialize, Serialize};

use crate::engine::evidence::check::is_failure;
use crate::engine::evidence::{CheckResult, Verdict};

/// What a loop remembers of a check: its last result, except unknown ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckMemory {
    pub last: Verdict,
    /// The fewest tests that passed in a run that failed, 0 if it spoke of none; `None` if it never
    /// failed in or before the loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_with: Option<u32>,
    /// Whether a run found no program, which is no failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub program_missing: bool,
    /// The number of completed iterations at that time.
    pub after: Option<u32>,
    pub exit: Option<i32>,
    pub elapsed_ms: u64,
    /// The end of its output before the first iteration, for the first prompt; bounded as in the
    /// evidence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

impl CheckMemory {
    /// The memory of a result, which replaces `before`.
    pub fn of(result: &CheckResult, after: u32, before: Option<&Self>) -> Self {
        let passed = || result.test_run.as_ref().map_or(0, |run| run.passed);
        let failed_with = is_failure(result).then(passed);
        let known = before.and_then(|before| before.failed_with);
        Self {
            last: result.verdict,
            failed_with: failed_with.into_iter().chain(known).min(),
            program_missing: result.program_missing
                || before.is_some_and(|before| before.program_missing),
            after: Some(after),
            exit: result.exit,
            elapsed_ms: result.elapsed_ms,
            tail: String::new(),
        }
    }

    /// Whether it failed in or before the loop.
    pub fn ever_failed(&self) -> bool {
        self.failed_with.is_some()
    }

    /// Forgets that it failed: what failed was another check.
    pub fn forget_failures(&mut self) {
        self.failed_with = None;
    }

    /// "failed (exit 1)": the result, as far as it was kept.
    pub fn what_happened(&self) -> String {
        self.last.what_happened(self.exit, self.elapsed_ms)
    }
}
