//! What a coordinator does about what happened. What takes long is done by its threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};

use super::attempt::{self, remote};
use super::coordinator::{Coordinator, short};
use super::executors::{JobCall, SeenJob};
use super::files::FleetFiles;
use super::landing::{self, Landing, Prepared};
use super::record::{Landed, TaskRecord, TaskState};
use super::requests;
use super::shared::RemoteAccess;
use super::spec::{AttemptPhase, AttemptReport, AttemptSpec, Coordination, Source};
use super::step::{Effect, FleetEvent, FleetRequest, take_in};
use super::store::StoreFault;
use super::workspace::{self, Removal};
use crate::drive::error_text::git_trouble;
use crate::engine::fleet::{Refusal, TaskId};
use crate::engine::git::{GitFault, GitStep, GitTrouble, RefUpdate};
use crate::engine::record::Contract;
use crate::engine::text::clean;
use crate::world::clock::{self, Deadline};
use crate::world::files::disk::{self, Durability};
use crate::world::git;
use crate::world::process::signals::ask_to_end;
use crate::world::store::logs::Log;
use crate::world::store::write_json;

/// Between two tries to fetch a task's work.
const FETCH_AGAIN: Duration = Duration::from_secs(5);
/// How often a landing begins again because the base has moved.
const LANDING_TRIES: u32 = 8;

/// How git says that nothing can be written.
const FULL: [&str; 3] = ["No space left", "quota exceeded", "Read-only file system"];

/// What a thread has done.
pub(super) enum Done {
    /// The commit that was brought here; `None`: there is no such branch.
    Fetched(TaskId, Result<Option<String>, FetchFault>),
    /// The record is at the remote, so that these can start.
    Pushed(Vec<Effect>, Result<bool, StoreFault>),
    /// The base and the record have moved; false where somebody else moved the base.
    Moved(TaskId, Landed, Result<bool, StoreFault>),
    /// What is known of attempts elsewhere: those that ran, the jobs, and then the reports.
    Reports(Vec<(TaskId, u32, bool)>, Vec<SeenJob>, Result<BTreeMap<TaskId, AttemptReport>>),
    /// A request was passed on.
    Passed(TaskId, Result<()>),
    Prepared(TaskId, Result<Prepared>),
    Opened(TaskId, Result<Result<Landed, Refusal>>),
    /// The refs that keep what no branch had.
    Removed(TaskId, Result<Vec<String>>),
}

/// Why a task's work was not fetched.
pub(super) enum FetchFault {
    /// Its clone or its branch.
    Task(String),
    /// The remote or the repository, and so every task.
    All(String),
}

/// A thread that does one thing after the other. git ends with the thread that started it, so the
/// thread lives as long as anything is to be done.
pub(super) struct Worker {
    works: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

type Work = Box<dyn FnOnce() -> Done + Send>;

impl Worker {
    pub(super) fn start(results: Sender<Done>) -> Self {
        let (works, queue) = channel::<Work>();
        let run = move || queue.iter().for_each(|work| drop(results.send(work())));
        Self { works: Some(works), thread: Some(thread::spawn(run)) }
    }

    /// Adds something to do, unless it was ended.
    pub(super) fn add(&self, work: impl FnOnce() -> Done + Send + 'static) {
        if let Some(works) = &self.works {
            let _ = works.send(Box::new(work));
        }
    }

