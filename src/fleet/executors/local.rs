//! The executor of this machine: each attempt is a process in a session of its own, which outlives
//! the terminal and the coordinator that started it. A process is known by its id and its start, so
//! that one with a reused id is never taken for an attempt, and never signalled.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use super::{Executor, JobCall, JobState, SeenJob};
use crate::engine::fleet::TaskId;
use crate::engine::record::ProcessIdentity;
use crate::fleet::files::FleetFiles;
use crate::world::process::signals::ask_to_end;
use crate::world::process::{Call, descendants, identity};
use crate::world::store::Home;
use crate::world::store::logs::Log;

/// The attempts of one fleet that run here.
#[derive(Debug)]
pub struct Local {
    home: Home,
    files: FleetFiles,
    jobs: BTreeMap<String, (SeenJob, ProcessIdentity)>,
}

impl Local {
    /// The executor of a fleet on this machine.
    pub fn new(home: &Home, fleet: &str) -> Self {
        Self { home: home.clone(), files: FleetFiles::of(home, fleet), jobs: BTreeMap::new() }
    }

    fn keep(&mut self, task: &TaskId, number: u32, process: ProcessIdentity) -> String {
        let id = job_id(&process);
        let job = SeenJob { id: id.clone(), task: task.clone(), number, state: JobState::Running };
        // The process before it, which is over, says nothing more about the attempt.
        self.jobs.retain(|_, (known, _)| known.task != *task || known.number != number);
        self.jobs.insert(id.clone(), (job, process));
        id
    }
}

/// The id of the job that this process is: its own id and its start, which on some systems is a
/// date with blanks.
pub fn job_id(process: &ProcessIdentity) -> String {
    format!("{}@{}", process.pid, process.started.replace(' ', "_"))
}

/// The process that an id names. What is not the id of one process would be a group of processes
/// for the system.
pub(super) fn process_of(id: &str) -> Option<ProcessIdentity> {
    let (pid, started) = id.split_once('@')?;
    let pid = pid.parse().ok().filter(|pid| *pid > 1)?;
    (!started.is_empty()).then(|| ProcessIdentity { pid, started: started.replace('_', " ") })
}

impl Executor for Local {
    fn submit(&mut self, call: &JobCall<'_>) -> Result<String> {
        let spec = self.files.spec(&call.task, call.number);
        // It also starts a new file if this one is full. What the process itself prints is short:
        // what its setup and its agent print goes through bounded logs.
        let mut log = Log::open(&call.log);
        log.add(format!("… attempt {} …\n", call.number).as_bytes());
        log.close().map_or(Ok(()), Err).context("cannot write its log")?;
        let process = Call::crew(&self.home, &call.folder)
            .and_then(|crew| crew.args(["fleet", "attempt"]).args([&spec]).detach(&call.log))
            .with_context(|| format!("cannot start an attempt at {}", call.task))?;
        Ok(self.keep(&call.task, call.number, process))
    }

    fn adopt(&mut self, task: &TaskId, number: u32, id: &str) {
        if let Some(process) = process_of(id) {
            self.keep(task, number, process);
        }
    }

    fn list(&mut self) -> Result<Vec<SeenJob>> {
        for (job, process) in self.jobs.values_mut() {
            if !job.state.is_ended() && !identity::is_alive(process) {
                descendants::reap_child(process.pid);
                job.state = JobState::Ended(String::new());
            }
        }
        Ok(self.jobs.values().map(|(job, _)| job.clone()).collect())
    }

    fn cancel(&mut self, id: &str) -> Result<()> {
        if let Some((job, process)) = self.jobs.get(id)
            && !job.state.is_ended()
        {
            ask_to_end(process);
        }
        Ok(())
    }

    fn log(&self, id: &str) -> Option<String> {
        let (job, _) = self.jobs.get(id)?;
        Some(self.files.log(&job.task, job.number).display().to_string())
    }
}
