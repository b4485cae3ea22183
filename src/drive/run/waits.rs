//! Waits between two iterations: the delay, the wait for the model's service or after a crash, and
//! the wait for the loop's turn after a limit of its account.
//! They check the wall clock in short steps, so that a lid that opens after a reset continues at
//! once, and end as soon as a person asks.

use std::cell::Cell;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Runner;
use crate::drive::tree;
use crate::drive::windows::{self, LoopTurn};
use crate::engine::boundary::decide::{Decision, waiting};
use crate::engine::boundary::facts::ControlRequest;
use crate::engine::boundary::limits::time_left_ms;
use crate::engine::events::RunEvent;
use crate::engine::record::{Ending, LoopMoment, Outcome, Status};
use crate::world::clock::{self, Stopwatch};
use crate::world::{store, terminal};

/// The time between two checks of signals and the clock.
const STEP: Duration = Duration::from_millis(100);
/// Milliseconds between two checks for an order, each of which reads the record.
const ORDERS_MS: u64 = 500;
/// Milliseconds between two looks at the rate window.
const WINDOW_MS: u64 = 1000;

impl Runner<'_> {
    /// Begins to wait for this loop's turn after a limit that another one met, which counts as
    /// nothing.
    pub(super) fn await_turn(&mut self, turn: LoopTurn) {
        let LoopTurn { account, at, why } = turn;
        let decision = waiting(&self.ledger.record, clock::now(), at, &why);
        if let Decision::Finish(ending) = decision {
            return self.ledger.end(&ending);
        }
        let what = format!("waits for its turn: {why}");
        self.ledger.change(&what, |record| {
            windows::held_back(record, at, why.clone(), account.clone());
        });
        tree::close(self.home, &self.ledger.record);
        self.react(LoopMoment::Wait);
    }

    /// Sleeps until the wait is over, a person cuts it short with Enter, or the rate window is
    /// another, then starts the iteration.
    pub(super) fn wait(&mut self) {
        self.tell(&RunEvent::Waiting(&self.ledger.record));
        if let Some(tie) = &mut self.tie {
            tie.rests(&self.ledger.record);
        }
        self.is_rested = true;
        // A key pressed before the wait does not end it.
        terminal::enter_was_pressed();
        let state = &self.ledger.record.state;
        let due = state.due.unwrap_or_else(|| clock::now().wall);
        let is_after_a_crash = state.crashes > 0 && state.transient_errors == 0;
        let due = if is_after_a_crash { clock::after_a_crash(due) } else { due };
        loop {
            let (is_over, is_typed) = self.sleep_through(due);
            // Whoever ended the wait from outside wants the iteration now.
            self.is_typed = is_typed || !is_over;
            if !is_over {
                return self.obey();
            }
            match self.choose() {
                Some(turn) if turn.is_awaited_by(&self.ledger.record) => {}
                Some(turn) => return self.await_turn(turn),
                None => break,
            }
        }
        if self.ledger.record.state.status == Status::Waiting {
            self.ledger.begin("the wait is over");
            self.follow_the_person();
        }
    }

    /// Sleeps until `due`, until a person presses Enter, or until the rate window is another. Says
    /// whether nobody asked for something else, and whether Enter was pressed.
    fn sleep_through(&self, due: DateTime<Utc>) -> (bool, bool) {
        let (is_typed, looked) = (Cell::new(false), Cell::new(Stopwatch::start()));
        let is_cut_short = || {
            is_typed.set(is_typed.get() || terminal::enter_was_pressed());
            let looks = looked.get().elapsed_ms() >= WINDOW_MS;
            if looks {
                looked.set(Stopwatch::start());
            }
            is_typed.get() || (looks && windows::has_moved(self.home, &self.ledger.record))
        };
        (self.sleep_until(due, &is_cut_short), is_typed.get())
    }

    /// Lets the delay between two iterations pass, as long as the loop has time; false when
    /// somebody asked for something meanwhile.
    pub(super) fn delay(&mut self) -> bool {
        let delay = self.run().pace.delay_s.saturating_mul(1000);
        if self.is_rested {
            return true;
        }
        if delay == 0 {
            let git = self.run().git;
            if git.commit || git.push {
                self.ledger.begin("the last iteration's work is kept");
            }
            return true;
        }
        let left = time_left_ms(&self.ledger.record, clock::now().awake_ms).unwrap_or(u64::MAX);
        let most = i64::MAX / 1_000_000;
        let rest =
            TimeDelta::milliseconds(i64::try_from(delay.min(left)).unwrap_or(most).min(most));
        let until = clock::now().wall + rest;
        self.tell(&RunEvent::Delayed { record: &self.ledger.record, until });
        let is_over = self.sleep_until(until, &|| false);
        if is_over {
            self.ledger.begin("the delay is over");
            self.follow_the_person();
        }
        is_over
    }

    /// Sleeps until `due`, or until `is_cut_short` says so. False when a signal came, an order was
    /// left, or another process changed the record.
    fn sleep_until(&self, due: DateTime<Utc>, is_cut_short: &dyn Fn() -> bool) -> bool {
        let mut looked: Option<Stopwatch> = None;
        while clock::now().wall < due && !is_cut_short() {
            if self.tick() {
                return false;
            }
            if looked.is_none_or(|looked| looked.elapsed_ms() >= ORDERS_MS) {
                if self.is_asked() {
                    return false;
                }
                looked = Some(Stopwatch::start());
            }
            let left = (due - clock::now().wall).to_std().unwrap_or_default();
            clock::sleep(STEP.min(left));
        }
        true
    }

    /// Ends the loop between two iterations.
    pub(super) fn end(&mut self, outcome: Outcome, why: &str) {
        self.ledger.end(&Ending::new(outcome, why));
    }

    /// Whether an order is left, or the record differs from the known one.
    pub(super) fn is_asked(&self) -> bool {
        let id = &self.ledger.record.id;
        let ordered = store::order(self.home, id).is_some();
        let changed = || {
            let found = store::load(self.home, id);
            found.is_ok_and(|found| {
                !found.is_live() || found.state.status != self.ledger.record.state.status
            })
        };
        ordered || (!self.ledger.is_behind() && changed())
    }

    /// Obeys what was asked for between two iterations: a signal interrupts, a cancel ends, a pause
    /// pauses.
    pub(super) fn obey(&mut self) {
        if self.signals.times() > 0 {
            self.tell(&RunEvent::Stopping);
            return self.end(Outcome::Interrupted, &self.signals.why());
        }
        match store::order(self.home, &self.ledger.record.id) {
            Some(ControlRequest::Cancel { by, reason }) => {
                self.ledger.end(&Ending::cancelled(by, reason.as_deref()));
            }
            Some(ControlRequest::Pause) if self.ledger.record.state.status != Status::Paused => {
                self.ledger.pause();
            }
            Some(ControlRequest::Pause) | None => {}
        }
    }
}
