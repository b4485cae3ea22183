//! The executors, which place the attempts of a fleet on machines: this one, Slurm, or a system
//! reached by the user's own commands. An executor only says whether a job still exists; the
//! attempt itself reports how it ended. An error changes nothing.

mod command;
mod slurm;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use self::command::CommandSystem;
use self::slurm::Slurm;
use super::files::FleetFiles;
use super::record::{FleetTerms, LOCAL};
use super::spec::AttemptSpec;
use crate::drive::installation::slurm::quote_word;
use engine::failure::Failure;
use engine::fleet::TaskId;
use engine::record::ProcessIdentity;
use readers::agents;
use readers::parse::settings::SettingsOwner;
use readers::parse::settings::merge::{ExecutorEntry, Sourced};
use world::logs::Log;
use world::process::signals::ask_to_end;
use world::process::{Call, Stop, descendants, identity};
use world::store::{Home, settings};
use world::{clock, env, slots};

/// The name of the executor that uses Slurm's commands here; `slurm:HOST` on a login node.
const SLURM: &str = "slurm";
/// The executors that need no entry in the settings.
pub const BUILT_IN: [&str; 2] = [LOCAL, SLURM];
/// How long a job must be missing from every answer before it counts as gone, in milliseconds. A
/// restarted controller may have lost the last jobs, or not have read them yet.
const GONE_MS: u64 = 60_000;

/// The entries of `[executor.NAME]`, by name.
pub type ExecutorEntries = BTreeMap<String, Sourced<ExecutorEntry>>;

/// The `[executor.NAME]` tables of the user's own settings file. A project's settings do not decide
/// where jobs run.
///
/// # Errors
/// When the file cannot be used; all of its faults are listed.
pub fn executors_of_user() -> Result<ExecutorEntries> {
    let Some(file) = settings::user_file() else { return Ok(ExecutorEntries::new()) };
    let read = settings::read_settings_file(&file, SettingsOwner::Users, &agents::output_formats());
    let read = read.map_err(anyhow::Error::msg)?.unwrap_or_default();
    Ok(read.layer.executors)
}

/// The executor that a fleet names; this starts nothing. `stop` ends its commands early.
///
/// # Errors
/// If no executor has this name.
pub fn executor_of<'a>(
    home: &Home,
    terms: &FleetTerms,
    entries: &ExecutorEntries,
    stop: Stop<'a>,
) -> Result<FleetJobs<'a>> {
    let name = terms.executor.as_str();
    if name == LOCAL {
        return Ok(FleetJobs::new(Local::new(home, terms)));
    }
    if let Some(entry) = entries.get(name) {
        let scripts = FleetFiles::new(home, &terms.name).root.join("scripts");
        let (entry, folder) = (entry.value.clone(), terms.repository.clone());
        return Ok(FleetJobs::new(CommandSystem::new(name, entry, scripts, folder, stop)));
    }
    let host = match name.split_once(':') {
        None if name == SLURM => None,
        Some((SLURM, host)) => Some(host.to_owned()),
        _ => {
            let known = BUILT_IN.into_iter().chain(entries.keys().map(String::as_str));
            let known: Vec<&str> = known.collect();
            bail!(Failure::usage(
                format!("executor `{name}` does not exist"),
                format!(
                    "name one of {}, or write [executor.{name}] into your own settings file \
                     (docs/reference/executors.md)",
                    known.join(", ")
                )
            ));
        }
    };
    // The machines of a cluster usually share a program's path; elsewhere it must be on PATH.
    let crew = match host {
        Some(_) => "crew".to_owned(),
        None => env::program_path().context("cannot find this program")?.display().to_string(),
    };
    Ok(FleetJobs::new(Slurm::new(terms, host, crew, stop)))
}

