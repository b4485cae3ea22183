//! Watches one child until it is gone: feeds it, hands its output on, asks whether it must end, and ends it
//! in order: TERM, a grace, KILL. Knows nothing of what the output says.
//!
//! **Time** is what this process watched. The machine's sleep does not count; nor, beyond a second, does a gap
//! in which crew itself did not run: `SIGSTOP` of crew and the agent for a minute takes one second from a
//! timeout, and so does Ctrl-Z of crew alone. An agent stopped alone is watched, and times out; with TERM it is
//! also woken, so that it can end in order.
//!
//! **Threads**: on Linux a child dies with the *thread* that started it, so `run` is called from the main one.

use super::children;
use super::signals;
use super::spawn;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::pipes::{Pipes, Stream};
use super::signals::GroupSignal;
use super::{ExitCause, ProcessSpec, descendants};
use crate::world::clock::{Deadline, Watched};
use crate::world::fault;

/// The longest time between two looks at everything.
const LOOK: Duration = Duration::from_millis(40);
/// The first wait for a child whose pipes are closed; it mostly exits at once.
const BRIEFLY: Duration = Duration::from_micros(100);
/// From TERM to KILL.
const GRACE: Duration = Duration::from_secs(5);
/// An end of standard output so shortly before the exit is the exit's.
const WITH_THE_EXIT: Duration = Duration::from_millis(250);
/// The longest wait for a killed process; only a broken disk keeps one longer.
const KILLED: Duration = Duration::from_secs(10);
/// From TERM to KILL for what is left of a group.
const GROUP_GRACE: Duration = Duration::from_millis(500);
/// The most pages read of a closed child's pipes: more than the system keeps in one.
const LAST_PAGES: usize = 64;
/// Between two looks for orphans that have ended.
const REAP: Duration = Duration::from_secs(5);

/// Which of a child's streams are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Standard output; errors are dropped.
    OutAlone,
    /// Both in one, in order.
    Joined,
    /// Both, each by itself.
    Apart,
}

/// How a child must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// In order: TERM, a grace, KILL.
    Now,
    /// At once.
    Kill,
}

/// Who gets the output and may end the child.
pub trait Supervisor {
    fn take(&mut self, stream: Stream, bytes: &[u8]);

    /// All that came at once was taken.
    fn flush(&mut self) {}

    /// Whether silence is work.
    fn is_at_work(&self) -> bool {
        false
    }

    /// Whether the child has said that it is over.
    fn is_closed(&self) -> bool {
        false
    }

    /// Whether the child must end. Asked many times a second, also while it is ending.
    fn stop(&mut self) -> Option<StopRequest>;
}

/// A child at work.
pub struct Running<'a> {
    child: Child,
    group: i32,
    pipes: Pipes<'a>,
    supervisor: &'a mut dyn Supervisor,
    /// The longest time between two looks.
    pub look: Duration,
    /// From TERM to KILL when it is asked to stop.
    pub stop_grace: Duration,
    /// How long it may be silent once it is closed.
    pub linger: Duration,
    pub time: Watched,
    /// When it last printed something, in watched time.
    last_output: Duration,
    /// When its standard output was closed, if crew was not ending it.
    out_closed: Option<Duration>,
    /// When `stop` was last asked.
    asked: Option<Duration>,
    /// When orphans were last looked for.
    reaped: Duration,
}

impl<'a> Running<'a> {
    /// Starts what the command and the order say. `note` is told who leads its group.
    pub fn start(
        mut command: Command,
        spec: &ProcessSpec<'a>,
        streams: Streams,
        note: Option<&File>,
        supervisor: &'a mut dyn Supervisor,
    ) -> io::Result<Self> {
        // Before it is there: it may stop crew as soon as it starts.
        let time = Watched::start();
        let (out, stdout) = io::pipe()?;
        let mut errors = None;
        match streams {
            Streams::OutAlone => command.stderr(Stdio::null()),
            Streams::Joined => command.stderr(stdout.try_clone()?),
            Streams::Apart => {
                let (reader, stderr) = io::pipe()?;
                errors = Some(reader);
                command.stderr(stderr)
            }
        };
        let mut input = None;
        if spec.input.is_some() {
            let (stdin, writer) = io::pipe()?;
            input = Some(writer);
            command.stdin(stdin);
        } else {
            command.stdin(Stdio::null());
        }
        command.stdout(stdout).args(spec.arguments).current_dir(spec.folder);
        for name in spec.without {
            command.env_remove(name);
        }
        command.envs(spec.variables.iter().map(|(name, value)| (name, value)));
        let pipes = Pipes::new(input, spec.input.unwrap_or_default(), out, errors)?;
        let child = command.spawn()?;
        // The command, dropped here, holds the child's ends; while it lives no pipe would seem closed.
        drop(command);
        let group = child.id().cast_signed();
        if let Some(note) = note {
            spawn::note_leader(note, group);
        }
        Ok(Self {
            child,
            group,
            pipes,
            supervisor,
            look: LOOK,
            stop_grace: fault::grace(GRACE),
            linger: Duration::MAX,
            time,
            last_output: Duration::ZERO,
            out_closed: None,
            asked: None,
            reaped: Duration::ZERO,
        })
    }

