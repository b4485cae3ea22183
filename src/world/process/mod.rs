//! Starts a child in a session of its own, waits with a deadline, keeps a bounded part of what it printed,
//! and leaves nothing of it behind. Says how it ended, never what to think of that.
#![expect(clippy::disallowed_methods, reason = "this is the one door to processes")]

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub mod agent;
#[cfg(test)]
pub mod alone;
pub mod awake;
pub mod children;
pub mod descendants;
pub mod detach;
mod feed;
pub mod groups;
pub mod identity;
mod lines;
mod output;
mod pipes;
mod runner;
pub mod signals;
pub mod spawn;
#[cfg(target_os = "linux")]
pub mod table;

pub use self::feed::Watch;
use self::output::{BoundedOutput, OutputBounds};
use self::pipes::Stream;
pub use self::runner::StopRequest;
use self::runner::{Running, Streams, Supervisor};
use super::clock::Stopwatch;
use crate::clients::variables;

/// Between two looks at a child.
const LOOK: Duration = Duration::from_millis(20);
/// From TERM to KILL when somebody waits at the keyboard.
const SHORT_GRACE: Duration = Duration::from_millis(1500);
/// How long what a child left behind in another group may keep its output open.
const LINGER: Duration = Duration::from_secs(1);

/// What to start.
#[derive(Debug)]
pub struct ProcessSpec<'a> {
    pub program: &'a str,
    pub arguments: &'a [&'a str],
    pub folder: &'a Path,
    /// Variables of this process's that the child is not given, beside those of a client's own.
    pub without: &'a [OsString],
    /// Added to the child's environment.
    pub variables: &'a [(&'a str, String)],
    /// Written to its standard input, which is then closed; a child need not read it. Without one there is
    /// nothing to read.
    pub input: Option<&'a [u8]>,
    /// The longest it may take.
    pub within: Option<Duration>,
}

/// What of a child's output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// For a person or an agent: the beginning and, more of it, the end, errors in order with the rest.
    ForReading,
    /// Standard output, from its beginning.
    ForParsing,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCause {
    Exit(i32),
    /// By a signal crew did not send.
    Signal(i32),
    /// Ended by crew at its deadline.
    TimedOut,
    /// Ended by crew because it printed nothing for too long.
    Idle,
    /// Ended by crew because it had said that it is over, and was still there.
    Lingered,
    /// Ended by crew because it was asked to.
    Stopped,
}

/// A child that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedProcess {
    pub cause: ExitCause,
    pub elapsed_ms: u64,
    /// What it printed, bounded.
    pub output: Vec<u8>,
    /// Whether something in the middle of the output was left out.
    pub cut: bool,
}

/// Runs a child to its end. `note` is told who leads its group; `stop` is asked now and then.
pub fn run(
    spec: &ProcessSpec<'_>,
    capture: Capture,
    note: Option<&File>,
    stop: impl Fn() -> bool,
) -> io::Result<FinishedProcess> {
    finish(in_a_session(spec.program, note)?, spec, capture, note, stop)
}

/// Runs a child the way the client runs a hook: nothing of this process's environment is passed on.
pub fn run_apart(spec: &ProcessSpec<'_>, stop: impl Fn() -> bool) -> io::Result<FinishedProcess> {
    let mut command = Command::new(spec.program);
    command.env_clear();
    spawn::lead_a_session(&mut command, None);
    finish(command, spec, Capture::ForReading, None, stop)
}

/// A child in a session of its own that knows nothing of a client's session around crew.
fn in_a_session(program: &str, note: Option<&File>) -> io::Result<Command> {
    let mut command = Command::new(program);
    for name in variables::own() {
        command.env_remove(name);
    }
    spawn::lead_a_session(&mut command, note.map(File::try_clone).transpose()?);
    Ok(command)
}

fn finish(
    command: Command,
    spec: &ProcessSpec<'_>,
    capture: Capture,
    note: Option<&File>,
    stop: impl Fn() -> bool,
) -> io::Result<FinishedProcess> {
    let (streams, bounds) = match capture {
        Capture::ForReading => (Streams::Joined, OutputBounds { head: 16 << 10, tail: 48 << 10 }),
        Capture::ForParsing => (Streams::OutAlone, OutputBounds { head: 32 << 20, tail: 0 }),
    };
    let mut collector = Collector { output: BoundedOutput::new(bounds), stop };
    let watch = Stopwatch::start();
    let mut running = Running::start(command, spec, streams, note, &mut collector)?;
    running.look = LOOK;
    running.stop_grace = SHORT_GRACE;
    let cause = running.wait(spec.within, None);
    running.finish_group();
    let elapsed_ms = watch.elapsed_ms();
    running.drain(LINGER);
    let (output, cut) = collector.output.take();
    Ok(FinishedProcess { cause: cause?, elapsed_ms, output, cut })
}

/// Keeps the output of a child that runs until it ends or `stop` says so.
struct Collector<F> {
    output: BoundedOutput,
    stop: F,
}

impl<F: Fn() -> bool> Supervisor for Collector<F> {
    fn take(&mut self, _: Stream, bytes: &[u8]) {
        self.output.add(bytes);
    }

    fn stop(&mut self) -> Option<StopRequest> {
        (self.stop)().then_some(StopRequest::Now)
    }
}

/// The standard output of a short-lived program of the system; `None` unless it exits with 0.
#[cfg(not(target_os = "linux"))]
pub fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let spec = ProcessSpec {
        program,
        arguments,
        folder: Path::new("/"),
        without: &[],
        variables: &[],
        input: None,
        within: Some(Duration::from_secs(2)),
    };
    let ended = run(&spec, Capture::ForParsing, None, || false).ok()?;
    (ended.cause == ExitCause::Exit(0)).then(|| String::from_utf8_lossy(&ended.output).into_owned())
}
