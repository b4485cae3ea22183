//! The settings a loop starts with: what each tier says (`Layer`), what is in force when all are laid
//! over each other (`merge`), and what of a project's own file a person must have trusted (`trust`).
//! Every value knows where it came from. Nothing here reads a file or a variable, and nothing here is
//! asked again once a loop runs: the contract holds a copy.

pub mod merge;
pub mod trust;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::contract::Check;
use super::limits::Limits;
use super::promise::Promise;

/// A bound that settings can move. 0 is "none" for each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    MaxIterations,
    FailureThreshold,
    Stall,
    MaxDuration,
    MaxCost,
    MaxTokens,
    MaxWait,
}

/// What the number of a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Iterations,
    Seconds,
    /// Millionths of a US dollar.
    Micros,
    Tokens,
}

impl Limit {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 7] = [
        Self::MaxIterations,
        Self::FailureThreshold,
        Self::Stall,
        Self::MaxDuration,
        Self::MaxCost,
        Self::MaxTokens,
        Self::MaxWait,
    ];

    /// The table and the key that hold it in a settings file.
    pub fn key(self) -> (&'static str, &'static str) {
        match self {
            Self::MaxIterations => ("loop", "max_iterations"),
            Self::FailureThreshold => ("loop", "failure_threshold"),
            Self::Stall => ("loop", "stall"),
            Self::MaxDuration => ("loop", "max_duration"),
            Self::MaxCost => ("loop", "max_cost"),
            Self::MaxTokens => ("loop", "max_tokens"),
            Self::MaxWait => ("wait", "max"),
        }
    }

    /// The environment's variable for it.
    pub fn variable(self) -> &'static str {
        match self {
            Self::MaxIterations => "CREW_MAX_ITERATIONS",
            Self::FailureThreshold => "CREW_FAILURE_THRESHOLD",
            Self::Stall => "CREW_STALL",
            Self::MaxDuration => "CREW_MAX_DURATION",
            Self::MaxCost => "CREW_MAX_COST",
            Self::MaxTokens => "CREW_MAX_TOKENS",
            Self::MaxWait => "CREW_MAX_WAIT",
        }
    }

    /// What it counts.
    pub fn unit(self) -> Unit {
        match self {
            Self::MaxIterations | Self::FailureThreshold | Self::Stall => Unit::Iterations,
            Self::MaxDuration | Self::MaxWait => Unit::Seconds,
            Self::MaxCost => Unit::Micros,
            Self::MaxTokens => Unit::Tokens,
        }
    }

    /// Its value where no setting names one.
    pub fn built_in(self) -> u64 {
        let limits = Limits::default();
        match self {
            Self::MaxIterations => limits.max_iterations.into(),
            Self::FailureThreshold => limits.failure_threshold.into(),
            Self::Stall => limits.stall.into(),
            Self::MaxDuration => limits.max_duration_s,
            Self::MaxCost => limits.max_cost_micros,
            Self::MaxTokens => limits.max_tokens,
            Self::MaxWait => limits.max_wait_s,
        }
    }

    /// A value of it as a settings file writes it, to the last digit: `15`, `"12h"`, `2.50`, `"500k"`.
    pub fn written(self, value: u64) -> String {
        match self.unit() {
            Unit::Seconds if value > 0 => {
                let time = humantime::format_duration(std::time::Duration::from_secs(value));
                format!("\"{time}\"")
            }
            Unit::Micros if value > 0 => {
                let (dollars, cents) = (value / 1_000_000, value % 1_000_000 / 10_000);
                let beyond = format!("{:04}", value % 10_000);
                format!("{dollars}.{cents:02}{}", beyond.trim_end_matches('0'))
            }
            Unit::Tokens if value > 0 && value.is_multiple_of(1_000_000) => {
                format!("\"{}M\"", value / 1_000_000)
            }
            Unit::Tokens if value > 0 && value.is_multiple_of(1_000) => {
                format!("\"{}k\"", value / 1_000)
            }
            _ => value.to_string(),
        }
    }
}

/// Whether `value` lets a loop go further than `other` does.
pub fn is_wider(value: u64, other: u64) -> bool {
    other != 0 && (value == 0 || value > other)
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    /// The user's own file or the project's; lines count from 1.
    File {
        path: PathBuf,
        line: usize,
    },
    /// This variable.
    Environment(&'static str),
    /// The command that started the loop.
    Typed,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => out.write_str("built-in"),
            Self::File { path, line } => write!(out, "{}:{line}", path.display()),
            Self::Environment(name) => write!(out, "${name}"),
            Self::Typed => out.write_str("typed"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    pub value: T,
    pub origin: Origin,
}

/// A check as a settings file may name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCheck {
    /// For people; `None` where the file gives none.
    pub name: Option<String>,
    pub check: Check,
}

impl From<Check> for NamedCheck {
    fn from(check: Check) -> Self {
        Self { name: None, check }
    }
}

/// What one tier says; what it leaves out it says nothing about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    pub limits: BTreeMap<Limit, Sourced<u64>>,
    pub promise: Option<Sourced<Promise>>,
    /// In the order given.
    pub checks: Vec<Sourced<NamedCheck>>,
}

impl Layer {
    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
