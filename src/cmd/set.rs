//! `crew set`: moves the limits of a live loop. An agent may lower them, never raise them.

use anyhow::{Error, Result, bail};

use super::{by, home, meant, print};
use crate::cli::Set;
use crate::drive::steer;
use crate::exit::Exit;
use crate::parse::changes;
use crate::report::line;

/// Moves the limits of the loop that is meant.
pub fn set(arguments: &Set) -> Result<Exit> {
    let words = arguments.words.iter().map(String::as_str);
    let changes = changes::parse(words).map_err(Error::msg)?;
    if changes.is_empty() {
        bail!("no limit is named\nhint: crew set --max-iterations 30, or -n +10");
    }
    let home = home()?;
    let Some(record) = meant(&home, changes.name.as_deref())? else { return Ok(Exit::Usage) };
    let record = steer::set(&home, &record.id, &changes, by())?;
    print::out(&format!("loop {}: {}", record.id, line::limits(&record)));
    Ok(Exit::Success)
}
