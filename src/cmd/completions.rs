//! `crew completions`: what a shell needs to complete a command line of crew. It installs nothing.

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::print;
use crate::cli::Cli;
use crate::exit::Exit;

/// Prints the completions of the requested shell.
pub fn completions(shell: Shell) -> Exit {
    let all = Cli::command();
    // Commands hidden from the help are not offered either.
    let shown = all.get_subcommands().filter(|verb| !verb.is_hide_set());
    let mut crew = Command::new("crew").version(env!("CARGO_PKG_VERSION")).subcommands(shown);
    let mut page = Vec::new();
    clap_complete::generate(shell, &mut crew, "crew", &mut page);
    print::bytes(&page);
    Exit::SUCCESS
}
