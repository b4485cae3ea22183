//! Starts a child in a session of its own, waits with a deadline, keeps a bounded part of what it printed,
//! and leaves nothing of it behind. Says how it ended, never what to think of that.
#![expect(clippy::disallowed_methods, reason = "this is the one door to processes")]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

pub mod agent;
#[cfg(test)]
pub mod alone;
mod feed;
mod kept;
mod lines;
mod pipes;

use self::kept::Reading;
use super::clock::{Deadline, Stopwatch};
use super::fault;
use super::unix::{self, GroupSignal};
use crate::engine::environment::CLIENTS_OWN;

/// How much of a child's output is kept, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    pub head: usize,
    pub tail: usize,
}

/// What a person or an agent reads of a check: its beginning and, more of it, its end.
pub const FOR_READING: Keep = Keep { head: 16 << 10, tail: 48 << 10 };
/// What is parsed: from its beginning, or not at all.
pub const FOR_PARSING: Keep = Keep { head: 32 << 20, tail: 0 };

/// From TERM to KILL.
const GRACE: Duration = Duration::from_secs(5);
/// From TERM to KILL when somebody waits at the keyboard.
const SHORT_GRACE: Duration = Duration::from_millis(1500);
/// What to start.
#[derive(Debug)]
pub struct Order<'a> {
    pub program: &'a str,
    pub arguments: &'a [&'a str],
    pub folder: &'a Path,
    /// Variables of this process's that the child is not given, beside those of a client's own.
    pub without: &'a [OsString],
    /// Added to the child's environment.
    pub variables: &'a [(&'a str, String)],
    pub within: Duration,
    pub keep: Keep,
    /// Whether standard error is kept too, in order with the rest.
    pub with_errors: bool,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    /// By a signal crew did not send.
    ForeignSignal,
    /// Ended by crew at its deadline.
    TimedOut,
    /// Ended by crew because `stop` said so.
    Stopped,
}

/// A child that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub end: End,
    pub elapsed_ms: u64,
    /// What it printed, bounded.
    pub output: Vec<u8>,
    /// Whether something in the middle of the output was left out.
    pub cut: bool,
}

/// Runs a child to its end. `note` is told who leads its group; `stop` is asked now and then.
pub fn run(order: &Order<'_>, note: Option<&File>, stop: impl Fn() -> bool) -> io::Result<Ended> {
    run_on(Stdio::null(), order, note, stop)
}

/// As `run`, with `input` to read.
pub fn run_fed(
    order: &Order<'_>,
    input: &[u8],
    note: Option<&File>,
    stop: impl Fn() -> bool,
) -> io::Result<Ended> {
    run_on(fed(input)?, order, note, stop)
}

fn run_on(
    input: Stdio,
    order: &Order<'_>,
    note: Option<&File>,
    stop: impl Fn() -> bool,
) -> io::Result<Ended> {
    let mut command = in_a_session(order.program, note)?;
    command.stdin(input);
    finish(command, order, note, stop)
}

/// A child in a session of its own that knows nothing of a client's session around crew.
fn in_a_session(program: &str, note: Option<&File>) -> io::Result<Command> {
    let mut command = Command::new(program);
    for name in CLIENTS_OWN {
        command.env_remove(name);
    }
    unix::lead_a_session(&mut command, note.map(File::try_clone).transpose()?);
    Ok(command)
}

/// Runs a child the way the client runs a hook, with `input` to read: nothing of this process's environment
/// is passed on.
pub fn run_apart(order: &Order<'_>, input: &[u8], stop: impl Fn() -> bool) -> io::Result<Ended> {
    let mut command = Command::new(order.program);
    command.env_clear().stdin(fed(input)?);
    unix::lead_a_session(&mut command, None);
    finish(command, order, None, stop)
}

/// A pipe that gives `input` and ends.
fn fed(input: &[u8]) -> io::Result<Stdio> {
    let (reader, mut writer) = io::pipe()?;
    let input = input.to_vec();
    // On a thread: a child that reads late must not keep us from our deadline.
    thread::spawn(move || writer.write_all(&input));
    Ok(reader.into())
}

fn finish(
    mut command: Command,
    order: &Order<'_>,
    note: Option<&File>,
    stop: impl Fn() -> bool,
) -> io::Result<Ended> {
    let (reader, writer) = io::pipe()?;
    command.args(order.arguments).current_dir(order.folder);
    for name in order.without {
        command.env_remove(name);
    }
    command.envs(order.variables.iter().map(|(name, value)| (name, value)));
    if order.with_errors {
        command.stderr(writer.try_clone()?);
    } else {
        command.stderr(Stdio::null());
    }
    command.stdout(writer);
    let watch = Stopwatch::start();
    let mut child = command.spawn()?;
    // The command holds the pipe's writing end; while it lives the reader sees no end.
    drop(command);
    let group = child.id().cast_signed();
    if let Some(note) = note {
        unix::note_leader(note, group);
    }
    let reading = Reading::start(reader, order.keep);
    let end = wait(&mut child, group, &reading, Deadline::after(order.within), &stop);
    finish_group(group);
    let elapsed_ms = watch.elapsed_ms();
    reading.ends_within(Duration::from_secs(1));
    let (output, cut) = reading.take();
    Ok(Ended { end: end?, elapsed_ms, output, cut })
}

/// The standard output of a short-lived program of the system; `None` unless it exits with 0.
#[cfg(not(target_os = "linux"))]
pub fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let order = Order {
        program,
        arguments,
        folder: Path::new("/"),
        without: &[],
        variables: &[],
        within: Duration::from_secs(2),
        keep: FOR_PARSING,
        with_errors: false,
    };
    let ended = run(&order, None, || false).ok()?;
    (ended.end == End::Exit(0)).then(|| String::from_utf8_lossy(&ended.output).into_owned())
}

fn wait(
    child: &mut Child,
    group: i32,
    reading: &Reading,
    deadline: Deadline,
    stop: &dyn Fn() -> bool,
) -> io::Result<End> {
    // Most children end with their output. One that closed it early is looked at in steps that grow.
    let mut step = Duration::from_millis(20);
    let mut is_silent = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(end_of(status));
        }
        let (end, grace) = if stop() {
            (End::Stopped, SHORT_GRACE)
        } else if deadline.passed() {
            (End::TimedOut, fault::grace(GRACE))
        } else {
            let step_now = step.min(deadline.left());
            if is_silent {
                super::clock::sleep(step_now);
                step = (step + step / 4).min(Duration::from_millis(20));
            } else if reading.ends_within(step_now) {
                is_silent = true;
                step = Duration::from_micros(100);
            }
            continue;
        };
        unix::signal_group(group, GroupSignal::Term);
        let ended = Deadline::after(grace).poll(step, || child.try_wait().ok().flatten());
        if ended.is_none() {
            unix::signal_group(group, GroupSignal::Kill);
            child.wait()?;
        }
        return Ok(end);
    }
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exit(code),
        _ => End::ForeignSignal,
    }
}

/// Ends what the child left running in its group.
fn finish_group(group: i32) {
    if unix::group_lives(group) {
        unix::signal_group(group, GroupSignal::Term);
        let gone =
            Deadline::after(Duration::from_millis(500)).poll(Duration::from_millis(5), || {
                // Where crew adopts orphans, one that ended keeps its group alive until it is reaped.
                unix::reap_group(group);
                (!unix::group_lives(group)).then_some(())
            });
        if gone.is_none() {
            unix::signal_group(group, GroupSignal::Kill);
        }
    }
}
