//! Removes snapshots that are too old or too much: the git dirs of working trees that no loop has
//! used for long, and the oldest names in the others. It never touches a working tree.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{LOCK_WAIT, Snapshots};
use crate::world::clock;
use crate::world::files::{disk, tree};
use crate::world::store::{self, Home, StoreError};

/// More working trees than a home has, and more files than a git dir has.
const ENTRIES_MAX: usize = 1_000_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Keeps the newest `most` bytes of snapshots and none older than `days`; 0 means no limit, for
/// each. The snapshots `current`, in use, are thinned out and never removed, and those of a loop
/// that has not ended stay. Bytes that are also the repository's do not count.
pub fn prune(home: &Home, current: &Snapshots, most: u64, days: u64) {
    let oldest = i128::from(clock::now().wall.timestamp()) * 1_000_000_000
        - i128::try_from(DAY.as_nanos()).unwrap_or(0) * i128::from(days);
    let is_old = |used: i128| days > 0 && used < oldest;
    let mut kept = own_bytes(&current.folder);
    let mut others: Vec<(i128, PathBuf)> =
        others(&current.folder).map(|folder| (used(&folder), folder)).collect();
    others.sort_unstable_by_key(|(used, _)| std::cmp::Reverse(*used));
    for (used, folder) in others {
        let bytes = own_bytes(&folder);
        let is_unwanted = is_old(used) || (most > 0 && kept + bytes > most);
        if is_unwanted {
            remove_unless(&folder, || is_needed(home, &folder));
        } else {
            kept += bytes;
        }
    }
    current.thin_out(home, is_old);
    // The folders where checks ran on another state of a working tree, if that is long ago.
    for folder in self::others(&home.scratch(&current.checkout)) {
        if is_old(used(&folder.join(".git"))) {
            remove_unless(&folder, || false);
        }
    }
}

/// The other folders of a folder's kind, which are beside it, with their locks.
fn others(own: &Path) -> impl Iterator<Item = PathBuf> {
    let parent = own.parent().unwrap_or(own);
    let names = disk::names(parent, ENTRIES_MAX).into_iter().filter(|name| !name.contains('.'));
    names.map(|name| parent.join(name)).filter(move |folder| folder != own)
}

/// Removes a folder that no process holds and that is not needed.
fn remove_unless(folder: &Path, is_needed: impl Fn() -> bool) {
    let lock = disk::lock(&folder.with_extension("lock"), Duration::ZERO);
    if matches!(lock, Ok(Some(_))) && !is_needed() {
        let _ = tree::remove(folder);
    }
}

/// Whether a git dir has snapshots of a loop that has not ended.
fn is_needed(home: &Home, folder: &Path) -> bool {
    disk::names(&folder.join("refs/crew"), ENTRIES_MAX).iter().any(|name| is_live(home, name))
}

/// Whether a loop of that name may still continue; one that cannot be read may.
fn is_live(home: &Home, name: &str) -> bool {
    let Ok(id) = name.parse() else { return false };
    match store::load(home, &id) {
        Ok(record) => record.is_live(),
        Err(StoreError::Absent(_)) => false,
        Err(StoreError::Newer { is_over, .. }) => !is_over,
        Err(_) => true,
    }
}

impl Snapshots {
    /// Removes the names that are too old, and then what no name holds any more.
    fn thin_out(&self, home: &Home, is_old: impl Fn(i128) -> bool) {
        let loops = self.folder.join("refs/crew");
        let mut gone = 0;
        for id in disk::names(&loops, ENTRIES_MAX) {
            let names = disk::names(&loops.join(&id), ENTRIES_MAX).into_iter();
            let files = names.map(|name| loops.join(&id).join(name));
            let is_old =
                |file: &PathBuf| disk::stamp(file).is_some_and(|(_, written)| is_old(written));
            let old: Vec<PathBuf> = files.filter(is_old).collect();
            if !old.is_empty() && !is_live(home, &id) {
                gone += old.iter().filter(|file| disk::remove(file).is_ok()).count();
            }
        }
        if gone > 0 {
            self.forget_what_is_unnamed();
        }
    }

    /// Removes what no name holds; all of it, if there is no name. What is held by another process
    /// or cannot be removed is left for later.
    pub fn forget_what_is_unnamed(&self) {
        let lock = disk::lock(&self.folder.with_extension("lock"), LOCK_WAIT);
        if !matches!(lock, Ok(Some(_))) || !self.are_kept() {
            return;
        }
        let _ = if disk::names(&self.folder.join("refs/crew"), 1).is_empty() {
            tree::remove(&self.folder).map_err(|error| error.to_string())
        } else {
            self.printed(&["prune", "--expire=now"], &[]).map(drop)
        };
    }

    /// The bytes that only these snapshots take.
    pub fn bytes(&self) -> u64 {
        own_bytes(&self.folder)
    }
}

/// When a git dir was last used: every snapshot writes its HEAD, and every look its index.
fn used(folder: &Path) -> i128 {
    let stamps = ["HEAD", "index"].map(|name| disk::stamp(&folder.join(name)));
    stamps.into_iter().flatten().map(|(_, written)| written).max().unwrap_or(0)
}

fn own_bytes(folder: &Path) -> u64 {
    tree::files(folder, ENTRIES_MAX).iter().map(|file| tree::own_bytes(&folder.join(file))).sum()
}
