//! Runs one agent to its end: hands it its prompt, its output on, watches its time and its silence, and
//! leaves no process of it behind. Says how it ended, never what to think of that.
//!
//! **Time** is what this process watched. The machine's sleep does not count; nor, beyond a second, does a gap
//! in which crew itself did not run: `SIGSTOP` of crew and the agent for a minute takes one second from a
//! timeout, and so does Ctrl-Z of crew alone. An agent stopped alone is watched, and times out; with TERM it is
//! also woken, so that it can end in order.
//!
//! **Threads**: on Linux a child dies with the *thread* that started it, so `run` is called from the main one.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use super::feed::Feed;
use super::pipes::{Pipes, Stream};
use super::{GRACE, finish_group, in_a_session};
use crate::world::clock::{Deadline, Watched};
use crate::world::descendants;
use crate::world::fault;
use crate::world::unix::{self, GroupSignal};

/// The longest time between two looks at everything.
const LOOK: Duration = Duration::from_millis(40);
/// The first wait for an agent whose pipes are closed; it mostly exits at once.
const BRIEFLY: Duration = Duration::from_micros(500);
/// How long what an agent left behind may keep its pipes open after its exit.
const LINGER: Duration = Duration::from_millis(500);
/// How long an agent that has said that it is over may stay, silent.
pub const CLOSED: Duration = Duration::from_secs(30);
/// An end of standard output so shortly before the exit is the exit's.
const WITH_THE_EXIT: Duration = Duration::from_millis(250);
/// The longest wait for a killed process; only a broken disk keeps one longer.
const KILLED: Duration = Duration::from_secs(10);
/// The most pages read of a closed agent's pipes: more than the system keeps in one.
const LAST_PAGES: usize = 64;
/// Between two looks for orphans that have ended.
const REAP: Duration = Duration::from_secs(5);

/// What to start.
#[derive(Debug)]
pub struct AgentOrder<'a> {
    pub program: &'a str,
    pub arguments: &'a [String],
    pub folder: &'a Path,
    /// Added to the agent's environment: this process's, less what makes a nested session.
    pub variables: &'a [(&'a str, String)],
    /// Written to its standard input, which is then closed. An agent need not read it.
    pub input: &'a [u8],
    /// The longest it may take.
    pub timeout: Option<Duration>,
    /// The longest it may print nothing while no tool call is open, on both streams.
    pub idle: Option<Duration>,
    /// Gets all it prints, bounded (see `world/logs`). One that is there is added to.
    pub log: &'a Path,
}

/// Whoever looks on. Nothing it does is held against the agent's time, and while it is busy the agent waits.
pub trait Watch {
    /// A line of standard output without its break. One of more than 8 MiB is cut, its rest dropped.
    fn line(&mut self, line: &str);

    /// The same of standard error, cut at 64 KiB.
    fn error_line(&mut self, line: &str);

    /// Whether a tool call of the agent's is open: then silence is work.
    fn tool_is_open(&self) -> bool;

    /// Whether it has said that it is over, and told of nothing it will come back for.
    fn is_closed(&self) -> bool;

    /// Whether the agent must end. Asked at least every 50 ms, also while it is ending.
    fn stop(&mut self) -> Option<Stop>;
}

/// How an agent must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// In order: TERM, 5 s, KILL.
    Now,
    /// At once.
    Kill,
}

/// How an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEnd {
    Exit(i32),
    /// By a signal crew did not send.
    Signal(i32),
    /// Ended by crew at its timeout.
    TimedOut,
    /// Ended by crew because it printed nothing for too long.
    Idle,
    /// Ended by crew because it had said that it is over, and was still there.
    Lingered,
    /// Ended by crew because [`Watch::stop`] said so.
    Stopped,
}

