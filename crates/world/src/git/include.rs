//! Copies the ignored files that a new working tree needs, as `.worktreeinclude` names them. It
//! copies plain files up to a fixed size, and no links: one could lead out of the working tree. A
//! file that git does not ignore in both trees is not copied, because a commit would include it.
//! Nothing is written through a link, which an agent's branch can put in the place of a folder.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Git;
use crate::files::tree::RealFolder;
use crate::files::{disk, tree};
use readers::parse::git::{BRANCHES, zero_ended};

/// The largest `.worktreeinclude`, in bytes.
pub const INCLUDE_BYTES: u64 = 1 << 20;
/// The maximum number of files copied.
const FILES_MAX: usize = 10_000;
/// The largest file that is copied, in bytes.
const FILE_BYTES: u64 = 50 << 20;
/// The longest time git may take to list files: it searches every ignored folder.
const WITHIN: Duration = Duration::from_secs(300);
/// The maximum number of lines in patterns; each becomes an argument of a command.
const PATTERNS_MAX: usize = 2000;
/// The prefix that keeps git from reading a path as a pattern, such as `:(glob)a`.
const HERE: &[u8] = b"./";
/// The name of a file while it is being copied.
const HALF: &str = "copied.tmp";

/// Copies the files that `patterns` name to the same places in another working tree, as far as git
/// ignores them in both. An existing file stays, unless `replaces` is set. Returns what was left
/// out, each with its reason. The error is a sentence.
pub fn copy_included(
    patterns: &str,
    from: &Path,
    to: &Path,
    replaces: bool,
) -> Result<Vec<String>, String> {
    let lines = patterns.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let patterns: Vec<String> = lines.map(|line| format!("--exclude={line}")).collect();
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let mut list = vec!["ls-files", "-z", "--others", "--ignored"];
    list.extend(patterns.iter().take(PATTERNS_MAX).map(String::as_str));
    let listed = Git { within: Some(WITHIN), ..Git::here(from) }.printed(&list);
    let listed = listed.ok_or_else(|| cannot_list(from))?;
    let here = ignored_in(from, zero_ended(&listed)).ok_or_else(|| cannot_list(from))?;
    // The branch checked out there may have other rules. Git reports nothing for a path that leads
    // through a link, and such a path is not copied.
    let (asked, led_away): (BTreeSet<Vec<u8>>, BTreeSet<Vec<u8>>) =
        here.into_iter().partition(|path| leads_by_folders(to, path));
    let there = ignored_in(to, asked.iter().map(Vec::as_slice)).ok_or_else(|| cannot_list(to))?;
    let covered = &there | &led_away;
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

fn cannot_list(tree: &Path) -> String {
    format!("git cannot list the files of {}", tree.display())
}

/// Whether every parent of a path is a folder or missing.
fn leads_by_folders(top: &Path, path: &[u8]) -> bool {
    let mut parents = Path::new(OsStr::from_bytes(path)).ancestors().skip(1);
    parents.all(|parent| ["folder", "gone"].contains(&tree::kind(&top.join(parent))))
}

/// Which of these paths git ignores in a working tree; `None` if it fails.
fn ignored_in<'p>(tree: &Path, paths: impl Iterator<Item = &'p [u8]>) -> Option<BTreeSet<Vec<u8>>> {
    ignored_among(paths, |arguments, input| {
        let ended = Git { input, within: Some(WITHIN), ..Git::here(tree) }.start(arguments).ok()?;
        // 1 means that no path is ignored.
        ended.whole_output(&[0, 1])
    })
}

/// Which of these paths the current ignore rules cover, according to this git; `None` if it fails.
pub(super) fn ignored_among<'p>(
    paths: impl Iterator<Item = &'p [u8]>,
    git: impl Fn(&[&str], &[u8]) -> Option<Vec<u8>>,
) -> Option<BTreeSet<Vec<u8>>> {
    let input: Vec<u8> = paths.flat_map(|path| [HERE, path, b"\0"].concat()).collect();
    let ask = ["check-ignore", "--no-index", "--verbose", "--non-matching", "-z", "--stdin"];
    let printed = if input.is_empty() { Vec::new() } else { git(&ask, &input)? };
    let fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
    let mut covered = BTreeSet::new();
    for fields in fields.chunks_exact(4) {
        // The rule's file, line and text, then the path.
        let (rule, path) = (fields[2], fields[3]);
        if !rule.is_empty() && !rule.starts_with(b"!") {
            covered.extend(path.strip_prefix(HERE).map(<[u8]>::to_vec));
        }
    }
    Some(covered)
}

/// Copies files by their paths. An existing one is replaced only if its size or time differs.
pub fn copy_files<'a>(
    mut paths: impl Iterator<Item = &'a [u8]>,
    from: &Path,
    to: &Path,
    replaces: bool,
) -> Result<Vec<String>, String> {
    let mut left_out = Vec::new();
    let copies = Copies::begin(to, replaces).map_err(|error| error.to_string())?;
    for path in paths.by_ref().take(FILES_MAX) {
        let path = Path::new(OsStr::from_bytes(path));
        let source = from.join(path);
        let why = match tree::kind(&source) {
            "gone" => continue,
            "file" | "program" if disk::size(&source) <= FILE_BYTES => {
                match copies.copy_whole(&source, path) {
                    Ok(()) => continue,
                    Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                        "a link or a file is in the place of its folder"
                    }
                    Err(error) => return Err(format!("{}: {error}", path.display())),
                }
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

/// A working tree that receives files.
struct Copies {
    top: RealFolder,
    /// Where a file is kept while it is being copied: crew commits nothing there, and the file may
    /// be a secret.
    halves: RealFolder,
    path: PathBuf,
    replaces: bool,
}

impl Copies {
    fn begin(to: &Path, replaces: bool) -> io::Result<Self> {
        disk::make_folder(to)?;
        let top = RealFolder::open(to)?;
        let path = to.join(BRANCHES);
        let halves = top.enter(Path::new(BRANCHES)).map_err(disk::cannot("write in", &path))?;
        // A killed crew may have left a partial file there.
        halves.remove(HALF.as_ref())?;
        Ok(Self { top, halves, path, replaces })
    }

    /// Copies one file completely or not at all: a partial file would look like the agent's work.
    fn copy_whole(&self, source: &Path, path: &Path) -> io::Result<()> {
        let Some(name) = path.file_name() else { return Ok(()) };
        let folder = self.top.enter(path.parent().unwrap_or(Path::new("")))?;
        let there = folder.stamp(name);
        if there.is_some() && (!self.replaces || there == disk::stamp(source)) {
            return Ok(());
        }
        let half = OsStr::new(HALF);
        let copied = self.halves.copy_in(source, half);
        let moved = copied.and_then(|()| self.halves.move_to(half, &folder, name));
        if moved.is_err() {
            let _ = self.halves.remove(half);
        }
        moved
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        for folder in self.path.ancestors().take(Path::new(BRANCHES).components().count()) {
            tree::remove_if_empty(folder);
        }
    }
}
