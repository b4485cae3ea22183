//! Starts a child in a separate session, waits with a deadline, keeps a bounded part of its output,
//! and leaves none of its processes behind. It reports how the child ended and never judges that.
#![expect(clippy::disallowed_methods, reason = "this is the one door to processes")]

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

pub mod agent;
pub mod awake;
pub mod children;
pub mod descendants;
pub mod detach;
mod feed;
pub mod groups;
pub mod identity;
pub mod lines;
mod output;
#[cfg(test)]
pub mod own_process;
mod pipes;
mod runner;
pub mod signals;
pub mod spawn;
pub mod table;

pub use self::feed::Watch;
use self::lines::{LineCutter, LinePiece, text_of};
use self::output::{BoundedOutput, OutputBounds};
pub use self::pipes::Stream;
pub use self::runner::StopRequest;
use self::runner::{Running, Streams, Supervisor};
use super::clock::Stopwatch;
use super::env;
use crate::clients::variables;

/// Between two looks at a child.
const LOOK: Duration = Duration::from_millis(20);
/// From TERM to KILL when a person waits for it.
const SHORT_GRACE: Duration = Duration::from_millis(1500);
/// How long processes that a child left behind in another group may keep its output open.
const LINGER: Duration = Duration::from_secs(1);

/// The longest line that is passed on; the rest of a longer one is dropped.
const LINE_BYTES: usize = 64 << 10;

/// What to start.
#[derive(Debug)]
pub struct ProcessSpec<'a> {
    pub program: &'a str,
    pub arguments: &'a [&'a str],
    pub folder: &'a Path,
    /// Variables of this process that the child does not get, in addition to a client's own.
    pub without: &'a [OsString],
    /// Added to the child's environment.
    pub variables: &'a [(&'a str, String)],
    /// Written to its standard input, which is then closed; a child does not have to read it.
    /// `None` is an empty input.
    pub input: Option<&'a [u8]>,
    /// The longest it may run.
    pub within: Option<Duration>,
}

impl<'a> ProcessSpec<'a> {
    /// A child with this process's environment, no input and no deadline.
    pub fn of(program: &'a str, arguments: &'a [&'a str], folder: &'a Path) -> Self {
        Self { program, arguments, folder, without: &[], variables: &[], input: None, within: None }
    }
}

/// Asked again and again while something runs: whether it is to end early.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// Receives the lines of a child's output.
pub type EachLine<'a> = &'a mut dyn FnMut(&str);

/// Which part of a child's output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// For a person or an agent: the beginning and a longer end, both streams in order.
    ForReading,
    /// Standard output from its beginning.
    ForParsing,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCause {
    Exit(i32),
    /// A signal that crew did not send.
    Signal(i32),
    /// crew ended it at its deadline.
    TimedOut,
    /// crew ended it because it printed nothing for too long.
    Idle,
    /// crew ended it because it had reported its end and was still there.
    Lingered,
    /// crew ended it because it was asked to.
    Stopped,
}

impl fmt::Display for ExitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::TimedOut => f.write_str("it took too long"),
            Self::Idle => f.write_str("it printed nothing for too long"),
            Self::Lingered => f.write_str("it did not exit"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// A child that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedProcess {
    pub cause: ExitCause,
    pub elapsed_ms: u64,
    /// Its output, bounded.
    pub output: Vec<u8>,
    /// Whether part of the output was left out.
    pub cut: bool,
}

impl FinishedProcess {
    /// The output as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }
}

/// Runs a child to its end. The id of its group's leader is written to `note`; `stop` is called
/// repeatedly.
pub fn run(
    spec: &ProcessSpec<'_>,
    capture: Capture,
    note: Option<&File>,
    stop: impl Fn() -> bool,
) -> io::Result<FinishedProcess> {
    finish(in_a_session(spec.program, note)?, spec, capture, note, stop, None)
}

/// Runs a child to its end, as `run` does for reading, and passes on every line of its output, also
/// those that are not kept: without the break, cut at [`LINE_BYTES`].
pub fn run_by_lines(
    spec: &ProcessSpec<'_>,
    note: Option<&File>,
    stop: impl Fn() -> bool,
    each: EachLine<'_>,
) -> io::Result<FinishedProcess> {
    let command = in_a_session(spec.program, note)?;
    finish(command, spec, Capture::ForReading, note, stop, Some(each))
}

/// Runs a child the way the client runs a hook: without this process's environment.
pub fn run_apart(spec: &ProcessSpec<'_>, stop: impl Fn() -> bool) -> io::Result<FinishedProcess> {
    let mut command = Command::new(spec.program);
    command.env_clear();
    spawn::lead_a_session(&mut command, None, Signal::KILL);
    finish(command, spec, Capture::ForReading, None, stop, None)
}

/// Shows a text by a person's pager, on this terminal and with the options that git gives `less`;
/// `false` if there is no such program. It stays in crew's own group, or it could not read keys,
/// and a person ends it, not a deadline.
pub fn show_by_pager(pager: &str, text: &[u8]) -> io::Result<bool> {
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    command.env("LESS", env::text("LESS").unwrap_or_else(|| "FRX".to_owned()));
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // One that was left early reads no more.
        let _ = input.write_all(text);
    }
    Ok(!matches!(child.wait()?.code(), Some(126 | 127)))
}

