//! The verbs: resolve what was typed, call a driver or a reader, print. The only room that prints.

pub mod cancel;
pub mod demo;
pub mod hook;
pub mod print;
pub mod status;

use anyhow::Result;

use crate::cli::Verb;
use crate::exit::Exit;
use crate::world::home::Home;

/// Carries out a verb.
pub fn dispatch(verb: &Verb) -> Result<Exit> {
    match verb {
        Verb::Status(arguments) => status::status(arguments),
        Verb::Cancel(arguments) => cancel::cancel(arguments),
        Verb::Demo => demo::demo(),
    }
}

/// The home of the terminal this was typed in.
fn home() -> Result<Home> {
    let home = Home::of_terminal();
    home.ok_or_else(|| anyhow::anyhow!("HOME is not set\nhint: set HOME, or CREW_HOME to a folder"))
}
