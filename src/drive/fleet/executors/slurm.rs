//! Slurm, by its own commands: here, or on a login node by ssh. The commands need no accounting
//! database. What a site wants for each job, such as a partition or a time limit, is read by sbatch
//! itself from the variables SBATCH_*. The environment reaches the job as sbatch exports it by
//! default; no secret is ever a word of a command.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};

use super::{Executor, JobCall, JobState, SeenJob};
use crate::engine::text::start;
use crate::parse::fleet::slurm::{COLUMNS, SlurmJob, listed, shown, submitted};
use crate::world::clock;
use crate::world::process::{Call, ExitCause, FinishedProcess, Stop};

/// The longest a command may take. Slurm's own give up after 10 to 20 s without a controller.
const WITHIN: Duration = Duration::from_secs(60);
/// How long every answer must lack a job before it counts as gone. A controller that was started
/// again may have lost the last jobs, or have them still to come.
const GONE_MS: u64 = 60_000;
/// The most jobs that one answer may hold.
const JOBS_MAX: usize = 50_000;
/// The most jobs that are looked up one by one for one list, so that it is over in time.
const LOOKUPS_MAX: usize = 200;
/// The most characters of a failed command's last line that are kept.
const CAUSE_CHARS: usize = 300;

/// The jobs of one fleet in a Slurm cluster.
pub struct Slurm<'a> {
    host: Option<String>,
    crew: PathBuf,
    logs: PathBuf,
    stop: Stop<'a>,
    known: KnownJobs,
}

impl<'a> Slurm<'a> {
    /// The jobs of a group, submitted here or on the login node `host`. `crew` and `logs` are paths
    /// on the machines of the cluster, or for `crew` a name on the PATH of the login shell; if they
    /// are relative, `logs` start at the home of the account there. `stop` ends a command early.
    pub fn new(
        group: &str,
        host: Option<String>,
        crew: PathBuf,
        logs: PathBuf,
        stop: Stop<'a>,
    ) -> Self {
        let known = KnownJobs { prefix: prefix(group), jobs: BTreeMap::new() };
        Self { host, crew, logs, stop, known }
    }

    /// Runs a command to its end and returns what `read` finds in the lines of its output.
    fn ask<T>(
        &self,
        command: &str,
        input: &[u8],
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        let mut is_cut = false;
        let mut each = |line: &str| {
            if let Some(value) = read(line) {
                is_cut |= found.len() == JOBS_MAX;
                found.extend((!is_cut).then_some(value));
            }
        };
        let host = self.host.as_deref();
        let call = call(host, command, Path::new("/")).within(WITHIN).input(input);
        run(call.each_line(&mut each), host, self.stop)?;
        if is_cut {
            bail!(
                "Slurm lists more than {JOBS_MAX} jobs of this account\nhint: run the fleet later"
            );
        }
        Ok(found)
    }

    /// What Slurm says now: the jobs in its queue, and those known before that are not there.
    fn answer(&self) -> Result<Answer> {
        let queue = format!("exec squeue --all --me --noheader --Format={}", quoted(COLUMNS));
        let mut jobs = self.ask(&queue, &[], listed)?;
        // Only scontrol says how a job ended.
        jobs.retain(|job| !job.state.is_ended());
        let looked_up = self.known.left_by(&jobs);
        if !looked_up.is_empty() {
            let ids: Vec<String> = looked_up.iter().map(u64::to_string).collect();
            // It fails for a job that is forgotten, and answers for the others.
            let ids = ids.join(" ");
            let command = format!("for job in {ids}; do scontrol --all -o show job $job; done; :");
            jobs.extend(self.ask(&command, &[], shown)?);
        }
        Ok(Answer { jobs, looked_up })
    }
}

