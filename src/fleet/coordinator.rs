//! The loop of a coordinator: it passes events to `step` and carries out the effects. One thread
//! decides and writes the record here. Three workers do slow work, one item at a time: git between
//! clones, repository and remote; landings; and the remote's refs (record, reports and requests). A
//! killed coordinator is simply started again, and adopts what still runs.

mod effects;
mod folder_watch;
mod landing;
mod worker;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Error, Result, bail};

use self::folder_watch::{FolderWatch, is_of};
use self::worker::Workers;
use super::attempt;
use super::attempt::remote::{self, AttemptRequest};
use super::executors::{FleetJobs, SeenJob, executor_of, executors_of_user, slots_of};
use super::files::FleetFiles;
use super::record::{CloneSetup, FleetRecord, FleetTerms, Holder, TaskRecord, TaskState};
use super::spec::{AttemptReport, Coordination, DescribedTask};
use super::step::{Effect, FleetEvent, FleetLine, lines, step_fleet};
use super::store::remote_refs::RemoteAccess;
use super::store::requests::WaitingRequests;
use super::store::{FleetStore, LockedFleetStore, StoreFault};
use super::tasks::DescribedFleet;
use crate::drive::failure::{failure_of, short_error};
use engine::failure::Failure;
use engine::fleet::{Pace, TaskId};
use readers::parse::arguments::FleetRunArgs;
use world::clock::{self, Deadline, Stopwatch};
use world::env;
use world::files::disk;
use world::process::descendants;
use world::process::signals::Signals;
use world::store::Home;

/// The shortest and longest pause between two rounds on this machine. A child or a signal ends the
/// pause early.
const LOOKS: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];
/// The pauses between polls of an executor or a remote.
const REMOTE_LOOKS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(15)];
/// The interval at which a sleeping coordinator checks for a reason to wake.
const WAKES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];
/// The pause between two decisions if nothing happens; a failure is retried after 5 s at the
/// earliest.
const TICK: Duration = Duration::from_secs(3);
/// The shortest time between two writes of the record while nothing waits for one. Until then an
/// attempt's report is in its file, and anything fetched can be fetched again.
const SAVES: Duration = Duration::from_millis(500);
/// How long running work may take to end: an agent gets 5 s, a commit may take minutes.
const END_WITHIN: Duration = Duration::from_secs(360);
/// How long after its start a coordinator waits for a job without an id to appear.
const UNNAMED_MS: u64 = 60_000;

/// Applies the result of a worker thread to the coordinator.
type Done = Box<dyn FnOnce(&mut Coordinator<'_>) + Send>;

/// How a coordinator ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoordinatorEnd {
    /// Nothing runs and nothing can start.
    Done,
    /// A signal ended it; unfinished work waits.
    Interrupted,
}

/// Runs a fleet until nothing runs and nothing can start. `say` prints a line without its time.
///
/// # Errors
/// If another coordinator has the fleet, or takes it while this one runs, which then ends what it
/// started on this machine. If the executor accepts no jobs.
pub fn coordinate_fleet(
    home: &Home,
    described: DescribedFleet,
    arguments: &FleetRunArgs,
    signals: &Signals,
    say: &mut dyn FnMut(&str),
) -> Result<CoordinatorEnd> {
    let DescribedFleet { terms, tasks, .. } = described;
    let stop = || signals.times() > 1;
    let executor = executor_of(home, &terms, &executors_of_user()?, &stop)?;
    let replaces = arguments.replace_coordinator;
    let (store, found) = LockedFleetStore::take_fleet(home, &terms, signals, replaces, say)?;
    let now = clock::now().wall;
    let holder = Holder::this_process(home, now)?;
    let record = match found {
        Some(mut record) => {
            record.take_up(terms, holder);
            record
        }
        None => {
            FleetRecord::begin_fleet(terms, format!("{:016x}", env::random_number()), holder, now)
        }
    };
    let mut coordinator = Coordinator::new(home, Box::new(store), executor, record, signals, say);
    coordinator.seen.folder = Some(FolderWatch::new(home, arguments, &coordinator.record.terms)?);
    coordinator.run_rounds(tasks)
}

