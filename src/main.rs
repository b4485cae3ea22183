//! crew keeps a coding agent working until the job is proved done.

mod agents;
mod cli;
mod clients;
mod cmd;
mod demo;
mod drive;
mod engine;
mod exit;
mod parse;
mod prompts;
mod report;
mod world;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::exit::Exit;
use crate::parse::arguments::{self, UsageError};

fn main() -> ExitCode {
    // A hook is recognised by its program's name, because older clients drop its arguments; and
    // never parsed by clap, whose usage errors exit with the status that blocks a client.
    let (program, verb, option) = world::env::call();
    match (program.as_str(), verb.as_str()) {
        ("crew-wake", _) => cmd::hook::hook(true),
        ("crew-hook", _) | (_, "hook") => cmd::hook::hook(option == "--companion"),
        _ => typed().into(),
    }
}

fn typed() -> Exit {
    let meant = match arguments::meant::meant(world::env::words()) {
        Ok(meant) => meant,
        Err(error) => return wrong(&error),
    };
    meant.note.iter().for_each(|note| cmd::print::err(&format!("crew: {note}")));
    let words = arguments::of_shell(meant.words);
    let cli = match words.map(cli::Cli::try_parse_from) {
        Ok(Ok(cli)) => cli,
        // Pages contain only crew's own text, in clap's colours.
        Ok(Err(page)) if !page.use_stderr() => {
            let _ = page.print();
            return Exit::SUCCESS;
        }
        Ok(Err(page)) if page.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            cmd::print::err(&page.to_string());
            return Exit::USAGE;
        }
        Ok(Err(error)) => return wrong(&error.into()),
        Err(error) => return wrong(&error),
    };
    let exit = cmd::dispatch(&cli.verb).unwrap_or_else(|error| {
        cmd::print::err(&exit::message(&error));
        Exit::of_error(&error)
    });
    for told in world::store::rebuilt() {
        cmd::print::err(&format!("crew: {told}"));
    }
    exit
}

fn wrong(error: &UsageError) -> Exit {
    cmd::print::err(&format!("crew: {error}"));
    Exit::USAGE
}
