//! An error for people: what failed, and what to do about it. As the context of another error, it
//! has that error as its source.

use thiserror::Error;

/// The word before a hint.
pub const HINT: &str = "hint:";

/// What a failure means for whoever called crew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The request could not be carried out.
    Error,
    /// The request was malformed; nothing was done.
    Usage,
    /// The user ended crew before it had begun or changed anything.
    Interrupted,
}

/// An error with a hint. Both are lowercase fragments without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct Failure {
    pub kind: FailureKind,
    pub text: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure of a request that could not be carried out.
    pub fn new(text: impl Into<String>, hint: impl Into<String>) -> Self {
        let failure = Self::without_hint(FailureKind::Error, text);
        Self { hint: Some(hint.into()), ..failure }
    }

    /// A failure of malformed input, and what to type instead.
    pub fn usage(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind: FailureKind::Usage, ..Self::new(text, hint) }
    }

    /// A failure without a remedy.
    pub fn without_hint(kind: FailureKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), hint: None }
    }

    /// The text, with the hint on the next line.
    pub fn with_hint(&self) -> String {
        self.join_with(&format!("\n{HINT} "))
    }

    /// The error and its hint on one line.
    pub fn in_a_line(&self) -> String {
        let lines: Vec<&str> = self.text.lines().map(str::trim).collect();
        Self { text: lines.join(" "), ..self.clone() }.join_with(&format!("; {HINT} "))
    }

    /// The text and the hint, joined by these characters.
    pub fn join_with(&self, between: &str) -> String {
        match &self.hint {
            Some(hint) => [&self.text, between, hint].concat(),
            None => self.text.clone(),
        }
    }
}

/// Returns a [`Failure`] as an error: a message and a hint, each a format string or a value.
#[macro_export]
macro_rules! refuse {
    ($text:literal, $($hint:tt)+) => { $crate::refuse!(format!($text), $($hint)+) };
    ($text:expr, $hint:literal $(,)?) => { $crate::refuse!($text, format!($hint)) };
    ($text:expr, $hint:expr $(,)?) => {
        return Err($crate::failure::Failure::new($text, $hint).into())
    };
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn a_hint_is_on_the_line_after_the_text_or_on_the_same_one() {
        let failure = Failure::new("it cannot start:\n  a.md: no task", "correct that");
        assert_eq!(failure.to_string(), failure.text);
        assert_snapshot!(failure.with_hint(), @"
        it cannot start:
          a.md: no task
        hint: correct that
        ");
        assert_snapshot!(failure.in_a_line(), @"it cannot start: a.md: no task; hint: correct that");
        let bare = Failure::without_hint(FailureKind::Interrupted, "nothing was started");
        assert_eq!([bare.with_hint(), bare.in_a_line()], ["nothing was started"; 2]);
    }
}
