//! What a loop remembers of its git steps: its last push, and the failures since a step last
//! worked. It runs no git.

use serde::{Deserialize, Serialize};

/// The results of its git steps so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GitMemory {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed: Option<Sent>,
    /// Commits that failed since one last worked.
    pub commits: Failures,
    /// Pushes that failed since one last worked.
    pub pushes: Failures,
}

/// What crew itself pushed last in this loop, or found pushed at its first rebase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    pub remote: String,
    /// The branch on the remote.
    pub branch: String,
    pub commit: String,
    /// What crew's own rebase has since made of that commit. A push may replace the commit only
    /// with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebased: Option<String>,
}

/// Consecutive failed tries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    pub count: u32,
    /// The last cause, with its remedy.
    pub why: String,
}

impl Failures {
    /// Counts one more.
    pub fn add(&mut self, why: String) {
        *self = Self { count: self.count.saturating_add(1), why };
    }
}

impl GitMemory {
    /// "not pushed, 2 tries failed, the last: …"; `None` if nothing is left to do.
    pub fn undone(&self) -> Option<String> {
        let one = |failures: &Failures, what: &str| {
            let tries = if failures.count == 1 { "try" } else { "tries" };
            (failures.count > 0)
                .then(|| format!("{what}, {} {tries} failed: {}", failures.count, failures.why))
        };
        let undone = [one(&self.commits, "not committed"), one(&self.pushes, "not pushed")];
        let undone: Vec<String> = undone.into_iter().flatten().collect();
        (!undone.is_empty()).then(|| undone.join(" · "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_undone_is_one_line_and_what_worked_since_is_forgotten() {
        let mut memory = GitMemory::default();
        assert_eq!(memory.undone(), None);
        memory.pushes.add("no remote; git remote add origin ADDRESS".to_owned());
        memory.commits.add("locked".to_owned());
        memory.commits.add("locked again; remove .git/index.lock".to_owned());
        assert_eq!(
            memory.undone().as_deref(),
            Some(
                "not committed, 2 tries failed: locked again; remove .git/index.lock · \
                 not pushed, 1 try failed: no remote; git remote add origin ADDRESS"
            )
        );
        memory.commits = Failures::default();
        assert!(memory.undone().unwrap().starts_with("not pushed"));
    }
}
