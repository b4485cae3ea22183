//! The settings that are numbers: where each is written, what it counts, what it is where nobody says so,
//! and which way is wider.

use crate::engine::limits::Limits;
use crate::engine::run::Pace;

/// A bound that settings can move. 0 is "none" for each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    MaxIterations,
    FailureThreshold,
    Stall,
    MaxDuration,
    MaxCost,
    MaxTokens,
    /// Of one iteration.
    Timeout,
    /// Of an agent's silence.
    IdleTimeout,
    /// Between two iterations: the one bound from below.
    Delay,
    /// Of one iteration.
    MaxTurns,
    /// Of a prompt, past which it is warned of.
    TokenBudget,
    MaxWait,
    /// Of the iterations' logs of all loops.
    KeepLogs,
    /// The oldest log.
    KeepDays,
}

/// What the number of a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Iterations,
    Turns,
    Days,
    Seconds,
    /// Millionths of a US dollar.
    Micros,
    Tokens,
    Bytes,
}

/// The table and the key of a limit, its variable, and what it counts.
type Row = (&'static str, &'static str, &'static str, Unit);

impl Limit {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 14] = [
        Self::MaxIterations,
        Self::FailureThreshold,
        Self::Stall,
        Self::MaxDuration,
        Self::MaxCost,
        Self::MaxTokens,
        Self::Timeout,
        Self::IdleTimeout,
        Self::Delay,
        Self::MaxTurns,
        Self::TokenBudget,
        Self::MaxWait,
        Self::KeepLogs,
        Self::KeepDays,
    ];

    fn row(self) -> Row {
        use Unit::{Bytes, Days, Iterations, Micros, Seconds, Tokens, Turns};
        match self {
            Self::MaxIterations => ("loop", "max_iterations", "CREW_MAX_ITERATIONS", Iterations),
            Self::FailureThreshold => {
                ("loop", "failure_threshold", "CREW_FAILURE_THRESHOLD", Iterations)
            }
            Self::Stall => ("loop", "stall", "CREW_STALL", Iterations),
            Self::MaxDuration => ("loop", "max_duration", "CREW_MAX_DURATION", Seconds),
            Self::MaxCost => ("loop", "max_cost", "CREW_MAX_COST", Micros),
            Self::MaxTokens => ("loop", "max_tokens", "CREW_MAX_TOKENS", Tokens),
            Self::Timeout => ("loop", "timeout", "CREW_TIMEOUT", Seconds),
            Self::IdleTimeout => ("loop", "idle_timeout", "CREW_IDLE_TIMEOUT", Seconds),
            Self::Delay => ("loop", "delay", "CREW_DELAY", Seconds),
            Self::MaxTurns => ("loop", "max_turns", "CREW_MAX_TURNS", Turns),
            Self::TokenBudget => ("loop", "token_budget", "CREW_TOKEN_BUDGET", Tokens),
            Self::MaxWait => ("wait", "max", "CREW_MAX_WAIT", Seconds),
            Self::KeepLogs => ("keep", "logs", "CREW_KEEP_LOGS", Bytes),
            Self::KeepDays => ("keep", "days", "CREW_KEEP_DAYS", Days),
        }
    }

    /// The table and the key that hold it in a settings file.
    pub fn key(self) -> (&'static str, &'static str) {
        let (table, key, ..) = self.row();
        (table, key)
    }

    /// The environment's variable for it.
    pub fn variable(self) -> &'static str {
        self.row().2
    }

    /// What it counts.
    pub fn unit(self) -> Unit {
        self.row().3
    }

    /// Whether it is nothing to a session's loop.
    pub fn is_for_processes(self) -> bool {
        matches!(
            self,
            Self::Timeout
                | Self::IdleTimeout
                | Self::Delay
                | Self::MaxTurns
                | Self::TokenBudget
                | Self::KeepLogs
                | Self::KeepDays
        )
    }

    /// Its value where no setting names one.
    pub fn built_in(self) -> u64 {
        let (limits, pace) = (Limits::default(), Pace::default());
        match self {
            Self::MaxIterations => limits.max_iterations.into(),
            Self::FailureThreshold => limits.failure_threshold.into(),
            Self::Stall => limits.stall.into(),
            Self::MaxDuration => limits.max_duration_s,
            Self::MaxCost => limits.max_cost_micros,
            Self::MaxTokens => limits.max_tokens,
            Self::Timeout => pace.timeout_s,
            Self::IdleTimeout => pace.idle_timeout_s,
            Self::Delay => pace.delay_s,
            Self::MaxTurns => 0,
            Self::TokenBudget => 100_000,
            Self::MaxWait => limits.max_wait_s,
            Self::KeepLogs => 2 << 30,
            Self::KeepDays => 90,
        }
    }

    /// Whether `value` lets a loop go further, or faster, than `other` does.
    pub fn is_wider(self, value: u64, other: u64) -> bool {
        match self {
            Self::Delay => value < other,
            // It warns and holds nothing.
            Self::TokenBudget => false,
            _ => other != 0 && (value == 0 || value > other),
        }
    }

    /// A value of it as a settings file writes it, to the last digit: `15`, `"12h"`, `2.50`, `"500k"`.
    pub fn written(self, value: u64) -> String {
        const BYTES: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        const TOKENS: [(u64, &str); 2] = [(1_000_000, "M"), (1_000, "k")];
        let in_units = |units: &[(u64, &str)]| {
            let mut fitting =
                units.iter().filter(|(unit, _)| value > 0 && value.is_multiple_of(*unit));
            fitting.next().map(|(unit, name)| format!("\"{}{name}\"", value / unit))
        };
        let written = match self.unit() {
            Unit::Seconds if value > 0 => {
                let time = humantime::format_duration(std::time::Duration::from_secs(value));
                Some(format!("\"{time}\""))
            }
            Unit::Micros if value > 0 => {
                let (dollars, cents) = (value / 1_000_000, value % 1_000_000 / 10_000);
                let beyond = format!("{:04}", value % 10_000);
                Some(format!("{dollars}.{cents:02}{}", beyond.trim_end_matches('0')))
            }
            Unit::Tokens => in_units(&TOKENS),
            Unit::Bytes if value > 0 => in_units(&BYTES).or_else(|| Some(format!("\"{value}B\""))),
            _ => None,
        };
        written.unwrap_or_else(|| value.to_string())
    }
}
