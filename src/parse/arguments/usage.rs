//! Errors in what was typed, in one shape: the fault, then the way out as a hint. What was typed is
//! repeated shortened and without control characters.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::known;
use crate::parse::spelling::shown;

/// Why the words cannot be obeyed, and what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}\nhint: {way_out}")]
pub struct UsageError {
    fault: String,
    way_out: String,
}

impl UsageError {
    /// Both are lowercase fragments without a full stop.
    pub fn new(fault: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self { fault: fault.into(), way_out: way_out.into() }
    }

    /// A text of one line in which ": " parts the two.
    pub fn of_line(line: &str) -> Self {
        let (fault, way_out) = line.split_once(": ").unwrap_or((line, "crew --help"));
        Self::new(fault, way_out)
    }

    /// The error in one line, for a list of several.
    pub fn line(&self) -> String {
        format!("{}: {}", self.fault, self.way_out)
    }

    /// The same error, with the name of what has it in front.
    pub fn about(self, name: &str) -> Self {
        Self { fault: format!("{name}: {}", self.fault), ..self }
    }

    /// One word that does not name a procedure: too likely a typing error to be a task.
    pub fn no_procedure(word: &str, meant: Option<&str>) -> Self {
        let meant = meant.map(|meant| format!(": did you mean {meant}?")).unwrap_or_default();
        Self::new(
            format!("there is no procedure `{}`{meant}", shown(word)),
            "crew run --list names them; a task needs at least two words",
        )
    }

    /// The error of clap. `help` names the page to read where nothing better can be said.
    pub fn of(error: &clap::Error, help: &str) -> Self {
        let typed = |kind| error.get(kind).map(words).unwrap_or_default();
        let [argument, value] =
            [ContextKind::InvalidArg, ContextKind::InvalidValue].map(|kind| shown(&typed(kind)));
        let is_of_run = known::find(&known::RUN, &argument).is_some();
        let fault = match error.kind() {
            ErrorKind::InvalidValue | ErrorKind::ValueValidation if value.is_empty() => {
                format!("`{argument}` needs a value")
            }
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
                format!("invalid value `{value}` for `{argument}`")
            }
            ErrorKind::TooManyValues if argument.starts_with('-') => {
                format!("`{argument}` takes no value, but `{value}` follows it")
            }
            ErrorKind::TooManyValues => format!("unexpected word `{value}`"),
            ErrorKind::UnknownArgument if is_of_run => {
                format!("`{argument}` is an option of crew run")
            }
            ErrorKind::UnknownArgument if argument.starts_with('-') => {
                format!("unknown option `{argument}`")
            }
            ErrorKind::UnknownArgument => format!("unexpected word `{argument}`"),
            ErrorKind::MissingRequiredArgument => match argument.rsplit_once(", ") {
                Some((others, last)) => format!("`{others}` and `{last}` are missing"),
                None => format!("`{argument}` is missing"),
            },
            ErrorKind::ArgumentConflict => match typed(ContextKind::PriorArg) {
                prior if prior == argument => format!("`{argument}` is given twice"),
                prior => format!("`{argument}` cannot be used with `{prior}`"),
            },
            _ => first_part(error),
        };
        let expected = error.source().map(ToString::to_string);
        let listed = Some(typed(ContextKind::ValidValue)).filter(|values| !values.is_empty());
        let listed = listed.map(|values| format!("it can be {values}"));
        let meant =
            Some(typed(ContextKind::SuggestedArg)).filter(|meant| !meant.is_empty() && !is_of_run);
        let meant = meant.map(|meant| format!("did you mean {meant}?"));
        let one = error.kind() == ErrorKind::ArgumentConflict && fault.contains(" with ");
        let one = one.then(|| "give one of the two".to_owned());
        Self::new(fault, expected.or(listed).or(meant).or(one).unwrap_or_else(|| help.to_owned()))
    }
}

fn words(value: &ContextValue) -> String {
    match value {
        ContextValue::String(word) => word.clone(),
        ContextValue::Strings(words) => words.join(", "),
        _ => String::new(),
    }
}

/// clap's own words, without its summary of the usage.
fn first_part(error: &clap::Error) -> String {
    let page = error.render().to_string();
    let part = page.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = part.split_whitespace().skip_while(|word| *word == "error:").collect();
    words.join(" ")
}
