//! The settings a loop starts with: which exist (`keys`), what each tier says (`Layer`), what is in
//! force when all are merged (`merge`), and what a person must have trusted in a project's own file
//! (`trust`). Every value records its origin. Nothing here reads a file or a variable, and nothing
//! here is read again once a loop runs: the contract holds a copy.

mod agents;
mod keys;
#[cfg(test)]
mod keys_tests;
pub mod merge;
mod procedure;
pub mod run;
pub mod trust;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

pub use self::agents::AgentEntry;
pub use self::keys::{Key, KeyRow, Part};
pub use self::procedure::ProcedureSettings;
pub use self::value::{Kind, Value};
use super::record::{Check, Reaction};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ValueOrigin {
    /// Built into crew.
    BuiltIn,
    /// The user's own file or the project's; lines count from 1.
    File { path: PathBuf, line: usize },
    /// This variable.
    Environment { variable: &'static str },
    /// The command that started the loop.
    Typed,
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => out.write_str("built-in"),
            Self::File { path, line } => write!(out, "{}:{line}", path.display()),
            Self::Environment { variable } => write!(out, "${variable}"),
            Self::Typed => out.write_str("typed"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    pub value: T,
    pub origin: ValueOrigin,
}

impl<T> Sourced<T> {
    /// A value that nobody set.
    pub fn built_in(value: T) -> Self {
        Self { value, origin: ValueOrigin::BuiltIn }
    }

    /// A value of the command that starts the loop.
    pub fn typed(value: T) -> Self {
        Self { value, origin: ValueOrigin::Typed }
    }
}

/// What one tier says. Anything it leaves out is unset, and so is an empty list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    /// Each of the kind that its key takes.
    pub values: BTreeMap<Key, Sourced<Value>>,
    /// In the order given.
    pub checks: Vec<Sourced<Check>>,
    /// Globs of paths that the agent must not change.
    pub protect: Vec<Sourced<String>>,
    /// In the order given.
    pub reactions: Vec<Sourced<Reaction>>,
    /// By name.
    pub agents: BTreeMap<String, Sourced<AgentEntry>>,
    /// By name.
    pub procedures: BTreeMap<String, Sourced<ProcedureSettings>>,
}

impl Layer {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds typed values; `None` was not typed.
    pub fn type_in(&mut self, values: impl IntoIterator<Item = (Key, Option<Value>)>) {
        let typed = values.into_iter().filter_map(|(key, value)| Some((key, value?)));
        self.values.extend(typed.map(|(key, value)| (key, Sourced::typed(value))));
    }

    /// Its value for a setting.
    pub fn value(&self, key: Key) -> Option<&Value> {
        self.values.get(&key).map(|sourced| &sourced.value)
    }

    /// Its number for a setting.
    pub fn number(&self, key: Key) -> Option<u64> {
        let Value::Number(number) = self.value(key)? else { return None };
        Some(*number)
    }

    /// Its text for a setting; also `None` if the setting is off.
    pub fn word(&self, key: Key) -> Option<&str> {
        self.value(key)?.word()
    }
}
