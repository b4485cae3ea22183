//! `crew handoff`: a page for the next worker, in the middle of a loop.

use anyhow::Result;

use super::{by, control_replies, home, meant, print};
use crate::cli::HandoffArgs;
use crate::drive::end::handoff;
use crate::exit::Exit;

/// Writes a page for the requested loop.
pub fn handoff(arguments: &HandoffArgs) -> Result<Exit> {
    let home = home()?;
    let Some(record) = meant(&home, arguments.name.as_deref())? else { return Ok(Exit::Usage) };
    let page = handoff::write(&home, &record, &arguments.kind, &arguments.description, by())?;
    print::out(&control_replies::handed_off(&page));
    Ok(Exit::Success)
}