/// A running fleet.
struct Coordinator<'a> {
    home: &'a Home,
    files: FleetFiles,
    store: Box<dyn FleetStore + 'a>,
    executor: FleetJobs<'a>,
    signals: &'a Signals,
    say: &'a mut dyn FnMut(&str),
    record: FleetRecord,
    coordination: Coordination,
    pending: PendingWork,
    remote: RemoteWork,
    workers: Workers,
    seen: SeenFiles,
}

/// What the next round has to do, and when.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, named where it is")]
struct PendingWork {
    /// The effects to carry out, once the record contains their cause.
    effects: Vec<Effect>,
    /// Requests that stay in their files until the record contains their effects.
    requests: WaitingRequests,
    is_unsaved: bool,
    save_due: Deadline,
    is_done: bool,
    has_changed: bool,
    /// Whether something has happened since the last decision on what starts and lands.
    has_news: bool,
    tick_due: Deadline,
    ends_at: Option<Deadline>,
    /// The other coordinator that now has the fleet, if any.
    lost: Option<String>,
}

/// Pending work that involves the remote, and jobs on other machines.
struct RemoteWork {
    /// Starts that wait until the remote's record contains them.
    starts: Vec<Effect>,
    /// How many of those starts, from the first on, the remote's record contains.
    ready: usize,
    /// The tasks whose jobs have to be cancelled.
    ends: Vec<TaskId>,
    /// The requests that have not reached their attempts, the oldest first.
    unsent: Vec<(TaskId, AttemptRequest)>,
    /// Whether requests are being sent.
    is_sending: bool,
    access: Option<RemoteAccess>,
    pace: Pace,
    /// When reports are next fetched from the remote; `None` while they are being fetched.
    due: Option<Deadline>,
}

/// The files that were read, and the time since when.
struct SeenFiles {
    began: Stopwatch,
    folder: Option<FolderWatch>,
    /// The report files as they were last read.
    reports: BTreeMap<TaskId, Option<(u64, u64, i128)>>,
}

impl<'a> Coordinator<'a> {
    fn new(
        home: &'a Home,
        store: Box<dyn FleetStore + 'a>,
        executor: FleetJobs<'a>,
        record: FleetRecord,
        signals: &'a Signals,
        say: &'a mut dyn FnMut(&str),
    ) -> Self {
        Self {
            files: FleetFiles::new(home, &record.terms.name),
            pending: PendingWork {
                effects: Vec::new(),
                requests: WaitingRequests::default(),
                is_unsaved: true,
                save_due: Deadline::after(Duration::ZERO),
                is_done: false,
                has_changed: false,
                has_news: true,
                tick_due: Deadline::after(TICK),
                ends_at: None,
                lost: None,
            },
            remote: RemoteWork {
                starts: Vec::new(),
                ready: 0,
                ends: Vec::new(),
                unsent: Vec::new(),
                is_sending: false,
                access: RemoteAccess::for_terms(&record.terms, signals),
                pace: Pace::from_bounds(REMOTE_LOOKS[0], REMOTE_LOOKS[1]),
                due: Some(Deadline::after(Duration::ZERO)),
            },
            workers: Workers::start(),
            seen: SeenFiles { began: Stopwatch::start(), folder: None, reports: BTreeMap::new() },
            coordination: Coordination::default(),
            home,
            store,
            executor,
            signals,
            say,
            record,
        }
    }

    fn run_rounds(mut self, tasks: Vec<DescribedTask>) -> Result<CoordinatorEnd> {
        // Nothing happens until the record, here and at the remote, names this process. If several
        // start a fleet at once, those refused keep nothing of it.
        self.push_now().map_err(StoreFault::into_error)?;
        self.store.save_record(&self.record).map_err(StoreFault::into_error)?;
        self.know_what_is_here();
        if let Err(fault) = self.bring_work() {
            self.note(&fault.cause_and_hint());
        }
        self.look_at_attempts();
        self.take_in(FleetEvent::Described(tasks));
        let [first, most] = LOOKS;
        let mut pace = Pace::from_bounds(first, most);
        while !self.pending.is_done
            || !self.pending.effects.is_empty()
            || !self.remote.ends.is_empty()
            || self.pending.is_unsaved
        {
            self.run_round();
            if let Some(who) = self.pending.lost.take() {
                return Err(self.give_up(&who));
            }
            // A third signal ends this process at once.
            if self.remote.ends.is_empty() && self.pending.ends_at.is_some_and(Deadline::passed) {
                break;
            }
            // A failed write of the record is retried at the usual pace.
            if !self.pending.is_done || self.pending.is_unsaved {
                let pause = pace.next_pause(std::mem::take(&mut self.pending.has_changed));
                self.wait_for_result(pause);
            }
        }
        self.end_coordination()
    }

