//! Errors in the arguments of a command, in a line or two: first the fault, then the fix. What was
//! typed is repeated shortened and without control characters.

use std::fmt;

use clap::error::{ContextKind, ContextValue};

use crate::parse::spelling::shown;

/// Why the arguments cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError(String);

impl UsageError {
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// One word that does not name a procedure: too likely a typing error to be a task.
    pub fn no_procedure(word: &str, meant: Option<&str>) -> Self {
        let meant = meant.map(|meant| format!(": did you mean {meant}?")).unwrap_or_default();
        Self(format!(
            "there is no procedure `{}`{meant}\n\
             hint: crew run --list names them; a task of one word is written in a sentence",
            shown(word)
        ))
    }
}

/// clap's message, without its summary of the usage.
impl From<clap::Error> for UsageError {
    fn from(mut error: clap::Error) -> Self {
        for kind in
            [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand]
        {
            if let Some(ContextValue::String(typed)) = error.get(kind) {
                let typed = ContextValue::String(shown(typed));
                error.insert(kind, typed);
            }
        }
        let page = error.render().to_string();
        let mut parts =
            page.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
        let fault = parts.next().unwrap_or_default();
        let fault = fault.strip_prefix("error: ").unwrap_or(&fault);
        let hint = parts.find_map(|part| Some(format!("\nhint: {}", part.strip_prefix("tip: ")?)));
        Self(format!("{fault}{}", hint.unwrap_or_default()))
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
