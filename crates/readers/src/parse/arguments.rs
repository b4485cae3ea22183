//! The arguments of a command line, which clap reads. The raw text after `/crew:loop` and
//! `/crew:resume` is first split into words. The task is passed on byte for byte. Outside quotes,
//! whatever looks like an option is one or is an error. It never becomes text of the task, because
//! a limit lost that way means an endless loop. Errors have one format: the fault, then a hint.
//! They repeat the input shortened and without control characters, and suggest the command that was
//! probably intended; crew never runs that command, because some commands have effects.

use std::borrow::Cow;
use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, ColorChoice, Command, FromArgMatches};

pub use self::commands::*;
use self::commands::{LOOP, RESUME, RESUME_HERE, RUN, find_option, first_word};
use crate::parse::amounts::MARK;
pub use crate::parse::amounts::parse_text;
use crate::parse::spelling::shorten_text;
use engine::doctor::shell_word;
use engine::failure::Failure;
use engine::text::is_word_of;

mod commands;
#[cfg(test)]
mod properties_tests;
#[cfg(test)]
mod shell_tests;
#[cfg(test)]
mod tests;
mod tokens;

/// The word after which the agent's own arguments follow.
const END_OF_OPTIONS: &str = "--";

/// Reads the raw text after `/crew:loop`, which no shell has processed; `None` is a request for
/// help. White space around the whole text is not part of the task.
///
/// # Errors
/// When a part of the text is neither an option with its value nor the one task.
pub fn parse_loop(raw: &str) -> Result<Option<LoopArgs>, Failure> {
    let (mut rest, mut words, mut has_task) = (raw.trim(), Vec::new(), false);
    while !rest.is_empty() {
        if first_word(rest) == END_OF_OPTIONS {
            return Err(Failure::usage(
                "words after `--` are the agent's own options, in crew run; this session has its own",
                "if it belongs to the task, put the whole task in double quotes",
            ));
        }
        if tokens::is_option(rest) {
            rest = tokens::take_option(&LOOP, rest, &mut words)?;
        } else {
            if has_task {
                return Err(tokens::apart_from_task(rest));
            }
            let (task, left) = tokens::take_task(rest)?;
            if !task.trim().is_empty() {
                words.push(format!("{MARK}{task}"));
            }
            (rest, has_task) = (left.trim_start(), true);
        }
    }
    match parse_words::<LoopArgs>(&LOOP, words) {
        Err(error) if error.kind() == ErrorKind::DisplayHelp => Ok(None),
        read => Ok(Some(read.map_err(|error| in_a_session(&error))?)),
    }
}

fn parse_words<A: FromArgMatches>(command: &Command, words: Vec<String>) -> Result<A, clap::Error> {
    A::from_arg_matches(&command.clone().try_get_matches_from(words)?)
}

/// A hint for an option that does not exist.
const OPTIONS_HINT: &str =
    "/crew:help lists the options; if it belongs to the task, put the whole task in double quotes";

fn in_a_session(error: &clap::Error) -> Failure {
    usage_failure(error, OPTIONS_HINT)
}

/// Reads the raw text after `/crew:resume`.
///
/// # Errors
/// When a part of the text is neither an option with its value nor the one name.
pub fn parse_resume(raw: &str) -> Result<ResumeHereArgs, Failure> {
    let (mut rest, mut words, mut is_bare) = (raw.trim(), Vec::new(), false);
    while !rest.is_empty() {
        let word = first_word(rest);
        if tokens::is_option(rest) {
            let left = tokens::take_option(&RESUME_HERE, rest, &mut words)?;
            let typed = rest[..rest.len() - left.len()].trim_end();
            is_bare = word.starts_with("--tell") && !typed.ends_with(['"', '\'']);
            rest = left;
        } else if is_bare || word == END_OF_OPTIONS {
            // The rest of a message without quotes would name a loop.
            return Err(Failure::usage(
                format!("unexpected word `{}`", shorten_text(word)),
                "put a whole message in double quotes: --tell \"use the old parser\"",
            ));
        } else {
            words.push(word.to_owned());
            rest = rest[word.len()..].trim_start();
        }
    }
    parse_words(&RESUME_HERE, words).map_err(|error| in_a_session(&error))
}

/// The arguments of `crew resume LOOP`, with no option.
///
/// # Errors
/// If clap rejects the name.
pub fn resume_of(name: &str) -> Result<ResumeArgs, Failure> {
    parse_words(&RESUME, vec![name.to_owned()])
        .map_err(|error| usage_failure(&error, "crew resume --help"))
}

