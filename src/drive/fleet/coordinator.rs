//! Runs a fleet from a terminal: starts the jobs that may start, reports what happens to each task,
//! and takes up those whose process is gone. It keeps nothing that it could lose: started again, it
//! joins what runs. Two of them for one fleet do not both start jobs. It tolerates a remote that is
//! away, and ends nothing that another crew runs.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Error, Result};

use super::executors::{Executor, JobCall, JobState, SeenJob};
use super::gate;
use super::job::{attempt_here, end_cancelled};
use super::memory::{self, Memory, Stillness};
use crate::drive::error_text::git_trouble;
use crate::engine::fleet::{
    Attempt, Fleet, FleetEvent, FleetPlan, Lease, Pace, Start, TaskEnding, TaskEvent, TaskId,
    TaskState, UnreadableLease,
};
use crate::engine::git::GitTrouble;
use crate::engine::record::{Ending, Outcome, ProcessIdentity};
use crate::world::clock::{self, Deadline};
use crate::world::files::disk::Lock;
use crate::world::process::identity::{identity, is_alive};
use crate::world::process::signals::{Signals, ask_to_end};
use crate::world::store::{Home, Leases, fleets};

/// Between two looks at everything.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// The same where a remote is asked, at first and once nothing has changed for a while.
pub const REMOTE_LOOKS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(15)];
/// How often in a row a task's process may be gone without an iteration to show for it.
const GONE_MAX: u32 = 3;
/// How long jobs get to end after a signal: an agent gets 5 s, a commit may take minutes.
const END_WITHIN: Duration = Duration::from_secs(360);
/// How often in a row an engine may refuse every job that is handed to it.
const REFUSED_MAX: u32 = 5;

/// How the run of a fleet ended.
#[derive(Debug)]
pub enum FleetEnd {
    /// Nothing runs and nothing can start.
    Done,
    /// A signal ended it; what is not done waits.
    Interrupted,
}

/// A fleet that runs.
pub struct Coordinator<'a> {
    pub home: &'a Home,
    pub memory: &'a Memory,
    pub engine: Box<dyn Executor + 'a>,
    pub signals: &'a Signals,
    pub sink: &'a mut dyn FnMut(&FleetEvent),
    pub now: FleetNow,
}

/// What the run of a fleet knows of it; nothing at first.
#[derive(Default)]
pub struct FleetNow {
    /// The jobs handed in here, by their ids.
    jobs: BTreeMap<String, TaskId>,
    /// The newest job of each task.
    newest: BTreeMap<TaskId, String>,
    /// Jobs that have ended, until it is known what that means for their tasks.
    ended: Vec<SeenJob>,
    known: BTreeMap<TaskId, Lease>,
    /// The tasks whose leases could not be read at the last look.
    unreadable: Option<Vec<UnreadableLease>>,
    /// How often in a row each task's process was gone, and after how many iterations.
    gone: BTreeMap<TaskId, (u32, u32)>,
    /// For how long the lease of each task that runs elsewhere has stood still.
    still: BTreeMap<TaskId, Stillness>,
    /// What the engine said of its jobs at the last look.
    seen: Vec<SeenJob>,
    /// Whether something has happened since the pause before the last look.
    has_changed: bool,
    refused: u32,
    /// What the engine said last instead of an answer.
    unanswered: Option<String>,
    outage: Outage,
    lock: Option<Lock>,
}

