//! The record of each loop on disk. It is read and written under the loop's lock, the journal
//! before the state. A record that this crew does not understand is never overwritten; a broken one
//! is copied aside and rebuilt from the journal.

pub mod journal;
pub mod removal;
pub mod settings;
pub mod view;
pub mod wakes;
pub mod windows;

use std::cmp::Reverse;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::files::disk::{self, Durability, Lock};
use super::{clock, fault};
pub use crate::home::{Home, hash, hash_stream, read_pointer, write_pointer};
use engine::boundary::facts::ControlRequest;
use engine::evidence::test_run::TestMemories;
use engine::journal::{Event, JournalEntry, JournalNote, SCHEMA, replay_journal};
use engine::record::{Actor, Loop, LoopId, Moment, Status, VERSION};
use engine::words::file_time;
use readers::parse::git::BRANCHES;
use readers::parse::requests::{self, RequestLine};

/// The longest wait for a loop's lock.
pub const LOCK_WAIT: Duration = Duration::from_secs(2);
/// The maximum number of loops of a home examined.
const LOOPS_MAX: usize = 100_000;
/// The largest record that is read.
const RECORD_BYTES: u64 = 32 << 20;
/// The largest file of a control request that is read.
const REQUEST_BYTES: u64 = 64 << 10;

