//! The user's terminal: its size, and an answer typed there. Every wait for an answer is bounded.

use std::io::{self, ErrorKind, IsTerminal, stdin, stdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

/// The longest wait for an answer: silence is not consent.
const ANSWER_WAIT: Duration = Duration::from_secs(600);
/// The longest answer that is read.
const ANSWER_BYTES: usize = 1024;

/// The rows of the terminal on standard output; `None` if it is not a terminal or does not report
/// them.
pub fn rows() -> Option<u16> {
    tcgetwinsize(stdout()).ok().map(|size| size.ws_row).filter(|rows| *rows > 0)
}

/// Its columns; `None` if it is not a terminal or does not report them.
pub fn columns() -> Option<u16> {
    tcgetwinsize(stdout()).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// Whether a person can read the output and answer.
pub fn is_interactive() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Whether a line was typed that has not been read yet; this reads it. It reads only from a
/// terminal whose foreground process this is: any other would stop this process.
pub fn enter_was_pressed() -> bool {
    let stdin = stdin();
    let is_ours = || tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
    if !stdin.is_terminal() || !is_ours() {
        return false;
    }
    let is_typed = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&Timespec::default()));
    let mut line = [0; ANSWER_BYTES];
    is_typed.is_ok_and(|typed| typed > 0)
        && rustix::io::read(&stdin, &mut line).is_ok_and(|length| length > 0)
}

/// The line that is typed next; `None` at the end of the input. Past the deadline it is an error.
pub fn answer() -> io::Result<Option<String>> {
    let stdin = stdin();
    let wait = Timespec { tv_sec: ANSWER_WAIT.as_secs().cast_signed(), tv_nsec: 0 };
    if poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&wait))? == 0 {
        return Err(io::Error::new(ErrorKind::TimedOut, "nobody answered"));
    }
    // A terminal returns one line per read.
    let mut line = [0; ANSWER_BYTES];
    let length = rustix::io::read(&stdin, &mut line)?;
    Ok((length > 0).then(|| String::from_utf8_lossy(&line[..length]).trim().to_owned()))
}
