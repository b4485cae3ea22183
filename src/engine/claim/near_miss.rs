//! Text in a message that looks like a claim and is not one, with its explanation. Each explanation
//! says what was wrong and what to do; repeating one never makes a claim.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::engine::text::word;

/// Why something that looks like a claim does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NearMiss {
    /// A tag is somewhere before the last line.
    NotLastLine,
    /// The last line holds more than the tag.
    NotAlone,
    /// The tag is on the last line but has another text.
    WrongText {
        /// Its text, shortened.
        said: String,
    },
    /// Only the letter case of the tag or its text is wrong.
    WrongCase,
    /// The tag is in a fenced code block.
    InFence,
    /// The tag is in an HTML element that shows text as it is, or in a comment.
    InHtml,
    /// The tag is in a block quote.
    Quoted,
    /// The tag continues a quoted paragraph that no blank line ends.
    LazilyQuoted,
    /// The message ends in the words of the task.
    Echo,
    /// Four or more columns of white space before the tag make it code.
    Indented,
    /// The last line is the promise or a reserved word without the tag.
    Untagged,
    /// The tag opens on one line and closes on another.
    SplitOverLines,
    /// The last line has one half of the tag, or a closing tag that does not close.
    Malformed,
    /// The loop accepts no success claim.
    NoPromise,
}

/// What was wrong and what to do, each by the word of its kind.
const EXPLANATIONS: &str = include_str!("near_misses.txt");

impl fmt::Display for NearMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, said) = match self {
            Self::WrongText { said } if said.is_empty() => ("empty_text", ""),
            Self::WrongText { said } => (word(self), said.as_str()),
            _ => (word(self), ""),
        };
        let mut explanations = EXPLANATIONS.lines().filter_map(|line| line.split_once(": "));
        let found = explanations.find(|(of, _)| *of == kind);
        f.write_str(&found.map_or("", |(_, text)| text).replace("{said}", said))
    }
}
