//! The executor that uses Slurm's own commands: here, or on a login node by ssh. They need no
//! accounting database. What a site wants for each job, such as a partition or a time limit, is
//! read by sbatch itself from the variables SBATCH_*.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};

use super::slurm_text::{COLUMNS, SlurmJob, listed, shown, submitted};
use super::{Executor, JobCall, KnownJob, SeenJob, script};
use crate::drive::slurm::{call, quoted, run};
use crate::engine::fleet::TaskId;
use crate::world::clock;
use crate::world::process::Stop;

/// The longest a command may take. Slurm's own give up after 10 to 20 s without a controller.
const WITHIN: Duration = Duration::from_secs(60);
/// The most jobs that one answer may list.
const JOBS_MAX: usize = 50_000;
/// The most jobs that are looked up one by one for one list, so that it is over in time.
const LOOKUPS_MAX: usize = 200;
/// The reason of a job that every answer lacks.
const FORGOTTEN: &str = "Slurm does not know it any more";

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
                if found.len() < JOBS_MAX {
                    found.push(value);
                } else {
                    is_cut = true;
                }
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
    fn submit(&mut self, call: &JobCall<'_>) -> Result<String> {
        let script = script(&self.crew.display().to_string(), call)?;
        let command = submission(&self.logs, &self.known.name(&call.task, call.number));
        let ids = self.ask(&command, script.as_bytes(), submitted);
        let id = ids.and_then(|ids| {
            let hint = "squeue --me lists the job if it was accepted";
            ids.last().copied().ok_or_else(|| anyhow!("sbatch printed no id\nhint: {hint}"))
        });
        let id = id.with_context(|| format!("cannot submit {}", call.task))?;
        self.known.submitted(id, &call.task, call.number);
        Ok(id.to_string())
    }

    fn adopt(&mut self, task: &TaskId, number: u32, id: &str) {
        if let Ok(id) = id.parse() {
            self.known.submitted(id, task, number);
        }
    }

    fn list(&mut self) -> Result<Vec<SeenJob>> {
        let answer = self.answer().context("cannot list the jobs");
        self.known.take(answer, clock::awake_ms())
    }

    fn cancel(&mut self, id: &str) -> Result<()> {
        // A word that is not a number would be an option, such as one that cancels every job.
        let Ok(number) = id.parse::<u64>() else {
            bail!("{id} is not the id of a job\nhint: squeue --me lists the ids");
        };
        let host = self.host.as_deref();
        let call = call(host, &format!("exec scancel {number}"), Path::new("/"));
        // A person who ends the fleet is why it is called: that must not end it.
        let ended = run(call.within(WITHIN).input(&[]), host, &|| false);
        ended.with_context(|| format!("cannot cancel job {id}"))
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

/// The command that submits a script. Slurm does not make the folder of the output. Output contains
/// secrets, and the home of a cluster is often shared, so folder and file are this user's only; the
/// job itself gets the mask that the account has.
fn submission(logs: &Path, name: &str) -> String {
    let folder = logs.display().to_string();
    // Slurm fills in what follows a percent sign.
    let log = format!("{}/%j.log", folder.replace('%', "%%"));
    format!(
        "mask=$(umask) && umask 077 && mkdir -p -- {folder} && chmod 700 -- {folder} && \
         {{ printf '#!/bin/sh\\numask %s\\n' \"$mask\"; cat; }} | \
         sbatch --parsable {name} --requeue --open-mode=append --signal=B:TERM@60 -o {log}",
        folder = quoted(&folder),
        name = quoted(&format!("--job-name={name}")),
        log = quoted(&log),
    )
}

/// What Slurm said at one moment.
struct Answer {
    jobs: Vec<SlurmJob>,
    /// The jobs that were asked for by their ids.
    looked_up: Vec<u64>,
}

/// The jobs of one fleet that were submitted or seen.
struct KnownJobs {
    /// How the names of the fleet's jobs begin.
    prefix: String,
    jobs: BTreeMap<u64, KnownJob>,
}

impl KnownJobs {
    fn submitted(&mut self, id: u64, task: &TaskId, number: u32) {
        self.jobs.insert(id, KnownJob::new(&id.to_string(), task, number));
    }

    /// The name of an attempt's job.
    fn name(&self, task: &TaskId, number: u32) -> String {
        format!("{}{task}/{number}", self.prefix)
    }

    /// The attempt that a job is, if it is one of this fleet. Ids are given again once the
    /// controller has lost its state, so the id alone says nothing.
    fn attempt(&self, job: &SlurmJob) -> Option<(TaskId, u32)> {
        let (task, number) = job.name.strip_prefix(&self.prefix)?.split_once('/')?;
        Some((task.parse().ok()?, number.parse().ok()?))
    }

    /// The ids of the jobs that have not ended and are not in the queue, up to [`LOOKUPS_MAX`].
    fn left_by(&self, queue: &[SlurmJob]) -> Vec<u64> {
        let queued = queue.iter().filter(|job| self.attempt(job).is_some()).map(|job| job.id);
        let queued: BTreeSet<u64> = queued.collect();
        let open = self.jobs.iter().filter(|(_, job)| !job.seen.state.is_ended());
        let left = open.map(|(id, _)| *id).filter(|id| !queued.contains(id));
        left.take(LOOKUPS_MAX).collect()
    }

    /// Takes in an answer that came at `now_ms`. After an error the time of the jobs that were
    /// missing begins anew.
    fn take(&mut self, answer: Result<Answer>, now_ms: u64) -> Result<Vec<SeenJob>> {
        if answer.is_err() {
            self.jobs.values_mut().for_each(|job| job.missing_since = None);
        }
        let Answer { jobs, looked_up } = answer?;
        let mut found = BTreeSet::new();
        for job in jobs {
            let Some((task, number)) = self.attempt(&job) else { continue };
            let seen = SeenJob { id: job.id.to_string(), task, number, state: job.state };
            self.jobs.insert(job.id, KnownJob::seen(seen));
            found.insert(job.id);
        }
        for id in looked_up.iter().filter(|id| !found.contains(id)) {
            if let Some(job) = self.jobs.get_mut(id) {
                job.miss(now_ms, FORGOTTEN);
            }
        }
        Ok(self.jobs.values().map(|job| job.seen.clone()).collect())
    }
}

#[cfg(test)]
#[path = "slurm_tests.rs"]
mod tests;
