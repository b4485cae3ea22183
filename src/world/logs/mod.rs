//! What an agent printed, iteration by iteration: where it is, and its end. Never parsed: what it said is in
//! the record.

pub mod tail;

use std::path::PathBuf;

use super::home::Home;
use crate::engine::looped::LoopId;

/// The log of an iteration.
pub fn path(home: &Home, id: &LoopId, iteration: u32) -> PathBuf {
    home.loop_file(id, "iterations").join(format!("{iteration:04}.log"))
}
