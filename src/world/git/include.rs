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
/// they are now; what is there already stays, unless this `replaces` it. Returns what was left out,
/// each with its reason. The error is a sentence.
pub fn copy(patterns: &str, from: &Path, to: &Path, replaces: bool) -> Result<Vec<String>, String> {
    let lines = patterns.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let patterns: Vec<String> = lines.map(|line| format!("--exclude={line}")).collect();
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let mut list = vec!["ls-files", "-z", "--others", "--ignored"];
    list.extend(patterns.iter().take(PATTERNS_MAX).map(String::as_str));
    let listed = Git::here(from).printed(&list, &[]).ok_or("git cannot list the files")?;
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    let mut left_out = copy_files(paths, from, to, replaces)?;
    let more = patterns.len().saturating_sub(PATTERNS_MAX);
    if more > 0 {
        left_out.insert(0, format!("{more} patterns beyond {PATTERNS_MAX}"));
    }
    Ok(left_out)
}

/// The same for files by their paths. One that is replaced differs in size or time.
pub fn copy_files<'a>(
    mut paths: impl Iterator<Item = &'a [u8]>,
    from: &Path,
    to: &Path,
    replaces: bool,
) -> Result<Vec<String>, String> {
    let mut left_out = Vec::new();
    for path in paths.by_ref().take(FILES_MAX) {
        let path = Path::new(OsStr::from_bytes(path));
        let (source, target) = (from.join(path), to.join(path));
        let is_known = disk::stamp(&source) == disk::stamp(&target);
        if is_known || (!replaces && disk::exists(&target)) {
            continue;
        }
        let why = match tree::kind(&source) {
            "gone" => continue,
            "file" | "program" if disk::size(&source) <= FILE_BYTES => {
                let parent = target.parent().unwrap_or(to);
                let copied =
                    disk::make_folder(parent).and_then(|()| tree::copy_with_time(&source, &target));
                copied.map_err(|error| format!("{}: {error}", path.display()))?;
                continue;
            }
            "file" | "program" => "over 50 MiB",
            kind => kind,
        };
        left_out.push(format!("{} ({why})", path.display()));
    }
    let more = paths.count();
    if more > 0 {
        left_out.insert(0, format!("{more} files beyond {FILES_MAX}"));
    }
    Ok(left_out)
}
