//! Errors in what was typed, in one format: the fault, then a hint. The input is repeated shortened
//! and without control characters. For an unknown command they name the one that was probably
//! intended; it is never run, because some commands have effects.

use std::borrow::Cow;
use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::options::{RUN, find_option};
use crate::parse::spelling::shorten_text;
use engine::doctor::shell_word;
use engine::failure::Failure;

/// The error of clap. `help` names the page to read where nothing better can be said.
pub fn usage_failure(error: &clap::Error, help: &str) -> Failure {
    let [argument, value] = [ContextKind::InvalidArg, ContextKind::InvalidValue]
        .map(|kind| shorten_text(&render_context(error, kind)));
    let prior = render_context(error, ContextKind::PriorArg);
    let (is_of_run, is_twice) = (find_option(&RUN, &argument).is_some(), prior == argument);
    let fault = match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation if value.is_empty() => {
            format!("`{argument}` needs a value")
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            format!("invalid value `{value}` for `{argument}`")
        }
        ErrorKind::TooManyValues if argument.starts_with('-') => {
            format!("`{argument}` does not accept a value, but `{value}` follows it")
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
        ErrorKind::ArgumentConflict if is_twice => format!("`{argument}` is given twice"),
        ErrorKind::ArgumentConflict => format!("`{argument}` cannot be used with `{prior}`"),
        _ => first_part(error),
    };
    let [listed, near] = [ContextKind::ValidValue, ContextKind::SuggestedArg]
        .map(|kind| render_context(error, kind));
    let is_conflict = error.kind() == ErrorKind::ArgumentConflict;
    let hint = match error.source() {
        Some(expected) => expected.to_string(),
        None if !listed.is_empty() => format!("it can be {listed}"),
        None if !near.is_empty() && !is_of_run => format!("did you mean {near}?"),
        None if is_conflict && !is_twice => "give one of the two".to_owned(),
        None => help.to_owned(),
    };
    Failure::usage(fault, hint)
}

/// What clap reports of this kind; empty if it reports nothing.
fn render_context(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(word)) => word.clone(),
        Some(ContextValue::Strings(words)) => words.join(", "),
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

/// Words of other tools, with the commands of crew that do the same.
const OTHER_WORDS: &str = include_str!("other_words.txt");

/// Words for what crew does not do, although clap finds commands that are spelt alike.
const NOT_OFFERED: [&str; 2] = ["update", "upgrade"];

/// The error for a command that does not exist, if that is what clap reports. A lone word may be
/// one of crew's `procedures`; several words are rather a task than a misspelt command.
pub fn unknown_command(
    error: &clap::Error,
    words: &[OsString],
    procedures: &[&str],
) -> Option<Failure> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let words: Vec<_> = words.iter().skip(1).map(|word| word.to_string_lossy()).collect();
    if word.contains(char::is_whitespace) {
        let fault = format!("`{}` is a task, not a command", shorten_text(word));
        return Some(Failure::usage(fault, format!("crew run {}", shell_line(&words))));
    }
    let path = if words[0] == "fleet" && word != "fleet" { "fleet " } else { "" };
    let hint = match (find_similar(error, path, word), words.as_slice()) {
        (_, [start, task @ ..]) if ["start", "loop"].contains(&&**start) => {
            let task = if task.is_empty() { "\"TASK\"".to_owned() } else { shell_line(task) };
            format!("crew run {task}; in Claude Code: /crew:loop \"TASK\"")
        }
        (_, [name]) if procedures.contains(&&**name) => {
            format!("crew run {name} runs that procedure")
        }
        (Some(similar), _) => format!("did you mean {similar}? crew {path}--help names all"),
        (None, [_, next, ..]) if path.is_empty() && !next.starts_with('-') => {
            let task = shell_line(&words);
            format!("crew run {task}, if it is a task; crew --help names the commands")
        }
        (None, _) => format!("crew {path}--help names the commands"),
    };
    Some(Failure::usage(format!("there is no command `{path}{}`", shorten_text(word)), hint))
}

/// The command that was probably intended: one that does the same, or one spelt alike.
fn find_similar(error: &clap::Error, path: &str, word: &str) -> Option<String> {
    let typed = format!("{path}{word}");
    let mut others = OTHER_WORDS.lines().filter_map(|row| row.split_once(" = "));
    if let Some((_, own)) = others.find(|(words, _)| words.split(", ").any(|word| word == typed)) {
        return Some(own.to_owned());
    }
    match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) if !NOT_OFFERED.contains(&word) => {
            names.last().map(|name| format!("crew {path}{name}"))
        }
        _ => None,
    }
}

/// Words as they are typed in a shell.
fn shell_line(words: &[Cow<'_, str>]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}
