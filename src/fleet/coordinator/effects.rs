//! How a coordinator carries out effects. Its worker threads do what takes long.

use std::path::Path;

use anyhow::{Context, Error, Result};

use super::Coordinator;
use super::landing::{STOPPED, queue_landing, queue_pull};
use crate::drive::failure::short_error;
use crate::fleet::attempt;
use crate::fleet::attempt::clones;
use crate::fleet::attempt::remote::{self, AttemptRequest};
use crate::fleet::files::FleetFiles;
use crate::fleet::record::{TaskRecord, TaskState};
use crate::fleet::spec::{AttemptPhase, AttemptReport, AttemptSpec, Source};
use crate::fleet::step::{Effect, FetchConcern, FleetEvent, FleetRequest};
use crate::fleet::store::remote_refs::RemoteAccess;
use crate::fleet::store::{PushTime, StoreFault};
use engine::fleet::TaskId;
use engine::git::{GitFault, GitStep, GitTrouble, RefUpdate, SwapResult};
use world::env;
use world::files::disk::{self, Durability};
use world::git;
use world::process::signals::ask_to_end;
use world::store::write_json;

/// Why a task's work could not be fetched.
struct FetchFault {
    why: String,
    concerns: FetchConcern,
}

impl From<GitFault> for FetchFault {
    /// A fault in a branch's contents, or a person's push to it, concerns no other task.
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
            Effect::Start { task, number, continues } => {
                self.start_attempt(&task, number, continues);
            }
            Effect::Pass { task, request } if self.is_before_its_loop(&task, &request) => {
                self.end_attempt(&task);
            }
            Effect::Pass { task, request } => self.pass_request(task, request),
            Effect::End { task } => self.end_attempt(&task),
            Effect::Fetch { task } => self.begin_fetch(&task),
            Effect::Land { task } => {
                self.workers.landing_try.begin();
                queue_landing(self, &task);
            }
            Effect::OpenPull { task } => {
                self.workers.landing_try.begin();
                queue_pull(self, &task);
            }
            Effect::Remove { task } => self.remove_clone(&task),
            Effect::Save | Effect::Say(_) | Effect::Finish => {}
        }
    }

    fn start_attempt(&mut self, task: &TaskId, number: u32, continues: bool) {
        let event = match self.submit_start(task, number, continues) {
            Ok(job) => FleetEvent::Started { task: task.clone(), number, job },
            Err(error) => FleetEvent::NotStarted { task: task.clone(), why: short_error(&error) },
        };
        self.take_in(event);
    }

    /// Submits an attempt to the executor, and returns the job's id.
    fn submit_start(&mut self, task: &TaskId, number: u32, continues: bool) -> Result<String> {
        let terms = &self.record.terms;
        let url = terms.remote.as_ref().map(|remote| remote.url.clone());
        let source = match (self.record.is_local(), url) {
            (false, Some(url)) => Source::Remote { url },
            (_, url) => Source::Local { repository: terms.repository.clone(), url },
        };
        let spec = self.record.spec_of(&self.coordination, task, number, source);
        let spec = spec.context("its file is gone")?;
        if let (Source::Remote { .. }, Some(access)) = (&spec.origin.source, &self.remote.access) {
            self.send_work(access, &spec)?;
        }
        if continues {
            // The earlier process wrote that report.
            disk::remove(&self.files.report(task, number))?;
        }
        write_json(&self.files.spec(task, number), &spec, Durability::Machine)?;
        self.executor.submit_attempt(&spec)
    }

    /// Pushes the work that an attempt elsewhere starts from, if the remote lacks its branch: an
    /// earlier start did not push it, or it was deleted there.
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

    /// Passes requests on to attempts. A failed one is retried while its attempt runs; after that,
    /// a message is kept for the next attempt.
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

    /// Whether an attempt has no loop yet that could receive a request to stop. The setup and the
    /// queue for a slot may take hours, and the first iteration follows at once.
    fn is_before_its_loop(&self, task: &TaskId, request: &FleetRequest) -> bool {
        let report = self.coordination.reports.get(task);
        let is_queued = report.is_some_and(|report| report.phase == AttemptPhase::Queued);
        let has_loop = self.record.task(task).is_some_and(|record| record.loop_id.is_some());
        let takes_it =
            if is_queued { has_loop } else { report.is_some_and(AttemptReport::has_loop) };
        self.record.is_local() && !takes_it && matches!(request, FleetRequest::Task(_))
    }

    pub(super) fn end_attempt(&mut self, task: &TaskId) {
        if self.coordination.landing.as_ref() == Some(task) {
            self.workers.landing_try.stop();
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
        // An attempt whose job was never recorded here is known by its lock.
        if self.record.is_local()
            && let Some(process) = attempt::process_of(&self.files, task, number)
        {
            ask_to_end(&process);
        }
    }

    /// Fetches a task's work in the background and, if the fleet pushes, pushes its branch to the
    /// remote. Work that an earlier start fetched is only pushed.
    fn begin_fetch(&mut self, task: &TaskId) {
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

    /// Fetches the work that a coordinator on another machine had fetched and pushed.
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

    /// Removes the branches of a landed task, unless they are kept, and then its clones. As long as
    /// a clone is there, the next start retries what failed.
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
            // If a rule of the remote keeps the branches, no later try can remove them.
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
        self.coordination.clones.remove(task);
        if !kept.is_empty() {
            self.note(&format!("{task}: its other commits are kept as {}", kept.join(", ")));
        }
    }

    // What the threads have done.

    fn take_fetched(&mut self, task: TaskId, result: Result<Option<String>, FetchFault>) {
        let FetchFault { why, concerns } = match result {
            Ok(Some(commit)) => return self.take_in(FleetEvent::Fetched { task, commit }),
            Ok(None) => {
                let why = "its branch does not exist".to_owned();
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
            self.coordination.clones.remove(&task);
            self.coordination.fetching.remove(&task);
            return;
        }
        self.take_in(FleetEvent::FetchFailed { task, why, concerns });
    }

    /// Pushes the record to the remote when that is due, or sooner if starts wait for it.
    pub(super) fn push_record(&mut self) {
        let starts = self.remote.starts.len() - self.remote.ready;
        let time = if starts == 0 { PushTime::Usual } else { PushTime::Soon };
        if let Some(push) = self.store.push(&mut self.record, time) {
            self.workers.talk.add(move || {
                let pushed = push();
                Box::new(move |this| this.take_pushed(starts, pushed))
            });
        }
    }

    /// Pushes the record at once, from this thread.
    pub(super) fn push_now(&mut self) -> Result<(), StoreFault> {
        let Some(push) = self.store.push(&mut self.record, PushTime::Now) else {
            return Ok(());
        };
        let pushed = push();
        self.store.note_answer(pushed.is_ok());
        pushed.map(drop)
    }

    /// Records that the remote's record contains this many starts, or leaves them for the next
    /// push.
    pub(super) fn take_pushed(&mut self, starts: usize, pushed: Result<bool, StoreFault>) {
        self.store.note_answer(pushed.is_ok());
        if pushed.is_ok() {
            // A signal may have dropped some of them.
            self.remote.ready = (self.remote.ready + starts).min(self.remote.starts.len());
        }
        self.note_write("push", pushed.map(drop));
    }

    /// Whether a job elsewhere works on a task.
    pub(super) fn has_job(&self, task: &TaskId) -> bool {
        !self.record.is_local() && self.record.task(task).is_some_and(TaskRecord::is_running)
    }

    /// Cancels or submits one job elsewhere. That may take minutes, so signals, requests and the
    /// record are handled before the next one. After a signal nothing is submitted.
    pub(super) fn ask_executor(&mut self) {
        if self.coordination.stop.signals > 0 {
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
}

/// Pushes the branch of an attempt, replacing only its last known commit. Other people's commits
/// are left alone. `stands_on`, the commit below it, came from the remote.
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
    // Hosts refuse a branch that refers to LFS files they do not have.
    let has: Vec<String> = old.iter().cloned().chain(stands_on.map(str::to_owned)).collect();
    access.send_lfs(commit, &has)?;
    let update = RefUpdate { name, old, new: Some(commit.to_owned()) };
    // A refusal means that the branch has just moved; the next try reads it again.
    access.refs()?.swap(&[update]).map(drop)
}

/// Fetches the branch of an attempt from its clone. A full disk is not the clone's fault.
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

/// Fetches a branch of the remote as the ref `to`.
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
