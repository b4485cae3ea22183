//! What a coordinator does about what happened. What takes long is done by two threads, each one
//! thing after the other: git between clones, repository and remote; and landings.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};

use super::attempt::{self, remote};
use super::coordinator::{Coordinator, first_line};
use super::executors::JobCall;
use super::files::FleetFiles;
use super::landing::{self, Landing, Prepared};
use super::record::{Landed, TaskRecord, TaskRequest, TaskState};
use super::requests;
use super::spec::{AttemptSpec, Source};
use super::step::{Effect, FleetEvent, FleetRequest, step};
use super::store::{BaseMove, RemoteAccess, StoreFault};
use super::workspace::{self, Removal};
use crate::drive::control;
use crate::drive::error_text::git_trouble;
use crate::engine::fleet::{Refusal, TaskId};
use crate::engine::git::{GitFault, GitStep, GitTrouble, RefUpdate};
use crate::engine::record::{Actor, Contract};
use crate::world::clock::{self, Deadline};
use crate::world::files::disk::{self, Durability};
use crate::world::git;
use crate::world::process::signals::ask_to_end;
use crate::world::store::logs::Log;
use crate::world::store::{self, write_json};

/// Between two tries to fetch a task's work.
const FETCH_AGAIN: Duration = Duration::from_secs(5);
/// How often a landing begins again because the base has moved.
const LANDING_TRIES: u32 = 8;

/// What a thread has done.
pub(super) enum Done {
    /// The commit that was brought here; `None`: there is no such branch.
    Fetched(TaskId, Result<Option<String>>),
    Prepared(TaskId, Result<Prepared>),
    Opened(TaskId, Result<Result<Landed, Refusal>>),
    /// The refs that keep what no branch had.
    Removed(TaskId, Result<Vec<String>>),
}

/// A thread that does one thing after the other. git ends with the thread that started it, so the
/// thread lives as long as anything is to be done.
pub(super) struct Worker {
    works: Sender<Box<dyn FnOnce() -> Done + Send>>,
    thread: JoinHandle<()>,
}

impl Worker {
    pub(super) fn start(results: Sender<Done>) -> Self {
        let (works, queue) = channel::<Box<dyn FnOnce() -> Done + Send>>();
        let run = move || queue.iter().for_each(|work| drop(results.send(work())));
        Self { works, thread: thread::spawn(run) }
    }

    fn add(&self, work: impl FnOnce() -> Done + Send + 'static) {
        // The thread ends only with this value.
        let _ = self.works.send(Box::new(work));
    }

    /// Waits for what it has to do.
    pub(super) fn end(self) {
        drop(self.works);
        let _ = self.thread.join();
    }
}

