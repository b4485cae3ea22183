//! The streams of a child: the pipes that one thread serves, their lines for whoever watches, and
//! the part of an output that is kept in memory. All of it has fixed limits, however much a child
//! prints.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use memchr::memchr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::StopRequest;
use crate::clock;
use crate::logs::Log;
use engine::text::decode_line;

/// Which of a child's streams are read, and which part of them is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// For a person or an agent: both streams as they arrive, the beginning and a longer end.
    ForReading,
    /// Separately, the beginning of standard output and the end of standard error.
    ForParsing,
    /// Only the end of standard error, but both streams as lines.
    Apart,
}

/// The kept part of an output.
#[derive(Debug)]
pub struct BoundedOutput {
    /// The maximum number of bytes kept of the beginning and of the end.
    bounds: (usize, usize),
    head: Vec<u8>,
    tail: Vec<u8>,
    /// The number of bytes left out.
    left_out: usize,
}

impl BoundedOutput {
    fn new(bounds: (usize, usize)) -> Self {
        Self { bounds, head: Vec::new(), tail: Vec::new(), left_out: 0 }
    }

    /// Adds what was read.
    fn add(&mut self, bytes: &[u8]) {
        let room = self.bounds.0.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[room..]);
        // Truncates rarely, not at every read, because it moves the whole tail.
        if self.tail.len() > 2 * self.bounds.1 + (64 << 10) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let surplus = self.tail.len().saturating_sub(self.bounds.1);
        self.tail.drain(..surplus);
        self.left_out += surplus;
    }

    /// The kept output, with a line in place of the omitted part, and whether there is such a line.
    pub fn take(mut self) -> (Vec<u8>, bool) {
        self.cut();
        let mut all = self.head;
        if self.left_out > 0 {
            all.extend_from_slice(format!("\n… {} bytes left out …\n", self.left_out).as_bytes());
        }
        all.append(&mut self.tail);
        (all, self.left_out > 0)
    }

    /// The kept end alone.
    pub fn take_tail(mut self) -> Vec<u8> {
        self.cut();
        self.tail
    }
}

// Cuts a stream into lines as it arrives. A line that is too long is passed on when its buffer is
// full, and the rest of it separately, so that no line needs more memory than the given limit.

/// The buffer capacity that is kept for the next line.
const ROOM: usize = 64 << 10;

