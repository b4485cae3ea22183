//! `crew tell`: a message for the agent, delivered with its next prompt. It refuses inside an
//! agent.

use anyhow::{Result, bail};

use super::{home, print, resolve_loop};
use crate::cli::TellArgs;
use crate::clients::variables::inside_an_agent;
use crate::drive::control;
use crate::exit::Exit;
use crate::world::env;

/// Queues a message for the agent of the requested loop.
pub fn tell(arguments: &TellArgs) -> Result<Exit> {
    if inside_an_agent(&env::raw) {
        bail!("an agent has no words for itself\nhint: write a handoff: crew handoff \"…\"");
    }
    let home = home()?;
    let Some(record) = resolve_loop(&home, arguments.name.as_deref())? else {
        return Ok(Exit::USAGE);
    };
    let record = control::tell(&home, &record.id, &arguments.words.join(" "))?;
    print::out(&format!("loop {}: told with the next prompt", record.id));
    Ok(Exit::SUCCESS)
}
