//! Removes the records of loops that are over. A loop that is live, or whose end is still being
//! written, is never touched; one that its open client could resume only when it is named.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::end::between_starts;
use super::owner::life;
use crate::engine::record::{Driver, Life, Loop, Outcome};
use crate::world::clock;
use crate::world::files::disk;
use crate::world::git::snapshots::Snapshots;
use crate::world::store::{self, Home, removal};

/// The loops that ended longer ago than this.
pub fn ended_before(home: &Home, loops: Vec<Loop>, age: Duration) -> Vec<Loop> {
    let age = chrono::TimeDelta::from_std(age).unwrap_or(chrono::TimeDelta::MAX);
    let is_old = |record: &Loop| {
        // Nothing writes a record after its end, which may be long after its last iteration.
        let written = disk::stamp(&home.loop_file(&record.id, "loop.json"));
        let written = written.and_then(|(_, at)| i64::try_from(at / 1_000_000_000).ok());
        let ended = record.last_at().timestamp().max(written.unwrap_or(i64::MAX));
        clock::now().wall.timestamp().saturating_sub(ended) >= age.num_seconds()
    };
    loops.into_iter().filter(|it| !it.is_live() && is_old(it) && !is_in_reach(it)).collect()
}

/// Whether its process may still do something with the loop: an open client can resume one that is
/// neither completed nor cancelled, and a crew that is there has not finished its last steps.
fn is_in_reach(record: &Loop) -> bool {
    let is_settled = matches!(record.outcome(), Some(Outcome::Completed | Outcome::Cancelled));
    let is_alive = life(&record.state.owner) == Life::Alive;
    is_alive && (!is_settled || record.driver() == Driver::Process)
}

/// What removing them would free, in bytes, without their snapshots.
pub fn bytes(home: &Home, loops: &[Loop]) -> Vec<u64> {
    loops.iter().map(|record| removal::bytes(home, &record.id)).collect()
}

/// Removes the record of a loop that is over, with its logs, its snapshots and what points to it.
/// Returns the bytes that were freed.
///
/// # Errors
/// When the loop was resumed or is busy, or its files cannot be removed.
pub fn remove(home: &Home, record: &Loop) -> Result<u64> {
    let id = &record.id;
    // A start may take over what a pointer of this working tree names.
    let start = between_starts(home, id)?;
    let held = store::hold(home, id, store::LOCK_WAIT)?;
    let boundary = store::boundary_lock(home, id, store::LOCK_WAIT)?;
    let record = held.load()?;
    if record.is_live() {
        bail!("loop {id} was resumed meanwhile\nhint: crew cancel {id} ends it");
    }
    let works = record.driver() == Driver::Process && life(&record.state.owner) == Life::Alive;
    if works || start.is_none() || boundary.is_none() {
        bail!("loop {id} is busy\nhint: try again in a moment");
    }
    let snapshots = Snapshots::of(home, &record);
    let before = removal::bytes(home, id) + snapshots.bytes();
    let gone = removal::take_out(home, id).and_then(|()| removal::finish(home, id));
    gone.with_context(|| format!("cannot remove the record of loop {id}"))?;
    snapshots.forget_what_is_unnamed();
    Ok(before.saturating_sub(snapshots.bytes()))
}

/// Finishes what a removal that was cut off has left behind.
pub fn finish(home: &Home) -> Result<()> {
    for id in removal::taken(home) {
        removal::finish(home, &id).with_context(|| format!("cannot remove loop {id}"))?;
    }
    Ok(())
}
