//! The part of a child's output that is kept in memory: its beginning and its end, never more than was
//! said, however much it prints.

use std::convert::Infallible;
use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::Keep;

/// The kept part of an output.
#[derive(Debug)]
pub struct Kept {
    keep: Keep,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Bytes.
    pub left_out: usize,
}

impl Kept {
    /// Nothing yet.
    pub fn new(keep: Keep) -> Self {
        Self { keep, head: Vec::new(), tail: Vec::new(), left_out: 0 }
    }

    /// Takes what was read.
    pub fn add(&mut self, bytes: &[u8]) {
        let room = self.keep.head.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[room..]);
        // Cut now and then, not at every read: a cut moves the whole tail.
        if self.tail.len() > 2 * self.keep.tail + (64 << 10) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let surplus = self.tail.len().saturating_sub(self.keep.tail);
        self.tail.drain(..surplus);
        self.left_out += surplus;
    }

    /// What was kept, with a line in the place of what was not.
    pub fn take(&mut self) -> Vec<u8> {
        self.cut();
        let mut all = std::mem::take(&mut self.head);
        if self.left_out > 0 {
            all.extend_from_slice(format!("\n… {} bytes left out …\n", self.left_out).as_bytes());
        }
        all.append(&mut self.tail);
        all
    }

    /// The end alone.
    pub fn take_tail(&mut self) -> Vec<u8> {
        self.cut();
        std::mem::take(&mut self.tail)
    }
}

/// A pipe that is read to its end on a thread of its own, so that a child never blocks on a full one.
#[derive(Debug)]
pub struct Reading {
    kept: Arc<Mutex<Kept>>,
    /// Nothing is sent: the thread lets go of the other side at the end of the pipe.
    end: Receiver<Infallible>,
}

impl Reading {
    /// Begins to read.
    pub fn start(mut reader: impl Read + Send + 'static, keep: Keep) -> Self {
        let kept = Arc::new(Mutex::new(Kept::new(keep)));
        let share = Arc::clone(&kept);
        let (until, end) = channel();
        thread::spawn(move || {
            let _until = until;
            let mut buffer = [0; 16 << 10];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                share.lock().unwrap_or_else(PoisonError::into_inner).add(&buffer[..count]);
            }
        });
        Self { kept, end }
    }

    /// Waits for the end of the pipe: whether it came in that time.
    pub fn ends_within(&self, time: Duration) -> bool {
        self.end.recv_timeout(time) == Err(RecvTimeoutError::Disconnected)
    }

    /// What was read so far, and whether something was left out.
    pub fn take(&self) -> (Vec<u8>, bool) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.take(), kept.left_out > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::process::FOR_READING;

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let mut kept = Kept::new(FOR_READING);
        kept.add(b"first\n");
        for _ in 0..40_000 {
            kept.add(b"0123456789");
        }
        kept.add(b"\nlast");
        let all = kept.take();
        let bound = FOR_READING.head + FOR_READING.tail;
        assert!(all.starts_with(b"first\n") && all.ends_with(b"\nlast"));
        assert!(all.len() < bound + 64);
        assert_eq!(kept.left_out, 400_011 - bound);
    }
}