impl Executor for Slurm<'_> {
    fn submit(&mut self, call: &JobCall) -> Result<String> {
        let script = script(&self.crew, call);
        let command = submission(&self.logs, &self.known.prefix, &call.task);
        let ids = self.ask(&command, script.as_bytes(), submitted);
        let id = ids.and_then(|ids| {
            let hint = "squeue --me lists the job if it was accepted";
            ids.last().copied().ok_or_else(|| anyhow!("sbatch printed no id\nhint: {hint}"))
        });
        let id = id.with_context(|| format!("cannot submit {}", call.task))?;
        self.known.submitted(id, &call.task);
        Ok(id.to_string())
    }

    fn list(&mut self) -> Result<Vec<SeenJob>> {
        let answer = self.answer().context("cannot list the jobs");
        self.known.take(answer, clock::awake_ms())
    }

    fn cancel(&mut self, id: &str) -> Result<()> {
        // A word that is no number would be an option, such as one that cancels every job.
        let Ok(number) = id.parse::<u64>() else {
            bail!("{id} is not the id of a job\nhint: squeue --me lists the ids");
        };
        let ended = self.ask(&format!("exec scancel {number}"), &[], |_| None::<()>);
        ended.map(drop).with_context(|| format!("cannot cancel job {id}"))
    }

    fn log(&self, id: &str) -> Option<String> {
        let id: u64 = id.parse().ok()?;
        let path = self.logs.join(format!("{id}.log")).display().to_string();
        Some(self.host.as_ref().map_or(path.clone(), |host| format!("{host}:{path}")))
    }
}

/// How the names of a group's jobs begin. No group's name holds a slash; with the usual hyphens
/// `a` and `a-b` could not be told apart.
fn prefix(group: &str) -> String {
    format!("crew/{group}/")
}

/// One word of a command of the shell.
fn quoted(word: &str) -> String {
    shell_words::quote(word).into_owned()
}

/// Runs a command to its end, here or on a login node. An error holds its last line and a hint.
fn run(call: Call<'_>, host: Option<&str>, stop: Stop<'_>) -> Result<()> {
    let shell = if host.is_some() { "ssh" } else { "sh" };
    let ended = call.run(stop).with_context(|| format!("cannot start {shell}"))?;
    if ended.cause == ExitCause::Exit(0) { Ok(()) } else { Err(failed(&ended, host)) }
}

/// A command of the shell, on a login node or in `folder` here.
fn call<'a>(host: Option<&str>, command: &str, folder: &Path) -> Call<'a> {
    let words = shell(host, command);
    Call::of(&words[0], folder).args(&words[1..])
}

/// The words that run a command of the shell here, or on a login node. There it needs a login
/// shell: sites put Slurm's commands, and people crew, on the PATH of that one only.
fn shell(host: Option<&str>, command: &str) -> Vec<String> {
    let Some(host) = host else { return ["sh", "-c", command].map(str::to_owned).into() };
    let remote = format!("exec bash -lc {}", quoted(command));
    ["ssh", "-o", "BatchMode=yes", "--", host, &remote].map(str::to_owned).into()
}

/// The command that submits a script. Slurm does not make the folder of the output.
fn submission(logs: &Path, prefix: &str, task: &str) -> String {
    let folder = logs.display().to_string();
    // Slurm fills in what follows a percent sign.
    let log = format!("{}/%j.log", folder.replace('%', "%%"));
    format!(
        "mkdir -p -- {} && exec sbatch --parsable {} --requeue --open-mode=append \
         --signal=B:TERM@60 -o {}",
        quoted(&folder),
        quoted(&format!("--job-name={prefix}{task}")),
        quoted(&log),
    )
}

/// The batch script. crew takes the place of the shell: it gets the signals that Slurm sends to the
/// script, and its end is the job's.
fn script(crew: &Path, call: &JobCall) -> String {
    let crew = crew.display().to_string();
    let words = [&crew].into_iter().chain(&call.words);
    let folder = quoted(&call.folder.display().to_string());
    format!("#!/bin/sh\ncd -- {folder} || exit 1\nexec {}\n", shell_words::join(words))
}

