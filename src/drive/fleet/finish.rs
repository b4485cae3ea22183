//! What follows from the end of a task's loop: the branch lands, goes back to its loop once,
//! becomes a pull request, or stays; then the lease says how the task ended.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};

use super::attempt::{AfterLoop, Job, JobEnd};
use super::commands::FleetCommands;
use super::land::{LandEnd, Landing, send_back};
use super::places::job_slots;
use super::request;
use super::tie::{FENCED, own};
use super::workspace::unplanted;
use crate::drive::error_text::{error_text, git_trouble};
use crate::engine::events::{EventSink, RunEvent};
use crate::engine::fleet::landing::Refusal;
use crate::engine::fleet::lease::{Carried, JobPhase, Landed, Lease, TaskEnding, TaskState};
use crate::engine::fleet::manifest::{Fleet, FleetOrder, FleetRequest, LandingMode};
use crate::engine::git::GitTrouble;
use crate::engine::record::{Actor, Ending, Loop, Outcome};
use crate::engine::words::commit_message::commit_message;
use crate::world::clock::{self, Stopwatch};
use crate::world::git::drafts::Drafts;
use crate::world::git::steps::Steps;
use crate::world::git::{self, hub, land};
use crate::world::store::fleets::Kept;

/// Milliseconds between two looks for a cancel during a landing.
const ORDERS_MS: u64 = 5000;
/// The longest that one talk with the remote may take for such a look, which has two.
const ORDERS_WITHIN: Duration = Duration::from_secs(7);

