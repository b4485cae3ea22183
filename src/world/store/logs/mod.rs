//! What an agent printed, by iteration: written within bounds, read from its end, followed as it
//! grows, and deleted when there is too much. What the agent reported is in
//! the record; of a log only crew's own lines are read, which say whose output follows.
//!
//! The output of an iteration is in up to two files: `0007.log`, and `0007.log.old` with the 10 MiB
//! before it. The prompt that it was started with is in `0007.prompt`.

pub mod keep;
pub mod tail;
mod writer;

use std::path::{Path, PathBuf};

pub use self::writer::{Log, begin, begun_by};
use super::home::Home;
use crate::engine::record::LoopId;
use crate::engine::text::start_bytes;
use crate::world::files::disk::{self, Durability};

/// A log of this size, in bytes, becomes the earlier file and replaces the previous one.
const KEPT: u64 = 10 << 20;
/// The folder of a loop's logs.
const FOLDER: &str = "iterations";

/// The log of an iteration.
pub fn path(home: &Home, id: &LoopId, iteration: u32) -> PathBuf {
    home.loop_file(id, FOLDER).join(format!("{iteration:04}.log"))
}

/// The prompt that an iteration was started with.
pub fn prompt_file(home: &Home, id: &LoopId, iteration: u32) -> PathBuf {
    home.loop_file(id, FOLDER).join(format!("{iteration:04}.prompt"))
}

/// Keeps the prompt of an iteration, at most as much of its beginning as of a log. Without it the
/// loop continues, so what cannot be written is left out.
pub fn keep_prompt(home: &Home, id: &LoopId, iteration: u32, prompt: &str) {
    let path = prompt_file(home, id, iteration);
    let kept = start_bytes(prompt, usize::try_from(KEPT).unwrap_or(usize::MAX));
    let folder = path.parent().unwrap_or(&path);
    let _ = disk::make_private_folder(folder)
        .and_then(|()| disk::write(&path, kept.as_bytes(), Durability::Process));
}

/// The prompt of an iteration; `None` if it was not kept or has been deleted.
pub fn read_prompt(home: &Home, id: &LoopId, iteration: u32) -> Option<String> {
    disk::read_text(&prompt_file(home, id, iteration), KEPT).ok().flatten()
}

/// The file in which the agent of an iteration leaves what it used; it is read once and deleted.
pub fn usage_file(home: &Home, id: &LoopId, iteration: u32) -> PathBuf {
    home.loop_file(id, FOLDER).join(format!("{iteration:04}.usage.json"))
}

/// The file with the output before the log's beginning.
fn earlier(log: &Path) -> PathBuf {
    log.with_extension("log.old")
}