impl Coordinator<'_> {
    /// Runs until nothing runs and nothing can start.
    pub fn run(&mut self) -> Result<FleetEnd> {
        let [least, most] = if self.memory.is_shared() { REMOTE_LOOKS } else { [LOOK; 2] };
        let (mut was_told, mut pace) = (false, Pace::of(least, most));
        let fleet = self.memory.manifest_here()?;
        loop {
            if self.signals.times() > 0 {
                self.end_all(fleet.is_local());
                return Ok(FleetEnd::Interrupted);
            }
            if self.now.lock.is_none() {
                self.now.lock = fleets::hold_fleet(self.home, &fleet.name)?;
            }
            if self.now.lock.is_none() && !std::mem::replace(&mut was_told, true) {
                self.note(format!("another crew runs {}; this one only watches", fleet.name));
            }
            match self.round() {
                Ok(true) => return Ok(FleetEnd::Done),
                Ok(false) => self.now.outage = Outage::default(),
                Err(error) => {
                    if let Some(told) = self.now.outage.continues(error)? {
                        self.note(told);
                    }
                }
            }
            let deadline = Deadline::after(pace.after(std::mem::take(&mut self.now.has_changed)));
            deadline.poll(LOOK, || self.wakes(fleet.is_local()).then_some(()));
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        (self.sink)(&FleetEvent::Noted(text.into()));
    }

    /// One look at everything, and what follows from it. Whether nothing runs and nothing can
    /// start.
    fn round(&mut self) -> Result<bool> {
        let fleet = self.memory.manifest_here()?;
        let mut leases = self.look(&fleet)?;
        self.tell(&fleet, &leases);
        let starts = self.plan(&fleet, &mut leases).starts;
        if self.now.lock.is_some() {
            self.start_all(&fleet, &starts)?;
        }
        Ok(starts.is_empty() && leases.iter().all(|lease| lease.attempt().is_none()))
    }

    /// Whether the next look cannot wait: a signal came, or a job of this machine has ended.
    fn wakes(&mut self, is_local: bool) -> bool {
        if self.signals.times() > 0 {
            return true;
        }
        // Its end cannot be written while the remote is away.
        let looks = is_local && self.now.outage.told.is_none();
        let seen = if looks { self.engine.list() } else { Ok(Vec::new()) };
        let is_over = |job: &SeenJob| job.state.is_ended() && self.now.jobs.contains_key(&job.id);
        seen.is_ok_and(|jobs| jobs.iter().any(is_over))
    }

    /// The leases as they are, after those whose process is gone are free again.
    fn look(&mut self, fleet: &Fleet) -> Result<Vec<Lease>> {
        self.look_at_jobs();
        let Leases { readable, unreadable } = self.memory.leases()?;
        self.tell_unreadable(&unreadable);
        let mut leases = Vec::new();
        for mut lease in readable {
            let is_ours = self.now.jobs.values().any(|task| task == lease.id());
            let over = self.now.ended.iter().find(|job| job.task == lease.id().as_str()).cloned();
            let is_gone = match &lease.state {
                TaskState::Running(_) if is_ours => false,
                TaskState::Running(attempt) if self.memory.is_here(attempt) => {
                    !self.memory.is_held(lease.id())
                }
                TaskState::Running(attempt) => {
                    let still = self.now.still.entry(lease.id().clone()).or_default();
                    // Another job of the task may have ended because this attempt has it.
                    let is_over =
                        over.as_ref().is_some_and(|job| attempt.job.as_ref() == Some(&job.id));
                    is_over || still.is_stale(&lease.at.to_rfc3339())
                }
                TaskState::Waiting if lease.lacks_a_share(fleet) => false,
                TaskState::Waiting => over.is_some() && fleet.order_of(lease.id()).is_none(),
                TaskState::Ended(_) => false,
            };
            let order = fleet.cancel_of(lease.id());
            let is_left = is_gone || lease.state == TaskState::Waiting;
            if let (true, true, Some(order)) = (is_left, self.now.lock.is_some(), order) {
                // An attempt that has begun since obeys by itself.
                if let Some(_held) = self.memory.hold(lease.id())? {
                    lease = end_cancelled(self.home, self.memory, &lease, order)?;
                }
            } else if is_gone && self.now.lock.is_some() {
                lease = self.take_up(&lease, over.as_ref())?;
            }
            // It was completed just before its fleet was started with --land.
            if lease.wants_landing(fleet) && self.now.lock.is_some() {
                let kept = self.memory.change(lease.id(), |lease| {
                    let is_meant = lease.wants_landing(fleet);
                    lease.reopen();
                    is_meant
                })?;
                lease = kept.value;
            }
            self.now.ended.retain(|job| job.task != lease.id().as_str());
            leases.push(lease);
        }
        Ok(leases)
    }

    /// Those of the first look were told before it, when the fleet was recorded.
    fn tell_unreadable(&mut self, found: &[UnreadableLease]) {
        let before = self.now.unreadable.replace(found.to_vec());
        for it in before.iter().flat_map(|known| found.iter().filter(|it| !known.contains(it))) {
            self.note(format!("{} needs you: {}", it.task, it.why));
        }
    }

    /// Notes the jobs that have ended. Jobs that another crew handed in are joined.
    fn look_at_jobs(&mut self) {
        let seen = match self.engine.list() {
            Ok(seen) => seen,
            // Nothing follows about any job.
            Err(error) => {
                let told = format!("{error:#}");
                if self.now.unanswered.as_ref() != Some(&told) {
                    self.note(told.clone());
                }
                self.now.unanswered = Some(told);
                return;
            }
        };
        self.now.unanswered = None;
        self.now.has_changed |= self.now.seen != seen;
        for job in &seen {
            if job.state.is_ended() {
                self.now.ended.extend(self.now.jobs.remove(&job.id).map(|_| job.clone()));
            } else if let Ok(task) = job.task.parse() {
                self.now.jobs.insert(job.id.clone(), task);
            }
            self.tell_queued(job);
        }
        self.now.seen = seen;
    }

    /// Reports once why the engine lets a job wait; its reasons may change every second.
    fn tell_queued(&mut self, job: &SeenJob) {
        let was_told = |it: &SeenJob| it.id == job.id && !it.state.why().is_empty();
        let JobState::Waiting(why) = &job.state else { return };
        if !why.is_empty() && !self.now.seen.iter().any(was_told) {
            self.note(format!("{} is queued: {why}", job.task));
        }
    }

    /// Frees a task whose process is gone; one whose processes are gone again and again ends. `job`
    /// is what the engine says of its end.
    fn take_up(&mut self, lease: &Lease, job: Option<&SeenJob>) -> Result<Lease> {
        let completed = lease.carried.completed;
        let before = self.now.gone.get(lease.id()).filter(|(_, then)| *then == completed);
        let times = before.map_or(0, |(times, _)| *times) + 1;
        let is_hopeless = times >= GONE_MAX;
        let why = job.map_or("", |job| job.state.why()).to_owned();
        if !is_hopeless {
            (self.sink)(&FleetEvent::Of(lease.id().clone(), TaskEvent::Gone(why)));
        }
        let log = self.now.newest.get(lease.id()).and_then(|id| self.engine.log(id));
        let log = log.map_or_else(String::new, |log| format!(": see {log}"));
        let kept = self.memory.change(lease.id(), |found| {
            let is_another = found.attempt().map(|it| &it.id) != lease.attempt().map(|it| &it.id);
            if is_another || found.ending().is_some() {
                return false;
            }
            found.at = clock::now().wall;
            found.state = if is_hopeless {
                let why = format!("its process was gone {GONE_MAX} times in a row{log}");
                TaskState::Ended(TaskEnding::of(Ending::new(Outcome::Error, why)))
            } else {
                TaskState::Waiting
            };
            true
        })?;
        self.now.gone.insert(lease.id().clone(), (times, completed));
        Ok(kept.value)
    }

    /// Tells what has happened since the last look, in the order in which it happened.
    fn tell(&mut self, fleet: &Fleet, leases: &[Lease]) {
        let is_new = |lease: &&Lease| self.now.known.get(lease.id()) != Some(*lease);
        let mut changed: Vec<&Lease> = leases.iter().filter(is_new).collect();
        changed.sort_by_key(|lease| lease.at);
        for lease in changed {
            let before = self.now.known.get(lease.id());
            self.now.has_changed |= !before.is_some_and(|before| lease.is_still(before));
            let order = fleet.order_of(lease.id()).map(|order| order.what);
            for event in TaskEvent::between(before, lease, order) {
                (self.sink)(&FleetEvent::Of(lease.id().clone(), event));
            }
            self.now.known.insert(lease.id().clone(), lease.clone());
        }
    }

    /// What may start. A job that was handed in counts as running before it has said so.
    fn plan(&self, fleet: &Fleet, leases: &mut [Lease]) -> FleetPlan {
        let handed_in = |lease: &&mut Lease| self.now.jobs.values().any(|task| task == lease.id());
        let waiting = leases.iter_mut().filter(|lease| lease.state == TaskState::Waiting);
        let mut here = None;
        for lease in waiting.filter(handed_in) {
            let attempt = here.get_or_insert_with(|| attempt_here(self.home, "", lease.at));
            lease.state = TaskState::Running(Attempt { began_at: lease.at, ..attempt.clone() });
        }
        let is_all = self.now.unreadable.as_ref().is_none_or(Vec::is_empty);
        gate::plan(fleet, leases, is_all)
    }

    /// Starts what may start. An engine that refuses all of it, again and again, ends the run.
    fn start_all(&mut self, fleet: &Fleet, starts: &[Start]) -> Result<()> {
        let (mut is_taken, mut refusal) = (false, None);
        for start in starts.iter().take_while(|_| self.signals.times() == 0) {
            match self.start(fleet, start)? {
                Ok(()) => is_taken = true,
                Err(error) => {
                    let why = gate::first_line(&error);
                    self.note(format!("{} could not start: {why}", start.task));
                    refusal = Some(error);
                }
            }
        }
        self.now.has_changed |= is_taken;
        match refusal {
            Some(error) if !is_taken => {
                self.now.refused += 1;
                if self.now.refused >= REFUSED_MAX {
                    return Err(error);
                }
            }
            _ => self.now.refused = 0,
        }
        Ok(())
    }

    /// Hands a task to the engine, or says why the engine has refused it.
    fn start(&mut self, fleet: &Fleet, start: &Start) -> Result<Result<()>> {
        let Start { task, reserved_micros } = start;
        let kept = self.memory.change(task, |lease| {
            lease.reserved_micros = *reserved_micros;
            lease.state == TaskState::Waiting
        })?;
        if kept.value.state != TaskState::Waiting {
            return Ok(Ok(()));
        }
        Ok(self.engine.submit(&JobCall::of(fleet, task)).map(|id| {
            self.now.newest.insert(task.clone(), id.clone());
            self.now.jobs.insert(id, task.clone());
        }))
    }

    /// Ends the jobs of this fleet that the engine knows, in order, and waits for them; also those
    /// that an earlier crew started. Nothing, where another crew runs the fleet, and where a
    /// terminal was closed whose jobs run elsewhere.
    fn end_all(&mut self, is_local: bool) {
        let (told, ends) = if self.now.lock.is_none() {
            ("this crew only watched: the other one runs on", false)
        } else if !is_local && self.signals.is_hangup() {
            ("the terminal was closed: the jobs run on, and crew fleet run joins them", false)
        } else {
            ("ending: each agent is stopped, its work is kept, and the task waits", true)
        };
        self.note(told);
        if !ends {
            return;
        }
        self.now.jobs.keys().for_each(|id| drop(self.engine.cancel(id)));
        let joined = self.joined();
        joined.iter().for_each(ask_to_end);
        Deadline::after(END_WITHIN).poll(LOOK, || {
            if let Ok(seen) = self.engine.list() {
                let lives = |it: &SeenJob| !it.state.is_ended();
                self.now.jobs.retain(|id, _| seen.iter().any(|it| it.id == *id && lives(it)));
            }
            let is_left = !self.now.jobs.is_empty() || joined.iter().any(is_alive);
            (!is_left || self.signals.times() > 1).then_some(())
        });
    }

    /// The jobs of this machine that another crew has started.
    fn joined(&self) -> Vec<ProcessIdentity> {
        let mine = |attempt: &&Attempt| self.now.jobs.contains_key(&attempt.pid.to_string());
        let held = self.now.known.values().filter(|lease| self.memory.is_held(lease.id()));
        let here = held.filter_map(Lease::attempt).filter(|it| memory::is_here(self.home, it));
        here.filter(|it| !mine(it)).filter_map(|attempt| identity(attempt.pid)).collect()
    }
}

