//! `crew history`: loops that are over, the newest first.

use anyhow::Result;

use super::{checkout, home, print};
use crate::cli::History;
use crate::engine::looped::Loop;
use crate::exit::Exit;
use crate::report::{history as words, json};
use crate::world::{clock, store};

/// Lists what ended in this working tree, or on this machine.
pub fn history(arguments: &History) -> Result<Exit> {
    let here = if arguments.all { None } else { Some(checkout()?) };
    let mut loops = store::load_all(&home()?);
    loops.retain(|record| {
        !record.is_live() && here.as_ref().is_none_or(|here| *here == record.place.checkout)
    });
    let limit = if arguments.limit == 0 { usize::MAX } else { arguments.limit };
    let more = loops.len().saturating_sub(limit);
    loops.truncate(limit);
    if arguments.json {
        let told: Vec<(Loop, bool)> = loops.into_iter().map(|record| (record, false)).collect();
        print::json(&json::status(&told));
    } else {
        print::out(&words::list(&loops, more, *clock::local().offset()));
    }
    Ok(Exit::Success)
}
