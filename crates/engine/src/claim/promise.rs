//! The promise: the text an agent must say inside `<promise>` to claim that the job is done.
//!
//! A promise that could be met by accident is refused here, once: an empty one, one over several
//! lines, one with markup, and the reserved words. A `Promise` is therefore always valid.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::clean_text;

/// The tag that opens a claim.
pub const OPEN: &str = "<promise>";
/// The tag that closes a claim.
pub const CLOSE: &str = "</promise>";
/// The word, alone or before `: reason`, that reports a failed try.
pub const FAILURE: &str = "FAILURE";
/// The word, alone or before `: reason`, that reports that a person is needed.
pub const BLOCKED: &str = "BLOCKED";
/// The separators between such a word and its reason: the colon, and the wide one of Chinese and
/// Japanese text.
pub(super) const COLONS: [char; 2] = [':', '\u{ff1a}'];
/// The longest promise, in characters. Every prompt repeats it.
pub const MAX_CHARACTERS: usize = 500;

/// The text an agent must say inside `<promise>` to claim completion: not empty, one line, no `<`,
/// no reserved word. White space is normalised: none around the text, single blanks inside.
/// Invisible characters are left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Promise(String);

impl FromStr for Promise {
    type Err = PromiseError;

    fn from_str(text: &str) -> Result<Self, PromiseError> {
        Self::new(text)
    }
}

impl Promise {
    /// Reads the text of a promise as a person wrote it.
    ///
    /// # Errors
    /// If the text is empty, too long, has a line break or `<`, or is a reserved word.
    pub fn new(text: &str) -> Result<Self, PromiseError> {
        let text = text.trim();
        if text.contains(is_line_break) {
            return Err(PromiseError::LineBreak);
        }
        if text.contains('<') {
            return Err(PromiseError::AngleBracket);
        }
        // The prompt shows the promise without invisible characters, so the agent could not repeat
        // them.
        let text = normalize_text(&clean_text(text));
        if text.is_empty() {
            return Err(PromiseError::Empty);
        }
        if let Some(word) = find_reserved(&text) {
            return Err(PromiseError::Reserved(word));
        }
        if text.chars().nth(MAX_CHARACTERS).is_some() {
            return Err(PromiseError::TooLong);
        }
        Ok(Self(text))
    }

    /// The promise that a task names by writing it as a tag; `None` if it names none. Tags with a
    /// reserved word are skipped if the task also names a promise: they then only explain how to
    /// give up.
    ///
    /// # Errors
    /// If the task names two different promises, or an invalid one.
    pub fn in_task(task: &str) -> Result<Option<Self>, PromiseError> {
        let mut found: Option<Self> = None;
        let mut word = None;
        for text in tag_texts(task) {
            let promise = match Self::new(text) {
                Ok(promise) => promise,
                Err(PromiseError::Reserved(reserved)) => {
                    word = Some(reserved);
                    continue;
                }
                Err(error) => return Err(error),
            };
            match &found {
                Some(first) if *first != promise => {
                    return Err(PromiseError::Different(first.0.clone(), promise.0));
                }
                _ => found = Some(promise),
            }
        }
        match (found, word) {
            (None, Some(word)) => Err(PromiseError::ReservedInTask(word)),
            (found, _) => Ok(found),
        }
    }

    /// The normalised text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Promise {
    /// `COMPLETE`, the promise of a task that names none.
    fn default() -> Self {
        Self("COMPLETE".to_owned())
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Promise {
    type Error = PromiseError;

    fn try_from(text: String) -> Result<Self, PromiseError> {
        Self::new(&text)
    }
}

/// Why a string cannot be a promise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromiseError {
    /// Nothing but white space.
    #[error("the promise is empty: give it a value, such as COMPLETE")]
    Empty,
    /// More than one line.
    #[error("the promise has a line break: write it on one line")]
    LineBreak,
    /// A `<`, which could open another tag.
    #[error("the promise has a `<`: write its text alone, without tags")]
    AngleBracket,
    /// A reserved word, which makes another claim.
    #[error(
        "the promise cannot be {0}: that word is how the agent says it is not done; choose another, \
         such as COMPLETE"
    )]
    Reserved(&'static str),
    /// The task has no tag but those with a reserved word, of which this is the last.
    #[error(
        "the task's only promise is <promise>{0}</promise>, which is how the agent says it is not \
         done: name another too, such as <promise>COMPLETE</promise>, or leave the tag out"
    )]
    ReservedInTask(&'static str),
    /// More than `MAX_CHARACTERS` characters.
    #[error("the promise is longer than {MAX_CHARACTERS} characters")]
    TooLong,
    /// The task names two promises: the first, and the next one that differs.
    #[error(
        "the task names two promises, `{0}` and `{1}`: keep one of them, or name it with \
         --completion-promise"
    )]
    Different(String, String),
}

