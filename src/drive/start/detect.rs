//! Looks at a folder for the commands that test it: the one detection behind `crew init`,
//! `--verify auto` and the suggestion of a start without checks.

use std::collections::BTreeMap;
use std::path::Path;

use crate::parse::project::{Detection, FOLDERS, detect, is_read};
use crate::world::files::disk;

/// The largest file that is read, and the most that is read of all; a larger one is ignored.
const FILE_BYTES: u64 = 1 << 20;
const ALL_BYTES: usize = 16 << 20;
/// The most names in a folder that are looked at.
const NAMES_MAX: usize = 5000;

/// Finds the checks that fit the files in the folder.
pub fn checks(folder: &Path) -> Detection {
    let (mut files, mut bytes) = (BTreeMap::new(), 0);
    for below in FOLDERS {
        for name in disk::names(&folder.join(below), NAMES_MAX) {
            let path = format!("{below}{name}");
            let mut text = String::new();
            if is_read(&path) && bytes < ALL_BYTES {
                text = disk::read_text(&folder.join(&path), FILE_BYTES)
                    .ok()
                    .flatten()
                    .unwrap_or_default();
                bytes += text.len();
            }
            files.insert(path, text);
        }
    }
    detect(&files)
}