/// Messages about the records that this process rebuilt and has not reported yet.
static REBUILT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The messages about records rebuilt from their journals since the last call.
pub fn take_rebuilt() -> Vec<String> {
    std::mem::take(&mut *REBUILT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The loop does not exist.
    #[error("there is no loop {0}")]
    Absent(LoopId),
    /// A later crew wrote it; `is_over` if the loop has ended, as far as this crew knows.
    #[error("loop {id} {}", explain_newer(.made_by, *.is_over))]
    Newer { id: LoopId, made_by: String, is_over: bool },
    /// It breaks its own rules and cannot be rebuilt from its journal.
    #[error("the record of loop {id} is broken, and its journal cannot replace it: {why}")]
    Corrupt { id: LoopId, why: String },
    /// Another process holds its lock.
    #[error("loop {0} is busy; try again in a moment")]
    Busy(LoopId),
    /// Its files cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn explain_newer(made_by: &str, is_over: bool) -> String {
    let (what, to) =
        if is_over { ("is over, recorded", "read") } else { ("was started", "continue") };
    format!("{what} by crew {made_by}, newer than this one; update crew to {to} it")
}

/// The value in a JSON file that can be recreated; `None` if it is missing or cannot be read.
pub fn read_json<T: DeserializeOwned>(file: &Path, most: u64) -> Option<T> {
    serde_json::from_slice(&disk::read(file, most).ok()??).ok()
}

/// Replaces a JSON file.
pub fn write_json(file: &Path, value: &impl Serialize, durability: Durability) -> io::Result<()> {
    disk::write(file, &serde_json::to_vec(value)?, durability)
}

/// The file of what a loop remembers about its checks' tests. The names of all tests would make the
/// record, which every boundary rewrites, too large.
const TESTS: &str = "tests.json";
/// The largest such file, in bytes.
const TESTS_BYTES: u64 = 64 << 20;

/// Reads what a loop remembers about its checks' tests; empty if it cannot be read.
pub fn read_tests(home: &Home, id: &LoopId) -> TestMemories {
    read_json(&home.loop_file(id, TESTS), TESTS_BYTES).unwrap_or_default()
}

/// Replaces what a loop remembers about its checks' tests.
pub fn write_tests(home: &Home, id: &LoopId, memories: &TestMemories) -> io::Result<()> {
    write_json(&home.loop_file(id, TESTS), memories, Durability::Process)
}

/// The part of a record that every version of crew can read.
#[derive(Deserialize)]
struct Version {
    version: u32,
    #[serde(default)]
    made_by: String,
}

/// Whether a loop has a record, even a broken or unreadable one. A pointer to a loop without a
/// record means nothing.
pub fn is_there(home: &Home, id: &LoopId) -> bool {
    !disk::is_missing(&home.loop_file(id, "loop.json"))
}

/// Reads a record. It takes no lock unless the record is broken and must be rebuilt.
pub fn load(home: &Home, id: &LoopId) -> Result<Loop, StoreError> {
    match read_record(home, id) {
        Err(StoreError::Corrupt { .. }) => hold_loop(home, id, LOCK_WAIT)?.load(),
        other => other,
    }
}

/// Reads a record as it is. A rename is atomic, so the file is complete.
fn read_record(home: &Home, id: &LoopId) -> Result<Loop, StoreError> {
    let bytes = disk::read(&home.loop_file(id, "loop.json"), RECORD_BYTES)?;
    let bytes = bytes.ok_or_else(|| StoreError::Absent(id.clone()))?;
    let Version { version, made_by } =
        serde_json::from_slice(&bytes).map_err(|error| corrupt_record(id, &error))?;
    if version > VERSION {
        let is_over = is_over(home, id, &bytes);
        return Err(StoreError::Newer { id: id.clone(), made_by, is_over });
    }
    let record: Loop =
        serde_json::from_slice(&bytes).map_err(|error| corrupt_record(id, &error))?;
    record.check_rules().map_err(|why| corrupt_record(id, &why))?;
    Ok(with_place(record))
}

fn corrupt_record(id: &LoopId, why: &impl ToString) -> StoreError {
    StoreError::Corrupt { id: id.clone(), why: why.to_string() }
}

/// Adds the fields that a record does not store because they are equal for all loops.
fn with_place(mut record: Loop) -> Loop {
    record.place.branches = BRANCHES;
    record
}

/// Whether a newer crew's record says that its loop has ended. If the field is missing, whether the
/// loop has a result.
fn is_over(home: &Home, id: &LoopId, record: &[u8]) -> bool {
    let record: Value = serde_json::from_slice(record).unwrap_or_default();
    match record.pointer("/state/status").and_then(Value::as_str) {
        Some(status) => status == "finished",
        None => disk::exists(&home.loop_file(id, "result.json")),
    }
}

/// The ids of all loops in this home, at most `LOOPS_MAX`.
pub fn list_ids(home: &Home) -> impl Iterator<Item = LoopId> {
    disk::names(&home.loops_folder(), LOOPS_MAX).into_iter().filter_map(|name| name.parse().ok())
}

/// Every loop in this home, newest first; unreadable ones are left out.
pub fn load_all(home: &Home) -> Vec<Loop> {
    look_at_all(home).map(|(loops, _)| loops).unwrap_or_default()
}

/// Every loop whose record can be read without locking or rebuilding it.
pub fn readable_loops(home: &Home) -> Vec<Loop> {
    newest_first(list_ids(home).filter_map(|id| read_record(home, &id).ok()).collect())
}

fn newest_first(mut loops: Vec<Loop>) -> Vec<Loop> {
    loops.sort_by_key(|record| Reverse(record.started_at));
    loops
}

/// Every loop, and the error for each record that could not be read. Fails if the loops cannot be
/// listed.
pub fn look_at_all(home: &Home) -> io::Result<(Vec<Loop>, Vec<StoreError>)> {
    let (mut loops, mut others) = (Vec::new(), Vec::new());
    for id in disk::list_names(&home.loops_folder(), LOOPS_MAX)?
        .iter()
        .filter_map(|name| name.parse().ok())
    {
        match load(home, &id) {
            Ok(record) => loops.push(record),
            // A folder without a record is a start that was interrupted or is in progress.
            Err(StoreError::Absent(_)) => {}
            Err(error) => others.push(error),
        }
    }
    Ok((newest_first(loops), others))
}

/// The pending control request of a loop. A cancel overrides a pause.
pub fn pending_request(home: &Home, id: &LoopId) -> Option<ControlRequest> {
    let cancel = home.loop_file(id, "cancel");
    if disk::exists(&cancel) {
        // The file's existence is the request. If it cannot be read, only the reason is lost.
        let RequestLine { by, reason } = requests::read_request(&request_text(&cancel));
        return Some(ControlRequest::Cancel { by, reason });
    }
    if disk::exists(&home.loop_file(id, "pause")) { Some(ControlRequest::Pause) } else { None }
}

/// Whether the pending request ends the running iteration: a cancel, or an immediate pause.
pub fn breaks_off(home: &Home, id: &LoopId) -> bool {
    match pending_request(home, id) {
        Some(ControlRequest::Cancel { .. }) => true,
        Some(ControlRequest::Pause) => {
            requests::is_pause_at_once(&request_text(&home.loop_file(id, "pause")))
        }
        None => false,
    }
}

/// The line of a request; empty if it cannot be read.
fn request_text(file: &Path) -> String {
    disk::read_text(file, REQUEST_BYTES).ok().flatten().unwrap_or_default()
}

/// Whether a pause is pending for a loop that has not stopped yet.
pub fn is_pausing(home: &Home, record: &Loop) -> bool {
    let is_over = !record.is_live() || record.state.status() == Status::Paused;
    !is_over && pending_request(home, &record.id) == Some(ControlRequest::Pause)
}

/// Requests a cancel. It needs no lock and no model, and nothing can revoke it.
pub fn request_cancel(home: &Home, id: &LoopId, by: Actor, reason: Option<&str>) -> io::Result<()> {
    leave_request(home, id, "cancel", &requests::write_request(clock::now().wall, by, reason), true)
}

/// Requests a pause, which takes effect after the running iteration or immediately.
pub fn request_pause(home: &Home, id: &LoopId, by: Actor, at_once: bool) -> io::Result<()> {
    let line = requests::write_pause(clock::now().wall, by, at_once);
    leave_request(home, id, "pause", &line, !at_once)
}

/// Writes a request. On a full disk it uses the reserved space or, if `may_be_empty`, writes an
/// empty file, because the file's existence is already a request.
fn leave_request(
    home: &Home,
    id: &LoopId,
    name: &str,
    line: &str,
    may_be_empty: bool,
) -> io::Result<()> {
    let file = home.loop_file(id, name);
    let written = disk::write(&file, line.as_bytes(), Durability::Machine);
    if written.is_ok() || spend_room(home, id, &file, line).is_ok() {
        return Ok(());
    }
    let is_left = may_be_empty && (disk::exists(&file) || disk::create_private(&file).is_ok());
    if is_left { Ok(()) } else { written }
}

// Disk space reserved by a live loop, so that on a full disk it can still accept a request and be
// recorded as ended: overwriting a file in place needs no new block, and releasing the file frees
// some. On a copy-on-write file system this may help but is not guaranteed.

/// The file that reserves space, and its size: enough for a control request, a record of ten
/// thousand iterations, its line in the journal, and a page.
const ROOM: &str = "room";
const ROOM_BYTES: usize = 256 << 10;

/// Reserves space for a loop that starts or resumes. Without enough space the loop still continues.
pub fn keep_room(home: &Home, id: &LoopId) {
    let file = home.loop_file(id, ROOM);
    if disk::size(&file) < ROOM_BYTES as u64 {
        let _ = disk::remove(&file);
        let kept = disk::create_private(&file);
        if kept.and_then(|mut kept| kept.write_all(&vec![b'\n'; ROOM_BYTES])).is_err() {
            let _ = disk::remove(&file);
        }
    }
}

/// Releases the reserved space for the next write; `false` if none was reserved.
pub fn give_up_room(home: &Home, id: &LoopId) -> bool {
    let file = home.loop_file(id, ROOM);
    disk::exists(&file) && disk::remove(&file).is_ok()
}

/// Turns the reserved file into the file `to`, whose contents are then only `text`.
#[expect(
    clippy::disallowed_methods,
    reason = "a file that is there keeps its space on a full disk"
)]
fn spend_room(home: &Home, id: &LoopId, to: &Path, text: &str) -> io::Result<()> {
    // The name contains this process's id, so that no other process can use the space too.
    let mine = home.loop_file(id, &format!(".room.{}.tmp", std::process::id()));
    disk::rename(&home.loop_file(id, ROOM), &mine)?;
    let mut file = OpenOptions::new().write(true).open(&mine)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_all()?;
    disk::rename(&mine, to)
}

