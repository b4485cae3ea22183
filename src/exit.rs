//! The exit codes of crew.

use std::process::ExitCode;

use engine::failure::FailureKind;
use engine::record::Outcome;

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

    /// Another attempt has the fleet's task.
    pub const FENCED: Self = Self(14);

    /// The code of a run that a signal ended, as a shell reports it.
    pub fn from_signal(code: u8) -> Self {
        Self(code)
    }

    /// The code for a failure.
    pub fn of_failure(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Error => Self::ERROR,
            FailureKind::Usage => Self::USAGE,
            FailureKind::Interrupted => Self::INTERRUPTED,
        }
    }

    /// The code itself.
    #[cfg(test)]
    pub fn code(self) -> u8 {
        self.0
    }

    /// The code of a run with this outcome.
    pub fn for_outcome(outcome: Outcome) -> Self {
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
