//! The arguments of `/crew:loop`, `/crew:resume`, `crew run`, `crew resume` and `crew set`: what
//! was typed becomes words that clap cannot misread, and clap parses the options. The task is
//! passed on byte for byte. Outside quotes, whatever looks like an option is one or is an error. It
//! never becomes text of the task, because a limit lost that way means an endless loop. Nothing
//! here interprets a value.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ColorChoice, Command, FromArgMatches};

pub use self::doctor::DoctorArgs;
pub use self::fleet::{FleetOrderArgs, FleetRunArgs, FleetStatusArgs, FleetVerb};
use self::known::{LOOP, RESUME, RESUME_HERE, RUN, SET};
pub use self::options::*;
pub use self::unknown::unknown_command;
pub use self::usage::UsageError;
use self::values::MARK;
pub use self::values::{iteration, outcomes, whole};
use crate::engine::text::words_of;
use crate::parse::spelling::shown;

mod doctor;
mod fleet;
mod known;
mod options;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod shell_tests;
pub mod task;
#[cfg(test)]
mod tests;
mod tokens;
mod unknown;
mod usage;
mod values;

/// The agent's own arguments follow it.
const END_OF_OPTIONS: &str = "--";

/// Reads the raw text after `/crew:loop`, which no shell has processed; `None` is a request for
/// help. White space around the whole text is not part of the task.
///
/// # Errors
/// When a part of the text is neither an option with its value nor the one task.
pub fn parse(raw: &str) -> Result<Option<LoopArgs>, UsageError> {
    let (mut rest, mut words, mut has_task) = (raw.trim(), Vec::new(), false);
    while !rest.is_empty() {
        let token = known::first_word(rest);
        if token == END_OF_OPTIONS {
            return Err(UsageError::new(
                "words after `--` are the agent's own options, in crew run; this session has its own",
                "if it belongs to the task, put the whole task in double quotes",
            ));
        }
        if tokens::is_option(rest) {
            let option = known::option(&LOOP, token)?;
            let (value, left) = tokens::value(option, rest)?;
            words.push(option.with(value.as_deref())?);
            rest = left;
        } else {
            if has_task {
                return Err(tokens::apart(rest));
            }
            let (task, left) = tokens::task(rest)?;
            words.extend(marked(&task));
            (rest, has_task) = (left, true);
        }
        rest = rest.trim_start();
    }
    match LOOP.clone().try_get_matches_from(words).and_then(|it| LoopArgs::from_arg_matches(&it)) {
        Err(error) if error.kind() == ErrorKind::DisplayHelp => Ok(None),
        read => Ok(Some(read.map_err(|error| in_a_session(&error))?)),
    }
}

fn in_a_session(error: &clap::Error) -> UsageError {
    UsageError::of(error, "/crew:help lists the options")
}

/// The task as it is passed to clap; `None` if the quotes contain only blanks.
fn marked(task: &str) -> Option<String> {
    (!task.trim().is_empty()).then(|| format!("{MARK}{task}"))
}

/// Reads the raw text after `/crew:resume`.
///
/// # Errors
/// When a part of the text is neither an option with its value nor the one name.
pub fn resume(raw: &str) -> Result<ResumeHereArgs, UsageError> {
    let (mut rest, mut words, mut is_bare) = (raw.trim(), Vec::new(), false);
    while !rest.is_empty() {
        let token = known::first_word(rest);
        if tokens::is_option(rest) {
            let option = known::option(&RESUME_HERE, token)?;
            let (value, left) = tokens::value(option, rest)?;
            let typed = rest[..rest.len() - left.len()].trim_end();
            is_bare = option.long == "tell" && !typed.ends_with(['"', '\'']);
            words.push(option.with(value.as_deref())?);
            rest = left.trim_start();
        } else if is_bare || token == END_OF_OPTIONS {
            return Err(UsageError::new(
                format!("unexpected word `{}`", shown(token)),
                "put a whole message in double quotes: --tell \"use the old parser\"",
            ));
        } else {
            words.push(token.to_owned());
            rest = rest[token.len()..].trim_start();
        }
    }
    let read = RESUME_HERE.clone().try_get_matches_from(words);
    read.and_then(|matches| ResumeHereArgs::from_arg_matches(&matches))
        .map_err(|error| in_a_session(&error))
}