    /// Reads what an earlier coordinator left on this machine.
    fn know_what_is_here(&mut self) {
        self.coordination.slots = slots_of(&self.record.terms);
        for (id, task) in &self.record.tasks {
            if self.record.is_local() && disk::is_folder(&self.files.clone_of(id, task.attempt)) {
                self.coordination.clones.insert(id.clone());
            }
            if let TaskState::Running { job, .. } = &task.state {
                self.executor.adopt_job(id, task.attempt, job);
            }
        }
    }

    /// Reads everything once, decides, and carries out the effects.
    fn run_round(&mut self) {
        self.look_at_signals();
        self.take_results();
        if self.pending.lost.is_some() {
            return;
        }
        self.look_at_requests();
        self.look_at_attempts();
        self.look_at_folder();
        // Decide what starts and lands here, once for everything that has happened.
        if self.pending.has_news || self.pending.tick_due.passed() {
            self.pending.tick_due = Deadline::after(TICK);
            self.send_requests();
            self.take_in(FleetEvent::Tick);
            self.pending.has_news = false;
        }
        let written = self.perform_effects();
        if written.is_ok() {
            let removed = std::mem::take(&mut self.pending.requests).remove_files();
            removed.unwrap_or_else(|error| self.note(&error.to_string()));
        }
        self.note_write("record", written);
        self.push_record();
        self.ask_executor();
    }

    fn take_results(&mut self) {
        while let Ok(done) = self.workers.results.try_recv() {
            done(self);
        }
    }

    /// Records the result of writing the record. Only a lost record ends the fleet.
    pub(super) fn note_write(&mut self, what: &'static str, written: Result<(), StoreFault>) {
        match written {
            Ok(()) => self.set_trouble(what, None),
            Err(StoreFault::Lost(who)) => self.pending.lost = Some(who),
            Err(fault) => self.set_trouble(what, Some(short_error(&fault.into_error()))),
        }
    }

    pub(super) fn take_in(&mut self, event: FleetEvent) {
        self.pending.has_news = true;
        let effects =
            step_fleet(&mut self.record, &mut self.coordination, event, clock::now().wall);
        // Each step decides again, because a request may follow a step that had nothing left to do.
        self.pending.is_done = effects.contains(&Effect::Finish);
        for effect in effects {
            // A fetch that keeps failing must not count as a change.
            self.pending.has_changed |= !matches!(effect, Effect::Fetch { .. });
            match effect {
                Effect::Save => self.pending.is_unsaved = true,
                Effect::Say(line) => self.print_line(&line),
                Effect::Finish => {}
                effect => self.pending.effects.push(effect),
            }
        }
    }

    fn print_line(&mut self, line: &FleetLine) {
        (self.say)(&lines::render_line(line, &self.record, clock::local_time()));
    }

    pub(super) fn note(&mut self, text: &str) {
        self.print_line(&FleetLine::Note(text.to_owned()));
    }

    /// Reports that a part does not work, or works again.
    pub(super) fn set_trouble(&mut self, of: &'static str, why: Option<String>) {
        if self.coordination.troubles.get(of) != why.as_ref() {
            self.take_in(FleetEvent::Trouble { of, why });
        }
    }

    /// Writes the record, which then contains every event so far, and carries out the effects. A
    /// failed write is retried later.
    fn perform_effects(&mut self) -> Result<(), StoreFault> {
        while self.must_save() || !self.pending.effects.is_empty() {
            if self.must_save() {
                self.store.save_record(&self.record)?;
                (self.pending.is_unsaved, self.pending.save_due) = (false, Deadline::after(SAVES));
            }
            for effect in std::mem::take(&mut self.pending.effects) {
                // A job elsewhere outlives this machine, so the remote's record must contain it
                // first.
                match effect {
                    Effect::Start { .. } if !self.record.is_local() => {
                        self.remote.starts.push(effect);
                    }
                    // After the second signal each job is cancelled only once, or this might never
                    // end.
                    Effect::End { task }
                        if self.remote.ends.contains(&task)
                            || self.pending.ends_at.is_some_and(Deadline::passed) => {}
                    Effect::End { task } if self.has_job(&task) => self.remote.ends.push(task),
                    effect => self.carry_out(effect),
                }
            }
        }
        Ok(())
    }

