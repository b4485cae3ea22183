//! The companions of a session and their tickets. A companion is a process the client runs beside each
//! stop; it owns one file that says `waiting`, and the boundary turns that file into a ticket for the one
//! it chooses and deletes the others. A ticket is a wake-up that exactly one companion may use.

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::home::Home;
use crate::engine::record::owner::ProcessIdentity;
use crate::world::files::disk::{self, Durability};
use crate::world::process::identity;

/// What a waiting companion's file holds.
const WAITING: &str = "waiting";
/// More companions than a session can have; the rest of a flooded folder is not read.
const COMPANIONS_MAX: usize = 256;
/// The largest companion file that is read.
const TICKET_BYTES: u64 = 4096;

/// The right to wake the session once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The boundary it was written after; the next one makes it void.
    pub boundaries: u64,
    pub iteration: u32,
    pub due: DateTime<Utc>,
}

/// What a companion finds in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WakeFile {
    /// Taken away: go.
    Gone,
    Waiting,
    Ticket(Ticket),
}

/// Makes this process's companion file.
pub fn register(home: &Home, session_id: &str, me: &ProcessIdentity) -> io::Result<PathBuf> {
    let folder = home.wakes(session_id);
    disk::make_private_folder(&folder)?;
    let file = folder.join(format!("{}-{}", me.pid, digits(&me.started)));
    disk::write(&file, WAITING.as_bytes(), Durability::Process)?;
    Ok(file)
}

/// Reads a companion's file.
pub fn read(file: &Path) -> io::Result<WakeFile> {
    let Some(text) = disk::read_text(file, TICKET_BYTES)? else { return Ok(WakeFile::Gone) };
    Ok(serde_json::from_str(&text).map_or(WakeFile::Waiting, WakeFile::Ticket))
}

/// A companion that lives and has no ticket.
pub fn waiting(home: &Home, session_id: &str) -> Option<(PathBuf, i32)> {
    let folder = home.wakes(session_id);
    disk::names(&folder, COMPANIONS_MAX).into_iter().find_map(|name| {
        let pid = live_process(&name)?;
        let file = folder.join(&name);
        matches!(read(&file), Ok(WakeFile::Waiting)).then_some((file, pid))
    })
}

/// Whether a companion that lives has a ticket.
pub fn is_held(home: &Home, session_id: &str) -> bool {
    let folder = home.wakes(session_id);
    disk::names(&folder, COMPANIONS_MAX).into_iter().any(|name| {
        let ticket = matches!(read(&folder.join(&name)), Ok(WakeFile::Ticket(_)));
        ticket && live_process(&name).is_some()
    })
}

/// Deletes every companion's file of a session but `kept`: those companions go.
pub fn clear(home: &Home, session_id: &str, kept: Option<&Path>) {
    let folder = home.wakes(session_id);
    for name in disk::names(&folder, COMPANIONS_MAX) {
        let file = folder.join(name);
        if Some(file.as_path()) != kept {
            let _ = disk::remove(&file);
        }
    }
}

/// Turns a waiting companion's file into a ticket.
pub fn hand_over(file: &Path, ticket: &Ticket) -> io::Result<()> {
    disk::write(file, serde_json::to_string(ticket)?.as_bytes(), Durability::Process)
}

/// The process a companion's file belongs to, if it is still there.
fn live_process(name: &str) -> Option<i32> {
    let (pid, started) = name.split_once('-')?;
    let identity = identity::identity(pid.parse().ok()?)?;
    (digits(&identity.started) == started).then_some(identity.pid)
}

/// A start time as part of a file name: elsewhere than on Linux it is a date with blanks and colons.
fn digits(started: &str) -> String {
    started.chars().filter(char::is_ascii_alphanumeric).collect()
}
