//! How a run of crew ends: the exit code, and an error as one cause and one way out on stderr.

use std::process::ExitCode;

use crate::drive::session::refused::refusal_text;
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
    /// Ended by the user at the keyboard or by a limit of a wait, or paused; it can be resumed.
    Interrupted,
    /// Ended by a signal, with a shell's code for it.
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
    /// The code for an error. A promise that cannot be kept, or an unknown procedure, counts as a
    /// usage error.
    pub fn of_error(error: &anyhow::Error) -> Self {
        let typed_wrong = error.is::<PromiseError>() || error.is::<UsageError>();
        if typed_wrong { Self::Usage } else { Self::Error }
    }

    /// The code of a run with this outcome.
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

/// The text of an error: the chain of causes on one line, and its hint on the next.
pub fn message(error: &anyhow::Error) -> String {
    format!("crew: {}", refusal_text(error))
}
