//! The size of the terminal that is written to.

use rustix::termios::tcgetwinsize;

/// The rows of the terminal on standard output; `None` where there is none, or it does not tell.
pub fn rows() -> Option<u16> {
    tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_row).filter(|rows| *rows > 0)
}