    /// Waits for what it has to do.
    pub(super) fn end(&mut self) {
        self.works = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Coordinator<'_> {
    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Start { task, number, continues } => self.start(&task, number, continues),
            Effect::Pass { task, request } if self.is_before_its_loop(&task, &request) => {
                self.end_attempt(&task);
            }
            Effect::Pass { task, request } => self.pass(task, request),
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

    fn start(&mut self, task: &TaskId, number: u32, continues: bool) {
        self.to_start.remove(task);
        let event = match self.hand_over(task, number, continues) {
            Ok(job) => FleetEvent::Started { task: task.clone(), number, job },
            Err(error) => FleetEvent::NotStarted { task: task.clone(), why: short(&error) },
        };
        self.take_in(event);
    }

    /// Hands an attempt to the executor, and returns its name of the job.
    fn hand_over(&mut self, task: &TaskId, number: u32, continues: bool) -> Result<String> {
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
    fn pass(&mut self, task: TaskId, request: FleetRequest) {
        let Some(record) = self.record.task(&task) else { return };
        if let (false, Some(access)) = (self.record.is_local(), self.remote.clone()) {
            let (fleet, number) = (self.record.terms.name.clone(), record.attempt);
            return self.talk.add(move || {
                let refs = access.refs().map_err(Error::from);
                let sent = refs
                    .and_then(|refs| remote::send_request(&refs, &fleet, &task, number, &request));
                Done::Passed(task, sent)
            });
        }
        if let Some(id) = record.loop_id.clone() {
            let passed = remote::obey(self.home, &id, &request);
            self.take_passed(&task, passed);
        }
    }

    fn take_passed(&mut self, task: &TaskId, passed: Result<()>) {
        if let Err(error) = passed {
            self.note(&format!("{task} did not get a request: {error:#}"));
        }
    }

    /// Whether an attempt is to stop that has no loop yet which takes the request: `setup` and the
    /// queue for a slot may take hours. One that only pauses gets its clone made ready first.
    fn is_before_its_loop(&self, task: &TaskId, request: &FleetRequest) -> bool {
        let FleetRequest::Task(request) = request else { return false };
        let report = self.known.reports.get(task);
        let is_queued = report.is_some_and(|report| report.phase == AttemptPhase::Queued);
        let has_loop = self.record.task(task).is_some_and(|record| record.loop_id.is_some());
        let takes_it = if is_queued { has_loop } else { report.is_some_and(|it| it.has_loop()) };
        self.record.is_local() && !takes_it && (is_queued || request.is_now())
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
    fn fetch(&mut self, task: &TaskId) {
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
                let brought = bring(&repository, &clone, &branch, &to);
                brought.and_then(|commit| {
                    if let (Some(access), Some(commit)) = (&access, &commit) {
                        push(access, &branch, commit).map_err(push_fault)?;
                    }
                    Ok(commit)
                })
            } else {
                let tracked = track(access.as_ref(), &branch, &to);
                tracked.map_err(|error| FetchFault::All(short(&error)))
            };
            Done::Fetched(task, fetched)
        });
    }

    /// Brings the work here that a coordinator on another machine had fetched and pushed.
    pub(super) fn bring_work(&self) -> Result<(), GitFault> {
        let Some(access) = &self.remote else { return Ok(()) };
        let here = access.repository.as_path();
        let is_missing = |commit: &String| git::commit(here, commit).is_none();
        let tasks = self.record.tasks.iter();
        let lacking = tasks.filter_map(|(id, task)| Some((id, task.commit.as_ref()?)));
        let lacking: Vec<_> = lacking.filter(|(_, commit)| is_missing(commit)).collect();
        let fleet = &self.record.terms.name;
        let branches = lacking.iter().map(|(id, _)| format!("refs/heads/fleet/{fleet}/{id}/*"));
        let branches: Vec<String> = branches.collect();
        let refs = access.refs()?;
        let found = refs.list(&branches.iter().map(String::as_str).collect::<Vec<_>>())?;
        refs.fetch(&found.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), &[])?;
        for (id, commit) in lacking.into_iter().filter(|(_, commit)| !is_missing(commit)) {
            git::refs::point(here, &format!("refs/remotes/crew/{fleet}/{id}"), commit)?;
        }
        Ok(())
    }

    /// Tries again what could not be fetched.
    pub(super) fn fetch_due(&mut self) {
        let due = |(task, again): (&TaskId, &Deadline)| again.passed().then(|| task.clone());
        for task in self.fetch_again.iter().filter_map(due).collect::<Vec<_>>() {
            self.fetch(&task);
        }
    }

    fn land(&mut self, task: &TaskId) {
        let Some(record) = self.record.task(task).cloned() else { return };
        let Some((contract, message)) = self.words_of(task, &record) else {
            let why = "its file is gone, and with it its checks".to_owned();
            let task = task.clone();
            return self.take_in(FleetEvent::LandingFailed { task, why, needs_person: true });
        };
        let (home, terms, task) = (self.home.clone(), self.record.terms.clone(), task.clone());
        let log = self.files.log(&task, record.attempt);
        self.add_landing(move |stop| {
            let note = |line: &str| note_in(&log, line);
            let prepared = landing::prepare(&Landing {
                home: &home,
                terms: &terms,
                task: &task,
                record: &record,
                contract: &contract,
                message: &message,
                stop,
                note: &note,
            });
            Done::Prepared(task, prepared)
        });
    }

