//! What a loop does at a moment: the step of its iteration, and the command that runs.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::text::{clip_line, variant_name};

/// A step of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStep {
    Delay,
    /// The commands before an iteration.
    PreHook,
    Rebase,
    Agent,
    /// The commands after an iteration.
    PostHook,
    Check,
    /// The checks run again in the scratch folder.
    TestChanges,
    Commit,
    Push,
}

impl LoopStep {
    /// The step with the command that it runs.
    pub fn step_words(self, run: &str) -> String {
        let step = variant_name(&self).replace('_', "-");
        if run.is_empty() { step } else { format!("{step} `{}`", clip_line(run, 60)) }
    }
}

/// What a loop does at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    pub step: LoopStep,
    /// The command that runs; not written where the step says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    pub since: DateTime<Utc>,
}

impl Doing {
    /// "agent", "check `cargo test`", "pre-hook `make deps`".
    pub fn doing_words(&self) -> String {
        self.step.step_words(&self.run)
    }
}
