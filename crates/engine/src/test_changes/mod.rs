//! The changes that a loop makes to its tests and to what runs them. A change can only take belief
//! away, never add it, and fails no iteration.

pub mod finding;
pub mod kind;
pub mod trial;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::kind::NamedPaths;

/// The most tests or paths that a message names.
pub const NAMED_MAX: usize = 5;

/// What happens where the original tests contradict an end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestChanges {
    /// An end that needs the change of a failing test is refused.
    #[default]
    Refuse,
    /// The change only lowers the proof, and is reported.
    Report,
}

impl TestChanges {
    /// Both, the default first.
    pub const ALL: [Self; 2] = [Self::Refuse, Self::Report];
}

/// What a loop found of its tests and check configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The snapshot that holds them.
    pub commit: String,
    /// What the commands of the checks named.
    pub named: NamedPaths,
    /// The hashes of files that no snapshot holds, by path: what may be a secret, and what checks
    /// run from folders that git ignores as a whole.
    pub hashes: BTreeMap<String, String>,
}
