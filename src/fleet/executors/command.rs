//! The executor that is three commands of the user's own settings: `submit`, `status`, `cancel`. It
//! knows no batch system, so everything that they print is checked: an id is one word that no
//! command can take for an option, and a word that is not in [`place_of`] says nothing about a job.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, bail};

use super::{Executor, JobCall, JobState, KnownJob, SeenJob, script};
use crate::engine::fleet::TaskId;
use crate::engine::text::{is_word_of, start};
use crate::parse::placeholders::fill;
use crate::parse::settings::merge::ExecutorEntry;
use crate::world::clock::{self, Deadline};
use crate::world::files::disk::{self, Durability};
use crate::world::process::{Call, Capture, ExitCause, Stop};

/// The longest that `submit` and `cancel` may take: it may build an image, or start a machine.
const SUBMIT_WITHIN: Duration = Duration::from_secs(120);
/// The longest that one `status` may take.
const STATUS_WITHIN: Duration = Duration::from_secs(20);
/// The longest that all of one list may take; the jobs that are left are asked for first next time.
const LIST_WITHIN: Duration = Duration::from_secs(30);
/// The longest id, in bytes; a record believes no longer one.
const ID_BYTES: usize = 200;
/// The most characters of a command's last line that are shown.
const CAUSE_CHARS: usize = 300;

/// The words of jobs that wait for a place: of PBS (Q H T W), AWS Batch, GitHub and Kubernetes.
const WAITING: &str = "pending queued submitted runnable waiting requested suspended q h t w";
/// The words of jobs that have a place, also while they begin or end.
const RUNNING: &str = "running active starting in_progress exiting r e b s u";
/// The words of jobs that are over and did what they should, or just are over.
const SUCCEEDED: &str = "succeeded success complete completed done finished f c x";
/// The words of jobs that are over and did not.
const FAILED: &str = "failed failure error cancelled canceled timed_out timeout startup_failure \
    evicted deadlineexceeded";
/// The words that say that there is no such job. So does a `status` that prints nothing.
const MISSING: &str = "none null notfound";

/// The jobs of one fleet in a system that three commands reach.
pub struct CommandExecutor<'a> {
    name: String,
    commands: ExecutorEntry,
    /// Where the scripts are, for this user only: a spec contains the task.
    scripts: PathBuf,
    /// Where the commands run.
    folder: PathBuf,
    stop: Stop<'a>,
    jobs: BTreeMap<String, KnownJob>,
    /// The last job that was asked for.
    last_asked: String,
    submit_within: Duration,
    status_within: Duration,
}

/// What `status` says about a job.
#[derive(Debug, PartialEq, Eq)]
enum JobPlace {
    Is(JobState),
    /// There is no such job.
    Missing,
    /// Nothing follows.
    Unknown,
}

impl<'a> CommandExecutor<'a> {
    /// The executor of this name in the user's settings. `stop` ends a command early.
    pub fn new(
        name: &str,
        commands: ExecutorEntry,
        scripts: PathBuf,
        folder: PathBuf,
        stop: Stop<'a>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            commands,
            scripts,
            folder,
            stop,
            jobs: BTreeMap::new(),
            last_asked: String::new(),
            submit_within: SUBMIT_WITHIN,
            status_within: STATUS_WITHIN,
        }
    }

    /// Runs one of the commands, and returns the last line of its standard output that is not
    /// blank. Anything but exit status 0 is an error.
    fn run(&self, key: &str, command: &str, within: Duration, stop: Stop<'_>) -> Result<String> {
        let mut last = String::new();
        let mut each = |line: &str| {
            if !line.trim().is_empty() {
                line.trim().clone_into(&mut last);
            }
        };
        let call = Call::shell(command, &self.folder).within(within).keep(Capture::Apart);
        let ended = call.each_line(&mut each).run(stop).context("cannot start sh")?;
        if ended.cause == ExitCause::Exit(0) {
            return Ok(last);
        }
        let errors = String::from_utf8_lossy(&ended.errors);
        let line = errors.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or(&last);
        let cause = match ended.cause {
            ExitCause::Exit(_) if !line.is_empty() => start(line, CAUSE_CHARS).to_owned(),
            cause => cause.to_string(),
        };
        bail!("{cause}\nhint: try the {key} of [executor.{}] in a shell", self.name);
    }

    /// What there is to know about a job. An error means that the system did not answer.
    fn ask(&self, id: &str, within: Duration) -> Result<JobPlace> {
        let command = fill(&self.commands.status, &[("job", id)]);
        Ok(place_of(&self.run("status", &command, within, self.stop)?))
    }

    /// The jobs that are not over, those after the last that was asked for first.
    fn open_jobs(&self) -> Vec<String> {
        let open = self.jobs.iter().filter(|(_, job)| !job.seen.state.is_ended());
        let open = open.map(|(id, _)| id.clone());
        let (before, mut after): (Vec<_>, Vec<_>) = open.partition(|id| *id <= self.last_asked);
        after.extend(before);
        after
    }

    /// Takes in what was answered about a job.
    fn take(&mut self, id: &str, answer: &Result<JobPlace>, now_ms: u64) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        match answer {
            Ok(JobPlace::Is(state)) => {
                job.missing_since = None;
                job.seen.state = state.clone();
            }
            Ok(JobPlace::Missing) => {
                let why = format!("{} does not know it any more", self.name);
                job.miss(now_ms, &why);
            }
            Ok(JobPlace::Unknown) | Err(_) => job.missing_since = None,
        }
        if job.seen.state.is_ended() {
            let script = script_file(&self.scripts, &job.seen.task, job.seen.number);
            // A script that stays is removed with the fleet.
            let _ = disk::remove(&script);
        }
    }
}

