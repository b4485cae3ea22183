//! The output of agents by iteration: written within bounds, read from its end, followed as it
//! grows, and deleted when there is too much. What the agent reported is in the record. crew reads
//! only its own lines in a log, which name the agent whose output follows.
//!
//! The output of an iteration is in up to two files: `0007.log`, and `0007.log.old` with the 10 MiB
//! before it. Its prompt is in `0007.prompt`.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock;
use crate::files::disk::{self, Durability};
use crate::home::Home;
use engine::record::LoopId;
use engine::text::start_bytes;

/// A log of this size, in bytes, becomes the earlier file and replaces the previous one.
const KEPT: u64 = 10 << 20;
/// The folder of a loop's logs.
const FOLDER: &str = "iterations";

/// The log of an iteration.
pub fn log_path(home: &Home, id: &LoopId, iteration: u32) -> PathBuf {
    home.loop_file(id, FOLDER).join(format!("{iteration:04}.log"))
}

/// The existing files with the output of an iteration, the earlier one first.
pub fn output_files(home: &Home, id: &LoopId, iteration: u32) -> Vec<PathBuf> {
    let log = log_path(home, id, iteration);
    [earlier_file(&log), log].into_iter().filter(|file| disk::is_file(file)).collect()
}

/// The prompt that an iteration was started with.
pub fn prompt_file(home: &Home, id: &LoopId, iteration: u32) -> PathBuf {
    home.loop_file(id, FOLDER).join(format!("{iteration:04}.prompt"))
}

/// Keeps the prompt of an iteration, as much of its beginning as fits in a log. An error is
/// ignored, because the loop can continue without it.
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

/// The file in which an iteration's agent reports its usage; it is read once and deleted.
pub fn usage_file(home: &Home, id: &LoopId, iteration: u32) -> PathBuf {
    home.loop_file(id, FOLDER).join(format!("{iteration:04}.usage.json"))
}

/// The file with the output before the log's beginning.
fn earlier_file(log: &Path) -> PathBuf {
    log.with_extension("log.old")
}

// Writes an iteration's log, readable by this user only, and keeps its last part. A failed write
// does not stop the iteration: the first error is kept for the caller, and the rest is dropped.

/// How many bytes are buffered before a write.
const GATHERED: usize = 64 << 10;
/// The beginning and end of crew's own line, which names the agent whose output follows.
const BY: [&str; 2] = ["… this iteration by ", " …"];
const AGAIN_BY: &str = "… this iteration again by ";

/// Begins an agent's output in a log. A further attempt of the iteration is separated from those
/// before. The first is named only if several agents may follow each other.
pub fn begin_output(path: &Path, agent: &str, is_one_of_several: bool) {
    let before = disk::read_end(path, 0, 1).map(|(end, _)| end).unwrap_or_default();
    let by = match &*before {
        "" if !is_one_of_several => return,
        "" => BY[0].to_owned(),
        "\n" => AGAIN_BY.to_owned(),
        // A killed crew left an incomplete line.
        _ => format!("\n{AGAIN_BY}"),
    };
    let mut log = Log::open(path);
    log.add(format!("{by}{agent}{}\n", BY[1]).as_bytes());
    // The agent's own output reports the same error.
    let _ = log.close();
}

/// The agent that such a line names.
pub fn begun_by(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(BY[0]).or_else(|| line.strip_prefix(AGAIN_BY))?;
    rest.trim_end().strip_suffix(BY[1])
}

/// A log being written.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    /// The file, or the error after which nothing more is written.
    file: io::Result<BufWriter<File>>,
    /// The size of the file in bytes.
    size: u64,
}

impl Log {
    /// Opens a log and appends to an existing one: a killed iteration keeps its output.
    pub fn open(path: &Path) -> Self {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let file = disk::make_private_folder(folder).and_then(|()| open_buffered(path));
        Self { path: path.to_owned(), file, size: disk::size(path) }
    }

    /// Adds output.
    pub fn add(&mut self, bytes: &[u8]) {
        if let Err(error) = self.write_bytes(bytes) {
            self.file = Err(error);
        }
    }

    /// Writes the buffer, so that a follower sees it.
    pub fn flush(&mut self) {
        if let Ok(file) = &mut self.file
            && let Err(error) = file.flush()
        {
            self.file = Err(error);
        }
    }

    /// Writes the rest. Returns the first error, if there was one.
    pub fn close(mut self) -> Option<io::Error> {
        self.flush();
        self.file.err()
    }

    fn write_bytes(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let (false, Ok(file)) = (bytes.is_empty(), &mut self.file) {
            if self.size >= KEPT {
                // The current file becomes the earlier one, and replaces that.
                file.flush()?;
                disk::rename(&self.path, &earlier_file(&self.path))?;
                *file = open_buffered(&self.path)?;
                self.size = 0;
            }
            let room = usize::try_from(KEPT - self.size).unwrap_or(usize::MAX);
            let (fits, rest) = bytes.split_at(bytes.len().min(room));
            file.write_all(fits)?;
            self.size += fits.len() as u64;
            bytes = rest;
        }
        Ok(())
    }
}

