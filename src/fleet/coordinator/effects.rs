//! What a coordinator does about what happened. What takes long is done by its threads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Error, Result, anyhow};

use super::worker::Workers;
use super::{Coordinator, Done};
use crate::drive::failure::{git_trouble, short_error};
use crate::fleet::attempt;
use crate::fleet::attempt::clones;
use crate::fleet::attempt::remote::{self, AttemptRequest};
use crate::fleet::files::FleetFiles;
use crate::fleet::landing::{self, Landing, PreparedLanding};
use crate::fleet::record::{Landed, TaskRecord, TaskState};
use crate::fleet::spec::{AttemptPhase, AttemptReport, AttemptSpec, Coordination, Source};
use crate::fleet::step::{Effect, FetchConcern, FleetEvent, FleetRequest, step_fleet};
use crate::fleet::store::StoreFault;
use crate::fleet::store::remote_refs::RemoteAccess;
use engine::fleet::{Refusal, TaskId};
use engine::git::{GitFault, GitStep, GitTrouble, RefUpdate, SwapResult};
use engine::record::Contract;
use engine::text::clean_text;
use world::files::disk::{self, Durability};
use world::git;
use world::logs::Log;
use world::process::signals::ask_to_end;
use world::store::write_json;
use world::{clock, env};

/// How often a landing begins again because the base has moved.
const LANDING_TRIES: u32 = 8;

/// Why a landing that was given up has not landed, or a start after a signal has not worked.
const STOPPED: &str = "it was stopped";

/// Why a task's work was not fetched.
struct FetchFault {
    why: String,
    concerns: FetchConcern,
}

impl From<GitFault> for FetchFault {
    /// What another person did to a branch, or what it contains, concerns no other task.
    fn from(fault: GitFault) -> Self {
        let concerns = match fault.trouble {
            GitTrouble::NonFastForward | GitTrouble::Incomplete => FetchConcern::Task,
            GitTrouble::Rejected => FetchConcern::Rules,
            _ => FetchConcern::All,
        };
        Self { why: short_error(&fault.into()), concerns }
    }
}

