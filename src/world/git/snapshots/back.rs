//! Brings a snapshot back into the working tree, or into another folder. What is there now is kept
//! as a snapshot first. The repository of the user is not touched: HEAD, index and branches stay.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{FILE_BYTES, Paths, Snapshots};
use crate::engine::record::LoopId;
use crate::parse::git_changes::{IndexEntry, entries};
use crate::world::files::{disk, tree};

/// The files of ignore rules.
const RULES: &str = ".gitignore";
/// The most names a loop may have for returns.
const RETURNS_MAX: u32 = 100_000;

/// What a return to a snapshot did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// The paths of the files written.
    pub written: Vec<String>,
    /// The paths of the files removed.
    pub removed: Vec<String>,
    /// The name of the snapshot of what was there before.
    pub kept_as: String,
    /// What snapshots leave out, and stayed as it was, by path.
    pub left: Vec<PathBuf>,
}

/// The mode of a file, for the one in its place.
struct KeptMode {
    file: PathBuf,
    mode: u32,
}

impl KeptMode {
    /// Lets nobody do more with the file than before, except run it.
    fn give_back(&self) -> Result<(), String> {
        let runs = match tree::kind(&self.file) {
            "file" => 0,
            "program" => (self.mode & 0o444) >> 2,
            _ => return Ok(()),
        };
        let set = tree::set_mode(&self.file, self.mode & 0o666 | runs);
        set.map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

impl Snapshots {
    /// Makes the working tree what it was in a snapshot.
    pub fn restore(&self, id: &LoopId, target: &str) -> Result<Restored, String> {
        let _lock = self.hold()?;
        let present = self.taken()?;
        let is_free = |name: &String| self.named(id, name).is_none();
        let kept_as = (1..RETURNS_MAX).map(|number| format!("back-{number}")).find(is_free);
        let kept_as = kept_as.ok_or("it already has too many snapshots of earlier returns")?;
        self.name(id, &kept_as, &present.commit)?;
        let raw = ["diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev"];
        let raw = [&raw[..], &[&present.commit, target]].concat();
        let changed = entries(&self.printed(&raw, &[])?);
        let left: BTreeSet<&Path> = present.left_out.iter().map(|file| &*file.path).collect();
        let is_kept = |entry: &IndexEntry| {
            let path = path_of(entry);
            let file = self.checkout.join(path);
            // A repository in the tree has its own history, and a large file is in no snapshot.
            entry.what.starts_with(b"160000")
                || path.ancestors().any(|path| left.contains(path))
                || disk::stamp(&file).is_some_and(|(size, _)| size > FILE_BYTES)
        };
        let is_gone = |entry: &IndexEntry| entry.what.starts_with(b"000000");
        let changed: Vec<&IndexEntry> = changed.iter().filter(|entry| !is_kept(entry)).collect();
        let (gone, there): (Vec<&IndexEntry>, Vec<&IndexEntry>) =
            changed.into_iter().partition(|entry| is_gone(entry));
        let undone = |why: String| format!("{why}; crew back {id} {kept_as} brings the tree back");
        let rules = |entry: &&IndexEntry| path_of(entry).file_name() == Some(RULES.as_ref());
        let (rules_gone, gone): (Vec<&IndexEntry>, Vec<&IndexEntry>) =
            gone.into_iter().partition(rules);
        for entry in &rules_gone {
            self.remove(path_of(entry)).map_err(undone)?;
        }
        let rules: Vec<&IndexEntry> = there.iter().copied().filter(rules).collect();
        self.write_out(target, &rules).map_err(undone)?;
        // What the rules of then cover was in no snapshot of then: it stays, and is nobody's.
        let ignored = self.ignored_of(gone.iter().map(|entry| &*entry.path));
        let (ignored, gone): (Vec<&IndexEntry>, Vec<&IndexEntry>) =
            gone.into_iter().partition(|entry| ignored.contains(&entry.path));
        for entry in &gone {
            self.remove(path_of(entry)).map_err(undone)?;
        }
        let mut forgotten = Paths::default();
        for entry in &ignored {
            forgotten.gone(path_of(entry));
        }
        forgotten.update(self).map_err(undone)?;
        let (covered, there): (Vec<&IndexEntry>, Vec<&IndexEntry>) =
            there.into_iter().partition(|entry| entry.is_new && self.is_covered(path_of(entry)));
        let modes: Vec<KeptMode> = there.iter().filter_map(|entry| self.mode(entry)).collect();
        let written = self.write_out(target, &there);
        let set = modes.iter().try_for_each(KeptMode::give_back);
        written.and(set).map_err(undone)?;
        self.taken().map_err(undone)?;
        let name = |entry: &&IndexEntry| path_of(entry).display().to_string();
        let written = there.iter().map(name).collect();
        let removed = rules_gone.iter().chain(&gone).map(name).collect();
        let left = present.left_out.iter().map(|file| file.path.clone());
        let left = left
            .chain(covered.iter().chain(&ignored).map(|file| path_of(file).to_owned()))
            .collect();
        Ok(Restored { written, removed, kept_as, left })
    }

    /// Which of these paths the ignore rules that are in force now cover.
    pub(super) fn ignored_of<'p>(
        &self,
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> BTreeSet<Vec<u8>> {
        let paths: Vec<u8> = paths.flat_map(|path| [path, b"\0"].concat()).collect();
        let form = ["--no-index", "--verbose", "--non-matching", "-z", "--stdin"];
        let ask = || self.printed(&[&["check-ignore"], &form[..]].concat(), &paths).ok();
        // It fails where no path is covered.
        let printed = if paths.is_empty() { None } else { ask() }.unwrap_or_default();
        let fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
        // The rule's file, line and text, then the path.
        let is_covered = |it: &&[&[u8]]| !it[2].is_empty() && !it[2].starts_with(b"!");
        fields.chunks_exact(4).filter(is_covered).map(|fields| fields[3].to_vec()).collect()
    }

    /// The mode of a file that will be replaced: git would make every file readable for all.
    fn mode(&self, entry: &IndexEntry) -> Option<KeptMode> {
        let file = self.checkout.join(path_of(entry));
        let is_plain = matches!(tree::kind(&file), "file" | "program");
        let mode = tree::mode(&file).filter(|_| is_plain)?;
        Some(KeptMode { file, mode })
    }

    /// Whether something that no snapshot holds is where a file would come: an ignored file, or a
    /// folder that was not emptied.
    fn is_covered(&self, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        tree::kind(&self.checkout.join(path)) != "gone"
            || above
                .any(|folder| !matches!(tree::kind(&self.checkout.join(folder)), "folder" | "gone"))
    }

    /// Removes a file of the tree, and the folders that it leaves empty. A link in its path means
    /// that the file is elsewhere and not the tree's.
    fn remove(&self, path: &Path) -> Result<(), String> {
        let folders: Vec<PathBuf> =
            path.ancestors().skip(1).map(|folder| self.checkout.join(folder)).collect();
        if folders.iter().any(|folder| !tree::is_folder(folder)) {
            return Ok(());
        }
        disk::remove(&self.checkout.join(path)).map_err(|error| error.to_string())?;
        for folder in folders.iter().filter(|folder| **folder != self.checkout) {
            tree::remove_if_empty(folder);
        }
        Ok(())
    }

    /// Writes these files of a snapshot with the current time, by an index of its own.
    fn write_out(&self, commit: &str, entries: &[&IndexEntry]) -> Result<(), String> {
        if entries.is_empty() {
            return Ok(());
        }
        let paths: Vec<u8> =
            entries.iter().flat_map(|entry| [&*entry.path, b"\0"].concat()).collect();
        self.on_own_index(commit, |run| {
            run(&["checkout-index", "-f", "-q", "-z", "--stdin"], &paths).map(drop)
        })
    }
}

fn path_of(entry: &IndexEntry) -> &Path {
    Path::new(OsStr::from_bytes(&entry.path))
}
