//! What the agent asked when nobody was there to answer, and the dialog at which its client waits:
//! kept in the record for people. Both are bounded. No decision about a loop reads them.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::engine::text::{one_line, word};

/// The most questions that are kept; the newest are.
pub const ASKED_MAX: usize = 20;
/// The most of a question that is kept, in characters.
const QUESTION_CHARS: usize = 300;
/// The most options of a question that are kept, and the most of each, in characters.
const OPTIONS_MAX: usize = 8;
const OPTION_CHARS: usize = 80;
/// Whoever typed this recently in a session is taken to be there.
const PRESENT: Duration = Duration::from_secs(600);

/// Who answers a question that the agent asks in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuestionMode {
    /// The user, if there; otherwise the agent itself.
    #[default]
    Auto,
    /// The user, however long that takes.
    Ask,
    /// The agent itself.
    Defer,
}

impl QuestionMode {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Ask, Self::Defer];

    /// The word used in options, files and JSON.
    pub fn label(self) -> &'static str {
        word(&self)
    }

    /// Whether it is the default.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }

    /// Whether the agent must decide by itself. `typed` is how long ago the user typed something;
    /// `None` if that was never seen.
    pub fn defers(self, typed: Option<Duration>) -> bool {
        match self {
            Self::Auto => typed.is_none_or(|ago| ago > PRESENT),
            Self::Ask => false,
            Self::Defer => true,
        }
    }
}

/// A question that the agent was told to decide by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The iteration in which it was asked, 1-based.
    pub iteration: u32,
    /// One line in the agent's words.
    #[serde(rename = "question")]
    pub text: String,
    /// The answers it offered, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl Question {
    /// A question, cut to what is kept of it.
    pub fn new(iteration: u32, text: &str, options: &[String]) -> Self {
        let options = options.iter().take(OPTIONS_MAX).map(|it| one_line(it, OPTION_CHARS));
        let text = one_line(text, QUESTION_CHARS);
        Self { iteration, text, options: options.collect() }
    }

    /// An answer to type, for example: the first option, if it can stand in double quotes.
    pub fn answer(&self) -> &str {
        let first = self.options.first().map(|it| it.trim_end_matches(" (Recommended)"));
        let is_plain = |it: &&str| !it.is_empty() && !it.contains(['"', '$', '`', '\\', '!']);
        first.filter(is_plain).unwrap_or("your answer")
    }
}

/// Adds questions to those kept; the oldest make room.
pub fn keep(asked: &mut Vec<Question>, new: impl IntoIterator<Item = Question>) {
    asked.extend(new);
    asked.drain(..asked.len().saturating_sub(ASKED_MAX));
}

/// A dialog of the client that waits for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialog {
    /// When the client reported it.
    pub since: DateTime<Utc>,
    /// The tool that waits for permission, by the client's name; `None` if it is not known.
    pub tool: Option<String>,
    /// The id of its call, whose result shows that the dialog was answered.
    pub call: Option<String>,
    /// Whether it is a question of the agent instead.
    pub is_question: bool,
    /// The transcript of the session, or of its subagent, that waits.
    pub transcript: PathBuf,
    /// Its size at that time, in bytes. Without the id of a call, a longer one shows that the
    /// dialog was answered.
    pub transcript_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_somebody_who_typed_in_the_last_ten_minutes_is_asked() {
        let minutes = |number: u64| Some(Duration::from_secs(60 * number));
        let table = [
            (minutes(2), [false, false, true]),
            (minutes(10), [false, false, true]),
            (Some(Duration::from_secs(601)), [true, false, true]),
            (None, [true, false, true]),
        ];
        for (typed, expected) in table {
            assert_eq!(QuestionMode::ALL.map(|mode| mode.defers(typed)), expected, "{typed:?}");
        }
    }

    #[test]
    fn questions_are_bounded_in_number_and_length_and_the_newest_stay() {
        let long = "which one\nof the two? ".repeat(100);
        let mut asked = Vec::new();
        for iteration in 0..30 {
            keep(&mut asked, [Question::new(iteration, &long, &vec![long.clone(); 30])]);
        }
        let iterations: Vec<u32> = asked.iter().map(|it| it.iteration).collect();
        assert_eq!(iterations, (10..30).collect::<Vec<u32>>());
        let last = &asked[19];
        assert!(last.text.chars().count() <= QUESTION_CHARS && !last.text.contains('\n'));
        assert_eq!(last.options.len(), OPTIONS_MAX);
        assert!(last.options.iter().all(|it| it.chars().count() <= OPTION_CHARS));
    }

    #[test]
    fn the_answer_proposed_can_be_typed_as_it_stands() {
        let table = [
            (vec!["SMTP (Recommended)", "SES"], "SMTP"),
            (vec!["the \"old\" one"], "your answer"),
            (vec!["$HOME"], "your answer"),
            (vec![], "your answer"),
        ];
        for (options, expected) in table {
            let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
            assert_eq!(Question::new(1, "which?", &options).answer(), expected);
        }
    }
}