    /// Does this in the thread of landings until it shall stop: by a cancel or a second signal.
    fn add_landing(&self, work: impl FnOnce(&dyn Fn() -> bool) -> Done + Send + 'static) {
        self.stops_landing.store(false, Ordering::Relaxed);
        let (stops, signals) = (Arc::clone(&self.stops_landing), self.signals.clone());
        let stop = move || stops.load(Ordering::Relaxed) || signals.times() > 1;
        self.landing.add(move || work(&stop));
    }

    /// The contract of a task as it is now, and the message of the commit that lands.
    fn words_of(&self, task: &TaskId, record: &TaskRecord) -> Option<(Contract, String)> {
        let described = self.known.described(task)?;
        let (name, prompt) = (&self.record.terms.name, &described.task.prompt);
        let branch = self.record.branch(task, record.attempt);
        Some((described.contract.clone(), landing::message(name, task, prompt, &branch)))
    }

    fn open_request(&mut self, task: &TaskId) {
        let Some(record) = self.record.task(task).cloned() else { return };
        let message = self.words_of(task, &record).map(|(_, message)| message).unwrap_or_default();
        let (terms, task) = (self.record.terms.clone(), task.clone());
        let branch = self.record.branch(&task, record.attempt);
        self.add_landing(move |stop| {
            Done::Opened(task, requests::open(&terms, &record, &branch, &message, stop))
        });
    }

