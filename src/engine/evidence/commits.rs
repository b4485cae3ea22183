//! What became of the commits of a loop's repository: those made since its start, and those that
//! were there before. It reads no repository.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The commits, each as "1a2b3c4 Add the list", the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commits {
    /// Those that are checked out and were not at the start; `None` if they are not known.
    #[serde(rename = "commits")]
    pub made: Option<Vec<String>>,
    /// The branch, or the commit of a detached head, that is checked out instead of the loop's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_to: Option<String>,
    /// Those from before the loop that the branch of its start no longer has.
    #[serde(default, rename = "lost_commits", skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Those that crew made and what is checked out does not have, each with its branch.
    #[serde(default, rename = "commits_elsewhere", skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<String>,
    /// How many of the files that the loop changed are in no commit; `None` if nothing looked.
    #[serde(default, rename = "uncommitted_files", skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<u64>,
    /// Of a completed loop that commits: how many files changed that git ignores, by the name at
    /// the root of the working tree that they have or are below.
    #[serde(default, rename = "ignored_files", skip_serializing_if = "BTreeMap::is_empty")]
    pub ignored: BTreeMap<String, u64>,
}

impl Commits {
    /// The most of a kind that are looked up.
    pub const MOST: usize = 1000;

    /// Those made since the start, as far as they are known.
    pub fn made(&self) -> &[String] {
        self.made.as_deref().unwrap_or_default()
    }
}
