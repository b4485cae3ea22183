//! `crew history`: loops that are over, the newest first. It only reads.

use anyhow::Result;

use super::{all, checkout, home, print};
use crate::engine::record::Loop;
use crate::exit::Exit;
use crate::report::{history as words, json};
use crate::world::{clock, env, git};

/// Lists what ended in this repository's working trees, or on this machine.
pub fn history(everywhere: bool, limit: usize, as_json: bool) -> Result<Exit> {
    let mut here = git::worktree::roots(&env::current_folder()?);
    here.push(checkout()?);
    let mut loops = all(&home()?)?;
    loops.retain(|record| {
        !record.is_live() && (everywhere || here.contains(&record.place.checkout))
    });
    let limit = if limit == 0 { usize::MAX } else { limit };
    let more = loops.len().saturating_sub(limit);
    loops.truncate(limit);
    if as_json {
        let told: Vec<(Loop, bool)> = loops.into_iter().map(|record| (record, false)).collect();
        print::json(&json::status(&told));
    } else {
        print::out(&words::list(&loops, more, *clock::local().offset()));
    }
    Ok(Exit::SUCCESS)
}