/// The failure of a command, in the last line of what it printed.
fn failed(ended: &FinishedProcess, host: Option<&str>) -> anyhow::Error {
    let text = ended.text();
    // srun ends with how its task ended; why stands before.
    let tells = |line: &&str| !line.is_empty() && !line.contains(": task 0: ");
    let last = text.lines().map(str::trim).rfind(tells);
    let cause = match (ended.cause, last) {
        (ExitCause::Exit(_), Some(line)) => start(line, CAUSE_CHARS).to_owned(),
        (cause, _) => cause.to_string(),
    };
    let hint = match (ended.cause, host) {
        (ExitCause::Exit(255), Some(host)) => {
            format!("make `ssh {host} true` work without a question")
        }
        (ExitCause::Exit(127), Some(host)) => {
            format!("put Slurm's commands on the PATH of the login shell of {host}")
        }
        (ExitCause::Exit(127), None) => {
            "install Slurm's commands, or name a login node: --on slurm:HOST".to_owned()
        }
        _ => "squeue --me shows whether Slurm answers".to_owned(),
    };
    anyhow!("{cause}\nhint: {hint}")
}

/// What Slurm said at one moment.
struct Answer {
    jobs: Vec<SlurmJob>,
    /// The jobs that were asked for by their ids.
    looked_up: Vec<u64>,
}

/// The jobs of one fleet that were submitted or seen, with what was last known of each.
struct KnownJobs {
    /// How the names of the fleet's jobs begin.
    prefix: String,
    jobs: BTreeMap<u64, KnownJob>,
}

struct KnownJob {
    seen: SeenJob,
    /// When the first of the answers came that all lacked it, in milliseconds of the awake clock.
    missing_since: Option<u64>,
}

impl KnownJobs {
    fn submitted(&mut self, id: u64, task: &str) {
        let state = JobState::Waiting(String::new());
        let seen = SeenJob { id: id.to_string(), task: task.to_owned(), state };
        self.jobs.insert(id, KnownJob { seen, missing_since: None });
    }

    /// The task of a job, if it is one of this fleet. Ids are given again once the controller has
    /// lost its state, so the id alone says nothing.
    fn task<'job>(&self, job: &'job SlurmJob) -> Option<&'job str> {
        job.name.strip_prefix(&self.prefix)
    }

    /// The ids of the jobs that have not ended and are not in the queue, up to [`LOOKUPS_MAX`].
    fn left_by(&self, queue: &[SlurmJob]) -> Vec<u64> {
        let queued = queue.iter().filter(|job| self.task(job).is_some()).map(|job| job.id);
        let queued: BTreeSet<u64> = queued.collect();
        let open = self.jobs.iter().filter(|(_, job)| !job.seen.state.is_ended());
        let left = open.map(|(id, _)| *id).filter(|id| !queued.contains(id));
        left.take(LOOKUPS_MAX).collect()
    }

    /// Takes in an answer that came at `now_ms`. A job that was looked up in vain stays what it was
    /// until every answer of [`GONE_MS`] has lacked it; without an answer that time begins anew.
    fn take(&mut self, answer: Result<Answer>, now_ms: u64) -> Result<Vec<SeenJob>> {
        if answer.is_err() {
            self.jobs.values_mut().for_each(|job| job.missing_since = None);
        }
        let Answer { jobs, looked_up } = answer?;
        let mut found = BTreeSet::new();
        for job in jobs {
            let Some(task) = self.task(&job) else { continue };
            let (id, task) = (job.id.to_string(), task.to_owned());
            let seen = SeenJob { id, task, state: job.state };
            self.jobs.insert(job.id, KnownJob { seen, missing_since: None });
            found.insert(job.id);
        }
        for id in looked_up.iter().filter(|id| !found.contains(id)) {
            let Some(job) = self.jobs.get_mut(id) else { continue };
            let since = *job.missing_since.get_or_insert(now_ms);
            if now_ms.saturating_sub(since) >= GONE_MS {
                let why = "Slurm does not know it any more".to_owned();
                job.seen.state = JobState::Ended(why);
            }
        }
        Ok(self.jobs.values().map(|job| job.seen.clone()).collect())
    }
}

#[cfg(test)]
#[path = "slurm_tests.rs"]
mod tests;
