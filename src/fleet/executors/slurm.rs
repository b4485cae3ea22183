//! Slurm, by its own commands: here, or on a login node by ssh. They need no accounting database.
//! sbatch itself reads what a site wants for each job, such as a partition or a time limit, from
//! the variables SBATCH_*. Other lines, such as a login shell's greeting, are ignored, and an
//! unknown state never counts as an end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use super::{Executor, FoundJobs, SeenJob, job_script};
use crate::drive::installation::slurm::{quote_word, run_call, slurm_call};
use crate::fleet::record::FleetTerms;
use crate::fleet::spec::AttemptSpec;
use engine::failure::Failure;
use engine::text::is_word_of;
use world::env;
use world::process::Stop;
use world::store::hash;

/// The time limit of a command. Slurm's own commands give up after 10 to 20 s without a controller.
const WITHIN: Duration = Duration::from_secs(60);
/// The maximum number of jobs of a fleet that one answer may list.
const JOBS_MAX: usize = 50_000;
/// The maximum number of jobs looked up individually for one list, so that it finishes in time.
const LOOKUPS_MAX: usize = 200;
/// Where jobs leave their output, below the home of the account there.
const LOGS: &str = ".crew-fleets";
/// The number of digits that distinguish fleets with the same name.
const GROUP_DIGITS: usize = 8;
/// The columns that `squeue -O` prints for a list. With a width and a separator, a long value
/// neither runs into the next nor is truncated to 20 characters. The name is last, because it may
/// contain the separator.
const COLUMNS: &str = "JobID:20|,State:30|,Name:1024";
/// The states in which no process of a job runs or will run.
const ENDS: &str = "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED \
    REVOKED TIMEOUT";

/// A Slurm cluster, for the jobs of one fleet.
pub struct Slurm<'a> {
    /// The prefix of the fleet's job names. It ends with a slash, which no fleet's name contains;
    /// with hyphens `a` and `a-b` could not be distinguished.
    prefix: String,
    host: Option<String>,
    crew: String,
    logs: PathBuf,
    stop: Stop<'a>,
}

impl<'a> Slurm<'a> {
    /// Submits a fleet's jobs here, or on the login node `host`. `crew` is a path on the cluster's
    /// machines, or a name on the login shell's PATH. `stop` ends a command early.
    pub fn new(terms: &FleetTerms, host: Option<String>, crew: String, stop: Stop<'a>) -> Self {
        // One user may have fleets with the same name from several repositories there.
        let address = terms.remote.as_ref().map_or("", |remote| remote.url.as_str());
        let digits = &hash(address.as_bytes())[..GROUP_DIGITS];
        let prefix = format!("crew/{}.{digits}/", terms.name);
        // A relative path starts at the account's home there.
        let home = if host.is_none() { env::path("HOME") } else { None };
        let logs = home.unwrap_or_default().join(LOGS).join(&terms.name);
        Self { prefix, host, crew, logs, stop }
    }

    /// Runs a command until it exits and returns what `read` finds in the lines of its output.
    fn run_client<T>(
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
        let call = slurm_call(host, command, Path::new("/")).within(WITHIN).input(input);
        run_call(call.each_line(&mut each), host, self.stop)?;
        if is_cut {
            bail!(Failure::new(
                format!("Slurm lists more than {JOBS_MAX} jobs of this fleet"),
                "run it later"
            ));
        }
        Ok(found)
    }

    /// The job with this id and name, if it belongs to this fleet. Ids are reused once the
    /// controller has lost its state, so the id alone proves nothing.
    fn seen_job(&self, id: &str, name: &str, ended: Option<String>) -> Option<SeenJob> {
        let (task, number) = name.strip_prefix(&self.prefix)?.split_once('/')?;
        let (id, task) = (id.parse::<u64>().ok()?.to_string(), task.parse().ok()?);
        Some(SeenJob { id, task, number: number.parse().ok()?, ended })
    }

    /// The job in a line of `squeue -h -O` with [`COLUMNS`], unless it has ended.
    fn parse_listed(&self, line: &str) -> Option<SeenJob> {
        let fields: Vec<&str> = line.splitn(3, '|').map(str::trim).collect();
        let [id, state, name] = fields[..] else { return None };
        // Only scontrol says how a job ended.
        if is_word_of(ENDS, state) { None } else { self.seen_job(id, name, None) }
    }

