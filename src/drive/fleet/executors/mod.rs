//! The executors that place the jobs of a fleet on machines, behind four calls. An executor is
//! never asked how a task ended: that stands in the task's lease. `Local` starts processes of this
//! machine, each in a session of its own: they outlive the terminal and the crew that started them.

pub mod slurm;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};

use self::slurm::Slurm;
pub use crate::engine::fleet::manifest::LOCAL;
use crate::engine::fleet::{Fleet, TaskId};
use crate::engine::record::ProcessIdentity;
pub use crate::parse::fleet::slurm::JobState;
use crate::world::env;
use crate::world::process::signals::ask_to_end;
use crate::world::process::{Call, Stop, descendants, identity};
use crate::world::store::{Home, fleets, hash};

/// Where jobs on a cluster leave their output, below the home of the account there.
const LOGS: &str = ".crew-fleets";
/// The digits that tell apart fleets of one name.
const GROUP_DIGITS: usize = 8;

/// The engine that a fleet names. `stop` ends what it waits for early.
pub fn executor_of<'a>(
    home: &Home,
    fleet: &Fleet,
    stop: Stop<'a>,
) -> Result<Box<dyn Executor + 'a>> {
    let Some(host) = fleet.engine.strip_prefix("slurm") else {
        return Ok(Box::new(Local::new(home, &fleet.name)));
    };
    let host = host.strip_prefix(':').map(str::to_owned);
    // Machines of one cluster mostly share the path of a program; elsewhere PATH must lead to it.
    let crew = if host.is_some() { "crew".into() } else { env::program()? };
    let logs = match (&host, env::path("HOME")) {
        (None, Some(user)) => user.join(LOGS),
        _ => LOGS.into(),
    };
    Ok(Box::new(Slurm::new(&group(fleet), host, crew, logs.join(&fleet.name), stop)))
}

/// What the jobs of a fleet are known by on a cluster: its name, and a part of the hash of its
/// remote, for one user may have fleets of one name of several repositories there.
fn group(fleet: &Fleet) -> String {
    let address = fleet.remote.as_ref().map_or("", |remote| remote.url.as_str());
    format!("{}.{}", fleet.name, &hash(address.as_bytes())[..GROUP_DIGITS])
}

/// A job that an engine runs.
#[derive(Debug)]
pub struct JobCall {
    pub task: String,
    /// What follows `crew`. They are seen by every user of the machine, so no secret is among them.
    pub words: Vec<String>,
    /// Where the job begins, on the machine that runs it. With a login node, a relative path starts
    /// at the home of the account there.
    pub folder: PathBuf,
}

impl JobCall {
    /// The call of a fleet's job. One elsewhere finds its fleet by the remote, and has none of this
    /// machine's folders.
    pub fn of(fleet: &Fleet, task: &TaskId) -> Self {
        let is_local = fleet.is_local();
        let mut words = ["fleet", "job", &fleet.name, task.as_str()].map(str::to_owned).to_vec();
        let remote = fleet.remote.as_ref().filter(|_| !is_local);
        words.extend(remote.map(|remote| format!("--remote={}", remote.url)));
        let folder = if is_local { fleet.repository.clone() } else { "/".into() };
        Self { task: task.to_string(), words, folder }
    }
}

/// A job as an engine sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenJob {
    pub id: String,
    pub task: String,
    pub state: JobState,
}

/// What places jobs on machines.
pub trait Executor {
    /// Hands a job over and returns its id. After an error it may have been accepted all the same;
    /// `list` shows it then.
    fn submit(&mut self, call: &JobCall) -> Result<String>;

    /// The jobs of the fleet that the engine knows, the oldest first; a task may have several. One
    /// that has ended is listed if it was submitted or listed by this value before. An error means
    /// that the engine did not answer: nothing follows from it about any job.
    fn list(&mut self) -> Result<Vec<SeenJob>>;

    /// Asks for the end of a job: TERM, and KILL after the engine's own grace. A job that is over
    /// or unknown is no error.
    fn cancel(&mut self, id: &str) -> Result<()>;

    /// Where the output of a job is: a path, or `HOST:PATH`. `None` if there is no such job.
    fn log(&self, id: &str) -> Option<String>;
}

/// The processes that this one has started.
pub struct Local {
    home: Home,
    fleet: String,
    jobs: BTreeMap<String, (SeenJob, ProcessIdentity)>,
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

impl Executor for Local {
    fn submit(&mut self, call: &JobCall) -> Result<String> {
        let output = self.log_of(&call.task).context("it is no task")?;
        let process = Call::crew(&self.home, &call.folder)
            .and_then(|crew| crew.args(&call.words).detach(&output))
            .with_context(|| format!("cannot start a job for {}", call.task))?;
        let (id, task) = (process.pid.to_string(), call.task.clone());
        let job = SeenJob { id: id.clone(), task, state: JobState::Running };
        self.jobs.insert(id.clone(), (job, process));
        Ok(id)
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
        self.log_of(&job.task).map(|path| path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fleet::Remote;
    use crate::engine::fleet::fixture::a_fleet;

    #[test]
    fn fleets_of_one_name_of_two_remotes_are_two_groups_of_jobs() {
        let of = |url: &str| {
            let remote = Remote { name: String::new(), url: url.to_owned() };
            group(&Fleet { remote: Some(remote), ..a_fleet() })
        };
        let groups = ["git@example.org:one.git", "git@example.org:two.git"].map(of);
        assert_eq!(groups, ["billing-cleanup.2859a968", "billing-cleanup.df177dd5"]);
    }
}
