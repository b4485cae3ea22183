//! `crew man`: the pages for man(1), made from the text of `--help`. It installs nothing.

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man;

use super::print;
use crate::cli::Cli;
use crate::exit::Exit;

/// Prints the page of crew, or of one of its commands.
pub fn man(verb: Option<&str>) -> Result<Exit> {
    let mut command = Cli::command();
    command.build();
    if let Some(verb) = verb {
        let found = command.find_subcommand(verb).cloned();
        command = found.with_context(|| {
            format!("there is no command `{verb}`\nhint: crew --help names them")
        })?;
    }
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    print::bytes(&page);
    Ok(Exit::SUCCESS)
}
