//! The options of `/crew:loop`, which `crew run` has too, one row each, and how a typed token finds its row. A token that finds
//! none is an error here, with the nearest row as a suggestion.

use super::usage::UsageError;
use super::values::Value;
use super::{LoopArguments, run, tokens};
use crate::parse::spelling::{self, shown};

/// An option a person can type.
#[derive(Debug)]
pub(super) struct Flag {
    /// The long name, with its hyphens.
    pub(super) name: &'static str,
    /// The option with a value that makes sense.
    pub(super) example: &'static str,
    pub(super) role: Role,
}

/// What an option does with what follows it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// Takes no value.
    Switch(fn(&mut LoopArguments)),
    /// Takes no value, or this word after a `=`; the function is told whether it did.
    SwitchOr(&'static str, fn(&mut LoopArguments, bool)),
    /// Takes one value, once.
    Once(fn(&mut LoopArguments, Value) -> Result<(), UsageError>),
    /// Takes one value each time.
    Repeated(fn(&mut LoopArguments) -> &mut Vec<String>),
}

pub(super) const fn switch(name: &'static str, set: fn(&mut LoopArguments)) -> Flag {
    Flag { name, example: name, role: Role::Switch(set) }
}

pub(super) const fn once(
    name: &'static str,
    example: &'static str,
    set: fn(&mut LoopArguments, Value) -> Result<(), UsageError>,
) -> Flag {
    Flag { name, example, role: Role::Once(set) }
}

pub(super) const fn repeated(
    name: &'static str,
    example: &'static str,
    values: fn(&mut LoopArguments) -> &mut Vec<String>,
) -> Flag {
    Flag { name, example, role: Role::Repeated(values) }
}

const NO_PROJECT: &str = "--no-project";
static HELP: Flag = switch("--help", |arguments| arguments.help = true);
static MAX_ITERATIONS: Flag =
    once("--max-iterations", "--max-iterations 15", |arguments, value| {
        value.count().map(|count| arguments.max_iterations = Some(count))
    });

static FLAGS: [&Flag; 16] = [
    &MAX_ITERATIONS,
    &once("--completion-promise", "--completion-promise \"ALL DONE\"", |arguments, value| {
        arguments.completion_promise = Some(value.text);
        Ok(())
    }),
    &switch("--no-promise", |arguments| arguments.no_promise = true),
    &once("--require", "--require checked", |arguments, value| {
        value.grade().map(|grade| arguments.require = Some(grade))
    }),
    &repeated("--verify", "--verify \"cargo test\"", |arguments| &mut arguments.verify),
    &repeated("--until", "--until \"cargo test\"", |arguments| &mut arguments.until),
    &repeated("--gate", "--gate \"cargo check\"", |arguments| &mut arguments.gate),
    &once("--failure-threshold", "--failure-threshold 3", |arguments, value| {
        value.count().map(|count| arguments.failure_threshold = Some(count))
    }),
    &once("--stall", "--stall 5", |arguments, value| {
        value.count().map(|count| arguments.stall = Some(count))
    }),
    &once("--max-duration", "--max-duration 12h", |arguments, value| {
        value.duration().map(|duration| arguments.max_duration = Some(duration))
    }),
    &once("--max-cost", "--max-cost 5.00", |arguments, value| {
        value.dollars().map(|dollars| arguments.max_cost = Some(dollars))
    }),
    &once("--max-tokens", "--max-tokens 500k", |arguments, value| {
        value.tokens().map(|tokens| arguments.max_tokens = Some(tokens))
    }),
    &once("--prompt-file", "--prompt-file TASK.md", |arguments, value| {
        arguments.prompt_file = Some(value.text);
        Ok(())
    }),
    &switch("--replace", |arguments| arguments.replace = true),
    &switch(NO_PROJECT, |arguments| arguments.no_project = true),
    &HELP,
];

/// Where the arguments were typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// After `/crew:loop`.
    Session,
    /// After `crew run` or `crew resume`.
    Terminal,
}

/// The options of a place.
fn known(place: Place) -> impl Iterator<Item = &'static Flag> {
    let more: &[&Flag] = if place == Place::Terminal { &run::FLAGS } else { &[] };
    FLAGS.iter().chain(more).copied()
}

/// The option a token names, and where in the token its value begins if it is attached.
pub(super) fn find(
    token: &str,
    place: Place,
) -> Result<(&'static Flag, Option<usize>), UsageError> {
    let end = token.find('=');
    let name = &token[..end.unwrap_or(token.len())];
    let attached = end.map(|end| end + 1);
    if name == "-h" {
        return Ok((&HELP, attached));
    }
    if name == "-n" {
        return Ok((&MAX_ITERATIONS, attached));
    }
    if token.starts_with("-n") && !token[2..].starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Ok((&MAX_ITERATIONS, Some(2)));
    }
    let long = long_name(name);
    match known(place).find(|flag| flag.name == long) {
        Some(flag) => Ok((flag, attached)),
        None if run::FLAGS.iter().any(|flag| flag.name == long) => {
            Err(UsageError::OnlyInTerminal { option: shown(name) })
        }
        None => Err(UsageError::UnknownOption {
            option: shown(name),
            suggestion: suggestion(name, place),
            in_terminal: place == Place::Terminal,
        }),
    }
}

/// Whether a word after `crew resume` names an option that is neither a limit nor the plea for help.
pub(super) fn is_of_the_terminal(word: &str) -> bool {
    let name = long_name(word.split('=').next().unwrap_or(word));
    name == NO_PROJECT || run::FLAGS.iter().any(|flag| flag.name == name)
}

/// Refuses an option of a start that a resume has no use for.
pub(super) fn of_a_resume(word: &str) -> Result<(), UsageError> {
    let name = word.split('=').next().unwrap_or(word);
    if run::ONLY_STARTS.contains(&long_name(name)) {
        return Err(UsageError::OnlyAtStart { option: shown(name) });
    }
    Ok(())
}

fn long_name(name: &str) -> &str {
    let short = run::SHORT.iter().find(|(short, _)| *short == name);
    short.map_or(name, |(_, long)| long)
}

/// The option a token would name if its typographic dash were the hyphens it was typed as.
pub(super) fn behind_typographic_dash(token: &str) -> Option<&'static str> {
    let name = token.trim_start_matches(|c| c == '-' || tokens::is_typographic_dash(c));
    if !token[..token.len() - name.len()].contains(tokens::is_typographic_dash) {
        return None;
    }
    let name = name.split('=').next()?;
    match name {
        "h" => return Some("-h"),
        _ if name.strip_prefix('n').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit())) => {
            return Some("-n");
        }
        _ => {}
    }
    known(Place::Terminal).map(|flag| flag.name).find(|known| &known[2..] == name)
}

/// The option that was probably meant.
fn suggestion(typed: &str, place: Place) -> Option<&'static str> {
    if typed.trim_start_matches('-').eq_ignore_ascii_case("n") {
        return Some("-n");
    }
    let names: Vec<&'static str> = known(place).map(|flag| flag.name).collect();
    spelling::nearest(typed, &names)
}
