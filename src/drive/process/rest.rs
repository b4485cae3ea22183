//! Between two iterations: the delay, and the wait for the model's service. Both look at the wall clock in
//! short steps, so that a lid that opens after a reset goes on at once, and both end as soon as a person asks.

use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};

use super::Runner;
use crate::drive::{ending, steer};
use crate::engine::facts::Order;
use crate::engine::looped::Status;
use crate::engine::news::News;
use crate::engine::outcome::{Ending, Outcome};
use crate::world::clock::Stopwatch;
use crate::world::{clock, store};

/// Between two looks at signals and the clock.
const STEP: Duration = Duration::from_millis(100);
/// Milliseconds between two looks for an order, which read the record.
const ORDERS_MS: u64 = 500;

impl Runner<'_> {
    /// Sleeps until the wait is over, then has the same iteration begin anew.
    pub(super) fn wait(&mut self) {
        self.tell(&News::Waiting(&self.record));
        let due = self.record.state.due.unwrap_or_else(|| clock::now().wall);
        if !self.sleep_until(due) {
            return self.obey();
        }
        if !self.is_unsaved() {
            let begun = steer::begin_again(self.home, &self.record.id, "the wait is over");
            self.or_remember(begun.map(drop));
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
        let ending = Ending { outcome, proof: None, why: why.to_owned() };
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

    /// Lets the delay between two iterations pass; false when somebody asked for something meanwhile.
    pub(super) fn delay(&mut self) -> bool {
        let seconds = self.run().pace.delay_s;
        if seconds == 0 || self.is_first {
            return true;
        }
        let delay = TimeDelta::seconds(i64::try_from(seconds).unwrap_or(i64::MAX / 1_000_000));
        let until = clock::now().wall + delay;
        self.tell(&News::Delayed { record: &self.record, until });
        self.sleep_until(until)
    }

    /// Sleeps; false when a signal came, an order was left, or the record was changed by another.
    fn sleep_until(&self, due: DateTime<Utc>) -> bool {
        let mut looked: Option<Stopwatch> = None;
        while clock::now().wall < due {
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
