//! Where an agent's output goes: whole lines to the log and to whoever watches, and the end of what it
//! complained of to the one who tells how it ended.

use std::io;
use std::path::Path;

use super::Keep;
use super::agent::Watch;
use super::kept::Kept;
use super::lines::{Lines, Piece, text_of};
use super::pipes::Stream;
use crate::world::logs::Log;

/// The longest line of standard output that is handed on whole: an agent's event holds a file it read.
const LINE: usize = 8 << 20;
/// The same of standard error, which holds no events.
const ERROR_LINE: usize = 64 << 10;
/// What is kept of standard error.
const COMPLAINTS: Keep = Keep { head: 0, tail: 64 << 10 };

/// The receivers of one iteration's output.
#[derive(Debug)]
pub struct Feed {
    log: Log,
    out: Lines,
    errors: Lines,
    complaints: Kept,
}

impl Feed {
    /// Into this log.
    pub fn new(log: &Path) -> Self {
        Self {
            log: Log::open(log),
            out: Lines::new(LINE),
            errors: Lines::new(ERROR_LINE),
            complaints: Kept::new(COMPLAINTS),
        }
    }

    /// Takes what came.
    pub fn take(&mut self, stream: Stream, bytes: &[u8], watch: &mut dyn Watch) {
        match stream {
            Stream::Out => {
                self.out.feed(bytes, |piece| {
                    self.log.add(bytes_of(piece));
                    if let Piece::Line(line) = piece {
                        watch.line(&text_of(line, LINE));
                    }
                });
            }
            Stream::Errors => {
                self.complaints.add(bytes);
                self.errors.feed(bytes, |piece| {
                    self.log.add(bytes_of(piece));
                    if let Piece::Line(line) = piece {
                        watch.error_line(&text_of(line, ERROR_LINE));
                    }
                });
            }
        }
    }

    /// Writes what the log still holds in memory.
    pub fn flush(&mut self) {
        self.log.flush();
    }

    /// Hands on what had no line break. Gives the end of standard error, and why the log is not whole.
    pub fn end(mut self, watch: &mut dyn Watch) -> (Vec<u8>, Option<io::Error>) {
        self.out.end(|piece| {
            self.log.add_line(bytes_of(piece));
            watch.line(&text_of(bytes_of(piece), LINE));
        });
        self.errors.end(|piece| {
            self.log.add_line(bytes_of(piece));
            watch.error_line(&text_of(bytes_of(piece), ERROR_LINE));
        });
        (self.complaints.take_tail(), self.log.close())
    }
}

fn bytes_of(piece: Piece<'_>) -> &[u8] {
    match piece {
        Piece::Line(bytes) | Piece::Rest(bytes) => bytes,
    }
}
