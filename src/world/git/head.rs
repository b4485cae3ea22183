//! What is checked out in a working tree, read from git's own files: a look that starts no process
//! and runs at every boundary. Where the files do not say it, nothing is known.

use std::path::{Path, PathBuf};

use crate::world::files::disk;

/// The most bytes of a file with one reference.
const LINE_BYTES: u64 = 4096;
/// The most bytes of the file with all packed references.
const PACKED_BYTES: u64 = 32 << 20;
/// How many references may name each other.
const DEPTH_MAX: usize = 5;

/// What is checked out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// `None` on a detached head.
    pub branch: Option<String>,
    /// `None` before the first commit, and where references are kept in another format.
    pub commit: Option<String>,
}

impl Head {
    /// Reads it; `None` if the folder is not the root of a working tree.
    pub fn read(checkout: &Path) -> Option<Self> {
        let folder = folder(checkout)?;
        let common = match line(&folder.join("commondir")) {
            Some(common) => folder.join(common),
            None => folder.clone(),
        };
        let mut named = line(&folder.join("HEAD"))?;
        let mut branch = None;
        for _ in 0..DEPTH_MAX {
            let Some(name) = named.strip_prefix("ref: ") else {
                return Some(Self { branch, commit: Some(named) });
            };
            branch = name.strip_prefix("refs/heads/").map(str::to_owned).or(branch);
            let loose = line(&folder.join(name)).or_else(|| line(&common.join(name)));
            match loose.or_else(|| packed(&common, name)) {
                Some(next) => named = next,
                None => return Some(Self { branch, commit: None }),
            }
        }
        None
    }
}

/// git's folder of a working tree; a linked one and a submodule have a file that names it.
fn folder(checkout: &Path) -> Option<PathBuf> {
    let git = checkout.join(".git");
    if disk::is_folder(&git) {
        return Some(git);
    }
    Some(checkout.join(line(&git)?.strip_prefix("gitdir: ")?))
}

fn line(file: &Path) -> Option<String> {
    let text = disk::read_text(file, LINE_BYTES).ok()??;
    Some(text.trim_end().to_owned())
}

fn packed(common: &Path, name: &str) -> Option<String> {
    let text = disk::read_text(&common.join("packed-refs"), PACKED_BYTES).ok()??;
    let named = |line: &str| {
        Some(line.split_once(' ')?).filter(|(_, named)| *named == name)?.0.to_owned().into()
    };
    text.lines().find_map(named)
}