impl Coordinator<'_> {
    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Start { task, number, continues } => self.start_task(&task, number, continues),
            Effect::Pass { task, request } if self.is_before_its_loop(&task, &request) => {
                self.end_attempt(&task);
            }
            Effect::Pass { task, request } => self.pass_request(task, request),
            Effect::End { task } => self.end_attempt(&task),
            Effect::Fetch { task } => self.fetch_work(&task),
            Effect::Land { task } => {
                self.workers.landing_tries = 0;
                self.workers.stops_landing.store(false, Ordering::Relaxed);
                self.prepare_landing(&task);
            }
            Effect::OpenRequest { task } => {
                self.workers.stops_landing.store(false, Ordering::Relaxed);
                self.open_request(&task);
            }
            Effect::Remove { task } => self.remove_clone(&task),
            Effect::Save | Effect::Say(_) | Effect::Finish => {}
        }
    }

    fn start_task(&mut self, task: &TaskId, number: u32, continues: bool) {
        let event = match self.hand_over(task, number, continues) {
            Ok(job) => FleetEvent::Started { task: task.clone(), number, job },
            Err(error) => FleetEvent::NotStarted { task: task.clone(), why: short_error(&error) },
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
        if let (Source::Remote { .. }, Some(access)) = (&spec.origin.source, &self.remote.access) {
            self.send_work(access, &spec)?;
        }
        if continues {
            // It was written by the earlier process.
            disk::remove(&self.files.report(task, number))?;
        }
        write_json(&self.files.spec(task, number), &spec, Durability::Machine)?;
        self.executor.submit_attempt(&spec)
    }

    /// Pushes the work that an attempt elsewhere starts from, if the remote does not have its
    /// branch: an earlier start did not push it, or it was deleted there.
    fn send_work(&self, access: &RemoteAccess, spec: &AttemptSpec) -> Result<()> {
        let before = spec.number.saturating_sub(1);
        let own = spec.origin.start.iter().map(|commit| (&spec.task.task, before, commit));
        let others =
            spec.origin.before.iter().map(|(id, commit)| {
                (id, self.record.task(id).map_or(0, |task| task.attempt), commit)
            });
        for (task, number, commit) in own.chain(others) {
            let branch = self.record.branch(task, number);
            if access.find_ref(&format!("refs/heads/{branch}"))?.is_none() {
                push_commit(access, &branch, commit, &[], None)?;
            }
        }
        Ok(())
    }

    /// Passes a request on to the loop of a running attempt.
    fn pass_request(&mut self, task: TaskId, request: FleetRequest) {
        let Some(record) = self.record.task(&task) else { return };
        let asked = AttemptRequest { id: env::random_number(), number: record.attempt, request };
        self.remote.unsent.push((task, asked));
        self.send_requests();
    }

    /// Passes requests on to attempts. One that fails is tried again while its attempt runs; a
    /// message is kept for the next attempt.
    pub(super) fn send_requests(&mut self) {
        if self.remote.is_sending {
            return;
        }
        let unsent = std::mem::take(&mut self.remote.unsent).into_iter();
        let (open, over) = unsent.partition(|(task, asked)| {
            let record = self.record.task(task).filter(|task| task.attempt == asked.number);
            record.is_some_and(TaskRecord::is_running)
        });
        self.remote.unsent = open;
        for (task, AttemptRequest { request, .. }) in over {
            if matches!(request, FleetRequest::Tell { .. }) {
                self.take_in(FleetEvent::Requested(Some(task), request));
            }
        }
        if self.remote.unsent.is_empty() {
            return self.set_trouble("requests", None);
        }
        if let (false, Some(access)) = (self.record.is_local(), self.remote.access.clone()) {
            let (fleet, unsent) = (self.record.terms.name.clone(), self.remote.unsent.clone());
            self.remote.is_sending = true;
            return self.workers.talk.add(move || {
                let mut sent = Vec::new();
                let result = access.refs().map_err(Error::from).and_then(|refs| {
                    unsent.iter().try_for_each(|(task, asked)| {
                        remote::send_request(&refs, &fleet, task, asked)?;
                        sent.push(asked.id);
                        Ok(())
                    })
                });
                Box::new(move |this| this.take_sent(&sent, &result))
            });
        }
        let (home, record) = (self.home, &self.record);
        self.remote.unsent.retain(|(task, asked)| {
            let id = record.task(task).and_then(|task| task.loop_id.as_ref());
            id.is_some_and(|id| remote::carry_out(home, id, &asked.request).is_err())
        });
    }

    fn take_sent(&mut self, sent: &[u64], result: &Result<()>) {
        self.remote.is_sending = false;
        self.remote.unsent.retain(|(_, asked)| !sent.contains(&asked.id));
        match result {
            Ok(()) => self.send_requests(),
            Err(error) => {
                let why = format!("a request does not reach its attempt: {}", short_error(error));
                self.set_trouble("requests", Some(why));
            }
        }
    }

    /// Whether an attempt has no loop yet that could receive a request to stop. `setup` and the
    /// queue for a slot may take hours, and the first iteration follows at once.
    fn is_before_its_loop(&self, task: &TaskId, request: &FleetRequest) -> bool {
        let report = self.known.reports.get(task);
        let is_queued = report.is_some_and(|report| report.phase == AttemptPhase::Queued);
        let has_loop = self.record.task(task).is_some_and(|record| record.loop_id.is_some());
        let takes_it =
            if is_queued { has_loop } else { report.is_some_and(AttemptReport::has_loop) };
        self.record.is_local() && !takes_it && matches!(request, FleetRequest::Task(_))
    }

    pub(super) fn end_attempt(&mut self, task: &TaskId) {
        if self.known.landing.as_ref() == Some(task) {
            self.workers.stops_landing.store(true, Ordering::Relaxed);
        }
        let Some(record) = self.record.task(task) else { return };
        let number = record.attempt;
        if let TaskState::Running { job, .. } = &record.state {
            let why = match &**job {
                "" if !self.record.is_local() => Some("its job has no id yet".to_owned()),
                job => self.executor.cancel_job(job).err().map(|error| format!("{error:#}")),
            };
            self.take_in(FleetEvent::EndAsked { task: task.clone(), why });
        }
        // One whose job was never noted here is known by its lock.
        if self.record.is_local()
            && let Some(process) = attempt::process_of(&self.files, task, number)
        {
            ask_to_end(&process);
        }
    }

    /// Brings a task's work to the repository and, where the fleet pushes, its branch to the
    /// remote. What an earlier start has brought here is only pushed.
    fn fetch_work(&mut self, task: &TaskId) {
        let Some(record) = self.record.task(task) else { return };
        let (branch, work) = (self.record.branch(task, record.attempt), record.work.clone());
        let here = if work.tip == work.commit { work.commit.clone() } else { None };
        let terms = self.record.terms.clone();
        let (clone, to) =
            (self.files.clone_of(task, record.attempt), clones::tracking_ref(&terms.name, task));
        let (is_local, access, task) =
            (self.record.is_local(), self.remote.access.clone(), task.clone());
        self.workers.git.add(move || {
            let is_pushed = here.is_none() && !is_local;
            let fetched = match here {
                None if is_local => bring_branch(&terms.repository, &clone, &branch, &to),
                None => track_branch(access.as_ref(), &branch, &to).map_err(FetchFault::from),
                here => Ok(here),
            };
            let pushed = fetched.and_then(|commit| {
                if let (Some(access), Some(commit), false) = (&access, &commit, is_pushed) {
                    let known = clones::known_commits(&terms, &task, work.commit.as_deref());
                    push_commit(access, &branch, commit, &known, work.stands_on.as_deref())?;
                }
                Ok(commit)
            });
            Box::new(move |this| this.take_fetched(task, pushed))
        });
    }

    /// Brings the work here that a coordinator on another machine had fetched and pushed.
    pub(super) fn bring_work(&self) -> Result<(), GitFault> {
        let Some(access) = &self.remote.access else { return Ok(()) };
        let here = access.repository.as_path();
        let tasks = self.record.tasks.iter();
        let lacking = tasks.filter_map(|(id, task)| Some((id, task.work.commit.as_ref()?)));
        let lacking: Vec<_> =
            lacking.filter(|(_, commit)| git::find_commit(here, commit).is_none()).collect();
        let fleet = &self.record.terms.name;
        let branches = lacking.iter().map(|(id, _)| format!("refs/heads/fleet/{fleet}/{id}/*"));
        let branches: Vec<String> = branches.collect();
        let refs = access.refs()?;
        let found = refs.list_refs(&branches.iter().map(String::as_str).collect::<Vec<_>>())?;
        let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
        refs.fetch_objects(&names, &[])?;
        for (id, commit) in lacking {
            if git::find_commit(here, commit).is_some() {
                git::remotes::point_ref(here, &clones::tracking_ref(fleet, id), commit)?;
            }
        }
        Ok(())
    }

    fn prepare_landing(&mut self, task: &TaskId) {
        let Some(record) = self.record.task(task).cloned() else { return };
        let Some((contract, message)) = self.words_of(task, &record) else {
            let why = "its file is gone, and with it its checks".to_owned();
            let task = task.clone();
            return self.take_in(FleetEvent::LandingFailed { task, why, needs_person: true });
        };
        let (home, terms, task) = (self.home.clone(), self.record.terms.clone(), task.clone());
        let log = self.files.log(&task, record.attempt);
        self.add_landing(move |stop| {
            let prepared = landing::prepare_landing(&Landing {
                home: &home,
                terms: &terms,
                task: &task,
                record: &record,
                contract: &contract,
                message: &message,
                stop,
                note: &|line| note_in(&log, line),
            });
            Box::new(move |this| this.take_prepared(task, prepared))
        });
    }

    /// Runs `work` in the thread of landings; a cancel or a second signal stops it.
    fn add_landing(&self, work: impl FnOnce(&dyn Fn() -> bool) -> Done + Send + 'static) {
        let Workers { stops_landing, landing, .. } = &self.workers;
        let (stops, signals) = (Arc::clone(stops_landing), self.signals.clone());
        landing.add(move || work(&|| stops.load(Ordering::Relaxed) || signals.times() > 1));
    }

    /// The present contract of a task, and the message of the commit that lands.
    fn words_of(&self, task: &TaskId, record: &TaskRecord) -> Option<(Contract, String)> {
        let described = self.known.described_task(task)?;
        let (name, prompt) = (&self.record.terms.name, &described.task.prompt);
        let branch = self.record.branch(task, record.attempt);
        Some((described.contract.clone(), landing::landing_message(name, task, prompt, &branch)))
    }

    fn open_request(&mut self, task: &TaskId) {
        let Some(record) = self.record.task(task).cloned() else { return };
        let message = self.words_of(task, &record).map(|(_, message)| message).unwrap_or_default();
        let (terms, task) = (self.record.terms.clone(), task.clone());
        let branch = self.record.branch(&task, record.attempt);
        self.add_landing(move |stop| {
            let opened =
                landing::open_request(landing::GH, &terms, &record, (&branch, &message), stop);
            Box::new(move |this| this.landing_ended(task, opened))
        });
    }

    /// Removes the branches of a task that landed, unless they are kept, and then its clones: as
    /// long as one is there, the next start tries again what failed.
    fn remove_clone(&mut self, task: &TaskId) {
        let Some(record) = self.record.task(task).cloned() else { return };
        let (terms, task) = (self.record.terms.clone(), task.clone());
        let files = FleetFiles { root: self.files.root.clone() };
        let access = if terms.keeps_branches { None } else { self.remote.access.clone() };
        self.workers.git.add(move || {
            let mut kept = Vec::new();
            let pattern = format!("refs/heads/fleet/{}/{task}/*", terms.name);
            let known = clones::known_commits(&terms, &task, record.work.commit.as_deref());
            let deleted = access.map_or(Ok(()), |access| delete_refs(&access, &pattern, &known));
            // Where a rule of the remote keeps the branches, no later try removes them.
            let is_over = deleted
                .as_ref()
                .map_or_else(|fault| fault.trouble == GitTrouble::Rejected, |()| true);
            let numbers = 1..=if is_over { record.attempt } else { 0 };
            let removed = numbers.map(|number| -> Result<()> {
                let branch = task.branch_name(&terms.name, number);
                let (clone, commit) =
                    (files.clone_of(&task, number), record.work.commit.as_deref());
                kept.extend(clones::remove_clone(&terms.repository, &clone, &branch, commit)?);
                Ok(files.remove_attempt(&task, number)?)
            });
            let removed = removed.collect::<Result<()>>().and(deleted.map_err(Error::from));
            Box::new(move |this| this.take_removed(&task, removed, &kept))
        });
    }

    fn take_removed(&mut self, task: &TaskId, removed: Result<()>, kept: &[String]) {
        if let Err(error) = removed {
            let (why, fleet) = (short_error(&error), &self.record.terms.name);
            return self.note(&format!(
                "{task} has landed, and some of what it left stays: {why}; \
                 crew fleet clean {fleet} removes that"
            ));
        }
        self.known.clones.remove(task);
        if !kept.is_empty() {
            self.note(&format!("{task}: its other commits are kept as {}", kept.join(", ")));
        }
    }

    // What the threads have done.

    fn take_fetched(&mut self, task: TaskId, result: Result<Option<String>, FetchFault>) {
        let FetchFault { why, concerns } = match result {
            Ok(Some(commit)) => return self.take_in(FleetEvent::Fetched { task, commit }),
            Ok(None) => {
                let why = "its branch is not there".to_owned();
                FetchFault { why, concerns: FetchConcern::Task }
            }
            Err(fault) => fault,
        };

        if concerns == FetchConcern::Task
            && self.record.is_local()
            && let Some(record) = self.record.task(&task)
            && record.work.tip != record.work.commit
            && !disk::is_folder(&self.files.clone_of(&task, record.attempt))
        {
            self.known.clones.remove(&task);
            self.known.fetching.remove(&task);
            return;
        }
        self.take_in(FleetEvent::FetchFailed { task, why, concerns });
    }

    /// Notes that the remote's record names this many starts, or lets them wait for the next push.
    pub(super) fn take_pushed(&mut self, starts: usize, pushed: Result<bool, StoreFault>) {
        self.store.note_answer(pushed.is_ok());
        if pushed.is_ok() {
            // A signal may have let go of some of them.
            self.remote.ready = (self.remote.ready + starts).min(self.remote.starts.len());
        }
        self.note_write("push", pushed.map(drop));
    }

    /// Whether a job elsewhere works on a task.
    pub(super) fn has_job(&self, task: &TaskId) -> bool {
        !self.record.is_local() && self.record.task(task).is_some_and(TaskRecord::is_running)
    }

    /// Ends or hands over one job elsewhere. That may take minutes, and before the next one signals
    /// and requests are read, and the record is renewed. After a signal nothing is handed over.
    pub(super) fn ask_executor(&mut self) {
        if self.known.stop.signals > 0 {
            self.remote.ready = 0;
            for start in std::mem::take(&mut self.remote.starts) {
                if let Effect::Start { task, .. } = start {
                    self.take_in(FleetEvent::NotStarted { task, why: STOPPED.to_owned() });
                }
            }
        }
        if !self.remote.ends.is_empty() {
            let task = self.remote.ends.remove(0);
            self.pending.has_changed = true;
            self.end_attempt(&task);
        } else if self.remote.ready > 0 {
            self.remote.ready -= 1;
            let start = self.remote.starts.remove(0);
            match start {
                Effect::Start { task, .. } if self.record.request_of(&task).is_some() => {
                    self.take_in(FleetEvent::NotStarted { task, why: STOPPED.to_owned() });
                }
                start => self.carry_out(start),
            }
        }
    }

    pub(super) fn take_prepared(&mut self, task: TaskId, result: Result<PreparedLanding>) {
        let ended = match result {
            Ok(PreparedLanding::Refused(refusal)) => Ok(Err(refusal)),
            Ok(PreparedLanding::Ready { main, commit }) if !self.is_stopped() => {
                return self.push_landing(task, main, commit);
            }
            Ok(PreparedLanding::Ready { .. } | PreparedLanding::Stopped) => Err(anyhow!(STOPPED)),
            Err(error) => Err(error),
        };
        self.landing_ended(task, ended);
    }

    /// Pushes what was checked, together with a record that says so: both or neither.
    fn push_landing(&mut self, task: TaskId, main: String, commit: String) {
        let new = if commit == main { None } else { Some(commit.clone()) };
        let (landed, mut record) = (Landed::Main(new), self.record.clone());
        let mut known = Coordination { landing: Some(task.clone()), ..Coordination::default() };
        let event = FleetEvent::Landed(task.clone(), landed.clone());
        // The effects here follow once it is pushed.
        drop(step_fleet(&mut record, &mut known, event, clock::now().wall));
        let name = format!("refs/heads/{}", record.terms.base);
        let base = RefUpdate { name, old: Some(main), new: Some(commit) };
        let Some(push) = self.store.prepare_landing_push(base, &record) else {
            return self.landing_ended(task, Err(anyhow!("this fleet has no remote")));
        };
        self.workers.talk.add(move || {
            let moved = push();
            Box::new(move |this| this.take_moved(task, landed, moved))
        });
    }

    /// Whether the landing was cancelled, or given up, since it began first.
    fn is_stopped(&self) -> bool {
        self.workers.stops_landing.load(Ordering::Relaxed)
    }

    /// Handles a push that moved the base and the record; `false` if another process moved the base
    /// first.
    pub(super) fn take_moved(
        &mut self,
        task: TaskId,
        landed: Landed,
        moved: Result<bool, StoreFault>,
    ) {
        self.store.note_answer(matches!(moved, Ok(true)));
        let ended = match moved {
            Ok(true) => Ok(Ok(landed)),
            Ok(false) if self.is_stopped() => Err(anyhow!(STOPPED)),
            Ok(false) if self.workers.landing_tries < LANDING_TRIES => {
                self.workers.landing_tries += 1;
                return self.prepare_landing(&task);
            }
            Ok(false) => {
                let base = &self.record.terms.base;
                let why = format!("{base} moved {LANDING_TRIES} times while the checks ran");
                Ok(Err(Refusal::Moved(why)))
            }
            Err(StoreFault::Lost(who)) => return self.pending.lost = Some(who),
            Err(fault) => Err(fault.into_error()),
        };
        self.landing_ended(task, ended);
    }

    /// Passes on the result of a landing; an error means that it could not be tried.
    fn landing_ended(&mut self, task: TaskId, ended: Result<Result<Landed, Refusal>>) {
        use GitTrouble::{Auth, Network, NoRemote, Other};
        self.take_in(match ended {
            Ok(Ok(landed)) => FleetEvent::Landed(task, landed),
            Ok(Err(refusal)) => FleetEvent::Refused(task, refusal),
            Err(error) => {
                let trouble = git_trouble(&error);
                // A git that was killed is one of the others.
                let is_passing = matches!(trouble, None | Some(Auth | Network | NoRemote | Other));
                let needs_person = !is_passing;
                FleetEvent::LandingFailed { task, why: short_error(&error), needs_person }
            }
        });
    }
}

