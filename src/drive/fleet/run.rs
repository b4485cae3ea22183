//! Runs a fleet from a terminal: starts the jobs that may start, reports what happens to each task,
//! and takes up those whose process is gone. It keeps nothing that it could lose: started again, it
//! joins what runs. Two of them for one fleet do not both start jobs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};

use super::engines::{Engine, JobCall, JobState, LOCAL};
use super::memory::Memory;
use super::seat::{self, Stillness};
use crate::engine::fleet::events::FleetEvent;
use crate::engine::fleet::lease::{Attempt, JobPhase, Lease, TaskEnding, TaskState};
use crate::engine::fleet::manifest::Fleet;
use crate::engine::fleet::overlap::overlap;
use crate::engine::fleet::plan::{FleetPlan, Start};
use crate::engine::fleet::task::TaskId;
use crate::engine::record::{Ending, Outcome};
use crate::world::clock::{self, Deadline};
use crate::world::files::disk::Lock;
use crate::world::process::signals::Signals;
use crate::world::slots;
use crate::world::store::{Home, fleets};

/// Between two looks at everything.
const LOOK: Duration = Duration::from_millis(100);
/// The same where a remote is asked.
const REMOTE_LOOK: Duration = Duration::from_secs(1);
/// How long jobs get to end after a signal: an agent gets 5 s, a commit may take minutes.
const END_WITHIN: Duration = Duration::from_secs(360);
/// How often in a row a task's process may be gone without an iteration to show for it.
const GONE_MAX: u32 = 3;
/// How often in a row an engine may refuse a job.
const REFUSED_MAX: u32 = 5;

/// How many tasks of a fleet run at once. A cluster gives each job its place by itself.
pub fn slots_of(fleet: &Fleet) -> usize {
    let slots = match fleet.slots {
        0 if fleet.engine != LOCAL => u32::MAX,
        0 => slots::default_count().count,
        slots => slots,
    };
    usize::try_from(slots).unwrap_or(usize::MAX)
}

/// How many slots of its machine a job of the fleet shares; 0 where the engine has given it a
/// place.
pub fn job_slots(fleet: &Fleet) -> u32 {
    if fleet.engine == LOCAL { u32::try_from(slots_of(fleet)).unwrap_or(1) } else { 0 }
}

/// How the run of a fleet ended.
#[derive(Debug)]
pub enum FleetEnd {
    /// Nothing runs and nothing can start.
    Done(Box<Fleet>),
    /// A signal ended it; what is not done waits.
    Interrupted,
}

/// A fleet that runs.
pub struct Coordinator<'a> {
    pub home: &'a Home,
    pub memory: &'a Memory,
    pub engine: Box<dyn Engine + 'a>,
    pub slots: usize,
    pub signals: &'a Signals,
    pub sink: &'a mut dyn FnMut(&FleetEvent),
    /// The jobs handed in here, by their ids.
    jobs: BTreeMap<String, TaskId>,
    /// The newest job of each task.
    newest: BTreeMap<TaskId, String>,
    known: BTreeMap<TaskId, Lease>,
    /// How often in a row each task's process was gone, and after how many iterations.
    gone: BTreeMap<TaskId, (u32, u32)>,
    /// For how long the lease of each task that runs elsewhere has stood still.
    still: BTreeMap<TaskId, Stillness>,
    refused: u32,
    /// What the engine said last instead of an answer.
    unanswered: Option<String>,
    lock: Option<Lock>,
}

impl<'a> Coordinator<'a> {
    /// A fleet of this machine, `slots` at once.
    pub fn new(
        home: &'a Home,
        memory: &'a Memory,
        engine: Box<dyn Engine + 'a>,
        slots: usize,
        signals: &'a Signals,
        sink: &'a mut dyn FnMut(&FleetEvent),
    ) -> Self {
        Self {
            home,
            memory,
            engine,
            slots,
            signals,
            sink,
            jobs: BTreeMap::new(),
            newest: BTreeMap::new(),
            known: BTreeMap::new(),
            gone: BTreeMap::new(),
            still: BTreeMap::new(),
            refused: 0,
            unanswered: None,
            lock: None,
        }
    }

