//! The verbs that look at loops that are over, or at what a loop changed. They only read.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::{all, checkout, home, listing, print, requested};
use crate::cli::HistoryArgs;
use crate::drive::back::{difference, unseen};
use crate::engine::record::totals::Totals;
use crate::exit::Exit;
use crate::parse::arguments::UsageError;
use crate::parse::iterations::iterations;
use crate::report::history as words;
use crate::world::{clock, env, git};

// `crew diff`: what a loop changed in its working tree, or some of its iterations. It only reads.

/// Prints the difference of the requested loop, or of the iterations in the last word.
pub fn diff(words: &[String]) -> Result<Exit> {
    let of = words.last().and_then(|word| iterations(word));
    if let (None, Some(word)) = (of, words.last().filter(|word| word.contains(".."))) {
        bail!(UsageError::new(format!("`{word}` is not a range of iterations"), "crew diff 2..6"));
    }
    let names = &words[..words.len() - usize::from(of.is_some())];
    let ([] | [_]) = names else {
        bail!(UsageError::new(
            format!("`{}` is not an iteration", names[1]),
            "crew diff LOOP 4, crew diff LOOP 2..6"
        ))
    };
    let (home, record) = requested(names.first().map(String::as_str))?;
    let text = difference(&home, &record, of)?;
    let unseen = unseen(&home, &record).filter(|_| of.is_none());
    if let Some(unseen) = &unseen {
        print::aside(unseen);
    } else if text.is_empty() {
        print::aside("no changes");
    }
    print::bytes(text.as_bytes());
    Ok(Exit::SUCCESS)
}

// `crew history`: loops that are over, the newest first, and their totals. It only reads.

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
