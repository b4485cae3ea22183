//! What crew saw at the last boundary, small enough to be kept in the state and shown to the agent.

pub mod check;
pub mod size;

use serde::{Deserialize, Serialize};

use self::check::Verdict;
use super::record::contract::Role;
use super::usage::Usage;

/// The most of a check's or an agent's complaint that is kept, in characters.
pub const TAIL_CHARS: usize = 2000;

/// The summary of one boundary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The iteration that ended, 1-based.
    pub iteration: u32,
    pub claim: ClaimResult,
    pub checks: Vec<CheckEvidence>,
    /// Why the iteration failed; `None` when it did not.
    pub failure: Option<String>,
    /// The last of what the agent's process wrote to standard error, where its end was the failure; bounded
    /// to [`TAIL_CHARS`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub errors: String,
    /// Why the iteration was not run, or not to its end; `None` when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// What ended the agent where that was no failure; `None` when it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    pub progress: Progress,
    /// Checks that pass now and failed when they last ran.
    pub mended: u32,
    /// What the iteration used; `None` where nothing tells.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// What the user wants the agent to be told with the prompt that follows.
    #[serde(default)]
    pub words: Vec<String>,
    /// The answer was cut by the token limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl Evidence {
    /// The checks that did not pass, in the order they ran.
    pub fn failing(&self) -> impl Iterator<Item = &CheckEvidence> {
        self.checks.iter().filter(|check| check.verdict != Verdict::Passed)
    }
}

/// What became of the agent's claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "because")]
pub enum ClaimResult {
    #[default]
    None,
    Accepted,
    /// A success claim, with what stood against it.
    Refused(String),
    Failure(String),
    Blocked(String),
    /// Something like a claim, with what was wrong about it.
    NearMiss(String),
}

impl ClaimResult {
    /// What became of it in the words of one page, for a claim that was believed, refused, FAILURE, BLOCKED and
    /// near a claim, with what stands behind it as `shown` makes it; `None` where the page has no word for it.
    pub fn worded(&self, words: [&str; 5], shown: impl Fn(&str) -> String) -> Option<String> {
        let (word, because) = match self {
            Self::None => return None,
            Self::Accepted => (words[0], ""),
            Self::Refused(because) => (words[1], because.as_str()),
            Self::Failure(reason) => (words[2], reason.as_str()),
            Self::Blocked(reason) => (words[3], reason.as_str()),
            Self::NearMiss(miss) => (words[4], miss.as_str()),
        };
        let because =
            if because.is_empty() { String::new() } else { format!(": {}", shown(because)) };
        (!word.is_empty()).then(|| format!("{word}{because}"))
    }
}

/// One check's part of the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckEvidence {
    pub run: String,
    /// Every role the command has in the contract.
    pub roles: Vec<Role>,
    pub verdict: Verdict,
    pub exit: Option<i32>,
    pub elapsed_ms: u64,
    /// Bounded to [`TAIL_CHARS`]; empty for a check that passed.
    pub tail: String,
}

impl CheckEvidence {
    /// "failed (exit 1)", "timed out after 10m": what happened, for people and for the agent.
    pub fn what_happened(&self) -> String {
        self.verdict.what_happened(self.exit, self.elapsed_ms)
    }
}

/// Whether an iteration moved anything crew can see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    Made,
    None,
    /// Nothing could be looked at; unknown never stalls.
    #[default]
    Unknown,
}

impl Progress {
    /// One of a page's words: for something, for nothing, and for nobody knows.
    pub fn worded(self, [made, none, unknown]: [&'static str; 3]) -> &'static str {
        match self {
            Self::Made => made,
            Self::None => none,
            Self::Unknown => unknown,
        }
    }
}
