//! A slot for checks alone: those before the first iteration, and those of a landing.

use std::time::Duration;

use anyhow::{Result, bail};

use super::attempt::Job;
use super::slots::job_slots_now;
use super::tie::own;
use crate::engine::fleet::JobPhase;
use crate::engine::record::Contract;
use crate::world::clock;
use crate::world::process::Stop;
use crate::world::slots::{Line, Slot};
use crate::world::store::Home;

/// Between two looks for a slot.
const ASKED: Duration = Duration::from_millis(50);

impl Job<'_> {
    /// A slot for the checks that run before the first iteration, if there are any.
    ///
    /// # Errors
    /// If a signal or a person's order ends the wait.
    pub(super) fn slot_at_first(&self, contract: &Contract) -> Result<Option<Slot>> {
        let has_some = contract.before_the_first().next().is_some();
        let slots = if has_some { job_slots_now(self.home, self.fleet) } else { 0 };
        let stop = self.ends_by(|_| true);
        let mut has_waited = false;
        let waits = || {
            has_waited = true;
            self.shows(&JobPhase::Lines);
        };
        let slot = slot_for_checks(self.home, self.lease.task.priority, slots, &stop, waits)?;
        if slot.is_none() && stop() {
            bail!("the wait for a slot was ended");
        }
        if has_waited {
            self.shows(&JobPhase::Prepares);
        }
        Ok(slot)
    }

    /// Says in the lease what the attempt does, for those who look on; nothing rests on it.
    fn shows(&self, phase: &JobPhase) {
        let _ = self.memory.change(self.lease.id(), |lease| {
            let attempt = own(lease, self.attempt);
            attempt.map(|attempt| attempt.phase = phase.clone()).is_some()
        });
    }
}

/// A slot of this machine for checks outside an iteration; those of a landing go before every task
/// that waits for one. `waits` is called once if there is none at first. `None` where `slots` is 0,
/// or `stop` came first.
pub(super) fn slot_for_checks(
    home: &Home,
    priority: u8,
    slots: u32,
    stop: Stop<'_>,
    waits: impl FnOnce(),
) -> Result<Option<Slot>> {
    if slots == 0 {
        return Ok(None);
    }
    let mut line = Line::join(home, priority, slots)?;
    let mut waits = Some(waits);
    loop {
        let slot = line.poll()?;
        if slot.is_some() || stop() {
            return Ok(slot);
        }
        if let Some(waits) = waits.take() {
            waits();
        }
        clock::sleep(ASKED);
    }
}
