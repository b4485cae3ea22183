//! What the attempts at a task have used: its limits are the task's, however many loops it takes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CheckMemory, Loop};
use crate::evidence::Verdict;
use crate::test_changes::Baseline;
use crate::text::one_line;
use crate::usage::{Earlier, Usage};

/// The most characters of what was last seen.
const LAST_CHARS: usize = 120;

/// What the loops of a task have used so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    pub completed: u32,
    pub consecutive_failures: u32,
    pub iterations_without_progress: u32,
    pub awake_ms: u64,
    pub usage: Usage,
    pub times: Earlier,
    /// What each check has shown, so that a proof counts all attempts.
    pub checks: BTreeMap<String, CheckMemory>,
    /// The tests and check configuration as its loop found them, on the machine that has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// What was last seen of it, in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last: String,
}

impl Carried {
    /// What a loop has used, with what it was given at its start.
    pub fn from_record(record: &Loop) -> Self {
        let state = &record.state;
        let mut times = record.earlier;
        record.elapsed_ms.iter().for_each(|ms| times.add_time(*ms));
        Self {
            completed: state.completed,
            consecutive_failures: state.consecutive_failures,
            iterations_without_progress: state.iterations_without_progress,
            awake_ms: state.awake_ms,
            usage: record.use_so_far(),
            times,
            checks: state.checks.clone(),
            baseline: state.baseline.clone(),
            last: describe_last(record),
        }
    }

    /// Gives it to a loop that begins: the limits are the task's.
    pub fn give_to(&self, record: &mut Loop) {
        let state = &mut record.state;
        state.completed = self.completed;
        state.consecutive_failures = self.consecutive_failures;
        state.iterations_without_progress = self.iterations_without_progress;
        state.awake_ms = self.awake_ms;
        state.usage = self.usage.clone();
        state.checks = self.checks.clone();
        state.baseline.clone_from(&self.baseline);
        record.earlier = self.times;
    }
}

/// What the last iteration showed, in one line: a check that failed, or whether anything changed.
fn describe_last(record: &Loop) -> String {
    let Some(evidence) = &record.state.evidence else { return String::new() };
    let failed = evidence.checks.iter().find(|check| check.verdict != Verdict::Passed);
    failed.map_or_else(
        || evidence.progress_words(["files changed", "nothing changed", ""]),
        |check| one_line(&format!("{} {}", check.run, check.what_happened()), LAST_CHARS),
    )
}
