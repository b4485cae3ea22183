//! `crew history`: loops that are over, the newest first, and their totals. It only reads.

use anyhow::Result;

use super::{all, checkout, home, listing, print};
use crate::cli::HistoryArgs;
use crate::engine::record::totals::Totals;
use crate::exit::Exit;
use crate::report::history as words;
use crate::world::{clock, env, git};

/// Lists what ended in this repository's working trees, or on this machine.
pub fn history(arguments: &HistoryArgs) -> Result<Exit> {
    let mut here = git::worktree::roots(&env::current_folder()?);
    here.push(checkout()?);
    let mut loops = all(&home()?)?;
    let now = clock::now().wall;
    loops.retain(|record| {
        let age = (now - record.last_at()).to_std().unwrap_or_default();
        !record.is_live()
            && (arguments.all || here.contains(&record.place.checkout))
            && arguments.outcome.is_none_or(|outcome| record.outcome() == Some(outcome))
            && arguments.since.is_none_or(|since| age <= since)
    });
    let totals = Totals::of(&loops);
    let limit = if arguments.limit == 0 { usize::MAX } else { arguments.limit };
    loops.truncate(limit);
    if arguments.json {
        print::json(&words::json(loops, &totals));
    } else if loops.is_empty() {
        let is_any = arguments.outcome.is_none() && arguments.since.is_none();
        print::out(if is_any {
            "no loop has ended here\n"
        } else {
            "no such loop has ended here\n"
        });
    } else {
        let home = env::path("HOME");
        print::out(&words::list(&loops, &totals, listing(home.as_deref()), arguments.all));
    }
    Ok(Exit::SUCCESS)
}
