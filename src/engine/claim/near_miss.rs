//! Text in a message that looks like a claim and is not one, with its explanation. Each explanation
//! says what was wrong and what to do; repeating one never makes a claim.

use std::fmt;

use serde::{Deserialize, Serialize};

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

impl fmt::Display for NearMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotLastLine => {
                "the promise tag was not on the last line: when it is true, write it alone as the \
                 very last line, with nothing after it"
            }
            Self::NotAlone => {
                "the promise tag shared its line with other text: when it is true, write it alone \
                 on the last line, without quotes, backticks, bold or a full stop"
            }
            Self::WrongText { said } if said.is_empty() => {
                "the promise tag was empty: when it is true, write the exact promise in it"
            }
            Self::WrongText { said } => {
                return write!(
                    f,
                    "the promise tag said \"{said}\", which is not the promise of this loop: when \
                     it is true, write the exact promise in it"
                );
            }
            Self::WrongCase => {
                "the promise tag was written with other capital letters: when it is true, copy the \
                 tag and its text exactly"
            }
            Self::InFence => {
                "the promise tag was inside a code fence: when it is true, close every fence, then \
                 write the tag alone on the last line"
            }
            Self::InHtml => {
                "the promise tag was inside an HTML element or comment: when it is true, close that, \
                 then write the tag alone on the last line"
            }
            Self::Quoted => {
                "the promise tag was in a block quote: when it is true, write it on the last line \
                 without a leading `>`"
            }
            Self::LazilyQuoted => {
                "the promise tag followed a quoted paragraph and so was part of the quote: when it is \
                 true, leave a blank line between the quote and the tag"
            }
            Self::Echo => {
                "your message ends with the words of the task: when it is true, say what was done in \
                 your own words, then write the promise tag alone on the last line"
            }
            Self::Indented => {
                "the promise tag was indented like code: when it is true, write it at the start of \
                 the last line"
            }
            Self::Untagged => {
                "the last line had the words of a claim without the promise tag around them: when \
                 they are true, write them inside the tag, alone on the last line"
            }
            Self::SplitOverLines => {
                "the promise tag was spread over several lines: when it is true, write the opening \
                 tag, the text and the closing tag on one line, the last"
            }
            Self::Malformed => {
                "the promise tag was not written in full: when it is true, write the opening tag, \
                 the text and the closing tag, alone on the last line"
            }
            Self::NoPromise => {
                "this loop takes no promise: its checks and limits decide when it ends, so \
                 continue with the task"
            }
        })
    }
}