/// The number of slots on this machine, or the maximum number of jobs at once elsewhere.
pub fn slots_of(terms: &FleetTerms) -> usize {
    let count = match terms.limits.slots {
        0 if terms.executor == LOCAL => slots::default_count().count,
        0 => return usize::MAX,
        count => count,
    };
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The last known state of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenJob {
    pub id: String,
    pub task: TaskId,
    /// The attempt's number.
    pub number: u32,
    /// Why the job ended, according to the system, empty if it gives no reason; `None` while it
    /// waits or runs, as far as the system knows.
    pub ended: Option<String>,
}

/// A system's answer about jobs. A job in neither list is unchanged.
#[derive(Debug, Default)]
pub struct FoundJobs {
    /// The jobs that the system knows, possibly more than were asked about.
    pub known: Vec<SeenJob>,
    /// The ids of the jobs that the system does not know.
    pub missing: Vec<String>,
}

/// A system that runs jobs.
pub trait Executor {
    /// The executor's name in messages.
    fn name(&self) -> &str;

    /// Submits an attempt and returns the job's id. A job may exist despite an error; the next
    /// attempt gets a new number, so that this job does no harm.
    fn submit_job(&mut self, spec: &AttemptSpec) -> Result<String>;

    /// Whether this can be a job's id. Only such ids become arguments of commands.
    fn is_id(&self, id: &str) -> bool;

    /// Looks up these jobs. An error means that the system did not answer, and says nothing about
    /// any job.
    fn find_jobs(&mut self, open: &[SeenJob]) -> Result<FoundJobs>;

    /// Cancels a job: TERM, then KILL after the system's own grace period. A stop does not
    /// interrupt this.
    fn cancel_job(&mut self, id: &str) -> Result<()>;

    /// Removes files kept here for a job that has ended.
    fn forget_job(&mut self, _: &SeenJob) {}
}

/// The jobs of one fleet in a system.
pub struct FleetJobs<'a> {
    system: Box<dyn Executor + 'a>,
    jobs: BTreeMap<String, KnownJob>,
}

/// A job that was submitted, adopted or seen.
struct KnownJob {
    seen: SeenJob,
    /// Since when every answer has lacked the job, in milliseconds of the awake clock.
    missing_since: Option<u64>,
}

impl<'a> FleetJobs<'a> {
    /// Starts without any jobs.
    pub fn new(system: impl Executor + 'a) -> Self {
        Self { system: Box::new(system), jobs: BTreeMap::new() }
    }

    /// Submits an attempt and returns the job's id; see [`Executor::submit_job`].
    pub fn submit_attempt(&mut self, spec: &AttemptSpec) -> Result<String> {
        let task = &spec.task.task;
        let id = self.system.submit_job(spec).with_context(|| format!("cannot submit {task}"))?;
        self.adopt_job(task, spec.number, &id);
        Ok(id)
    }

    /// Adopts a job that an earlier coordinator submitted; `id` is what [`Self::submit_attempt`]
    /// returned then. An invalid id is ignored.
    pub fn adopt_job(&mut self, task: &TaskId, number: u32, id: &str) {
        if self.system.is_id(id) {
            // The attempt's earlier process is over and says nothing more about it.
            self.jobs.retain(|_, job| job.seen.task != *task || job.seen.number != number);
            let (id, task) = (id.to_owned(), task.clone());
            self.keep_job(SeenJob { id, task, number, ended: None });
        }
    }

    /// Forgets the jobs that have ended, except those of these attempts, whose results are still
    /// missing.
    pub fn forget_ended(&mut self, running: &[(TaskId, u32)]) {
        self.jobs.retain(|_, KnownJob { seen, .. }| {
            let is_it =
                |(task, number): &(TaskId, u32)| *task == seen.task && *number == seen.number;
            seen.ended.is_none() || running.iter().any(is_it)
        });
    }

    fn keep_job(&mut self, seen: SeenJob) {
        self.jobs.insert(seen.id.clone(), KnownJob { seen, missing_since: None });
    }

    /// Lists the fleet's jobs that the system knows. An ended job is listed if it was submitted,
    /// adopted or listed before. An error means that the system did not answer.
    pub fn list_jobs(&mut self) -> Result<Vec<SeenJob>> {
        let jobs = self.jobs.values().map(|job| &job.seen);
        let open: Vec<SeenJob> = jobs.filter(|job| job.ended.is_none()).cloned().collect();
        let found = self.system.find_jobs(&open);
        let found = found.with_context(|| format!("{} does not answer", self.system.name()));
        self.take_found(found, clock::awake_ms())?;
        for job in &open {
            if self.jobs.get(&job.id).is_some_and(|known| known.seen.ended.is_some()) {
                self.system.forget_job(job);
            }
        }
        Ok(self.jobs.values().map(|job| job.seen.clone()).collect())
    }