    /// Until the child is gone, or has taken `within`, or was silent for `idle`.
    pub fn wait(
        &mut self,
        within: Option<Duration>,
        idle: Option<Duration>,
    ) -> io::Result<ExitCause> {
        let mut ending: Option<(ExitCause, Deadline)> = None;
        let mut step = self.look;
        loop {
            let was_open = !self.pipes.are_closed();
            self.pump(step);
            step = match (was_open, self.pipes.are_closed()) {
                (_, false) => self.look,
                (true, true) => BRIEFLY,
                (false, true) => (step + step / 4).min(self.look),
            };
            if let Some(status) = self.child.try_wait()? {
                return Ok(ending.map_or_else(|| cause_of(status), |(cause, _)| cause));
            }
            let now = self.time.look();
            self.look_around(now, ending.is_none());
            match (self.asks_to_stop(now), ending) {
                (Some(StopRequest::Kill), _) => {
                    self.kill()?;
                    return Ok(ending.map_or(ExitCause::Stopped, |(cause, _)| cause));
                }
                (_, Some((cause, deadline))) if deadline.passed() => {
                    self.kill()?;
                    return Ok(cause);
                }
                (_, Some(_)) => {}
                (Some(StopRequest::Now), None) => {
                    ending = Some(self.terminate(ExitCause::Stopped, self.stop_grace));
                }
                (None, None) => {
                    ending = self
                        .is_over(within, idle, now)
                        .map(|cause| self.terminate(cause, fault::grace(GRACE)));
                }
            }
        }
    }

    fn terminate(&self, cause: ExitCause, grace: Duration) -> (ExitCause, Deadline) {
        signals::signal_group(self.group, GroupSignal::Term);
        (cause, Deadline::after(grace))
    }

    /// Hands on what comes within `wait`.
    fn pump(&mut self, wait: Duration) -> bool {
        let supervisor = &mut self.supervisor;
        let came = self.pipes.pump(wait, |stream, bytes| supervisor.take(stream, bytes));
        supervisor.flush();
        if came {
            self.last_output = self.time.look();
        }
        came
    }

    /// Notes when standard output was closed, and reaps orphans that ended meanwhile.
    fn look_around(&mut self, now: Duration, is_free: bool) {
        if is_free && self.out_closed.is_none() && !self.pipes.is_out_open() {
            self.out_closed = Some(now);
        }
        if now.saturating_sub(self.reaped) >= REAP {
            self.reaped = now;
            descendants::reap(self.group);
        }
    }

    /// What `stop` says, which may look at the disk and is not asked for every page of a flood.
    fn asks_to_stop(&mut self, now: Duration) -> Option<StopRequest> {
        if self.asked.is_some_and(|asked| now.saturating_sub(asked) < self.look / 2) {
            return None;
        }
        self.asked = Some(now);
        self.supervisor.stop()
    }

    /// Whether its time is up.
    fn is_over(
        &mut self,
        within: Option<Duration>,
        idle: Option<Duration>,
        now: Duration,
    ) -> Option<ExitCause> {
        if within.is_some_and(|within| now >= within) {
            return Some(ExitCause::TimedOut);
        }
        if self.supervisor.is_at_work() {
            self.last_output = now;
        }
        let silent = now.saturating_sub(self.last_output);
        if silent >= self.linger && self.supervisor.is_closed() {
            return Some(ExitCause::Lingered);
        }
        idle.is_some_and(|idle| silent >= idle).then_some(ExitCause::Idle)
    }

    fn kill(&mut self) -> io::Result<()> {
        signals::signal_group(self.group, GroupSignal::Kill);
        // A child may have left its group; until it is reaped its id is its own.
        self.child.kill()?;
        let gone = Deadline::after(KILLED)
            .poll(Duration::from_millis(1), || self.child.try_wait().transpose());
        gone.unwrap_or_else(|| {
            let complaint = format!("process {} does not end, not even killed", self.group);
            Err(io::Error::new(io::ErrorKind::TimedOut, complaint))
        })
        .map(drop)
    }

    /// Whether the child, which is gone, closed its standard output and ran on.
    pub fn closed_early(&mut self) -> bool {
        let elapsed = self.time.look();
        self.out_closed.is_some_and(|at| elapsed.saturating_sub(at) > WITH_THE_EXIT)
    }

    /// The child is gone; what it left behind may print on for a moment.
    pub fn drain(&mut self, most: Duration) {
        let deadline = Deadline::after(most);
        while !self.pipes.are_closed() && !deadline.passed() {
            self.pump(deadline.left().min(self.look));
        }
    }

    /// Reads what is left in the pipes.
    pub fn empty(&mut self) {
        for _ in 0..LAST_PAGES {
            if !self.pump(Duration::ZERO) {
                break;
            }
        }
    }

    /// Ends what the child left running in its group.
    pub fn finish_group(&mut self) {
        if !children::group_lives(self.group) {
            return;
        }
        signals::signal_group(self.group, GroupSignal::Term);
        let deadline = Deadline::after(GROUP_GRACE);
        while !deadline.passed() {
            // Where crew adopts orphans, one that ended keeps its group alive until it is reaped.
            children::reap_group(self.group);
            if !children::group_lives(self.group) {
                return;
            }
            self.pump(Duration::from_millis(5));
        }
        signals::signal_group(self.group, GroupSignal::Kill);
    }
}

fn cause_of(status: ExitStatus) -> ExitCause {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCause::Exit(code),
        (None, signal) => ExitCause::Signal(signal.unwrap_or(0)),
    }
}
