//! What an agent printed, by iteration: written within bounds, read from its end, followed as it
//! grows, and deleted when there is too much. What the agent reported is in
//! the record; of a log only crew's own lines are read, which say whose output follows.
//!
//! The output of an iteration is in up to two files: `0007.log`, and `0007.log.old` with the 10 MiB
//! before it. Older crews joined the two at the end.

pub mod keep;
pub mod tail;
mod writer;

use std::path::{Path, PathBuf};

pub use self::writer::{Log, begin, begun_by};
use super::home::Home;
use crate::engine::record::LoopId;

/// A log of this size, in bytes, becomes the earlier file and replaces the previous one.
const KEPT: u64 = 10 << 20;
/// The folder of a loop's logs.
const FOLDER: &str = "iterations";

/// The log of an iteration.
pub fn path(home: &Home, id: &LoopId, iteration: u32) -> PathBuf {
    home.loop_file(id, FOLDER).join(format!("{iteration:04}.log"))
}

/// The file in which the agent of an iteration leaves what it used; it is read once and deleted.
pub fn usage_file(home: &Home, id: &LoopId, iteration: u32) -> PathBuf {
    home.loop_file(id, FOLDER).join(format!("{iteration:04}.usage.json"))
}

/// The file with the output before the log's beginning.
fn earlier(log: &Path) -> PathBuf {
    log.with_extension("log.old")
}
