//! `crew demo`: a whole loop through the real hook entry, or a whole fleet, with a scripted agent.

use std::path::Path;

use anyhow::Result;

use super::print;
use crate::demo::{self, DemoArgs, Played};
use crate::exit::Exit;

/// Plays the demo, each scene as it happens, or one iteration of the agent of a fleet's demo.
pub fn demo(arguments: &DemoArgs) -> Result<Exit> {
    if let [folder, task] = arguments.agent.as_slice() {
        print::out(demo::fleet::agent::act(Path::new(folder), task)?);
        return Ok(Exit::SUCCESS);
    }
    let played =
        if arguments.fleet { demo::play_fleet(print::folded) } else { demo::play(print::folded) };
    Ok(match played? {
        Played::ToTheEnd => Exit::SUCCESS,
        Played::Interrupted => {
            print::err("crew: interrupted; the demo's files are removed");
            Exit::INTERRUPTED
        }
    })
}
