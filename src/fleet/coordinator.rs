//! The loop of a coordinator: what happened goes into `step`, and what follows is done. One thread
//! decides and writes the record. Two others do what takes long, each one thing after the other:
//! git between clones, repository and remote; and landings. A coordinator that was killed is simply
//! started again: it takes up what still runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Error, Result, anyhow, bail};

use super::attempt::{self, remote};
use super::effects::{Done, Worker};
use super::executors::{Executor, JobState, SeenJob, executor_of, executors_of_user};
use super::files::FleetFiles;
use super::folder_watch::FolderWatch;
use super::landing::Prepared;
use super::lines;
use super::record::{FleetRecord, FleetSetup, Holder, LOCAL, TaskRecord, TaskState};
use super::spec::{AttemptReport, Coordination, DescribedTask};
use super::step::{Effect, FleetEvent, FleetLine, step};
use super::store::{BaseMove, FleetStore, RecordStore, RemoteAccess, StoreFault, WaitingRequests};
use super::tasks::DescribedFleet;
use crate::drive::error_text::git_trouble;
use crate::engine::fleet::{Pace, Refusal, TaskId};
use crate::engine::git::GitTrouble;
use crate::parse::arguments::FleetRunArgs;
use crate::world::clock::{self, Deadline, Stopwatch};
use crate::world::files::disk;
use crate::world::process::descendants;
use crate::world::process::signals::Signals;
use crate::world::store::Home;
use crate::world::{env, slots};

/// Between two looks at everything of this machine, at first and once nothing has changed for a
/// while; what a child or a signal changes is seen sooner.
const LOOKS: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];
/// The same where an executor and a remote are asked.
const REMOTE_LOOKS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(15)];
/// How often a sleeping coordinator looks whether something woke it.
const WAKES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];
const FETCH_AGAIN: Duration = Duration::from_secs(5);
/// How long what was started gets to end: an agent gets 5 s, a commit may take minutes.
const END_WITHIN: Duration = Duration::from_secs(360);
/// How long a job that nobody has named is looked for after a start.
const UNNAMED_MS: u64 = 60_000;

/// How a coordinator ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoordinatorEnd {
    /// Nothing runs and nothing can start.
    Done,
    /// By a signal; what is not done waits.
    Interrupted,
}

/// Runs a fleet until nothing runs and nothing can start. `say` gets each line for people, without
/// the time.
///
/// # Errors
/// If another coordinator has the fleet, or takes it while this one runs; what this one started on
/// this machine has ended then. If the executor takes nothing.
pub fn coordinate(
    home: &Home,
    described: DescribedFleet,
    arguments: &FleetRunArgs,
    signals: &Signals,
    say: &mut dyn FnMut(&str),
) -> Result<CoordinatorEnd> {
    let DescribedFleet { setup, tasks, .. } = described;
    let stop = || signals.times() > 1;
    let executor = executor_of(home, &setup, &executors_of_user()?, &stop)?;
    let replaces = arguments.replace_coordinator;
    let (store, found) = FleetStore::take(home, &setup, signals, replaces, say)?;
    let now = clock::now().wall;
    let holder = Holder::myself(home, now)?;
    let record = match found {
        Some(mut record) => {
            record.take_up(setup, holder);
            record
        }
        None => FleetRecord::begin(setup, format!("{:016x}", env::random()), holder, now),
    };
    let mut coordinator = Coordinator::new(home, Box::new(store), executor, record, signals, say);
    coordinator.watched = Some(FolderWatch::of(home, arguments, &coordinator.record.terms)?);
    coordinator.run(tasks)
}