/// An agent that is over.
#[derive(Debug)]
pub struct AgentEnded {
    pub end: AgentEnd,
    /// Milliseconds in which crew itself was stopped or kept waiting: what it did not watch counts for nobody.
    pub missed_ms: u64,
    /// The last 64 KiB of standard error.
    pub errors: String,
    /// Whether it closed its standard output and ran on: its last words may be missing.
    pub closed_early: bool,
    /// Why the log is not whole. The agent was not stopped for that.
    pub log_error: Option<io::Error>,
    /// Processes it started that could not be ended, by id.
    pub left_behind: Vec<i32>,
}

/// Runs an agent to its end. `note` is told who leads its group. An error means that it could not be started,
/// or, very unlikely, not be ended.
pub fn run(
    order: &AgentOrder<'_>,
    note: Option<&File>,
    watch: &mut dyn Watch,
) -> io::Result<AgentEnded> {
    // Before it is there: it may stop crew with its first breath.
    let time = Watched::start();
    let (child, pipes) = start(order, note)?;
    let group = child.id().cast_signed();
    let mut running = Running {
        child,
        group,
        pipes,
        feed: Feed::new(order.log),
        time,
        last_output: Duration::ZERO,
        linger: fault::linger(CLOSED),
        out_closed: None,
        asked: None,
        reaped: Duration::ZERO,
    };
    let end = running.wait(order, watch);
    let elapsed = running.time.look();
    let closed_early =
        running.out_closed.is_some_and(|at| elapsed.saturating_sub(at) > WITH_THE_EXIT);
    if matches!(end, Ok(AgentEnd::Exit(_) | AgentEnd::Signal(_))) {
        running.linger(watch);
    }
    let left_behind = if descendants::are_adopted() {
        descendants::end_all()
    } else {
        finish_group(group);
        Vec::new()
    };
    running.empty(watch);
    let (errors, log_error) = running.feed.end(watch);
    Ok(AgentEnded {
        end: end?,
        missed_ms: u64::try_from(running.time.missed().as_millis()).unwrap_or(u64::MAX),
        errors: String::from_utf8_lossy(&errors).into_owned(),
        closed_early,
        log_error,
        left_behind,
    })
}

fn start<'a>(order: &AgentOrder<'a>, note: Option<&File>) -> io::Result<(Child, Pipes<'a>)> {
    let (stdin, input) = io::pipe()?;
    let (out, stdout) = io::pipe()?;
    let (errors, stderr) = io::pipe()?;
    let pipes = Pipes::new(input, order.input, out, errors)?;
    let mut command = in_a_session(order.program, note)?;
    command.args(order.arguments).current_dir(order.folder);
    command.envs(order.variables.iter().map(|(name, value)| (name, value)));
    let child = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn()?;
    if let Some(note) = note {
        unix::note_leader(note, child.id().cast_signed());
    }
    // The command, dropped here, holds the agent's ends; while it lives no pipe would seem closed.
    Ok((child, pipes))
}

/// An agent at work.
struct Running<'a> {
    child: Child,
    group: i32,
    pipes: Pipes<'a>,
    feed: Feed,
    time: Watched,
    /// When it last printed something, in watched time.
    last_output: Duration,
    /// How long it may be silent once it is closed.
    linger: Duration,
    /// When its standard output was closed, if crew was not ending it.
    out_closed: Option<Duration>,
    /// When `stop` was last asked.
    asked: Option<Duration>,
    /// When orphans were last looked for.
    reaped: Duration,
}

