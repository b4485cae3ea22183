//! The user's *drafts*, that is what was not committed when a loop began: the paths and their
//! state. No commit by crew contains a draft until somebody changes it afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::changes::{changes, ignored};
use super::git;
use super::steps::Steps;
use crate::engine::git::{GitFault, GitStep, GitTrouble, named};
use crate::engine::record::LoopId;
use crate::parse::git_changes::{FileChange, FileChangeKind};
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree;
use crate::world::store::{Home, hash};

/// The list in the loop's folder: state and path of each draft, each followed by a zero byte.
const LIST: &str = "drafts";
/// The state of an ignored path in the list: a file, or a folder with all its contents.
const IGNORED: &str = "ignored";
/// The most that is read of the list, in bytes.
const LIST_BYTES: u64 = 256 << 20;
/// The largest file compared by content, in bytes; larger ones are compared by size and time.
const COMPARED_BYTES: u64 = 16 << 20;

/// The drafts of a loop.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Drafts(BTreeMap<PathBuf, String>);

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
pub fn list(home: &Home, id: &LoopId, steps: &Steps<'_>) -> Result<Listed, GitFault> {
    let mut drafts = Drafts::default();
    let mut listed = Listed { drafts: Vec::new(), nested: Vec::new() };
    for change in changes(steps, GitStep::Commit)? {
        let mark = mark(&steps.checkout().join(&change.path));
        let name = change.path.display().to_string();
        let list = if change.kind == FileChangeKind::Repository {
            &mut listed.nested
        } else {
            &mut listed.drafts
        };
        if drafts.0.insert(change.path, mark).is_none() {
            list.push(name);
        }
    }
    for path in ignored(steps)? {
        drafts.0.insert(path, IGNORED.to_owned());
    }
    drafts.save(home, id).map_err(|error| unwritten(&error))?;
    Ok(listed)
}

/// Gives a loop the list of an earlier one in the same working tree: what has come since is work.
pub fn hand_on(home: &Home, from: &LoopId, to: &LoopId) -> io::Result<()> {
    Drafts::read(home, from)?.map_or(Ok(()), |drafts| drafts.save(home, to))
}

fn unwritten(error: &io::Error) -> GitFault {
    let cause = format!("the user's uncommitted files cannot be listed: {error}");
    GitFault::new(GitStep::Commit, GitTrouble::Other, cause, "fix that, then crew resume")
}

/// The names of these files, for a message.
pub fn listed(paths: &[PathBuf]) -> String {
    named(&paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
}

impl Drafts {
    /// Reads a loop's list; `None` where there is none.
    pub fn read(home: &Home, id: &LoopId) -> io::Result<Option<Self>> {
        let Some(bytes) = disk::read(&home.loop_file(id, LIST), LIST_BYTES)? else {
            return Ok(None);
        };
        let mut parts = bytes.split(|byte| *byte == 0);
        let mut drafts = Self::default();
        while let (Some(mark), Some(path)) = (parts.next(), parts.next()) {
            let mark = String::from_utf8_lossy(mark).into_owned();
            drafts.0.insert(OsString::from_vec(path.to_vec()).into(), mark);
        }
        Ok(Some(drafts))
    }

    fn save(&self, home: &Home, id: &LoopId) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (path, mark) in &self.0 {
            bytes.extend(mark.as_bytes());
            bytes.push(0);
            bytes.extend(path.as_os_str().as_bytes());
            bytes.push(0);
        }
        disk::write(&home.loop_file(id, LIST), &bytes, Durability::Machine)
    }

    /// Whether a path is one of them.
    pub fn hold(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    /// Whether a path was ignored when they were listed.
    pub fn were_ignored(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.0.get(path).is_some_and(|mark| mark == IGNORED))
    }

    /// Whether a path is unchanged.
    pub fn are_untouched(&self, checkout: &Path, path: &Path) -> bool {
        self.0.get(path).is_some_and(|before| is_as_marked(&checkout.join(path), before))
    }

    /// The unchanged ones: crew's own rebase may change them.
    pub fn untouched(&self, checkout: &Path) -> Vec<PathBuf> {
        self.0.keys().filter(|path| self.are_untouched(checkout, path)).cloned().collect()
    }

    /// Those that are no longer among the changes. One that was committed since the loop began is
    /// no longer a draft; one that is gone may come back, for example from a stash.
    pub(super) fn left(&self, steps: &Steps<'_>, changes: &[FileChange]) -> Result<Left, GitFault> {
        let changed: BTreeSet<&Path> = changes.iter().map(|change| &*change.path).collect();
        let left: Vec<&PathBuf> =
            self.0.keys().filter(|path| !changed.contains(&***path)).collect();
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
        let (committed, gone): (Vec<PathBuf>, Vec<PathBuf>) =
            left.into_iter().cloned().partition(|path| since.contains(path.as_os_str().as_bytes()));
        // What is only ignored now is still there.
        let stands =
            |path: &PathBuf| self.were_ignored(path) || self.are_untouched(steps.checkout(), path);
        let gone = gone.into_iter().filter(|path| !stands(path));
        Ok(Left { committed, gone: gone.collect() })
    }

    /// Records the current state of these paths as the user's.
    pub fn mark_again(
        &mut self,
        home: &Home,
        id: &LoopId,
        checkout: &Path,
        paths: Vec<PathBuf>,
    ) -> io::Result<()> {
        for path in paths {
            let mark = mark(&checkout.join(&path));
            self.0.insert(path, mark);
        }
        self.save(home, id)
    }

    /// Drops those that are committed now.
    pub fn forget(&mut self, home: &Home, id: &LoopId, paths: &[PathBuf]) -> io::Result<()> {
        self.0.retain(|path, _| !paths.contains(path));
        self.save(home, id)
    }
}

/// The state of a path: its kind in one word, its size and time, and the hash of its content.
fn mark(file: &Path) -> String {
    let (kind, stamp) = kind(file);
    let content = content(file, kind).unwrap_or_else(|| "-".to_owned());
    match kind {
        "gone" | "other" => kind.to_owned(),
        _ => format!("{kind} {stamp} {content}"),
    }
}

/// Compares the content; for a file too large to compare, size and time.
fn is_as_marked(file: &Path, before: &str) -> bool {
    let (kind, stamp) = kind(file);
    let mut words = before.splitn(3, ' ');
    let (was, was_stamp, was_content) = (words.next(), words.next(), words.next());
    if was != Some(kind) {
        return false;
    }
    match was_content {
        None => true,
        Some("-") => was_stamp == Some(&*stamp),
        Some(was) => content(file, kind).as_deref() == Some(was),
    }
}

fn kind(file: &Path) -> (&'static str, String) {
    let (size, time) = disk::stamp(file).unwrap_or_default();
    (tree::kind(file), format!("{size}@{time}"))
}

/// `None` if the content is too large.
fn content(file: &Path, kind: &str) -> Option<String> {
    match kind {
        "link" => Some(hash(fs::read_link(file).ok()?.as_os_str().as_bytes())),
        // A nested repository: its checked-out commit.
        "folder" => Some(git(file, &["rev-parse", "HEAD"])?.trim().to_owned()),
        "file" | "program" => Some(hash(&disk::read(file, COMPARED_BYTES).ok().flatten()?)),
        _ => None,
    }
}
