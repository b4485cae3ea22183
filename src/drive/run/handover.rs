//! Hands a loop to a separate crew process, which outlives the terminal it was started from. The
//! loop has an owner at every moment: the old one records the new one, which begins only when it
//! finds itself in the record.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::drive::owner::{is, myself};
use crate::engine::journal::Event;
use crate::engine::record::{Loop, LoopId, Owner};
use crate::world::clock::Deadline;
use crate::world::process::detach;
use crate::world::store::{self, Home};

/// How long the new crew waits for the loop.
const WITHIN: Duration = Duration::from_secs(10);

/// A loop owned by a separate crew process.
#[derive(Debug)]
pub struct Detached {
    pub record: Loop,
    pub pid: i32,
    /// The file with that crew's output.
    pub output: PathBuf,
}

/// Starts the new crew with `flags` and makes it the owner.
pub fn hand_over(home: &Home, record: &Loop, flags: &[&str]) -> Result<Detached> {
    let output = home.loop_file(&record.id, "run.log");
    let arguments = [&["drive", record.id.as_str()], flags].concat();
    let variables = [("CREW_HOME", home.root().display().to_string())];
    let process = detach::start(&arguments, &record.place.folder, &variables, &output)
        .context("cannot start a crew in the background")?;
    let pid = process.pid;
    let held = store::hold(home, &record.id, store::LOCK_WAIT)?;
    let mut found = held.load()?;
    found.state.owner = Owner { process, ..found.state.owner };
    let record = held.record(found, |next| Event::changed("detached", next))?;
    Ok(Detached { record, pid, output })
}

/// Waits until this process is the loop's owner.
pub fn take(home: &Home, id: &LoopId) -> Result<Loop> {
    let me = myself()?.process;
    let mine = || {
        let found = store::load(home, id).ok()?;
        is(&found.state.owner, &me).then_some(found)
    };
    let found = Deadline::after(WITHIN).poll(Duration::from_millis(20), mine);
    found.with_context(|| format!("loop {id} was not handed to this process"))
}