    /// The job in a line of `scontrol -o show job`. A name may hold blanks. After it, only the
    /// first field with each name counts: a user's own words, such as the command, come late in the
    /// line.
    fn parse_shown(&self, line: &str) -> Option<SeenJob> {
        let (id, rest) = line.strip_prefix("JobId=")?.split_once(" JobName=")?;
        let (name, rest) = rest.split_once(" UserId=")?;
        let ended = match (find_field(rest, "JobState")?, find_field(rest, "Reason")?) {
            (state, _) if !is_word_of(ENDS, state) => None,
            (state, "None") => Some(state.to_owned()),
            (state, reason) => Some(format!("{state} ({reason})")),
        };
        self.seen_job(id, name, ended)
    }
}

impl Executor for Slurm<'_> {
    fn name(&self) -> &'static str {
        "Slurm"
    }

    fn submit_job(&mut self, spec: &AttemptSpec) -> Result<String> {
        let name = format!("{}{}/{}", self.prefix, spec.task.task, spec.number);
        let script = job_script(&self.crew, spec)?;
        let ids = self.run_client(
            &submission_script(&self.logs, &name),
            script.as_bytes(),
            parse_submitted,
        )?;
        let hint = "squeue --me lists the job if it was accepted";
        let id = ids.last().ok_or_else(|| Failure::new("sbatch printed no id", hint))?;
        Ok(id.to_string())
    }

    fn is_id(&self, id: &str) -> bool {
        // A word that is not a number could be an option, such as one that cancels every job.
        id.parse::<u64>().is_ok_and(|number| number.to_string() == id)
    }

    fn find_jobs(&mut self, open: &[SeenJob]) -> Result<FoundJobs> {
        let queue = format!("exec squeue --all --me --noheader --Format={}", quote_word(COLUMNS));
        let mut known = self.run_client(&queue, &[], |line| self.parse_listed(line))?;
        let asked = left_by(open, &known);
        if !asked.is_empty() {
            // scontrol fails for a forgotten job, and answers for the others.
            let ids = asked.join(" ");
            let command = format!("for job in {ids}; do scontrol --all -o show job $job; done; :");
            known.extend(self.run_client(&command, &[], |line| self.parse_shown(line))?);
        }
        Ok(found_jobs(known, asked))
    }

    fn cancel_job(&mut self, id: &str) -> Result<()> {
        let host = self.host.as_deref();
        let call = slurm_call(host, &format!("exec scancel {id}"), Path::new("/"));
        // A person who ends the fleet is why it is called: that must not end it.
        run_call(call.within(WITHIN).input(&[]), host, &|| false)
    }
}

/// The id of a new job in a line that `sbatch --parsable` prints: `ID`, or `ID;CLUSTER`.
fn parse_submitted(line: &str) -> Option<u64> {
    let line = line.trim();
    line.split_once(';').map_or(line, |(id, _)| id).parse().ok()
}

fn find_field<'line>(line: &'line str, name: &str) -> Option<&'line str> {
    line.split_once(&format!(" {name}="))?.1.split(' ').next()
}

/// The ids of the jobs that are not in the queue, up to [`LOOKUPS_MAX`].
fn left_by(open: &[SeenJob], queue: &[SeenJob]) -> Vec<String> {
    let queued: BTreeSet<&str> = queue.iter().map(|job| job.id.as_str()).collect();
    let left = open.iter().map(|job| &job.id).filter(|id| !queued.contains(id.as_str()));
    left.take(LOOKUPS_MAX).cloned().collect()
}

/// The jobs that were found; those of the `asked` that were not are missing.
fn found_jobs(known: Vec<SeenJob>, mut asked: Vec<String>) -> FoundJobs {
    asked.retain(|id| known.iter().all(|job| job.id != *id));
    FoundJobs { known, missing: asked }
}

/// The command that submits a script. Slurm does not create the output folder. Output contains
/// secrets, and a cluster's home is often shared, so only this user can read folder and file; the
/// job itself gets the account's umask.
fn submission_script(logs: &Path, name: &str) -> String {
    let folder = logs.display().to_string();
    // Slurm expands what follows a percent sign.
    let log = format!("{}/%j.log", folder.replace('%', "%%"));
    format!(
        "mask=$(umask) && umask 077 && mkdir -p -- {folder} && chmod 700 -- {folder} && \
         {{ printf '#!/bin/sh\\numask %s\\n' \"$mask\"; cat; }} | \
         sbatch --parsable {name} --requeue --open-mode=append --signal=B:TERM@60 -o {log}",
        folder = quote_word(&folder),
        name = quote_word(&format!("--job-name={name}")),
        log = quote_word(&log),
    )
}

#[cfg(test)]
#[path = "slurm_tests.rs"]
mod tests;
