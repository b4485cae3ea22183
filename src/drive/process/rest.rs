//! Between two iterations: the delay, and the wait for the model's service. Both look at the wall clock in
//! short steps, so that a lid that opens after a reset goes on at once, and both end as soon as a person asks.

use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};

use super::Runner;
use crate::drive::steer;
use crate::engine::facts::Order;
use crate::engine::looped::Status;
use crate::engine::news::News;
use crate::engine::outcome::{Ending, Outcome};
use crate::world::{clock, store};

/// Between two looks at signals, orders and the clock.
const STEP: Duration = Duration::from_millis(100);

impl Runner<'_> {
    /// Sleeps until the wait is over, then has the same iteration begin anew.
    pub(super) fn wait(&mut self) -> Result<()> {
        self.tell(&News::Waiting(&self.record));
        let due = self.record.state.due.unwrap_or_else(|| clock::now().wall);
        if !self.sleep_until(due) {
            return self.obey();
        }
        if self.unsaved {
            self.record.state.status = Status::Running;
            self.record.state.due = None;
            self.record.state.began = clock::now();
            return Ok(());
        }
        steer::begin_again(self.home, &self.record.id, "the wait is over")?;
        Ok(())
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
        while clock::now().wall < due {
            if self.tick() || self.is_asked() {
                return false;
            }
            let left = (due - clock::now().wall).to_std().unwrap_or_default();
            clock::sleep(STEP.min(left));
        }
        true
    }

    /// Whether an order waits, or the record is another than the one that is known.
    pub(super) fn is_asked(&self) -> bool {
        let id = &self.record.id;
        let ordered = store::order(self.home, id).is_ok_and(|order| order.is_some());
        let changed = || {
            let found = store::load(self.home, id);
            found.is_ok_and(|found| {
                !found.is_live() || found.state.status != self.record.state.status
            })
        };
        ordered || (!self.unsaved && changed())
    }

    /// Does what was asked for between two iterations: a signal interrupts, a cancel ends, a pause pauses.
    pub(super) fn obey(&mut self) -> Result<()> {
        if self.signals.times() > 0 {
            self.tell(&News::Stopping);
            return self.end(Outcome::Interrupted, self.signal_why());
        }
        match store::order(self.home, &self.record.id)? {
            Some(Order::Cancel { by, reason }) => {
                let ending = Ending::cancelled(&by, reason.as_deref());
                self.end(ending.outcome, &ending.why)
            }
            Some(Order::Pause) if self.unsaved => {
                self.record.state.status = Status::Paused;
                self.record.state.due = None;
                Ok(())
            }
            Some(Order::Pause) if self.record.state.status != Status::Paused => {
                let id = self.record.id.clone();
                steer::pause_now(self.home, &id, "paused by the user").map(drop).or_else(|error| {
                    // Somebody may have ended it between the two.
                    let is_over = store::load(self.home, &id).is_ok_and(|found| !found.is_live());
                    if is_over { Ok(()) } else { Err(error) }
                })
            }
            Some(Order::Pause) | None => Ok(()),
        }
    }
}