/// A fleet that runs.
pub(super) struct Coordinator<'a> {
    pub(super) home: &'a Home,
    pub(super) files: FleetFiles,
    pub(super) store: Box<dyn RecordStore + 'a>,
    pub(super) executor: Box<dyn Executor + 'a>,
    pub(super) signals: &'a Signals,
    say: &'a mut dyn FnMut(&str),
    pub(super) record: FleetRecord,
    pub(super) known: Coordination,
    /// What is to be done, once the record says so.
    effects: VecDeque<Effect>,
    is_unsaved: bool,
    is_done: bool,
    has_changed: bool,
    /// What was read and stays in its files until the record says what follows.
    requests: WaitingRequests,
    pub(super) git: Worker,
    pub(super) landing: Worker,
    results: Receiver<Done>,
    inbox: VecDeque<Done>,
    pub(super) stops_landing: Arc<AtomicBool>,
    /// How often the landing that runs began again.
    pub(super) landing_tries: u32,
    /// The tasks whose work is being fetched.
    pub(super) fetching: BTreeSet<TaskId>,
    /// Those for which that failed, until it is tried again.
    pub(super) fetch_again: BTreeMap<TaskId, Deadline>,
    /// What each running attempt had reported when its work was fetched last.
    pub(super) fetched: BTreeMap<TaskId, String>,
    /// The reports that were read.
    pub(super) stamps: BTreeMap<TaskId, (u64, i128)>,
    /// What is out of order, by what it concerns.
    troubles: BTreeMap<&'static str, String>,
    watched: Option<FolderWatch>,
    pub(super) remote: Option<RemoteAccess>,
    remote_pace: Pace,
    remote_due: Deadline,
    began: Stopwatch,
    ends_at: Option<Deadline>,
}

impl<'a> Coordinator<'a> {
    fn new(
        home: &'a Home,
        store: Box<dyn RecordStore + 'a>,
        executor: Box<dyn Executor + 'a>,
        record: FleetRecord,
        signals: &'a Signals,
        say: &'a mut dyn FnMut(&str),
    ) -> Self {
        let (sender, results) = channel();
        let [first, most] = REMOTE_LOOKS;
        Self {
            home,
            files: FleetFiles::of(home, &record.terms.name),
            store,
            executor,
            signals,
            say,
            remote: RemoteAccess::of(&record.terms, signals),
            record,
            known: Coordination::default(),
            effects: VecDeque::new(),
            is_unsaved: true,
            is_done: false,
            has_changed: false,
            requests: WaitingRequests::default(),
            git: Worker::start(sender.clone()),
            landing: Worker::start(sender),
            results,
            inbox: VecDeque::new(),
            stops_landing: Arc::default(),
            landing_tries: 0,
            fetching: BTreeSet::new(),
            fetch_again: BTreeMap::new(),
            fetched: BTreeMap::new(),
            stamps: BTreeMap::new(),
            troubles: BTreeMap::new(),
            watched: None,
            remote_pace: Pace::of(first, most),
            remote_due: Deadline::after(Duration::ZERO),
            began: Stopwatch::start(),
            ends_at: None,
        }
    }

    fn run(mut self, tasks: Vec<DescribedTask>) -> Result<CoordinatorEnd> {
        // Nothing is done before the record, here and at the remote, names this process.
        self.store.save(&self.record, true)?;
        self.know_what_is_here();
        self.look_at_attempts();
        self.take_in(FleetEvent::Described(tasks));
        let [first, most] = LOOKS;
        let mut pace = Pace::of(first, most);
        while !self.is_done || !self.effects.is_empty() || self.is_unsaved {
            if let Err(lost) = self.round() {
                return Err(self.give_up(&lost));
            }
            if self.ends_at.is_some_and(Deadline::passed) {
                break;
            }
            if !self.is_done {
                let pause = pace.after(std::mem::take(&mut self.has_changed));
                self.wait(pause);
            }
        }
        self.end()
    }

    /// Finds out what an earlier coordinator left on this machine.
    fn know_what_is_here(&mut self) {
        self.known.slots = slots_of(&self.record.terms);
        for (id, task) in &self.record.tasks {
            if self.record.is_local() && disk::is_folder(&self.files.clone(id, task.attempt)) {
                self.known.clones.insert(id.clone());
            }
            if let TaskState::Running { job, .. } = &task.state {
                self.executor.adopt(id, task.attempt, job);
            }
        }
    }

