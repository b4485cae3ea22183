//! A system reached through three commands in the user's own settings: `submit`, `status`,
//! `cancel`. Everything that they print is checked: an id is one word that no command can mistake
//! for an option, and a word unknown to [`place_of`] says nothing about a job.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, bail};

use super::{Executor, FoundJobs, SeenJob, job_script};
use crate::fleet::spec::AttemptSpec;
use engine::failure::Failure;
use engine::fleet::TaskId;
use engine::text::{is_word_of, text_start};
use readers::parse::settings::merge::ExecutorEntry;
use readers::parse::shell_command::fill_placeholders;
use world::clock::Deadline;
use world::env;
use world::files::disk::{self, Durability};
use world::process::{Call, Capture, ExitCause, Stop};

/// The time limit of `submit` and `cancel`, which may build an image or start a machine.
const SUBMIT_WITHIN: Duration = Duration::from_secs(120);
/// The time limit of one `status`.
const STATUS_WITHIN: Duration = Duration::from_secs(20);
/// The time limit for listing all jobs; the next list begins with those left over.
const LIST_WITHIN: Duration = Duration::from_secs(30);
/// The maximum size of an id, in bytes; a record with a longer one is refused.
const ID_BYTES: usize = 200;
/// The maximum number of characters shown of a command's last line.
const CAUSE_CHARS: usize = 300;
/// The maximum number of characters of the fleet and of the task in a job's name, which is at most
/// 63 long in all: a DNS label, as Kubernetes requires.
const NAME_CHARS: usize = 32;

/// The words for jobs that succeeded or simply ended.
const SUCCEEDED: &str = "succeeded success complete completed done finished f c x";
/// The words for jobs that failed or were cancelled.
const FAILED: &str = "failed failure error cancelled canceled timed_out timeout startup_failure \
    evicted deadlineexceeded";
/// The words for an unknown job. A `status` that prints nothing means the same.
const MISSING: &str = "none null notfound";

/// The commands of an `[executor.NAME]`, for the jobs of one fleet.
pub struct CommandSystem<'a> {
    name: String,
    commands: ExecutorEntry,
    /// The folder of the scripts, private to this user: a spec contains the task.
    scripts: PathBuf,
    /// The folder that the commands run in.
    folder: PathBuf,
    stop: Stop<'a>,
    /// The job whose status was asked last.
    last_asked: String,
    submit_within: Duration,
    status_within: Duration,
}

impl<'a> CommandSystem<'a> {
    /// Uses the commands of this name in the user's settings. `stop` ends a command early.
    pub fn new(
        name: &str,
        commands: ExecutorEntry,
        scripts: PathBuf,
        folder: PathBuf,
        stop: Stop<'a>,
    ) -> Self {
        let (name, last_asked) = (name.to_owned(), String::new());
        let (submit_within, status_within) = (SUBMIT_WITHIN, STATUS_WITHIN);
        Self { name, commands, scripts, folder, stop, last_asked, submit_within, status_within }
    }

    /// Runs one of the commands, and returns the last non-blank line of its standard output.
    /// Anything but exit status 0 is an error.
    fn run_command(
        &self,
        key: &str,
        command: &str,
        within: Duration,
        stop: Stop<'_>,
    ) -> Result<String> {
        let mut last = String::new();
        let mut each = |line: &str| {
            if !line.trim().is_empty() {
                line.trim().clone_into(&mut last);
            }
        };
        let call = Call::shell(command, &self.folder).within(within).keep(Capture::Apart);
        let ended = call.each_line(&mut each).run(stop).context("cannot start sh")?;
        if ended.cause() == ExitCause::Exit(0) {
            return Ok(last);
        }
        let errors = String::from_utf8_lossy(ended.errors());
        let line = errors.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or(&last);
        let cause = match ended.cause() {
            ExitCause::Exit(_) if !line.is_empty() => text_start(line, CAUSE_CHARS).to_owned(),
            cause => cause.to_string(),
        };
        bail!(Failure::new(cause, format!("try the {key} of [executor.{}] in a shell", self.name)));
    }

    fn script_file(&self, task: &TaskId, number: u32) -> PathBuf {
        self.scripts.join(format!("{task}.{number}.sh"))
    }
}

