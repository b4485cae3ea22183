//! `crew tell`: a message for the agent, delivered with its next prompt. It refuses inside an
//! agent.

use anyhow::Result;

use super::{control_replies, print, refuse_an_agent, requested};
use crate::drive::control;
use crate::drive::owner::owner_is_gone;
use crate::exit::Exit;

/// The refusal inside an agent.
pub const NOT_FOR_AN_AGENT: &str = "an agent cannot send a message to a loop, neither to its own \
    nor to another: only a person steers a loop\n\
    hint: say it in your last message, which the next iteration and the person read";

/// Queues a message for the agent of the requested loop.
pub fn tell(words: &[String], name: Option<&str>) -> Result<Exit> {
    refuse_an_agent(NOT_FOR_AN_AGENT)?;
    let words = control::tellable(&words.join(" "))?;
    let (home, record) = requested(name)?;
    let record = control::tell(&home, &record.id, &words)?;
    let id = &record.id;
    let resume = record.fleet_resume().unwrap_or_else(|| format!("crew resume {id}"));
    let gone = format!("kept, but nobody drives it any more · {resume} resumes it");
    let told = if owner_is_gone(&home, &record) { gone } else { control_replies::told(&record) };
    print::out(&format!("loop {id}: {told}"));
    Ok(Exit::SUCCESS)
}
