//! Jobs as processes of this machine, each in a session of its own: they outlive the terminal and
//! the crew that started them. Nothing is started again by itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Engine, JobCall, JobState, SeenJob};
use crate::engine::record::ProcessIdentity;
use crate::world::process::signals::ask_to_end;
use crate::world::process::{Call, children, identity};
use crate::world::store::{Home, fleets};

/// The processes that this one has started.
pub struct Local {
    home: Home,
    fleet: String,
    jobs: BTreeMap<String, LocalJob>,
}

struct LocalJob {
    task: String,
    process: ProcessIdentity,
    has_ended: bool,
}

impl Local {
    /// The engine of a fleet on this machine.
    pub fn new(home: &Home, fleet: &str) -> Self {
        Self { home: home.clone(), fleet: fleet.to_owned(), jobs: BTreeMap::new() }
    }

    fn log_of(&self, task: &str) -> Option<PathBuf> {
        Some(fleets::log(&self.home, &self.fleet, &task.parse().ok()?))
    }
}

impl Engine for Local {
    fn submit(&mut self, call: &JobCall) -> Result<String> {
        let output = self.log_of(&call.task).context("it is no task")?;
        let words = ["fleet", "job", &call.fleet, &call.task];
        let process = Call::crew(&self.home, &call.folder)
            .and_then(|crew| crew.args(words).args(&call.words).detach(&output))
            .with_context(|| format!("cannot start a job for {}", call.task))?;
        let id = process.pid.to_string();
        let job = LocalJob { task: call.task.clone(), process, has_ended: false };
        self.jobs.insert(id.clone(), job);
        Ok(id)
    }

    fn list(&mut self) -> Result<Vec<SeenJob>> {
        let mut seen = Vec::new();
        for (id, job) in &mut self.jobs {
            if !job.has_ended && !identity::is_alive(&job.process) {
                children::reap(job.process.pid);
                job.has_ended = true;
            }
            let state =
                if job.has_ended { JobState::Ended(String::new()) } else { JobState::Running };
            seen.push(SeenJob { id: id.clone(), task: job.task.clone(), state });
        }
        Ok(seen)
    }

    fn cancel(&mut self, id: &str) -> Result<()> {
        if let Some(job) = self.jobs.get(id).filter(|job| !job.has_ended) {
            ask_to_end(&job.process);
        }
        Ok(())
    }

    fn log(&self, id: &str) -> Option<String> {
        let task = &self.jobs.get(id)?.task;
        self.log_of(task).map(|path| path.display().to_string())
    }
}