/// The text without surrounding white space and with single blanks inside: the form in which a
/// claim and a promise are compared.
pub(super) fn normalize_text(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The reserved word that is a claim's whole text, or its beginning before a colon.
pub(super) fn find_reserved(text: &str) -> Option<&'static str> {
    [FAILURE, BLOCKED].into_iter().find(|word| {
        let rest = text.trim_start().strip_prefix(word).map(str::trim_start);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(COLONS))
    })
}

/// The text between each closing tag and the last opening tag before it.
fn tag_texts(task: &str) -> impl Iterator<Item = &str> {
    let closed = task.split_inclusive(CLOSE).filter_map(|piece| piece.strip_suffix(CLOSE));
    closed.filter_map(|piece| piece.rfind(OPEN).map(|start| &piece[start + OPEN.len()..]))
}

fn is_line_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_one_line_of_plain_text_or_an_error() {
        for (text, expected) in [
            ("DONE", Ok("DONE")),
            ("BUILD  COMPLETE", Ok("BUILD COMPLETE")),
            (" \t a\u{a0}\u{2003}b \n", Ok("a b")),
            ("say \"it's\" $(done) .*", Ok("say \"it's\" $(done) .*")),
            ("完了 ✔", Ok("完了 ✔")),
            ("\u{200f}DO\u{7}NE\u{202e}", Ok("DONE")),
            ("failure", Ok("failure")),
            ("FAILURES: none", Ok("FAILURES: none")),
            ("NO FAILURE", Ok("NO FAILURE")),
            ("", Err(PromiseError::Empty)),
            (" \u{3000}\n", Err(PromiseError::Empty)),
            ("\u{200b}", Err(PromiseError::Empty)),
            ("ALL\nDONE", Err(PromiseError::LineBreak)),
            ("ALL\r\nDONE", Err(PromiseError::LineBreak)),
            ("ALL\u{2028}DONE", Err(PromiseError::LineBreak)),
            ("a<b", Err(PromiseError::AngleBracket)),
            ("<promise>DONE</promise>", Err(PromiseError::AngleBracket)),
            ("FAILURE", Err(PromiseError::Reserved(FAILURE))),
            ("FAILURE: x", Err(PromiseError::Reserved(FAILURE))),
            (" BLOCKED : no key", Err(PromiseError::Reserved(BLOCKED))),
            ("BLOCKED：理由", Err(PromiseError::Reserved(BLOCKED))),
            (&"x".repeat(501), Err(PromiseError::TooLong)),
        ] {
            let promise = Promise::new(text);
            assert_eq!(promise.as_ref().map(Promise::as_str), expected.as_ref().copied(), "{text}");
        }
    }

    #[test]
    fn a_task_names_its_promise_by_a_tag() {
        let named = |task: &str| Promise::in_task(task).map(|promise| promise.map(|p| p.0));
        let promise = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(named("Fix the login."), Ok(None));
        assert_eq!(
            named("Say <promise>API COMPLETE</promise> when done."),
            promise("API COMPLETE")
        );
        assert_eq!(
            named("<promise>\n A  B\n</promise>, I mean <promise>A B</promise>"),
            promise("A B")
        );
        assert_eq!(named("the <promise> tag: <promise>X</promise>"), promise("X"));
        assert_eq!(named("an open <promise> and no more"), Ok(None));
        assert_eq!(named("a stray </promise>"), Ok(None));
        let way_out = "<promise>X</promise>, or <promise>BLOCKED: why</promise> if you cannot";
        assert_eq!(named(way_out), promise("X"));
        let reserved = named("If you cannot, say <promise>BLOCKED: why</promise>.").unwrap_err();
        assert_eq!(
            reserved.to_string(),
            "the task's only promise is <promise>BLOCKED</promise>, which is how the agent says it is not done: \
             name another too, such as <promise>COMPLETE</promise>, or leave the tag out"
        );
        assert_eq!(named("<promise> </promise>"), Err(PromiseError::Empty));
        assert_eq!(named("<promise>a\nb</promise>"), Err(PromiseError::LineBreak));
        assert_eq!(named("<promise>a <b></promise>"), Err(PromiseError::AngleBracket));
        let two = PromiseError::Different("X".to_owned(), "x".to_owned());
        assert_eq!(named("<promise>X</promise> or <promise>x</promise>"), Err(two));
    }

    #[test]
    fn a_stored_promise_is_validated_when_it_is_read() {
        let promise = Promise::new("say \"DONE\"").unwrap();
        let json = serde_json::to_string(&promise).unwrap();
        assert_eq!(json, r#""say \"DONE\"""#);
        assert_eq!(serde_json::from_str::<Promise>(&json).unwrap(), promise);
        let error = serde_json::from_str::<Promise>(r#"" ""#).unwrap_err();
        assert!(error.to_string().starts_with("the promise is empty"), "{error}");
    }
}
