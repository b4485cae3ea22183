//! What a loop remembers of its working tree: the last snapshot, what was checked out, and which
//! states it has already been in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::State;

/// How many states are remembered, the newest.
const REMEMBERED: usize = 32;
/// How much of a state's identity is remembered, in hexadecimal digits.
const DIGITS: usize = 12;

/// What is checked out in a working tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedOut {
    /// `None` on a detached head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// `None` before the first commit, and where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A repository inside a working tree: a submodule, or another one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryInside {
    /// `None` before its first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// A hash of what is not committed there; `None` if all is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<String>,
}

/// A working tree as it was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeSeen {
    /// Equal for equal trees.
    pub identity: String,
    /// The snapshot that holds it; `None` where none are taken.
    pub snapshot: Option<String>,
    /// `None` outside git.
    pub head: Option<CheckedOut>,
    /// What differs from the snapshot and is not in it, by path.
    pub left_out: Vec<String>,
    /// The repositories inside it, by path.
    pub repositories: BTreeMap<String, RepositoryInside>,
    /// The commits of all branches and working trees; empty where they are too many.
    pub tips: Vec<String>,
}

/// The part of a loop's state that is about its tree, besides the identity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeMemory {
    /// The snapshot of the tree at the last boundary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CheckedOut>,
    /// The repositories inside the tree at the last boundary, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub repositories: BTreeMap<String, RepositoryInside>,
    /// The commits of all branches and working trees at the last boundary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tips: Vec<String>,
    /// The beginnings of the identities at the ends of iterations, the newest last; 0 is the state
    /// before the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    recent: Vec<(u32, String)>,
}

impl TreeMemory {
    /// The iteration after which the tree was in this state before, the newest.
    pub fn seen_after(&self, identity: &str) -> Option<u32> {
        let found = self.recent.iter().rev().find(|(_, seen)| *seen == beginning(identity));
        found.map(|(iteration, _)| *iteration)
    }
}

impl TreeMemory {
    /// Whether the tree was in this state before the first iteration.
    pub fn began_as(&self, identity: &str) -> bool {
        self.recent.iter().any(|(after, seen)| *after == 0 && seen == beginning(identity))
    }
}

impl State {
    /// Remembers the tree at the end of the last iteration, or before the first.
    pub fn remember_tree(&mut self, seen: Option<TreeSeen>) {
        let Some(TreeSeen { identity, snapshot, head, repositories, tips, .. }) = seen else {
            (self.tree, self.trees.snapshot) = (None, None);
            return;
        };
        let recent = &mut self.trees.recent;
        recent.retain(|(iteration, _)| *iteration < self.completed);
        recent.push((self.completed, beginning(&identity).to_owned()));
        recent.drain(..recent.len().saturating_sub(REMEMBERED));
        (self.tree, self.trees.snapshot, self.trees.head) = (Some(identity), snapshot, head);
        (self.trees.repositories, self.trees.tips) = (repositories, tips);
    }
}

fn beginning(identity: &str) -> &str {
    identity.get(..DIGITS).unwrap_or(identity)
}

impl From<&str> for TreeSeen {
    fn from(identity: &str) -> Self {
        Self { identity: identity.to_owned(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_states_are_remembered_once_an_iteration() {
        let mut state = State::default();
        for iteration in 0..40 {
            state.completed = iteration;
            state.remember_tree(Some("replaced before the next iteration".into()));
            state.remember_tree(Some(format!("{iteration:012} and more").as_str().into()));
        }
        let seen = |identity: &str| state.trees.seen_after(identity);
        assert_eq!(seen("000000000039 or less"), Some(39));
        assert_eq!(seen("000000000008"), Some(8));
        assert_eq!(seen("000000000007"), None);
        assert_eq!(seen("replaced before"), None);
        state.remember_tree(None);
        assert_eq!((state.tree, state.trees.recent.len()), (None, REMEMBERED));
    }
}
