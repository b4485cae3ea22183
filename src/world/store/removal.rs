//! Removes the record of a loop for good. One rename takes all of it out of the store, so a crash
//! leaves a whole record or none; what was left behind is found by its name and removed later. It
//! asks nobody and decides nothing.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

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

/// The loops whose records are out of the store and not removed yet.
pub fn taken(home: &Home) -> Vec<LoopId> {
    let names = disk::names(&home.loops(), ENTRIES_MAX).into_iter();
    names.filter_map(|name| name.strip_prefix(TAKEN)?.parse().ok()).collect()
}

/// Removes what was taken out, and every pointer to it. The record goes last, because it is what
/// says that there is something to remove.
pub fn finish(home: &Home, id: &LoopId, pointers: &Pointers) -> io::Result<()> {
    for pointer in pointers.get(id).into_iter().flatten() {
        if read_pointer(pointer).is_ok_and(|named| named.as_ref() == Some(id)) {
            disk::remove(pointer)?;
        }
    }
    fault::point("remove.pointers")?;
    let git_dirs = disk::names(&home.trees(), ENTRIES_MAX).into_iter();
    for git_dir in git_dirs.filter(|name| !name.contains('.')) {
        let git_dir = home.trees().join(git_dir);
        tree::remove(&git_dir.join("refs/crew").join(id.as_str()))?;
        for list in LISTS {
            disk::remove(&git_dir.join(list).join(id.as_str()))?;
        }
    }
    fault::point("remove.snapshots")?;
    tree::remove(&home.loops().join(format!("{TAKEN}{id}")))
}

/// The folders of a private git dir with a list of paths for each loop: those that were changed
/// before it began, and those that were ignored.
pub const LISTS: [&str; 2] = ["yours", "ignored"];

/// What points to each loop.
pub type Pointers = HashMap<LoopId, Vec<PathBuf>>;

/// The pointers of all sessions and working trees. A loop that is over gets no new ones.
pub fn pointers(home: &Home) -> Pointers {
    let mut pointers = Pointers::new();
    for folder in ["sessions", "checkouts"].map(|name| home.root().join(name)) {
        let names = disk::names(&folder, ENTRIES_MAX).into_iter();
        // The locks beside them point nowhere.
        for name in names.filter(|name| Path::new(name).extension() != Some("lock".as_ref())) {
            let pointer = folder.join(name);
            if let Ok(Some(id)) = read_pointer(&pointer) {
                pointers.entry(id).or_default().push(pointer);
            }
        }
    }
    pointers
}
