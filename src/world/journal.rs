//! A loop's journal on disk: one JSON object a line, appended and synced, never rewritten.

use std::io;
use std::path::Path;

use super::disk;
use crate::engine::journal::Entry;

/// The most of a journal that is read back; a longer one is still written.
const JOURNAL_BYTES: u64 = 256 << 20;

/// Appends an entry, durably.
pub fn append(path: &Path, entry: &Entry) -> io::Result<()> {
    disk::append_line(path, &serde_json::to_string(entry)?)
}

/// Every line that can be read; a torn one is passed over.
pub fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let text = disk::read_text(path, JOURNAL_BYTES)?.unwrap_or_default();
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// How much of a journal was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Lines that could not be read.
    pub torn: u64,
    /// Whether it goes on past what is read of it.
    pub cut: bool,
}

/// Hands every line that can be read to `each`, one at a time; no journal is an empty one.
pub fn each(path: &Path, mut each: impl FnMut(Entry)) -> io::Result<Extent> {
    let mut extent = Extent::default();
    if !disk::exists(path) {
        return Ok(extent);
    }
    let read =
        disk::read_lines(path, 0, JOURNAL_BYTES, |line, _| match serde_json::from_str(line) {
            Ok(entry) => each(entry),
            Err(_) => extent.torn += 1,
        })?;
    extent.cut = read.1;
    Ok(extent)
}
