//! `crew tell`: a message for the agent, delivered with its next prompt. It refuses inside an
//! agent.

use anyhow::Result;

use super::{control_replies, print, refuse_an_agent, requested};
use crate::drive::control;
use crate::drive::owner::owner_is_gone;
use crate::exit::Exit;

/// Queues a message for the agent of the requested loop.
pub fn tell(words: &[String], name: Option<&str>) -> Result<Exit> {
    refuse_an_agent(
        "an agent cannot send itself a message\nhint: say it in your last message, which the next iteration reads",
    )?;
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
