//! Hands a loop to a separate crew process, which outlives the terminal it was started from. The
//! loop has an owner at every moment: the old one records the new one, which begins only when it
//! finds itself in the record.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::drive::find::{own_process, owner_is};
use engine::record::{Loop, LoopId, Owner};
use world::clock::Deadline;
use world::process::Call;
use world::store::{self, Home, LOCK_WAIT};

/// How long the new crew waits for the loop.
const WITHIN: Duration = Duration::from_secs(10);

/// Starts the new crew with `flags` and makes it the owner. Returns the loop, and the file with
/// that crew's output.
pub fn hand_over(home: &Home, record: &Loop, flags: &[&str]) -> Result<(Loop, PathBuf)> {
    let output = home.loop_file(&record.id, "run.log");
    let arguments = [&["drive", record.id.as_str()], flags].concat();
    let process = Call::crew(home, &record.place.folder)
        .and_then(|call| call.args(arguments).detach(&output))
        .context("cannot start a crew in the background")?;
    let held = store::hold_loop(home, &record.id, LOCK_WAIT)?;
    let record = held.load()?;
    let owner = Owner { process, ..record.state.owner().clone() };
    Ok((held.change(&record, "detached", |next| next.state.name_owner(owner))?, output))
}

/// Waits until this process is the loop's owner.
pub fn take_record(home: &Home, id: &LoopId) -> Result<Loop> {
    let me = own_process()?.process;
    let found = Deadline::after(WITHIN).poll(Duration::from_millis(20), || {
        let found = store::load(home, id).ok()?;
        owner_is(found.state.owner(), &me).then_some(found)
    });
    found.with_context(|| format!("loop {id} was not handed to this process"))
}