fn note_in(log: &Path, line: &str) {
    let mut log = Log::open(log);
    log.add(format!("{}\n", clean_text(line)).as_bytes());
    // A landing does not depend on its log.
    let _ = log.close();
}

/// Pushes the branch of an attempt, replacing its last known commit only. Commits that were pushed
/// there otherwise are left alone. `stands_on`, the commit below it, came from the remote.
fn push_commit(
    access: &RemoteAccess,
    branch: &str,
    commit: &str,
    known: &[String],
    stands_on: Option<&str>,
) -> Result<(), GitFault> {
    let name = format!("refs/heads/{branch}");
    let old = access.find_ref(&name)?;
    if old.as_deref() == Some(commit) {
        return Ok(());
    }
    let known = [known, &[commit.to_owned()]].concat();
    if old.as_ref().is_some_and(|old| !git::is_held(&access.repository, old, &known)) {
        let cause = format!("someone else pushed to {branch}");
        let hint = "look at it, and move what is there to another branch";
        return Err(GitFault::new(GitStep::Push, GitTrouble::NonFastForward, cause, hint));
    }
    // Hosts refuse a branch that points to files they do not have.
    let has: Vec<String> = old.iter().cloned().chain(stands_on.map(str::to_owned)).collect();
    access.send_lfs(commit, &has)?;
    let update = RefUpdate { name, old, new: Some(commit.to_owned()) };
    // A refusal means that it moved just now: the next try reads it again.
    access.refs()?.swap(&[update]).map(drop)
}

