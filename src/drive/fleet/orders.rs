//! How an attempt hears of a person's order while nothing of its loop runs: it waits for a slot, or
//! lands. A loop that runs hears of it through its tie.

use std::cell::Cell;
use std::time::Duration;

use super::attempt::Job;
use crate::engine::fleet::FleetRequest;
use crate::world::clock::Stopwatch;

/// Milliseconds between two looks for an order.
const ORDERS_MS: u64 = 5000;
/// The longest that one talk with the remote may take for such a look, which has two.
const ORDERS_WITHIN: Duration = Duration::from_secs(7);

impl Job<'_> {
    /// What a person has ordered of the task, as far as its memory answers now.
    pub(super) fn order(&self) -> Option<FleetRequest> {
        // It is asked while a check runs, which nobody watches meanwhile.
        let memory = self.memory.clone().with_haste(self.signals, ORDERS_WITHIN);
        let fleet = memory.manifest().ok()?.value;
        fleet.order_of(self.lease.id()).map(|order| order.what)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.order() == Some(FleetRequest::Cancel)
    }

    /// Whether a signal has come or, by a look every five seconds, an order that is `meant`.
    pub(super) fn ends_by(&self, meant: impl Fn(FleetRequest) -> bool) -> impl Fn() -> bool {
        let asked = Cell::new((Stopwatch::start(), false));
        move || {
            let (since, is_ordered) = asked.get();
            if since.elapsed_ms() >= ORDERS_MS && !is_ordered {
                asked.set((Stopwatch::start(), self.order().is_some_and(&meant)));
            }
            self.signals.times() > 0 || asked.get().1
        }
    }
}
