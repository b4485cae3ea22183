//! Runs one agent to its end: hands it its prompt, its output on, watches its silence, and leaves no process
//! of it behind. Says how it ended, never what to think of that.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::feed::{Feed, Watch};
use super::runner::{Running, Streams};
use super::{ExitCause, ProcessSpec, descendants, in_a_session};
use crate::world::fault;

/// How long what an agent left behind may keep its pipes open after its exit.
const LINGER: Duration = Duration::from_millis(500);
/// How long an agent that has said that it is over may stay, silent.
pub const CLOSED: Duration = Duration::from_secs(30);

/// What is asked of an agent's process beside its start.
#[derive(Debug)]
pub struct AgentTerms<'a> {
    /// The longest it may print nothing while no tool call is open, on both streams.
    pub idle: Option<Duration>,
    /// Gets all it prints, bounded (see `world/logs`). One that is there is added to.
    pub log: &'a Path,
}

/// An agent that is over.
#[derive(Debug)]
pub struct FinishedAgent {
    pub cause: ExitCause,
    /// Milliseconds in which crew itself was stopped or kept waiting: what it did not watch counts for nobody.
    pub missed_ms: u64,
    /// The last 64 KiB of standard error.
    pub errors: String,
    /// Whether it closed its standard output and ran on: its last words may be missing.
    pub closed_early: bool,
    /// Why the log is not whole. The agent was not stopped for that.
    pub log_error: Option<io::Error>,
    /// Processes it started that could not be ended, by id.
    pub left_behind: Vec<i32>,
}

/// Runs an agent to its end. `note` is told who leads its group. An error means that it could not be started,
/// or, very unlikely, not be ended.
pub fn run(
    spec: &ProcessSpec<'_>,
    terms: &AgentTerms<'_>,
    note: Option<&File>,
    watch: &mut dyn Watch,
) -> io::Result<FinishedAgent> {
    let command = in_a_session(spec.program, note)?;
    let mut feed = Feed::new(terms.log, watch);
    let mut running = Running::start(command, spec, Streams::Apart, note, &mut feed)?;
    running.linger = fault::linger(CLOSED);
    let cause = running.wait(spec.within, terms.idle);
    let closed_early = running.closed_early();
    if matches!(cause, Ok(ExitCause::Exit(_) | ExitCause::Signal(_))) {
        running.drain(LINGER);
    }
    let left_behind = if descendants::are_adopted() {
        descendants::end_all()
    } else {
        running.finish_group();
        Vec::new()
    };
    running.empty();
    let missed = running.time.missed();
    let (errors, log_error) = feed.end();
    Ok(FinishedAgent {
        cause: cause?,
        missed_ms: u64::try_from(missed.as_millis()).unwrap_or(u64::MAX),
        errors: String::from_utf8_lossy(&errors).into_owned(),
        closed_early,
        log_error,
        left_behind,
    })
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
