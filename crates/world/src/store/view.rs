//! crew's files in the checkout: the view, the task, the handoffs, and the `.gitignore` that keeps
//! them out of commits. They are written from the record and stay inside the checkout, even if an
//! agent has planted links. Where that is impossible, what the agent must read is in the loop's own
//! folder.

use std::io::{
    self,
    ErrorKind::{QuotaExceeded, StorageFull},
};
use std::iter::once;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{read_json, write_json};
use crate::clock;
use crate::files::disk::{self, Durability};
use crate::home::Home;
use engine::record::Doing;
use engine::record::Loop;
use engine::text::clean_text;
use engine::view::events::RunEvent;
use engine::words::programs::{VERSION, ViewState, compare_view_file, current_step, merge_view};
use engine::words::{file_time, is_of};

/// The largest view that is read.
const VIEW_BYTES: u64 = 4 << 20;
/// The file with a loop's current step.
const DOING: &str = "doing.json";
/// The largest handoff page that is read, and the most that are searched.
const HANDOFF_BYTES: u64 = 1 << 20;
const HANDOFFS_MAX: usize = 1000;

/// Compares the view of a loop with its record.
pub fn compare_view(subject: &Loop) -> ViewState {
    let file = subject.place.branch_folder().join("state.json");
    match read_view(&file) {
        Ok(Some(map)) => compare_view_file(subject, &map),
        Ok(None) => ViewState::Missing,
        Err(_) => ViewState::Altered,
    }
}

/// Writes the exact task where the agent can read it: to the branch folder, or else to the loop's
/// own, which the place names from then on. A full disk is an error, because no other folder has
/// space either.
pub fn place_task(home: &Home, subject: &mut Loop) -> io::Result<()> {
    if subject.place.apart.is_none() {
        match branch_folder(subject).and_then(|_| put_task(subject)) {
            Err(error) if !matches!(error.kind(), StorageFull | QuotaExceeded) => {}
            placed => return placed,
        }
        subject.place.apart = Some(home.loop_folder(&subject.id));
    }
    put_task(subject)
}

fn put_task(subject: &Loop) -> io::Result<()> {
    let (task, bytes) = (subject.place.task_file(), subject.contract.task.as_bytes());
    let found = disk::read(&task, bytes.len() as u64);
    match found {
        Ok(Some(found)) if found == bytes => Ok(()),
        _ => disk::write(&task, bytes, Durability::Process),
    }
}

/// Records the step that an event begins. It is for display only, so an error is ignored.
pub fn record_step(home: &Home, subject: &Loop, event: &RunEvent<'_>) {
    let Some((step, run)) = event.begun_step() else { return };
    let doing = Doing { step, run: run.to_owned(), since: clock::now().wall };
    let _ = write_json(&home.loop_file(&subject.id, DOING), &doing, Durability::Process);
    let _ = write_doing(subject, Some(&doing));
}

/// The current step of a running loop.
pub fn running_step(home: &Home, subject: &Loop) -> Option<Doing> {
    current_step(subject, read_json(&home.loop_file(&subject.id, DOING), VIEW_BYTES))
}

/// Writes the view and, if it is missing, the `.gitignore`.
pub fn write_view(subject: &Loop) -> io::Result<()> {
    write_doing(subject, None)
}

fn write_doing(subject: &Loop, doing: Option<&Doing>) -> io::Result<()> {
    let folder = branch_folder(subject)?;
    let ignore = folder.with_file_name(".gitignore");
    if !disk::exists(&ignore) {
        disk::write(&ignore, b"*\n", Durability::Process)?;
    }
    let file = folder.join("state.json");
    let existing = match read_view(&file) {
        Ok(existing) => existing,
        Err(Broken::Newer) => {
            let complaint = format!("{} was written by a newer crew", file.display());
            return Err(io::Error::other(complaint));
        }
        Err(Broken::Junk) => {
            let time = file_time(clock::now().wall);
            disk::move_aside(&file, &format!("state.json.corrupt-{time}"))?;
            None
        }
    };
    let mut text = serde_json::to_vec_pretty(&merge_view(subject, existing.as_ref(), doing))?;
    text.push(b'\n');
    disk::write(&file, &text, Durability::Process)
}

/// Writes a handoff page without terminal control codes, and returns its path.
pub fn write_handoff(subject: &Loop, name: &str, page: &str) -> io::Result<PathBuf> {
    let folder = subject.place.reading_folder().join("handoffs");
    match subject.place.apart {
        Some(_) => disk::make_private_folder(&folder)?,
        None => make_inside(&folder, &subject.place.checkout)?,
    }
    // Two pages of the same second and type must not overwrite each other.
    let stem = name.trim_end_matches(".md");
    let numbered = (2..1000).map(|number| format!("{stem}-{number}.md"));
    let mut files = once(name.to_owned()).chain(numbered).map(|name| folder.join(name));
    let file = files.find(|file| !disk::exists(file));
    let file = file.ok_or_else(|| io::Error::other("too many handoffs in one second"))?;
    disk::write(&file, clean_text(page).as_bytes(), Durability::Process)?;
    Ok(file)
}

/// The newest handoff page of this loop: its path and its text.
pub fn newest_handoff(subject: &Loop) -> Option<(PathBuf, String)> {
    let folder = subject.place.reading_folder().join("handoffs");
    let mut pages: Vec<PathBuf> =
        disk::names(&folder, HANDOFFS_MAX).into_iter().map(|name| folder.join(name)).collect();
    pages.sort_by_key(|page| std::cmp::Reverse(disk::stamp(page).map(|(_, time)| time)));
    pages.into_iter().filter_map(read_handoff).find(|(_, text)| is_of(subject, text))
}

/// A handoff page and its text.
pub fn read_handoff(page: PathBuf) -> Option<(PathBuf, String)> {
    let text = disk::read_text(&page, HANDOFF_BYTES).ok()??;
    Some((page, text))
}

/// The branch that owns a folder under `.claude/branches/`, according to its view.
pub fn branch_of(folder: &Path) -> Option<String> {
    match read_view(&folder.join("state.json")).ok()??.get("branch") {
        Some(Value::String(branch)) => Some(branch.clone()),
        _ => None,
    }
}

fn branch_folder(subject: &Loop) -> io::Result<PathBuf> {
    let folder = subject.place.branch_folder();
    make_inside(&folder, &subject.place.checkout)?;
    Ok(folder)
}

/// Creates a folder in the checkout. It does not follow a link that leads out, because an agent may
/// have planted it.
fn make_inside(folder: &Path, checkout: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|part| disk::exists(part)).unwrap_or(checkout);
    if disk::real_path(there)?.starts_with(disk::real_path(checkout)?) {
        return disk::make_folder(folder);
    }
    let complaint = format!("{} leads out of the checkout", there.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, complaint))
}

enum Broken {
    Newer,
    Junk,
}

fn read_view(file: &Path) -> Result<Option<Map<String, Value>>, Broken> {
    let bytes = match disk::read(file, VIEW_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(_) => return Err(Broken::Junk),
    };
    let map: Map<String, Value> = serde_json::from_slice(&bytes).map_err(|_| Broken::Junk)?;
    match map.get("version").and_then(Value::as_u64) {
        Some(version) if version > VERSION => Err(Broken::Newer),
        _ => Ok(Some(map)),
    }
}
