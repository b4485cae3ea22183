//! How a run of crew ends: the exit code, and an error as one cause and one way out on stderr.

use std::process::ExitCode;

/// The codes a person's script may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Success,
    Error,
    Usage,
    /// Only the companion's: it starts a turn in the client.
    Wake,
    /// By the user, at the keyboard or with a signal.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Error => 1,
            Exit::Usage | Exit::Wake => 2,
            Exit::Interrupted => 130,
        })
    }
}

/// The words for an error: the chain of causes on one line, and its hint on the next.
pub fn message(error: &anyhow::Error) -> String {
    format!("crew: {error:#}")
}
