//! `crew handoff`: a page for the next worker, in the middle of a loop.

use anyhow::Result;

use super::{actor, control_replies, home, print, resolve_loop};
use crate::cli::HandoffArgs;
use crate::drive::end::handoff;
use crate::exit::Exit;

/// Writes a page for the requested loop.
pub fn handoff(arguments: &HandoffArgs) -> Result<Exit> {
    let home = home()?;
    let Some(record) = resolve_loop(&home, arguments.name.as_deref())? else {
        return Ok(Exit::USAGE);
    };
    let page = handoff::write(&home, &record, &arguments.kind, &arguments.description, actor())?;
    print::out(&control_replies::handed_off(&page));
    Ok(Exit::SUCCESS)
}