    /// Runs until nothing runs and nothing can start.
    pub fn run(&mut self) -> Result<FleetEnd> {
        let mut was_told = false;
        loop {
            if self.signals.times() > 0 {
                self.end_all();
                return Ok(FleetEnd::Interrupted);
            }
            let fleet = self.memory.manifest()?.value;
            if self.lock.is_none() {
                self.lock = fleets::hold_fleet(self.home, &fleet.name)?;
            }
            if self.lock.is_none() && !std::mem::replace(&mut was_told, true) {
                let told = format!("another crew runs {}; this one only watches", fleet.name);
                (self.sink)(&FleetEvent::Noted(told));
            }
            let mut leases = self.look(&fleet)?;
            self.tell(&leases);
            let starts = self.plan(&fleet, &mut leases).starts;
            if self.lock.is_some() {
                for start in &starts {
                    self.start(&fleet, start)?;
                }
            }
            let runs = leases.iter().any(|lease| lease.attempt().is_some());
            if starts.is_empty() && !runs {
                return Ok(FleetEnd::Done(Box::new(fleet)));
            }
            let deadline =
                Deadline::after(if self.memory.is_shared() { REMOTE_LOOK } else { LOOK });
            deadline.poll(LOOK, || (self.signals.times() > 0).then_some(()));
        }
    }

    /// The leases as they are, after those whose process is gone are free again.
    fn look(&mut self, fleet: &Fleet) -> Result<Vec<Lease>> {
        let ended = self.look_at_jobs();
        let mut leases = Vec::new();
        for kept in self.memory.leases()? {
            let mut lease = kept.value.clone();
            let is_ours = self.jobs.values().any(|task| task == lease.id());
            let over = ended.iter().find(|(_, task)| task == lease.id());
            let is_gone = match &lease.state {
                TaskState::Running(_) if is_ours => false,
                TaskState::Running(attempt) if seat::is_here(self.home, attempt) => {
                    !self.memory.is_held(lease.id())
                }
                TaskState::Running(attempt) => {
                    let still = self.still.entry(lease.id().clone()).or_default();
                    // Another job of the task may have ended because this attempt has it.
                    let is_over = over.is_some_and(|(job, _)| attempt.job.as_ref() == Some(job));
                    is_over || still.is_stale(&kept.id)
                }
                TaskState::Waiting => over.is_some() && fleet.order_of(lease.id()).is_none(),
                TaskState::Ended(_) => false,
            };
            if is_gone && self.lock.is_some() {
                lease = self.take_up(&lease)?;
            }
            leases.push(lease);
        }
        Ok(leases)
    }

    /// The jobs that have ended, with their tasks. Jobs that another crew handed in are joined.
    fn look_at_jobs(&mut self) -> Vec<(String, TaskId)> {
        let seen = match self.engine.list() {
            Ok(seen) => seen,
            // Nothing follows about any job.
            Err(error) => {
                let told = format!("{error:#}");
                if self.unanswered.as_ref() != Some(&told) {
                    (self.sink)(&FleetEvent::Noted(told.clone()));
                }
                self.unanswered = Some(told);
                return Vec::new();
            }
        };
        self.unanswered = None;
        let mut ended = Vec::new();
        for job in seen {
            if !matches!(job.state, JobState::Ended { .. }) {
                if let Ok(task) = job.task.parse() {
                    self.jobs.insert(job.id, task);
                }
            } else if let Some(task) = self.jobs.remove(&job.id) {
                ended.push((job.id, task));
            }
        }
        ended
    }

