//! What crew saw at the last boundary, bounded so that it can be kept in the state and shown to the
//! agent.

pub mod changes;
pub mod check;
pub mod said;
pub mod test_memory;
pub mod test_run;
pub mod words;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use self::changes::Changes;
pub use self::check::{CheckResult, Verdict};
use self::test_run::TestReport;
use super::usage::{Usage, tokens_text};

/// How much of a check's or an agent's error output is kept, in characters.
pub const TAIL_CHARS: usize = 2000;

/// What is reported of an answer that the token limit cut.
pub const CUT: &str = "the answer was cut by the token limit";

/// The summary of one boundary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The iteration that ended, 1-based.
    pub iteration: u32,
    pub status: IterationStatus,
    /// When it began.
    pub started_at: Option<DateTime<Utc>>,
    /// The agent's exit status; `None` if it did not exit by itself, and in a session.
    pub exit: Option<i32>,
    /// The agent that worked, in a loop that has several; `None` in others.
    pub agent: Option<String>,
    pub claim: ClaimResult,
    pub checks: Vec<CheckResult>,
    /// Why the iteration failed; `None` if it did not.
    pub failure: Option<String>,
    /// The gate that failed it; `None` if it did not fail, or for another reason.
    pub failed_gate: Option<String>,
    /// The end of the agent's standard error, if the end of its process was the failure; else
    /// empty.
    pub errors: String,
    /// Why the iteration did not run, or not to its end; `None` if it did.
    pub skipped: Option<String>,
    /// Why crew ended the agent where that was not a failure; `None` if it ended by itself.
    pub ended: Option<String>,
    pub progress: Progress,
    /// The reason for that judgement, in a few words.
    pub progress_why: String,
    /// What the agent changed in the working tree; `None` where no snapshots are taken.
    pub changes: Option<Changes>,
    /// How many checks pass now and failed in their previous run.
    #[serde(rename = "mended")]
    pub newly_passing: u32,
    /// What the iteration used; `None` where nothing reports it.
    pub usage: Option<Usage>,
    /// How full the agent's context was at most; `None` where the agent does not report it.
    pub context_percent: Option<u8>,
    /// The tokens of its fullest message, answer included; `None` where the agent does not report
    /// each message.
    pub context_tokens: Option<u64>,
    /// The agent's last words, in one line; nothing is judged by them.
    pub said: Option<String>,
    /// The user's messages to the agent that the next prompt has.
    pub words: Vec<String>,
    /// Whether the token limit cut the answer.
    pub cut: bool,
}

impl Evidence {
    /// Why the iteration did not run to its end, where that was not a failure.
    pub fn unended(&self) -> Option<String> {
        self.broken_off().or_else(|| self.ended.clone())
    }

    /// Why it did not run, or was ended from outside: "skipped: …".
    pub fn broken_off(&self) -> Option<String> {
        let why = self.skipped.as_ref()?;
        let is_skipped = self.status == IterationStatus::Skipped;
        Some(if is_skipped { format!("skipped: {why}") } else { why.clone() })
    }

    /// The checks that did not pass, in the order they ran.
    pub fn failing(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|check| check.verdict != Verdict::Passed)
    }

    /// Why the iteration failed, where no failing check shows it.
    pub fn other_failure(&self) -> Option<&str> {
        if self.failed_gate.is_some() { None } else { self.failure.as_deref() }
    }

    /// What happened to the tests: "3 tests fixed".
    pub fn test_news(&self) -> impl Iterator<Item = String> {
        self.checks.iter().filter_map(|check| check.tests.as_ref()).flat_map(TestReport::news_words)
    }

    /// Why it was progress or none, or else one of a page's words for that.
    pub fn progress_words(&self, words: [&'static str; 3]) -> String {
        match self.progress {
            Progress::Made | Progress::None if !self.progress_why.is_empty() => {
                self.progress_why.clone()
            }
            progress => progress.worded(words).to_owned(),
        }
    }

    /// "86% full", or "93k tokens" where the agent names no window.
    pub fn context(&self) -> Option<String> {
        let percent = self.context_percent.map(|percent| format!("{percent}% full"));
        percent.or_else(|| Some(format!("{} tokens", tokens_text(self.context_tokens?))))
    }

    /// Whether an iteration that ran to its end used what its agent did not report.
    pub fn hides_its_use(&self) -> bool {
        self.skipped.is_none() && self.usage.is_none()
    }

    /// What it cost, where that is known: "$1.84".
    pub fn cost(&self) -> Option<String> {
        self.usage.as_ref()?.cost_text(false)
    }
}

/// How an iteration ended, in one word for lists and filters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationStatus {
    #[default]
    Completed,
    Failed,
    /// It ran into its timeout, or its agent was silent for too long.
    TimedOut,
    /// It did not run.
    Skipped,
    /// A person, or the end of the loop's time, ended it.
    Interrupted,
}

/// The result of the agent's claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "because")]
pub enum ClaimResult {
    #[default]
    None,
    Accepted,
    /// A success claim, and the reasons against it.
    Refused(String),
    Failure(String),
    Blocked(String),
    /// Something like a claim, and what was wrong with it.
    NearMiss(String),
}

/// Whether an iteration changed anything crew can see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    Made,
    None,
    /// Nothing could be looked at; unknown never stalls a loop.
    #[default]
    Unknown,
}

impl Progress {
    /// One of a page's words: for progress, for none, and for unknown.
    pub fn worded(self, [made, none, unknown]: [&'static str; 3]) -> &'static str {
        match self {
            Self::Made => made,
            Self::None => none,
            Self::Unknown => unknown,
        }
    }
}
