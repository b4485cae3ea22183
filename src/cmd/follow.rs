//! `crew show --log`: what the agent did, as its output tells it; with `--raw` what it printed. No
//! code in it controls the terminal. With `-f` it continues to print, across iterations, until the
//! loop is over or its owner is gone.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use super::print;
use crate::agents::{self, OutputReader};
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

/// What is shown of a log.
#[derive(Debug, Clone, Copy)]
pub struct LogView {
    /// The iteration; `None` is the latest that has a log, and with `follow` all after it.
    pub iteration: Option<u32>,
    pub follow: bool,
    pub raw: bool,
}

/// Prints the log of an iteration.
pub fn log(home: &Home, record: Loop, shown: LogView) -> Result<()> {
    let LogView { iteration: number, follow, .. } = shown;
    let iteration = number.unwrap_or_else(|| latest(home, &record));
    let path = logs::path(home, &record.id, iteration);
    let is_due = follow && may_come(&record, iteration);
    if !disk::exists(&path) && !is_due {
        bail!("{}", missing(&record, iteration));
    }
    let reader = reader(&record, shown.raw);
    let mut lines = Lines::open(&path, if follow { BEFORE } else { SHOWN }, reader)?;
    if follow {
        return follow_on(home, record, iteration, shown, lines);
    }
    lines.give(true)?;
    Ok(())
}

fn follow_on(
    home: &Home,
    mut record: Loop,
    mut iteration: u32,
    shown: LogView,
    mut lines: Lines,
) -> Result<()> {
    loop {
        let gone = owner_is_gone(home, &record);
        let is_whole = record.iteration() > iteration || !record.is_live() || gone;
        if !lines.give(is_whole)? {
            return Ok(());
        }
        if record.iteration() > iteration {
            if shown.iteration.is_some() {
                return Ok(());
            }
            iteration += 1;
            print::err(&format!("crew: iteration {iteration}"));
            let reader = reader(&record, shown.raw);
            lines = Lines::open(&logs::path(home, &record.id, iteration), SHOWN, reader)?;
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
    /// Tells what a line means; `None` shows it as it is.
    reader: Option<Box<dyn OutputReader>>,
    /// Whether the log is shown from the middle of a line on, which no reader understands.
    begins_within: bool,
}

impl Lines {
    fn open(log: &Path, most: u64, reader: Option<Box<dyn OutputReader>>) -> Result<Self> {
        let begins_within = disk::size(log) > most;
        Ok(Self { tail: Tail::open(log, most)?, held: Vec::new(), reader, begins_within })
    }

    fn told(&mut self, printed: &str) -> String {
        let Some(reader) = &mut self.reader else { return printed.to_owned() };
        let skipped = usize::from(std::mem::take(&mut self.begins_within));
        let told = printed.lines().skip(skipped).filter_map(|line| reader.line(line));
        told.map(|told| told + "\n").collect()
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
            let printed = String::from_utf8_lossy(&self.held[..given]).into_owned();
            self.held.drain(..given);
            if !print::offer(&self.told(&printed)) {
                return Ok(false);
            }
            if is_end {
                return Ok(true);
            }
        }
    }
}

/// What renders the log of an agent that reports events; `None` for plain text, and in a session.
fn reader(record: &Loop, raw: bool) -> Option<Box<dyn OutputReader>> {
    let agent = record.contract.run.as_ref().map(|run| &run.agent);
    agent.filter(|agent| !raw && agents::has_events(agent)).map(agents::reader)
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
