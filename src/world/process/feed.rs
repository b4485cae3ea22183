//! Distributes an agent's output: whole lines go to the log and to the watch, and the end of
//! standard error is kept for the report of how the agent ended.

use std::io;
use std::path::Path;

use super::lines::{LineCutter, LinePiece, text_of};
use super::output::{BoundedOutput, OutputBounds};
use super::pipes::Stream;
use super::runner::{StopRequest, Supervisor};
use crate::world::store::logs::Log;

/// The longest event that is passed on whole, in bytes: it may contain a file that the agent read.
const EVENT: usize = 8 << 20;
/// The longest line of standard output that is not an event, and the longest text for a line that
/// is not UTF-8, in bytes.
const LINE: usize = 1 << 20;
/// The longest line of standard error, which has no events.
const ERROR_LINE: usize = 64 << 10;
/// What is kept of standard error, in bytes.
const COMPLAINTS: OutputBounds = OutputBounds { head: 0, tail: 64 << 10 };

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
