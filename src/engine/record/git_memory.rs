//! What a loop remembers of its git steps: its last push, and the failures since a step last
//! worked. It runs no git.

use serde::{Deserialize, Serialize};

use super::{Driver, Loop, LoopMoment};

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
    /// What follows the last boundary, or the end, and was not tried yet.
    #[serde(skip_serializing_if = "Pending::is_empty")]
    pub pending: Pending,
}

/// What a recorded boundary or end still asks for. Each is crossed out once it was tried, so that
/// a crew that is killed in between leaves it to the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub commit: bool,
    pub push: bool,
    /// The commands for the end of the loop.
    pub reaction: bool,
}

impl Pending {
    /// What the boundary asks for that leaves a loop like this; `counted` says whether it counted
    /// an iteration.
    pub fn after(subject: &Loop, counted: bool) -> Self {
        let before = subject.state.git.pending;
        let run = subject.contract.run.as_ref();
        let Some(run) = run.filter(|_| subject.driver() == Driver::Process) else { return before };
        let is_here = counted && subject.place.repository.is_some();
        Self {
            commit: before.commit || (is_here && run.git.commit),
            push: before.push || (is_here && run.git.push),
            reaction: !subject.is_live()
                && run.reactions.iter().any(|it| it.on == LoopMoment::Finish),
        }
    }

    /// Whether everything is done.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// "commit", "push", "reaction": those that are left.
    pub fn names(self) -> Vec<&'static str> {
        let all = [(self.commit, "commit"), (self.push, "push"), (self.reaction, "reaction")];
        all.into_iter().filter(|(is_left, _)| *is_left).map(|(_, name)| name).collect()
    }
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
    /// What is pending or failed when it was last tried: all that a resume of an ended loop does.
    pub fn left(&self) -> Pending {
        Pending {
            commit: self.pending.commit || self.commits.count > 0,
            push: self.pending.push || self.pushes.count > 0,
            reaction: self.pending.reaction,
        }
    }

    /// ", not pushed": what is left to do first, for a row in a list; empty if nothing is.
    pub fn left_in_a_list(&self) -> &'static str {
        match self.left() {
            Pending { commit: true, .. } => ", not committed",
            Pending { push: true, .. } => ", not pushed",
            Pending { reaction: true, .. } => ", reaction pending",
            _ => "",
        }
    }

    /// "not committed yet · not pushed, 2 tries failed: …"; `None` if nothing is left to do.
    pub fn undone(&self) -> Option<String> {
        let one = |is_pending: bool, failures: &Failures, what: &str| {
            let tries = if failures.count == 1 { "try" } else { "tries" };
            match failures.count {
                0 => is_pending.then(|| format!("{what} yet")),
                count => Some(format!("{what}, {count} {tries} failed: {}", failures.why)),
            }
        };
        let Pending { commit, push, reaction } = self.pending;
        let undone = [
            one(commit, &self.commits, "not committed"),
            one(push, &self.pushes, "not pushed"),
            reaction.then(|| "its reaction to the end did not run yet".to_owned()),
        ];
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
        memory.pending = Pending { commit: true, push: true, reaction: true };
        assert_eq!(
            memory.undone().as_deref(),
            Some(
                "not committed yet · not pushed, 1 try failed: no remote; git remote add origin \
                 ADDRESS · its reaction to the end did not run yet"
            )
        );
        memory.pending = Pending::default();
        assert!(memory.undone().unwrap().starts_with("not pushed"));
    }
}