impl Running<'_> {
    /// Until the agent is gone.
    fn wait(&mut self, order: &AgentOrder<'_>, watch: &mut dyn Watch) -> io::Result<AgentEnd> {
        let mut ending: Option<(AgentEnd, Deadline)> = None;
        let mut step = LOOK;
        loop {
            let was_open = !self.pipes.are_closed();
            self.pump(step, watch);
            step = match (was_open, self.pipes.are_closed()) {
                (_, false) => LOOK,
                (true, true) => BRIEFLY,
                (false, true) => (step * 2).min(LOOK),
            };
            if let Some(status) = self.child.try_wait()? {
                return Ok(ending.map_or_else(|| end_of(status), |(end, _)| end));
            }
            let now = self.time.look();
            self.look_around(now, ending.is_none());
            match (self.asks_to_stop(now, watch), ending) {
                (Some(Stop::Kill), _) => {
                    self.kill()?;
                    return Ok(ending.map_or(AgentEnd::Stopped, |(end, _)| end));
                }
                (_, Some((end, deadline))) if deadline.passed() => {
                    self.kill()?;
                    return Ok(end);
                }
                (_, Some(_)) => {}
                (stop, None) => {
                    let over = stop.map(|_| AgentEnd::Stopped);
                    if let Some(end) = over.or_else(|| self.is_over(order, now, watch)) {
                        unix::signal_group(self.group, GroupSignal::Term);
                        ending = Some((end, Deadline::after(fault::grace(GRACE))));
                    }
                }
            }
        }
    }

    /// Hands on what comes within `wait`.
    fn pump(&mut self, wait: Duration, watch: &mut dyn Watch) -> bool {
        let feed = &mut self.feed;
        let came = self.pipes.pump(wait, |stream, bytes| feed.take(stream, bytes, watch));
        feed.flush();
        if came {
            self.last_output = self.time.look();
        }
        came
    }

    /// Notes when standard output was closed, and reaps orphans that ended meanwhile.
    fn look_around(&mut self, now: Duration, is_free: bool) {
        if is_free && self.out_closed.is_none() && !self.pipes.is_open(Stream::Out) {
            self.out_closed = Some(now);
        }
        if now.saturating_sub(self.reaped) >= REAP {
            self.reaped = now;
            descendants::reap(self.group);
        }
    }

    /// What `stop` says, which may look at the disk and is not asked for every page of a flood.
    fn asks_to_stop(&mut self, now: Duration, watch: &mut dyn Watch) -> Option<Stop> {
        if self.asked.is_some_and(|asked| now.saturating_sub(asked) < LOOK / 2) {
            return None;
        }
        self.asked = Some(now);
        watch.stop()
    }

    /// Whether its time is up.
    fn is_over(
        &mut self,
        order: &AgentOrder<'_>,
        now: Duration,
        watch: &dyn Watch,
    ) -> Option<AgentEnd> {
        if order.timeout.is_some_and(|timeout| now >= timeout) {
            return Some(AgentEnd::TimedOut);
        }
        if watch.tool_is_open() {
            self.last_output = now;
        }
        let silent = now.saturating_sub(self.last_output);
        if silent >= self.linger && watch.is_closed() {
            return Some(AgentEnd::Lingered);
        }
        order.idle.is_some_and(|idle| silent >= idle).then_some(AgentEnd::Idle)
    }

    fn kill(&mut self) -> io::Result<()> {
        unix::signal_group(self.group, GroupSignal::Kill);
        // An agent may have left its group; until it is reaped its id is its own.
        self.child.kill()?;
        let gone = Deadline::after(KILLED)
            .poll(Duration::from_millis(1), || self.child.try_wait().transpose());
        gone.unwrap_or_else(|| {
            let complaint = format!("process {} does not end, not even killed", self.group);
            Err(io::Error::new(io::ErrorKind::TimedOut, complaint))
        })
        .map(drop)
    }

    /// The agent is gone; what it left behind may print on for a moment.
    fn linger(&mut self, watch: &mut dyn Watch) {
        let deadline = Deadline::after(LINGER);
        while !self.pipes.are_closed() && !deadline.passed() {
            self.pump(deadline.left().min(LOOK), watch);
        }
    }

    /// Reads what is left in the pipes.
    fn empty(&mut self, watch: &mut dyn Watch) {
        for _ in 0..LAST_PAGES {
            if !self.pump(Duration::ZERO, watch) {
                break;
            }
        }
    }
}

fn end_of(status: ExitStatus) -> AgentEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => AgentEnd::Exit(code),
        (None, signal) => AgentEnd::Signal(signal.unwrap_or(0)),
    }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
