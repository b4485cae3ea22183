//! The executors that place the attempts of a fleet on machines, behind five calls. An executor is
//! never asked how a task ended: the attempt reports that. It is asked only whether a job is still
//! there, and what it does not answer changes nothing.

mod command;
mod local;
mod slurm;
mod slurm_text;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use self::command::CommandExecutor;
use self::local::Local;
pub use self::local::job_id;
use self::slurm::Slurm;
use super::files::FleetFiles;
use super::record::{FleetSetup, LOCAL};
use super::spec::AttemptSpec;
use crate::agents;
use crate::drive::slurm::quoted;
use crate::engine::fleet::TaskId;
use crate::parse::settings::Whose;
use crate::parse::settings::merge::{ExecutorEntry, Sourced};
use crate::world::env;
use crate::world::process::Stop;
use crate::world::store::{Home, hash, settings};

/// The name of the executor that uses Slurm's commands here; `slurm:HOST` on a login node.
const SLURM: &str = "slurm";
/// Where jobs on a cluster leave their output, below the home of the account there.
const LOGS: &str = ".crew-fleets";
/// How long every answer must lack a job before it counts as gone, in milliseconds. A controller
/// that was started again may have lost the last jobs, or have yet to read them.
const GONE_MS: u64 = 60_000;
/// The digits that tell fleets of one name apart.
const GROUP_DIGITS: usize = 8;
/// The most characters of the fleet and the task in a job's name. With the rest it is within the 63
/// of a label of DNS, which Kubernetes asks for.
const NAME_CHARS: usize = 32;

/// The entries of `[executor.NAME]`, by name.
pub type ExecutorEntries = BTreeMap<String, Sourced<ExecutorEntry>>;

/// The `[executor.NAME]` of the user's own settings file. A project's says nothing about where jobs
/// run.
///
/// # Errors
/// When the file cannot be used; all of its faults are listed.
pub fn executors_of_user() -> Result<ExecutorEntries> {
    let Some(file) = settings::user_file() else { return Ok(ExecutorEntries::new()) };
    let read = settings::read(&file, Whose::Users, &agents::outputs());
    let read = read.map_err(anyhow::Error::msg)?.unwrap_or_default();
    Ok(read.layer.executors)
}

/// The executor that a fleet names. It starts nothing and asks nobody. `stop` ends what it waits
/// for early.
///
/// # Errors
/// When there is none of this name.
pub fn executor_of<'a>(
    home: &Home,
    setup: &FleetSetup,
    entries: &ExecutorEntries,
    stop: Stop<'a>,
) -> Result<Box<dyn Executor + 'a>> {
    let name = setup.executor.as_str();
    if name == LOCAL {
        return Ok(Box::new(Local::new(home, &setup.name)));
    }
    if let Some(entry) = entries.get(name) {
        let scripts = FleetFiles::of(home, &setup.name).root.join("scripts");
        let (entry, folder) = (entry.value.clone(), setup.repository.clone());
        return Ok(Box::new(CommandExecutor::new(name, entry, scripts, folder, stop)));
    }
    let host = match name.split_once(':') {
        None if name == SLURM => None,
        Some((SLURM, host)) => Some(host.to_owned()),
        _ => {
            let known = [LOCAL, SLURM].into_iter().chain(entries.keys().map(String::as_str));
            let known: Vec<&str> = known.collect();
            bail!(
                "there is no executor `{name}`\nhint: name one of {}, or write [executor.{name}] \
                 into your own settings file (docs/executors.md)",
                known.join(", ")
            );
        }
    };
    // Machines of one cluster mostly share the path of a program; elsewhere PATH must lead to it.
    let crew = match host {
        Some(_) => "crew".into(),
        None => env::program().context("cannot find this program")?,
    };
    let logs = match (&host, env::path("HOME")) {
        (None, Some(user)) => user.join(LOGS),
        _ => LOGS.into(),
    };
    Ok(Box::new(Slurm::new(&group(setup), host, crew, logs.join(&setup.name), stop)))
}

/// What the jobs of a fleet are known by on a cluster: its name, and a part of the hash of its
/// remote, because one user may have fleets of one name of several repositories there.
fn group(setup: &FleetSetup) -> String {
    let address = setup.remote.as_ref().map_or("", |remote| remote.url.as_str());
    format!("{}.{}", setup.name, &hash(address.as_bytes())[..GROUP_DIGITS])
}

/// An attempt that an executor is to run.
#[derive(Debug)]
pub struct JobCall<'a> {
    pub task: TaskId,
    /// The attempt's number.
    pub number: u32,
    /// A label of DNS of at most 63 characters that no other job has, for systems that name jobs.
    pub name: String,
    pub spec: &'a AttemptSpec,
    /// Where its output goes if it runs on this machine.
    pub log: PathBuf,
    /// Where it begins, on the machine that runs it.
    pub folder: PathBuf,
}

