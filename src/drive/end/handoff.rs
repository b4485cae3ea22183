//! Handoffs: a page with every fact crew has. In the middle of a loop it also has the message of
//! its author.

use std::io;
use std::path::PathBuf;

use anyhow::Result;
use chrono::{DateTime, Utc};

use crate::drive::{page, tree};
use engine::journal::NoteKind;
use engine::record::{Actor, Loop, Outcome, Status};
use engine::refuse;
use engine::view::Page;
use engine::words::{authors_words, file_name, is_whole, render_handoff};
use readers::clients::of_loop;
use readers::parse::requests::{KINDS, is_kind};
use world::clock;
use world::files::disk;
use world::store::{self, Home, view};

/// Writes a handoff page of the given type, journals who wrote it, and returns its path.
pub fn write_handoff(
    home: &Home,
    record: &Loop,
    kind: &str,
    words: &str,
    by: Actor,
) -> Result<PathBuf> {
    if !is_kind(kind) {
        refuse!("{kind:?} is not a type of handoff", "use one plain word, such as task or review");
    }
    let words = words.trim();
    let command = of_loop(record, "handoff");
    if words.is_empty() {
        refuse!(
            "a handoff needs a description",
            "{command} \"the parser is done, its tests are next\""
        );
    }
    if KINDS.contains(&words) {
        refuse!(
            "`{words}` is a type of handoff, and its description is missing",
            "{command} {words} \"the parser is done, its tests are next\""
        );
    }
    let (page, _) =
        put_page(record, &page::read_page(home, record), words, kind, clock::now().wall)?;
    store::note_in_journal(home, &record.id, NoteKind::HandedOff(by))?;
    Ok(page)
}

/// The page a new owner reads about a loop that did not end: written now, unless one was written
/// since the last iteration and still describes the tree. Best effort: `None` if there is nothing
/// to write or it cannot be written.
pub fn for_the_next(home: &Home, record: &Loop) -> Option<PathBuf> {
    match next_page(home, record)? {
        ((page, _), false) => Some(page),
        ((page, text), true) => {
            view::write_handoff(record, page.file_name()?.to_str()?, &text).ok()
        }
    }
}

/// The handoff page for the next worker and its text, without writing anything: the newest page, if
/// no new one is needed.
pub fn text_for_the_next(home: &Home, record: &Loop) -> Option<(PathBuf, String)> {
    next_page(home, record).map(|(page, _)| page).or_else(|| view::newest_handoff(record))
}

/// The page that the next owner reads, and whether it has to be written.
fn next_page(home: &Home, record: &Loop) -> Option<((PathBuf, String), bool)> {
    let is_moved = tree::has_moved(home, record);
    if !record.is_live() && !is_moved {
        return None;
    }
    let since = record.state.time().last_iteration_at().unwrap_or(record.started_at);
    let newest = view::newest_handoff(record).filter(|(page, _)| {
        let changed = disk::stamp(page).and_then(|(_, nanos)| i64::try_from(nanos).ok());
        changed.is_some_and(|nanos| DateTime::from_timestamp_nanos(nanos) >= since)
    });
    let newest = match newest {
        Some(newest) if !is_moved || !is_whole(&newest.1) => return Some((newest, false)),
        newest => newest,
    };
    let kind = match record.state.status() {
        Status::Paused => "paused",
        _ => record.outcome().map_or("interrupted", Outcome::label),
    };
    let page = page::page_of_story(home, record, &page::whole_story(home, record), is_moved);
    let words = newest.as_ref().and_then(|(_, text)| authors_words(text)).unwrap_or_default();
    let now = clock::now().wall;
    let file = record.place.branch_folder().join("handoffs").join(file_name(kind, now));
    Some(((file, new_text(record, &page, words, kind, now)), true))
}

/// Writes the page for the next process of a run. Best effort: `None` if it cannot be written; the
/// prompt has the last iteration's evidence in any case.
pub fn hand_on(home: &Home, record: &Loop, kind: &str) -> Option<PathBuf> {
    let page = page::read_page(home, record);
    let (file, _) = put_page(record, &page, "", kind, clock::now().wall).ok()?;
    if page.has_unread_handoff {
        let _ = store::note_in_journal(home, &record.id, NoteKind::HandedOn);
    }
    Some(file)
}

/// Writes a page of this type. Returns its file and its text.
pub(super) fn put_page(
    record: &Loop,
    page: &Page,
    words: &str,
    kind: &str,
    now: DateTime<Utc>,
) -> io::Result<(PathBuf, String)> {
    let text = new_text(record, page, words, kind, now);
    Ok((view::write_handoff(record, &file_name(kind, now), &text)?, text))
}

/// The text of a new page; `words` is its author's summary. One of crew's own pages repeats an
/// unread summary, because only the newest page is read.
fn new_text(record: &Loop, page: &Page, words: &str, kind: &str, now: DateTime<Utc>) -> String {
    let is_crews = words.is_empty() && page.has_unread_handoff;
    let unread = if is_crews { view::newest_handoff(record) } else { None };
    let words = unread.as_ref().and_then(|(_, text)| authors_words(text)).unwrap_or(words);
    render_handoff(page, words, kind, now)
}
