//! Copies the ignored files that a new working tree needs, as `.worktreeinclude` names them. It
//! copies plain files of a bounded size, and no link: it could lead out of the working tree. What
//! git does not ignore is not copied either: a commit there would take it in.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Git;
use crate::parse::git::{BRANCHES, zero_ended};
use crate::world::files::{disk, tree};
use crate::world::process::ExitCause;

/// The most bytes of it.
pub const INCLUDE_BYTES: u64 = 1 << 20;
/// The most files that are copied.
const FILES_MAX: usize = 10_000;
/// The most bytes of a file that is copied.
const FILE_BYTES: u64 = 50 << 20;
/// The most lines of patterns, which become words of a command.
const PATTERNS_MAX: usize = 2000;
/// Begins a path that git would otherwise take for a pattern, such as `:(glob)a`.
const HERE: &[u8] = b"./";
/// The name of a file that is not copied whole yet.
const HALF: &str = "copied.tmp";

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
    let unlisted = "git cannot list the files";
    let listed = Git::here(from).printed(&list).ok_or(unlisted)?;
    let asked = |arguments: &[&str], input: &[u8]| {
        let ended = Git { input, ..Git::here(from) }.start(arguments).ok()?;
        // 1 means that no path is covered.
        let is_whole = matches!(ended.cause, ExitCause::Exit(0 | 1)) && !ended.cut;
        is_whole.then_some(ended.output)
    };
    let covered = ignored_among(zero_ended(&listed), asked).ok_or(unlisted)?;
    let (ignored, others): (Vec<&[u8]>, Vec<&[u8]>) =
        zero_ended(&listed).partition(|path| covered.contains(*path));
    let mut left_out = copy_files(ignored.into_iter(), from, to, replaces)?;
    left_out.extend(others.into_iter().map(|path| {
        format!("{} (git does not ignore it)", Path::new(OsStr::from_bytes(path)).display())
    }));
    let more = patterns.len().saturating_sub(PATTERNS_MAX);
    if more > 0 {
        left_out.insert(0, format!("{more} patterns beyond {PATTERNS_MAX}"));
    }
    Ok(left_out)
}

/// Which of these paths the ignore rules that are in force cover, as this git says; `None` if
/// it fails.
pub(super) fn ignored_among<'p>(
    paths: impl Iterator<Item = &'p [u8]>,
    git: impl Fn(&[&str], &[u8]) -> Option<Vec<u8>>,
) -> Option<BTreeSet<Vec<u8>>> {
    let input: Vec<u8> = paths.flat_map(|path| [HERE, path, b"\0"].concat()).collect();
    let ask = ["check-ignore", "--no-index", "--verbose", "--non-matching", "-z", "--stdin"];
    let printed = if input.is_empty() { Vec::new() } else { git(&ask, &input)? };
    let fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
    // The rule's file, line and text, then the path.
    let is_covered = |it: &&[&[u8]]| !it[2].is_empty() && !it[2].starts_with(b"!");
    let covered = fields.chunks_exact(4).filter(is_covered);
    Some(covered.filter_map(|fields| Some(fields[3].strip_prefix(HERE)?.to_vec())).collect())
}

/// The same for files by their paths. One that is replaced differs in size or time.
pub fn copy_files<'a>(
    mut paths: impl Iterator<Item = &'a [u8]>,
    from: &Path,
    to: &Path,
    replaces: bool,
) -> Result<Vec<String>, String> {
    let mut left_out = Vec::new();
    // A killed crew may have left a half there.
    let half = to.join(BRANCHES).join(HALF);
    disk::remove(&half).map_err(|error| error.to_string())?;
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
                let copied = copy_whole(&source, &half, &target);
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

/// Copies one file whole or not at all: a half of it would stay as if the agent had made it. Until
/// then it is where no commit of crew's looks, for it may be a secret.
fn copy_whole(source: &Path, half: &Path, target: &Path) -> io::Result<()> {
    for file in [half, target] {
        file.parent().map_or(Ok(()), disk::make_folder)?;
    }
    let copied = tree::copy_with_time(source, half).and_then(|()| disk::rename(half, target));
    if copied.is_err() {
        let _ = disk::remove(half);
    }
    for folder in half.ancestors().skip(1).take(Path::new(BRANCHES).components().count()) {
        tree::remove_if_empty(folder);
    }
    copied
}