/// How many looks in a row may fail with an answer that crew does not understand, or that refuses
/// it; there are at most 15 s between two.
const ODD_MAX: u32 = 20;

/// Looks in a row that have failed.
#[derive(Debug, Default)]
struct Outage {
    /// How many of the last ones had an answer that says something else.
    odd: u32,
    /// What was reported last; `None` where the last look did not fail.
    told: Option<String>,
}

impl Outage {
    /// Takes in that a look failed, and returns what is new about it.
    ///
    /// # Errors
    /// The look's own, where another one would not help.
    fn continues(&mut self, error: Error) -> Result<Option<String>> {
        self.odd = match git_trouble(&error) {
            Some(GitTrouble::Network) => 0,
            Some(GitTrouble::Other | GitTrouble::Auth) if self.odd < ODD_MAX => self.odd + 1,
            _ => return Err(error),
        };
        let told = error.to_string().lines().next().unwrap_or_default().to_owned();
        let is_new = self.told.replace(told.clone()).as_ref() != Some(&told);
        Ok(is_new.then(|| format!("{told}; it is asked again")))
    }
}

#[cfg(test)]
#[path = "coordinator_tests.rs"]
mod tests;

#[cfg(test)]
mod outage_tests {
    use super::*;
    use crate::engine::git::{GitFault, GitStep};

    #[test]
    fn an_outage_is_told_once_for_each_reason_and_an_odd_answer_is_not_borne_for_ever() {
        let fault = |trouble, cause: &str| GitFault::new(GitStep::Lease, trouble, cause, "look");
        let mut outage = Outage::default();
        let bear = |outage: &mut Outage, trouble, cause| {
            outage.continues(fault(trouble, cause).into()).map_err(|error| error.to_string())
        };
        let told = "lease failed: refused; it is asked again";
        assert_eq!(bear(&mut outage, GitTrouble::Network, "refused"), Ok(Some(told.to_owned())));
        for _ in 0..1000 {
            assert_eq!(bear(&mut outage, GitTrouble::Network, "refused"), Ok(None));
        }
        let borne = (0..100).take_while(|_| bear(&mut outage, GitTrouble::Other, "odd").is_ok());
        assert_eq!(borne.count(), 20);
        bear(&mut Outage::default(), GitTrouble::NoRemote, "no such repository").unwrap_err();
    }
}
