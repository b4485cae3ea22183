//! Removes the records of ended loops. A loop that is live, or whose end is still being written, is
//! never touched; a loop that its open client could resume is removed only if it is named.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Error, Result};

use super::between_starts_in;
use crate::drive::find::owner_life;
use engine::record::{Driver, Life, Loop, LoopId, Outcome};
use engine::refuse;
use world::clock;
use world::git::snapshots::{Snapshots, count_bytes, forget_unnamed};
use world::store::{self, Home, removal};

/// The loops that ended longer ago than this, and the number of further such loops that an open
/// client could still resume.
pub fn ended_before(loops: Vec<Loop>, age: Duration) -> (Vec<Loop>, usize) {
    let age = chrono::TimeDelta::from_std(age).unwrap_or(chrono::TimeDelta::MAX);
    let ended = loops.into_iter().filter(|record| {
        let ended = record.state.end().ended_at().map_or(i64::MAX, |at| at.timestamp());
        !record.is_live()
            && clock::now().wall.timestamp().saturating_sub(ended) >= age.num_seconds()
    });
    let (kept, loops): (Vec<Loop>, Vec<Loop>) = ended.partition(is_in_reach);
    (loops, kept.len())
}

/// Whether its process may still do something with the loop: an open client can resume a loop that
/// is neither completed nor cancelled, and a running crew has not finished its last steps.
fn is_in_reach(record: &Loop) -> bool {
    let is_settled = matches!(record.outcome(), Some(Outcome::Completed | Outcome::Cancelled));
    let is_alive = owner_life(record.state.owner()) == Life::Alive;
    is_alive && (!is_settled || record.driver() == Driver::Process)
}

/// The result of removing records.
#[derive(Debug, Default)]
pub struct Cleaned {
    pub removed: u64,
    /// The freed bytes.
    pub freed: u64,
    /// Why the other records stay.
    pub refused: Vec<Error>,
}

/// Removes the records of ended loops, with their logs, their snapshots and the pointers to them. A
/// loop that was resumed, is busy or cannot be removed stays, and does not keep the others from
/// being removed.
pub fn remove_loops(home: &Home, loops: &[Loop]) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let mut trees: BTreeMap<&Path, Vec<&Loop>> = BTreeMap::new();
    for record in loops {
        trees.entry(&record.place.checkout).or_default().push(record);
    }
    for (checkout, loops) in trees {
        // Measuring takes long, and a start waits for the lock only for a moment.
        let snapshots = Snapshots::of(home, loops[0]);
        let before = count_bytes(&snapshots);
        // A start there may take over what its pointer names, or have taken a snapshot that has no
        // name yet.
        let start = between_starts_in(home, checkout);
        let taken: Vec<Result<u64>> =
            loops.iter().map(|record| take_out(home, &record.id, start.is_some())).collect();
        let mut left = removal::remove_taken(home);
        for (record, bytes) in loops.into_iter().zip(taken) {
            let why = left.remove(&record.id).map(|error| not_gone(&record.id, error));
            match why.map_or(bytes, Err) {
                Ok(bytes) => {
                    cleaned.removed += 1;
                    cleaned.freed += bytes;
                }
                Err(error) => cleaned.refused.push(error),
            }
        }
        if start.is_some() {
            forget_unnamed(&snapshots);
        }
        drop(start);
        cleaned.freed += before.saturating_sub(count_bytes(&snapshots));
    }
    cleaned
}

/// Takes the record of one of these loops out of the store, while starts are kept out of its
/// working tree. Returns its size in bytes.
fn take_out(home: &Home, id: &LoopId, is_kept_from_starts: bool) -> Result<u64> {
    let held = store::hold_loop(home, id, store::LOCK_WAIT)?;
    let boundary = store::boundary_lock(home, id, store::LOCK_WAIT)?;
    let record = held.load()?;
    if record.is_live() {
        refuse!("loop {id} was resumed in between", "crew cancel {id} ends it");
    }
    let works =
        record.driver() == Driver::Process && owner_life(record.state.owner()) == Life::Alive;
    if works || !is_kept_from_starts || boundary.is_none() {
        refuse!("loop {id} is busy", "try again in a moment");
    }
    let bytes = removal::loop_bytes(home, id);
    let taken = removal::take_out(home, id);
    taken.with_context(|| format!("cannot remove the record of loop {id}"))?;
    Ok(bytes)
}

/// Finishes removals that were interrupted. Returns why something could not be removed.
pub fn finish_removals(home: &Home) -> Vec<Error> {
    removal::remove_taken(home).into_iter().map(|(id, error)| not_gone(&id, error)).collect()
}

fn not_gone(id: &LoopId, error: io::Error) -> Error {
    Error::new(error).context(format!("cannot remove all that is left of loop {id}"))
}
