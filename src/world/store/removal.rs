//! Removes the record of a loop for good. One rename takes all of it out of the store, so a crash
//! leaves a whole record or none; what was left behind is found by its name and removed later. It
//! asks nobody and decides nothing.

use std::io;
use std::path::Path;

use super::home::{Home, read_pointer};
use crate::engine::record::LoopId;
use crate::world::fault;
use crate::world::files::{disk, tree};

/// What the name of a record begins with once it is out of the store. No id holds a dot.
const TAKEN: &str = ".removed-";
/// More files than a record, a folder of pointers or a home has.
const ENTRIES_MAX: usize = 1_000_000;

/// The bytes of a loop's record, its logs included.
pub fn bytes(home: &Home, id: &LoopId) -> u64 {
    bytes_below(&home.loop_folder(id))
}

/// The bytes of all files below a folder that no other name holds.
pub fn bytes_below(folder: &Path) -> u64 {
    tree::files(folder, ENTRIES_MAX).iter().map(|file| tree::own_bytes(&folder.join(file))).sum()
}

/// Takes a record out of the store: from here on no command finds the loop.
pub fn take_out(home: &Home, id: &LoopId) -> io::Result<()> {
    disk::rename(&home.loop_folder(id), &home.loops().join(format!("{TAKEN}{id}")))?;
    fault::point("remove.taken")
}

/// Removes everything that was taken out, also what an earlier removal has left: the pointers to
/// it, its snapshots and its records. These go last, because they are what says that there is
/// something to remove. A loop that is over gets no new pointers.
pub fn remove_taken(home: &Home) -> io::Result<()> {
    let names = disk::names(&home.loops(), ENTRIES_MAX).into_iter();
    let taken: Vec<LoopId> =
        names.filter_map(|name| name.strip_prefix(TAKEN)?.parse().ok()).collect();
    if taken.is_empty() {
        return Ok(());
    }
    for folder in ["sessions", "checkouts"].map(|name| home.root().join(name)) {
        for name in disk::names(&folder, ENTRIES_MAX) {
            let pointer = folder.join(name);
            if read_pointer(&pointer).is_ok_and(|id| id.is_some_and(|id| taken.contains(&id))) {
                disk::remove(&pointer)?;
            }
        }
    }
    fault::point("remove.pointers")?;
    let git_dirs = disk::names(&home.trees(), ENTRIES_MAX).into_iter();
    for git_dir in git_dirs.filter(|name| !name.contains('.')) {
        let git_dir = home.trees().join(git_dir);
        for id in &taken {
            tree::remove(&git_dir.join("refs/crew").join(id.as_str()))?;
            for list in LISTS {
                disk::remove(&git_dir.join(list).join(id.as_str()))?;
            }
        }
    }
    fault::point("remove.snapshots")?;
    taken.iter().try_for_each(|id| tree::remove(&home.loops().join(format!("{TAKEN}{id}"))))
}

/// The folders of a private git dir with a list of paths for each loop: those that were changed
/// before it began, and those that were ignored.
pub const LISTS: [&str; 2] = ["yours", "ignored"];
