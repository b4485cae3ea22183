//! `crew pause`: lets the running iteration end and no other begin, from any terminal.

use anyhow::Result;

use super::{by, home, meant, print, told};
use crate::cli::Pause;
use crate::drive::steer;
use crate::exit::Exit;

/// Pauses the loop that is meant.
pub fn pause(arguments: &Pause) -> Result<Exit> {
    let home = home()?;
    let Some(record) = meant(&home, arguments.name.as_deref())? else { return Ok(Exit::Usage) };
    print::out(&told::paused(&steer::pause(&home, &record.id, by(), arguments.now)?));
    Ok(Exit::Success)
}
