//! Watches one child until it is gone: writes its input, passes its output on, checks whether it
//! must end, and ends it: TERM, a grace period, KILL. It does not interpret the output.
//!
//! **Time** is what this process watched. The machine's sleep does not count. Neither does more
//! than one second of a gap in which crew itself did not run: `SIGSTOP` of crew and the agent for a
//! minute takes one second from a timeout, and so does Ctrl-Z of crew alone. An agent that is
//! stopped alone is watched and times out; with TERM it is also continued, so that it can end
//! cleanly.
//!
//! **Threads**: on Linux a child dies with the *thread* that started it, so call `run` on the main
//! thread.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::{Call, ExitCause};
use crate::clock::{Deadline, Watched};
use crate::fault;
use crate::process::descendants::{self, Awaited};
use crate::process::groups::{self, Note};
use crate::process::output::{Capture, Feed, Pipes};
use crate::process::signals;

/// The longest time between two polls of the child.
const LOOK: Duration = Duration::from_millis(40);
/// The first wait for a child whose pipes are closed, which usually exits at once.
const BRIEFLY: Duration = Duration::from_micros(100);
/// The time from TERM to KILL.
const GRACE: Duration = Duration::from_secs(5);
/// If standard output ends this shortly before the exit, the exit closed it.
const WITH_THE_EXIT: Duration = Duration::from_millis(250);
/// The longest wait for a killed process; only a broken disk causes a longer one.
const KILLED: Duration = Duration::from_secs(10);
/// The time from TERM to KILL for the rest of a group.
const GROUP_GRACE: Duration = Duration::from_millis(500);
/// The maximum number of pages read from the pipes of a child that is gone: more than the system
/// buffers in one.
const LAST_PAGES: usize = 64;
/// The time between two searches for orphans that have ended.
const REAP: Duration = Duration::from_secs(5);

/// How a child is to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// Cleanly: TERM, a grace period, KILL.
    Now,
    /// Immediately.
    Kill,
}

/// A running child.
pub struct Running<'a, 's> {
    child: Child,
    _awaited: Awaited,
    group: i32,
    _note: Option<Note>,
    /// The longest time it may run.
    within: Option<Duration>,
    pipes: Pipes<'a>,
    pub feed: Feed<'s>,
    /// The longest time between two polls.
    pub look: Duration,
    /// The time from TERM to KILL when it is asked to stop.
    pub stop_grace: Duration,
    /// How long it may be silent after it reported its completion.
    pub linger: Duration,
    pub time: Watched,
    /// When it last printed something, in watched time.
    last_output: Duration,
    /// When its standard output closed, unless crew was ending it.
    out_closed: Option<Duration>,
    /// When `stop` was last called.
    asked: Option<Duration>,
    /// When orphans were last searched for.
    reaped: Duration,
}

impl<'a, 's> Running<'a, 's> {
    /// Starts a child.
    pub fn start(mut call: Call<'a>, feed: Feed<'s>) -> io::Result<Self> {
        // This starts before the child, which may stop crew at once.
        let time = Watched::start();
        let at_crews_death = call.death_signal();
        // The child runs even if its note cannot be created.
        let note = call.notes.take().and_then(|folder| groups::create_note(&folder).ok());
        let signed = note.as_ref().map(|note| note.file().try_clone()).transpose()?;
        groups::lead_a_session(&mut call.command, signed, at_crews_death);
        let (out, stdout) = io::pipe()?;
        let mut errors = None;
        if call.capture == Capture::ForReading {
            call.command.stderr(stdout.try_clone()?);
        } else {
            let (reader, stderr) = io::pipe()?;
            errors = Some(reader);
            call.command.stderr(stderr);
        }
        call.command.stdout(stdout).stdin(Stdio::null());
        let mut input = None;
        if call.input.is_some() {
            let (stdin, writer) = io::pipe()?;
            input = Some(writer);
            call.command.stdin(stdin);
        }
        let pipes = Pipes::new(input, call.input.unwrap_or_default(), out, errors)?;
        let (child, awaited) = Awaited::spawn_child(&mut call.command)?;
        // The command still has the child's ends of the pipes; with it, no pipe would seem closed.
        drop(call.command);
        let group = child.id().cast_signed();
        if let Some(note) = &note {
            groups::note_leader(note.file(), group);
        }
        Ok(Self {
            child,
            _awaited: awaited,
            group,
            _note: note,
            within: call.within,
            pipes,
            feed,
            look: LOOK,
            stop_grace: fault::wait_time("CREW_GRACE_MS", GRACE),
            linger: Duration::MAX,
            time,
            last_output: Duration::ZERO,
            out_closed: None,
            asked: None,
            reaped: Duration::ZERO,
        })
    }

