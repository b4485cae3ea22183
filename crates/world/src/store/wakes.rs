//! The companions of a session and their tickets. A companion is a process that the client runs
//! beside each stop, and it owns one file with the word `waiting` in it. The boundary turns the
//! file of the companion it chooses into a ticket, and deletes the others. A ticket is a wake-up
//! that exactly one companion may use.

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::write_json;
use crate::files::disk::{self, Durability};
use crate::home::Home;
use crate::process::identity;
use engine::record::ProcessIdentity;

/// The content of a waiting companion's file.
const WAITING: &str = "waiting";
/// The maximum number of companions of a session read, even if a folder has more.
const COMPANIONS_MAX: usize = 256;
/// The largest companion file that is read.
const TICKET_BYTES: u64 = 4096;

/// The right to wake the session once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The boundary after which it was written; the next one makes it invalid.
    pub boundaries: u64,
    pub iteration: u32,
    pub due: DateTime<Utc>,
}

/// A living companion.
#[derive(Debug)]
pub struct Companion {
    pub file: PathBuf,
    pub process: ProcessIdentity,
}

/// The content of a companion's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WakeFile {
    /// The file was deleted: the companion must exit.
    Gone,
    Waiting,
    Ticket(Ticket),
}

/// Creates this process's companion file.
pub fn register_companion(home: &Home, session_id: &str) -> io::Result<PathBuf> {
    let me = identity::this_process()
        .ok_or_else(|| io::Error::other("crew cannot identify its own process"))?;
    let folder = home.wakes_folder(session_id);
    disk::make_private_folder(&folder)?;
    let file = folder.join(format!("{}-{}", me.pid, start_digits(&me.started)));
    disk::write(&file, WAITING.as_bytes(), Durability::Process)?;
    Ok(file)
}

/// Reads a companion's file.
pub fn read_wake_file(file: &Path) -> io::Result<WakeFile> {
    let Some(text) = disk::read_text(file, TICKET_BYTES)? else { return Ok(WakeFile::Gone) };
    Ok(serde_json::from_slice(text.as_bytes()).map_or(WakeFile::Waiting, WakeFile::Ticket))
}

/// A living companion without a ticket.
pub fn find_waiting(home: &Home, session_id: &str) -> Option<Companion> {
    find_living(home, session_id, |file| *file == WakeFile::Waiting)
}

/// Whether a living companion has a ticket.
pub fn is_held(home: &Home, session_id: &str) -> bool {
    find_living(home, session_id, |file| matches!(file, WakeFile::Ticket(_))).is_some()
}

/// A living companion whose file has the wanted content.
fn find_living(
    home: &Home,
    session_id: &str,
    is_wanted: fn(&WakeFile) -> bool,
) -> Option<Companion> {
    let folder = home.wakes_folder(session_id);
    for name in disk::names(&folder, COMPANIONS_MAX) {
        let file = folder.join(&name);
        if read_wake_file(&file).is_ok_and(|content| is_wanted(&content))
            && let Some(process) = live_process(&name)
        {
            return Some(Companion { file, process });
        }
    }
    None
}

/// Deletes the file of every companion of a session except `kept`: those companions exit.
pub fn clear_companions(home: &Home, session_id: &str, kept: Option<&Path>) {
    let folder = home.wakes_folder(session_id);
    for name in disk::names(&folder, COMPANIONS_MAX) {
        let file = folder.join(name);
        if Some(file.as_path()) != kept {
            let _ = disk::remove(&file);
        }
    }
}

/// Turns a waiting companion's file into a ticket.
pub fn hand_over(file: &Path, ticket: &Ticket) -> io::Result<()> {
    write_json(file, ticket, Durability::Process)
}

/// The process of a companion's file, if it still exists.
fn live_process(name: &str) -> Option<ProcessIdentity> {
    let (pid, started) = name.split_once('-')?;
    let identity = identity::identify_process(pid.parse().ok()?)?;
    (start_digits(&identity.started) == started).then_some(identity)
}

/// A start time as part of a file name. On systems other than Linux it is a date with blanks and
/// colons.
fn start_digits(started: &str) -> String {
    started.chars().filter(char::is_ascii_alphanumeric).collect()
}
