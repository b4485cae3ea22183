//! `crew show --log`: what the agent printed, without codes that would control the terminal. With
//! `-f` it continues to print, across iterations, until the loop is over or its owner is gone.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use super::print;
use crate::drive::owner::{gone_why, owner_is_gone};
use crate::engine::record::{Driver, Loop};
use crate::world::clock;
use crate::world::files::disk;
use crate::world::store::logs::tail::Tail;
use crate::world::store::{self, Home, logs};

/// The most of a log that is shown, which is all that is kept.
const SHOWN: u64 = 20 << 20;
/// With `-f`, how much of the earlier output is shown.
const BEFORE: u64 = 16 << 10;
const LOOK: Duration = Duration::from_millis(200);
/// The longest line that is waited for, in bytes.
const LINE: usize = 64 << 10;

/// Prints the log of iteration `number`, else of the latest iteration that has one.
pub fn log(home: &Home, record: Loop, number: Option<u32>, follow: bool) -> Result<()> {
    let iteration = number.unwrap_or_else(|| latest(home, &record));
    let path = logs::path(home, &record.id, iteration);
    let is_due = follow && may_come(&record, iteration);
    if !disk::exists(&path) && !is_due {
        bail!("{}", missing(&record, iteration));
    }
    let mut lines = Lines::open(&path, if follow { BEFORE } else { SHOWN })?;
    if follow {
        return follow_on(home, record, iteration, number.is_none(), lines);
    }
    lines.give(true)?;
    Ok(())
}

fn follow_on(
    home: &Home,
    mut record: Loop,
    mut iteration: u32,
    all: bool,
    mut lines: Lines,
) -> Result<()> {
    loop {
        let gone = owner_is_gone(home, &record);
        let is_whole = record.iteration() > iteration || !record.is_live() || gone;
        if !lines.give(is_whole)? {
            return Ok(());
        }
        if record.iteration() > iteration {
            if !all {
                return Ok(());
            }
            iteration += 1;
            print::err(&format!("crew: iteration {iteration}"));
            lines = Lines::open(&logs::path(home, &record.id, iteration), SHOWN)?;
            continue;
        }
        if !record.is_live() {
            print::err(&format!("crew: loop {} is over: {}", record.id, record.status_word()));
            return Ok(());
        }
        if gone {
            print::err(&format!("crew: loop {}: {}", record.id, gone_why(&record)));
            return Ok(());
        }
        clock::sleep(LOOK);
        // Read before the log is: when the record says that the loop is over, the log is complete.
        record = store::load(home, &record.id)?;
    }
}

/// A log on its way to the terminal, in whole lines: reading may stop in the middle of a character
/// or a code.
struct Lines {
    tail: Tail,
    held: Vec<u8>,
}

impl Lines {
    fn open(log: &Path, most: u64) -> Result<Self> {
        Ok(Self { tail: Tail::open(log, most)?, held: Vec::new() })
    }

    /// Prints the complete lines, and the rest too if no more will come. `false` when the reader is
    /// gone.
    fn give(&mut self, is_whole: bool) -> Result<bool> {
        loop {
            let bytes = self.tail.next()?;
            let is_end = bytes.is_empty();
            self.held.extend(bytes);
            let lines = self.held.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let all = (is_end && is_whole) || (lines == 0 && self.held.len() > LINE);
            let given = if all { self.held.len() } else { lines };
            if !print::offer(&String::from_utf8_lossy(&self.held[..given])) {
                return Ok(false);
            }
            self.held.drain(..given);
            if is_end {
                return Ok(true);
            }
        }
    }
}

fn latest(home: &Home, record: &Loop) -> u32 {
    let running = record.iteration();
    let has_log = |number: &u32| disk::exists(&logs::path(home, &record.id, *number));
    (1..=running).rev().take(100).find(has_log).unwrap_or(running)
}

fn may_come(record: &Loop, iteration: u32) -> bool {
    record.is_live() && record.driver() == Driver::Process && iteration >= record.iteration()
}

fn missing(record: &Loop, iteration: u32) -> String {
    let id = &record.id;
    if record.driver() == Driver::Process {
        return format!(
            "there is no log of iteration {iteration} of loop {id}\nhint: crew show {id}"
        );
    }
    let transcript = record.state.session.transcript.as_ref();
    let hint = transcript.map_or_else(
        || format!("crew show {id}"),
        |file| format!("the client's own is {}", file.display()),
    );
    format!("loop {id} runs in a session: crew keeps no log of it\nhint: {hint}")
}
