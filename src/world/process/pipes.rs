//! The pipes between crew and a child, served by one thread. A child that reads late, prints
//! without end or leaves a pipe open does not block crew, and at most one page of its output is in
//! memory.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::world::clock;

/// The most bytes read or written at once.
const CHUNK: usize = 64 << 10;

/// One of a child's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Out,
    Errors,
}

/// crew's ends of the pipes.
#[derive(Debug)]
pub struct Pipes<'a> {
    input: Option<PipeWriter>,
    unsent: &'a [u8],
    out: Option<PipeReader>,
    errors: Option<PipeReader>,
    buffer: Vec<u8>,
}

impl<'a> Pipes<'a> {
    /// `unsent` is written to `input`, which is then closed. No end blocks.
    pub fn new(
        input: Option<PipeWriter>,
        unsent: &'a [u8],
        out: PipeReader,
        errors: Option<PipeReader>,
    ) -> io::Result<Self> {
        let input = input.filter(|_| !unsent.is_empty());
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
        if !self.wait(wait) {
            return false;
        }
        self.send();
        let out = read(&mut self.out, &mut self.buffer, |bytes| each(Stream::Out, bytes));
        read(&mut self.errors, &mut self.buffer, |bytes| each(Stream::Errors, bytes)) || out
    }

    /// Whether a pipe is ready.
    fn wait(&self, wait: Duration) -> bool {
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

    /// A child that closes its input or is gone has read what it wanted.
    fn send(&mut self) {
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

fn read(pipe: &mut Option<PipeReader>, buffer: &mut [u8], each: impl FnOnce(&[u8])) -> bool {
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
