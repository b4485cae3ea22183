//! `crew man`: the pages for man(1), made from the text of `--help`. It installs nothing.

use anyhow::Result;
use clap::CommandFactory;
use clap_mangen::Man;

use super::print;
use crate::cli::Cli;
use crate::exit::Exit;
use crate::parse::arguments::UsageError;

/// Prints the page of crew, or of one of its commands.
pub fn man(verbs: &[String]) -> Result<Exit> {
    let mut command = Cli::command();
    command.build();
    for verb in verbs {
        let found = command.find_subcommand(verb).cloned();
        let found = found.ok_or_else(|| {
            UsageError::new(format!("there is no command `{verb}`"), "crew --help names them")
        })?;
        command = found;
    }
    let mut page = Vec::new();
    Man::new(command).source(concat!("crew ", env!("CARGO_PKG_VERSION"))).render(&mut page)?;
    print::bytes(&page);
    Ok(Exit::SUCCESS)
}
