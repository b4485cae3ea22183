//! Words to the agent whose prompt may be lost: the record says that they were told, but the process was
//! ended before its answer was out. They are told again rather than never.

use std::io;

use crate::engine::record::owner::Driver;
use crate::engine::record::{Loop, LoopId};
use crate::world::files::disk::{self, Durability};
use crate::world::store::home::Home;

/// The largest mark that is read.
const MARK_BYTES: u64 = 64;

/// Marks, before they are recorded, that the words of a session's next prompt are not out yet.
pub fn mark(home: &Home, next: &Loop) -> io::Result<()> {
    let words = next.state.evidence.as_ref().map_or(&[][..], |evidence| &evidence.words);
    if words.is_empty() || next.driver() != Driver::Session {
        return Ok(());
    }
    // The mark is of one boundary's prompt: what an earlier one told is not told again.
    let boundaries = next.state.boundaries.to_string();
    disk::write(&file(home, &next.id), boundaries.as_bytes(), Durability::Process)
}

/// Gives a record the words back that its last prompt did not bring out.
pub fn take_back(home: &Home, record: &mut Loop) -> io::Result<()> {
    if record.driver() != Driver::Session {
        return Ok(());
    }
    let mark = disk::read_text(&file(home, &record.id), MARK_BYTES)?;
    if mark.is_some_and(|of| of == record.state.boundaries.to_string())
        && let Some(evidence) = &mut record.state.evidence
    {
        let since = std::mem::take(&mut record.state.words);
        record.state.words = std::mem::take(&mut evidence.words);
        record.state.words.extend(since);
    }
    Ok(())
}

/// The prompt is out.
pub fn clear(home: &Home, id: &LoopId) -> io::Result<()> {
    disk::remove(&file(home, id))
}

fn file(home: &Home, id: &LoopId) -> std::path::PathBuf {
    home.loop_file(id, "untold")
}
