//! How many tasks of a fleet run at once, and how many of them on one machine.

use super::engines::{LOCAL, MANUAL};
use super::seat;
use crate::engine::fleet::{Attempt, Fleet};
use crate::world::slots;
use crate::world::store::{Home, fleets};

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