fn open_buffered(path: &Path) -> io::Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(GATHERED, disk::open_to_append(path)?))
}

// Deletes the oldest logs of all loops. It never deletes a loop's record, only what its agents
// printed.

/// A bound greater than the number of loops in a home, and of logs of a loop.
const ENTRIES_MAX: usize = 100_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Keeps the newest `most` bytes of logs and none older than `days`; 0 means no limit, for each. A
/// log's age counts from its last write. What cannot be deleted is skipped.
pub fn prune_logs(home: &Home, most: u64, days: u64) {
    let mut logs = list_logs(home);
    logs.sort_unstable_by_key(|log| std::cmp::Reverse(log.written));
    let oldest = oldest_kept(days);
    let mut kept = 0;
    for log in logs {
        if log.written >= oldest && (most == 0 || kept + log.bytes <= most) {
            kept += log.bytes;
        } else {
            let _ = disk::remove(&log.path);
        }
    }
}

struct StoredLog {
    path: PathBuf,
    bytes: u64,
    /// Nanoseconds since 1970.
    written: i128,
}

fn list_logs(home: &Home) -> Vec<StoredLog> {
    let loops = disk::names(&home.loops_folder(), ENTRIES_MAX);
    let folders = loops.iter().map(|name| home.loops_folder().join(name).join(FOLDER));
    let names = folders.flat_map(|folder| {
        let names = disk::names(&folder, ENTRIES_MAX).into_iter();
        names.filter(|name| is_kept(name)).map(move |name| folder.join(name))
    });
    let files = names.filter_map(|path| {
        let (bytes, written) = disk::stamp(&path)?;
        Some(StoredLog { path, bytes, written })
    });
    files.take(ENTRIES_MAX).collect()
}

/// Whether a file is bounded by the settings for logs: an agent's output, or its prompt.
fn is_kept(name: &str) -> bool {
    name.contains(".log") || name.ends_with(".prompt")
}

/// The earliest modification time of files that are kept for this many days, in nanoseconds since
/// 1970. 0 days keep everything.
pub fn oldest_kept(days: u64) -> i128 {
    let seconds = DAY.as_secs().saturating_mul(days);
    match days {
        0 => i128::MIN,
        _ => (i128::from(clock::now().wall.timestamp()) - i128::from(seconds)) * 1_000_000_000,
    }
}

// Reads the last part of a log and what is appended later. A follower continues when the log starts
// a new file; it may miss part of very fast output.

/// The maximum number of bytes returned at once.
const PAGE: u64 = 64 << 10;

/// A log being read.
#[derive(Debug)]
pub struct Tail {
    log: PathBuf,
    /// The open file; `None` before the log exists.
    file: Option<File>,
    /// Whether the first bytes belong to a line that began before them.
    begins_within: bool,
}

impl Tail {
    /// Starts `most` bytes before the end, at a whole line. The log may not exist yet.
    pub fn open(log: &Path, most: u64) -> io::Result<Self> {
        let mut tail = Self { log: log.to_owned(), file: None, begins_within: false };
        let (old, now) = (disk::size(&earlier_file(log)), disk::size(log));
        let (path, skipped) = if most > now && old > 0 {
            (earlier_file(log), old.saturating_sub(most - now))
        } else {
            (log.to_owned(), now.saturating_sub(most))
        };
        if let Some(mut file) = disk::open_file(&path)? {
            // Start one byte earlier: if that byte is a line break, the next line is whole.
            file.seek(SeekFrom::Start(skipped.saturating_sub(1)))?;
            tail.begins_within = skipped > 0;
            tail.file = Some(file);
        }
        Ok(tail)
    }