    /// Whether the record must be written now, because something waits for it or it is due. The
    /// record of a thousand tasks is a megabyte. A job elsewhere is known only by its id.
    fn must_save(&self) -> bool {
        let is_waited_for = !self.pending.requests.requests.is_empty()
            || self.pending.effects.iter().any(|effect| !matches!(effect, Effect::Fetch { .. }));
        let is_soon = self.pending.is_done || is_waited_for || !self.record.is_local();
        self.pending.is_unsaved && (is_soon || self.pending.save_due.passed())
    }

    // What happened.

    fn look_at_signals(&mut self) {
        let times = self.signals.times();
        if times == self.coordination.stop.signals {
            return;
        }
        if times > 1 {
            self.workers.landing_try.stop();
            self.pending.ends_at.get_or_insert_with(|| Deadline::after(END_WITHIN));
        }
        self.take_in(FleetEvent::Signal { times, is_hangup: self.signals.is_hangup() });
    }

    fn look_at_requests(&mut self) {
        // Earlier requests still wait for the record to be written.
        if !self.pending.requests.requests.is_empty() {
            return;
        }
        self.pending.requests = WaitingRequests::read_waiting(&self.files);
        for note in std::mem::take(&mut self.pending.requests.notes) {
            self.note(&note);
        }
        for (task, request) in self.pending.requests.requests.clone() {
            self.take_in(FleetEvent::Requested(task, request));
        }
    }

    /// Reads the reports of running attempts, and finds those whose process or job has ended.
    fn look_at_attempts(&mut self) {
        let is_local = self.record.is_local();
        let running = self.running_attempts();
        let is_due = is_local || self.remote.due.is_some_and(Deadline::passed);
        if running.is_empty() || !is_due {
            return;
        }
        self.executor.forget_ended(&running);
        // List the jobs first, so that the reports include what an ended job reported last.
        let jobs = match self.executor.list_jobs() {
            Ok(jobs) => jobs,
            Err(error) => return self.set_trouble("executor", Some(short_error(&error))),
        };
        self.set_trouble("executor", None);
        let (Some(access), false) = (self.remote.access.clone(), is_local) else {
            return self.look_at(running, &jobs, &BTreeMap::new());
        };
        self.remote.due = None;
        let fleet = self.record.terms.name.clone();
        self.workers.talk.add(move || {
            let refs = access.refs().map_err(Error::from);
            let reports = refs.and_then(|refs| remote::list_reports(&refs, &fleet));
            Box::new(move |this| {
                this.set_trouble("reports", reports.as_ref().err().map(short_error));
                if let Ok(reports) = reports {
                    this.look_at(running, &jobs, &reports.into_iter().collect());
                }
                this.remote.due =
                    Some(Deadline::after(this.remote.pace.next_pause(this.pending.has_changed)));
            })
        });
    }

    /// The running attempts that were submitted; the others have no process or job.
    fn running_attempts(&self) -> Vec<(TaskId, u32)> {
        let mut running = self.record.running_attempts();
        for effect in self.pending.effects.iter().chain(&self.remote.starts) {
            if let Effect::Start { task, .. } = effect {
                running.retain(|(id, _)| id != task);
            }
        }
        running
    }

    fn look_at(
        &mut self,
        running: Vec<(TaskId, u32)>,
        jobs: &[SeenJob],
        reports: &BTreeMap<TaskId, AttemptReport>,
    ) {
        let is_local = self.record.is_local();
        for (task, number) in running {
            let job = jobs.iter().rfind(|job| job.task == task && job.number == number);
            let state = self.record.task(&task).map(|task| &task.state);
            if let (Some(job), Some(TaskState::Running { job: known, .. })) = (job, state)
                && known.is_empty()
            {
                let (task, job) = (task.clone(), job.id.clone());
                self.take_in(FleetEvent::Started { task, number, job });
            }
            // An attempt whose job was never recorded here is known by its lock.
            let lives = job.is_some_and(|job| job.ended.is_none())
                || (is_local && attempt::is_alive(&self.files, &task, number))
                || (!is_local && job.is_none() && self.seen.began.elapsed_ms() < UNNAMED_MS);
            // Read after that check, so that the last report of an ended attempt is there.
            let report = if is_local {
                self.new_report(&task, number, lives)
            } else {
                reports.get(&task).cloned()
            };
            if let Some(report) = report
                && report.number == number
                && self.coordination.reports.get(&task) != Some(&report)
            {
                self.take_in(FleetEvent::Reported(task.clone(), report));
            }
            if !lives && self.record.task(&task).is_some_and(TaskRecord::is_running) {
                let why = job.and_then(|job| job.ended.clone()).unwrap_or_default();
                self.take_in(FleetEvent::Gone { task, number, why });
            }
        }
    }

