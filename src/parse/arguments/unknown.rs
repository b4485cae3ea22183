//! The error for a command that crew does not have. It names the command that was probably meant;
//! it never runs it, because some commands act.

use std::borrow::Cow;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};

use super::usage::UsageError;
use crate::engine::doctor::shell_word;
use crate::parse::spelling::shown;

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
) -> Option<UsageError> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let words: Vec<_> = words.iter().skip(1).map(|word| word.to_string_lossy()).collect();
    if word.contains(char::is_whitespace) {
        let fault = format!("`{}` is a task, not a command", shown(word));
        return Some(UsageError::new(fault, format!("crew run {}", shell_line(&words))));
    }
    let path = if words[0] == "fleet" && word != "fleet" { "fleet " } else { "" };
    let hint = match (probably_meant(error, path, word), words.as_slice()) {
        (_, [start, task @ ..]) if ["start", "loop"].contains(&&**start) => {
            let task = if task.is_empty() { "\"TASK\"".to_owned() } else { shell_line(task) };
            format!("crew run {task}; in Claude Code: /crew:loop \"TASK\"")
        }
        (_, [name]) if procedures.contains(&&**name) => {
            format!("crew run {name} runs that procedure")
        }
        (Some(meant), _) => format!("did you mean {meant}? crew {path}--help names all"),
        (None, [_, next, ..]) if path.is_empty() && !next.starts_with('-') => {
            let task = shell_line(&words);
            format!("crew run {task}, if it is a task; crew --help names the commands")
        }
        (None, _) => format!("crew {path}--help names the commands"),
    };
    Some(UsageError::new(format!("there is no command `{path}{}`", shown(word)), hint))
}

/// The command that was probably meant: one that does the same, or one spelt alike.
fn probably_meant(error: &clap::Error, path: &str, word: &str) -> Option<String> {
    let typed = format!("{path}{word}");
    let mut others = OTHER_WORDS.lines().filter_map(|row| row.split_once(" = "));
    if let Some((_, meant)) = others.find(|(words, _)| words.split(", ").any(|it| it == typed)) {
        return Some(meant.to_owned());
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
