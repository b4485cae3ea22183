//! File access: every read has a size limit, every write replaces the file atomically, and every
//! lock has a bounded wait. A crash leaves the old file or the new one, and at worst a temporary
//! file beside it. Every error names the path and what could not be done with it.
#![expect(clippy::disallowed_methods, reason = "this is the one door to files")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs2::FileExt;

use crate::clock::Deadline;
use crate::fault;
use engine::text::decode_line;

/// The buffer of a first read. Most of crew's files fit, so one call is enough.
const FIRST_READ: usize = 4096;

/// An operation that the system refused, with its path. It is wrapped in an `io::Error` of the same
/// kind.
#[derive(Debug, thiserror::Error)]
#[error("cannot {act} {}: {why}", .path.display())]
pub struct Refused {
    act: &'static str,
    path: PathBuf,
    why: io::Error,
}

/// Adds the path to an error; the system's errors do not have it.
pub fn cannot(act: &'static str, path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |why| io::Error::new(why.kind(), Refused { act, path: path.to_owned(), why })
}

/// Reads a file of at most `limit` bytes. `None` when it does not exist; a larger file is an error.
pub fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_file(path)? else { return Ok(None) };
    read_stream(file, limit).map(Some).map_err(cannot("read", path))
}

/// Reads a small text file; bytes that are not UTF-8 are replaced.
pub fn read_text(path: &Path, limit: u64) -> io::Result<Option<String>> {
    Ok(read(path, limit)?.map(into_text))
}

/// Reads a whole stream of at most `limit` bytes; more is an error.
pub fn read_stream(stream: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(FIRST_READ);
    stream.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let complaint = format!("it is larger than {limit} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, complaint));
    }
    Ok(bytes)
}

/// The end of a file, from `start` and at most `limit` bytes, and whether something was left out.
pub fn read_end(path: &Path, start: u64, limit: u64) -> io::Result<(String, bool)> {
    read_last_bytes(path, start, limit).map_err(cannot("read", path))
}

fn read_last_bytes(path: &Path, start: u64, limit: u64) -> io::Result<(String, bool)> {
    let mut file = open_regular(path)?;
    let size = file.metadata()?.len();
    let from = if start <= size { start } else { 0 };
    let cut = size - from > limit;
    file.seek(SeekFrom::Start(if cut { size - limit } else { from }))?;
    let wanted = limit.min(size - from);
    let mut bytes = Vec::with_capacity(usize::try_from(wanted).unwrap_or(0) + FIRST_READ);
    file.take(limit).read_to_end(&mut bytes)?;
    Ok((into_text(bytes), cut))
}

/// Converts bytes to text; reuses the buffer if it is valid UTF-8, which is nearly always the case.
pub fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The largest part of a line that is kept.
const LINE_BYTES: usize = 1 << 20;

/// Passes each whole line of a file, from `start` on, to `each`, with whether the line was
/// truncated because it is very long. No line starts after `limit` bytes. Returns where the next
/// line starts, and whether there is one.
pub fn read_lines(
    path: &Path,
    start: u64,
    limit: u64,
    each: impl FnMut(&str, bool),
) -> io::Result<(u64, bool)> {
    let file = open_regular(path).map_err(cannot("read", path))?;
    cut_lines(file, start, limit, each).map_err(cannot("read", path))
}

fn cut_lines(
    mut file: File,
    start: u64,
    limit: u64,
    mut each: impl FnMut(&str, bool),
) -> io::Result<(u64, bool)> {
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(start))?;
    let mut source = BufReader::with_capacity(64 << 10, file.take(size.saturating_sub(start)));
    // A buffer of this size has its own mapping, so its memory is returned to the system at once.
    let mut line = Vec::with_capacity(LINE_BYTES);
    let mut at = start;
    while at < start.saturating_add(limit) {
        line.clear();
        let mut length = source.by_ref().take(LINE_BYTES as u64).read_until(b'\n', &mut line)?;
        let mut is_whole = line.ends_with(b"\n");
        let cut = !is_whole && length == LINE_BYTES;
        if cut {
            length += source.skip_until(b'\n')?;
            // `skip_until` does not report whether it met a line break or the end of the file. Data
            // after the line shows that it was a break.
            is_whole = at + (length as u64) < size;
        }
        if !is_whole {
            return Ok((at, false));
        }
        each(&decode_line(&line, LINE_BYTES), cut);
        at += length as u64;
    }
    Ok((at, at < size))
}

