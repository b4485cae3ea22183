//! crew keeps a coding agent working until the job is proved done.
#![expect(dead_code, reason = "a few parts of the process driver are not wired yet")]

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
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => {
            // Help and version are no errors; clap knows which stream each belongs to.
            let _ = told.print();
            return if told.use_stderr() { Exit::Usage } else { Exit::Success };
        }
    };
    cmd::dispatch(&cli.verb).unwrap_or_else(|error| {
        cmd::print::err(&exit::message(&error));
        Exit::of_error(&error)
    })
}