    /// Frees a task whose process is gone; one whose processes are gone again and again ends.
    fn take_up(&mut self, lease: &Lease) -> Result<Lease> {
        let completed = lease.carried.completed;
        let gone = self.gone.entry(lease.id().clone()).or_insert((0, completed));
        *gone = if gone.1 == completed { (gone.0 + 1, completed) } else { (1, completed) };
        let is_hopeless = gone.0 >= GONE_MAX;
        (self.sink)(&FleetEvent::Gone { task: lease.id().clone() });
        let log = self.newest.get(lease.id()).and_then(|id| self.engine.log(id));
        let log = log.map_or_else(String::new, |log| format!(": see {log}"));
        let kept = self.memory.change(lease.id(), |found| {
            if found.attempt().map(|it| &it.id) != lease.attempt().map(|it| &it.id) {
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
        Ok(kept.value)
    }

    fn tell(&mut self, leases: &[Lease]) {
        for lease in leases {
            let before = self.known.get(lease.id());
            if before != Some(lease) {
                FleetEvent::between(before, lease).iter().for_each(&mut *self.sink);
                self.known.insert(lease.id().clone(), lease.clone());
            }
        }
    }

    /// What may start. A job that was handed in counts as running before it has said so.
    fn plan(&self, fleet: &Fleet, leases: &mut [Lease]) -> FleetPlan {
        for lease in leases.iter_mut().filter(|lease| lease.state == TaskState::Waiting) {
            if self.jobs.values().any(|task| task == lease.id()) {
                lease.state = TaskState::Running(Attempt {
                    id: String::new(),
                    host: String::new(),
                    seat: String::new(),
                    pid: 0,
                    job: None,
                    began_at: lease.at,
                    phase: JobPhase::Prepares,
                });
            }
        }
        FleetPlan::of(fleet, leases, self.slots, &overlap)
    }

    fn start(&mut self, fleet: &Fleet, start: &Start) -> Result<()> {
        let Start { task, reserved_micros } = start;
        let kept = self.memory.change(task, |lease| {
            lease.reserved_micros = *reserved_micros;
            lease.state == TaskState::Waiting
        })?;
        if kept.value.state != TaskState::Waiting {
            return Ok(());
        }
        let call = JobCall {
            fleet: fleet.name.clone(),
            task: task.to_string(),
            words: Self::words(fleet),
            folder: Self::folder(fleet),
        };
        match self.engine.submit(&call) {
            Ok(id) => {
                self.refused = 0;
                self.newest.insert(task.clone(), id.clone());
                self.jobs.insert(id, task.clone());
            }
            Err(error) => {
                self.refused += 1;
                if self.refused >= REFUSED_MAX {
                    bail!(error);
                }
                (self.sink)(&FleetEvent::Noted(format!("{task} could not start: {error:#}")));
            }
        }
        Ok(())
    }

    /// A job elsewhere finds its fleet by the remote.
    fn words(fleet: &Fleet) -> Vec<String> {
        let remote = fleet.remote.as_ref().filter(|_| fleet.engine != LOCAL);
        remote.map(|remote| format!("--remote={}", remote.url)).into_iter().collect()
    }

    /// Where a job begins: a machine elsewhere does not have this one's folders.
    fn folder(fleet: &Fleet) -> PathBuf {
        if fleet.engine == LOCAL { fleet.repository.clone() } else { PathBuf::from("/") }
    }

    /// Ends the jobs that were started here, in order, and waits for them.
    fn end_all(&mut self) {
        let told = "ending: each agent is stopped, its work is kept, and the task waits";
        (self.sink)(&FleetEvent::Noted(told.to_owned()));
        for id in self.jobs.keys() {
            let _ = self.engine.cancel(id);
        }
        let deadline = Deadline::after(END_WITHIN);
        while !self.jobs.is_empty() && !deadline.passed() && self.signals.times() < 2 {
            let seen = self.engine.list().unwrap_or_default();
            let lives = |id: &String| {
                seen.iter().any(|it| it.id == *id && !matches!(it.state, JobState::Ended { .. }))
            };
            self.jobs.retain(|id, _| lives(id));
            clock::sleep(LOOK);
        }
    }
}
