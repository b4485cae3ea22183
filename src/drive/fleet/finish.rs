//! What follows from the end of a task's loop: the branch lands, goes back to its loop once,
//! becomes a pull request, or stays; then the lease says how the task ended, or that it waits for
//! the next attempt. The branch goes with the lease, as it is here.

use std::path::Path;

use anyhow::{Context, Error, Result, anyhow};
use chrono::{DateTime, Utc};

use super::gate::{FENCED, Job, JobEnd, first_line, tip};
use super::land::{LandEnd, Landing};
use super::worktree::{self, FleetCommands, unplanted};
use crate::drive::error_text::git_trouble;
use crate::engine::events::{EventSink, RunEvent};
use crate::engine::fleet::manifest::MAX_PRIORITY;
use crate::engine::fleet::{
    Fleet, FleetOrder, FleetRequest, JobPhase, LandingMode, Lease, Refusal, TaskEnding, TaskState,
};
use crate::engine::git::GitTrouble;
use crate::engine::record::{Actor, Ending, Loop, Outcome};
use crate::engine::words::news::commit_message;
use crate::world::clock;
use crate::world::git::commit::Drafts;
use crate::world::git::steps::Steps;
use crate::world::git::{self, land};
use crate::world::store::{self, Kept};

impl Job<'_> {
    /// What follows from the loop's end.
    pub(super) fn settled(&self, record: &Loop, sink: &mut dyn EventSink) -> Result<JobEnd> {
        // The fleet may have been started in another way since, as with --land.
        let known = self.memory.manifest();
        let fleet =
            known.map_or_else(|_| self.fleet.clone(), |now| self.fleet.landing_as(&now.value));
        let job = Job { fleet: &fleet, record: Some(record), ..*self };
        job.finished(record, sink).or_else(|error| job.failed(error))
    }

    /// What follows from an error. What no other attempt would do better ends the task with its
    /// reason; a remote that cannot be reached leaves it to the next one.
    pub(super) fn failed(&self, error: Error) -> Result<JobEnd> {
        let trouble = git_trouble(&error);
        if self.signals.times() > 0 || trouble == Some(GitTrouble::Network) {
            return Err(error);
        }
        let why = first_line(&error);
        let needs_a_person =
            trouble.is_some_and(GitTrouble::needs_a_person) || why.starts_with("conflict: ");
        self.ended(if needs_a_person { Outcome::Blocked } else { Outcome::Error }, why)
    }

    fn finished(&self, record: &Loop, sink: &mut dyn EventSink) -> Result<JobEnd> {
        let ending = record.state.ending.clone().ok_or_else(|| anyhow!("the loop has no end"))?;
        if ending.why == FENCED {
            return Ok(JobEnd::Fenced);
        }
        if ending.outcome == Outcome::Interrupted && self.signals.times() > 0 {
            return self.leave(JobEnd::Interrupted);
        }
        if ending.outcome != Outcome::Completed {
            return match &self.lease.sent_back {
                Some(refusal) if ending.outcome != Outcome::Cancelled => self.ended(
                    Outcome::Blocked,
                    format!("{}; its loop: {}", refusal.why(), ending.why),
                ),
                _ => self.close(TaskEnding::of(ending)),
            };
        }
        // The loop was over when this attempt found it: what is left is its end.
        let was_over = record.state.completed == self.lease.carried.completed;
        let mut why = tip(record).astray.or_else(|| self.uncommitted(record));
        if why.is_none() && was_over && self.lease.is_retried {
            why = self.fails_again(record, sink)?;
            if self.signals.times() > 0 {
                return self.leave(JobEnd::Interrupted);
            }
        }
        if let Some(why) = why {
            return self.ended(Outcome::Blocked, format!("its branch lacks its work: {why}"));
        }
        if self.fleet.landing != LandingMode::No && self.is_cancelled() {
            return self.leave(JobEnd::Interrupted);
        }
        self.completed(&TaskEnding::of(ending), &record.place.checkout, sink)
    }

    /// The check that fails where a person has put the branch in order: nobody has run it since. A
    /// landing runs them itself.
    fn fails_again(&self, record: &Loop, sink: &mut dyn EventSink) -> Result<Option<String>> {
        if self.fleet.landing == LandingMode::Main {
            return Ok(None);
        }
        let stop = || self.signals.times() > 0;
        let _slot = self.slot_for_checks(MAX_PRIORITY, &stop, || ())?;
        let commands = FleetCommands::of(self, &stop, sink);
        for check in &record.contract.checks {
            if commands.fails(check, &record.place.checkout)?.is_some() {
                return Ok(Some(format!("`{}` fails on it", check.run)));
            }
        }
        Ok(None)
    }

    /// What follows from the end of a loop that another machine had: its branch is all it takes.
    pub(super) fn finished_elsewhere(
        &self,
        ending: &TaskEnding,
        sink: &mut dyn EventSink,
    ) -> Result<JobEnd> {
        let stop = || self.signals.times() > 0;
        let made = worktree::make(self, &FleetCommands::of(self, &stop, &mut *sink));
        let done = made.and_then(|(folder, _)| self.completed(ending, &folder, sink));
        done.or_else(|error| self.failed(error))
    }

    /// What follows for completed work, of which `checkout` has the branch.
    fn completed(
        &self,
        ending: &TaskEnding,
        checkout: &Path,
        sink: &mut dyn EventSink,
    ) -> Result<JobEnd> {
        match self.fleet.landing {
            LandingMode::Main => self.land(ending, checkout, sink),
            LandingMode::Pr => self.request(ending),
            LandingMode::No => self.close(ending.clone()),
        }
    }

    /// Why the last work of a loop is in no commit. One that failed is tried again, for a person
    /// may have removed its cause.
    fn uncommitted(&self, record: &Loop) -> Option<String> {
        if record.state.git.commits.count == 0 {
            return None;
        }
        let stop = || self.signals.times() > 1;
        let again = || -> Result<()> {
            let trusted = self.fleet.trusted.as_ref().or(record.trusted.as_ref());
            let trusted = trusted.context("there is no repository")?;
            let drafts = Drafts::read(self.home, record)?;
            let drafts = drafts.context("the list of what was there at the start is gone")?;
            let steps = Steps::new(&record.place, trusted, &stop);
            steps.commit(&commit_message(record), &drafts)?;
            Ok(())
        };
        again().err().map(|error| first_line(&error))
    }

    fn land(
        &self,
        ending: &TaskEnding,
        checkout: &Path,
        sink: &mut dyn EventSink,
    ) -> Result<JobEnd> {
        sink.on_event(&RunEvent::Noted("lands its branch"));
        let Some(kept) = self.lands(ending)? else { return Ok(JobEnd::Fenced) };
        let stop = self.ends_by(|order| order == FleetRequest::Cancel);
        let commands = FleetCommands::of(self, &stop, &mut *sink);
        let landing = Landing { job: *self, commands: &commands, checkout, ending };
        match landing.land(kept)? {
            LandEnd::Landed(lease) => {
                // A working tree that stays costs room alone; the work has landed.
                let trees = self.memory.hold_trees(&self.fleet.repository, &stop);
                if trees.is_ok() && unplanted(self.fleet, checkout).is_ok() {
                    land::remove(&self.fleet.repository, checkout);
                }
                let ending = lease.ending().cloned().context("a landed task has ended")?;
                Ok(JobEnd::Ended(ending))
            }
            LandEnd::Refused(refusal) => self.refused(&refusal, sink),
            LandEnd::Requested => self.request(ending),
            LandEnd::Fenced => Ok(JobEnd::Fenced),
            LandEnd::Stopped => self.leave(JobEnd::Interrupted),
        }
    }

    /// What follows from a refusal: once, the task goes back to its loop, if that has an iteration
    /// left to settle it.
    fn refused(&self, refusal: &Refusal, sink: &mut dyn EventSink) -> Result<JobEnd> {
        let mut why = refusal.why();
        if let Refusal::Red { output, .. } = refusal {
            for line in output.lines() {
                sink.on_event(&RunEvent::Noted(&format!("red: {line}")));
            }
        }
        if refusal.can_be_settled() && self.lease.sent_back.is_none() {
            let spent = match self.record {
                Some(record) => self.spent(record),
                None => self.lease.spent_limit().map(|limit| format!("its {limit} is used up")),
            };
            let Some(limit) = spent else {
                sink.on_event(&RunEvent::Noted(&format!("sent back: {why}")));
                return self.sent_back(refusal);
            };
            why = format!("{why}; {limit}: raise it, then --retry");
        }
        if self.lease.sent_back.is_some() {
            self.change_own(|lease| lease.sent_back = Some(refusal.clone()))?;
        }
        self.ended(Outcome::Blocked, why)
    }

    /// Says in the lease that the branch is being landed. `None` where another attempt has the
    /// task.
    pub(super) fn lands(&self, ending: &TaskEnding) -> Result<Option<Kept<Lease>>> {
        let commit = self.branch_now();
        self.change_own(|lease| {
            lease.set_phase(JobPhase::Lands);
            lease.loop_end = Some(ending.clone());
            lease.commit = commit.clone().or(lease.commit.take());
            lease.at = clock::now().wall;
        })
    }

    /// Records that the landing sent the task back, which happens once; then its next loop begins
    /// with the main branch merged in. A crash in between finds it in the lease.
    fn sent_back(&self, refusal: &Refusal) -> Result<JobEnd> {
        let kept = self.change_own(|lease| {
            lease.sent_back = Some(refusal.clone());
            if let Refusal::Conflict(files) = refusal {
                lease.conflicts.clone_from(files);
            }
            // What main brings changes tests and check configuration, too.
            lease.carried.baseline = None;
            (lease.loop_end, lease.loop_id) = (None, None);
        })?;
        Ok(kept.map_or(JobEnd::Fenced, |kept| JobEnd::SentBack(Box::new(kept.value))))
    }

    /// The main branch of the remote, brought into a working tree as the ref `name`.
    pub(super) fn bring_main(&self, folder: &Path, name: &str) -> Result<String> {
        let base = &self.fleet.base;
        let main = self.memory.bring(base, folder, name)?;
        main.with_context(|| format!("the remote has no branch {base}"))
    }

    /// Brings the main branch into the task's own branch, for its next loop. The lease names the
    /// files in conflict before their markers are committed.
    pub(super) fn merge_main(&self, folder: &Path) -> Result<Lease> {
        if !self.memory.is_shared() {
            return Ok(self.lease.clone());
        }
        let main = self.bring_main(folder, &format!("refs/crew/{}/main", self.fleet.name))?;
        let files = land::merge_to_conflicts(folder, &main)?;
        if files.is_empty() {
            return Ok(self.lease.clone());
        }
        let kept = self.change_own(|lease| {
            let known = |file: &&String| !self.lease.conflicts.contains(file);
            lease.conflicts.extend(files.iter().filter(known).cloned());
        })?;
        let kept = kept.context(FENCED)?;
        land::commit_markers(folder, &files)?;
        Ok(kept.value)
    }

    /// Leaves a task whose loop was paused. Where no order of the fleet did that, a person has
    /// paused the loop alone, or has run the fleet again since: a run lifts what was paused before.
    pub(super) fn paused(&self) -> Result<JobEnd> {
        let paused_at = self.paused_at();
        let is_lifted =
            |fleet: &Fleet| fleet.ran_at.zip(paused_at).is_some_and(|(ran, paused)| ran > paused);
        let id = self.lease.id();
        let is_kept = |fleet: &Fleet| {
            fleet.order_of(id).is_none() && !is_lifted(fleet) && !self.lease.lacks_a_share(fleet)
        };
        let mut fleet = self.memory.manifest()?.value;
        if is_kept(&fleet) {
            let order = FleetOrder { what: FleetRequest::Pause, by: Actor::User, reason: None };
            fleet = self.memory.change_manifest(|fleet| {
                // A run may have been first with its write.
                if is_kept(fleet) {
                    fleet.orders.insert(id.clone(), order.clone());
                }
            })?;
        }
        let is_ordered = fleet.order_of(id).is_some();
        self.leave(if is_ordered { JobEnd::Paused } else { JobEnd::Interrupted })
    }

    /// When the task's loop was told to pause; `None` if it is not, as far as this machine knows.
    fn paused_at(&self) -> Option<DateTime<Utc>> {
        let id = self.memory.lease(self.lease.id()).ok()?.value.loop_id?;
        store::paused_at(self.home, &id)
    }

    /// Leaves the task to the next attempt, unless a person has ended it.
    pub(super) fn leave(&self, end: JobEnd) -> Result<JobEnd> {
        let fleet = self.memory.manifest()?.value;
        if let Some(order) = fleet.cancel_of(self.lease.id()) {
            return self.close(TaskEnding::of(order.ending()));
        }
        let written = self.write(TaskState::Waiting)?;
        Ok(if written.is_some() { end } else { JobEnd::Fenced })
    }

    pub(super) fn ended(&self, outcome: Outcome, why: String) -> Result<JobEnd> {
        self.close(TaskEnding::of(Ending::new(outcome, why)))
    }

    /// Ends the task.
    pub(super) fn close(&self, ending: TaskEnding) -> Result<JobEnd> {
        Ok(match self.write(TaskState::Ended(ending))? {
            Some(TaskState::Ended(ending)) => JobEnd::Ended(ending),
            _ => JobEnd::Fenced,
        })
    }

    /// The commit of the task's branch, where this machine has its newest: by its loop or, where
    /// that is gone, as a local fleet left it.
    fn branch_now(&self) -> Option<String> {
        let Lease { branch, commit, carried, .. } = self.lease;
        let is_local = commit.is_none() && carried.completed > 0;
        let here = || git::commit(&self.fleet.repository, &format!("refs/heads/{branch}"));
        self.record.map_or_else(|| is_local.then(here).flatten(), |record| tip(record).commit)
    }

    /// Whether the work of a task is at hand without its loop.
    pub(super) fn has_its_branch(&self) -> bool {
        self.lease.commit.is_some() || self.branch_now().is_some()
    }

    /// Writes the attempt's last state, with the branch as it is here, and returns what was
    /// written; `None` where another attempt has the task. A branch that its remote does not take
    /// stays as it is there, and an end needs a person then: the rest is on this machine.
    fn write(&self, mut state: TaskState) -> Result<Option<TaskState>> {
        let mut written = self.put(self.branch_now().as_ref(), &state);
        if let Err(error) = &written
            && git_trouble(error).is_some_and(GitTrouble::needs_a_person)
        {
            if state != TaskState::Waiting {
                let ending = Ending::new(Outcome::Blocked, first_line(error));
                state = TaskState::Ended(TaskEnding::of(ending));
            }
            written = self.put(None, &state);
        }
        Ok(written?.then_some(state))
    }

    /// Writes it with this commit of its branch; without one that stays as the lease has it. False
    /// where another attempt has the task.
    fn put(&self, commit: Option<&String>, state: &TaskState) -> Result<bool> {
        let kept = self.memory.change(self.lease.id(), |lease| {
            let is_own = lease.is_of(self.attempt);
            lease.state = state.clone();
            lease.at = clock::now().wall;
            // An attempt that is left before its loop goes on has not used up what a person asked.
            if self.record.is_some() || *state != TaskState::Waiting {
                lease.is_retried = false;
            }
            if let Some(record) = self.record {
                lease.accepted_test_changes = None;
                lease.carry(record);
            }
            lease.commit = commit.or(lease.commit.as_ref()).cloned();
            is_own
        })?;
        Ok(kept.value.state == *state)
    }
}
