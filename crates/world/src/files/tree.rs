//! Whole folders and links: listing without following links, exchanging in one step, removing; and
//! whether a path leads out of a checkout. It does not check whether a folder is crew's own:
//! callers check that before they remove one.
#![expect(clippy::disallowed_methods, reason = "this is the one door to folders as wholes")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, mkdirat, openat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

use super::disk::{self, SCRATCH, cannot};
use crate::clock::{self, Deadline, RetryPolicy};

/// The real path of `path`, if it is outside the checkout although the path, or the file that names
/// it, is inside. The contents of such a file would be sent or kept only because the author of the
/// project says so.
pub fn leads_out(checkout: &Path, path: &Path, named_by: &Path) -> Option<PathBuf> {
    let top = disk::real_path(checkout).ok()?;
    let real = disk::real_path(path).ok()?;
    let is_led = [path, named_by].into_iter().any(|file| {
        file.starts_with(checkout) || disk::real_path(file).is_ok_and(|file| file.starts_with(&top))
    });
    if is_led && !real.starts_with(&top) { Some(real) } else { None }
}

/// Every file below a folder, as relative paths, at most `limit` of them. Links count as files.
pub fn list_files(folder: &Path, limit: usize) -> Vec<PathBuf> {
    files_within(folder, limit, |_| true)
}

/// Like [`list_files`], without the folders that `enters` rejects.
pub fn files_within(folder: &Path, limit: usize, enters: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while found.len() < limit
        && let Some(below) = open.pop()
    {
        for name in disk::names(&folder.join(&below), limit) {
            let path = below.join(name);
            if !is_folder(&folder.join(&path)) {
                found.push(path);
            } else if enters(&path) {
                open.push(path);
            }
        }
    }
    found.truncate(limit);
    found.sort();
    found
}

/// Fills a folder with links to the contents of another one. A relative link is copied, so that it
/// leads to the same place beside the new folder. Scope folders such as `node_modules/@shop`, and
/// folders that already exist in the new one, are filled likewise. Existing files stay. False if
/// nothing was added.
pub fn mirror_by_links(from: &Path, to: &Path) -> io::Result<bool> {
    const NAMES_MAX: usize = 100_000;
    disk::make_folder(to)?;
    let mut is_new = false;
    for name in disk::names(from, NAMES_MAX) {
        let (source, target) = (from.join(&name), to.join(&name));
        if is_folder(&source) && (name.starts_with('@') || is_folder(&target)) {
            is_new |= mirror_by_links(&source, &target)?;
        } else if fs::symlink_metadata(&target).is_err() {
            let link = fs::read_link(&source).ok().filter(|link| link.is_relative());
            symlink(link.unwrap_or(source), target)?;
            is_new = true;
        }
    }
    Ok(is_new)
}

/// Whether this path itself is a folder, not a link to one.
pub fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// The kind of file at this path itself, in one word.
pub fn kind(path: &Path) -> &'static str {
    let Ok(found) = fs::symlink_metadata(path) else { return "gone" };
    match (found.is_file(), found.permissions().mode() & 0o100) {
        (true, 0) => "file",
        (true, _) => "program",
        (false, _) if found.is_symlink() => "link",
        (false, _) if found.is_dir() => "folder",
        (false, _) => "other",
    }
}

/// Whether a path is a link to an absolute path, whose target is the same from everywhere.
pub fn is_absolute_link(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|link| link.is_absolute())
}

/// The permission bits of a path's target; `None` when it does not exist.
pub fn read_mode(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|found| found.permissions().mode() & 0o777)
}

/// Sets the permission bits of a file.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Whether a path's target is an executable file.
pub fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Links `link` to `program`, or copies the program where the disk does not support links.
pub fn link_or_copy(program: &Path, link: &Path) -> io::Result<()> {
    symlink(program, link).or_else(|_| copy_program(program, link))
}

fn copy_program(program: &Path, copy: &Path) -> io::Result<()> {
    fs::copy(program, copy)?;
    set_mode(copy, 0o755)
}

