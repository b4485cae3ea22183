//! `crew diff`: what a loop changed in its working tree, or some of its iterations. It only reads.

use anyhow::{Result, bail};

use super::{print, requested};
use crate::drive::back::{difference, unseen};
use crate::exit::Exit;
use crate::parse::arguments::UsageError;
use crate::parse::iterations::iterations;

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
