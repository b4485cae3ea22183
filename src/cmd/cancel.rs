//! `crew cancel`: ends a loop from any terminal. The order is a file of its own, so it needs no model, and
//! a hook in flight cannot undo it.

use anyhow::Result;

use super::{by, home, meant, print, told};
use crate::cli::Cancel;
use crate::drive::ending;
use crate::exit::Exit;

/// Cancels the loop that is meant.
pub fn cancel(arguments: &Cancel) -> Result<Exit> {
    let home = home()?;
    let Some(record) = meant(&home, arguments.name.as_deref())? else { return Ok(Exit::Usage) };
    let attempt = ending::cancel(&home, &record.id, by().label(), arguments.reason.as_deref())?;
    print::out(&told::cancelled(&attempt));
    Ok(Exit::Success)
}
