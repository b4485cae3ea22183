//! How a loop ends, in one of eight words, and the proof of a completed one.

use serde::{Deserialize, Serialize};

use crate::engine::text::word;

/// Why a loop is over. Every outcome except `Completed` can be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Completed,
    /// A limit was reached.
    Exhausted,
    /// Too many failures in a row.
    Aborted,
    /// No progress for too long.
    Stalled,
    /// A person is needed.
    Blocked,
    Cancelled,
    /// The owner is gone, or a wait would have been too long.
    Interrupted,
    Error,
}

impl Outcome {
    /// All of them, the best first.
    pub const ALL: [Self; 8] = [
        Self::Completed,
        Self::Exhausted,
        Self::Aborted,
        Self::Stalled,
        Self::Blocked,
        Self::Cancelled,
        Self::Interrupted,
        Self::Error,
    ];

    /// The word used in messages, files and JSON.
    pub fn label(self) -> &'static str {
        word(&self)
    }

    /// Whether a task of a fleet that ended so needs a person: nothing else tries it again.
    pub fn leaves_a_task_undone(self) -> bool {
        !matches!(self, Self::Completed | Self::Cancelled)
    }
}

/// The proof of a `completed` loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proof {
    /// A test also fails when the work is taken away.
    Proven,
    /// A check that had failed in or before this loop now passes, and so do all others.
    Checked,
    /// The checks pass, and no earlier failure shows that the work made them pass.
    Passing,
    /// Nothing was checked; it rests on the agent's word.
    Claimed,
}

/// What the reason holds where a proof is less than the loop requires.
pub const FALLS_SHORT: &str = " and this loop requires ";

impl Proof {
    /// Those that a loop may require.
    pub const REQUIRED: [Self; 2] = [Self::Checked, Self::Proven];

    /// Why this proof is too weak for `required`; `None` if it suffices. `why_not` says why no more
    /// could be shown.
    pub fn falls_short(self, required: Option<Self>, why_not: Option<&str>) -> Option<String> {
        let required = required?;
        let is_enough = match required {
            Self::Proven => self == Self::Proven,
            _ => matches!(self, Self::Proven | Self::Checked),
        };
        if is_enough {
            return None;
        }
        let remedy = if required == Self::Proven && why_not.is_some() {
            "with a test that fails without the work"
        } else {
            "with a check that fails now"
        };
        let (grade, required) = (self.label(), required.label());
        let why = why_not.unwrap_or(self.meaning());
        Some(format!(
            "the proof would be `{grade}`{FALLS_SHORT}`{required}`: {why}; start it without --require, \
             or {remedy}"
        ))
    }

    /// The word used in messages, files and JSON.
    pub fn label(self) -> &'static str {
        word(&self)
    }

    /// The meaning of the word, for the final report to a person.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Proven => "a test fails without the work and passes with it",
            Self::Checked => "a check that had failed now passes",
            Self::Passing => "the checks pass; nothing shows that the work made them pass",
            Self::Claimed => "nothing was checked: this is the agent's word",
        }
    }
}

/// Who gives an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Actor {
    User,
    /// An agent may only narrow.
    Agent,
}

impl Actor {
    /// The word used in files and messages.
    pub fn label(self) -> &'static str {
        word(&self)
    }
}

impl Ending {
    /// An end without a proof.
    pub fn new(outcome: Outcome, why: impl Into<String>) -> Self {
        Self { outcome, proof: None, why: why.into(), proof_notes: Vec::new() }
    }

    /// A completed loop.
    pub fn completed(proof: Proof, why: impl Into<String>) -> Self {
        Self { proof: Some(proof), ..Self::new(Outcome::Completed, why) }
    }

    /// The whole reason, with the notes.
    pub fn reason(&self) -> String {
        std::iter::once(&self.why).chain(&self.proof_notes).cloned().collect::<Vec<_>>().join("; ")
    }

    /// Ended by an order.
    pub fn cancelled(by: Actor, reason: Option<&str>) -> Self {
        let reason = reason.map_or_else(String::new, |reason| format!(": {}", reason.trim()));
        Self::new(Outcome::Cancelled, format!("cancelled by the {}{reason}", by.label()))
    }
}

/// An outcome with its reason, ready to be recorded and shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    pub outcome: Outcome,
    /// Only with `Completed`.
    pub proof: Option<Proof>,
    /// One sentence fragment: what ended the loop and, if there is one, the remedy.
    pub why: String,
    /// What the runs that look for a better proof came to, if they did not find one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proof_notes: Vec<String>,
}
