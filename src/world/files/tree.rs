//! Whole folders and links: listing without following links, exchanging in one step, removing; and
//! whether a path leads out of a checkout. It does not check whether a folder is crew's own:
//! callers check that before they remove one.
#![expect(clippy::disallowed_methods, reason = "this is the one door to folders as wholes")]

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::disk;

/// Where `path` really is, if that is outside the checkout and the checkout led there, because the
/// path, or the file that named it, belongs to the checkout. Such a text would be sent or kept only
/// because the author of the project says so.
pub fn leads_out(checkout: &Path, path: &Path, named_by: &Path) -> Option<PathBuf> {
    let top = disk::real_path(checkout).ok()?;
    let real = disk::real_path(path).ok()?;
    let is_the_projects = |file: &Path| {
        file.starts_with(checkout) || disk::real_path(file).is_ok_and(|file| file.starts_with(&top))
    };
    let leads = is_the_projects(path) || is_the_projects(named_by);
    (leads && !real.starts_with(&top)).then_some(real)
}

/// Every file below a folder, as relative paths, at most `limit` of them. Links count as files.
pub fn files(folder: &Path, limit: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        for name in disk::names(&folder.join(&below), limit) {
            let path = below.join(name);
            let is_folder = fs::symlink_metadata(folder.join(&path)).is_ok_and(|it| it.is_dir());
            if is_folder {
                open.push(path);
            } else if found.len() < limit {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Whether this path itself is a folder, not a link to one.
pub fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_dir())
}

/// What is at this path itself, in one word.
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

/// The permission bits of what a path leads to; `None` when it does not exist.
pub fn mode(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|it| it.permissions().mode() & 0o777)
}

/// Whether a path leads to an executable file.
pub fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Makes `link` lead to `program`; copies it where the disk does not support links.
pub fn link_or_copy(program: &Path, link: &Path) -> io::Result<()> {
    symlink(program, link).or_else(|_| copy_program(program, link))
}

fn copy_program(program: &Path, copy: &Path) -> io::Result<()> {
    fs::copy(program, copy)?;
    fs::set_permissions(copy, fs::Permissions::from_mode(0o755))
}

/// Puts `new` in the place of `current`. What was at `current` is then at `new`. On Linux and macOS
/// there is a folder at `current` at all times; on a disk that cannot exchange there is a short
/// gap.
pub fn exchange(new: &Path, current: &Path) -> io::Result<()> {
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
pub fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a folder if it is empty.
pub fn remove_if_empty(folder: &Path) {
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::files::disk::Durability;

    #[test]
    fn a_copied_program_can_be_run_and_a_link_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let [program, copy, link] = ["crew", "copy", "link"].map(|name| folder.path().join(name));
        disk::write(&program, b"#!/bin/sh\n", Durability::Process).unwrap();
        assert!(!is_program(&program));
        copy_program(&program, &copy).unwrap();
        link_or_copy(&copy, &link).unwrap();
        assert!(is_program(&link) && disk::real_path(&link).unwrap().ends_with("copy"));
    }

    #[test]
    fn a_checkout_leads_out_by_a_link_and_by_what_its_own_file_names() {
        let folder = tempfile::tempdir().unwrap();
        let [checkout, outside, door] =
            ["repo", "outside", "door"].map(|it| folder.path().join(it));
        disk::make_folder(&checkout).unwrap();
        symlink(&checkout, &door).unwrap();
        for file in [&checkout.join("own.md"), &outside] {
            disk::write(file, b"", Durability::Process).unwrap();
        }
        symlink(&outside, checkout.join("link.md")).unwrap();
        let [own, link] = ["own.md", "link.md"].map(|name| checkout.join(name));
        let led = |path: &Path, named_by: &Path| leads_out(&checkout, path, named_by).is_some();
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
            assert_eq!(led(path, named_by), expected, "{path:?} by {named_by:?}");
        }
    }

    #[test]
    fn an_exchange_leaves_the_old_folder_where_the_new_one_was() {
        let folder = tempfile::tempdir().unwrap();
        let [new, current] = ["new", "current"].map(|name| folder.path().join(name));
        for (place, name) in [(&new, "b"), (&current, "a")] {
            disk::make_folder(&place.join("in")).unwrap();
            disk::write(&place.join("in").join(name), b"", Durability::Process).unwrap();
        }
        exchange(&new, &current).unwrap();
        assert_eq!(files(&current, 9), [Path::new("in/b")]);
        assert_eq!(files(&new, 9), [Path::new("in/a")]);
    }
}