/// The options of `crew run` that have a long name.
pub fn run_options() -> impl Iterator<Item = &'static Arg> {
    RUN.get_arguments()
        .filter(|arg| arg.get_long().is_some() && !matches!(arg.get_action(), ArgAction::Help))
}

/// Removes one `--color` with its value from the words. It may be anywhere before `--`, and also
/// applies to an error in the other words. A wrong value stays, so that clap refuses it.
pub fn take_color(given: &mut Vec<OsString>) -> Option<ColorChoice> {
    let at = given
        .iter()
        .position(|word| word == END_OF_OPTIONS || word.to_string_lossy().starts_with("--color"))?;
    let last = at + usize::from(given[at] == "--color");
    let value = given.get(last)?.to_str()?;
    let choice = value.strip_prefix("--color=").unwrap_or(value).parse().ok()?;
    given.drain(at..=last);
    Some(choice)
}

/// The words crew was called with, as they are passed to clap: a text that begins like an option
/// and that a person has quoted gets a mark, because clap would read it as one.
///
/// # Errors
/// If a typographic dash replaces hyphens.
pub fn of_shell(mut given: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    if !given.get(1).is_some_and(|verb| verb == "run" || verb == "resume") {
        return Ok(given);
    }
    for word in given.iter_mut().skip(2).take_while(|word| *word != END_OF_OPTIONS) {
        let Some(text) = word.to_str() else { continue };
        tokens::refuse_typographic_dash(text)?;
        if text.starts_with('-') && is_text(text) {
            *word = format!("{MARK}{text}").into();
        }
    }
    if given.last().is_some_and(|word| word == END_OF_OPTIONS) {
        // Explicitly no words for the agent.
        given.push(MARK.into());
    }
    Ok(given)
}

/// Whether a word that starts like an option is nevertheless text: it contains a blank before any
/// `=`, so a person has quoted it, and it does not start with an existing option.
fn is_text(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    name.contains(char::is_whitespace) && find_option(&RUN, first_word(word)).is_none()
}

/// Refuses words outside the task: a value that lost its quotes would become part of it.
///
/// # Errors
/// If an option separates two words of the task.
pub fn refuse_words_apart(matches: &ArgMatches) -> Result<(), Failure> {
    let Some(("run", run)) = matches.subcommand() else { return Ok(()) };
    let (Some(places), Some(task)) = (run.indices_of("task"), run.get_many::<String>("task"))
    else {
        return Ok(());
    };
    let places: Vec<usize> = places.collect();
    let apart = places.windows(2).zip(task.skip(1)).find(|(two, _)| two[1] != two[0] + 1);
    match apart {
        Some((_, word)) => Err(tokens::apart_from_task(word)),
        None => Ok(()),
    }
}

/// The options of `/crew:loop` that people use.
const SHOWN: &str = "prompt_file replace questions verify gate until require max_iterations \
    max_duration max_cost";

/// These options as a page of help lists them.
pub fn options_page() -> String {
    let command = LOOP.clone().mut_args(|arg| {
        let is_shown = is_word_of(SHOWN, arg.get_id().as_str());
        arg.hide(!is_shown)
    });
    command.help_template("{all-args}").term_width(100).render_help().to_string()
}

/// Explains an error of clap. `help` names the page to read where nothing better can be said.
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

/// The text that clap reports for this kind of context; empty if it reports none.
fn render_context(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(word)) => word.clone(),
        Some(ContextValue::Strings(words)) => words.join(", "),
        _ => String::new(),
    }
}

/// clap's own message, without its usage summary.
fn first_part(error: &clap::Error) -> String {
    let page = error.render().to_string();
    let part = page.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = part.split_whitespace().skip_while(|word| *word == "error:").collect();
    words.join(" ")
}

/// Words of other tools, with the commands of crew that do the same.
const OTHER_WORDS: &str = include_str!("arguments/other_words.txt");

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
        (Some(similar), _) => format!("did you mean {similar}? crew {path}--help lists all"),
        (None, [_, next, ..]) if path.is_empty() && !next.starts_with('-') => {
            let task = shell_line(&words);
            format!("crew run {task}, if it is a task; crew --help lists the commands")
        }
        (None, _) => format!("crew {path}--help lists the commands"),
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
