//! How many tasks of a fleet run at once, and how many of them on one machine; and a place there
//! for checks alone.

use std::time::Duration;

use anyhow::Result;

use super::engines::{LOCAL, MANUAL};
use super::seat;
use crate::engine::fleet::lease::{Attempt, Lease};
use crate::engine::fleet::manifest::Fleet;
use crate::world::clock;
use crate::world::process::Stop;
use crate::world::slots::{self, Line, Slot};
use crate::world::store::Home;

/// Between two looks for a slot.
const ASKED: Duration = Duration::from_millis(50);

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

/// The same for a plan that is made here: what other machines work on takes none of its places.
pub fn places_here(home: &Home, fleet: &Fleet, slots: usize, leases: &[Lease]) -> usize {
    let is_elsewhere = |attempt: &&Attempt| !attempt.rests() && !seat::is_here(home, attempt);
    let elsewhere = leases.iter().filter_map(Lease::attempt).filter(is_elsewhere).count();
    slots.saturating_add(if fleet.engine == LOCAL { elsewhere } else { 0 })
}

/// How many slots of its machine a job of the fleet shares; 0 where the engine has given it a
/// place.
pub fn job_slots(fleet: &Fleet) -> u32 {
    if fleet.engine == LOCAL { u32::try_from(slots_of(fleet)).unwrap_or(1) } else { 0 }
}

/// A slot of this machine for checks outside an iteration; those of a landing go before every task
/// that waits for one. `None` where `slots` is 0, or `stop` came first.
pub(super) fn slot_for_checks(
    home: &Home,
    priority: u8,
    slots: u32,
    stop: Stop<'_>,
) -> Result<Option<Slot>> {
    if slots == 0 {
        return Ok(None);
    }
    let mut line = Line::join(home, priority, slots)?;
    loop {
        let slot = line.poll()?;
        if slot.is_some() || stop() {
            return Ok(slot);
        }
        clock::sleep(ASKED);
    }
}