impl Job<'_> {
    /// What follows from the loop's end.
    pub(super) fn settled(&self, record: &Loop, sink: &mut dyn EventSink) -> Result<AfterLoop> {
        // The fleet may have been started in another way meanwhile, as with --land.
        let known = self.memory.manifest().map(|kept| kept.value);
        let now = |landing| Fleet { landing, ..self.fleet.clone() };
        let fleet = known.map_or_else(|_| self.fleet.clone(), |known| now(known.landing));
        let job = Job { fleet: &fleet, lease: self.lease.clone(), ..*self };
        job.finished(record, sink)
            .or_else(|error| self.failed(error, Some(record)).map(AfterLoop::Over))
    }

    /// What follows from an error. What no other attempt would do better ends the task with its
    /// reason; a remote that cannot be reached leaves it to the next one.
    pub(super) fn failed(&self, error: Error, record: Option<&Loop>) -> Result<JobEnd> {
        let trouble = git_trouble(&error);
        if self.signals.times() > 0 || trouble == Some(GitTrouble::Network) {
            return Err(error);
        }
        let why = first_line(&error);
        let needs_a_person =
            trouble.is_some_and(GitTrouble::needs_a_person) || why.starts_with("conflict: ");
        let outcome = if needs_a_person { Outcome::Blocked } else { Outcome::Error };
        self.ended(Ending::new(outcome, why), record)
    }

    /// Fails if an agent has planted a program in the configuration of a repository since the fleet
    /// was started or came to this machine.
    pub(super) fn unplanted(&self, folder: &Path) -> Result<()> {
        unplanted(self.fleet, folder)
    }

    fn finished(&self, record: &Loop, sink: &mut dyn EventSink) -> Result<AfterLoop> {
        let ending = record.state.ending.clone().ok_or_else(|| anyhow!("the loop has no end"))?;
        if ending.why == FENCED {
            return Ok(AfterLoop::Over(JobEnd::Fenced));
        }
        if ending.outcome == Outcome::Interrupted && self.signals.times() > 0 {
            return self.leave(JobEnd::Interrupted, Some(record)).map(AfterLoop::Over);
        }
        if ending.outcome != Outcome::Completed {
            let ending = match &self.lease.sent_back {
                Some(refusal) if ending.outcome != Outcome::Cancelled => {
                    let why = format!("{}; its loop: {}", refusal.why(), ending.why);
                    Ending::new(Outcome::Blocked, why)
                }
                _ => ending,
            };
            return self.ended(ending, Some(record)).map(AfterLoop::Over);
        }
        if let Some(why) = self.uncommitted(record) {
            let ending = Ending::new(Outcome::Blocked, format!("its work is in no commit: {why}"));
            return self.ended(ending, Some(record)).map(AfterLoop::Over);
        }
        if self.fleet.landing != LandingMode::No && self.is_cancelled() {
            return self.leave(JobEnd::Interrupted, Some(record)).map(AfterLoop::Over);
        }
        match self.fleet.landing {
            LandingMode::Main => self.land(&ending, record, sink),
            LandingMode::Pr => self.request(ending, record).map(AfterLoop::Over),
            LandingMode::No => self.ended(ending, Some(record)).map(AfterLoop::Over),
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
            let drafts = Drafts::read(self.home, &record.id)?;
            let drafts = drafts.context("the list of what was there at the start is gone")?;
            let steps = Steps::new(&record.place, trusted, &stop);
            steps.commit(&commit_message(record), Some(&drafts))?;
            Ok(())
        };
        again().err().map(|error| first_line(&error))
    }

    fn land(&self, ending: &Ending, record: &Loop, sink: &mut dyn EventSink) -> Result<AfterLoop> {
        sink.on_event(&RunEvent::Noted("lands its branch"));
        let Some(kept) = self.lands(record)? else { return Ok(AfterLoop::Over(JobEnd::Fenced)) };
        let asked = Cell::new((Stopwatch::start(), false));
        let stop = || {
            let (since, was_cancelled) = asked.get();
            if since.elapsed_ms() >= ORDERS_MS && !was_cancelled {
                let is_cancelled = self.is_cancelled();
                asked.set((Stopwatch::start(), is_cancelled));
            }
            self.signals.times() > 0 || asked.get().1
        };
        let remote = self.fleet.remote.as_ref().context("landing needs a remote")?;
        let (task, signals) = (self.lease.id(), self.signals);
        let commands = FleetCommands::of(self.home, &self.fleet.name, task, &stop, &mut *sink);
        let landing = Landing {
            home: self.home,
            memory: self.memory,
            fleet: self.fleet,
            remote,
            attempt: self.attempt,
            slots: job_slots(self.fleet),
            commands: &commands,
            signals,
        };
        let checkout = &record.place.checkout;
        let ended = |lease: &Lease, commit: &str| {
            let landed = Some(Landed::Main(commit.to_owned()));
            let ending = TaskEnding { landed, ..TaskEnding::of(ending.clone()) };
            let (state, at) = (TaskState::Ended(ending), clock::now().wall);
            Lease {
                state,
                at,
                is_retried: false,
                is_renewed: false,
                accepted_exam: None,
                ..lease.clone()
            }
        };
        match landing.land(kept, checkout, &ended)? {
            LandEnd::Landed(lease) => {
                // A working tree that stays costs room alone; the work has landed.
                let trees = self.memory.hold_trees(&self.fleet.repository, &stop);
                if trees.is_ok() && self.unplanted(checkout).is_ok() {
                    land::remove(&self.fleet.repository, checkout);
                }
                drop(trees);
                let ending = lease.ending().cloned().context("a landed task has ended")?;
                Ok(AfterLoop::Over(JobEnd::Ended(ending)))
            }
            LandEnd::Refused(refusal) => self.refused(&refusal, record, sink),
            LandEnd::Fenced => Ok(AfterLoop::Over(JobEnd::Fenced)),
            LandEnd::Stopped => self.leave(JobEnd::Interrupted, Some(record)).map(AfterLoop::Over),
        }
    }

    /// What follows from a refusal: once, the task goes back to its loop, if that has an iteration
    /// left to settle it.
    fn refused(
        &self,
        refusal: &Refusal,
        record: &Loop,
        sink: &mut dyn EventSink,
    ) -> Result<AfterLoop> {
        let mut why = refusal.why();
        if refusal.can_be_settled() && self.lease.sent_back.is_none() {
            let Some(limit) = self.spent(record) else {
                sink.on_event(&RunEvent::Noted(&format!("sent back: {why}")));
                return self.sent_back(refusal, record);
            };
            why = format!("{why}; {limit}: raise it, then --retry");
        }
        self.ended(Ending::new(Outcome::Blocked, why), Some(record)).map(AfterLoop::Over)
    }

    /// Says in the lease that the branch is being landed. `None` where another attempt has the
    /// task.
    fn lands(&self, record: &Loop) -> Result<Option<Kept<Lease>>> {
        let commit = git::head(&record.place.checkout).1;
        let kept = self.memory.change(self.lease.id(), |lease| {
            let Some(attempt) = own(lease, self.attempt) else { return false };
            attempt.phase = JobPhase::Lands;
            lease.needs_no_agent = true;
            lease.carried = Carried::of(record);
            lease.loop_id = Some(record.id.clone());
            lease.commit.clone_from(&commit);
            lease.at = clock::now().wall;
            true
        })?;
        let is_ours = kept.value.is_of(self.attempt);
        Ok(is_ours.then_some(kept))
    }

    fn is_cancelled(&self) -> bool {
        // It is asked while a check runs, which nobody watches meanwhile.
        let memory = self.memory.clone().with_haste(self.signals, ORDERS_WITHIN);
        let fleet = memory.manifest().map(|kept| kept.value);
        fleet.is_ok_and(|fleet| {
            fleet.order_of(self.lease.id()).is_some_and(|it| it.what == FleetRequest::Cancel)
        })
    }

    /// Records that the landing sent the task back, which happens once; then its next loop begins
    /// with the main branch merged in. A crash in between finds it in the lease.
    fn sent_back(&self, refusal: &Refusal, record: &Loop) -> Result<AfterLoop> {
        let kept = self.memory.change(self.lease.id(), |lease| {
            let is_ours = own(lease, self.attempt).is_some();
            if is_ours {
                lease.sent_back = Some(refusal.clone());
                if let Refusal::Conflict(files) = refusal {
                    lease.conflicts.clone_from(files);
                }
                lease.needs_no_agent = false;
                // What main brings changes the exam, too.
                lease.carried = Carried { exam: None, ..Carried::of(record) };
                lease.loop_id = None;
            }
            is_ours
        })?;
        let is_ours = kept.value.is_of(self.attempt);
        Ok(if is_ours {
            AfterLoop::Again(Box::new(kept.value))
        } else {
            AfterLoop::Over(JobEnd::Fenced)
        })
    }

    /// Brings the main branch into the task's own branch, for its next loop.
    pub(super) fn merge_main(&self, folder: &Path) -> Result<()> {
        let Some(hub) = self.memory.hub() else { return Ok(()) };
        let base = &self.fleet.base;
        let main = self.memory.fetch_branch(base)?;
        let main = main.with_context(|| format!("the remote has no branch {base}"))?;
        let name = format!("refs/crew/{}/main", self.fleet.name);
        hub::give(hub, folder, &main, &name)?;
        send_back(folder, &main)
    }

    fn request(&self, ending: Ending, record: &Loop) -> Result<JobEnd> {
        if self.lands(record)?.is_none() {
            return Ok(JobEnd::Fenced);
        }
        let stop = || self.signals.times() > 0;
        match request::open(self.fleet, &self.lease, &record.place.checkout, &stop) {
            Ok(address) => {
                let landed = Some(Landed::Request(address));
                self.close(Some(record), TaskEnding { landed, ..TaskEnding::of(ending) })
            }
            Err(_) if stop() => self.leave(JobEnd::Interrupted, Some(record)),
            Err(error) => {
                let why = format!("pull request: {error:#}");
                self.ended(Ending::new(Outcome::Blocked, why), Some(record))
            }
        }
    }

    pub(super) fn paused(&self) -> Result<JobEnd> {
        if self.memory.manifest()?.value.order_of(self.lease.id()).is_none() {
            let order = FleetOrder { what: FleetRequest::Pause, by: Actor::User, reason: None };
            self.memory.change_manifest(|fleet| {
                fleet.orders.insert(self.lease.id().clone(), order.clone());
            })?;
        }
        self.leave(JobEnd::Paused, None)
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
    fn close(&self, record: Option<&Loop>, ending: TaskEnding) -> Result<JobEnd> {
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

    /// Writes the attempt's last state, with the branch as it is here. False where another attempt
    /// has the task.
    fn write(&self, record: Option<&Loop>, state: &TaskState) -> Result<bool> {
        let commit = record.and_then(|record| git::head(&record.place.checkout).1);
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
                lease.accepted_exam = None;
            }
            if let Some(record) = record {
                lease.carried = Carried::of(record);
                lease.loop_id = Some(record.id.clone());
                lease.commit = commit.or(lease.commit.as_ref()).cloned();
            }
            true
        })?;
        Ok(kept.value.state == *state)
    }
}

/// What an error says, without the way out.
fn first_line(error: &Error) -> String {
    error_text(error).lines().next().unwrap_or_default().to_owned()
}
