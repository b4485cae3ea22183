//! The commands that a fleet runs itself: its setup, and the checks of a landing. Their processes
//! are noted on disk, so that the next attempt at the task on this machine ends what a killed one
//! left. It judges nothing.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::seat;
use crate::engine::events::{EventSink, RunEvent};
use crate::engine::fleet::TaskId;
use crate::engine::record::Check;
use crate::engine::text::tail_of;
use crate::world::process::{Call, ExitCause, FinishedProcess, Stop, descendants, groups};
use crate::world::store::{Home, fleets};

/// The most characters of a failed check's output that its loop is told.
const TAIL_CHARS: usize = 4000;

/// How the commands of one attempt run.
pub(super) struct FleetCommands<'a> {
    notes: PathBuf,
    stop: Stop<'a>,
    sink: RefCell<&'a mut dyn EventSink>,
}

impl<'a> FleetCommands<'a> {
    /// Those for a task. `stop` ends one early; `sink` hears what a setup prints.
    pub fn of(
        home: &Home,
        fleet: &str,
        task: &TaskId,
        stop: Stop<'a>,
        sink: &'a mut dyn EventSink,
    ) -> Self {
        Self { notes: notes(home, fleet, task), stop, sink: RefCell::new(sink) }
    }

    /// What ends a command early.
    pub fn stop(&self) -> Stop<'a> {
        self.stop
    }

    /// Runs a command of the shell to its end.
    pub fn run(&self, run: &str, folder: &Path, within: Duration) -> io::Result<FinishedProcess> {
        self.run_by_lines(run, folder, within, &mut |_| {})
    }

    /// Runs a check and ends what it leaves running; its output, if it fails.
    pub fn fails(&self, check: &Check, folder: &Path) -> Result<Option<String>> {
        let within = Duration::from_secs(check.timeout_s.max(1));
        let ended = descendants::leaving_none(|| self.run(&check.run, folder, within));
        let ended = ended.with_context(|| format!("the check `{}`", check.run))?;
        let passes = ended.cause == ExitCause::Exit(check.success_exit_code);
        Ok((!passes).then(|| tail_of(&ended.text(), TAIL_CHARS)))
    }

    /// Runs the setup to its end, and passes on each line that it prints.
    pub fn run_setup(
        &self,
        run: &str,
        folder: &Path,
        within: Duration,
    ) -> io::Result<FinishedProcess> {
        self.run_by_lines(run, folder, within, &mut |line| self.note(&format!("setup: {line}")))
    }

    /// A line for the job's log.
    pub fn note(&self, words: &str) {
        self.sink.borrow_mut().on_event(&RunEvent::Noted(words));
    }

    fn run_by_lines(
        &self,
        run: &str,
        folder: &Path,
        within: Duration,
        each: &mut dyn FnMut(&str),
    ) -> io::Result<FinishedProcess> {
        let call = Call::shell(run, folder).within(within);
        call.noted(groups::note_in(&self.notes)).each_line(each).run(self.stop)
    }
}

/// Ends what the commands of an earlier attempt at a task left on this machine. The task must be
/// held: the commands of an attempt that lives are noted, too.
pub(super) fn end_leftovers(home: &Home, fleet: &str, task: &TaskId) {
    groups::end_leftovers_in(&notes(home, fleet, task), true);
}

/// After a new start of the machine the ids of processes mean others, and its seat is another.
fn notes(home: &Home, fleet: &str, task: &TaskId) -> PathBuf {
    fleets::groups(home, fleet, task, &seat::seat(home))
}
