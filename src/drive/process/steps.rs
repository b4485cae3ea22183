//! The steps of git around an iteration: the rebase before it, the commit and the push after it. They are taken in
//! the repository that the loop began in or not at all. One that does not work is told; only what a person must
//! settle ends the loop.

use super::Runner;
use crate::engine::git::{GitFault, Pushed, Rebased, Step, Trouble, commit_message};
use crate::engine::news::News;
use crate::engine::outcome::Outcome;
use crate::engine::protect;
use crate::engine::run::GitSteps;
use crate::world::git::pin;
use crate::world::git::steps::{Steps, following};
use crate::world::protected;

impl Runner<'_> {
    /// Commits and pushes what an iteration changed. Gives the fault of a repository that is lost.
    pub(super) fn keep_work(&mut self) -> Option<GitFault> {
        let place = &self.record.place;
        if self.run().git == GitSteps::default() && pin::seems_there(place) {
            return None;
        }
        place.repository.as_ref()?;
        let lost = pin::stand(place, Step::Commit).err();
        let lost = lost.filter(|fault| fault.trouble == Trouble::Repository);
        if lost.is_some() {
            return lost;
        }
        self.commit();
        if self.signals.times() == 0 {
            self.push();
        }
        None
    }

    /// Commits what the iteration changed. The commit is no progress of the next one.
    fn commit(&mut self) {
        if !self.run().git.commit {
            return;
        }
        let message = commit_message(&self.record);
        let subject = message.lines().next().unwrap_or_default().to_owned();
        match self.steps(|steps| steps.commit(&message)) {
            None | Some(Ok(None)) => {}
            Some(Ok(Some(commit))) => {
                self.tell(&News::Committed { commit: &commit, subject: &subject });
                self.look_at_the_tree(&format!("committed {commit}"));
            }
            Some(Err(fault)) => self.tell(&News::CommitFailed { why: &fault.line() }),
        }
    }

    fn push(&mut self) {
        if !self.run().git.push {
            return;
        }
        match self.steps(|steps| steps.push()) {
            None => self.tell(&News::PushFailed {
                why: "push failed (no-remote): this is no git repository; git init",
            }),
            Some(Ok(pushed)) => {
                let Pushed { branch, remote, .. } = &pushed;
                if !pushed.was_up_to_date {
                    self.tell(&News::Pushed { branch, remote });
                }
                if pushed.upstream_was_set {
                    self.trusted =
                        self.trusted.take().map(|before| following(&before, branch, remote));
                    let trusted = self.trusted.clone();
                    self.amend(&format!("{branch} follows {remote}"), |record| {
                        record.trusted.clone_from(&trusted);
                    });
                }
            }
            Some(Err(fault)) => self.tell(&News::PushFailed { why: &fault.line() }),
        }
    }

    /// Without its repository a loop cannot go on. Where it ends anyway, its last work is in no commit.
    pub(super) fn end_without_a_repository(&mut self, fault: &GitFault) {
        if self.record.is_live() {
            self.end(Outcome::Blocked, &format!("{}; {}", fault.cause, fault.cure));
        } else if self.run().git.commit {
            self.tell(&News::CommitFailed { why: &fault.line() });
        }
    }

    /// Takes steps of git; `None` outside git.
    pub(super) fn steps<T>(&self, take: impl FnOnce(Steps<'_>) -> T) -> Option<T> {
        let trusted = self.trusted.as_ref()?;
        let stop = || self.signals.times() > 1;
        Some(take(Steps::new(&self.record.place, trusted, &stop)))
    }

    /// What stands at the protected paths; `None` where nothing is protected.
    fn protected(&self) -> Option<protect::Marks> {
        self.record.protected.as_ref()?;
        protected::look(&self.record).ok()
    }

    /// Moves the branch onto another that moved. False when that needs a person, and ended the loop.
    pub(super) fn rebase(&mut self, onto: &str) -> bool {
        let before = self.protected();
        match self.steps(|steps| steps.rebase(onto)) {
            None | Some(Ok(Rebased::NothingNew)) => true,
            Some(Ok(Rebased::Onto(_))) => {
                self.tell(&News::Rebased { onto });
                let after = self.protected();
                if let (Some(began), Some(before), Some(after)) =
                    (&mut self.record.protected, before, after)
                {
                    began.marks = protect::moved(&began.marks, &before, after);
                }
                self.look_at_the_tree(&format!("rebased onto {onto}"));
                true
            }
            Some(Err(fault)) => {
                self.end(Outcome::Blocked, &fault.line());
                false
            }
        }
    }
}
