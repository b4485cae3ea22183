//! A slot for checks alone: those before the first iteration, and those of a landing.

use std::time::Duration;

use anyhow::{Result, bail};

use super::attempt::Job;
use super::engines::{LOCAL, MANUAL};
use super::seat;
use super::tie::own;
use crate::engine::fleet::lease::{Attempt, JobPhase};
use crate::engine::fleet::manifest::Fleet;
use crate::engine::record::Contract;
use crate::world::clock;
use crate::world::process::Stop;
use crate::world::slots::{self, Line, Slot};
use crate::world::store::{Home, fleets};

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

// How many tasks of a fleet run at once, and how many of them on one machine.

/// How many tasks of a fleet run at once. A cluster gives each job its place by itself, and nobody
/// counts the jobs that are started by hand.
pub fn slots_of(fleet: &Fleet) -> usize {
    let slots = match fleet.slots {
        _ if fleet.engine == MANUAL => u32::MAX,
        0 if fleet.engine != LOCAL => u32::MAX,
        0 => slots::default_count().count,
        slots => slots,
    };
    usize::try_from(slots).unwrap_or(usize::MAX)
}

/// Whether an attempt takes one of them in a plan that is made here: what another machine works on
/// takes none where each has slots of its own.
pub fn takes_one(home: &Home, fleet: &Fleet, attempt: &Attempt) -> bool {
    fleet.engine != LOCAL || seat::is_here(home, attempt)
}

/// How many slots of its machine a job of the fleet shares; 0 where the engine has given it a
/// place.
pub fn job_slots(fleet: &Fleet) -> u32 {
    if fleet.engine == LOCAL { u32::try_from(slots_of(fleet)).unwrap_or(1) } else { 0 }
}

/// The same as a person typed it last on this machine, which may be after the job began.
pub fn job_slots_now(home: &Home, fleet: &Fleet) -> u32 {
    let before = job_slots(fleet);
    let now = fleets::manifest(home, &fleet.name).ok().flatten().map(|kept| kept.value);
    let now = now.filter(|now| before > 0 && now.engine == LOCAL);
    now.map_or(before, |now| job_slots(&now))
}
