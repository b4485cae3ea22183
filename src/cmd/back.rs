//! `crew back`: brings the working tree of a loop back to the end of an iteration.

use anyhow::{Result, bail};

use super::{print, refuse_an_agent, requested};
use crate::drive::back;
use crate::drive::find::is_here;
use crate::engine::text::{count, named};
use crate::exit::Exit;
use crate::parse::arguments::UsageError;
use crate::world::env;

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