impl Executor for CommandSystem<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn submit_job(&mut self, spec: &AttemptSpec) -> Result<String> {
        let file = self.script_file(&spec.task.task, spec.number);
        let text = job_script("crew", spec)?;
        disk::make_private_folder(&self.scripts)
            .and_then(|()| disk::write(&file, text.as_bytes(), Durability::Process))
            .context("cannot write the script of a job")?;
        let path = file.display().to_string();
        let name = job_name(spec, env::random_number());
        let command =
            fill_placeholders(&self.commands.submit, &[("script", &path), ("name", &name)]);
        let printed = self.run_command("submit", &command, self.submit_within, self.stop)?;
        id_of(&printed).map(str::to_owned)
    }

    fn is_id(&self, id: &str) -> bool {
        id_of(id).is_ok()
    }

    /// Looks up one job after the other, beginning after the one that was looked up last.
    fn find_jobs(&mut self, open: &[SeenJob]) -> Result<FoundJobs> {
        let (before, after) = open.split_at(open.partition_point(|job| job.id <= self.last_asked));
        let deadline = Deadline::after(LIST_WITHIN);
        let (mut found, mut failure) = (FoundJobs::default(), None::<Error>);
        let mut has_answered = false;
        for job in after.iter().chain(before) {
            if deadline.passed() || (self.stop)() {
                break;
            }
            self.last_asked.clone_from(&job.id);
            let command = fill_placeholders(&self.commands.status, &[("job", &job.id)]);
            let within = self.status_within.min(deadline.left());
            let place = match self.run_command("status", &command, within, self.stop) {
                Ok(line) => {
                    has_answered = true;
                    place_of(&line)
                }
                Err(error) => {
                    failure = failure.or(Some(error));
                    JobPlace::Open
                }
            };
            match place {
                JobPlace::Missing => found.missing.push(job.id.clone()),
                JobPlace::Open => found.known.push(job.clone()),
                JobPlace::Ended(why) => {
                    found.known.push(SeenJob { ended: Some(why), ..job.clone() });
                }
            }
        }
        match failure {
            Some(error) if !has_answered => Err(error),
            _ => Ok(found),
        }
    }

    fn cancel_job(&mut self, id: &str) -> Result<()> {
        let command = fill_placeholders(&self.commands.cancel, &[("job", id)]);
        // It is called because a person ends the fleet, so that signal must not end it.
        self.run_command("cancel", &command, self.submit_within, &|| false).map(drop)
    }

    fn forget_job(&mut self, job: &SeenJob) {
        // A script left here is removed with the fleet.
        let _ = disk::remove(&self.script_file(&job.task, job.number));
    }
}

/// A DNS label for a job. `random` distinguishes it from one submitted before.
fn job_name(spec: &AttemptSpec, random: u64) -> String {
    let words = format!("{}-{}", spec.task.name, spec.task.task).to_ascii_lowercase();
    let words = words.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let words: String = words.take(NAME_CHARS).collect();
    format!("crew-{words}-{}-{:08x}", spec.number, random & 0xffff_ffff)
}

/// The id in the last line that `submit` printed. It becomes an argument of commands, so anything
/// that a shell or a command could misread is refused.
fn id_of(line: &str) -> Result<&str> {
    let is_plain = line.chars().all(|c| c.is_ascii_graphic() && !"'\"`$\\".contains(c));
    let why = if line.is_empty() {
        "submit printed no id"
    } else if line.len() > ID_BYTES {
        "the last line of submit is too long for an id"
    } else if line.starts_with('-') || !is_plain {
        "the last line of submit is not an id"
    } else {
        return Ok(line);
    };
    let shown = text_start(line, CAUSE_CHARS);
    let hint = "it must be one word, without quotes, in the last line";
    Err(Failure::new(format!("{why}: {shown:?}"), hint).into())
}

/// What a system reports about a job.
#[derive(Debug, PartialEq, Eq)]
enum JobPlace {
    /// The job may wait or run.
    Open,
    /// The job has ended, for this reason, which is empty for success.
    Ended(String),
    /// The system does not know the job.
    Missing,
}

/// What the last line of `status` means.
fn place_of(line: &str) -> JobPlace {
    let word = line.to_ascii_lowercase();
    if word.is_empty() || is_word_of(MISSING, &word) {
        JobPlace::Missing
    } else if is_word_of(SUCCEEDED, &word) {
        JobPlace::Ended(String::new())
    } else if is_word_of(FAILED, &word) {
        JobPlace::Ended(line.to_owned())
    } else {
        JobPlace::Open
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
