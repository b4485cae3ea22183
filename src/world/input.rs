//! What the process that started this one hands over on standard input: only what is there soon,
//! and never what a person types.

use std::io::{IsTerminal, stdin};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clock::Deadline;

/// The longest wait for all of it.
const WITHIN: Duration = Duration::from_millis(300);
/// The most that is read, in bytes.
const MOST: usize = 1 << 20;

/// The input up to its end, as far as it came in time; empty if it is a terminal, or closed.
pub fn offered() -> Vec<u8> {
    let (stdin, mut bytes) = (stdin(), Vec::new());
    let deadline = Deadline::after(WITHIN);
    let mut part = [0; 8192];
    while !stdin.is_terminal() && bytes.len() < MOST {
        let left = Timespec::try_from(deadline.left()).unwrap_or_default();
        let is_there = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&left));
        match is_there.is_ok_and(|ready| ready > 0).then(|| rustix::io::read(&stdin, &mut part)) {
            Some(Ok(length)) if length > 0 => bytes.extend_from_slice(&part[..length]),
            _ => break,
        }
    }
    bytes
}
