//! `crew history`: loops that are over, the newest first, and their totals. It only reads.

use std::path::PathBuf;

use anyhow::Result;

use super::{all, checkout, home, listing, print};
use crate::cli::HistoryArgs;
use crate::engine::record::totals::Totals;
use crate::exit::Exit;
use crate::report::history as words;
use crate::world::{clock, env, git};

/// Lists what ended in this repository, or on this machine.
pub fn history(arguments: &HistoryArgs) -> Result<Exit> {
    let folder = env::current_folder()?;
    let mut here = git::worktree::roots(&folder);
    here.push(checkout()?);
    // A working tree that is gone, as that of a task that has landed, was of this repository.
    let repository = git::shared_folder(&folder);
    let is_of_it =
        |own: &PathBuf| repository.as_ref().is_some_and(|shared| own.starts_with(shared));
    let mut loops = all(&home()?)?;
    let now = clock::now().wall;
    loops.retain(|record| {
        let age = (now - record.last_at()).to_std().unwrap_or_default();
        !record.is_live()
            && (arguments.all
                || here.contains(&record.place.checkout)
                || record.place.repository.as_ref().is_some_and(is_of_it))
            && arguments.outcome.is_none_or(|outcome| record.outcome() == Some(outcome))
            && arguments.since.is_none_or(|since| age <= since)
    });
    let totals = Totals::of(&loops);
    if arguments.limit > 0 {
        loops.truncate(usize::try_from(arguments.limit).unwrap_or(usize::MAX));
    }
    if arguments.json {
        print::json(&words::json(loops, &totals));
    } else if loops.is_empty() {
        let is_any = arguments.outcome.is_none() && arguments.since.is_none();
        let what = if is_any { "no loop has" } else { "no such loop has" };
        let place = if arguments.all { "on this machine" } else { "here" };
        print::out(&format!("{what} ended {place}\n"));
    } else {
        let home = env::path("HOME");
        print::out(&words::list(&loops, &totals, listing(home.as_deref()), arguments.all));
    }
    Ok(Exit::SUCCESS)
}