/// Refuses a pipe in place of a file: reading it could block forever.
fn open_regular(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        return File::open(path);
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file"))
}

/// The size of a file in bytes; 0 when it does not exist.
pub fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

/// The bytes that a user may still write to the file system of a path, if known.
pub fn free_bytes(path: &Path) -> Option<u64> {
    fs2::available_space(path).ok()
}

/// The size in bytes and modification time in nanoseconds of the path itself; `None` when it does
/// not exist.
pub fn stamp(path: &Path) -> Option<(u64, i128)> {
    use std::os::unix::fs::MetadataExt;
    let file = fs::symlink_metadata(path).ok()?;
    Some((file.len(), i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec())))
}

/// The identity of a file that is only replaced as a whole: its inode, size and time.
pub fn file_version(path: &Path) -> Option<(u64, u64, i128)> {
    use std::os::unix::fs::MetadataExt;
    let number = fs::symlink_metadata(path).ok()?.ino();
    stamp(path).map(|(bytes, modified)| (number, bytes, modified))
}

/// Whether the path names a file, and not a folder or anything else.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Whether the path names a folder.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// Whether the path does not exist. A path that cannot be checked does not count as missing.
pub fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| is_absent(&error))
}

/// Whether the path exists.
pub fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// The path with every link resolved.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path).map_err(cannot("read", path))
}

/// Creates a folder and its missing parents, for this user only.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(cannot("make", path))
}

/// Creates a folder and its missing parents, with the user's usual mode.
pub fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path).map_err(cannot("make", path))
}

/// The prefix of every scratch folder's name.
pub(super) const SCRATCH: &str = "crew-scratch-";

/// Creates a new folder for this user only and returns its real path. An existing folder or link of
/// that name is an error, because the parent folder is writable by everybody.
pub fn make_scratch_folder(parent: &Path, name: u64) -> io::Result<PathBuf> {
    let folder = real_path(parent)?.join(format!("{SCRATCH}{name:016x}"));
    fs::DirBuilder::new().mode(0o700).create(&folder).map_err(cannot("make", &folder))?;
    Ok(folder)
}

/// The names in a folder, at most `limit` of them; empty when it does not exist or cannot be read.
pub fn names(folder: &Path, limit: usize) -> Vec<String> {
    list_names(folder, limit).unwrap_or_default()
}

/// The names in a folder, at most `limit` of them; empty when it does not exist.
pub fn list_names(folder: &Path, limit: usize) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        entries => entries.map_err(cannot("read", folder))?,
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.take(limit).collect())
}

/// Creates an empty file for this user only, open for writing.
pub fn create_private(path: &Path) -> io::Result<File> {
    create_file(path).map_err(cannot("write", path))
}

fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Opens a file for this user only, for appending; creates it if it does not exist.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).open(path).map_err(cannot("write", path))
}

/// Opens a file for reading; `None` when it does not exist.
pub fn open_file(path: &Path) -> io::Result<Option<File>> {
    match open_regular(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(cannot("read", path)(error)),
    }
}

/// Whether the path still names this open file.
pub fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Renames a file and replaces a file that has the new name.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to).map_err(cannot("write", to))
}

/// Removes a file; a missing file is not an error.
pub fn remove(path: &Path) -> io::Result<()> {
    unlink_file(path).map_err(cannot("remove", path))
}

