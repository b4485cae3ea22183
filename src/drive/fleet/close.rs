//! What an attempt writes last: how the task ended, or that it waits for the next attempt. The
//! branch goes with it as it is here, and is left as its remote has it where that takes no more.

use anyhow::{Error, Result};
use chrono::{DateTime, Utc};

use super::attempt::{Job, JobEnd};
use super::tie::{own, tip};
use crate::drive::error_text::{error_text, git_trouble};
use crate::engine::fleet::{
    Carried, Fleet, FleetOrder, FleetRequest, Lease, TaskEnding, TaskState,
};
use crate::engine::git::GitTrouble;
use crate::engine::record::{Actor, Ending, Loop, Outcome};
use crate::world::{clock, git, store};

impl Job<'_> {
    /// Leaves a task whose loop was paused. Where no order of the fleet did that, a person has
    /// paused the loop alone, or has run the fleet again since: a run lifts what was paused before.
    pub(super) fn paused(&self) -> Result<JobEnd> {
        let paused_at = self.paused_at();
        let is_lifted =
            |fleet: &Fleet| fleet.ran_at.zip(paused_at).is_some_and(|(ran, paused)| ran > paused);
        let goes_on = |fleet: &Fleet| is_lifted(fleet) || self.lease.lacks_a_share(fleet);
        let id = self.lease.id();
        let is_kept = |fleet: &Fleet| fleet.order_of(id).is_none() && !goes_on(fleet);
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
        self.leave(if is_ordered { JobEnd::Paused } else { JobEnd::Interrupted }, None)
    }

    /// When the task's loop was told to pause; `None` if it is not, as far as this machine knows.
    fn paused_at(&self) -> Option<DateTime<Utc>> {
        let id = self.memory.lease(self.lease.id()).ok()?.value.loop_id?;
        store::paused_at(self.home, &id)
    }

    /// Leaves the task to the next attempt, unless a person ended it meanwhile.
    pub(super) fn leave(&self, end: JobEnd, record: Option<&Loop>) -> Result<JobEnd> {
        let fleet = self.memory.manifest()?.value;
        let order = fleet.order_of(self.lease.id());
        if let Some(order) = order.filter(|order| order.what == FleetRequest::Cancel) {
            return self.ended(Ending::cancelled(order.by, order.reason.as_deref()), record);
        }
        // What the last iteration could not push goes with it.
        let written = self.write(record, &TaskState::Waiting);
        let is_ours = match written {
            Err(error) if git_trouble(&error).is_some_and(GitTrouble::needs_a_person) => {
                self.put(record, None, &TaskState::Waiting)?
            }
            written => written?,
        };
        Ok(if is_ours { end } else { JobEnd::Fenced })
    }

    pub(super) fn ended(&self, ending: Ending, record: Option<&Loop>) -> Result<JobEnd> {
        self.close(record, TaskEnding::of(ending))
    }

    /// Ends the task. Where its remote does not take the branch, it needs a person: what is there
    /// stays, and the rest is on this machine.
    pub(super) fn close(&self, record: Option<&Loop>, ending: TaskEnding) -> Result<JobEnd> {
        let ended = |ending: &TaskEnding| TaskState::Ended(ending.clone());
        let (ending, is_ours) = match self.write(record, &ended(&ending)) {
            Ok(is_ours) => (ending, is_ours),
            Err(error) if git_trouble(&error).is_some_and(GitTrouble::needs_a_person) => {
                let ending = TaskEnding::of(Ending::new(Outcome::Blocked, first_line(&error)));
                let is_ours = self.put(record, None, &ended(&ending))?;
                (ending, is_ours)
            }
            Err(error) => return Err(error),
        };
        Ok(if is_ours { JobEnd::Ended(ending) } else { JobEnd::Fenced })
    }

    /// The commit of the task's branch, where this machine has its newest: by its loop or, where
    /// that is gone, as a local fleet left it.
    pub(super) fn branch_now(&self, record: Option<&Loop>) -> Option<String> {
        let Lease { branch, commit, carried, .. } = &self.lease;
        let is_local = commit.is_none() && carried.completed > 0;
        let here = || git::commit(&self.fleet.repository, &format!("refs/heads/{branch}"));
        record.map_or_else(|| is_local.then(here).flatten(), |record| tip(record).commit)
    }

    /// Whether the work of a task is at hand without its loop.
    pub(super) fn has_its_branch(&self) -> bool {
        self.lease.commit.is_some() || self.branch_now(None).is_some()
    }

    /// Writes the attempt's last state, with the branch as it is here. False where another attempt
    /// has the task.
    fn write(&self, record: Option<&Loop>, state: &TaskState) -> Result<bool> {
        let commit = self.branch_now(record);
        self.put(record, commit.as_ref(), state)
    }

    /// The same; without a commit the branch stays as its remote has it.
    fn put(
        &self,
        record: Option<&Loop>,
        commit: Option<&String>,
        state: &TaskState,
    ) -> Result<bool> {
        let kept = self.memory.change(self.lease.id(), |lease| {
            if own(lease, self.attempt).is_none() {
                return false;
            }
            lease.state = state.clone();
            lease.at = clock::now().wall;
            // An attempt that is left before its loop goes on has not used up what a person asked.
            if record.is_some() || *state != TaskState::Waiting {
                lease.is_retried = false;
            }
            if record.is_some() {
                lease.accepted_test_changes = None;
            }
            if let Some(record) = record {
                lease.carried = Carried::of(record);
                lease.loop_id = Some(record.id.clone());
            }
            lease.commit = commit.or(lease.commit.as_ref()).cloned();
            true
        })?;
        Ok(kept.value.state == *state)
    }
}

/// What an error says, without the way out.
pub(super) fn first_line(error: &Error) -> String {
    error_text(error).lines().next().unwrap_or_default().to_owned()
}
