//! How a run of crew ends: the exit code, and an error as one cause and one way out on stderr.

use std::process::ExitCode;

use crate::drive::session::refused::told;
use crate::engine::claim::promise::PromiseError;
use crate::engine::record::outcome::Outcome;
use crate::parse::arguments::UsageError;

/// The codes a person's script may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Success,
    Error,
    Usage,
    Exhausted,
    Aborted,
    Stalled,
    Blocked,
    Cancelled,
    /// By the user at the keyboard, or by a limit of a wait; or paused: to be resumed.
    Interrupted,
    /// By a signal, with the code that a shell has for it.
    Signalled(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Error => 1,
            Exit::Usage => 2,
            Exit::Exhausted => 10,
            Exit::Aborted => 11,
            Exit::Stalled => 12,
            Exit::Blocked => 13,
            Exit::Cancelled => 14,
            Exit::Interrupted => 130,
            Exit::Signalled(code) => code,
        })
    }
}

impl Exit {
    /// The code of what went wrong. A promise that cannot be kept, or a procedure that nobody has, was typed
    /// wrong.
    pub fn of_error(error: &anyhow::Error) -> Self {
        let typed_wrong = error.is::<PromiseError>() || error.is::<UsageError>();
        if typed_wrong { Self::Usage } else { Self::Error }
    }

    /// The code of a run that ended so.
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Success,
            Outcome::Exhausted => Self::Exhausted,
            Outcome::Aborted => Self::Aborted,
            Outcome::Stalled => Self::Stalled,
            Outcome::Blocked => Self::Blocked,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Interrupted => Self::Interrupted,
            Outcome::Error => Self::Error,
        }
    }
}

/// The words for an error: the chain of causes on one line, and its hint on the next.
pub fn message(error: &anyhow::Error) -> String {
    format!("crew: {}", told(error))
}
