//! `crew tell`: a message for the agent, delivered with its next prompt. It refuses inside an
//! agent.

use anyhow::Result;

use super::{print, refuse_an_agent, requested};
use crate::drive::control;
use crate::exit::Exit;

/// Queues a message for the agent of the requested loop.
pub fn tell(words: &[String], name: Option<&str>) -> Result<Exit> {
    refuse_an_agent(
        "an agent cannot send itself a message\nhint: write a handoff: crew handoff \"…\"",
    )?;
    let words = control::tellable(&words.join(" "))?;
    let (home, record) = requested(name)?;
    let record = control::tell(&home, &record.id, &words)?;
    print::out(&format!("loop {}: the agent gets the message with its next prompt", record.id));
    Ok(Exit::SUCCESS)
}