impl<'a> JobCall<'a> {
    /// The call for an attempt. One on another machine has none of this machine's folders.
    pub fn of(home: &Home, setup: &FleetSetup, spec: &'a AttemptSpec) -> Self {
        let (task, number) = (spec.task.task.clone(), spec.number);
        let log = FleetFiles::of(home, &setup.name).log(&task, number);
        let folder =
            if setup.executor == LOCAL { setup.repository.clone() } else { PathBuf::from("/") };
        let name = name(&setup.name, &task, number, env::random());
        Self { task, number, name, spec, log, folder }
    }
}

/// A label of DNS for a job. `random` keeps it apart from one that was submitted before.
fn name(fleet: &str, task: &TaskId, number: u32, random: u64) -> String {
    let words = format!("{fleet}-{task}").to_ascii_lowercase();
    let words = words.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let words: String = words.take(NAME_CHARS).collect();
    format!("crew-{words}-{number}-{:08x}", random & 0xffff_ffff)
}

/// The script of an attempt: crew reads its spec from a here-document. crew takes the place of the
/// shell, so it gets the signals of the script, and its end is the script's.
fn script(crew: &str, call: &JobCall<'_>) -> Result<String> {
    // JSON on one line begins with a brace, so no line of it is the mark; a part of it neither.
    let spec = serde_json::to_string(call.spec).context("cannot write the spec")?;
    let mut mark = "CREW_SPEC".to_owned();
    while spec.contains(&mark) {
        mark.push('_');
    }
    let folder = quoted(&call.folder.display().to_string());
    let crew = quoted(crew);
    Ok(format!(
        "#!/bin/sh\ncd -- {folder} || exit 1\nexec {crew} fleet attempt - <<'{mark}'\n{spec}\n{mark}\n"
    ))
}

/// Where a job is, as its executor says. How the loop in it ended is in the attempt's report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// It has no place yet. The text is the executor's reason, empty if it gave none.
    Waiting(String),
    /// It has a place, though its processes may be suspended or still ending.
    Running,
    /// It is over and nothing of it runs, as far as the executor knows. The text is the executor's
    /// reason, empty if it gave none.
    Ended(String),
}

impl JobState {
    /// Whether the job is over.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

/// A job as an executor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenJob {
    pub id: String,
    pub task: TaskId,
    /// The attempt's number.
    pub number: u32,
    pub state: JobState,
}

/// What places attempts on machines.
pub trait Executor {
    /// Hands an attempt over and returns the job's id. After an error it may have been accepted all
    /// the same: the number in the branch's name keeps such a job from doing harm, so what follows
    /// gets a new one.
    fn submit(&mut self, call: &JobCall<'_>) -> Result<String>;

    /// Makes a job known that an earlier coordinator submitted; `id` is what [`Self::submit`]
    /// returned then. An id that cannot be one is passed over.
    fn adopt(&mut self, task: &TaskId, number: u32, id: &str);

    /// The jobs of the fleet that the executor knows; a task may have several. One that has ended
    /// is listed if it was submitted, adopted or listed by this value before. An error means that
    /// the executor did not answer: nothing follows from it about any job.
    fn list(&mut self) -> Result<Vec<SeenJob>>;

    /// Asks for the end of a job: TERM, and KILL after the executor's own grace. A job that is over
    /// or unknown is not an error. The end of waiting that `stop` asks for does not end this.
    fn cancel(&mut self, id: &str) -> Result<()>;

    /// Where the output of a job is: a path, or `HOST:PATH`. `None` if the executor does not know.
    fn log(&self, id: &str) -> Option<String>;
}

/// A job that was submitted, adopted or seen, with what was last known of it.
#[derive(Debug)]
struct KnownJob {
    seen: SeenJob,
    /// When the first of the answers came that all lacked it, in milliseconds of the awake clock.
    missing_since: Option<u64>,
}

impl KnownJob {
    fn new(id: &str, task: &TaskId, number: u32) -> Self {
        let state = JobState::Waiting(String::new());
        Self::seen(SeenJob { id: id.to_owned(), task: task.clone(), number, state })
    }

    fn seen(seen: SeenJob) -> Self {
        Self { seen, missing_since: None }
    }

    /// Takes in an answer without this job, which came at `now_ms`. It stays what it was until every
    /// answer of [`GONE_MS`] has lacked it.
    fn miss(&mut self, now_ms: u64, why: &str) {
        let since = *self.missing_since.get_or_insert(now_ms);
        if now_ms.saturating_sub(since) >= GONE_MS {
            self.seen.state = JobState::Ended(why.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
