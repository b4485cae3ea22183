//! Between two iterations: the delay, and the wait for the model's service or after a crash. They look at the wall clock in
//! short steps, so that a lid that opens after a reset goes on at once, and end as soon as a person asks.

use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};

use super::Runner;
use crate::drive::{ending, steer};
use crate::engine::facts::Order;
use crate::engine::limits::time_left_ms;
use crate::engine::looped::Status;
use crate::engine::news::News;
use crate::engine::outcome::{Ending, Outcome};
use crate::world::clock::Stopwatch;
use crate::world::{clock, store, terminal};

/// Between two looks at signals and the clock.
const STEP: Duration = Duration::from_millis(100);
/// Milliseconds between two looks for an order, which read the record.
const ORDERS_MS: u64 = 500;

impl Runner<'_> {
    /// Sleeps until the wait is over, or a person cuts it short by Enter, then has the iteration begin.
    pub(super) fn wait(&mut self) {
        self.tell(&News::Waiting(&self.record));
        self.is_rested = true;
        // What was typed before asks for nothing.
        terminal::enter_was_pressed();
        let due = self.record.state.due.unwrap_or_else(|| clock::now().wall);
        if !self.sleep_until(due, &terminal::enter_was_pressed) {
            return self.obey();
        }
        self.begin("the wait is over");
    }

    /// An iteration begins after a rest, whose time is the loop's and no iteration's.
    fn begin(&mut self, what: &str) {
        if !self.is_unsaved() {
            let begun = steer::begin_again(self.home, &self.record.id, what);
            let begun = begun.map(|record| self.record = record);
            self.or_remember(begun);
        }
        if self.is_unsaved() {
            let now = clock::now();
            let state = &mut self.record.state;
            state.awake_ms += now.awake_ms.saturating_sub(state.began.awake_ms);
            state.began = now;
            state.status = Status::Running;
            state.due = None;
        }
    }

    /// What could not be recorded is remembered, unless somebody has ended the loop meanwhile: then there was
    /// nothing to record.
    fn or_remember(&mut self, done: Result<()>) {
        let Err(error) = done else { return };
        let is_over = store::load(self.home, &self.record.id).is_ok_and(|found| !found.is_live());
        if !is_over {
            self.remember(error);
        }
    }

    /// Ends the loop between two iterations.
    pub(super) fn end(&mut self, outcome: Outcome, why: &str) {
        self.finish(Ending { outcome, proof: None, why: why.to_owned() });
    }

    /// The same, with a proof where there is one.
    pub(super) fn finish(&mut self, ending: Ending) {
        if !self.is_unsaved() {
            let id = &self.record.id;
            let ended = ending::end(self.home, id, ending.clone(), store::LOCK_WAIT);
            self.or_remember(ended.map(drop));
        }
        if self.is_unsaved() {
            self.record.state.status = Status::Finished;
            self.record.state.ending = Some(ending);
            self.record.state.due = None;
        }
    }

    fn pause(&mut self) {
        if !self.is_unsaved() {
            let paused = steer::pause_now(self.home, &self.record.id, "paused by the user");
            self.or_remember(paused.map(drop));
        }
        if self.is_unsaved() {
            self.record.state.status = Status::Paused;
            self.record.state.due = None;
        }
    }

    /// Lets the delay between two iterations pass, as long as the loop has time; false when somebody asked for
    /// something meanwhile.
    pub(super) fn delay(&mut self) -> bool {
        let delay = self.run().pace.delay_s.saturating_mul(1000);
        if self.is_rested {
            return true;
        }
        if delay == 0 {
            let git = self.run().git;
            if git.commit || git.push {
                self.begin("the last iteration's work is kept");
            }
            return true;
        }
        let left = time_left_ms(&self.record, clock::now().awake_ms).unwrap_or(u64::MAX);
        let most = i64::MAX / 1_000_000;
        let rest =
            TimeDelta::milliseconds(i64::try_from(delay.min(left)).unwrap_or(most).min(most));
        let until = clock::now().wall + rest;
        self.tell(&News::Delayed { record: &self.record, until });
        let is_over = self.sleep_until(until, &|| false);
        if is_over {
            self.begin("the delay is over");
        }
        is_over
    }

    /// Sleeps, or until `is_cut_short` says so; false when a signal came, an order was left, or the record was
    /// changed by another.
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

    /// Whether an order waits, or the record is another than the one that is known.
    pub(super) fn is_asked(&self) -> bool {
        let id = &self.record.id;
        let ordered = store::order(self.home, id).is_some();
        let changed = || {
            let found = store::load(self.home, id);
            found.is_ok_and(|found| {
                !found.is_live() || found.state.status != self.record.state.status
            })
        };
        ordered || (!self.is_unsaved() && changed())
    }

    /// Does what was asked for between two iterations: a signal interrupts, a cancel ends, a pause pauses.
    pub(super) fn obey(&mut self) {
        if self.signals.times() > 0 {
            self.tell(&News::Stopping);
            return self.end(Outcome::Interrupted, self.signal_why());
        }
        match store::order(self.home, &self.record.id) {
            Some(Order::Cancel { by, reason }) => {
                let ending = Ending::cancelled(&by, reason.as_deref());
                self.end(ending.outcome, &ending.why);
            }
            Some(Order::Pause) if self.record.state.status != Status::Paused => self.pause(),
            Some(Order::Pause) | None => {}
        }
    }
}
