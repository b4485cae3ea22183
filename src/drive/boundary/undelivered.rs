//! Messages to the agent whose prompt may be lost: the record says that they were delivered, but
//! the process was ended before its answer was out. They are repeated rather than lost.

use std::io;

use engine::record::{Driver, Loop, LoopId};
use world::files::disk::{self, Durability};
use world::store::Home;

/// The largest mark that is read.
const MARK_BYTES: u64 = 64;

/// Marks, before they are recorded, that the messages in a session's next prompt are not out yet:
/// those of the last boundary, and those that a resume took from the queue.
pub fn mark_undelivered(home: &Home, next: &Loop) -> io::Result<()> {
    let has_words = next.state.evidence.as_ref().is_some_and(|last| !last.words.is_empty());
    if next.driver() != Driver::Session || !(has_words || next.state.told > 0) {
        return Ok(());
    }
    // The mark belongs to one boundary's prompt: messages of an earlier one are not repeated.
    let boundaries = next.state.boundaries.to_string();
    disk::write(&undelivered_file(home, &next.id), boundaries.as_bytes(), Durability::Process)
}

/// Returns to a record the messages that its last prompt did not deliver.
pub fn take_back(home: &Home, record: &mut Loop) -> io::Result<()> {
    if record.driver() != Driver::Session {
        return Ok(());
    }
    let mark = disk::read_text(&undelivered_file(home, &record.id), MARK_BYTES)?;
    if mark.is_none_or(|of| of != record.state.boundaries.to_string()) {
        return Ok(());
    }
    record.state.take_back_prompt();
    Ok(())
}

/// Removes the mark, because the prompt is out.
pub fn clear_undelivered(home: &Home, id: &LoopId) -> io::Result<()> {
    disk::remove(&undelivered_file(home, id))
}

fn undelivered_file(home: &Home, id: &LoopId) -> std::path::PathBuf {
    home.loop_file(id, "untold")
}
