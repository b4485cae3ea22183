//! `crew demo`: a whole loop through the real hook entry, with a scripted agent.

use anyhow::Result;

use super::print;
use crate::demo::{self, Played};
use crate::exit::Exit;

/// Plays the demo, each scene as it happens.
pub fn demo() -> Result<Exit> {
    Ok(match demo::play(print::folded)? {
        Played::ToTheEnd => Exit::SUCCESS,
        Played::Interrupted => {
            print::err("crew: interrupted; the demo's files are removed");
            Exit::INTERRUPTED
        }
    })
}
