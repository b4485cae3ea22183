//! What a loop remembers of a check from one boundary to the next.

use serde::{Deserialize, Serialize};

use crate::engine::evidence::{CheckResult, Verdict};

/// What a loop remembers of a check: its last result, except unknown ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckMemory {
    pub last: Verdict,
    pub ever_failed: bool,
    /// The number of completed iterations at that time.
    #[serde(default)]
    pub after: Option<u32>,
    #[serde(default)]
    pub exit: Option<i32>,
    #[serde(default)]
    pub elapsed_ms: u64,
    /// The end of its output before the first iteration, for the first prompt; bounded as in the
    /// evidence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

impl CheckMemory {
    /// The memory of a result, which replaces `before`.
    pub fn of(result: &CheckResult, after: u32, before: Option<&Self>) -> Self {
        let failed = result.verdict != Verdict::Passed;
        Self {
            last: result.verdict,
            ever_failed: failed || before.is_some_and(|before| before.ever_failed),
            after: Some(after),
            exit: result.exit,
            elapsed_ms: result.elapsed_ms,
            tail: String::new(),
        }
    }

    /// "failed (exit 1)": the result, as far as it was kept.
    pub fn what_happened(&self) -> String {
        self.last.what_happened(self.exit, self.elapsed_ms)
    }
}