/// A piece of a stream, as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinePiece<'a> {
    /// A line with its break; without one at the end of the stream, or where it was split.
    Line(&'a [u8]),
    /// The rest of a line that was split.
    Rest(&'a [u8]),
}

/// Cuts a stream into lines.
#[derive(Debug)]
pub struct LineCutter {
    /// The longest line, in bytes.
    most: usize,
    /// The longest line that begins as an event does, in bytes.
    most_of_event: usize,
    begun: Vec<u8>,
    is_cut: bool,
}

impl LineCutter {
    /// A cutter that splits lines after `most` bytes.
    pub fn new(most: usize) -> Self {
        Self::with_events(most, most)
    }

    /// A cutter that splits lines after `most` bytes, and a line that begins with `{` after
    /// `most_of_event`: no other line can be a JSON event, so none is worth that much memory.
    pub fn with_events(most: usize, most_of_event: usize) -> Self {
        Self { most, most_of_event, begun: Vec::new(), is_cut: false }
    }

    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(LinePiece<'_>)) {
        let mut left = bytes;
        while !left.is_empty() {
            let length = memchr(b'\n', left).map_or(left.len(), |at| at + 1);
            let (piece, rest) = left.split_at(length);
            left = rest;
            self.take(piece, &mut each);
        }
    }

    /// Ends the stream. Returns the last line if it has no line break.
    pub fn end(self) -> Option<Vec<u8>> {
        Some(self.begun).filter(|begun| !begun.is_empty())
    }

    /// Takes a piece, which has at most one line break, as its last byte.
    fn take(&mut self, piece: &[u8], each: &mut impl FnMut(LinePiece<'_>)) {
        let is_end = piece.ends_with(b"\n");
        if self.is_cut {
            each(LinePiece::Rest(piece));
            self.is_cut = !is_end;
        } else if is_end && self.begun.is_empty() {
            each(LinePiece::Line(piece));
        } else {
            let is_event = self.begun.first().or(piece.first()) == Some(&b'{');
            let most = if is_event { self.most_of_event } else { self.most };
            let (fits, rest) = piece.split_at(piece.len().min(most - self.begun.len()));
            self.begun.extend_from_slice(fits);
            if is_end || self.begun.len() == most {
                each(LinePiece::Line(&self.begun));
                self.begun.clear();
                self.begun.shrink_to(ROOM);
                self.is_cut = !fits.ends_with(b"\n");
            }
            if !rest.is_empty() {
                self.take(rest, each);
            }
        }
    }
}

/// Observes a child. The child waits for the observer, and that time does not count against the
/// child.
pub trait Watch {
    /// Receives a line without its line break, truncated if it is too long.
    fn line(&mut self, stream: Stream, line: &str);

    /// Whether a tool call of the agent is open: then silence means work.
    fn tool_is_open(&self) -> bool {
        false
    }

    /// Whether the agent has reported its completion, and no background work for which it returns.
    fn is_closed(&self) -> bool {
        false
    }

    /// Whether the child must end. Called at least every 50 ms, also while the child is ending.
    fn stop(&mut self) -> Option<StopRequest>;
}

/// The beginning of a line of standard error in the log. No line of text begins like this, and a
/// page leaves out the first character.
pub const ERRORS_MARK: &str = "\u{1e}stderr: ";

/// The receivers of a child's output: whole lines go to the log and to the watch, and a part of
/// each stream is kept.
pub struct Feed<'a> {
    log: Option<Log>,
    /// The cutter for standard output; `None` if lines are not wanted.
    out: Option<LineCutter>,
    errors: Option<LineCutter>,
    /// The kept parts of standard output and of standard error.
    kept: [BoundedOutput; 2],
    pub watch: &'a mut dyn Watch,
}

impl<'a> Feed<'a> {
    /// A feed that keeps a part of the output and passes on no lines.
    pub fn new(capture: Capture, watch: &'a mut dyn Watch) -> Self {
        let bounds = match capture {
            Capture::ForReading => (16 << 10, 48 << 10),
            Capture::ForParsing => (32 << 20, 0),
            Capture::Apart => (0, 0),
        };
        let kept = [bounds, (0, 64 << 10)].map(BoundedOutput::new);
        Self { log: None, out: None, errors: None, kept, watch }
    }

    /// Passes on the lines of both streams, split by these.
    pub fn lines(self, out: Option<LineCutter>, errors: Option<LineCutter>) -> Self {
        Self { out, errors, ..self }
    }

    /// Adds both streams to a log.
    pub fn log(self, log: Log) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Takes what was read from a stream.
    pub fn take(&mut self, stream: Stream, bytes: &[u8]) {
        self.pass_on(stream, bytes);
        self.kept[usize::from(stream == Stream::Errors)].add(bytes);
    }

    fn pass_on(&mut self, stream: Stream, bytes: &[u8]) {
        let lines = if stream == Stream::Out { &mut self.out } else { &mut self.errors };
        let Some(lines) = lines else { return };
        let most = lines.most;
        lines.feed(bytes, |piece| {
            let (LinePiece::Line(bytes) | LinePiece::Rest(bytes)) = piece;
            let is_line = matches!(piece, LinePiece::Line(_));
            if let Some(log) = &mut self.log {
                if stream == Stream::Errors && is_line {
                    log.add(ERRORS_MARK.as_bytes());
                }
                log.add(bytes);
            }
            if is_line {
                self.watch.line(stream, &decode_line(bytes, most));
            }
        });
    }

    /// Lets a follower of the log see what was taken.
    pub fn flush(&mut self) {
        if let Some(log) = &mut self.log {
            log.flush();
        }
    }

    /// Passes on an incomplete last line. Returns the kept output, and why the log is incomplete.
    pub fn end(mut self) -> ([BoundedOutput; 2], Option<io::Error>) {
        for stream in [Stream::Out, Stream::Errors] {
            let lines = if stream == Stream::Out { &self.out } else { &self.errors };
            if lines.as_ref().is_some_and(|lines| !lines.begun.is_empty()) {
                self.pass_on(stream, b"\n");
            }
        }
        (self.kept, self.log.and_then(Log::close))
    }
}

// The pipes between crew and a child, served by one thread. A child that reads late, prints
// without end or leaves a pipe open does not block crew, and at most one page of its output is in
// memory.

/// The maximum number of bytes read or written at once.
const CHUNK: usize = 64 << 10;

/// One of a child's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Out,
    Errors,
}

/// crew's ends of a child's pipes.
#[derive(Debug)]
pub struct Pipes<'a> {
    input: Option<PipeWriter>,
    unsent: &'a [u8],
    out: Option<PipeReader>,
    errors: Option<PipeReader>,
    buffer: Vec<u8>,
}

