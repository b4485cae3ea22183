//! The record of each loop on disk. It is read and written under the loop's lock, in one order: journal,
//! then state. What this crew does not understand it never writes, and what is broken it keeps aside and
//! rebuilds from the journal.

pub mod home;
pub mod journal;
pub mod logs;
pub mod settings;
pub mod trust;
pub mod view;
pub mod wakes;

use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use self::home::Home;
use self::view::BRANCHES;
use super::files::disk::{self, Durability, Lock};
use super::files::room;
use super::{clock, fault};
use crate::engine::boundary::facts::ControlRequest;
use crate::engine::journal::{Event, JournalEntry, SCHEMA, replay};
use crate::engine::record::moment::Moment;
use crate::engine::record::upgrade::upgraded;
use crate::engine::record::{Loop, LoopId, VERSION};
use crate::engine::words::handoff::file_time;
use crate::parse::order;

/// The longest wait for a loop's lock.
pub const LOCK_WAIT: Duration = Duration::from_secs(2);
/// The most loops of a home that are looked at.
const LOOPS_MAX: usize = 100_000;
/// The largest record that is read.
const RECORD_BYTES: u64 = 32 << 20;
/// The largest order file that is read.
const ORDER_BYTES: u64 = 64 << 10;

/// The reason of a pause that breaks the running iteration off.
const PAUSE_NOW: &str = "now";

