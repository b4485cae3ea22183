//! crew keeps a coding agent working until the job is proved done.

mod cli;
mod cmd;
mod demo;
mod drive;
mod exit;
mod fleet;
mod pow;
#[cfg(test)]
mod reference;
mod report;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _, FromArgMatches as _};

use crate::drive::failure::failure_of;
use crate::exit::Exit;
use engine::failure::Failure;
use readers::parse::arguments;

fn main() -> ExitCode {
    // A hook is recognised by its program's name, because older clients drop its arguments; and
    // never parsed by clap, whose usage errors exit with the status that blocks a client.
    let (program, verb, option) = world::env::program_call();
    match (program.as_str(), verb.as_str()) {
        ("crew-wake", _) => cmd::hook::answer_event(true),
        ("crew-hook", _) | (_, "hook") => cmd::hook::answer_event(option == "--companion"),
        _ => run_typed().into(),
    }
}

fn run_typed() -> Exit {
    if cmd::complete::answer_shell() {
        return Exit::SUCCESS;
    }
    let mut given = world::env::program_words();
    let color = std::iter::from_fn(|| arguments::take_color(&mut given)).last();
    cmd::print::set_colour(color.unwrap_or_default());
    if has_word(&given, "--all") && (has_word(&given, "--help") || has_word(&given, "-h")) {
        return print_help(cli::Cli::command(), &given);
    }
    let words = match arguments::of_shell(given) {
        Ok(words) => words,
        Err(error) => return fail(&error),
    };
    let read = cli::Cli::command().try_get_matches_from(&words).and_then(|matches| {
        let cli = cli::Cli::from_arg_matches(&matches)?;
        Ok((cli, arguments::refuse_words_apart(&matches)))
    });
    let cli = match read {
        Ok((cli, Ok(()))) => cli,
        Ok((_, Err(error))) => return fail(&error),
        Err(error) => match error.kind() {
            _ if words.len() == 1 => return print_help(cli::command_with_brief_help(), &words),
            ErrorKind::DisplayHelp => return print_help(cli::command_with_brief_help(), &words),
            ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                let _ = error.print();
                return if error.use_stderr() { Exit::USAGE } else { Exit::SUCCESS };
            }
            _ => return fail(&explain_misread(&error, &words)),
        },
    };
    let exit = cmd::dispatch(&cli.verb).unwrap_or_else(|error| fail(&failure_of(&error)));
    for note in world::store::take_rebuilt() {
        cmd::print::err(&format!("crew: {note}"));
    }
    exit
}

fn has_word(words: &[OsString], word: &str) -> bool {
    words.iter().take_while(|given| *given != "--").any(|given| given == word)
}

/// The error for words that clap rejects. For a missing word the hint is an example of the verb
/// that has it, or the first example; otherwise it is the verb's help.
fn explain_misread(error: &clap::Error, words: &[OsString]) -> Failure {
    let verb = words.get(1).and_then(|verb| verb.to_str()).filter(|verb| !verb.starts_with('-'));
    let is_missing = error.kind() == ErrorKind::MissingRequiredArgument;
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.first().and_then(|name| name.split(' ').next()),
        _ => None,
    };
    let example = match (verb, missing) {
        (Some(verb), Some(missing)) if is_missing => find_example(verb, missing),
        _ => None,
    };
    let command = typed_command(cli::Cli::command(), words);
    let help = command.get_bin_name().unwrap_or("crew");
    let help = example.unwrap_or_else(|| format!("{help} --help"));
    let unknown = arguments::unknown_command(error, words, &readers::prompts::procedures::NAMES);
    unknown.unwrap_or_else(|| arguments::usage_failure(error, &help))
}

/// Prints the help of the command that was typed. It contains only crew's own text, in clap's
/// colours.
fn print_help(all: Command, words: &[OsString]) -> Exit {
    let _ = typed_command(all, words).mut_arg("help", |help| help.help("Print help")).print_help();
    Exit::SUCCESS
}

/// The innermost command that was typed.
fn typed_command(mut command: Command, words: &[OsString]) -> Command {
    command.build();
    for word in words[1..].iter().filter_map(|word| word.to_str()).filter(|word| *word != "help") {
        if let Some(below) = command.find_subcommand(word) {
            command = below.clone();
        }
    }
    command
}

/// An example from a verb's help: the first with that word, or the first.
fn find_example(verb: &str, word: &str) -> Option<String> {
    let command = cli::Cli::command();
    let page = command.find_subcommand(verb)?.get_after_help()?.to_string();
    let (_, examples) = page.split_once("Examples:\n")?;
    let with_it = examples.lines().find(|line| line.split(' ').any(|part| part == word));
    with_it.or_else(|| examples.lines().next()).map(|line| line.trim().to_owned())
}

fn fail(failure: &Failure) -> Exit {
    cmd::print::fatal(failure);
    Exit::of_failure(failure.kind)
}