/// The maximum number of bytes copied between two checks of the deadline.
const COPIED_AT_ONCE: u64 = 16 << 20;

/// Creates a hard link to a file that never changes, or copies it before the deadline if the disk
/// has no hard links. An existing file stays.
pub fn share_file(file: &Path, to: &Path, deadline: Deadline) -> io::Result<()> {
    match fs::hard_link(file, to) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
        Err(_) => {
            let (mut from, mut copy) = (File::open(file)?, disk::create_private(to)?);
            while io::copy(&mut (&mut from).take(COPIED_AT_ONCE), &mut copy)? > 0 {
                if deadline.passed() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
    }
    Ok(())
}

/// Copies a file with the time of its last change.
pub fn copy_with_time(file: &Path, to: &Path) -> io::Result<()> {
    let written = fs::metadata(file)?.modified()?;
    fs::copy(file, to)?;
    // Its owner may set the time even of a read-only file.
    File::open(to)?.set_modified(written)
}

/// An open folder. Operations in it stay in it, even if one of its parents is replaced with a link.
#[derive(Debug)]
pub struct RealFolder(OwnedFd);

impl RealFolder {
    /// Opens a folder, whose own path may lead through links.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Opens a folder below this one, and creates it if it is missing.
    ///
    /// # Errors
    /// `NotADirectory` if a link or a file is in the place of one of the folders, or the path does
    /// not lead down.
    pub fn enter(&self, below: &Path) -> io::Result<Self> {
        let mut folder = Self(self.0.try_clone()?);
        for part in below.components() {
            let Component::Normal(name) = part else { return Err(Errno::NOTDIR.into()) };
            match mkdirat(&folder.0, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let how = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            folder = match openat(&folder.0, name, how, Mode::empty()) {
                Ok(entered) => Self(entered),
                // For a link, systems report either of the two.
                Err(Errno::LOOP) => return Err(Errno::NOTDIR.into()),
                Err(error) => return Err(error.into()),
            };
        }
        Ok(folder)
    }

    /// Like [`disk::stamp`], for a name in this folder.
    pub fn stamp(&self, name: &OsStr) -> Option<(u64, i128)> {
        let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let size = u64::try_from(found.st_size).unwrap_or_default();
        let nanoseconds = i128::from(found.st_mtime_nsec);
        Some((size, i128::from(found.st_mtime) * 1_000_000_000 + nanoseconds))
    }

    /// Copies a file to a new name in this folder, with its mode and the time of its last change.
    pub fn copy_in(&self, file: &Path, name: &OsStr) -> io::Result<()> {
        let mut from = File::open(file)?;
        let found = from.metadata()?;
        let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut copy = File::from(openat(&self.0, name, how, Mode::from_raw_mode(0o600))?);
        io::copy(&mut from, &mut copy)?;
        copy.set_permissions(found.permissions())?;
        copy.set_modified(found.modified()?)
    }

    /// Moves an entry to a name in another folder, and replaces an entry of that name.
    pub fn move_to(&self, name: &OsStr, other: &Self, new: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, name, &other.0, new)?)
    }

    /// Removes a file; a missing file is not an error.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The bytes that removing this file would free: none if it has another hard link.
pub fn own_bytes(file: &Path) -> u64 {
    fs::symlink_metadata(file).map_or(0, |found| if found.nlink() > 1 { 0 } else { found.len() })
}

/// Whether a file can be opened; a link can always be read.
pub fn is_readable(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_file() || File::open(path).is_ok())
}

