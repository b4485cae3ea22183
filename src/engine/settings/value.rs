//! The value of a setting, and how a settings file writes it. It does not check a value against its
//! key.

use crate::engine::claim::promise::Promise;
use crate::engine::record::{Permissions, Proof, QuestionMode, Role};
use crate::engine::test_changes::TestChanges;
use crate::engine::test_changes::trial::Prove;
use crate::engine::text::period;

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Iterations,
    Turns,
    Days,
    Seconds,
    /// Millionths of a US dollar.
    Micros,
    Tokens,
    /// Of the context; 0 means never.
    Percent,
    Bytes,
    Switch,
    /// The agent's promise, or off.
    Promise,
    Proof,
    Prove,
    TestChanges,
    Questions,
    /// Any text that is not blank.
    Name,
    Model,
    Permissions,
    /// A branch, or off.
    Branch,
    Words,
    /// A list of names.
    Agents,
    /// A list of commands, kept with the other checks of its layer.
    Commands(Role),
    /// A list of globs, which adds up over the tiers.
    Globs,
}

/// One value, of the kind that its key takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    Switch(bool),
    Text(String),
    Promise(Promise),
    Proof(Proof),
    Prove(Prove),
    TestChanges(TestChanges),
    Questions(QuestionMode),
    Permissions(Permissions),
    Words(Vec<String>),
    /// Explicitly none: no promise, no rebase.
    Off,
}

impl Value {
    /// The text that a file puts in quotes; `None` for other values.
    pub fn word(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Promise(promise) => Some(promise.as_str()),
            Self::Proof(proof) => Some(proof.label()),
            Self::Prove(prove) => Some(prove.label()),
            Self::TestChanges(mode) => Some(mode.label()),
            Self::Questions(mode) => Some(mode.label()),
            Self::Permissions(kind) => Some(kind.label()),
            Self::Number(_) | Self::Switch(_) | Self::Words(_) | Self::Off => None,
        }
    }

    /// As a settings file writes it, exactly: `15`, `"12h"`, `2.50`, `"500k"`, `"bypass"`.
    pub fn written(&self, kind: Kind) -> String {
        match self {
            Self::Number(number) => written(kind, *number),
            Self::Switch(on) => on.to_string(),
            Self::Words(words) => format!("{words:?}"),
            _ => self.word().map_or_else(|| "false".to_owned(), |word| format!("{word:?}")),
        }
    }
}

fn written(kind: Kind, number: u64) -> String {
    const BYTES: [(u64, &str); 4] =
        [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
    const TOKENS: [(u64, &str); 2] = [(1_000_000, "M"), (1_000, "k")];
    let in_units = |units: &[(u64, &str)]| {
        let fitting = units.iter().find(|(unit, _)| number.is_multiple_of(*unit));
        fitting.map(|(unit, name)| format!("\"{}{name}\"", number / unit))
    };
    let written = match kind {
        _ if number == 0 => None,
        Kind::Seconds => Some(format!("\"{}\"", period(number))),
        Kind::Micros => {
            let (dollars, cents) = (number / 1_000_000, number % 1_000_000 / 10_000);
            let beyond = format!("{:04}", number % 10_000);
            Some(format!("{dollars}.{cents:02}{}", beyond.trim_end_matches('0')))
        }
        Kind::Tokens => in_units(&TOKENS),
        Kind::Bytes => in_units(&BYTES),
        Kind::Percent => Some(format!("\"{number}%\"")),
        _ => None,
    };
    written.unwrap_or_else(|| number.to_string())
}
