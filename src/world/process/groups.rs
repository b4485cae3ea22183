//! The process groups that the crew of a loop or of a fleet's task has started, noted on disk, so
//! that the next crew can end a group that outlived the last one. It spares a group whose leader's
//! id was reused.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::{identity, signals, spawn};
use crate::engine::record::LoopId;
use crate::world::env;
use crate::world::files::disk;
use crate::world::store::Home;

/// More groups than a loop can have at once.
const GROUPS_MAX: usize = 256;
/// The largest note that is read.
const NOTE_BYTES: u64 = 4096;

/// Creates the note of a loop's group that is about to be started. The note exists until it is
/// dropped.
pub fn note(home: &Home, id: &LoopId) -> io::Result<Note> {
    note_in(&home.loop_file(id, "groups"))
}

/// The same in a folder of its own.
pub fn note_in(folder: &Path) -> io::Result<Note> {
    disk::make_private_folder(folder)?;
    let path = folder.join(format!("{:x}", env::random()));
    let file = disk::create_private(&path)?;
    Ok(Note { path, file })
}

/// A group's note.
#[derive(Debug)]
#[must_use]
pub struct Note {
    path: PathBuf,
    file: File,
}

impl Note {
    /// The file to which the group's leader is written.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = disk::remove(&self.path);
    }
}

/// Ends every group that outlived the crew that started it. The id of a leader is not reused while
/// its group lives, so a leader with another start time means that the group is gone. If
/// `is_of_this_start` is false, the ids are from another machine or from before its last boot: then
/// they are only forgotten.
pub fn end_leftovers(home: &Home, id: &LoopId, is_of_this_start: bool) {
    end_leftovers_in(&home.loop_file(id, "groups"), is_of_this_start);
}

/// The same for the notes in a folder of their own.
pub fn end_leftovers_in(folder: &Path, is_of_this_start: bool) {
    for name in disk::names(folder, GROUPS_MAX) {
        let file = folder.join(&name);
        let text = disk::read_text(&file, NOTE_BYTES).ok().flatten().unwrap_or_default();
        if let Some(leader) = spawn::noted_leader(&text) {
            let another =
                identity::identity(leader.pid).is_some_and(|found| found.started != leader.started);
            if is_of_this_start && !another {
                signals::signal_group(leader.pid, Signal::KILL);
            }
        }
        let _ = disk::remove(&file);
    }
}