/// A child in a separate session, without the variables of a client's session or of a git around
/// crew. When crew is killed it dies too; a git is asked to end, so that it removes its locks.
fn in_a_session(program: &str, note: Option<&File>) -> io::Result<Command> {
    let mut command = Command::new(program);
    for name in variables::own() {
        command.env_remove(name);
    }
    let at_crews_death = if program == "git" { Signal::TERM } else { Signal::KILL };
    spawn::lead_a_session(&mut command, note.map(File::try_clone).transpose()?, at_crews_death);
    Ok(command)
}

fn finish(
    command: Command,
    spec: &ProcessSpec<'_>,
    capture: Capture,
    note: Option<&File>,
    stop: impl Fn() -> bool,
    each: Option<EachLine<'_>>,
) -> io::Result<FinishedProcess> {
    let (streams, bounds) = match capture {
        Capture::ForReading => (Streams::Joined, OutputBounds { head: 16 << 10, tail: 48 << 10 }),
        Capture::ForParsing => (Streams::OutAlone, OutputBounds { head: 32 << 20, tail: 0 }),
    };
    let lines = each.map(|each| (LineCutter::new(LINE_BYTES), each));
    let mut collector = Collector { output: BoundedOutput::new(bounds), lines, stop };
    let watch = Stopwatch::start();
    let mut running = Running::start(command, spec, streams, note, &mut collector)?;
    running.look = LOOK;
    running.stop_grace = SHORT_GRACE;
    let cause = running.wait(spec.within, None);
    running.finish_group();
    let elapsed_ms = watch.elapsed_ms();
    running.drain(LINGER);
    if let Some((cutter, each)) = collector.lines
        && let Some(line) = cutter.end()
    {
        each(&text_of(&line, LINE_BYTES));
    }
    let (output, cut) = collector.output.take();
    Ok(FinishedProcess { cause: cause?, elapsed_ms, output, cut })
}

/// Collects the output of a child that runs until it ends or `stop` returns true.
struct Collector<'a, F> {
    output: BoundedOutput,
    lines: Option<(LineCutter, EachLine<'a>)>,
    stop: F,
}

impl<F: Fn() -> bool> Supervisor for Collector<'_, F> {
    fn take(&mut self, _: Stream, bytes: &[u8]) {
        self.output.add(bytes);
        if let Some((cutter, each)) = &mut self.lines {
            cutter.feed(bytes, |piece| {
                if let LinePiece::Line(line) = piece {
                    each(&text_of(line, LINE_BYTES));
                }
            });
        }
    }

    fn stop(&mut self) -> Option<StopRequest> {
        (self.stop)().then_some(StopRequest::Now)
    }
}

/// The standard output of a short-lived system program; `None` unless it exits with 0.
#[cfg(not(target_os = "linux"))]
pub fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let spec = ProcessSpec {
        within: Some(Duration::from_secs(2)),
        ..ProcessSpec::of(program, arguments, Path::new("/"))
    };
    let ended = run(&spec, Capture::ForParsing, None, || false).ok()?;
    (ended.cause == ExitCause::Exit(0)).then(|| ended.text())
}
