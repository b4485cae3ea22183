//! The exam: the checks of a loop and the parts of files they rest on. A changed part can only take
//! belief away, never add it, and fails no iteration.

pub mod finding;
pub mod test_path;
pub mod trial;

use serde::{Deserialize, Serialize};

use crate::engine::text::word;

/// The most parts that a message names.
pub const NAMED_MAX: usize = 5;

/// What happens when a part that a check rests on has changed where the loop would end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExamMode {
    /// The exam as it was decides.
    #[default]
    Hold,
    /// The change is only reported.
    Tell,
}

impl ExamMode {
    /// Both, the default first.
    pub const ALL: [Self; 2] = [Self::Hold, Self::Tell];

    /// The word used in options, files and JSON.
    pub fn label(self) -> &'static str {
        word(&self)
    }

    /// Whether it is the default.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub fn is_hold(&self) -> bool {
        *self == Self::Hold
    }
}

/// A part of a file that a check rests on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExamPart {
    /// From the root of the checkout.
    pub file: String,
    /// What of it.
    pub extent: HeldExtent,
}

/// What of a file a check rests on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeldExtent {
    Whole,
    /// The rule, recipe or script of that name in it.
    Entry(String),
    /// Its place, which has to stay free.
    Place,
}

impl ExamPart {
    /// A whole file.
    pub fn whole(file: impl Into<String>) -> Self {
        Self { file: file.into(), extent: HeldExtent::Whole }
    }

    /// One entry of a file.
    pub fn entry(file: impl Into<String>, entry: impl Into<String>) -> Self {
        Self { file: file.into(), extent: HeldExtent::Entry(entry.into()) }
    }

    /// The place of a file, which has to stay free.
    pub fn place(file: impl Into<String>) -> Self {
        Self { file: file.into(), extent: HeldExtent::Place }
    }

    /// Whether it is the place of a file.
    pub fn is_place(&self) -> bool {
        self.extent == HeldExtent::Place
    }

    /// "check.sh", "`test` in Makefile": for messages.
    pub fn name(&self) -> String {
        match &self.extent {
            HeldExtent::Place => format!("a file named {}", self.file),
            HeldExtent::Entry(entry) => format!("`{entry}` in {}", self.file),
            HeldExtent::Whole => self.file.clone(),
        }
    }
}