    /// One look at everything, and what follows.
    ///
    /// # Errors
    /// If another coordinator has the fleet.
    fn round(&mut self) -> Result<(), String> {
        self.look_at_signals();
        while let Some(done) = self.inbox.pop_front().or_else(|| self.results.try_recv().ok()) {
            self.take_result(done)?;
        }
        self.look_at_requests();
        self.look_at_attempts();
        self.look_at_folder();
        self.fetch_due();
        self.take_in(FleetEvent::Tick);
        let done = self.perform().and_then(|()| self.store.renew(&mut self.record));
        if done.is_ok() {
            let removed = std::mem::take(&mut self.requests).remove();
            removed.unwrap_or_else(|error| self.note(&error.to_string()));
        }
        self.heed(done)
    }

    /// Takes in how a write of the record went. Only a lost record ends anything.
    fn heed(&mut self, written: Result<(), StoreFault>) -> Result<(), String> {
        match written {
            Ok(()) => self.set_trouble("record", None),
            Err(StoreFault::Lost(who)) => return Err(who),
            Err(fault) => self.set_trouble("record", Some(first_line(&fault.to_string()))),
        }
        Ok(())
    }

    pub(super) fn take_in(&mut self, event: FleetEvent) {
        let now = clock::now().wall;
        let effects = step(&mut self.record, &mut self.known, event, now);
        self.queue(effects);
    }

    pub(super) fn queue(&mut self, effects: Vec<Effect>) {
        // Each step decides anew: a request may have come after one that had nothing left to do.
        self.is_done = effects.contains(&Effect::Finish);
        for effect in effects {
            // Work that cannot be fetched is asked for at each look.
            self.has_changed |= !matches!(effect, Effect::Fetch { .. });
            match effect {
                Effect::Save => self.is_unsaved = true,
                Effect::Say(line) => self.tell(&line),
                Effect::Finish => {}
                effect => self.effects.push_back(effect),
            }
        }
    }

    fn tell(&mut self, line: &FleetLine) {
        (self.say)(&lines::line(line, &self.record, clock::local()));
    }

    pub(super) fn note(&mut self, text: &str) {
        self.tell(&FleetLine::Note(text.to_owned()));
    }

    /// Notes that something is out of order, or is no longer.
    pub(super) fn set_trouble(&mut self, what: &'static str, why: Option<String>) {
        let before = self.troubles.values().next().cloned();
        match why {
            Some(why) => drop(self.troubles.insert(what, why)),
            None => drop(self.troubles.remove(what)),
        }
        let now = self.troubles.values().next().cloned();
        if now != before {
            self.take_in(now.map_or(FleetEvent::Restored, FleetEvent::Trouble));
        }
    }

    /// Does what is to be done. One write of the record goes before all of it: what it says has
    /// followed from every event so far. What could not be written is tried again later.
    fn perform(&mut self) -> Result<(), StoreFault> {
        while self.is_unsaved || !self.effects.is_empty() {
            let is_start = |effect: &Effect| matches!(effect, Effect::Start { .. });
            let is_urgent = !self.record.is_local() && self.effects.iter().any(is_start);
            if self.is_unsaved || is_urgent {
                self.store.save(&self.record, is_urgent)?;
                self.is_unsaved = false;
            }
            for effect in std::mem::take(&mut self.effects) {
                self.carry_out(effect);
            }
        }
        Ok(())
    }

    // What happened.

    fn look_at_signals(&mut self) {
        let times = self.signals.times();
        if times == self.known.signals {
            return;
        }
        if times > 1 {
            self.stops_landing.store(true, Ordering::Relaxed);
            self.ends_at.get_or_insert_with(|| Deadline::after(END_WITHIN));
        }
        self.take_in(FleetEvent::Signal { times, is_hangup: self.signals.is_hangup() });
    }

    fn look_at_requests(&mut self) {
        // Those that were read before wait for the record to be written.
        if !self.requests.requests.is_empty() {
            return;
        }
        self.requests = WaitingRequests::read(&self.files);
        for note in std::mem::take(&mut self.requests.notes) {
            self.note(&note);
        }
        for (task, request) in self.requests.requests.clone() {
            self.take_in(FleetEvent::Requested(task, request));
        }
    }

