//! Where a run keeps its record: on disk, and in memory from the first failed write, which is
//! reported once. Callers need not know which. It judges nothing.

use std::cell::RefCell;

use anyhow::Error;

use super::changes::RecordChange;
use super::ports::{Clock, LoopStore};
use crate::drive::boundary::Open;
use crate::drive::find::is_ours;
use engine::events::{EventSink, RunEvent};
use engine::record::{Loop, Run};
use world::process::signals::Signals;
use world::store::StoreError;

/// The record of a run, and those who hear of it.
pub struct Ledger<'a> {
    pub clock: &'a dyn Clock,
    pub store: &'a dyn LoopStore,
    pub record: Loop,
    pub signals: &'a Signals,
    sink: &'a RefCell<&'a mut dyn EventSink>,
    /// The record as it was last known on disk, while the one in memory is ahead of it.
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

    /// The terms, as the agent whose turn it is has them.
    pub fn run_terms(&self) -> Run {
        let run = self.record.contract.run.clone().unwrap_or_default();
        if let Some(agent) = self.record.worker() { run.as_done_by(agent) } else { run }
    }

    /// Whether a signal came, a request is left, or the record differs from the known one.
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

    /// Reads what others did to the record. False when this process no longer owns it.
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

    /// Opens the boundary; `None` when somebody has ended the loop.
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

    /// From now on this process's memory is what counts; reported once. A newer crew's record ends
    /// the run instead, because this version cannot know what it means.
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

    /// Records what only memory has, if the disk accepts it now: the last chance before this
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

    /// One tick of time. Whether a person asked for the end.
    pub fn must_stop(&self) -> bool {
        self.sink.borrow_mut().on_tick();
        self.signals.times() > 0
    }

    /// Whether a request breaks the iteration off.
    pub fn is_broken_off(&self) -> bool {
        self.store.breaks_off(&self.record.id)
    }

    /// Reports what a person should know, and what changes nothing.
    pub fn emit_note(&self, what: &str) {
        self.emit(&RunEvent::Noted(what));
    }
}
