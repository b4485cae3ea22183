//! Starts every child process of crew. The caller says what to run, where, with which environment,
//! how much output to keep, and how long to wait. A child runs in a separate session and leaves
//! none of its processes behind. For an agent, lines are passed on and silence is watched. It
//! reports how the child ended and never judges that.

mod runner;

use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use derive_getters::Getters;
use rustix::process::Signal;

use self::runner::Running;
pub use self::runner::StopRequest;
use super::output::{Capture, Feed, LineCutter, Stream, Watch};
use super::{descendants, groups, identity};
use crate::clock::Stopwatch;
use crate::files::disk;
use crate::home::Home;
use crate::logs::Log;
use crate::{env, fault, slots};
use engine::record::ProcessIdentity;
use readers::clients;

/// The time between two polls of a child.
const LOOK: Duration = Duration::from_millis(20);
/// The time from TERM to KILL while the user is waiting.
const SHORT_GRACE: Duration = Duration::from_millis(1500);
/// How long processes that a child left behind in another group may keep its output open.
const LINGER: Duration = Duration::from_secs(1);

/// The longest line that is passed on; the rest of a longer one is dropped.
const LINE_BYTES: usize = 64 << 10;

/// How long processes that an agent left behind may keep its pipes open after its exit.
const AGENT_LINGER: Duration = Duration::from_millis(500);
/// How long an agent that has reported its completion may stay silent before it is ended.
pub const CLOSED: Duration = Duration::from_secs(30);
/// The longest event that is passed on whole, in bytes: it may contain a file that the agent read.
const EVENT_BYTES: usize = 8 << 20;
/// The longest line of an agent's standard output that is not an event, and the longest text for a
/// line that is not UTF-8, in bytes.
const AGENT_LINE_BYTES: usize = 1 << 20;

/// A condition that is checked repeatedly while something runs: whether it must end early.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// Receives the lines of a child's output.
pub type EachLine<'a> = &'a mut dyn FnMut(&str);

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExitCause {
    #[error("exit {0}")]
    Exit(i32),
    /// A signal that crew did not send.
    #[error("signal {0}")]
    Signal(i32),
    /// crew ended it at its deadline.
    #[error("it took too long")]
    TimedOut,
    /// crew ended it because it printed nothing for too long.
    #[error("it printed nothing for too long")]
    Idle,
    /// crew ended it because it had reported its completion and did not exit.
    #[error("it did not exit")]
    Lingered,
    /// crew ended it on request.
    #[error("stopped")]
    Stopped,
}

/// A child that has ended.
#[derive(Debug, Getters, Clone, PartialEq, Eq)]
pub struct FinishedProcess {
    #[getter(copy)]
    cause: ExitCause,
    #[getter(copy)]
    elapsed_ms: u64,
    /// The kept part of its output.
    output: Vec<u8>,
    /// The end of its standard error, where that is captured separately.
    errors: Vec<u8>,
    /// Whether part of the output was left out.
    #[getter(copy)]
    cut: bool,
}

impl FinishedProcess {
    /// A finished process that printed this, for a test.
    #[cfg(any(test, feature = "fixture"))]
    pub fn with_output(cause: ExitCause, output: &str) -> Self {
        Self { cause, elapsed_ms: 0, output: output.into(), errors: Vec::new(), cut: false }
    }

    /// The output, if the child exited with one of these codes and all of its output was kept.
    pub fn whole_output(self, codes: &[i32]) -> Option<Vec<u8>> {
        let is_whole = matches!(self.cause, ExitCause::Exit(code) if codes.contains(&code));
        if is_whole && !self.cut { Some(self.output) } else { None }
    }

    /// The output as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }
}

/// An agent that has ended.
#[derive(Debug, Getters)]
pub struct FinishedAgent {
    #[getter(copy)]
    cause: ExitCause,
    /// How long it ran, in milliseconds, as far as crew watched.
    #[getter(copy)]
    ran_ms: u64,
    /// How long crew itself was stopped or kept waiting, in milliseconds: unwatched time counts
    /// against nothing.
    #[getter(copy)]
    missed_ms: u64,
    /// The last 64 KiB of standard error.
    errors: String,
    /// Whether it closed its standard output and kept running: its last output may be missing.
    #[getter(copy)]
    closed_early: bool,
    /// Why the log is incomplete. The agent was not stopped because of it.
    log_error: Option<io::Error>,
    /// The ids of processes it started that could not be ended.
    left_behind: Vec<i32>,
}