impl Coordinator<'_> {
    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Start { task, number, continues } => self.start(&task, number, continues),
            Effect::Pass { task, request } => {
                if let Err(error) = self.pass(&task, &request) {
                    self.note(&format!("{task} did not get a request: {error:#}"));
                }
            }
            Effect::End { task } => self.end_attempt(&task),
            Effect::Fetch { task } => self.fetch(&task),
            Effect::Land { task } => {
                self.landing_tries = 0;
                self.land(&task);
            }
            Effect::OpenRequest { task } => self.open_request(&task),
            Effect::Remove { task } => self.remove(&task),
            Effect::Save | Effect::Say(_) | Effect::Finish => {}
        }
    }

    pub(super) fn start(&mut self, task: &TaskId, number: u32, continues: bool) {
        let event = match self.hand_over(task, number, continues) {
            Ok(job) => {
                if self.record.is_local() {
                    self.known.clones.insert(task.clone());
                }
                FleetEvent::Started { task: task.clone(), number, job }
            }
            Err(error) => {
                let why = first_line(&format!("{error:#}"));
                FleetEvent::NotStarted { task: task.clone(), why }
            }
        };
        self.take_in(event);
    }

    /// Hands an attempt to the executor, and returns its name of the job.
    pub(super) fn hand_over(
        &mut self,
        task: &TaskId,
        number: u32,
        continues: bool,
    ) -> Result<String> {
        let terms = &self.record.terms;
        let url = terms.remote.as_ref().map(|remote| remote.url.clone());
        let source = match (self.record.is_local(), url) {
            (false, Some(url)) => Source::Remote { url },
            (_, url) => Source::Local { repository: terms.repository.clone(), url },
        };
        let spec = self.record.spec_of(&self.known, task, number, source);
        let spec = spec.context("its file is gone")?;
        if let (Source::Remote { .. }, Some(access)) = (&spec.source, &self.remote) {
            self.send_work(access, &spec)?;
        }
        if continues {
            // What it says is of the process before.
            disk::remove(&self.files.report(task, number))?;
        }
        self.fetched.remove(task);
        self.stamps.remove(task);
        write_json(&self.files.spec(task, number), &spec, Durability::Machine)?;
        self.executor.submit(&JobCall::of(self.home, terms, &spec))
    }

    /// Pushes the work that an attempt elsewhere begins from, where the remote has no branch of it:
    /// an earlier start did not push, or somebody deleted it there.
    fn send_work(&self, access: &RemoteAccess, spec: &AttemptSpec) -> Result<()> {
        let number = |task| self.record.task(task).map_or(0, |task| task.attempt);
        let own = spec.start.iter().map(|it| (&spec.task.task, spec.number.saturating_sub(1), it));
        let others = spec.before.iter().map(|(task, commit)| (task, number(task), commit));
        for (task, number, commit) in own.chain(others) {
            let branch = self.record.branch(task, number);
            if access.seen(&format!("refs/heads/{branch}"))?.is_none() {
                push(access, &branch, commit)?;
            }
        }
        Ok(())
    }

    /// Passes a request on to the loop of a running attempt.
    pub(super) fn pass(&self, task: &TaskId, request: &FleetRequest) -> Result<()> {
        let Some(record) = self.record.task(task) else { return Ok(()) };
        if let (false, Some(access)) = (self.record.is_local(), &self.remote) {
            let (refs, fleet) = (access.refs(&access.repository)?, &self.record.terms.name);
            return remote::send_request(&refs, fleet, task, record.attempt, request);
        }
        let Some(id) = &record.loop_id else { return Ok(()) };
        match request {
            FleetRequest::Task(TaskRequest::Pause { now }) => {
                control::pause(self.home, id, Actor::User, *now).map(drop)
            }
            FleetRequest::Task(TaskRequest::Cancel { by_agent, reason, .. }) => {
                let by = if *by_agent { Actor::Agent } else { Actor::User };
                Ok(store::order_cancel(self.home, id, by, reason.as_deref())?)
            }
            FleetRequest::Resume { .. } => Ok(disk::remove(&self.home.loop_file(id, "pause"))?),
            FleetRequest::Tell { words, .. } => control::tell(self.home, id, words).map(drop),
        }
    }

    pub(super) fn end_attempt(&mut self, task: &TaskId) {
        if self.known.landing.as_ref() == Some(task) {
            self.stops_landing.store(true, Ordering::Relaxed);
        }
        let Some(record) = self.record.task(task) else { return };
        let number = record.attempt;
        if let TaskState::Running { job, .. } = &record.state
            && let Err(error) = self.executor.cancel(job)
        {
            self.note(&format!("{task} could not be ended: {error:#}"));
        }
        // One whose job was never noted here is known by its lock.
        if self.record.is_local()
            && let Some(process) = attempt::process_of(&self.files, task, number)
        {
            ask_to_end(&process);
        }
    }

    /// Brings a task's work to the repository and, where the fleet pushes, its branch to the remote.
    pub(super) fn fetch(&mut self, task: &TaskId) {
        let Some(record) = self.record.task(task) else { return };
        let tip = record.tip.clone().unwrap_or_default();
        // What its agent commits next is fetched once it is reported.
        let is_fetched = record.is_running() && self.fetched.get(task) == Some(&tip);
        let is_early = self.fetch_again.get(task).is_some_and(|again| !again.passed());
        if is_fetched || is_early || !self.fetching.insert(task.clone()) {
            return;
        }
        self.fetched.insert(task.clone(), tip);
        let repository = self.record.terms.repository.clone();
        let branch = self.record.branch(task, record.attempt);
        let to = format!("refs/remotes/crew/{}/{task}", self.record.terms.name);
        let clone = self.files.clone(task, record.attempt);
        let (is_local, access, task) = (self.record.is_local(), self.remote.clone(), task.clone());
        self.git.add(move || {
            let fetched = if is_local {
                workspace::bring(&repository, &clone, &branch, &to).and_then(|commit| {
                    if let (Some(access), Some(commit)) = (&access, &commit) {
                        push(access, &branch, commit)?;
                    }
                    Ok(commit)
                })
            } else {
                track(access.as_ref(), &branch, &to)
            };
            Done::Fetched(task, fetched)
        });
    }

    /// Tries again what could not be fetched.
    pub(super) fn fetch_due(&mut self) {
        let due = |(task, again): (&TaskId, &Deadline)| again.passed().then(|| task.clone());
        for task in self.fetch_again.iter().filter_map(due).collect::<Vec<_>>() {
            self.fetch(&task);
        }
    }

    pub(super) fn land(&mut self, task: &TaskId) {
        self.stops_landing.store(false, Ordering::Relaxed);
        let Some(record) = self.record.task(task).cloned() else { return };
        let Some((contract, message)) = self.words_of(task, &record) else {
            let why = "its file is gone, and with it its checks".to_owned();
            let task = task.clone();
            return self.take_in(FleetEvent::LandingFailed { task, why, needs_person: true });
        };
        let (home, terms, task) = (self.home.clone(), self.record.terms.clone(), task.clone());
        let (stops, signals) = (Arc::clone(&self.stops_landing), self.signals.clone());
        let log = self.files.log(&task, record.attempt);
        self.landing.add(move || {
            let stop = || stops.load(Ordering::Relaxed) || signals.times() > 1;
            let note = |line: &str| note_in(&log, line);
            let prepared = landing::prepare(&Landing {
                home: &home,
                terms: &terms,
                task: &task,
                record: &record,
                contract: &contract,
                message: &message,
                stop: &stop,
                note: &note,
            });
            Done::Prepared(task, prepared)
        });
    }

    /// The contract of a task as it is now, and the message of the commit that lands.
    fn words_of(&self, task: &TaskId, record: &TaskRecord) -> Option<(Contract, String)> {
        let described = self.known.described(task)?;
        let (name, prompt) = (&self.record.terms.name, &described.task.prompt);
        let branch = self.record.branch(task, record.attempt);
        Some((described.contract.clone(), landing::message(name, task, prompt, &branch)))
    }

    fn open_request(&mut self, task: &TaskId) {
        self.stops_landing.store(false, Ordering::Relaxed);
        let Some(record) = self.record.task(task).cloned() else { return };
        let message = self.words_of(task, &record).map(|(_, message)| message).unwrap_or_default();
        let (terms, task) = (self.record.terms.clone(), task.clone());
        let branch = self.record.branch(&task, record.attempt);
        let (stops, signals) = (Arc::clone(&self.stops_landing), self.signals.clone());
        self.landing.add(move || {
            let stop = || stops.load(Ordering::Relaxed) || signals.times() > 1;
            Done::Opened(task, requests::open(&terms, &record, &branch, &message, &stop))
        });
    }

    /// Removes the clones of a task that landed and, unless they are kept, its branches.
    pub(super) fn remove(&mut self, task: &TaskId) {
        let Some(record) = self.record.task(task).cloned() else { return };
        let (terms, task) = (self.record.terms.clone(), task.clone());
        let files = FleetFiles { root: self.files.root.clone() };
        let access = self.remote.clone().filter(|_| !terms.keeps_branches);
        self.git.add(move || {
            let mut kept = Vec::new();
            let removed = (1..=record.attempt).try_for_each(|number| -> Result<()> {
                let branch = landing::branch(&terms.name, &task, number);
                let (clone, commit) = (files.clone(&task, number), record.commit.as_deref());
                match workspace::remove(&terms.repository, &clone, &branch, commit)? {
                    Removal::Removed { kept: refs } => kept.extend(refs),
                    Removal::Refused(why) => bail!("{why}"),
                }
                Ok(files.remove_attempt(&task, number)?)
            });
            let pattern = format!("refs/heads/fleet/{}/{task}/*", terms.name);
            let removed = removed.and_then(|()| {
                access.map_or(Ok(()), |access| delete(&access, &pattern))?;
                Ok(kept)
            });
            Done::Removed(task, removed)
        });
    }

    // What the threads have done.

    pub(super) fn take_result(&mut self, done: Done) -> Result<(), String> {
        match done {
            Done::Fetched(task, result) => self.take_fetched(task, result),
            Done::Prepared(task, result) => return self.take_prepared(task, result),
            Done::Opened(task, result) => match result {
                Ok(Ok(landed)) => self.take_in(FleetEvent::Landed(task, landed)),
                Ok(Err(refusal)) => self.take_in(FleetEvent::Refused(task, refusal)),
                Err(error) => self.landing_failed(task, &error),
            },
            Done::Removed(task, result) => match result {
                Ok(kept) => {
                    self.known.clones.remove(&task);
                    if !kept.is_empty() {
                        self.note(&format!(
                            "{task}: its other commits are kept as {}",
                            kept.join(", ")
                        ));
                    }
                }
                Err(error) => self.note(&format!("the clone of {task} stays here: {error:#}")),
            },
        }
        Ok(())
    }

    fn take_fetched(&mut self, task: TaskId, result: Result<Option<String>>) {
        self.fetching.remove(&task);
        match result {
            Ok(found) => {
                self.fetch_again.remove(&task);
                if self.fetch_again.is_empty() {
                    self.set_trouble("fetch", None);
                }
                if found.is_none() && self.record.is_local() && !self.has_clone(&task) {
                    self.known.clones.remove(&task);
                }
                if let Some(commit) = found {
                    self.take_in(FleetEvent::Fetched { task, commit });
                }
            }
            Err(error) => {
                self.fetched.remove(&task);
                let why = first_line(&format!("{error:#}"));
                self.set_trouble("fetch", Some(format!("{task} cannot be fetched: {why}")));
                self.fetch_again.insert(task, Deadline::after(FETCH_AGAIN));
            }
        }
    }

    fn has_clone(&self, task: &TaskId) -> bool {
        let number = self.record.task(task).map_or(0, |task| task.attempt);
        disk::is_folder(&self.files.clone(task, number))
    }

    fn take_prepared(&mut self, task: TaskId, result: Result<Prepared>) -> Result<(), String> {
        match result {
            Ok(Prepared::Ready { main, commit }) => return self.push_landing(task, main, commit),
            Ok(Prepared::Refused(refusal)) => self.take_in(FleetEvent::Refused(task, refusal)),
            Ok(Prepared::Stopped) => {
                let why = "it was stopped".to_owned();
                self.take_in(FleetEvent::LandingFailed { task, why, needs_person: false });
            }
            Err(error) => self.landing_failed(task, &error),
        }
        Ok(())
    }

    /// Pushes what was checked, together with a record that says so: both or neither.
    fn push_landing(&mut self, task: TaskId, main: String, commit: String) -> Result<(), String> {
        let before = self.record.clone();
        let new = Some(commit.clone()).filter(|commit| *commit != main);
        let event = FleetEvent::Landed(task.clone(), Landed::Main(new));
        let effects = step(&mut self.record, &mut self.known, event, clock::now().wall);
        let base = BaseMove { before: main, commit };
        let pushed = self.store.land(&base, &self.record);
        if let Ok(true) = pushed {
            self.queue(effects);
            return Ok(());
        }
        self.record = before;
        self.known.landing = Some(task.clone());
        match pushed {
            Err(StoreFault::Lost(who)) => return Err(who),
            Err(StoreFault::Remote(fault)) => self.landing_failed(task, &fault.into()),
            Err(StoreFault::Disk(error)) => self.landing_failed(task, &error.into()),
            Ok(_) if self.landing_tries < LANDING_TRIES => {
                self.landing_tries += 1;
                self.land(&task);
            }
            Ok(_) => {
                let base = &self.record.terms.base;
                let why = format!("{base} moved {LANDING_TRIES} times while the checks ran");
                self.take_in(FleetEvent::Refused(task, Refusal::Moved(why)));
            }
        }
        Ok(())
    }

    fn landing_failed(&mut self, task: TaskId, error: &Error) {
        use GitTrouble::{Auth, Network, NoRemote};
        let is_passing = matches!(git_trouble(error), None | Some(Auth | Network | NoRemote));
        let needs_person = !is_passing;
        let why = first_line(&format!("{error:#}"));
        self.take_in(FleetEvent::LandingFailed { task, why, needs_person });
    }
}

