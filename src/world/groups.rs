//! The process groups a loop's crew has started, on disk, so that a group that outlived its crew can be
//! ended by the next one.

use std::io;
use std::path::PathBuf;

use super::disk::{self, Durability};
use super::home::Home;
use super::unix::{self, GroupSignal};
use crate::engine::looped::LoopId;

/// More groups than a loop can have at once.
const GROUPS_MAX: usize = 256;

/// Remembers a group by its leader until the returned note is dropped.
pub fn remember(home: &Home, id: &LoopId, leader: i32) -> io::Result<Note> {
    let folder = home.loop_file(id, "groups");
    disk::make_private_folder(&folder)?;
    let started = unix::identity(leader).map_or_else(String::new, |process| process.started);
    let file = folder.join(leader.to_string());
    disk::write(&file, started.as_bytes(), Durability::Process)?;
    Ok(Note(file))
}

/// A remembered group.
#[derive(Debug)]
#[must_use]
pub struct Note(PathBuf);

impl Drop for Note {
    fn drop(&mut self) {
        let _ = disk::remove(&self.0);
    }
}

/// Ends every group that outlived the crew that started it. A leader's id cannot be given to another
/// process while its group lives, so a leader with another start time means that the group is gone.
pub fn end_leftovers(home: &Home, id: &LoopId) {
    let folder = home.loop_file(id, "groups");
    for name in disk::names(&folder, GROUPS_MAX) {
        let file = folder.join(&name);
        if let (Ok(leader), Ok(Some(started))) = (name.parse(), disk::read_text(&file, 256)) {
            let another = unix::identity(leader).is_some_and(|found| found.started != started);
            if !another {
                unix::signal_group(leader, GroupSignal::Kill);
            }
        }
        let _ = disk::remove(&file);
    }
}
