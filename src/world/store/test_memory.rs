//! What a loop remembers of its checks' tests, in a file of its own: the names of all tests would
//! make the record, which every boundary writes anew, too large.

use std::io;

use super::Home;
use crate::engine::evidence::test_report::TestMemories;
use crate::engine::record::LoopId;
use crate::world::files::disk::{self, Durability};

const FILE: &str = "tests.json";
/// The largest such file, in bytes.
const BYTES: u64 = 64 << 20;

/// Reads it; empty if there is none, or it cannot be read.
pub fn read(home: &Home, id: &LoopId) -> TestMemories {
    let bytes = disk::read(&home.loop_file(id, FILE), BYTES).ok().flatten();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Replaces it.
pub fn write(home: &Home, id: &LoopId, memories: &TestMemories) -> io::Result<()> {
    disk::write(&home.loop_file(id, FILE), &serde_json::to_vec(memories)?, Durability::Process)
}
