//! Copies the ignored files that a new working tree needs, as `.worktreeinclude` names them. It
//! copies plain files of a bounded size, and no link: it could lead out of the working tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Git;
use crate::world::files::{disk, tree};

/// The most bytes of it.
pub const INCLUDE_BYTES: u64 = 1 << 20;
/// The most files that are copied.
const FILES_MAX: usize = 10_000;
/// The most bytes of a file that is copied.
const FILE_BYTES: u64 = 50 << 20;
/// The most lines of patterns, which become words of a command.
const PATTERNS_MAX: usize = 2000;

/// Copies the files that `patterns` name and git ignores in `from` to the same places in `to`, as
/// they are now. The error is a sentence.
pub fn copy(patterns: &str, from: &Path, to: &Path) -> Result<(), String> {
    let lines = patterns.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let patterns: Vec<String> =
        lines.take(PATTERNS_MAX).map(|line| format!("--exclude={line}")).collect();
    if patterns.is_empty() {
        return Ok(());
    }
    let mut list = vec!["ls-files", "-z", "--others", "--ignored"];
    list.extend(patterns.iter().map(String::as_str));
    let listed = Git::here(from).printed(&list, &[]).ok_or("git cannot list the files")?;
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    copy_files(paths, from, to)
}

/// Copies plain files by their paths, except those that are there already.
pub fn copy_files<'a>(
    paths: impl Iterator<Item = &'a [u8]>,
    from: &Path,
    to: &Path,
) -> Result<(), String> {
    for path in paths.take(FILES_MAX) {
        let path = Path::new(OsStr::from_bytes(path));
        let (source, target) = (from.join(path), to.join(path));
        let is_known = disk::stamp(&source) == disk::stamp(&target);
        let is_plain = matches!(tree::kind(&source), "file" | "program");
        if is_known || !is_plain || disk::size(&source) > FILE_BYTES {
            continue;
        }
        let parent = target.parent().unwrap_or(to);
        let copied =
            disk::make_folder(parent).and_then(|()| tree::copy_with_time(&source, &target));
        copied.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
