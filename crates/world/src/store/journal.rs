//! A loop's journal on disk: one JSON object per line, appended and synced, never rewritten.

use std::io;
use std::path::Path;

use crate::files::disk;
use engine::journal::JournalEntry;
use engine::journal::story::{ACCOUNTS_SHOWN, IterationSummaries, IterationSummary};

/// The largest part of a journal that is read back. A longer journal is still written.
const JOURNAL_BYTES: u64 = 256 << 20;

/// The number of bytes at a journal's end that are read for its last summaries: at first, and at
/// most.
const SUMMARIES_BYTES: u64 = 64 << 10;
const SUMMARIES_BYTES_MAX: u64 = 4 << 20;

/// Appends an entry durably.
pub fn append_entry(path: &Path, entry: &JournalEntry) -> io::Result<()> {
    disk::append_line(path, &serde_json::to_string(entry)?)
}

/// Which part of a journal was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// How many lines could not be read.
    pub torn: u64,
    /// Whether only the end of the journal was read.
    pub cut: bool,
}

/// Calls `each` for every line that can be read. A missing journal counts as empty. Only the end
/// of a very long one is read.
pub fn read_entries(path: &Path, each: impl FnMut(JournalEntry)) -> io::Result<Extent> {
    if disk::exists(path) { read_newest(path, JOURNAL_BYTES, each) } else { Ok(Extent::default()) }
}

/// The summaries of the last iterations. The journal is read backwards, and only as far as needed:
/// the cost of an iteration must not grow with the number of earlier ones.
pub fn last_summaries(path: &Path) -> io::Result<Vec<IterationSummary>> {
    let mut bytes = SUMMARIES_BYTES;
    while disk::exists(path) {
        let mut summaries = IterationSummaries::default();
        let extent = read_newest(path, bytes, |entry| summaries.add_entry(&entry))?;
        let last = summaries.last_shown();
        if last.len() >= ACCOUNTS_SHOWN || !extent.cut || bytes >= SUMMARIES_BYTES_MAX {
            return Ok(last);
        }
        bytes *= 4;
    }
    Ok(Vec::new())
}

fn read_newest(path: &Path, limit: u64, mut each: impl FnMut(JournalEntry)) -> io::Result<Extent> {
    let start = disk::size(path).saturating_sub(limit);
    let mut extent = Extent { torn: 0, cut: start > 0 };
    let mut begins_within = extent.cut;
    disk::read_lines(path, start, limit, |line, _| {
        match serde_json::from_slice(line.as_bytes()) {
            Ok(entry) => each(entry),
            Err(_) if begins_within => {}
            Err(_) => extent.torn += 1,
        }
        begins_within = false;
    })?;
    Ok(extent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::evidence::Evidence;
    use engine::fixture::{SetState, a_loop, at};
    use engine::journal::{Choice, Event, SCHEMA};

    #[test]
    fn the_last_summaries_are_read_from_the_end_of_a_journal_with_long_lines() {
        let folder = testkit::folder();
        let path = folder.path().join("journal.jsonl");
        assert_eq!(last_summaries(&path).unwrap(), []);
        let mut state = a_loop().state;
        // Together they exceed the first chunk that is read.
        state.set("words", vec!["x".repeat(30_000)]);
        for iteration in 1..=20 {
            state.set("generation", state.generation() + 1);
            state.set("completed", iteration);
            state.set("evidence", Some(Evidence { iteration, ..Evidence::default() }));
            let (decision, state) = (Choice::Continue, Box::new(state.clone()));
            let event = Event::Boundary { decision, why: None, elapsed_ms: Some(1), state };
            let generation = u64::from(iteration);
            append_entry(
                &path,
                &JournalEntry { schema: SCHEMA, at: at(0).wall, generation, event },
            )
            .unwrap();
            let last: Vec<u32> =
                last_summaries(&path).unwrap().iter().map(|summary| summary.iteration).collect();
            let first = iteration.saturating_sub(4).max(1);
            assert_eq!(last, (first..=iteration).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_end_of_a_long_journal_is_read_and_broken_lines_are_counted() {
        let folder = testkit::folder();
        let path = folder.path().join("journal.jsonl");
        assert_eq!(read_entries(&path, |_| ()).unwrap(), Extent::default());
        for generation in 0..10 {
            let event = Event::from_note("x".repeat(50));
            let entry = JournalEntry { schema: SCHEMA, at: at(0).wall, generation, event };
            append_entry(&path, &entry).unwrap();
        }
        disk::append_line(&path, "{\"broken").unwrap();
        let bytes = disk::size(&path);
        let line = (bytes - 9) / 10;
        for (limit, first, cut) in [(bytes, 0, false), (bytes - 1, 1, true), (2 * line, 9, true)] {
            let mut seen = Vec::new();
            let extent = read_newest(&path, limit, |entry| seen.push(entry.generation)).unwrap();
            assert_eq!(extent, Extent { torn: 1, cut }, "{limit}");
            assert_eq!(seen, (first..10).collect::<Vec<_>>(), "{limit}");
        }
    }
}
