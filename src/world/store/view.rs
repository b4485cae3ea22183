//! crew's files in the checkout: the view, the task, the handoffs, and the `.gitignore` that keeps them
//! out of commits. They are written from the record and lie inside the checkout, whatever links an agent
//! may have put in their way; where that cannot be, what the agent must read lies in the loop's own folder.

use std::io::{
    self,
    ErrorKind::{QuotaExceeded, StorageFull},
};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::home::Home;
use crate::engine::record::Loop;
use crate::engine::text::clean;
use crate::engine::words::handoff::{file_time, title};
use crate::engine::words::view::{Edit, VERSION, compare, merged};
use crate::world::clock;
use crate::world::files::disk::{self, Durability};

/// Below a checkout, the folder of all branches.
pub const BRANCHES: &str = ".claude/branches";
/// The largest view that is read.
const VIEW_BYTES: u64 = 4 << 20;
/// The largest handoff page that is read, and how many are looked through.
const HANDOFF_BYTES: u64 = 1 << 20;
const HANDOFFS_MAX: usize = 1000;

/// What the checkout's files were found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewState {
    AsWritten,
    Altered,
    Missing,
    /// The one edit that is obeyed.
    Deactivated,
}

/// Looks at the view of a loop.
pub fn look(subject: &Loop) -> ViewState {
    let file = subject.place.branch_folder().join("state.json");
    match read(&file) {
        Ok(Some(map)) => match compare(subject, &map) {
            Edit::Untouched => ViewState::AsWritten,
            Edit::Altered => ViewState::Altered,
            Edit::Deactivated => ViewState::Deactivated,
        },
        Ok(None) => ViewState::Missing,
        Err(_) => ViewState::Altered,
    }
}

/// Sees to it that the agent can read the exact task: in the branch folder, else in the loop's own, which the
/// place names from then on. A full disk is an error: it has no room elsewhere either.
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

/// Writes the view and, where it is not there, the `.gitignore`.
pub fn write(subject: &Loop) -> io::Result<()> {
    let folder = branch_folder(subject)?;
    let ignore = folder.with_file_name(".gitignore");
    if !disk::exists(&ignore) {
        disk::write(&ignore, b"*\n", Durability::Process)?;
    }
    let file = folder.join("state.json");
    let existing = match read(&file) {
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
    let mut text = serde_json::to_vec_pretty(&merged(subject, existing.as_ref()))?;
    text.push(b'\n');
    disk::write(&file, &text, Durability::Process)
}

/// Writes a handoff page, with no code in it that steers the terminal of its reader, and gives its path.
pub fn write_handoff(subject: &Loop, name: &str, page: &str) -> io::Result<PathBuf> {
    let folder = subject.place.reading_folder().join("handoffs");
    match subject.place.apart {
        Some(_) => disk::make_private_folder(&folder)?,
        None => make_inside(&folder, &subject.place.checkout)?,
    }
    // Two pages of one second and type must not replace each other.
    let free = |name: &String| !disk::exists(&folder.join(name));
    let stem = name.trim_end_matches(".md");
    let mut names = (2..1000).map(|number| format!("{stem}-{number}.md"));
    let name = Some(name.to_owned()).filter(free).or_else(|| names.find(free));
    let file =
        folder.join(name.ok_or_else(|| io::Error::other("too many handoffs in one second"))?);
    disk::write(&file, clean(page).as_bytes(), Durability::Process)?;
    Ok(file)
}

/// The newest handoff page of this loop.
pub fn newest_handoff(subject: &Loop) -> Option<PathBuf> {
    let folder = subject.place.reading_folder().join("handoffs");
    let mut pages: Vec<PathBuf> =
        disk::names(&folder, HANDOFFS_MAX).into_iter().map(|name| folder.join(name)).collect();
    pages.sort_by_key(|page| std::cmp::Reverse(disk::stamp(page).map(|(_, time)| time)));
    let title = title(subject);
    pages.into_iter().find(|page| {
        disk::read_text(page, HANDOFF_BYTES)
            .is_ok_and(|text| text.is_some_and(|text| text.lines().any(|line| line == title)))
    })
}

/// The branch that owns a folder under `.claude/branches/`, as its view says.
pub fn branch_of(folder: &Path) -> Option<String> {
    match read(&folder.join("state.json")).ok()??.get("branch") {
        Some(Value::String(branch)) => Some(branch.clone()),
        _ => None,
    }
}

fn branch_folder(subject: &Loop) -> io::Result<PathBuf> {
    let folder = subject.place.branch_folder();
    make_inside(&folder, &subject.place.checkout)?;
    Ok(folder)
}

/// Makes a folder of the checkout. A link that leads out of it is not followed: it may have been put
/// there.
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

fn read(file: &Path) -> Result<Option<Map<String, Value>>, Broken> {
    let bytes = match disk::read(file, VIEW_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(_) => return Err(Broken::Junk),
    };
    let map: Map<String, Value> = serde_json::from_slice(&bytes).map_err(|_| Broken::Junk)?;
    let newer = map.get("version").and_then(Value::as_u64).is_some_and(|it| it > VERSION);
    if newer { Err(Broken::Newer) } else { Ok(Some(map)) }
}
