//! Handoffs: a page with every fact crew has. In the middle of a loop it also has the message of
//! whoever hands over.

use std::io;
use std::path::PathBuf;

use anyhow::{Result, bail};
use chrono::{DateTime, Utc};

use crate::clients::spelling::of_loop;
use crate::drive::page;
use crate::engine::page::Page;
use crate::engine::record::{Actor, Loop, Status};
use crate::engine::words::handoff::{file_name, text};
use crate::parse::handoff_words::is_kind;
use crate::world::clock;
use crate::world::files::disk;
use crate::world::store::{self, Home, LOCK_WAIT, view};

/// Writes a handoff page of the given type, journals who wrote it, and returns its path.
pub fn write(home: &Home, record: &Loop, kind: &str, told: &str, by: Actor) -> Result<PathBuf> {
    if !is_kind(kind) {
        bail!(
            "{kind:?} is not a type of handoff\nhint: use one plain word, such as task or review"
        );
    }
    if told.trim().is_empty() {
        bail!(
            "a handoff needs a description\nhint: {} \"the parser is done, its tests are next\"",
            of_loop(record, "handoff")
        );
    }
    let page = put(record, &page::read(home, record), told.trim(), kind, clock::now().wall)?;
    let held = store::hold(home, &record.id, LOCK_WAIT)?;
    held.note(&held.load()?, clock::now(), format!("handoff written by the {}", by.label()))?;
    Ok(page)
}

/// The page a new owner reads about a loop that did not end: made now, unless one was written since
/// its last iteration. Best effort: `None` where there is nothing to write or it cannot be written.
pub fn for_the_next(home: &Home, record: &Loop) -> Option<PathBuf> {
    if !record.is_live() {
        return None;
    }
    let since = record.state.last_iteration_at.unwrap_or(record.started_at);
    let is_current = |page: &PathBuf| {
        let changed = disk::stamp(page).and_then(|(_, nanos)| i64::try_from(nanos).ok());
        changed.is_some_and(|nanos| DateTime::from_timestamp_nanos(nanos) >= since)
    };
    if let Some(page) = view::newest_handoff(record).filter(is_current) {
        return Some(page);
    }
    let kind = if record.state.status == Status::Paused { "paused" } else { "interrupted" };
    put(record, &page::read(home, record), "", kind, clock::now().wall).ok()
}

/// Writes a page of that type; `told` is its author's text on what was done.
pub(super) fn put(
    record: &Loop,
    page: &Page,
    told: &str,
    kind: &str,
    now: DateTime<Utc>,
) -> io::Result<PathBuf> {
    let text = text(record, page, told, kind, now);
    view::write_handoff(record, &file_name(kind, now), &text)
}
