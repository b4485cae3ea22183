//! `crew fleet show`: how a task stands, and the story of its newest loop, where that is on this
//! machine; else the journal of its lease and the end of its jobs' log, as far as they are here.
//! Why its landing was red is in its lease or, where it could not be sent back, in that log.

use anyhow::Result;

use super::status::{FleetView, at, host};
use super::{requested, task};
use crate::cmd::{print, reading, show as loops};
use crate::engine::fleet::way_out::way_out;
use crate::engine::fleet::{Fleet, Lease, Refusal, TaskId};
use crate::engine::record::Loop;
use crate::engine::text::{Shown, clean, distinct};
use crate::engine::view::Step;
use crate::exit::Exit;
use crate::report::colour;
use crate::report::fleet::{events, status};
use crate::report::page;
use crate::world::files::disk;
use crate::world::store::{self, Home, fleets};

/// The most entries of a journal that are printed.
const ENTRIES_MAX: usize = 200;
/// The most lines of a log or an output that are printed.
const END_LINES: usize = 20;
/// How much of the end of a log is read, in bytes.
const LOG_BYTES: u64 = 16 << 10;

/// Shows what became of a task.
pub fn show(name: &str, fleet: Option<&str>) -> Result<Exit> {
    let (home, memory, fleet) = requested(fleet)?;
    let kept = memory.lease(&task(name)?)?;
    let lease = &kept.value;
    print::out(&format!("task {name} of fleet {}, branch {}", fleet.name, lease.branch));
    if let Some(ending) = lease.ending() {
        print::page(&colour::words(&clean(&events::ended(ending))));
    }
    let record = lease.loop_id.as_ref().and_then(|id| store::load(&home, id).ok());
    let own = record.as_ref().and_then(|record| record.state.ending.as_ref());
    // The page of a loop that ended the task itself says what follows.
    let is_own = own.map(|ending| &ending.why) == lease.ending().map(|ending| &ending.why);
    let steps = if is_own { Vec::new() } else { way_out(&fleet, lease) };
    if !record.as_ref().is_some_and(Loop::is_live) {
        print_steps(&steps);
    }
    print_red(&fleet, lease);
    if let Some(record) = record {
        print::out("");
        loops::of_task(&home, &record, steps)?;
        if !is_own && lease.sent_back.is_none() {
            print_log(&home, &fleet.name, lease.id());
        }
        return Ok(Exit::SUCCESS);
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
        print::page(&text);
    }
}

/// Prints the check that failed when the task was to land, and the end of its output.
fn print_red(fleet: &Fleet, lease: &Lease) {
    let Some(Refusal::Red { run, output }) = &lease.sent_back else { return };
    if run.is_empty() {
        // Its ending says it in a sentence.
        return;
    }
    let lines: Vec<&str> = output.lines().collect();
    let said = if lines.is_empty() { "printed nothing" } else { "its output ended with:" };
    print::out(&format!("\nbefore its landing on {}, `{run}` failed and {said}", fleet.base));
    print_end(&lines);
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
    print_end(&lines);
}

fn print_end(lines: &[&str]) {
    for line in &lines[lines.len().saturating_sub(END_LINES)..] {
        print::out(&format!("  {line}"));
    }
}
