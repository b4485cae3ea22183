//! The repositories inside a working tree, submodules and others. Snapshots hold neither their
//! commits nor their files, so each is looked at by itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::Git;
use super::head::checked_out;
use super::submodules::listed;
use crate::engine::record::{Loop, RepositoryInside};
use crate::world::files::disk;
use crate::world::store::hash;

/// The most of them that are looked at.
const REPOSITORIES_MAX: usize = 100;
/// The most files of one of them that are compared by content, and the largest, in bytes.
const FILES_READ: usize = 1000;
const FILE_BYTES: u64 = 1 << 20;

/// The state of each, by its path from the root: of those at these paths, of the submodules, and of
/// all inside them. Where there are none, no process starts.
pub fn look(subject: &Loop, at: &[PathBuf]) -> BTreeMap<String, RepositoryInside> {
    let top = &subject.place.checkout;
    let mut found = BTreeMap::new();
    let mut pending: Vec<PathBuf> = at.iter().cloned().chain(listed(top)).collect();
    while let Some(path) = pending.pop() {
        let (folder, name) = (top.join(&path), path.to_string_lossy().into_owned());
        let name = name.trim_end_matches('/').to_owned();
        let is_known = found.contains_key(&name) || found.len() == REPOSITORIES_MAX;
        if is_known || disk::is_missing(&folder.join(".git")) {
            continue;
        }
        let (state, inside) = of(subject, &folder);
        pending.extend(inside.into_iter().map(|it| path.join(it)));
        found.insert(name, state);
    }
    found
}

/// The state of one, and the repositories inside it.
fn of(subject: &Loop, folder: &Path) -> (RepositoryInside, Vec<PathBuf>) {
    let commit = checked_out(folder).and_then(|head| head.commit);
    let git = Git { folder, climbs: false, subject: Some(subject) };
    let entries = git.look().unwrap_or_default().entries;
    let mut text = String::new();
    for (index, entry) in entries.iter().enumerate() {
        let file = folder.join(&entry.path);
        let content = || disk::read(&file, FILE_BYTES).ok().flatten();
        let content = if index < FILES_READ { content() } else { None };
        let mark = content.map_or_else(|| format!("{:?}", disk::stamp(&file)), |it| hash(&it));
        let _ = write!(text, "{}\0{mark}\0", entry.line);
    }
    let uncommitted = (!text.is_empty()).then(|| hash(text.as_bytes()));
    let inside = entries.iter().filter(|entry| entry.path.ends_with('/'));
    let inside = inside.map(|entry| PathBuf::from(&entry.path)).chain(listed(folder)).collect();
    (RepositoryInside { commit, uncommitted }, inside)
}