/// A child that is about to be started. By default it has this process's environment, no input and
/// no deadline, and its output is kept for reading.
#[must_use]
pub struct Call<'a> {
    command: Command,
    input: Option<&'a [u8]>,
    within: Option<Duration>,
    notes: Option<PathBuf>,
    capture: Capture,
    each: Option<EachLine<'a>>,
}

impl<'a> Call<'a> {
    /// A program in a folder, without the variables of a client's session or of a surrounding git.
    pub fn of(program: impl AsRef<OsStr>, folder: &Path) -> Self {
        let mut call = Self::with_all(program, folder);
        for name in clients::client_variables() {
            call.command.env_remove(name);
        }
        // Without its own slot, this process passes on the one it was started with.
        call.envs(slots::own_number().map(|number| ("CREW_SLOT", number.to_string())))
    }

    /// A command of the shell.
    pub fn shell(command: &str, folder: &Path) -> Self {
        Self::of("sh", folder).args(["-c", command])
    }

    /// This program, for this home, with every variable of this process.
    pub fn crew(home: &Home, folder: &Path) -> io::Result<Self> {
        Ok(Self::with_all(env::program_path()?, folder).envs([("CREW_HOME", home.root())]))
    }

    fn with_all(program: impl AsRef<OsStr>, folder: &Path) -> Self {
        let mut command = Command::new(program);
        command.current_dir(folder);
        let capture = Capture::ForReading;
        Self { command, input: None, within: None, notes: None, capture, each: None }
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets variables of its environment.
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.command.envs(variables);
        self
    }

    /// Removes variables of this process from its environment.
    pub fn without(mut self, names: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        for name in names {
            self.command.env_remove(name);
        }
        self
    }

