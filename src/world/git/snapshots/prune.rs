//! Removes snapshots that are too old or too much: the git dirs of working trees that no loop has
//! used for long, and the oldest names in the others. It never touches a working tree.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{LOCK_WAIT, Snapshots};
use crate::world::clock;
use crate::world::files::{disk, tree};
use crate::world::store::Home;

/// More working trees than a home has, and more files than a git dir has.
const ENTRIES_MAX: usize = 1_000_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Keeps the newest `most` bytes of snapshots and none older than `days`; 0 means no limit, for
/// each. The snapshots `current`, in use, are thinned out and never removed. Bytes that are also
/// the repository's do not count.
pub fn prune(home: &Home, current: &Snapshots, most: u64, days: u64) {
    let oldest = i128::from(clock::now().wall.timestamp()) * 1_000_000_000
        - i128::try_from(DAY.as_nanos()).unwrap_or(0) * i128::from(days);
    let is_old = |used: i128| days > 0 && used < oldest;
    let mut kept = own_bytes(&current.folder);
    let names = disk::names(&home.trees(), ENTRIES_MAX).into_iter();
    let folders = names.filter(|name| !name.contains('.')).map(|name| home.trees().join(name));
    let mut others: Vec<(i128, PathBuf)> = folders
        .filter(|folder| *folder != current.folder)
        .map(|folder| (used(&folder), folder))
        .collect();
    others.sort_unstable_by_key(|(used, _)| std::cmp::Reverse(*used));
    for (used, folder) in others {
        let bytes = own_bytes(&folder);
        if is_old(used) || (most > 0 && kept + bytes > most) {
            let lock = disk::lock(&folder.with_extension("lock"), Duration::ZERO);
            if matches!(lock, Ok(Some(_))) {
                let _ = tree::remove(&folder);
            }
        } else {
            kept += bytes;
        }
    }
    current.thin_out(is_old);
    remove_scratch_folders(home, current, is_old);
}

/// Removes the folders where checks ran on another state of a working tree, if that is long ago.
fn remove_scratch_folders(home: &Home, current: &Snapshots, is_old: impl Fn(i128) -> bool) {
    let own = home.scratch(&current.checkout);
    let Some(parent) = own.parent() else { return };
    let names = disk::names(parent, ENTRIES_MAX).into_iter();
    let folders = names.filter(|name| !name.contains('.')).map(|name| parent.join(name));
    for folder in folders.filter(|folder| *folder != own && is_old(used(&folder.join(".git")))) {
        let lock = disk::lock(&folder.with_extension("lock"), Duration::ZERO);
        if matches!(lock, Ok(Some(_))) {
            let _ = tree::remove(&folder);
        }
    }
}

impl Snapshots {
    /// Removes the names that are too old, and then what no name holds any more.
    fn thin_out(&self, is_old: impl Fn(i128) -> bool) {
        let names = self.folder.join("refs/crew");
        let mut gone = false;
        for file in tree::files(&names, ENTRIES_MAX) {
            let file = names.join(file);
            if disk::stamp(&file).is_some_and(|(_, written)| is_old(written)) {
                gone |= disk::remove(&file).is_ok();
            }
        }
        let lock = disk::lock(&self.folder.with_extension("lock"), LOCK_WAIT);
        if gone && matches!(lock, Ok(Some(_))) {
            let _ = self.printed(&["prune", "--expire=now"], &[]);
        }
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