    /// Takes in the reports of running attempts, and finds those whose process or job is over.
    fn look_at_attempts(&mut self) {
        let is_local = self.record.is_local();
        // One that is still to be handed over has no process that could be gone.
        let is_to_start = |id: &TaskId| {
            let of = |effect: &Effect| matches!(effect, Effect::Start { task, .. } if task == id);
            self.effects.iter().any(of)
        };
        let running = |(id, task): (&TaskId, &TaskRecord)| match &task.state {
            TaskState::Running { job, .. } if !is_to_start(id) => {
                Some((id.clone(), task.attempt, job.is_empty()))
            }
            _ => None,
        };
        let running: Vec<(TaskId, u32, bool)> =
            self.record.tasks.iter().filter_map(running).collect();
        if running.is_empty() || (!is_local && !self.remote_due.passed()) {
            return;
        }
        let Some((jobs, mut reports)) = self.ask_about_attempts(is_local) else { return };
        for (task, number, is_unnamed) in running {
            let job = jobs.iter().rfind(|job| job.task == task && job.number == number);
            if let (Some(job), true) = (job, is_unnamed) {
                let (task, job) = (task.clone(), job.id.clone());
                self.take_in(FleetEvent::Started { task, number, job });
            }
            let report = match is_local {
                true => self.changed_report(&task, number),
                false => reports.remove(&task),
            };
            self.take_report(&task, number, report);
            let lives = job.is_some_and(|job| !job.state.is_ended())
                || (is_local && attempt::is_alive(&self.files, &task, number))
                || (!is_local && job.is_none() && self.began.elapsed_ms() < UNNAMED_MS);
            let is_running = self.record.task(&task).is_some_and(TaskRecord::is_running);
            if lives || !is_running {
                continue;
            }
            if is_local {
                // Its last words may have come since they were looked for.
                let report = attempt::read_report(&self.files, &task, number);
                self.take_report(&task, number, report);
            }
            if self.record.task(&task).is_some_and(TaskRecord::is_running) {
                let why = match job.map(|job| &job.state) {
                    Some(JobState::Ended(why)) => why.clone(),
                    _ => String::new(),
                };
                self.take_in(FleetEvent::Gone { task, number, why });
            }
        }
        if !is_local {
            let pause = self.remote_pace.after(self.has_changed);
            self.remote_due = Deadline::after(pause);
        }
    }

    /// The jobs and the reports at the remote; `None` where nothing follows about any attempt. The
    /// jobs come first: what one reported before it ended is then among the reports.
    fn ask_about_attempts(
        &mut self,
        is_local: bool,
    ) -> Option<(Vec<SeenJob>, BTreeMap<TaskId, AttemptReport>)> {
        let jobs = match self.executor.list() {
            Ok(jobs) => jobs,
            Err(error) => {
                self.set_trouble("executor", Some(first_line(&format!("{error:#}"))));
                return None;
            }
        };
        self.set_trouble("executor", None);
        let Some(access) = self.remote.clone().filter(|_| !is_local) else {
            return Some((jobs, BTreeMap::new()));
        };
        let refs = access.refs(&access.repository).map_err(Error::from);
        match refs.and_then(|refs| remote::reports(&refs, &self.record.terms.name)) {
            Ok(reports) => {
                self.set_trouble("reports", None);
                Some((jobs, reports.into_iter().collect()))
            }
            Err(error) => {
                self.set_trouble("reports", Some(first_line(&format!("{error:#}"))));
                None
            }
        }
    }

    /// The report of an attempt of this machine, if it is another than the last one.
    fn changed_report(&mut self, task: &TaskId, number: u32) -> Option<AttemptReport> {
        let stamp = disk::stamp(&self.files.report(task, number))?;
        if self.stamps.insert(task.clone(), stamp) == Some(stamp) {
            return None;
        }
        attempt::read_report(&self.files, task, number)
    }