/// The arguments of `crew resume LOOP`, with no option.
///
/// # Errors
/// Where clap does not take the name.
pub fn resume_of(name: &str) -> Result<ResumeArgs, UsageError> {
    let read = RESUME.clone().try_get_matches_from([name]);
    read.and_then(|matches| ResumeArgs::from_arg_matches(&matches))
        .map_err(|error| UsageError::of(&error, "crew resume --help"))
}

/// Takes one `--color` with its value out of the words. It stands anywhere before `--`, and also
/// counts for an error in the other words. A wrong value stays, for clap to refuse.
pub fn take_color(given: &mut Vec<OsString>) -> Option<ColorChoice> {
    let is_it = |it: &OsString| it == END_OF_OPTIONS || it.to_string_lossy().starts_with("--color");
    let at = given.iter().position(is_it)?;
    let last = at + usize::from(given[at] == "--color");
    let value = given.get(last)?.to_str()?;
    let choice = value.strip_prefix("--color=").unwrap_or(value).parse().ok()?;
    given.drain(at..=last);
    Some(choice)
}

/// The words crew was called with, as they are passed to clap.
///
/// # Errors
/// When a word looks like an option and is not an option of its verb.
pub fn of_shell(given: Vec<OsString>) -> Result<Vec<OsString>, UsageError> {
    let words: Option<Vec<&str>> = given.iter().map(|word| word.to_str()).collect();
    let Some([program, verb, words @ ..]) = words.as_deref() else {
        // clap refuses what is not UTF-8.
        return Ok(given);
    };
    let command: &'static Command = match *verb {
        "run" => &RUN,
        "resume" => &RESUME,
        "set" => &SET,
        _ => return Ok(given),
    };
    let words = read(command, words)?;
    let verb = [*program, *verb].map(OsString::from).into_iter();
    Ok(verb.chain(words.into_iter().map(OsString::from)).collect())
}

/// Prepares words that a shell has split for clap: a task is one word, or plain words that are
/// joined with blanks.
fn read(command: &'static Command, words: &[&str]) -> Result<Vec<String>, UsageError> {
    let end = words.iter().position(|word| *word == END_OF_OPTIONS);
    let (typed, agents) = words.split_at(end.unwrap_or(words.len()));
    let (mut options, mut texts) = (Vec::new(), Vec::new());
    let is_run = command.get_name() == RUN.get_name();
    // Whether an option followed the task: what comes after it is a value that lost its quotes.
    let mut is_told = false;
    let mut rest = typed.iter();
    while let Some(word) = rest.next() {
        if !tokens::is_option(word) || is_text(word) {
            if is_run && is_told {
                return Err(tokens::apart(word));
            }
            texts.push((*word).to_owned());
            continue;
        }
        is_told = !texts.is_empty();
        let option = known::option(command, word)?;
        let value = match option.value_at {
            Some(start) => Some(&word[start..]),
            None if option.takes_value => rest.next().copied(),
            None => None,
        };
        if let Some(next) =
            value.filter(|next| option.value_at.is_none() && tokens::is_option(next))
        {
            return Err(option.lacks_value(next));
        }
        options.push(option.with(value)?);
    }
    if is_run {
        texts.iter().try_for_each(|text| tokens::is_whole(text, '"'))?;
        texts = marked(&texts.join(" ")).into_iter().collect();
    }
    texts.extend(options);
    if let [end, agents @ ..] = agents {
        let agents: String = agents.iter().flat_map(|word| [MARK, word]).collect();
        texts.extend([(*end).to_owned(), agents]);
    }
    Ok(texts)
}

/// Whether a word that starts like an option is nevertheless text: it contains a blank before any
/// `=`, so a person has quoted it, and it does not start with an existing option.
fn is_text(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    name.contains(char::is_whitespace) && known::anywhere(known::first_word(word)).is_none()
}

/// The options of `/crew:loop` that people use.
const SHOWN: &str = "prompt_file replace questions verify gate until require max_iterations \
    max_duration_s max_cost_micros";

/// These options as a page of help lists them.
pub fn options_page() -> String {
    let is_shown = |arg: &Arg| words_of(SHOWN).any(|it| it == arg.get_id());
    let command = LOOP.clone().mut_args(|arg| if is_shown(&arg) { arg } else { arg.hide(true) });
    command.help_template("{all-args}").term_width(100).render_help().to_string()
}
