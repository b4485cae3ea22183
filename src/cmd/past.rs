//! The verbs that look at loops that are over and at what a loop changed; `crew back`, which brings a
//! working tree back to the end of an iteration; and `crew prove`, which tries its checks.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::{all, checkout, home, listing, print, refuse_an_agent, requested};
use crate::cli::HistoryArgs;
use crate::drive;
use crate::drive::back::{self, difference, unseen};
use crate::drive::find::is_here;
use crate::engine::record::totals::Totals;
use crate::engine::test_changes::trial::Trial;
use crate::engine::text::{count, named};
use crate::exit::Exit;
use crate::parse::arguments::UsageError;
use crate::parse::iterations::iterations;
use crate::report::history as words;
use crate::world::process::signals::Signals;
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

/// The most files that are named of those written, and of those removed.
const FILES_NAMED: usize = 10;

/// Brings the tree back; the last word is the iteration.
pub fn back(words: &[String]) -> Result<Exit> {
    refuse_an_agent(
        "an agent cannot bring the working tree back\nhint: a person can, in a terminal",
    )?;
    let (name, word) = match words {
        [word] => (None, word),
        [name, word] => (Some(name.as_str()), word),
        _ => bail!(UsageError::new("back needs an iteration", "crew back 3")),
    };
    let Some(target) = back::target(word) else {
        bail!(UsageError::new(format!("`{word}` is not an iteration"), "crew back 3"))
    };
    let (home, record) = requested(name)?;
    if name.is_none() && !is_here(&record, &env::current_folder()?) {
        let id = &record.id;
        bail!(UsageError::new("no loop works in this folder", format!("crew back {id} {word}")));
    }
    let restored = back::back(&home, &record, &target)?;
    let has_git = record.place.head.is_some() || record.branch().is_some();
    let git = if has_git { "; HEAD and the branch are as they were" } else { "" };
    let files = |paths: &[String]| match paths {
        [] => "nothing".to_owned(),
        _ => format!("{}: {}", count(paths.len() as u64, "file"), named(paths, FILES_NAMED)),
    };
    let mut lines = vec![
        format!("back at {word}{git}"),
        format!("  written  {}", files(&restored.written)),
        format!("  removed  {}", files(&restored.removed)),
        format!("  undo     crew back {} {}", record.id, restored.kept_as),
    ];
    let left = restored.left.iter().map(|left| format!("  left     {}", left.display()));
    lines.extend(left);
    print::out(&lines.join("\n"));
    Ok(Exit::SUCCESS)
}

/// Tries the requested loop's work and prints the result. The exit code is 0 only for `proven`.
pub fn prove(name: Option<&str>) -> Result<Exit> {
    refuse_an_agent("an agent cannot have its own work proven\nhint: a person can, in a terminal")?;
    let (home, record) = requested(name)?;
    let signals = Signals::listen()?;
    let (trial, proof) = drive::prove::by_hand(&home, &record, &|| signals.times() > 0)?;
    let had = record.state.ending.as_ref().and_then(|ending| ending.proof);
    let (text, exit) = match trial {
        Trial::Proven(how) => (format!("proven: {how}"), Exit::SUCCESS),
        Trial::Failed(why) | Trial::Impossible(why) => {
            let other = proof.filter(|proof| Some(*proof) != had);
            let other = other.map(|proof| format!("; its proof is `{}` now", proof.label()));
            (format!("not proven: {why}{}", other.unwrap_or_default()), Exit::ERROR)
        }
    };
    print::out(&format!("loop {}: {text}", record.id));
    Ok(exit)
}
