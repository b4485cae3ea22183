//! The user's *drafts*, that is what was not committed when a loop began. A snapshot has their
//! bytes, and says which of them somebody has changed since. No commit by crew has another one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::changes::changes;
use super::snapshots::Snapshots;
use super::steps::Steps;
use crate::engine::git::{GitFault, GitStep, GitTrouble, named};
use crate::engine::record::{Loop, LoopId};
use crate::parse::git_changes::{FileChange, FileChangeKind};
use crate::world::files::disk::{self, Durability};
use crate::world::store::Home;

/// The list of their paths in the loop's folder, each followed by a zero byte.
const LIST: &str = "drafts";
/// The most that is read of the list, in bytes.
const LIST_BYTES: u64 = 256 << 20;
/// The name of the snapshot that has them as the user left them.
pub const DRAFTS: &str = "drafts";

/// The drafts of a loop.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Drafts {
    paths: BTreeSet<PathBuf>,
    /// What was ignored when the loop began: files, and folders as a whole.
    ignored: BTreeSet<PathBuf>,
    /// Every path that was changed since; `None` if no snapshot says so.
    changed: Option<BTreeSet<PathBuf>>,
}

/// Drafts that were just listed.
#[derive(Debug)]
pub struct Listed {
    pub drafts: Vec<String>,
    /// Nested repositories, which are never committed.
    pub nested: Vec<String>,
}

/// Drafts that are gone from where the user left them, with nothing for crew to commit there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Committed, but not by crew.
    pub committed: Vec<PathBuf>,
    /// Deleted, or equal to the commit.
    pub gone: Vec<PathBuf>,
}

/// Whether a loop's drafts were recorded.
pub fn are_listed(home: &Home, id: &LoopId) -> bool {
    disk::exists(&home.loop_file(id, LIST))
}

/// Lists what is not committed now.
pub fn list(home: &Home, subject: &Loop, steps: &Steps<'_>) -> Result<Listed, GitFault> {
    let mut listed = Listed { drafts: Vec::new(), nested: Vec::new() };
    let (mut drafts, mut nested) = (BTreeSet::new(), BTreeSet::new());
    for FileChange { path, kind } in changes(steps, GitStep::Commit)? {
        let name = path.display().to_string();
        if kind == FileChangeKind::Repository {
            listed.nested.extend(nested.insert(path).then_some(name));
        } else {
            listed.drafts.extend(drafts.insert(path).then_some(name));
        }
    }
    let snapshots = Snapshots::of(home, subject);
    if let Ok(now) = snapshots.take() {
        let _ = snapshots.name(&subject.id, DRAFTS, &now.commit);
    }
    save(home, &subject.id, &drafts).map_err(|error| {
        let cause = format!("the user's uncommitted files cannot be listed: {error}");
        GitFault::new(GitStep::Commit, GitTrouble::Other, cause, "fix that, then crew resume")
    })?;
    Ok(listed)
}

/// Gives a loop the drafts of an earlier one in the same working tree: what has come since is work.
pub fn hand_on(home: &Home, from: &LoopId, to: &Loop) -> io::Result<()> {
    let Some(paths) = read_list(home, from)? else { return Ok(()) };
    let snapshots = Snapshots::of(home, to);
    if let Some(drafts) = snapshots.named(from, DRAFTS) {
        let _ = snapshots.name(&to.id, DRAFTS, &drafts);
    }
    save(home, &to.id, &paths)
}

/// The names of these files, for a message.
pub fn listed(paths: &[PathBuf]) -> String {
    named(&paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
}

fn read_list(home: &Home, id: &LoopId) -> io::Result<Option<BTreeSet<PathBuf>>> {
    let bytes = disk::read(&home.loop_file(id, LIST), LIST_BYTES)?;
    let paths = |bytes: Vec<u8>| {
        let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        paths.map(|path| OsString::from_vec(path.to_vec()).into()).collect()
    };
    Ok(bytes.map(paths))
}

fn save(home: &Home, id: &LoopId, paths: &BTreeSet<PathBuf>) -> io::Result<()> {
    let bytes: Vec<u8> =
        paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
    disk::write(&home.loop_file(id, LIST), &bytes, Durability::Machine)
}

impl Drafts {
    /// Reads a loop's list, and compares the tree as it is now; `None` where there is no list.
    pub fn read(home: &Home, subject: &Loop) -> io::Result<Option<Self>> {
        let Some(paths) = read_list(home, &subject.id)? else { return Ok(None) };
        let snapshots = Snapshots::of(home, subject);
        let changed = || {
            let before = snapshots.named(&subject.id, DRAFTS)?;
            let changed = snapshots.paths(&before, &snapshots.take().ok()?.commit).ok()?;
            Some(changed.into_iter().map(PathBuf::from).collect())
        };
        let changed = if paths.is_empty() { None } else { changed() };
        let ignored = snapshots.ignored_at_the_start(&subject.id);
        let ignored = ignored.into_iter().map(PathBuf::from).collect();
        Ok(Some(Self { paths, ignored, changed }))
    }

    /// Whether a path is one of them.
    pub fn hold(&self, path: &Path) -> bool {
        self.paths.contains(path)
    }

    /// Whether a path was ignored when they were listed.
    pub fn were_ignored(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.ignored.contains(path))
    }

    /// Whether a path is unchanged, as far as is known.
    pub fn are_untouched(&self, path: &Path) -> bool {
        let path = PathBuf::from(path.to_string_lossy().into_owned());
        self.changed.as_ref().is_none_or(|changed| !changed.contains(&path))
    }

    /// Those that are no longer among the changes. One that was committed since the loop began is
    /// no longer a draft; one that is gone may come back, for example from a stash.
    pub(super) fn left(&self, steps: &Steps<'_>, changes: &[FileChange]) -> Result<Left, GitFault> {
        let changed: BTreeSet<&Path> = changes.iter().map(|change| &*change.path).collect();
        let left = self.paths.iter().filter(|path| !changed.contains(&***path));
        let left: Vec<PathBuf> = left.cloned().collect();
        if left.is_empty() {
            return Ok(Left::default());
        }
        let arguments = match steps.place.head.as_deref() {
            Some(start) => {
                vec!["diff-tree", "-r", "--name-only", "--no-renames", "-z", start, "HEAD"]
            }
            None => vec!["ls-files", "-z"],
        };
        let since = steps.printed(GitStep::Commit, &arguments)?;
        let since: BTreeSet<&[u8]> = since.split(|byte| *byte == 0).collect();
        let (committed, mut gone): (Vec<PathBuf>, Vec<PathBuf>) =
            left.into_iter().partition(|path| since.contains(path.as_os_str().as_bytes()));
        // What is only ignored now is still there.
        gone.retain(|path| !self.are_untouched(path));
        Ok(Left { committed, gone })
    }

    /// Drops those that are committed now.
    pub fn forget(&mut self, home: &Home, id: &LoopId, paths: &[PathBuf]) -> io::Result<()> {
        self.paths.retain(|path| !paths.contains(path));
        save(home, id, &self.paths)
    }
}