/// Brings the branch of an attempt from its clone. A disk that is full is not the clone's fault.
fn bring_branch(
    repository: &Path,
    clone: &Path,
    branch: &str,
    to: &str,
) -> Result<Option<String>, FetchFault> {
    git::clone::bring_branch(repository, clone, branch, to).map_err(|fault| {
        let is_full = fault.trouble == GitTrouble::DiskFull;
        let concerns = if is_full { FetchConcern::All } else { FetchConcern::Task };
        FetchFault { why: short_error(&fault.into()), concerns }
    })
}

/// Brings a branch of the remote here as the ref `to`.
fn track_branch(
    access: Option<&RemoteAccess>,
    branch: &str,
    to: &str,
) -> Result<Option<String>, GitFault> {
    let Some(access) = access else { return Ok(None) };
    let name = format!("refs/heads/{branch}");
    let Some(commit) = access.find_ref(&name)? else { return Ok(None) };
    access.refs()?.fetch_objects(&[&name], &[])?;
    git::remotes::point_ref(&access.repository, to, &commit)?;
    Ok(Some(commit))
}

/// Deletes branches at the remote that are still at their last known commits.
fn delete_refs(access: &RemoteAccess, pattern: &str, known: &[String]) -> Result<(), GitFault> {
    let refs = access.refs()?;
    let mut found = refs.list_refs(&[pattern])?;
    found.retain(|branch| git::is_held(&access.repository, &branch.id, known));
    let gone = found.into_iter().map(|found| RefUpdate {
        name: found.name,
        old: Some(found.id),
        new: None,
    });
    match refs.swap(&gone.collect::<Vec<_>>())? {
        SwapResult::Refused => {
            let cause = format!("{pattern} changed just now");
            let hint = "the next try looks again";
            Err(GitFault::new(GitStep::Push, GitTrouble::NonFastForward, cause, hint))
        }
        SwapResult::Done => Ok(()),
    }
}

#[cfg(test)]
#[path = "effects_tests.rs"]
mod tests;
