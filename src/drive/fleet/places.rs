//! How many tasks of a fleet run at once, and how many of them on one machine.

use super::engines::{LOCAL, MANUAL};
use super::seat;
use crate::engine::fleet::lease::{Attempt, Lease};
use crate::engine::fleet::manifest::Fleet;
use crate::world::slots;
use crate::world::store::Home;

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