fn unlink_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Renames a file to another name in the same folder.
pub fn move_aside(path: &Path, name: &str) -> io::Result<PathBuf> {
    let aside = path.with_file_name(name);
    rename(path, &aside).map(|()| aside)
}

/// Copies a file to another name in the same folder.
pub fn copy_aside(path: &Path, name: &str) -> io::Result<()> {
    fs::copy(path, path.with_file_name(name)).map(drop).map_err(cannot("copy", path))
}

/// The kind of crash that a write must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the machine: the file and its folder are synced.
    Machine,
    /// A crash of the process: enough for what can be written again from the record.
    Process,
    /// As `Process`, for data that can be created again from the working tree. Tests cannot set a
    /// fault here, because they count the writes of a loop's own files.
    Remade,
}

impl Durability {
    fn point(self, name: &'static str) -> io::Result<()> {
        if self == Self::Remade { Ok(()) } else { fault::point(name) }
    }
}

/// Replaces a whole file: a temporary file beside it, then a rename.
pub fn write(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    let result = write_beside(&temporary, bytes, durability).and_then(|()| {
        durability.point("write.rename")?;
        fs::rename(&temporary, path)
    });
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    let synced = result.and_then(|()| {
        durability.point("write.folder")?;
        if durability == Durability::Machine { File::open(folder)?.sync_all() } else { Ok(()) }
    });
    synced.map_err(cannot("write", path))
}

fn write_beside(temporary: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    durability.point("write.open")?;
    // A crash may have left one. In a folder of the agent it may be a planted link.
    unlink_file(temporary)?;
    let mut file = create_file(temporary)?;
    durability.point("write.data")?;
    file.write_all(bytes)?;
    durability.point("write.sync")?;
    // Without this, a crash after the rename may leave the new name with no data.
    if durability == Durability::Machine { file.sync_all() } else { Ok(()) }
}

/// Appends one line and syncs it. If a crash left an incomplete last line, that line is ended
/// first, so that only it is lost.
pub fn append_line(path: &Path, line: &str) -> io::Result<()> {
    append_text(path, line).map_err(cannot("write", path))
}

fn append_text(path: &Path, line: &str) -> io::Result<()> {
    fault::point("journal.open")?;
    let mut options = OpenOptions::new();
    let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
    let mut text = String::with_capacity(line.len() + 2);
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            text.push('\n');
        }
    }
    text.push_str(line);
    text.push('\n');
    fault::point("journal.write")?;
    file.write_all(text.as_bytes())?;
    fault::point("journal.sync")?;
    file.sync_data()
}

/// An exclusive lock, released when dropped. The lock file is never the data file (a rename changes
/// the inode) and is never deleted (two holders could then hold two files of one name).
#[derive(Debug)]
#[must_use]
pub struct Lock(File);

impl Lock {
    /// Replaces the lock file's note about its holder. This is not atomic: a concurrent reader may
    /// see part of it.
    pub fn write_holder(&self, text: &str) -> io::Result<()> {
        let mut file = &self.0;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())
    }
}

/// Whether another process holds the lock of this file. It tries a shared lock, so that two callers
/// at the same time do not mistake each other for the holder.
pub fn is_locked(path: &Path) -> bool {
    let file = open_file(path).ok().flatten();
    file.is_some_and(|file| file.try_lock_shared().is_err())
}

/// Takes a lock, waiting at most `wait`. `None` if another process holds it.
pub fn take_lock(path: &Path, wait: Duration) -> io::Result<Option<Lock>> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(cannot("lock", path))?;
    let deadline = Deadline::after(wait);
    let taken = deadline.poll(Duration::from_millis(2), || match file.try_lock_exclusive() {
        Ok(()) => Some(Ok(())),
        Err(error) if error.kind() == fs2::lock_contended_error().kind() => None,
        Err(error) => Some(Err(error)),
    });
    match taken {
        Some(Ok(())) => Ok(Some(Lock(file))),
        Some(Err(error)) => Err(cannot("lock", path)(error)),
        None => Ok(None),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