    /// Waits until the child is gone, has run as long as it may, or was silent for `idle`.
    pub fn wait(&mut self, idle: Option<Duration>) -> io::Result<ExitCause> {
        let mut ending: Option<(ExitCause, Deadline)> = None;
        let mut step = self.look;
        loop {
            let was_open = !self.pipes.are_closed();
            self.pump_output(step);
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
                    self.kill_child()?;
                    return Ok(ending.map_or(ExitCause::Stopped, |(cause, _)| cause));
                }
                (_, Some((cause, deadline))) if deadline.passed() => {
                    self.kill_child()?;
                    return Ok(cause);
                }
                (_, Some(_)) => {}
                (Some(StopRequest::Now), None) => {
                    ending = Some(self.terminate_group(ExitCause::Stopped, self.stop_grace));
                }
                (None, None) => {
                    ending = self.is_over(idle, now).map(|cause| {
                        self.terminate_group(cause, fault::wait_time("CREW_GRACE_MS", GRACE))
                    });
                }
            }
        }
    }

    fn terminate_group(&self, cause: ExitCause, grace: Duration) -> (ExitCause, Deadline) {
        signals::signal_group(self.group, Signal::TERM);
        (cause, Deadline::after(grace))
    }

    /// Passes on the output that arrives within `wait`.
    fn pump_output(&mut self, wait: Duration) -> bool {
        let came = self.pipes.pump(wait, |stream, bytes| self.feed.take(stream, bytes));
        self.feed.flush();
        if came {
            self.last_output = self.time.look();
        }
        came
    }

    /// Records when standard output closed, and reaps orphans that have ended.
    fn look_around(&mut self, now: Duration, is_free: bool) {
        if is_free && self.out_closed.is_none() && !self.pipes.is_out_open() {
            self.out_closed = Some(now);
        }
        if now.saturating_sub(self.reaped) >= REAP {
            self.reaped = now;
            descendants::reap_orphans();
        }
    }

    /// The result of `stop`. The function may read the disk, so it is not called for every page of
    /// a flood of output.
    fn asks_to_stop(&mut self, now: Duration) -> Option<StopRequest> {
        if self.asked.is_some_and(|asked| now.saturating_sub(asked) < self.look / 2) {
            return None;
        }
        self.asked = Some(now);
        self.feed.watch.stop()
    }

    /// The time limit that the child has reached, if any.
    fn is_over(&mut self, idle: Option<Duration>, now: Duration) -> Option<ExitCause> {
        if self.within.is_some_and(|within| now >= within) {
            return Some(ExitCause::TimedOut);
        }
        if self.feed.watch.tool_is_open() {
            self.last_output = now;
        }
        let silent = now.saturating_sub(self.last_output);
        if silent >= self.linger && self.feed.watch.is_closed() {
            return Some(ExitCause::Lingered);
        }
        idle.is_some_and(|idle| silent >= idle).then_some(ExitCause::Idle)
    }

    fn kill_child(&mut self) -> io::Result<()> {
        signals::signal_group(self.group, Signal::KILL);
        // A child may have left its group. Until it is reaped its id is not reused.
        self.child.kill()?;
        let deadline = Deadline::after(KILLED);
        let waited = deadline.poll(Duration::from_millis(1), || self.child.try_wait().transpose());
        let Some(status) = waited else {
            let complaint = format!("process {} was killed and does not end", self.group);
            return Err(io::Error::new(io::ErrorKind::TimedOut, complaint));
        };
        status.map(drop)
    }

    /// Whether the child, which is gone, closed its standard output and kept running.
    pub fn closed_early(&mut self) -> bool {
        let elapsed = self.time.look();
        self.out_closed.is_some_and(|at| elapsed.saturating_sub(at) > WITH_THE_EXIT)
    }

    /// Passes on what processes left behind still print for a moment after the exit.
    pub fn drain_output(&mut self, most: Duration) {
        let deadline = Deadline::after(most);
        while !self.pipes.are_closed() && !deadline.passed() {
            self.pump_output(deadline.left().min(self.look));
        }
    }

    /// Reads what is left in the pipes.
    pub fn empty_pipes(&mut self) {
        for _ in 0..LAST_PAGES {
            if !self.pump_output(Duration::ZERO) {
                break;
            }
        }
    }

    /// Ends what the child left running in its group.
    pub fn finish_group(&mut self) {
        if !descendants::group_lives(self.group) {
            return;
        }
        signals::signal_group(self.group, Signal::TERM);
        let deadline = Deadline::after(GROUP_GRACE);
        while !deadline.passed() {
            // Where crew adopts orphans, an ended one keeps its group until it is reaped.
            descendants::reap_group(self.group);
            if !descendants::group_lives(self.group) {
                return;
            }
            self.pump_output(Duration::from_millis(5));
        }
        signals::signal_group(self.group, Signal::KILL);
    }
}

fn cause_of(status: ExitStatus) -> ExitCause {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCause::Exit(code),
        (None, signal) => ExitCause::Signal(signal.unwrap_or(0)),
    }
}
