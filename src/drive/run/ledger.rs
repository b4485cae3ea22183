//! Keeps the record of a run: on disk, and in memory from the first failed write, which is reported
//! once. Callers need not know which. It judges nothing. The ports that act on the record are also
//! here.

use std::cell::RefCell;
use std::path::Path;

use anyhow::Error;

use super::ports::{Checks, Clock, IterationGate, IterationRun, LoopStore, RecordChange};
use crate::drive::boundary::Open;
use crate::drive::find::is_ours;
use crate::drive::prompt::Prompt;
use engine::record::{Ending, Loop, LoopMoment, Place, Run};
use engine::view::events::{EventSink, RunEvent};
use readers::agents::Launch;
use world::process::signals::Signals;
use world::store::StoreError;

/// The record of a run, and the receivers of its events.
pub struct Ledger<'a> {
    pub clock: &'a dyn Clock,
    pub store: &'a dyn LoopStore,
    pub record: Loop,
    pub signals: &'a Signals,
    sink: &'a RefCell<&'a mut dyn EventSink>,
    /// The record as last known on disk, while the one in memory is ahead of it.
    behind: Option<Box<Loop>>,
    /// Whether the failure to record was reported.
    was_said: bool,
    /// Why the record must never be written by this crew.
    pub refused: Option<Error>,
}

impl<'a> Ledger<'a> {
    pub fn new(
        (clock, store): (&'a dyn Clock, &'a dyn LoopStore),
        record: Loop,
        signals: &'a Signals,
        sink: &'a RefCell<&'a mut dyn EventSink>,
    ) -> Self {
        Self { clock, store, record, signals, sink, behind: None, was_said: false, refused: None }
    }

    /// The terms for the agent whose turn it is.
    pub fn run_terms(&self) -> Run {
        let run = self.record.contract.run.clone().unwrap_or_default();
        if let Some(agent) = self.record.worker() { run.as_done_by(agent) } else { run }
    }

    /// Whether a signal arrived, a request is pending, or the record differs from the known one.
    pub fn is_asked(&self) -> bool {
        let (store, known) = (self.store, &self.record);
        if self.signals.times() > 0 || store.read_request(&known.id).is_some() {
            return true;
        }
        !self.is_behind()
            && store
                .load(&known.id)
                .is_ok_and(|found| !found.is_live() || found.state.status() != known.state.status())
    }

    /// Reads changes that others made to the record. False when this process no longer owns it.
    pub fn reload(&mut self) -> bool {
        if self.is_behind() {
            return true;
        }
        match self.store.load(&self.record.id) {
            Ok(found) => self.record = found,
            Err(error) => self.keep_in_memory(error.into()),
        }
        self.is_behind() || !self.record.is_live() || is_ours(&self.record)
    }

    /// Opens the boundary; `None` when another process has ended the loop.
    pub fn open_boundary(&mut self) -> Option<Open> {
        match self.store.open_boundary(self.behind.as_deref(), &self.record) {
            Ok(open) => {
                self.behind = None;
                open
            }
            Err(error) => {
                self.keep_in_memory(error);
                Some(self.store.open_in_memory(&self.record))
            }
        }
    }

    /// Switches to the record in memory, which is reported once. A newer crew's record ends the run
    /// instead, because this version cannot know what it means.
    pub fn keep_in_memory(&mut self, why: Error) {
        if self.behind.is_none() {
            self.behind = Some(Box::new(self.record.clone()));
        }
        if matches!(why.downcast_ref(), Some(StoreError::Newer { .. })) {
            self.refused = Some(why);
        } else if !std::mem::replace(&mut self.was_said, true) {
            self.sink.borrow_mut().on_event(&RunEvent::Unsaved { why: &format!("{why:#}") });
        }
    }

    /// Records what is only in memory, if the disk accepts it now: the last chance before this
    /// process exits. True when the record has changed.
    pub fn save_record(&mut self) -> bool {
        let Some(known) = &self.behind else { return false };
        match self.store.recover(known, &self.record) {
            Ok(record) => {
                self.behind = None;
                self.record = record;
                true
            }
            Err(error) => {
                self.keep_in_memory(error);
                false
            }
        }
    }