    /// Reads the report of an attempt on this machine, if it may be new: the file has changed, or
    /// the process has ended.
    fn new_report(&mut self, task: &TaskId, number: u32, lives: bool) -> Option<AttemptReport> {
        let found = disk::file_version(&self.files.report(task, number));
        let before = self.seen.reports.insert(task.clone(), found);
        let is_known = lives && before == Some(found);
        if is_known { None } else { attempt::read_report(&self.files, task, number) }
    }

    fn look_at_folder(&mut self) {
        let Some(found) = self.seen.folder.as_mut().and_then(|watch| watch.find_changes(self.home))
        else {
            return;
        };
        match found {
            Ok((terms, tasks)) if is_of(&self.record.terms, &terms) => {
                // Keep the settings agreed to at the start: later ones may be planted.
                let trusted = self.record.terms.clones.trusted.clone();
                self.record.terms =
                    FleetTerms { clones: CloneSetup { trusted, ..terms.clones }, ..terms };
                self.coordination.slots = slots_of(&self.record.terms);
                self.pending.is_unsaved = true;
                self.take_in(FleetEvent::Described(tasks));
            }
            Ok(_) => {
                self.note(
                    "fleet.toml changed a value that only a start reads: the next start uses it",
                );
            }
            Err(why) => self.note(&why),
        }
    }

    // How it waits, and how it ends.

    /// Sleeps until something may have happened, at most for `pause`.
    fn wait_for_result(&mut self, pause: Duration) {
        let [least, most] = WAKES;
        let (step, until) = ((pause / 8).clamp(least, most), Deadline::after(pause));
        while !until.passed() {
            if let Ok(done) = self.workers.results.recv_timeout(step) {
                return done(self);
            }
            if self.signals.times() != self.coordination.stop.signals
                || descendants::has_ended_child()
            {
                return;
            }
        }
    }

    /// Ends what this coordinator started on this machine, because another one has the fleet. Jobs
    /// elsewhere are in the record, so they now belong to the other one.
    fn give_up(mut self, who: &str) -> Error {
        self.note(&format!("another coordinator has this fleet now: {who}"));
        self.workers.landing_try.stop();
        if self.record.is_local() {
            self.note("this one ends what it started, and writes nothing more");
            let running = self.running_attempts();
            for (task, _) in &running {
                self.end_attempt(task);
            }
            Deadline::after(END_WITHIN).poll(LOOKS[1], || {
                let _ = self.executor.list_jobs();
                let mut running = running.iter();
                let lives = running.any(|(id, number)| attempt::is_alive(&self.files, id, *number));
                (!lives || self.signals.times() > 0).then_some(())
            });
        }
        self.workers.end();
        Failure::new(
            format!(
                "the fleet {} was taken over by {who}; this coordinator ended what it started",
                self.record.terms.name
            ),
            format!(
                "crew fleet run there; what is not fetched is in the clones in {}",
                self.files.root.display()
            ),
        )
        .into()
    }

    fn end_coordination(mut self) -> Result<CoordinatorEnd> {
        self.workers.end();
        // The record must include the workers' last results.
        self.take_results();
        if let Some(who) = self.pending.lost.take() {
            return Err(self.give_up(&who));
        }
        self.record.holder = self.record.holder.released();
        let saved = self.store.save_record(&self.record);
        if let Err(error) = saved.and_then(|()| self.push_now()) {
            let why = failure_of(&error.into_error()).join_with("; ");
            (self.say)(&format!("the final record could not be written: {why}"));
        }
        match self.coordination.stop.gave_up {
            Some(why) => bail!("the executor accepts no jobs: {why}"),
            None if self.signals.times() > 0 => Ok(CoordinatorEnd::Interrupted),
            None => Ok(CoordinatorEnd::Done),
        }
    }
}

#[cfg(test)]
mod tests;
