//! `crew resume`: says where a loop can be resumed. A session takes a loop by its own command.

use anyhow::{Result, bail};

use super::{home, meant};
use crate::cli::Named;
use crate::exit::Exit;

/// Names the command that resumes the loop that is meant.
pub fn resume(arguments: &Named) -> Result<Exit> {
    let home = home()?;
    let Some(record) = meant(&home, arguments.name.as_deref())? else { return Ok(Exit::Usage) };
    let id = &record.id;
    bail!(
        "a terminal has no session to resume loop {id} in\nhint: in Claude Code: /crew:resume {id}"
    )
}
