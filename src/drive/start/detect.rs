//! Looks at a folder for the commands that test it: the one detection behind `crew init`,
//! `--verify auto` and the suggestion of a start without checks.

use std::collections::BTreeMap;
use std::path::Path;

use crate::engine::text::words_of;
use crate::parse::project::{Detection, LOOKED_FOR, READ, detect};
use crate::world::files::disk;

/// The largest file that is read; a larger one is ignored.
const FILE_BYTES: u64 = 1 << 20;

/// Finds the checks that fit the files in the folder.
pub fn checks(folder: &Path) -> Detection {
    let mut files = BTreeMap::new();
    for name in words_of(READ) {
        if let Ok(Some(text)) = disk::read_text(&folder.join(name), FILE_BYTES) {
            files.insert(name, text);
        }
    }
    for name in words_of(LOOKED_FOR) {
        if disk::exists(&folder.join(name)) {
            files.insert(name, String::new());
        }
    }
    detect(&files)
}