    fn take_report(&mut self, task: &TaskId, number: u32, report: Option<AttemptReport>) {
        let Some(report) = report else { return };
        if report.number == number && self.known.reports.get(task) != Some(&report) {
            self.take_in(FleetEvent::Reported(task.clone(), report));
        }
    }

    fn look_at_folder(&mut self) {
        let Some(found) = self.watched.as_mut().and_then(|it| it.changed(self.home)) else {
            return;
        };
        match found {
            Ok((setup, tasks)) if is_of(&self.record.terms, &setup) => {
                // What was planted since the start is not agreed to.
                let trusted = self.record.terms.trusted.clone();
                self.record.terms = FleetSetup { trusted, ..setup };
                self.known.slots = slots_of(&self.record.terms);
                self.is_unsaved = true;
                self.take_in(FleetEvent::Described(tasks));
            }
            Ok(_) => {
                self.note("fleet.toml changed what only a start can change: the next one does")
            }
            Err(why) => self.note(&why),
        }
    }

    // How it waits, and how it ends.

    /// Sleeps until something may have happened, at most for so long.
    fn wait(&mut self, pause: Duration) {
        let [least, most] = WAKES;
        let step = (pause / 8).clamp(least, most);
        let signals = self.known.signals;
        Deadline::after(pause).poll(step, || {
            self.inbox.extend(self.results.try_recv());
            let is_awake = !self.inbox.is_empty()
                || self.signals.times() != signals
                || descendants::has_ended_child();
            is_awake.then_some(())
        });
    }

    /// Ends what this coordinator started on this machine, because another one has the fleet. Jobs
    /// elsewhere are in the record that it has: they are its own now.
    fn give_up(mut self, who: &str) -> Error {
        self.note(&format!("another coordinator has this fleet now: {who}"));
        self.stops_landing.store(true, Ordering::Relaxed);
        if self.record.is_local() {
            self.note("this one ends what it started, and writes nothing more");
            let running = self.record.tasks.iter().filter(|(_, task)| task.is_running());
            let running: Vec<(TaskId, u32)> =
                running.map(|(id, task)| (id.clone(), task.attempt)).collect();
            running.iter().for_each(|(task, _)| self.end_attempt(task));
            Deadline::after(END_WITHIN).poll(LOOKS[1], || {
                let _ = self.executor.list();
                let lives =
                    |(task, number): &(TaskId, u32)| attempt::is_alive(&self.files, task, *number);
                (!running.iter().any(lives) || self.signals.times() > 0).then_some(())
            });
        }
        self.git.end();
        self.landing.end();
        anyhow!(
            "the fleet {} was taken over by {who}; this coordinator ended what it started\n\
             hint: crew fleet run there; what is not fetched is in the clones in {}",
            self.record.terms.name,
            self.files.root.display()
        )
    }

    fn end(mut self) -> Result<CoordinatorEnd> {
        self.git.end();
        self.landing.end();
        self.record.holder = self.record.holder.released();
        if let Err(error) = self.store.save(&self.record, true) {
            (self.say)(&format!("the record could not be written at last: {error}"));
        }
        match self.known.gave_up {
            Some(why) => bail!("the executor takes nothing: {why}"),
            None if self.signals.times() > 0 => Ok(CoordinatorEnd::Interrupted),
            None => Ok(CoordinatorEnd::Done),
        }
    }
}

/// Slots of this machine, or the most jobs at once elsewhere.
fn slots_of(terms: &FleetSetup) -> usize {
    let count = match terms.slots {
        0 if terms.executor == LOCAL => slots::default_count().count,
        0 => return usize::MAX,
        count => count,
    };
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Whether a fleet may take up these terms while it runs.
fn is_of(terms: &FleetSetup, new: &FleetSetup) -> bool {
    let fixed = |setup: &FleetSetup| {
        let FleetSetup { name, base, executor, remote, landing, .. } = setup.clone();
        (name, base, executor, remote, landing)
    };
    fixed(terms) == fixed(new)
}

pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
#[path = "coordinator_tests.rs"]
mod tests;
