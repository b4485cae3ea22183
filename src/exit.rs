//! The exit codes of crew, and the text of an error on stderr: one cause and one hint.

use std::process::ExitCode;

use crate::drive::error_text::error_text;
use crate::drive::start::agent::Interrupted;
use engine::claim::promise::PromiseError;
use engine::record::Outcome;
use readers::parse::arguments::UsageError;

/// An exit code; scripts may rely on these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(u8);

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.0.into()
    }
}

impl Exit {
    /// The request was carried out; a run was completed.
    pub const SUCCESS: Self = Self(0);
    /// The request failed, and stderr says why.
    pub const ERROR: Self = Self(1);
    /// The command line makes no sense; nothing was done.
    pub const USAGE: Self = Self(2);
    /// A run was ended by the user at the keyboard or by the limit of a wait, or paused; it can be
    /// resumed.
    pub const INTERRUPTED: Self = Self(130);

    /// Another attempt has the task of a fleet.
    pub const FENCED: Self = Self(14);

    /// The code of a run that a signal ended, as a shell reports it.
    pub fn signalled(code: u8) -> Self {
        Self(code)
    }

    /// The code for an error. A promise that cannot be kept, or an unknown procedure, counts as a
    /// usage error.
    pub fn of_error(error: &anyhow::Error) -> Self {
        if error.is::<Interrupted>() {
            return Self::INTERRUPTED;
        }
        let typed_wrong = error.is::<PromiseError>() || error.is::<UsageError>();
        if typed_wrong { Self::USAGE } else { Self::ERROR }
    }

    /// The code itself.
    #[cfg(test)]
    pub fn code(self) -> u8 {
        self.0
    }

    /// The code of a run with this outcome.
    pub fn of(outcome: Outcome) -> Self {
        Self(match outcome {
            Outcome::Completed => 0,
            Outcome::Error => 1,
            Outcome::Exhausted => 10,
            Outcome::Aborted => 11,
            Outcome::Stalled => 12,
            Outcome::Blocked => 13,
            Outcome::Cancelled => 14,
            Outcome::Interrupted => 130,
        })
    }
}

/// The text of an error: the chain of causes on one line, and its hint on the next.
pub fn message(error: &anyhow::Error) -> String {
    format!("crew: {}", error_text(error))
}