impl<'a> Pipes<'a> {
    /// Pipes of a child. `unsent` is written to `input`, which is then closed. No end blocks.
    pub fn new(
        input: Option<PipeWriter>,
        unsent: &'a [u8],
        out: PipeReader,
        errors: Option<PipeReader>,
    ) -> io::Result<Self> {
        let input = if unsent.is_empty() { None } else { input };
        let ends = [input.as_ref().map(AsFd::as_fd), errors.as_ref().map(AsFd::as_fd)];
        for end in ends.into_iter().flatten().chain([out.as_fd()]) {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        Ok(Self { input, unsent, out: Some(out), errors, buffer: vec![0; CHUNK] })
    }

    /// Whether the child, or a process it left behind, can still write to its standard output.
    pub fn is_out_open(&self) -> bool {
        self.out.is_some()
    }

    /// Whether both streams are closed.
    pub fn are_closed(&self) -> bool {
        self.out.is_none() && self.errors.is_none()
    }

    /// Waits at most `wait` until something can be read or written, and does it once for each pipe.
    /// Returns whether anything was read.
    pub fn pump(&mut self, wait: Duration, mut each: impl FnMut(Stream, &[u8])) -> bool {
        if !self.wait_for_pipe(wait) {
            return false;
        }
        self.send_input();
        let out = read_pipe(&mut self.out, &mut self.buffer, |bytes| each(Stream::Out, bytes));
        read_pipe(&mut self.errors, &mut self.buffer, |bytes| each(Stream::Errors, bytes)) || out
    }

    /// Whether a pipe is ready.
    fn wait_for_pipe(&self, wait: Duration) -> bool {
        let reading = [&self.out, &self.errors].into_iter().flatten().map(PipeReader::as_fd);
        let mut waiting: Vec<PollFd<'_>> =
            reading.map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)).collect();
        let writing: Option<BorrowedFd<'_>> = self.input.as_ref().map(PipeWriter::as_fd);
        waiting.extend(writing.map(|end| PollFd::from_borrowed_fd(end, PollFlags::OUT)));
        if waiting.is_empty() {
            clock::sleep(wait);
            return false;
        }
        // A signal's interruption counts as "nothing ready": the caller checks its conditions and
        // calls again.
        Timespec::try_from(wait).is_ok_and(|wait| poll(&mut waiting, Some(&wait)).unwrap_or(0) > 0)
    }

    /// Writes the input. A child that closes its input or has ended does not need the rest.
    fn send_input(&mut self) {
        let Some(input) = &mut self.input else { return };
        match input.write(&self.unsent[..self.unsent.len().min(CHUNK)]) {
            Ok(count) => self.unsent = &self.unsent[count..],
            Err(error) if is_not_yet(&error) => {}
            Err(_) => self.unsent = &[],
        }
        if self.unsent.is_empty() {
            self.input = None;
        }
    }
}

fn read_pipe(pipe: &mut Option<PipeReader>, buffer: &mut [u8], each: impl FnOnce(&[u8])) -> bool {
    let Some(reader) = pipe else { return false };
    match reader.read(buffer) {
        Ok(count @ 1..) => {
            each(&buffer[..count]);
            return true;
        }
        Err(error) if is_not_yet(&error) => {}
        _ => *pipe = None,
    }
    false
}

fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let mut kept = BoundedOutput::new((16 << 10, 48 << 10));
        kept.add(b"first\n");
        for _ in 0..40_000 {
            kept.add(b"0123456789");
        }
        kept.add(b"\nlast");
        let (all, is_cut) = kept.take();
        let bound = 64 << 10;
        assert!(all.starts_with(b"first\n") && all.ends_with(b"\nlast"));
        assert!(all.len() < bound + 64);
        let left_out = format!("\n… {} bytes left out …\n", 400_011 - bound);
        assert!(is_cut && String::from_utf8(all).unwrap().contains(&left_out));
    }
}

#[cfg(test)]
mod lines_tests {
    use super::*;

    /// The pieces into which a stream is split; the rest of a split line is in brackets.
    fn cut(most: usize, pieces: &[&str]) -> Vec<String> {
        cut_by(LineCutter::new(most), pieces)
    }

    fn cut_by(mut lines: LineCutter, pieces: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        let mut each = |piece: LinePiece<'_>| {
            found.push(match piece {
                LinePiece::Line(line) => String::from_utf8_lossy(line).into_owned(),
                LinePiece::Rest(rest) => format!("[{}]", String::from_utf8_lossy(rest)),
            });
        };
        for piece in pieces {
            lines.feed(piece.as_bytes(), &mut each);
        }
        if let Some(rest) = lines.end() {
            each(LinePiece::Line(&rest));
        }
        found
    }

    #[test]
    fn lines_arrive_whole_however_the_stream_is_split() {
        assert_eq!(cut(99, &["a\nbc", "d\n", "\ne"]), ["a\n", "bcd\n", "\n", "e"]);
        assert_eq!(cut(99, &["", "\n"]), ["\n"]);
    }

    #[test]
    fn a_long_line_is_truncated_and_the_next_one_is_whole() {
        assert_eq!(cut(4, &["ab", "cdef", "gh\nij\n"]), ["abcd", "[ef]", "[gh\n]", "ij\n"]);
        // A line that arrives in one piece needs no buffer.
        assert_eq!(cut(4, &["abcdef\nx"]), ["abcdef\n", "x"]);
        assert_eq!(cut(4, &["ab", "cd", "\nx\n"]), ["abcd", "[\n]", "x\n"]);
    }

    #[test]
    fn only_a_line_that_can_be_an_event_may_be_as_long_as_one() {
        let cut = |pieces: &[&str]| cut_by(LineCutter::with_events(2, 4), pieces);
        assert_eq!(cut(&["{", "abcd\n"]), ["{abc", "[d\n]"]);
        assert_eq!(cut(&["a", "{cd\n{e"]), ["a{", "[cd\n]", "{e"]);
    }

    #[test]
    fn a_line_that_is_not_utf_8_is_replaced_within_its_bound() {
        assert_eq!(decode_line(b"plain\r\n", 99), "plain");
        assert_eq!(decode_line(b"a\xff\xfeb\n", 99), "a\u{fffd}\u{fffd}b");
        assert!(decode_line(&[0xff; 100], 100).len() <= 100);
    }
}
