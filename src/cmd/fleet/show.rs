//! `crew fleet show`: how a task stands, and the story of its newest loop, where that is on this
//! machine; else the journal of its lease and the end of its jobs' log, as far as they are here.

use anyhow::Result;

use super::status::{FleetView, at, host};
use super::{requested, task};
use crate::cli::ShowArgs;
use crate::cmd::{print, reading, show as loops};
use crate::engine::fleet::task::TaskId;
use crate::engine::fleet::way_out::way_out;
use crate::engine::page::Step;
use crate::engine::record::Loop;
use crate::engine::text::{Shown, distinct};
use crate::exit::Exit;
use crate::report::fleet::{events, status};
use crate::report::page;
use crate::world::files::disk;
use crate::world::store::{self, Home, fleets};

/// The most entries of a journal that are printed.
const ENTRIES_MAX: usize = 200;
/// The most lines of a log that are printed, and how much of its end is read, in bytes.
const LOG_LINES: usize = 20;
const LOG_BYTES: u64 = 16 << 10;

/// Shows what became of a task.
pub fn show(name: &str, fleet: Option<&str>) -> Result<Exit> {
    let (home, memory, fleet) = requested(fleet)?;
    let kept = memory.lease(&task(name)?)?;
    let lease = &kept.value;
    print::out(&format!("task {name} of fleet {}, branch {}", fleet.name, lease.branch));
    if let Some(ending) = lease.ending() {
        print::out(&events::ended(ending));
    }
    let record = lease.loop_id.as_ref().and_then(|id| store::load(&home, id).ok());
    let own = record.as_ref().and_then(|record| record.state.ending.as_ref());
    // The page of a loop that ended the task itself says what follows.
    if own.map(|ending| &ending.why) != lease.ending().map(|ending| &ending.why) {
        print_steps(&way_out(&fleet, lease));
    }
    if let Some(Loop { id, .. }) = record {
        print::out("");
        return loops::show(&ShowArgs { name: Some(id.to_string()), ..ShowArgs::default() });
    }
    if lease.ending().is_none() {
        let standing = FleetView::of(&home, &memory)?.standing();
        if let Some(row) = standing.row_of(lease.id()) {
            print::out(&status::stands(&standing, row, at(&host())));
        }
    }
    let journal = distinct(memory.journal(&kept, ENTRIES_MAX)?.into_iter());
    if !journal.is_empty() {
        print::out("");
    }
    for line in &journal {
        print::out(&Shown(line).to_string());
    }
    print_log(&home, &fleet.name, lease.id());
    Ok(Exit::SUCCESS)
}

/// Prints a row for each command, and what it is for.
fn print_steps(steps: &[Step]) {
    for (name, step) in ["next", "then"].into_iter().zip(steps) {
        let mut text = String::new();
        page::step(&mut text, name, step, reading().width);
        print::out(&text);
    }
}

/// Prints the end of what a task's jobs said on this machine, if they did, below its path.
fn print_log(home: &Home, fleet: &str, task: &TaskId) {
    let log = fleets::log(home, fleet, task);
    let Ok((text, _)) = disk::read_end(&log, 0, LOG_BYTES) else { return };
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return;
    }
    print::out(&format!("\nthe end of {}:", log.display()));
    for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
        print::out(&format!("  {line}"));
    }
}