impl Executor for CommandExecutor<'_> {
    fn submit(&mut self, call: &JobCall<'_>) -> Result<String> {
        let file = script_file(&self.scripts, &call.task, call.number);
        let text = script("crew", call)?;
        disk::make_private_folder(&self.scripts)
            .and_then(|()| disk::write(&file, text.as_bytes(), Durability::Process))
            .context("cannot write the script of a job")?;
        let path = file.display().to_string();
        let command = fill(&self.commands.submit, &[("script", &path), ("name", &call.name)]);
        let printed = self.run("submit", &command, self.submit_within, self.stop);
        let id = printed.and_then(|line| id_of(&line));
        let id = id.with_context(|| format!("cannot submit {}", call.task))?;
        self.jobs.insert(id.clone(), KnownJob::new(&id, &call.task, call.number));
        Ok(id)
    }

    fn adopt(&mut self, task: &TaskId, number: u32, id: &str) {
        if id_of(id).is_ok() {
            self.jobs.insert(id.to_owned(), KnownJob::new(id, task, number));
        }
    }

    fn list(&mut self) -> Result<Vec<SeenJob>> {
        let deadline = Deadline::after(LIST_WITHIN);
        let mut failure: Option<Error> = None;
        let mut has_answered = false;
        for id in self.open_jobs() {
            if deadline.passed() || (self.stop)() {
                break;
            }
            let answer = self.ask(&id, self.status_within.min(deadline.left()));
            self.take(&id, &answer, clock::awake_ms());
            self.last_asked = id;
            match answer {
                Ok(_) => has_answered = true,
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            Some(error) if !has_answered => {
                Err(error.context(format!("{} does not answer", self.name)))
            }
            _ => Ok(self.jobs.values().map(|job| job.seen.clone()).collect()),
        }
    }

    fn cancel(&mut self, id: &str) -> Result<()> {
        let id = id_of(id)?;
        if self.jobs.get(&id).is_some_and(|job| job.seen.state.is_ended()) {
            return Ok(());
        }
        let command = fill(&self.commands.cancel, &[("job", &id)]);
        // A person who ends the fleet is why it is called: that must not end it.
        let ended = self.run("cancel", &command, self.submit_within, &|| false);
        ended.map(drop).with_context(|| format!("cannot cancel job {id}"))
    }

    fn log(&self, _: &str) -> Option<String> {
        None
    }
}

fn script_file(scripts: &Path, task: &TaskId, number: u32) -> PathBuf {
    scripts.join(format!("{task}.{number}.sh"))
}

/// The id in the last line that `submit` printed. It becomes a word of commands, so what a shell or
/// a command could take for something else is refused.
fn id_of(line: &str) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_graphic() && !['\'', '"', '`', '$', '\\'].contains(&c);
    let why = if line.is_empty() {
        "submit printed no id"
    } else if line.len() > ID_BYTES {
        "the last line of submit is too long for an id"
    } else if line.starts_with('-') || !line.chars().all(is_plain) {
        "the last line of submit is not an id"
    } else {
        return Ok(line.to_owned());
    };
    let shown = start(line, CAUSE_CHARS);
    Err(anyhow!("{why}: {shown:?}\nhint: it must be one word, without quotes, in the last line"))
}

/// What the last line of `status` means.
fn place_of(line: &str) -> JobPlace {
    let word = line.to_ascii_lowercase();
    let is = |words| is_word_of(words, &word);
    if word.is_empty() || is(MISSING) {
        JobPlace::Missing
    } else if is(WAITING) {
        JobPlace::Is(JobState::Waiting(String::new()))
    } else if is(RUNNING) {
        JobPlace::Is(JobState::Running)
    } else if is(SUCCEEDED) {
        JobPlace::Is(JobState::Ended(String::new()))
    } else if is(FAILED) {
        JobPlace::Is(JobState::Ended(line.to_owned()))
    } else {
        JobPlace::Unknown
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
