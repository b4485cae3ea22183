//! Distributes an agent's output: whole lines go to the log and to the watch, and the end of
//! standard error is kept for the report of how the agent ended.

use std::io;
use std::path::Path;

use super::lines::{LineCutter, LinePiece, text_of};
use super::output::{BoundedOutput, OutputBounds};
use super::pipes::Stream;
use super::runner::{StopRequest, Supervisor};
use crate::world::store::logs::Log;

/// The longest line of standard output that is passed on whole: an event may contain a file that
/// the agent read.
const LINE: usize = 8 << 20;
/// The same for standard error, which has no events.
const ERROR_LINE: usize = 64 << 10;
/// What is kept of standard error, in bytes.
const COMPLAINTS: OutputBounds = OutputBounds { head: 0, tail: 64 << 10 };

/// Observes an agent. The time it takes does not count against the agent, which waits meanwhile.
pub trait Watch {
    /// A line of standard output without its line break. It is cut after 8 MiB.
    fn line(&mut self, line: &str);

    /// The same for standard error, cut after 64 KiB.
    fn error_line(&mut self, line: &str);

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
            out: LineCutter::new(LINE),
            errors: LineCutter::new(ERROR_LINE),
            complaints: BoundedOutput::new(COMPLAINTS),
            watch,
        }
    }

    /// Passes on what had no line break. Returns the end of standard error, and why the log is
    /// incomplete.
    pub fn end(mut self) -> (Vec<u8>, Option<io::Error>) {
        self.out.end(|piece| {
            self.log.add_line(bytes_of(piece));
            self.watch.line(&text_of(bytes_of(piece), LINE));
        });
        self.errors.end(|piece| {
            self.log.add_line(bytes_of(piece));
            self.watch.error_line(&text_of(bytes_of(piece), ERROR_LINE));
        });
        (self.complaints.take_tail(), self.log.close())
    }
}

impl Supervisor for Feed<'_> {
    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Out => self.out.feed(bytes, |piece| {
                self.log.add(bytes_of(piece));
                if let LinePiece::Line(line) = piece {
                    self.watch.line(&text_of(line, LINE));
                }
            }),
            Stream::Errors => {
                self.complaints.add(bytes);
                self.errors.feed(bytes, |piece| {
                    self.log.add(bytes_of(piece));
                    if let LinePiece::Line(line) = piece {
                        self.watch.error_line(&text_of(line, ERROR_LINE));
                    }
                });
            }
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

fn bytes_of(piece: LinePiece<'_>) -> &[u8] {
    match piece {
        LinePiece::Line(bytes) | LinePiece::Rest(bytes) => bytes,
    }
}
