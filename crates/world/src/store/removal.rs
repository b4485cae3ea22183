//! Removes a loop's record permanently. One rename takes all of it out of the store, so a crash
//! leaves a whole record or none. The remains are recognised by their name and removed later. It
//! asks no question and decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::fault;
use crate::files::{disk, tree};
use crate::home::{Home, read_pointer};
use engine::record::LoopId;

/// The prefix of a record's name once it is out of the store. No id contains a dot.
const TAKEN: &str = ".removed-";
/// A bound greater than the number of files of a record, a folder of pointers or a home.
const ENTRIES_MAX: usize = 1_000_000;

/// The bytes of a loop's record, its logs included.
pub fn loop_bytes(home: &Home, id: &LoopId) -> u64 {
    bytes_below(&home.loop_folder(id))
}

/// The bytes that removing a folder would free.
pub fn bytes_below(folder: &Path) -> u64 {
    tree::list_files(folder, ENTRIES_MAX)
        .iter()
        .map(|file| tree::own_bytes(&folder.join(file)))
        .sum()
}

/// Takes a record out of the store: no command finds the loop any longer.
pub fn take_out(home: &Home, id: &LoopId) -> io::Result<()> {
    disk::rename(&home.loop_folder(id), &home.loops_folder().join(format!("{TAKEN}{id}")))?;
    fault::point("remove.taken")
}

/// Removes everything that was taken out, including the remains of an earlier removal. Returns the
/// loops that could not be removed, each with its error.
pub fn remove_taken(home: &Home) -> BTreeMap<LoopId, io::Error> {
    let names = disk::names(&home.loops_folder(), ENTRIES_MAX).into_iter();
    let taken: BTreeSet<LoopId> =
        names.filter_map(|name| name.strip_prefix(TAKEN)?.parse().ok()).collect();
    let (mut pointers, mut failed) = (Vec::new(), BTreeMap::new());
    if taken.is_empty() {
        return failed;
    }
    for folder in ["sessions", "checkouts"].map(|name| home.root().join(name)) {
        for name in disk::names(&folder, ENTRIES_MAX) {
            let pointer = folder.join(name);
            if let Ok(Some(id)) = read_pointer(&pointer)
                && taken.contains(&id)
            {
                pointers.push((id, pointer));
            }
        }
    }
    for id in taken {
        if let Err(error) = remove_loop(home, &id, &pointers) {
            failed.insert(id, error);
        }
    }
    failed
}

/// Removes the pointers to a loop, its snapshots, and last its record, which shows that something
/// is left to remove. A loop that is over gets no new pointers, but a new loop may have taken one
/// over.
fn remove_loop(home: &Home, id: &LoopId, pointers: &[(LoopId, PathBuf)]) -> io::Result<()> {
    for (_, pointer) in pointers.iter().filter(|(named, _)| named == id) {
        if read_pointer(pointer).is_ok_and(|named| named.as_ref() == Some(id)) {
            disk::remove(pointer)?;
        }
    }
    fault::point("remove.pointers")?;
    let git_dirs = disk::names(&home.trees_folder(), ENTRIES_MAX).into_iter();
    for git_dir in git_dirs.filter(|name| !name.contains('.')) {
        let git_dir = home.trees_folder().join(git_dir);
        remove_folder(&git_dir.join("refs/crew").join(id.as_str()))?;
        for list in LISTS {
            disk::remove(&git_dir.join(list).join(id.as_str()))?;
        }
    }
    fault::point("remove.snapshots")?;
    remove_folder(&home.loops_folder().join(format!("{TAKEN}{id}")))
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    tree::remove_folder(folder).map_err(disk::cannot("remove", folder))
}

/// The folders of a private git dir with a list of paths for each loop: those changed before it
/// began, and those that were ignored.
pub const LISTS: [&str; 2] = ["yours", "ignored"];