/// What this process rebuilt, until it is said.
static REBUILT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What to tell of records that were rebuilt from their journals since this was last asked.
pub fn rebuilt() -> Vec<String> {
    std::mem::take(&mut *REBUILT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Why a record could not be had.
#[derive(Debug)]
pub enum StoreError {
    /// There is no such loop.
    Absent(LoopId),
    /// A later crew wrote it.
    Newer {
        id: LoopId,
        made_by: String,
        /// Whether it is over, as far as this crew can tell.
        is_over: bool,
    },
    /// It breaks its own rules, and its journal does not mend it.
    Corrupt {
        id: LoopId,
        why: String,
    },
    /// Somebody keeps its lock.
    Busy(LoopId),
    Io(io::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(id) => write!(out, "there is no loop {id}"),
            Self::Newer { id, made_by, is_over: true } => write!(
                out,
                "loop {id} is over, recorded by crew {made_by}, newer than this one; update crew to read it"
            ),
            Self::Newer { id, made_by, .. } => write!(
                out,
                "loop {id} was started by crew {made_by}, newer than this one; update crew to go on"
            ),
            Self::Corrupt { id, why } => write!(
                out,
                "the record of loop {id} is broken ({why}) and was kept aside; its journal is broken too"
            ),
            Self::Busy(id) => write!(out, "loop {id} is busy; try again in a moment"),
            Self::Io(error) => write!(out, "{error}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
    #[serde(default)]
    made_by: String,
}

/// Whether a loop has a record, sound or not, or one that cannot be looked at. Without one a pointer to it
/// means nothing.
pub fn is_there(home: &Home, id: &LoopId) -> bool {
    !disk::is_missing(&home.loop_file(id, "loop.json"))
}

/// Reads a record; without a lock, unless it is broken and must be rebuilt.
pub fn load(home: &Home, id: &LoopId) -> Result<Loop, StoreError> {
    match read(home, id) {
        Err(StoreError::Corrupt { .. }) => hold(home, id, LOCK_WAIT)?.load(),
        other => other,
    }
}

/// Whether an older crew wrote a record last, in a format of its own.
pub fn is_older(home: &Home, id: &LoopId) -> Result<bool, StoreError> {
    let (_, version) = bytes(home, id)?;
    Ok(version.version < VERSION)
}

/// The bytes of a record, and what every crew can read of them.
fn bytes(home: &Home, id: &LoopId) -> Result<(Vec<u8>, Version), StoreError> {
    let bytes = disk::read(&home.loop_file(id, "loop.json"), RECORD_BYTES)?;
    let bytes = bytes.ok_or_else(|| StoreError::Absent(id.clone()))?;
    match serde_json::from_slice(&bytes) {
        Ok(version) => Ok((bytes, version)),
        Err(error) => Err(StoreError::Corrupt { id: id.clone(), why: error.to_string() }),
    }
}

/// Reads a record as it is. A rename is atomic, so it is whole.
fn read(home: &Home, id: &LoopId) -> Result<Loop, StoreError> {
    let (bytes, version) = bytes(home, id)?;
    if version.version > VERSION {
        let is_over = is_over(home, id, &bytes);
        return Err(StoreError::Newer { id: id.clone(), made_by: version.made_by, is_over });
    }
    let corrupt = |why: String| StoreError::Corrupt { id: id.clone(), why };
    let record: Loop =
        serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?;
    record.check().map_err(corrupt)?;
    Ok(placed(upgraded(record)))
}

/// A record with what is in none, because it is the same for all.
fn placed(mut record: Loop) -> Loop {
    record.place.branches = BRANCHES;
    record
}

/// Whether a newer crew's record says that its loop is over; where it no longer says so in this way, whether
/// the loop has a result.
fn is_over(home: &Home, id: &LoopId, record: &[u8]) -> bool {
    let record: Value = serde_json::from_slice(record).unwrap_or_default();
    match record.pointer("/state/status").and_then(Value::as_str) {
        Some(status) => status == "finished",
        None => disk::exists(&home.loop_file(id, "result.json")),
    }
}

/// Every loop's name of this home, at most `LOOPS_MAX`.
pub fn ids(home: &Home) -> impl Iterator<Item = LoopId> {
    disk::names(&home.loops(), LOOPS_MAX).into_iter().filter_map(|name| name.parse().ok())
}

/// Every loop of this home, the newest first; broken and newer ones are left out.
pub fn load_all(home: &Home) -> Vec<Loop> {
    look_at_all(home).map(|(loops, _)| loops).unwrap_or_default()
}

/// The same, and why each of the others could not be had. An error where the loops cannot be listed at all.
pub fn look_at_all(home: &Home) -> io::Result<(Vec<Loop>, Vec<StoreError>)> {
    let (mut loops, mut others) = (Vec::new(), Vec::new());
    for id in disk::list(&home.loops(), LOOPS_MAX)?.iter().filter_map(|name| name.parse().ok()) {
        match load(home, &id) {
            Ok(record) => loops.push(record),
            // Only a start that was cut off, or one that begins, has a folder and no record.
            Err(StoreError::Absent(_)) => {}
            Err(error) => others.push(error),
        }
    }
    loops.sort_by_key(|record| std::cmp::Reverse(record.started_at));
    Ok((loops, others))
}

/// The order that waits for a loop, if one does. A cancel outranks a pause.
pub fn order(home: &Home, id: &LoopId) -> Option<ControlRequest> {
    let cancel = home.loop_file(id, "cancel");
    if disk::exists(&cancel) {
        // Its being there is the order; where it cannot be read only its reason is lost.
        let text = disk::read_text(&cancel, ORDER_BYTES).ok().flatten().unwrap_or_default();
        let line = order::read(&text);
        return Some(ControlRequest::Cancel { by: line.by, reason: line.reason });
    }
    disk::exists(&home.loop_file(id, "pause")).then_some(ControlRequest::Pause)
}

/// Whether an order waits that leaves no iteration its end: a cancel, or a pause that is to take hold at once.
pub fn breaks_off(home: &Home, id: &LoopId) -> bool {
    match order(home, id) {
        Some(ControlRequest::Cancel { .. }) => true,
        Some(ControlRequest::Pause) => pauses_now(home, id),
        None => false,
    }
}

fn pauses_now(home: &Home, id: &LoopId) -> bool {
    let text = disk::read_text(&home.loop_file(id, "pause"), ORDER_BYTES).ok().flatten();
    text.is_some_and(|text| order::read(&text).reason.as_deref() == Some(PAUSE_NOW))
}

/// Leaves the order to cancel; needs no lock and no model, and nothing takes it back.
pub fn order_cancel(home: &Home, id: &LoopId, by: &str, reason: Option<&str>) -> io::Result<()> {
    leave(home, id, "cancel", &order::write(clock::now().wall, by, reason), true)
}

/// Leaves the order to pause: after the running iteration, or at once.
pub fn order_pause(home: &Home, id: &LoopId, by: &str, at_once: bool) -> io::Result<()> {
    let line = order::write(clock::now().wall, by, at_once.then_some(PAUSE_NOW));
    leave(home, id, "pause", &line, !at_once)
}

/// Leaves an order, on a full disk in the room that is kept for it, or without a word where `may_be_empty`: a
/// file that is there is an order.
fn leave(home: &Home, id: &LoopId, name: &str, line: &str, may_be_empty: bool) -> io::Result<()> {
    let file = home.loop_file(id, name);
    let written = disk::write(&file, line.as_bytes(), Durability::Machine);
    written.or_else(|error| {
        if room::spend(home, id, &file, line).is_ok() {
            return Ok(());
        }
        let is_left = may_be_empty && (disk::exists(&file) || disk::create_private(&file).is_ok());
        if is_left { Ok(()) } else { Err(error) }
    })
}

/// Takes every order and mark of an earlier owner away: the user wants the loop to go on.
pub fn clear_orders(home: &Home, id: &LoopId) -> io::Result<()> {
    for name in ["cancel", "pause", "ended", "told"] {
        disk::remove(&home.loop_file(id, name))?;
    }
    Ok(())
}

/// Takes the boundary's lock, held for its whole life, waiting at most `wait`. `None` when another boundary
/// has it.
pub fn boundary_lock(home: &Home, id: &LoopId, wait: Duration) -> io::Result<Option<Lock>> {
    disk::lock(&home.loop_file(id, "boundary.lock"), wait)
}

/// Takes a loop's lock, waiting at most `wait`.
pub fn hold(home: &Home, id: &LoopId, wait: Duration) -> Result<Held, StoreError> {
    if disk::is_missing(&home.loop_folder(id)) {
        return Err(StoreError::Absent(id.clone()));
    }
    let lock = disk::lock(&home.loop_file(id, "loop.lock"), wait)?;
    let lock = lock.ok_or_else(|| StoreError::Busy(id.clone()))?;
    Ok(Held { home: home.clone(), id: id.clone(), _lock: lock })
}

/// A loop whose lock is held.
#[derive(Debug)]
#[must_use]
pub struct Held {
    home: Home,
    id: LoopId,
    _lock: Lock,
}

impl Held {
    /// Reads the record; a broken one is kept aside and rebuilt from the journal, once.
    pub fn load(&self) -> Result<Loop, StoreError> {
        match read(&self.home, &self.id) {
            Err(StoreError::Corrupt { why, .. }) => self.rebuild(why),
            other => other,
        }
    }

    fn rebuild(&self, why: String) -> Result<Loop, StoreError> {
        let now = clock::now();
        let name = format!("loop.json.corrupt-{}", file_time(now.wall));
        let path = self.home.loop_file(&self.id, "loop.json");
        let entries = journal::read(&self.home.loop_file(&self.id, "journal.jsonl"))?;
        let Some(record) = replay(&entries).map(placed) else {
            disk::move_aside(&path, &name)?;
            return Err(StoreError::Corrupt { id: self.id.clone(), why });
        };
        // The broken one stays in its place until it is replaced: a crash here must not lose the loop.
        disk::copy_aside(&path, &name)?;
        self.write(&record)?;
        let told = format!("the record was broken ({why}); rebuilt, the old kept as {name}");
        self.note(&record, now, told.as_str())?;
        REBUILT
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(format!("loop {}: {told}", self.id));
        Ok(record)
    }

    /// Records a change: journal, then state. `event` is made from the record as it will stand.
    pub fn record(&self, mut next: Loop, event: impl FnOnce(&Loop) -> Event) -> io::Result<Loop> {
        next.state.generation += 1;
        next.check().map_err(io::Error::other)?;
        let entry = JournalEntry {
            schema: SCHEMA,
            at: clock::now().wall,
            generation: next.state.generation,
            event: event(&next),
        };
        journal::append(&self.home.loop_file(&self.id, "journal.jsonl"), &entry)?;
        fault::point("record.between")?;
        self.write(&next)?;
        fault::point("record.after")?;
        Ok(next)
    }

    /// Journals something that changes nothing.
    pub fn note(&self, record: &Loop, at: Moment, what: impl Into<String>) -> io::Result<()> {
        let event = Event::Noted { what: what.into() };
        let generation = record.state.generation;
        let entry = JournalEntry { schema: SCHEMA, at: at.wall, generation, event };
        journal::append(&self.home.loop_file(&self.id, "journal.jsonl"), &entry)
    }

    /// Journals something once in the loop's life; `mark` names it. Whether it was the first time.
    pub fn note_once(
        &self,
        record: &Loop,
        mark: &str,
        what: impl FnOnce() -> String,
    ) -> io::Result<bool> {
        let file = self.home.loop_file(&self.id, mark);
        if disk::exists(&file) {
            return Ok(false);
        }
        self.note(record, clock::now(), what())?;
        disk::write(&file, b"", Durability::Process)?;
        Ok(true)
    }

    fn write(&self, record: &Loop) -> io::Result<()> {
        let bytes = serde_json::to_vec(record)?;
        disk::write(&self.home.loop_file(&self.id, "loop.json"), &bytes, Durability::Machine)
    }
}