    /// Removes every variable of its environment, as the client does for a hook.
    pub fn without_environment(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// Sets the bytes that are written to its standard input, which is then closed. The child does
    /// not have to read them.
    pub fn input(mut self, input: &'a [u8]) -> Self {
        self.input = Some(input);
        self
    }

    /// Sets the longest time it may run.
    pub fn within(self, most: impl Into<Option<Duration>>) -> Self {
        Self { within: most.into(), ..self }
    }

    /// Sets the folder where the leader of its group is recorded, for a crew that follows after
    /// this one was killed.
    pub fn noted(self, folder: PathBuf) -> Self {
        Self { notes: Some(folder), ..self }
    }

    /// Sets the part of its output to keep.
    pub fn keep(self, capture: Capture) -> Self {
        Self { capture, ..self }
    }

    /// Passes on every line of its output, even those that are not kept: without the line break,
    /// truncated at 64 KiB.
    pub fn each_line(self, each: EachLine<'a>) -> Self {
        Self { each: Some(each), ..self }
    }

    /// Runs it until it exits, or until `stop`, which is called repeatedly, ends it.
    pub fn run(mut self, stop: impl Fn() -> bool) -> io::Result<FinishedProcess> {
        let mut caller = Caller { each: self.each.take(), stop };
        let lines = caller.each.as_ref().map(|_| LineCutter::new(LINE_BYTES));
        let feed = Feed::new(self.capture, &mut caller).lines(lines, None);
        let watch = Stopwatch::start();
        let mut running = Running::start(self, feed)?;
        running.look = LOOK;
        running.stop_grace = SHORT_GRACE;
        let cause = running.wait(None);
        running.finish_group();
        let elapsed_ms = watch.elapsed_ms();
        running.drain_output(LINGER);
        let ([output, errors], _) = running.feed.end();
        let (output, cut) = output.take();
        Ok(FinishedProcess { cause: cause?, elapsed_ms, output, errors: errors.take_tail(), cut })
    }

    /// Runs an agent until it exits. A line of its standard output is truncated after 1 MiB, or
    /// after 8 MiB if it begins with `{` and is UTF-8; a line of standard error after 64 KiB.
    /// `idle` is the longest silence on both streams while no tool call is open. All its output is
    /// appended to `log`, which is bounded (see `logs`). An error means that it could not be
    /// started or, very rarely, could not be ended.
    pub fn run_watched(
        self,
        idle: Option<Duration>,
        log: &Path,
        watch: &mut dyn Watch,
    ) -> io::Result<FinishedAgent> {
        let events = LineCutter::with_events(AGENT_LINE_BYTES, EVENT_BYTES);
        let feed = Feed::new(Capture::Apart, watch)
            .lines(Some(events), Some(LineCutter::new(LINE_BYTES)))
            .log(Log::open(log));
        let mut running = Running::start(self.keep(Capture::Apart), feed)?;
        running.linger = fault::wait_time("CREW_LINGER_MS", CLOSED);
        let cause = running.wait(idle);
        let ran = running.time.look();
        let closed_early = running.closed_early();
        if matches!(cause, Ok(ExitCause::Exit(_) | ExitCause::Signal(_))) {
            running.drain_output(AGENT_LINGER);
        }
        let left_behind = if descendants::are_adopted() {
            descendants::end_all()
        } else {
            running.finish_group();
            Vec::new()
        };
        running.empty_pipes();
        let missed = running.time.missed_time();
        let ([_, errors], log_error) = running.feed.end();
        Ok(FinishedAgent {
            cause: cause?,
            ran_ms: whole_milliseconds(ran),
            missed_ms: whole_milliseconds(missed),
            errors: String::from_utf8_lossy(&errors.take_tail()).into_owned(),
            closed_early,
            log_error,
            left_behind,
        })
    }

    /// Starts it in a session that no hangup of this terminal reaches, so that it outlives this
    /// process. Its output is appended to the file `output`, readable by this user only. Returns
    /// its identity. The child is not reaped, so even one that ended at once has an identity.
    pub fn detach(mut self, output: &Path) -> io::Result<ProcessIdentity> {
        let output = disk::open_to_append(output)?;
        self.command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        groups::leave_the_terminal(&mut self.command);
        let child = descendants::detach_child(&mut self.command)?;
        let identity = identity::identify_process(child.id().cast_signed());
        identity.ok_or_else(|| io::Error::other("it was started but has already disappeared"))
    }

    /// Starts it in a separate session, on these pipes, unwatched.
    pub fn spawn(mut self, input: PipeReader, output: PipeWriter) -> io::Result<Child> {
        self.command.stdin(input).stdout(output).stderr(Stdio::null());
        groups::leave_the_terminal(&mut self.command);
        self.command.spawn()
    }

    /// Shows `text` in a pager on this process's terminal, with git's options for `less`; `false`
    /// if the program is missing. The pager stays in crew's group, because otherwise it could not
    /// read keys. A person ends it, not a deadline.
    pub fn show_in_pager(mut self, text: &[u8]) -> io::Result<bool> {
        self.command.env("LESS", env::text("LESS").unwrap_or_else(|| "FRX".to_owned()));
        let mut child = self.command.stdin(Stdio::piped()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // A pager that was quit early stops reading.
            let _ = input.write_all(text);
        }
        Ok(!matches!(child.wait()?.code(), Some(126 | 127)))
    }

    /// The signal for a child when crew is killed: a git process gets TERM, so that it removes its
    /// locks.
    fn death_signal(&self) -> Signal {
        if self.command.get_program() == "git" { Signal::TERM } else { Signal::KILL }
    }
}

/// Watches a child for the caller of [`Call::run`].
struct Caller<'a, F> {
    each: Option<EachLine<'a>>,
    stop: F,
}

impl<F: Fn() -> bool> Watch for Caller<'_, F> {
    fn line(&mut self, _: Stream, line: &str) {
        if let Some(each) = &mut self.each {
            each(line);
        }
    }

    fn stop(&mut self) -> Option<StopRequest> {
        (self.stop)().then_some(StopRequest::Now)
    }
}

fn whole_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The standard output of a short-lived system program; `None` unless it exits with 0.
#[cfg(not(target_os = "linux"))]
pub fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let call = Call::of(program, Path::new("/")).args(arguments).keep(Capture::ForParsing);
    let ended = call.within(Duration::from_secs(2)).run(|| false).ok()?;
    if ended.cause == ExitCause::Exit(0) { Some(ended.text()) } else { None }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "agent_tests.rs"]
mod agent_tests;
