//! The settings a loop starts with: what each tier says (`Layer`), what is in force when all are laid
//! over each other (`merge`), and what of a project's own file a person must have trusted (`trust`).
//! Every value knows where it came from. Nothing here reads a file or a variable, and nothing here is
//! asked again once a loop runs: the contract holds a copy.

mod agents;
mod limit;
pub mod merge;
mod procedure;
pub mod run;
pub mod trust;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

pub use self::agents::{AgentArguments, AgentEntry, DEFAULT_AGENT};
pub use self::limit::{Limit, Unit};
pub use self::procedure::Procedure;
use super::agent::Permissions;
use super::contract::Check;
use super::promise::Promise;
use super::run::Reaction;

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

impl<T> Sourced<T> {
    /// A value that nobody set.
    pub fn built_in(value: T) -> Self {
        Self { value, origin: Origin::BuiltIn }
    }

    /// A value of the command that starts the loop.
    pub fn typed(value: T) -> Self {
        Self { value, origin: Origin::Typed }
    }
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

/// What one tier says; what it leaves out it says nothing about, and an empty list is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    pub limits: BTreeMap<Limit, Sourced<u64>>,
    /// A `None` inside asks for no claim at all.
    pub promise: Option<Sourced<Option<Promise>>>,
    /// In the order given.
    pub checks: Vec<Sourced<NamedCheck>>,
    /// The name of the agent that fresh processes run.
    pub agent: Option<Sourced<String>>,
    pub agent_arguments: Option<Sourced<AgentArguments>>,
    pub permissions: Option<Sourced<Permissions>>,
    pub commit: Option<Sourced<bool>>,
    pub push: Option<Sourced<bool>>,
    /// The branch to rebase onto; a `None` inside turns a lower tier's off.
    pub rebase: Option<Sourced<Option<String>>>,
    /// Whether the machine is kept from sleeping while a run works.
    pub awake: Option<Sourced<bool>>,
    /// Globs of paths that the agent must not change.
    pub protect: Vec<Sourced<String>>,
    /// In the order given.
    pub reactions: Vec<Sourced<Reaction>>,
    /// By name.
    pub agents: BTreeMap<String, Sourced<AgentEntry>>,
    /// By name.
    pub procedures: BTreeMap<String, Sourced<Procedure>>,
}

impl Layer {
    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