/// Exchanges the folders at two paths; if nothing is at `current`, moves `new` there. On Linux and
/// macOS a folder is at `current` at all times, except on a disk that cannot exchange.
pub fn exchange_folders(new: &Path, current: &Path) -> io::Result<()> {
    if !disk::exists(current) {
        return fs::rename(new, current);
    }
    if renameat_with(CWD, new, CWD, current, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    let aside = new.with_extension("aside");
    fs::rename(current, &aside)?;
    match fs::rename(new, current) {
        Ok(()) => fs::rename(&aside, new),
        Err(error) => fs::rename(&aside, current).and(Err(error)),
    }
}

/// Removes a folder and its contents; a missing folder is not an error.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The maximum number of folders whose mode is changed so that they can be removed.
const FOLDERS_MAX: usize = 1_000_000;

/// Like [`remove_folder`], also for a folder that contains read-only ones, as module caches do.
pub fn remove_stubborn(folder: &Path) -> io::Result<()> {
    let Err(error) = remove_folder(folder) else { return Ok(()) };
    if error.kind() != io::ErrorKind::PermissionDenied {
        return Err(error);
    }
    let mut open = vec![folder.to_owned()];
    let mut left = FOLDERS_MAX;
    while left > 0
        && let Some(next) = open.pop()
    {
        left -= 1;
        let _ = set_mode(&next, 0o700);
        let names = disk::names(&next, FOLDERS_MAX).into_iter().map(|name| next.join(name));
        open.extend(names.filter(|path| is_folder(path)));
    }
    remove_folder(folder)
}

/// How long removal waits for processes that still write in a scratch folder.
const SCRATCH_WAIT: Duration = Duration::from_secs(2);

/// Removes a scratch folder and its contents, and refuses any other folder. Processes that still
/// write there get a moment to finish.
pub fn remove_scratch_folder(folder: &Path) -> io::Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with(SCRATCH) {
        return Err(cannot("remove", folder)(io::Error::other("it is not a scratch folder")));
    }
    let policy = RetryPolicy::every(Duration::from_millis(20), SCRATCH_WAIT);
    clock::retry(policy, || false, || remove_folder(folder)).map_err(cannot("remove", folder))
}

/// Removes a folder if it is empty.
pub fn remove_if_empty(folder: &Path) {
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::disk::Durability;

    #[test]
    fn a_copied_program_can_be_run_and_a_link_leads_to_it() {
        let folder = testkit::folder();
        let [program, copy, link] = ["crew", "copy", "link"].map(|name| folder.path().join(name));
        disk::write(&program, b"#!/bin/sh\n", Durability::Process).unwrap();
        assert!(!is_program(&program));
        copy_program(&program, &copy).unwrap();
        link_or_copy(&copy, &link).unwrap();
        assert!(is_program(&link) && disk::real_path(&link).unwrap().ends_with("copy"));
    }

    #[test]
    fn a_path_that_leaves_the_checkout_by_a_link_or_by_its_text_is_detected() {
        let folder = testkit::folder();
        let [checkout, outside, door] =
            ["repo", "outside", "door"].map(|name| folder.path().join(name));
        disk::make_folder(&checkout).unwrap();
        symlink(&checkout, &door).unwrap();
        for file in [&checkout.join("own.md"), &outside] {
            disk::write(file, b"", Durability::Process).unwrap();
        }
        symlink(&outside, checkout.join("link.md")).unwrap();
        let [own, link] = ["own.md", "link.md"].map(|name| checkout.join(name));
        // The path, the file that names it, and whether the checkout leads out through it.
        let table = [
            (&own, &own, false),
            (&link, &link, true),
            (&link, &outside, true),
            (&outside, &own, true),
            (&outside, &door.join("own.md"), true),
            (&outside, &outside, false),
            (&own, &outside, false),
            (&checkout.join("missing.md"), &own, false),
        ];
        for (path, named_by, expected) in table {
            let leads = leads_out(&checkout, path, named_by).is_some();
            assert_eq!(leads, expected, "{path:?} by {named_by:?}");
        }
    }

    #[test]
    fn an_exchange_puts_the_old_folder_where_the_new_one_was() {
        let folder = testkit::folder();
        let [new, current] = ["new", "current"].map(|name| folder.path().join(name));
        for (place, name) in [(&new, "b"), (&current, "a")] {
            disk::make_folder(&place.join("in")).unwrap();
            disk::write(&place.join("in").join(name), b"", Durability::Process).unwrap();
        }
        exchange_folders(&new, &current).unwrap();
        assert_eq!(list_files(&current, 9), [Path::new("in/b")]);
        assert_eq!(list_files(&new, 9), [Path::new("in/a")]);
    }
}