    /// Applies an answer that came at `now_ms`. A missing job keeps its state until every answer of
    /// [`GONE_MS`] has lacked it; after an error that time starts again.
    fn take_found(&mut self, found: Result<FoundJobs>, now_ms: u64) -> Result<()> {
        if found.is_err() {
            for job in self.jobs.values_mut() {
                job.missing_since = None;
            }
        }
        let FoundJobs { known, missing } = found?;
        for seen in known {
            self.keep_job(seen);
        }
        for id in &missing {
            let Some(job) = self.jobs.get_mut(id) else { continue };
            let since = *job.missing_since.get_or_insert(now_ms);
            if now_ms.saturating_sub(since) >= GONE_MS {
                job.seen.ended = Some(format!("{} no longer knows it", self.system.name()));
            }
        }
        Ok(())
    }

    /// Cancels a job; see [`Executor::cancel_job`]. A job that is over or unknown is not an error.
    pub fn cancel_job(&mut self, id: &str) -> Result<()> {
        let is_open = self.jobs.get(id).is_some_and(|job| job.seen.ended.is_none());
        if !is_open {
            return Ok(());
        }
        self.system.cancel_job(id).with_context(|| format!("cannot cancel job {id}"))
    }
}

/// The script of an attempt: crew reads its spec from a here-document. crew replaces the shell with
/// `exec`, so it gets the script's signals, and its exit is the script's.
fn job_script(crew: &str, spec: &AttemptSpec) -> Result<String> {
    // JSON on one line begins with a brace, so it cannot be the mark, nor can a part of it.
    let spec = serde_json::to_string(spec).context("cannot write the spec")?;
    let mut mark = "SPEC_OF_CREW".to_owned();
    while spec.contains(&mark) {
        mark.push('_');
    }
    let crew = quote_word(crew);
    Ok(format!(
        "#!/bin/sh\ncd / || exit 1\nexec {crew} fleet attempt - <<'{mark}'\n{spec}\n{mark}\n"
    ))
}

/// Runs the attempts of one fleet on this machine.
#[derive(Debug)]
struct Local {
    home: Home,
    files: FleetFiles,
    /// The user's working tree.
    folder: PathBuf,
}

impl Local {
    /// The executor of a fleet on this machine.
    pub fn new(home: &Home, terms: &FleetTerms) -> Self {
        let (files, folder) = (FleetFiles::new(home, &terms.name), terms.repository.clone());
        Self { home: home.clone(), files, folder }
    }
}

/// The job id of a process: its process id and its start, which on some systems is a date with
/// blanks.
fn job_id(process: &ProcessIdentity) -> String {
    format!("{}@{}", process.pid, process.started.replace(' ', "_"))
}

/// The process that a job id names. Only a positive process id is accepted: the system would take
/// others for process groups.
fn process_of(id: &str) -> Option<ProcessIdentity> {
    let (pid, started) = id.split_once('@')?;
    let pid = pid.parse().ok().filter(|pid| *pid > 1)?;
    if started.is_empty() {
        return None;
    }
    Some(ProcessIdentity { pid, started: started.replace('_', " ") })
}

impl Executor for Local {
    fn name(&self) -> &str {
        LOCAL
    }

    fn submit_job(&mut self, spec: &AttemptSpec) -> Result<String> {
        let (task, number) = (&spec.task.task, spec.number);
        let output = self.files.log(task, number);
        // It also starts a new file if this one is full. The process itself prints little: output
        // of its setup and its agent goes to bounded logs.
        let mut log = Log::open(&output);
        log.add(format!("… attempt {number} …\n").as_bytes());
        log.close().map_or(Ok(()), Err).context("cannot write its log")?;
        let crew = Call::crew(&self.home, &self.folder)?.args(["fleet", "attempt"]);
        let process = crew.args([&self.files.spec(task, number)]).detach(&output)?;
        Ok(job_id(&process))
    }

    fn is_id(&self, id: &str) -> bool {
        process_of(id).is_some()
    }

    fn find_jobs(&mut self, open: &[SeenJob]) -> Result<FoundJobs> {
        let mut known = open.to_vec();
        for job in &mut known {
            let lives = process_of(&job.id).is_some_and(|process| identity::is_alive(&process));
            job.ended = if lives { None } else { Some(String::new()) };
        }
        Ok(FoundJobs { known, missing: Vec::new() })
    }

    fn cancel_job(&mut self, id: &str) -> Result<()> {
        process_of(id).iter().for_each(ask_to_end);
        Ok(())
    }

    fn forget_job(&mut self, job: &SeenJob) {
        if let Some(process) = process_of(&job.id) {
            descendants::reap_child(process.pid);
        }
    }
}

#[cfg(test)]
mod tests;