    /// Changes the record on disk, or in memory after the first change that fails there.
    pub fn write(&mut self, change: &RecordChange<'_>) {
        if !self.is_behind() {
            let written = self.store.write(&self.record.id, change);
            let found = self.store.load(&self.record.id);
            let is_over = found.as_ref().is_ok_and(|found| !found.is_live());
            match (written, found) {
                (Ok(()), Ok(found)) => return self.record = found,
                // Somebody has ended the loop: there was nothing to record.
                (Err(_), _) if is_over && self.record.is_live() => return,
                (Ok(()), Err(error)) => self.keep_in_memory(error.into()),
                (Err(error), _) => self.keep_in_memory(error),
            }
        }
        change.apply(self.clock.now(), &mut self.record);
    }

    /// Whether the record on disk is behind the one in memory.
    pub fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Reports what happens.
    pub fn emit(&self, event: &RunEvent<'_>) {
        self.store.show_step(&self.record, event);
        self.sink.borrow_mut().on_event(event);
    }

    /// Lets one tick of time pass. Returns whether the user requested the end.
    pub fn must_stop(&self) -> bool {
        self.sink.borrow_mut().on_tick();
        self.signals.times() > 0
    }

    /// Whether a request interrupts the iteration.
    pub fn is_broken_off(&self) -> bool {
        self.store.breaks_off(&self.record.id)
    }

    /// Runs the user's commands for a moment, reports those that failed, and returns the first
    /// failure. With `has_line` the iteration's own line reports that first one.
    pub fn react(&self, checks: &dyn Checks, on: LoopMoment, has_line: bool) -> Option<String> {
        let stop = || self.signals.times() > 1;
        let mut first = None;
        for end in checks.react(&self.record, on, &|event| self.emit(event), &stop) {
            if end.has_failed() {
                let (failure, is_reported) = (end.end_line(), has_line && first.is_none());
                let (run, why) = (&*end.run, &*failure);
                self.emit(&RunEvent::ReactionFailed { on, run, why, is_reported });
                first.get_or_insert(failure);
            }
        }
        first
    }

    /// Runs the user's commands for the end, and marks them as done unless a signal ended them.
    pub fn react_to_the_end(&self, checks: &dyn Checks) {
        self.react(checks, LoopMoment::Finish, false);
        if self.signals.times() <= 1 && !self.is_behind() {
            self.store.end_reaction(&self.record.id);
        }
    }

    /// Reports a note for the user that changes nothing.
    pub fn emit_note(&self, what: &str) {
        self.emit(&RunEvent::Noted(what));
    }
}

/// The gate of a fleet; `None` for a run that the user started.
pub type KnownGate<'a> = Option<&'a dyn IterationGate>;
/// A prompt and the command line that carries it, or why there is none.
pub type PreparedAgent = Result<(Prompt, Launch), String>;

/// The loop's working tree and its repository.
pub trait Workspace {
    /// Why the loop's folder is missing.
    fn missing_reason(&self, place: &Place) -> Option<String>;
    /// How a loop ends whose repository is lost. This is determined before the end is recorded, so
    /// that no page of a finished loop omits it.
    fn lost_ending(&self, record: &Loop) -> Option<Ending>;
    /// Treats changes that a person made while no agent was at work as part of the tree that the
    /// loop found.
    fn follow_person(&self, ledger: &mut Ledger<'_>);
    /// Names the state of a tree in which no agent works.
    fn close(&self, record: &Loop);
    fn is_closed(&self, record: &Loop) -> bool;
    /// Commits and pushes, and marks both as done. Ends a loop whose repository is lost.
    fn keep_work(&mut self, ledger: &mut Ledger<'_>, commits: bool, pushes: bool);
    /// Rebases the branch onto another one that moved. False when that needs the user and has ended
    /// the loop. A gate knows where the branch was before, and what happens to a conflict.
    fn rebase(&self, ledger: &mut Ledger<'_>, onto: &str, gate: KnownGate<'_>) -> bool;
}

/// Starts agents.
pub trait AgentRunner {
    /// The prompt of this iteration, and the command line that carries it.
    fn prepare(&self, record: &Loop, run: &Run, handoff: Option<&Path>) -> PreparedAgent;
    /// Starts the agent and watches it until it ends.
    fn run(&self, ledger: &Ledger<'_>, run: &Run, asked: (&str, &Launch)) -> IterationRun;
}
