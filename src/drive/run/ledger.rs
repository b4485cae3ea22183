//! Where a run keeps its record: on disk, and in memory from the first failed write, which is
//! reported once. Callers need not know which. It judges nothing.

use std::cell::RefCell;

use anyhow::{Error, Result};

use crate::drive::boundary::{self, Open};
use crate::drive::find::is_ours;
use crate::drive::{control, end};
use engine::events::{EventSink, RunEvent};
use engine::journal::JournalNote;
use engine::record::{Ending, Loop, LoopId};
use world::store::{self, Home, LOCK_WAIT, StoreError, view};

/// The record of a run.
pub(super) struct Ledger<'a> {
    home: &'a Home,
    /// As it was last recorded, or the current one while nothing can be recorded.
    pub record: Loop,
    sink: &'a RefCell<&'a mut dyn EventSink>,
    /// The record as it was last known on disk, while the one in memory is ahead of it.
    behind: Option<Box<Loop>>,
    /// Whether the failure to record was reported.
    was_said: bool,
    /// Why the record must never be written by this crew.
    pub refused: Option<Error>,
}

impl<'a> Ledger<'a> {
    pub fn new(home: &'a Home, record: Loop, sink: &'a RefCell<&'a mut dyn EventSink>) -> Self {
        Self { home, record, sink, behind: None, was_said: false, refused: None }
    }

    /// Whether the record on disk is behind the one in memory.
    pub fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Reads what others did to the record. False when this process no longer owns it.
    pub fn reload(&mut self) -> bool {
        if self.is_behind() {
            return true;
        }
        match store::load(self.home, &self.record.id) {
            Ok(found) => self.record = found,
            Err(error) => self.keep_in_memory(error.into()),
        }
        self.is_behind() || !self.record.is_live() || is_ours(&self.record)
    }

    /// Changes the record as it is now, unless another owner has taken it.
    pub fn change_record(&mut self, note: impl Into<JournalNote>, change: impl Fn(&mut Loop)) {
        self.write_step(
            |home, id| {
                let held = store::hold_loop(home, id, LOCK_WAIT)?;
                let found = held.load()?;
                if is_ours(&found) {
                    let _ = view::write_view(&held.change(&found, note, &change)?);
                }
                Ok(())
            },
            |_, record| change(record),
        );
    }

    /// Starts an iteration after a rest, whose time counts as the loop's and not the iteration's.
    pub fn begin_iteration(&mut self, what: &str) {
        self.move_on(what, |_, record| control::start_iteration(record));
    }

    /// Pauses the loop between two iterations.
    pub fn pause_record(&mut self) {
        self.move_on("paused by the user", control::stop_wait);
    }

    fn move_on(&mut self, what: &str, change: impl Fn(&Home, &mut Loop)) {
        self.write_step(
            |home, id| control::move_on(home, id, what, |record| change(home, record)).map(drop),
            &change,
        );
    }

    /// Ends the loop between two iterations.
    pub fn end_record(&mut self, ending: &Ending) {
        self.write_step(
            |home, id| end::end_loop(home, id, ending.clone(), LOCK_WAIT).map(drop),
            |home, record| end::record_ending(home, record, ending.clone()),
        );
    }

    /// Takes a step on disk, or in memory after the first one that fails there.
    fn write_step(
        &mut self,
        on_disk: impl FnOnce(&Home, &LoopId) -> Result<()>,
        in_memory: impl FnOnce(&Home, &mut Loop),
    ) {
        if !self.is_behind() {
            let taken = on_disk(self.home, &self.record.id);
            let found = store::load(self.home, &self.record.id);
            let is_over = found.as_ref().is_ok_and(|found| !found.is_live());
            match (taken, found) {
                (Ok(()), Ok(found)) => return self.record = found,
                // Somebody has ended the loop: there was nothing to record.
                (Err(_), _) if is_over && self.record.is_live() => return,
                (Ok(()), Err(error)) => self.keep_in_memory(error.into()),
                (Err(error), _) => self.keep_in_memory(error),
            }
        }
        in_memory(self.home, &mut self.record);
    }

    /// Opens the boundary; `None` when somebody has ended the loop.
    pub fn open_boundary(&mut self) -> Option<Open> {
        let opened = match &self.behind {
            None => boundary::open_counting(self.home, &self.record.id),
            Some(known) => boundary::reopen_boundary(self.home, known, &self.record),
        };
        match opened {
            Ok(open) => {
                self.behind = None;
                open
            }
            Err(error) => {
                self.keep_in_memory(error);
                Some(Open::for_record(self.home, self.record.clone(), None))
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
        match boundary::recover_record(self.home, known, &self.record) {
            Ok(record) => {
                self.behind = None;
                self.record = record;
                end::complete_end(self.home, &self.record);
                true
            }
            // The space that is given up may be enough for the last record.
            Err(_) if store::give_up_room(self.home, &self.record.id) => self.save_record(),
            Err(error) => {
                self.keep_in_memory(error);
                false
            }
        }
    }
}
