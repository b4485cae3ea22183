//! The user's terminal: its size, and answers typed there. Also the standard input that the parent
//! process passes on. Every wait is bounded.

use std::io::{self, ErrorKind, IsTerminal, stdin, stdout};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};

use super::clock::Deadline;

/// The longest wait for an answer: silence is not consent.
const ANSWER_WAIT: Duration = Duration::from_secs(600);
/// The longest answer that is read.
const ANSWER_BYTES: usize = 1024;

/// The rows of the terminal on standard output; `None` if it is not a terminal or does not report
/// them.
pub fn count_rows() -> Option<u16> {
    tcgetwinsize(stdout()).ok().map(|size| size.ws_row).filter(|rows| *rows > 0)
}

/// The columns of that terminal; `None` if it is not a terminal or does not report them.
pub fn count_columns() -> Option<u16> {
    tcgetwinsize(stdout()).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// Whether a person can read the output and type an answer.
pub fn is_interactive() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Reads a typed line, and returns whether there was one. It reads only in the terminal's
/// foreground process: elsewhere, reading would stop this process.
pub fn enter_was_pressed() -> bool {
    is_ours()
        && input_comes(&stdin(), Duration::ZERO).unwrap_or(false)
        && rustix::io::read(stdin(), &mut [0; ANSWER_BYTES]).is_ok_and(|length| length > 0)
}

/// Whether input, or end of file, arrives within a time. A signal is an error.
pub(super) fn input_comes(input: &impl AsFd, within: Duration) -> io::Result<bool> {
    let within = Timespec::try_from(within).unwrap_or_default();
    Ok(poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&within))? > 0)
}

/// Whether standard input is a terminal, and this is its foreground process.
fn is_ours() -> bool {
    let stdin = stdin();
    stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp())
}

/// Whether a key was pressed within that time, or a signal came; the key is read. True if no key
/// can be pressed. During the wait the terminal passes on single keys and does not show them. A
/// signal that ends or stops this process leaves it in that state: see `signals::end_requested`.
pub fn key_within(wait: Duration) -> bool {
    let stdin = stdin();
    let before = if is_ours() { tcgetattr(&stdin).ok() } else { None };
    let Some(before) = before else { return true };
    let mut single = before.clone();
    single.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    let _ = tcsetattr(&stdin, OptionalActions::Now, &single);
    let ready = input_comes(&stdin, wait);
    if matches!(ready, Ok(true)) {
        let _ = rustix::io::read(&stdin, &mut [0; ANSWER_BYTES]);
    }
    let _ = tcsetattr(&stdin, OptionalActions::Now, &before);
    !matches!(ready, Ok(false))
}

/// The next typed line; `None` at the end of the input. Past the deadline it is an error.
pub fn read_answer() -> io::Result<Option<String>> {
    let stdin = stdin();
    if !input_comes(&stdin, ANSWER_WAIT)? {
        return Err(io::Error::new(ErrorKind::TimedOut, "nobody answered"));
    }
    // A terminal returns one line per read.
    let mut line = [0; ANSWER_BYTES];
    match rustix::io::read(&stdin, &mut line)? {
        0 => Ok(None),
        length => Ok(Some(String::from_utf8_lossy(&line[..length]).trim().to_owned())),
    }
}

// The standard input that the parent process passes on: only what arrives soon, and never what a
// person types.

/// The longest wait for all of it.
const WITHIN: Duration = Duration::from_millis(300);
/// The maximum number of bytes read.
const MOST: usize = 1 << 20;

/// The input up to end of file, or what arrived in time; empty if it is a terminal, or closed.
pub fn offered_input() -> Vec<u8> {
    let (stdin, mut bytes) = (stdin(), Vec::new());
    let deadline = Deadline::after(WITHIN);
    let mut part = [0; 8192];
    while !stdin.is_terminal() && bytes.len() < MOST {
        let is_there = input_comes(&stdin, deadline.left()).unwrap_or(false);
        let length = if is_there { rustix::io::read(&stdin, &mut part).unwrap_or(0) } else { 0 };
        if length == 0 {
            break;
        }
        bytes.extend_from_slice(&part[..length]);
    }
    bytes
}
