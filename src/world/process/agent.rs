//! Runs one agent to its end: passes it its prompt and its output on, watches for silence, and
//! leaves none of its processes behind. It reports how the agent ended and never judges that.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::output::{BoundedOutput, LineCutter, LinePiece, OutputBounds, Stream, text_of};
use super::runner::{Running, StopRequest, Streams, Supervisor};
use super::{Call, ExitCause, descendants};
use crate::world::fault;
use crate::world::store::logs::Log;

/// How long processes that an agent left behind may keep its pipes open after its exit.
const LINGER: Duration = Duration::from_millis(500);
/// How long an agent that has reported its end may stay silent before it is ended.
pub const CLOSED: Duration = Duration::from_secs(30);

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

/// Runs an agent to its end. `idle` is the longest silence on both streams while no tool call is
/// open. All its output is appended to `log`, which is bounded (see `world/store/logs`). An error
/// means that it could not be started or, very rarely, could not be ended.
pub fn run(
    call: Call<'_>,
    idle: Option<Duration>,
    log: &Path,
    watch: &mut dyn Watch,
) -> io::Result<FinishedAgent> {
    let mut feed = Feed::new(log, watch);
    let mut running = Running::start(call, Streams::Apart, &mut feed)?;
    running.linger = fault::linger(CLOSED);
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
    drop(running);
    let (errors, log_error) = feed.end();
    Ok(FinishedAgent {
        cause: cause?,
        ran_ms: milliseconds(ran),
        missed_ms: milliseconds(missed),
        errors: String::from_utf8_lossy(&errors).into_owned(),
        closed_early,
        log_error,
        left_behind,
    })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

// Distributes an agent's output: whole lines go to the log and to the watch, and the end of
// standard error is kept for the report of how the agent ended.

/// The longest event that is passed on whole, in bytes: it may contain a file that the agent read.
const EVENT: usize = 8 << 20;
/// The longest line of standard output that is not an event, and the longest text for a line that
/// is not UTF-8, in bytes.
const LINE: usize = 1 << 20;
/// The longest line of standard error, which has no events.
const ERROR_LINE: usize = 64 << 10;
/// What is kept of standard error, in bytes.
const COMPLAINTS: OutputBounds = OutputBounds { head: 0, tail: 64 << 10 };

/// What a line of standard error begins with in the log.
const ERRORS_MARK: &[u8] = b"stderr: ";

/// Observes an agent. The time it takes does not count against the agent, which waits meanwhile.
pub trait Watch {
    /// A line without its line break; of standard output it is cut after 1 MiB, or after 8 MiB if
    /// it begins with `{` and is UTF-8, of standard error after 64 KiB.
    fn line(&mut self, stream: Stream, line: &str);

    /// Whether a tool call of the agent is open: then silence means work.
    fn tool_is_open(&self) -> bool;

    /// Whether the agent has reported its end and has not announced background work it returns for.
    fn is_closed(&self) -> bool;

    /// Whether the agent must end. Called at least every 50 ms, also while the agent is ending.
    fn stop(&mut self) -> Option<StopRequest>;
}

/// The receivers of one iteration's output.
pub struct Feed<'a> {
    log: Log,
    out: LineCutter,
    errors: LineCutter,
    complaints: BoundedOutput,
    watch: &'a mut dyn Watch,
}

impl<'a> Feed<'a> {
    /// Output goes to this log and to this watch.
    pub fn new(log: &Path, watch: &'a mut dyn Watch) -> Self {
        Self {
            log: Log::open(log),
            out: LineCutter::with_events(LINE, EVENT),
            errors: LineCutter::new(ERROR_LINE),
            complaints: BoundedOutput::new(COMPLAINTS),
            watch,
        }
    }

    /// Passes on what had no line break. Returns the end of standard error, and why the log is
    /// incomplete.
    pub fn end(mut self) -> (Vec<u8>, Option<io::Error>) {
        for (stream, lines) in [(Stream::Out, self.out), (Stream::Errors, self.errors)] {
            if let Some(line) = lines.end() {
                if stream == Stream::Errors {
                    self.log.add(ERRORS_MARK);
                }
                self.log.add_line(&line);
                self.watch.line(stream, &text_of(&line, most(stream)));
            }
        }
        (self.complaints.take_tail(), self.log.close())
    }
}

/// The longest text for a line that is not UTF-8.
fn most(stream: Stream) -> usize {
    if stream == Stream::Out { LINE } else { ERROR_LINE }
}

impl Supervisor for Feed<'_> {
    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        let lines = if stream == Stream::Out { &mut self.out } else { &mut self.errors };
        lines.feed(bytes, |piece| {
            let (LinePiece::Line(bytes) | LinePiece::Rest(bytes)) = piece;
            if stream == Stream::Errors && matches!(piece, LinePiece::Line(_)) {
                self.log.add(ERRORS_MARK);
            }
            self.log.add(bytes);
            if let LinePiece::Line(line) = piece {
                self.watch.line(stream, &text_of(line, most(stream)));
            }
        });
        if stream == Stream::Errors {
            self.complaints.add(bytes);
        }
    }

    fn flush(&mut self) {
        self.log.flush();
    }

    fn is_at_work(&self) -> bool {
        self.watch.tool_is_open()
    }

    fn is_closed(&self) -> bool {
        self.watch.is_closed()
    }

    fn stop(&mut self) -> Option<StopRequest> {
        self.watch.stop()
    }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
