//! Runs one agent to its end: passes it its prompt and its output on, watches for silence, and
//! leaves none of its processes behind. It reports how the agent ended and never judges that.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::output::{Capture, Feed, LineCutter, Watch};
use super::runner::Running;
use super::{Call, ExitCause, descendants};
use crate::world::fault;
use crate::world::store::logs::Log;

/// How long processes that an agent left behind may keep its pipes open after its exit.
const LINGER: Duration = Duration::from_millis(500);
/// How long an agent that has reported its end may stay silent before it is ended.
pub const CLOSED: Duration = Duration::from_secs(30);

/// The longest event that is passed on whole, in bytes: it may contain a file that the agent read.
const EVENT: usize = 8 << 20;
/// The longest line of standard output that is not an event, and the longest text for a line that
/// is not UTF-8, in bytes.
const LINE: usize = 1 << 20;
/// The longest line of standard error, which has no events.
const ERROR_LINE: usize = 64 << 10;

/// An agent that has ended.
#[derive(Debug)]
pub struct FinishedAgent {
    pub cause: ExitCause,
    /// Milliseconds from its start to its end, as far as crew watched.
    pub ran_ms: u64,
    /// Milliseconds in which crew itself was stopped or kept waiting: unwatched time counts against
    /// nobody.
    pub missed_ms: u64,
    /// The last 64 KiB of standard error.
    pub errors: String,
    /// Whether it closed its standard output and kept running: its last output may be missing.
    pub closed_early: bool,
    /// Why the log is incomplete. The agent was not stopped because of it.
    pub log_error: Option<io::Error>,
    /// The ids of processes it started that could not be ended.
    pub left_behind: Vec<i32>,
}

/// Runs an agent to its end. A line of its standard output is cut after 1 MiB, or after 8 MiB if it
/// begins with `{` and is UTF-8, of standard error after 64 KiB. `idle` is the longest silence on
/// both streams while no tool call is open. All its output is appended to `log`, which is bounded
/// (see `world/store/logs`). An error means that it could not be started or, very rarely, could not
/// be ended.
pub fn run(
    call: Call<'_>,
    idle: Option<Duration>,
    log: &Path,
    watch: &mut dyn Watch,
) -> io::Result<FinishedAgent> {
    let mut feed = Feed::new(Capture::Apart, watch);
    feed.log = Some(Log::open(log));
    feed.out = Some(LineCutter::with_events(LINE, EVENT));
    feed.errors = Some(LineCutter::new(ERROR_LINE));
    let mut running = Running::start(call.keep(Capture::Apart), feed)?;
    running.linger = fault::wait("CREW_LINGER_MS", CLOSED);
    let cause = running.wait(idle);
    let ran = running.time.look();
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
    let (errors, log_error) = running.feed.end();
    Ok(FinishedAgent {
        cause: cause?,
        ran_ms: milliseconds(ran),
        missed_ms: milliseconds(missed),
        errors: String::from_utf8_lossy(&errors.take_tail()).into_owned(),
        closed_early,
        log_error,
        left_behind,
    })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
