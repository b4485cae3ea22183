//! Runs a check on the tree as a loop found it, in the scratch folder: for a session, where nothing
//! runs before iteration 1. It judges nothing.

use std::time::Duration;

use super::boundary::check::Within;
use super::scratch::ScratchFolder;
use crate::engine::evidence::test_report::{TestMemories, TestMemory};
use crate::engine::record::{Check, Loop};
use crate::world::clock::Deadline;
use crate::world::git::snapshots::Snapshots;
use crate::world::process::Stop;
use crate::world::store::Home;

/// The longest that it may take.
const WITHIN: Duration = Duration::from_secs(15 * 60);

/// Adds what a check said about its tests as the loop found them to what is remembered, unless that
/// is known. Nothing is added where it cannot run there.
pub fn remember(
    home: &Home,
    subject: &Loop,
    check: &Check,
    memories: &mut TestMemories,
    latest: Deadline,
    stop: Stop<'_>,
) {
    if memories.get(&check.run).is_some_and(|memory| memory.as_found) {
        return;
    }
    let within = Within::at_most(WITHIN.min(latest.left()), "this took 15 minutes");
    let run = || {
        let found = Snapshots::of(home, subject).as_found(&subject.id)?;
        let mut scratch = ScratchFolder::open(home, subject, within, stop).ok()?;
        scratch.lay_out(&found).ok()?;
        scratch.run(check).ok()?.test_run
    };
    let Some(run) = run() else { return };
    let found = TestMemory::as_found(&run);
    let known = memories.entry(check.run.clone()).or_insert_with(|| found.clone());
    (known.first, known.as_found) = (found.first, true);
}
