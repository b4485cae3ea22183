//! Reads the end of a log and what is appended later. A follower continues when the log starts a
//! new file; of very fast output it may miss a part.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::earlier;
use crate::world::files::disk;

/// The most bytes returned at once.
const PAGE: u64 = 64 << 10;

/// A log being read.
#[derive(Debug)]
pub struct Tail {
    log: PathBuf,
    /// The open file; `None` before the log exists.
    file: Option<File>,
    /// Whether the first bytes belong to a line whose beginning is not shown.
    begins_within: bool,
}

impl Tail {
    /// Starts `most` bytes before the end, at a whole line. A log that does not exist yet is waited
    /// for.
    pub fn open(log: &Path, most: u64) -> io::Result<Self> {
        let mut tail = Self { log: log.to_owned(), file: None, begins_within: false };
        let (old, now) = (disk::size(&earlier(log)), disk::size(log));
        let (path, skipped) = if most > now && old > 0 {
            (earlier(log), old.saturating_sub(most - now))
        } else {
            (log.to_owned(), now.saturating_sub(most))
        };
        if let Some(mut file) = disk::open(&path)? {
            // Start one byte earlier: if that byte is a line break, the next line is whole.
            file.seek(SeekFrom::Start(skipped.saturating_sub(1)))?;
            tail.begins_within = skipped > 0;
            tail.file = Some(file);
        }
        Ok(tail)
    }

    /// The next bytes, 64 KiB at most. An empty result means that everything was read so far; call
    /// again later to follow.
    pub fn next(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if self.file.is_none() {
                self.file = disk::open(&self.log)?;
            }
            let Some(file) = &mut self.file else { return Ok(Vec::new()) };
            // Checked before the read: bytes that arrive in between are returned by the next call.
            let is_now = disk::is_named(file, &self.log) || !disk::exists(&self.log);
            let mut bytes = Vec::new();
            file.take(PAGE).read_to_end(&mut bytes)?;
            if self.begins_within && !bytes.is_empty() {
                let line = bytes.iter().position(|byte| *byte == b'\n');
                bytes.drain(..line.map_or(bytes.len(), |at| at + 1));
                self.begins_within = line.is_none();
                if bytes.is_empty() {
                    continue;
                }
            }
            if !bytes.is_empty() || is_now {
                return Ok(bytes);
            }
            // Another file has the log's name now: continue there.
            self.file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::files::disk::Durability;
    use crate::world::store::logs::{KEPT, Log};

    fn read(tail: &mut Tail) -> String {
        let mut all = Vec::new();
        loop {
            let bytes = tail.next().unwrap();
            if bytes.is_empty() {
                return String::from_utf8(all).unwrap();
            }
            all.extend(bytes);
        }
    }

    #[test]
    fn a_tail_begins_at_a_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0001.log");
        let mut log = Log::open(&path);
        log.add(b"one\ntwo\nthree\n");
        log.close();
        for (most, expected) in [
            (99, "one\ntwo\nthree\n"),
            (14, "one\ntwo\nthree\n"),
            (13, "two\nthree\n"),
            (10, "two\nthree\n"),
            (9, "three\n"),
            (6, "three\n"),
            (5, ""),
            (0, ""),
        ] {
            let mut tail = Tail::open(&path, most).unwrap();
            assert_eq!(read(&mut tail), expected, "the last {most} bytes");
        }
    }

    #[test]
    fn a_follower_reads_on_over_new_files_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0001.log");
        let mut tail = Tail::open(&path, 100).unwrap();
        assert_eq!(read(&mut tail), "");
        let mut log = Log::open(&path);
        let mut seen = String::new();
        let mut expected = String::new();
        for number in 0..400 {
            let line = format!("{number} {}\n", "x".repeat(100_000));
            log.add(line.as_bytes());
            expected.push_str(&line);
            log.flush();
            seen.push_str(&read(&mut tail));
        }
        log.add(b"last\n");
        log.close();
        seen.push_str(&read(&mut tail));
        expected.push_str("last\n");
        assert!(expected.len() as u64 > 3 * KEPT && seen == expected);
    }

    #[test]
    fn a_tail_reaches_into_the_file_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0001.log");
        disk::write(&earlier(&path), b"one\ntwo\n", Durability::Process).unwrap();
        disk::write(&path, b"three\n", Durability::Process).unwrap();
        assert_eq!(read(&mut Tail::open(&path, 10).unwrap()), "two\nthree\n");
        assert_eq!(read(&mut Tail::open(&path, 99).unwrap()), "one\ntwo\nthree\n");
    }
}