fn note_in(log: &Path, line: &str) {
    let mut log = Log::open(log);
    log.add(format!("{line}\n").as_bytes());
    // A landing does not depend on what is said about it.
    let _ = log.close();
}

/// Pushes the branch of an attempt. What somebody else pushed there is left alone.
fn push(access: &RemoteAccess, branch: &str, commit: &str) -> Result<(), GitFault> {
    let name = format!("refs/heads/{branch}");
    let old = access.seen(&name)?;
    if old.as_deref() == Some(commit) {
        return Ok(());
    }
    if old.as_ref().is_some_and(|old| !git::is_a_commit(&access.repository, old)) {
        let cause = format!("somebody else pushed to {branch}");
        let cure = "look at it, and move what is there to another branch";
        return Err(GitFault::new(GitStep::Push, GitTrouble::NonFastForward, cause, cure));
    }
    let update = RefUpdate { name, old, new: Some(commit.to_owned()) };
    // Where it is refused, it moved just now: the next try looks again.
    access.refs(&access.repository)?.swap(&[update]).map(drop)
}

/// Brings a branch of the remote here as the ref `to`.
fn track(access: Option<&RemoteAccess>, branch: &str, to: &str) -> Result<Option<String>> {
    let access = access.context("this fleet has no remote")?;
    let name = format!("refs/heads/{branch}");
    let Some(commit) = access.seen(&name)? else { return Ok(None) };
    access.refs(&access.repository)?.fetch(&[&name], &[])?;
    git::refs::point(&access.repository, to, &commit)?;
    Ok(Some(commit))
}

/// Deletes branches of the remote whose commits are here.
fn delete(access: &RemoteAccess, pattern: &str) -> Result<(), GitFault> {
    let refs = access.refs(&access.repository)?;
    let mut found = refs.list(&[pattern])?;
    found.retain(|it| git::is_a_commit(&access.repository, &it.id));
    let gone = found.into_iter().map(|it| RefUpdate { name: it.name, old: Some(it.id), new: None });
    refs.swap(&gone.collect::<Vec<_>>()).map(drop)
}
