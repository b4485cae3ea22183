//! Writes an iteration's log, readable by this user only, and keeps its end. A failed write does
//! not stop the iteration: the first error is kept for the caller, and the rest is dropped.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{KEPT, earlier};
use crate::world::files::disk;

/// How many bytes are buffered before a write.
const GATHERED: usize = 64 << 10;
/// What a line of crew's own begins and ends with: it names the agent whose output follows.
const BY: [&str; 2] = ["… this iteration by ", " …"];
const AGAIN_BY: &str = "… this iteration again by ";

/// Begins the output of an agent in a log. A further try of the iteration is separated from those
/// before; the first one is named only where several agents may follow each other.
pub fn begin(path: &Path, agent: &str, is_one_of_several: bool) {
    let before = disk::read_end(path, 0, 1).map(|(end, _)| end).unwrap_or_default();
    let by = match &*before {
        "" if !is_one_of_several => return,
        "" => BY[0].to_owned(),
        "\n" => AGAIN_BY.to_owned(),
        // A killed crew left half a line.
        _ => format!("\n{AGAIN_BY}"),
    };
    let mut log = Log::open(path);
    log.add_line(format!("{by}{agent}{}", BY[1]).as_bytes());
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
    /// `None` after an error.
    file: Option<File>,
    error: Option<io::Error>,
    gathered: Vec<u8>,
    /// The size of the file in bytes.
    size: u64,
}

impl Log {
    /// Opens a log and appends to an existing one: a killed iteration keeps its output.
    pub fn open(path: &Path) -> Self {
        let mut log = Self {
            path: path.to_owned(),
            file: None,
            error: None,
            gathered: Vec::new(),
            size: disk::size(path),
        };
        let folder = path.parent().unwrap_or(Path::new("/"));
        match disk::make_private_folder(folder).and_then(|()| disk::open_to_append(path)) {
            Ok(file) => log.file = Some(file),
            Err(error) => log.error = Some(error),
        }
        log
    }

    /// Adds output.
    pub fn add(&mut self, bytes: &[u8]) {
        if self.gathered.len() + bytes.len() > GATHERED {
            self.flush();
        }
        if bytes.len() < GATHERED {
            self.gathered.extend_from_slice(bytes);
        } else {
            self.attempt(|log| log.write(bytes));
        }
    }

    /// Adds a line, with a line break if it has none.
    pub fn add_line(&mut self, line: &[u8]) {
        self.add(line);
        if !line.ends_with(b"\n") {
            self.add(b"\n");
        }
    }

    /// Writes the buffer, so that a follower sees it.
    pub fn flush(&mut self) {
        if !self.gathered.is_empty() {
            let gathered = std::mem::take(&mut self.gathered);
            self.attempt(|log| log.write(&gathered));
            self.gathered = gathered;
            self.gathered.clear();
        }
    }

    /// Writes the rest. Returns the first error, if there was one.
    pub fn close(mut self) -> Option<io::Error> {
        self.flush();
        self.error
    }

    fn attempt(&mut self, step: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.file.is_some()
            && let Err(error) = step(self)
        {
            self.file = None;
            self.error = Some(error);
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.size >= KEPT {
                self.turn()?;
            }
            let room = usize::try_from(KEPT - self.size).unwrap_or(usize::MAX);
            let (fits, rest) = bytes.split_at(bytes.len().min(room));
            let Some(file) = &mut self.file else { return Ok(()) };
            file.write_all(fits)?;
            self.size += fits.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Starts a new file; the current one becomes the earlier file and replaces that.
    fn turn(&mut self) -> io::Result<()> {
        disk::rename(&self.path, &earlier(&self.path))?;
        self.file = Some(disk::open_to_append(&self.path)?);
        self.size = 0;
        Ok(())
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
    fn a_log_is_private_and_says_whose_every_further_try_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("iterations/0001.log");
        let tries = |path: &Path, is_one_of_several: bool| {
            for (agent, words) in [("claude", "one\n"), ("claude", "tw"), ("codex", "three\n")] {
                begin(path, agent, is_one_of_several);
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
    fn of_a_long_log_the_end_is_kept_in_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0001.log");
        let mut log = Log::open(&path);
        let line = [b"x".repeat(999), b"\n".to_vec()].concat();
        for _ in 0..35_000 {
            log.add(&line);
        }
        log.add(b"last words\n");
        assert!(log.close().is_none());
        let text = [read(&earlier(&path)), read(&path)].concat();
        let bound = usize::try_from(KEPT).unwrap();
        assert!((bound..=2 * bound).contains(&text.len()), "{}", text.len());
        assert!(text.ends_with(b"\nlast words\n"));
        let lines = text.strip_suffix(b"last words\n").unwrap().rchunks_exact(1000);
        assert!(lines.into_iter().all(|it| it == line), "a piece in the middle is missing");
        let mut names = disk::names(folder.path(), 9);
        names.sort();
        assert_eq!(names, ["0001.log", "0001.log.old"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_once_and_stops_nothing() {
        let mut log = Log::open(Path::new("/dev/full"));
        log.add(b"some words\n");
        log.flush();
        log.add(b"and more\n");
        let error = log.close().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
