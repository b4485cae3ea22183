//! The arguments of a command line, which clap reads. The raw text after `/crew:loop` and
//! `/crew:resume` is first split into words. The task is passed on byte for byte. Outside quotes,
//! whatever looks like an option is one or is an error. It never becomes text of the task, because
//! a limit lost that way means an endless loop.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, ColorChoice, Command, FromArgMatches};

pub use self::options::*;
use self::options::{LOOP, RESUME, RESUME_HERE, RUN, find_option, first_word};
pub use self::usage::{unknown_command, usage_failure};
use crate::parse::amounts::MARK;
pub use crate::parse::amounts::parse_text;
use crate::parse::spelling::shorten_text;
use engine::failure::Failure;
use engine::text::is_word_of;

mod options;
#[cfg(test)]
mod properties_tests;
#[cfg(test)]
mod shell_tests;
#[cfg(test)]
mod tests;
mod tokens;
mod usage;

/// The agent's own arguments follow it.
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