    /// Removes the clones of a task that landed and, unless they are kept, its branches.
    fn remove(&mut self, task: &TaskId) {
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
            Done::Pushed(starts, pushed) => return self.take_pushed(starts, pushed),
            Done::Moved(task, landed, moved) => return self.take_moved(task, landed, moved),
            Done::Reports(running, jobs, reports) => self.take_reports(running, &jobs, reports),
            Done::Passed(task, passed) => self.take_passed(&task, passed),
            Done::Prepared(task, result) => self.take_prepared(task, result),
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

    fn take_fetched(&mut self, task: TaskId, result: Result<Option<String>, FetchFault>) {
        self.fetching.remove(&task);
        if !matches!(result, Err(FetchFault::All(_))) {
            self.fetch_again.remove(&task);
            if self.fetch_again.is_empty() {
                self.set_trouble("fetch", None);
            }
        }
        match result {
            Ok(Some(commit)) => self.take_in(FleetEvent::Fetched { task, commit }),
            Ok(None) | Err(FetchFault::Task(_))
                if self.record.is_local() && !self.has_clone(&task) =>
            {
                self.known.clones.remove(&task);
            }
            Ok(None) => self.fetch_failed(task, "its branch is not there".to_owned()),
            Err(FetchFault::Task(why)) => self.fetch_failed(task, why),
            Err(FetchFault::All(why)) => {
                self.fetched.remove(&task);
                self.set_trouble("fetch", Some(format!("{task} cannot be fetched: {why}")));
                self.fetch_again.insert(task, Deadline::after(FETCH_AGAIN));
            }
        }
    }

    fn fetch_failed(&mut self, task: TaskId, why: String) {
        self.fetched.remove(&task);
        self.take_in(FleetEvent::FetchFailed { task, why });
    }

    fn has_clone(&self, task: &TaskId) -> bool {
        let number = self.record.task(task).map_or(0, |task| task.attempt);
        disk::is_folder(&self.files.clone(task, number))
    }

    /// Starts what waited for the remote's record, or lets it wait for the next push.
    fn take_pushed(
        &mut self,
        starts: Vec<Effect>,
        pushed: Result<bool, StoreFault>,
    ) -> Result<(), String> {
        self.store.answered(pushed.is_ok());
        if pushed.is_ok() {
            starts.into_iter().for_each(|start| self.carry_out(start));
        } else {
            self.starts.extend(starts);
        }
        self.heed("push", pushed.map(drop))
    }

    fn take_prepared(&mut self, task: TaskId, result: Result<Prepared>) {
        match result {
            Ok(Prepared::Ready { main, commit }) => self.push_landing(task, main, commit),
            Ok(Prepared::Refused(refusal)) => self.take_in(FleetEvent::Refused(task, refusal)),
            Ok(Prepared::Stopped) => {
                let why = "it was stopped".to_owned();
                self.take_in(FleetEvent::LandingFailed { task, why, needs_person: false });
            }
            Err(error) => self.landing_failed(task, &error),
        }
    }

    /// Pushes what was checked, together with a record that says so: both or neither.
    fn push_landing(&mut self, task: TaskId, main: String, commit: String) {
        let new = if commit == main { None } else { Some(commit.clone()) };
        let (landed, mut record) = (Landed::Main(new), self.record.clone());
        let mut known = Coordination { landing: Some(task.clone()), ..Coordination::default() };
        let event = FleetEvent::Landed(task.clone(), landed.clone());
        // What follows here, follows once it is pushed.
        drop(take_in(&mut record, &mut known, event, clock::now().wall));
        let name = format!("refs/heads/{}", record.terms.base);
        let base = RefUpdate { name, old: Some(main), new: Some(commit) };
        match self.store.land(base, &record) {
            Some(push) => self.talk.add(move || Done::Moved(task, landed, push())),
            None => self.landing_failed(task, &anyhow!("this fleet has no remote")),
        }
    }

    fn take_moved(
        &mut self,
        task: TaskId,
        landed: Landed,
        moved: Result<bool, StoreFault>,
    ) -> Result<(), String> {
        self.store.answered(matches!(moved, Ok(true)));
        match moved {
            Ok(true) => self.take_in(FleetEvent::Landed(task, landed)),
            Ok(false) if self.landing_tries < LANDING_TRIES => {
                self.landing_tries += 1;
                self.land(&task);
            }
            Ok(false) => {
                let base = &self.record.terms.base;
                let why = format!("{base} moved {LANDING_TRIES} times while the checks ran");
                self.take_in(FleetEvent::Refused(task, Refusal::Moved(why)));
            }
            Err(StoreFault::Lost(who)) => return Err(who),
            Err(StoreFault::Remote(fault)) => self.landing_failed(task, &fault.into()),
            Err(StoreFault::Disk(error)) => self.landing_failed(task, &error.into()),
        }
        Ok(())
    }

    fn landing_failed(&mut self, task: TaskId, error: &Error) {
        use GitTrouble::{Auth, Network, NoRemote};
        let is_passing = matches!(git_trouble(error), None | Some(Auth | Network | NoRemote));
        let needs_person = !is_passing;
        let why = short(error);
        self.take_in(FleetEvent::LandingFailed { task, why, needs_person });
    }
}

fn note_in(log: &Path, line: &str) {
    let mut log = Log::open(log);
    log.add(format!("{}\n", clean(line)).as_bytes());
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
    access.refs()?.swap(&[update]).map(drop)
}

/// Whose fault it is that a branch was not pushed: what somebody else did to it concerns no other.
fn push_fault(fault: GitFault) -> FetchFault {
    let (trouble, why) = (fault.trouble, short(&fault.into()));
    match trouble {
        GitTrouble::NonFastForward => FetchFault::Task(why),
        _ => FetchFault::All(why),
    }
}

/// Brings the branch of an attempt from its clone. A disk that is full is not the clone's fault.
fn bring(
    repository: &Path,
    clone: &Path,
    branch: &str,
    to: &str,
) -> Result<Option<String>, FetchFault> {
    workspace::bring(repository, clone, branch, to).map_err(|error| {
        let (text, why) = (format!("{error:#}"), short(&error));
        let is_full = FULL.iter().any(|words| text.contains(words));
        if is_full { FetchFault::All(why) } else { FetchFault::Task(why) }
    })
}

/// Brings a branch of the remote here as the ref `to`.
fn track(access: Option<&RemoteAccess>, branch: &str, to: &str) -> Result<Option<String>> {
    let access = access.context("this fleet has no remote")?;
    let name = format!("refs/heads/{branch}");
    let Some(commit) = access.seen(&name)? else { return Ok(None) };
    access.refs()?.fetch(&[&name], &[])?;
    git::refs::point(&access.repository, to, &commit)?;
    Ok(Some(commit))
}

/// Deletes branches of the remote whose commits are here.
fn delete(access: &RemoteAccess, pattern: &str) -> Result<(), GitFault> {
    let refs = access.refs()?;
    let mut found = refs.list(&[pattern])?;
    found.retain(|it| git::is_a_commit(&access.repository, &it.id));
    let gone = found.into_iter().map(|it| RefUpdate { name: it.name, old: Some(it.id), new: None });
    refs.swap(&gone.collect::<Vec<_>>()).map(drop)
}
