//! crew keeps a coding agent working until the job is proved done.

mod agents;
mod cli;
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

use crate::exit::Exit;

fn main() -> ExitCode {
    // A hook is told by its program's name, because older clients drop its arguments; and never through
    // clap, whose usage errors exit with the status that blocks a client.
    let (program, verb, option) = world::env::call();
    let exit = match (program.as_str(), verb.as_str()) {
        ("crew-wake", _) => cmd::hook::hook(true),
        ("crew-hook", _) | (_, "hook") => cmd::hook::hook(option == "--companion"),
        _ => typed(),
    };
    exit.into()
}

fn typed() -> Exit {
    let cli = match cli::Cli::try_parse_from(world::env::words(&["run", "resume"])) {
        Ok(cli) => cli,
        Err(told) => {
            if told.use_stderr() {
                cmd::print::err(&told.render().to_string());
                return Exit::Usage;
            }
            // Help and version hold no text but crew's own, in clap's colours.
            let _ = told.print();
            return Exit::Success;
        }
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