/// Removes every earlier request and mark, because the user wants the loop to continue.
pub fn clear_requests(home: &Home, id: &LoopId) -> io::Result<()> {
    for name in ["cancel", "pause", "ended", "reported"] {
        disk::remove(&home.loop_file(id, name))?;
    }
    Ok(())
}

/// Takes the lock for a whole boundary, waiting at most `wait`. `None` when another boundary holds
/// it.
pub fn boundary_lock(home: &Home, id: &LoopId, wait: Duration) -> io::Result<Option<Lock>> {
    disk::take_lock(&home.loop_file(id, "boundary.lock"), wait)
}

/// Takes a loop's lock, waiting at most `wait`.
pub fn hold_loop(home: &Home, id: &LoopId, wait: Duration) -> Result<Held, StoreError> {
    if disk::is_missing(&home.loop_folder(id)) {
        return Err(StoreError::Absent(id.clone()));
    }
    let lock = disk::take_lock(&home.loop_file(id, "loop.lock"), wait)?;
    let lock = lock.ok_or_else(|| StoreError::Busy(id.clone()))?;
    Ok(Held { home: home.clone(), id: id.clone(), _lock: lock })
}

/// Adds an entry to a loop's journal that changes nothing.
pub fn note_in_journal(
    home: &Home,
    id: &LoopId,
    note: impl Into<JournalNote>,
) -> Result<(), StoreError> {
    let held = hold_loop(home, id, LOCK_WAIT)?;
    Ok(held.note(&held.load()?, clock::now(), note)?)
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
    /// Reads the record; a broken one is copied aside and rebuilt from the journal, once.
    pub fn load(&self) -> Result<Loop, StoreError> {
        match read_record(&self.home, &self.id) {
            Err(StoreError::Corrupt { why, .. }) => self.rebuild_record(&why),
            other => other,
        }
    }

    fn rebuild_record(&self, why: &str) -> Result<Loop, StoreError> {
        let now = clock::now();
        let name = format!("loop.json.corrupt-{}", file_time(now.wall));
        let path = self.home.loop_file(&self.id, "loop.json");
        let mut entries = Vec::new();
        let journal = self.home.loop_file(&self.id, "journal.jsonl");
        let extent = journal::read_entries(&journal, |entry| entries.push(entry))?;
        let replayed = if extent.cut { None } else { replay_journal(&entries).map(with_place) };
        // If that fails both files stay, and the error names their folder for a person to look
        // there.
        let Some(record) = replayed else {
            let folder = path.parent().unwrap_or(&path).display();
            let part = if extent.cut { ", whose journal is too long to be read whole" } else { "" };
            return Err(corrupt_record(&self.id, &format!("{why}; both are in {folder}{part}")));
        };
        // The broken record stays in place until it is replaced: a crash here must not lose the
        // loop.
        disk::copy_aside(&path, &name)?;
        self.write_record(&record)?;
        let note = format!("the record was broken ({why}); rebuilt, the old kept as {name}");
        self.note(&record, now, note.as_str())?;
        REBUILT
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(format!("loop {}: {note}", self.id));
        Ok(record)
    }

    /// Records a change: journal, then state. `event` is made from the new record.
    pub fn record(&self, mut next: Loop, event: impl FnOnce(&Loop) -> Event) -> io::Result<Loop> {
        let at = clock::now().wall;
        next.state.count_write(at);
        next.check_rules().map_err(io::Error::other)?;
        self.append_event(&next, at, event(&next))?;
        fault::point("record.between")?;
        self.write_record(&next)?;
        fault::point("record.after")?;
        Ok(next)
    }

    /// Records a change of the loaded record between boundaries; the note describes it.
    pub fn change(
        &self,
        record: &Loop,
        note: impl Into<JournalNote>,
        change: impl FnOnce(&mut Loop),
    ) -> io::Result<Loop> {
        let mut next = record.clone();
        change(&mut next);
        self.record(next, |next| Event::from_change(note, record, next))
    }

    /// Adds an entry to the journal that changes nothing.
    pub fn note(&self, record: &Loop, at: Moment, note: impl Into<JournalNote>) -> io::Result<()> {
        self.append_event(record, at.wall, Event::from_note(note))
    }

    fn append_event(&self, record: &Loop, at: DateTime<Utc>, event: Event) -> io::Result<()> {
        let entry =
            JournalEntry { schema: SCHEMA, at, generation: record.state.generation(), event };
        journal::append_entry(&self.home.loop_file(&self.id, "journal.jsonl"), &entry)
    }

    /// Adds an entry once in the loop's life, identified by `mark`. Returns whether this was the
    /// first time.
    pub fn note_once(&self, record: &Loop, mark: &str, what: &str) -> io::Result<bool> {
        let file = self.home.loop_file(&self.id, mark);
        if disk::exists(&file) {
            return Ok(false);
        }
        self.note(record, clock::now(), what)?;
        disk::write(&file, b"", Durability::Process)?;
        Ok(true)
    }

    fn write_record(&self, record: &Loop) -> io::Result<()> {
        write_json(&self.home.loop_file(&self.id, "loop.json"), record, Durability::Machine)
    }
}
