//! The names that become paths and branches: of loops and of tasks of a fleet. Each is validated
//! where it is read, so that no other name reaches a path.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::clip_text;

/// The longest name of a task, in bytes: branches and folders are made of it.
pub const MAX_TASK_ID_BYTES: usize = 60;
/// The maximum number of characters in a refused name that a message repeats.
const SHOWN_CHARACTERS: usize = 40;
/// A name that is parsed from any text, and written and shown as that text.
macro_rules! id {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }
    };
}

id! {
    /// A loop's name: eight characters of `a-z0-9`, the first a letter. Safe as a file name.
    #[derive(PartialOrd, Ord)]
    LoopId
}

impl LoopId {
    /// Turns a random number into an id.
    pub fn from_random(mut bits: u64) -> Self {
        const LETTERS: &[u8] = b"abcdefghjkmnpqrstvwxyz";
        const ALL: &[u8] = b"abcdefghjkmnpqrstvwxyz23456789";
        let mut text = String::with_capacity(8);
        for place in 0..8 {
            let alphabet = if place == 0 { LETTERS } else { ALL };
            let size = alphabet.len() as u64;
            text.push(char::from(alphabet[usize::try_from(bits % size).unwrap_or(0)]));
            bits /= size;
        }
        Self(text)
    }
}

impl FromStr for LoopId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let well_formed = text.len() == 8
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if well_formed {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("{text:?} is not a loop id"))
        }
    }
}

id! {
    /// The name of a task: its file name without `.md`. Safe as a part of a branch, a ref and a
    /// path. Fleet names follow the same rules. Names sort naturally: t2 before t10.
    TaskId
}

impl TaskId {
    /// The branch of an attempt. Its number fences one that was given up.
    pub fn branch_name(&self, fleet: &str, number: u32) -> String {
        format!("fleet/{fleet}/{self}/{number}")
    }
}

impl Ord for TaskId {
    fn cmp(&self, other: &Self) -> Ordering {
        split_pieces(&self.0).cmp(split_pieces(&other.0)).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for TaskId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Splits a name into numbers and the pieces between them, which sort after any number. Of two
/// numbers the one with more digits is larger.
fn split_pieces(name: &str) -> impl Iterator<Item = (usize, &[u8])> {
    let runs = name.as_bytes().chunk_by(|one, next| one.is_ascii_digit() == next.is_ascii_digit());
    runs.map(|run| {
        if !run[0].is_ascii_digit() {
            return (usize::MAX, run);
        }
        let zeros = run.iter().take_while(|digit| **digit == b'0').count();
        (run.len() - zeros, &run[zeros..])
    })
}

impl FromStr for TaskId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut others = text.chars().filter(|c| !c.is_ascii_alphanumeric());
        let fault = if text.is_empty() {
            "it is empty"
        } else if text.len() > MAX_TASK_ID_BYTES {
            "it has more than 60 bytes"
        } else if others.any(|c| !"-_.".contains(c)) {
            "only letters from a to z, digits, `-`, `_` and `.` are allowed in it"
        } else if text.starts_with(['.', '-']) {
            "it begins with `.` or `-`"
        } else if text.contains("..") {
            "it holds `..`"
        } else if text.ends_with('.') || text.to_ascii_lowercase().ends_with(".lock") {
            // git would treat it as the lock of another ref.
            "it ends in `.` or `.lock`"
        } else {
            return Ok(Self(text.to_owned()));
        };
        let shown = clip_text(text, SHOWN_CHARACTERS);
        Err(format!("{shown:?} cannot be a part of a branch: {fault}"))
    }
}
