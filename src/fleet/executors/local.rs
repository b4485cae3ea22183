//! This machine as a system of jobs: each attempt is a process in a session of its own, which
//! outlives the terminal and the coordinator that started it. A process is known by its id and its
//! start, so that one with a reused id is never taken for an attempt, and never signalled.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::{FoundJobs, JobSystem, SeenJob};
use crate::fleet::files::FleetFiles;
use crate::fleet::record::{FleetSetup, LOCAL};
use crate::fleet::spec::AttemptSpec;
use engine::record::ProcessIdentity;
use world::logs::Log;
use world::process::signals::ask_to_end;
use world::process::{Call, descendants, identity};
use world::store::Home;

/// Where the attempts of one fleet run.
#[derive(Debug)]
pub struct Local {
    home: Home,
    files: FleetFiles,
    /// The person's working tree.
    folder: PathBuf,
}

impl Local {
    /// The system of a fleet on this machine.
    pub fn new(home: &Home, setup: &FleetSetup) -> Self {
        let (files, folder) = (FleetFiles::new(home, &setup.name), setup.repository.clone());
        Self { home: home.clone(), files, folder }
    }
}

/// The id of the job that this process is: its own id and its start, which on some systems is a
/// date with blanks.
pub(super) fn job_id(process: &ProcessIdentity) -> String {
    format!("{}@{}", process.pid, process.started.replace(' ', "_"))
}

/// The process that an id names. What is not the id of one process would be a group of processes
/// for the system.
pub(super) fn process_of(id: &str) -> Option<ProcessIdentity> {
    let (pid, started) = id.split_once('@')?;
    let pid = pid.parse().ok().filter(|pid| *pid > 1)?;
    if started.is_empty() {
        return None;
    }
    Some(ProcessIdentity { pid, started: started.replace('_', " ") })
}

impl JobSystem for Local {
    fn name(&self) -> &str {
        LOCAL
    }

    fn submit_job(&mut self, spec: &AttemptSpec) -> Result<String> {
        let (task, number) = (&spec.task.task, spec.number);
        let output = self.files.log(task, number);
        // It also starts a new file if this one is full. What the process itself prints is short:
        // what its setup and its agent print goes through bounded logs.
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