    /// The next bytes, 64 KiB at most. An empty result means that everything was read so far; call
    /// again later to follow.
    pub fn read_next(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if self.file.is_none() {
                self.file = disk::open_file(&self.log)?;
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
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(path: &Path) -> Vec<u8> {
        disk::read(path, 1 << 30).unwrap().unwrap()
    }

    #[test]
    fn a_log_is_private_and_names_the_agent_of_every_later_try() {
        let folder = testkit::folder();
        let path = folder.path().join("iterations/0001.log");
        let tries = |path: &Path, is_one_of_several: bool| {
            for (agent, words) in [("claude", "one\n"), ("claude", "tw"), ("codex", "three\n")] {
                begin_output(path, agent, is_one_of_several);
                let mut log = Log::open(path);
                log.add(words.as_bytes());
                assert!(log.close().is_none());
            }
            String::from_utf8(read(path)).unwrap()
        };
        let expected = "one\n… this iteration again by claude …\n\
                        tw\n… this iteration again by codex …\nthree\n";
        assert_eq!(tries(&path, false), expected);
        let several = tries(&folder.path().join("0002.log"), true);
        assert_eq!(several, format!("… this iteration by claude …\n{expected}"));
        let named: Vec<&str> = several.lines().filter_map(begun_by).collect();
        assert_eq!(named, ["claude", "claude", "codex"]);
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn the_end_of_a_long_log_is_kept_in_two_files() {
        let folder = testkit::folder();
        let path = folder.path().join("0001.log");
        let mut log = Log::open(&path);
        let line = [b"x".repeat(999), b"\n".to_vec()].concat();
        for _ in 0..35_000 {
            log.add(&line);
        }
        log.add(b"last words\n");
        assert!(log.close().is_none());
        let text = [read(&earlier_file(&path)), read(&path)].concat();
        let bound = usize::try_from(KEPT).unwrap();
        assert!((bound..=2 * bound).contains(&text.len()), "{}", text.len());
        assert!(text.ends_with(b"\nlast words\n"));
        let lines = text.strip_suffix(b"last words\n").unwrap().rchunks_exact(1000);
        assert!(lines.into_iter().all(|found| found == line), "a piece in the middle is missing");
        let mut names = disk::names(folder.path(), 9);
        names.sort();
        assert_eq!(names, ["0001.log", "0001.log.old"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported_once_and_stops_nothing() {
        let mut log = Log::open(Path::new("/dev/full"));
        log.add(b"some words\n");
        log.flush();
        log.add(b"and more\n");
        let error = log.close().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

#[cfg(test)]
mod keep_tests {
    use std::time::SystemTime;

    use super::*;
    use crate::files::disk::Durability;

    /// A home with these logs of 100 bytes each: loop, iteration, age in days.
    fn home(logs: &[(&str, u32, u64)]) -> (tempfile::TempDir, Home) {
        let folder = testkit::folder();
        let home = Home::at(folder.path());
        for (id, iteration, age) in logs {
            let path = log_path(&home, &id.parse().unwrap(), *iteration);
            disk::make_private_folder(path.parent().unwrap()).unwrap();
            disk::write(&path, &[b'x'; 100], Durability::Process).unwrap();
            let file = disk::open_to_append(&path).unwrap();
            let wall: SystemTime = clock::now().wall.into();
            file.set_modified(wall - DAY * u32::try_from(*age).unwrap()).unwrap();
        }
        (folder, home)
    }

    fn left(home: &Home) -> Vec<String> {
        let root = home.loops_folder();
        let name = |log: StoredLog| log.path.strip_prefix(&root).unwrap().display().to_string();
        let mut left: Vec<String> = list_logs(home).into_iter().map(name).collect();
        left.sort();
        left
    }

    const LOGS: [(&str, u32, u64); 4] =
        [("k3v9aaaa", 1, 100), ("k3v9aaaa", 2, 3), ("m2m2bbbb", 1, 1), ("m2m2bbbb", 2, 91)];

    #[test]
    fn pruning_by_age_covers_all_loops() {
        let (_folder, home) = home(&LOGS);
        prune_logs(&home, 0, 90);
        assert_eq!(left(&home), ["k3v9aaaa/iterations/0002.log", "m2m2bbbb/iterations/0001.log"]);
    }

    #[test]
    fn a_prompt_is_pruned_with_the_logs() {
        let (_folder, home) = home(&[]);
        let id = "k3v9aaaa".parse().unwrap();
        keep_prompt(&home, &id, 1, "Build it.");
        assert_eq!(read_prompt(&home, &id, 1).as_deref(), Some("Build it."));
        prune_logs(&home, 1, 0);
        assert_eq!(read_prompt(&home, &id, 1), None);
    }

    #[test]
    fn pruning_by_size_removes_the_oldest_logs() {
        let (_folder, home) = home(&LOGS);
        prune_logs(&home, 150, 0);
        assert_eq!(left(&home), ["m2m2bbbb/iterations/0001.log"]);
        prune_logs(&home, 0, 0);
        assert_eq!(left(&home), ["m2m2bbbb/iterations/0001.log"]);
    }
}

#[cfg(test)]
mod tail_tests {
    use super::*;
    use crate::files::disk::Durability;
    use crate::logs::{KEPT, Log};

    fn read(tail: &mut Tail) -> String {
        let mut all = Vec::new();
        loop {
            let bytes = tail.read_next().unwrap();
            if bytes.is_empty() {
                return String::from_utf8(all).unwrap();
            }
            all.extend(bytes);
        }
    }

    #[test]
    fn a_tail_begins_at_the_start_of_a_line() {
        let folder = testkit::folder();
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
    fn a_follower_reads_each_new_file_to_the_end() {
        let folder = testkit::folder();
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
    fn a_tail_continues_into_the_previous_file() {
        let folder = testkit::folder();
        let path = folder.path().join("0001.log");
        disk::write(&earlier_file(&path), b"one\ntwo\n", Durability::Process).unwrap();
        disk::write(&path, b"three\n", Durability::Process).unwrap();
        assert_eq!(read(&mut Tail::open(&path, 10).unwrap()), "two\nthree\n");
        assert_eq!(read(&mut Tail::open(&path, 99).unwrap()), "one\ntwo\nthree\n");
    }
}
