//! Writes out a snapshot: back into the working tree, whose state is first kept as a snapshot, or
//! into a scratch folder with its own git dir. A second time there, only what differs is changed,
//! so that build outputs stay useful. The user's repository is not touched: HEAD, index and
//! branches stay.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::fill::ATTRIBUTES;
use super::{FILE_BYTES, Snapshots, make_folder, parse_id, remove_folder, write_file};
use crate::clock::Deadline;
use crate::files::{disk, tree};
use crate::git::command::IndexPaths;
use crate::git::include::{INCLUDE_BYTES, copy_files, ignored_among};
use crate::store::hash;
use engine::fleet::INCLUDE;
use engine::record::LoopId;
use readers::parse::git::{BRANCHES, IndexEntry, zero_ended, zero_list};

/// The longest time that writing a snapshot may take.
const WITHIN: std::time::Duration = std::time::Duration::from_secs(120);
/// Folders of build and test outputs that are not called a cache.
const OUTPUTS: [&str; 10] =
    ["target", "dist", "build", "out", "coverage", "htmlcov", "tmp", ".next", ".tox", ".nox"];
/// The maximum number of files of a folder searched.
const FILES_MAX: usize = 200_000;
/// The largest file of ignore rules, in bytes.
const EXCLUDES_BYTES: u64 = 8 << 20;
/// The file that records the setup command of a folder, and its largest size in bytes.
const SET_UP: &str = ".git/crew-set-up";
const SETUP_BYTES: u64 = 4096;
/// The file that marks a scratch folder with linked folders.
const LINKED: &str = ".git/crew-linked";
/// The settings of a scratch folder's repository: a check may run git in it.
const CONFIG: &str =
    "[core]\n\trepositoryFormatVersion = 0\n\tbare = false\n\tautocrlf = false\n[gc]\n\tauto = 0";

impl Snapshots {
    /// Makes a folder hold exactly a snapshot and ignored files; with `keeps_others` other files
    /// stay too. A folder that cannot be updated is created again.
    pub fn check_out(&self, commit: &str, folder: &Path, keeps_others: bool) -> Result<(), String> {
        let scratch = Self {
            folder: folder.join(".git"),
            checkout: folder.to_owned(),
            deadline: Some(Deadline::after(WITHIN)),
            ..self.clone()
        };
        // A check must not hide leftovers by changing the folder's own index.
        let index = folder.with_extension("index");
        let _ = disk::remove(&folder.with_extension("index.lock"));
        if self.lay_down(&scratch).is_ok() && scratch.reset_to(commit, &index, keeps_others).is_ok()
        {
            return Ok(());
        }
        remove_folder(folder)?;
        let _ = disk::remove(&index);
        self.lay_down(&scratch)?;
        scratch.reset_to(commit, &index, keeps_others)
    }

    /// Writes the git dir of a scratch folder, without objects.
    pub(super) fn lay_down(&self, scratch: &Self) -> Result<(), String> {
        make_folder(&scratch.folder.join("refs/heads"))?;
        let objects = self.folder.join("objects").display().to_string();
        let excludes = disk::read_text(&self.folder.join("info/exclude"), EXCLUDES_BYTES);
        let excludes = excludes.ok().flatten().unwrap_or_default();
        write_file(&scratch.folder.join("config"), CONFIG)?;
        write_file(&scratch.folder.join("info/attributes"), ATTRIBUTES)?;
        write_file(&scratch.folder.join("info/exclude"), &excludes)?;
        write_file(&scratch.folder.join("objects/info/alternates"), &objects)?;
        write_file(&scratch.folder.join("HEAD"), "ref: refs/heads/scratch")
    }

    /// A snapshot with these files and folders, by name, taken from another one.
    pub fn mixed(&self, commit: &str, other: &str, files: &[&str]) -> Result<String, String> {
        if files.is_empty() {
            return Ok(commit.to_owned());
        }
        let names: BTreeSet<&Path> = files.iter().map(Path::new).collect();
        let mut entries = self.differing(commit, other)?;
        // A name that is not UTF-8 was read with replaced characters.
        entries.retain(|entry| {
            let path = String::from_utf8_lossy(&entry.path);
            Path::new(&*path).ancestors().any(|path| names.contains(path))
        });
        // Deletions come first: a folder may replace a file.
        entries.sort_by_key(|entry| !entry.is_gone());
        let entries: Vec<u8> = entries.iter().flat_map(IndexEntry::index_info).collect();
        self.updated(commit, &["update-index", "--replace", "-z", "--index-info"], &entries)
    }

    /// A snapshot with new contents for these files.
    pub fn with_contents(&self, commit: &str, files: &[(&str, &str)]) -> Result<String, String> {
        if files.is_empty() {
            return Ok(commit.to_owned());
        }
        let mut entries = Vec::new();
        for (path, text) in files {
            let id = parse_id(self.printed(&["hash-object", "-w", "--stdin"], text.as_bytes())?)?;
            entries.extend(format!("100644 {id}\t{path}\0").into_bytes());
        }
        self.updated(commit, &["update-index", "-z", "--index-info"], &entries)
    }

    /// Copies the ignored files that `.worktreeinclude` names from the working tree into a folder,
    /// except those in the snapshot `laid_out` there. `.worktreeinclude` is read from the snapshot
    /// `test_changes`, or else from the working tree.
    pub fn include(&self, test_changes: &str, laid_out: &str, folder: &Path) -> Result<(), String> {
        let patterns = match self.file(test_changes, INCLUDE)? {
            Some(patterns) => Some(patterns),
            None => disk::read_text(&self.checkout.join(INCLUDE), INCLUDE_BYTES)
                .map_err(|error| format!("{INCLUDE}: {error}"))?,
        };
        let Some(patterns) = patterns else { return Ok(()) };
        let file = folder.join(".git/info/include");
        write_file(&file, &patterns)?;
        let file = file.display().to_string();
        let listed = self.printed(&["ls-files", "-z", "--others", "-i", "-X", &file], &[])?;
        let held = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", laid_out];
        let held = self.printed(&held, &[])?;
        let held: BTreeSet<&[u8]> = zero_ended(&held).collect();
        let files = zero_ended(&listed).filter(|path| !held.contains(path));
        copy_files(files, &self.checkout, folder, true).map(drop)
    }

    fn reset_to(&self, tree: &str, index: &Path, keeps_others: bool) -> Result<(), String> {
        // A check may ask git which commit it runs on.
        let commit = parse_id(self.printed(&["commit-tree", "-m", "snapshot", tree], &[])?)?;
        let reset = ["reset", "--hard", "-q", &commit];
        self.printed_in(&self.checkout, &reset, &[], Some(index))?;
        if !keeps_others {
            self.printed_in(&self.checkout, &["clean", "-fdq"], &[], Some(index))?;
        }
        let own = self.folder.join("index");
        let _ = disk::remove(&own);
        tree::copy_with_time(index, &own).map_err(|error| error.to_string())
    }
}

/// Adds to a scratch folder the folders that git ignores as a whole in a working tree, such as
/// `node_modules`. Each becomes a folder of links, so that what a check adds stays in the scratch
/// folder. Relative links are copied. False if nothing was added.
pub fn link_ignored(
    snapshots: &Snapshots,
    checkout: &Path,
    scratch: &Path,
) -> Result<bool, String> {
    let mut is_new = false;
    for path in ignored_inputs(snapshots)? {
        let (from, to) = (checkout.join(&path), scratch.join(&path));
        if tree::kind(&from) == "folder" && !leads_back(&from, checkout) {
            is_new |= tree::mirror_by_links(&from, &to).map_err(|error| error.to_string())?;
        }
    }
    if is_new {
        write_file(&scratch.join(LINKED), "")?;
    }
    Ok(is_new)
}

/// Whether a scratch folder has linked folders of the working tree.
pub fn is_linked(scratch: &Path) -> bool {
    disk::exists(&scratch.join(LINKED))
}

/// What git ignores in the working tree and a scratch folder lacks, except build and test outputs.
pub fn left_out(snapshots: &Snapshots, scratch: &Path) -> Result<Vec<String>, String> {
    let mut ignored = ignored_inputs(snapshots)?;
    ignored.retain(|path| !disk::exists(&scratch.join(path)));
    Ok(ignored)
}

/// What git ignores in the working tree, except build and test outputs and crew's files.
fn ignored_inputs(snapshots: &Snapshots) -> Result<Vec<String>, String> {
    let mut ignored = snapshots.all_ignored()?;
    ignored.retain(|path| {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        !is_output(name) && !Path::new(path).starts_with(BRANCHES)
    });
    Ok(ignored)
}

/// Whether a folder with this name contains build or test outputs, which the scratch folder makes
/// for itself.
pub fn is_output(name: &str) -> bool {
    OUTPUTS.contains(&name) || name.ends_with("cache") || name.ends_with("cache__")
}

/// Whether a folder leads programs to the working tree: by a Python `.pth` file that names it.
fn leads_back(folder: &Path, checkout: &Path) -> bool {
    let named = checkout.display().to_string();
    for file in tree::list_files(folder, FILES_MAX) {
        let extension = file.extension().unwrap_or_default();
        if extension == "pth" || extension == "egg-link" {
            let text = disk::read_text(&folder.join(file), EXCLUDES_BYTES).ok().flatten();
            if text.is_none_or(|text| text.contains(&named)) {
                return true;
            }
        }
    }
    false
}

/// Whether a folder was set up by this command; an empty command needs no setup.
pub fn is_set_up(folder: &Path, setup: &str) -> bool {
    let known = disk::read_text(&folder.join(SET_UP), SETUP_BYTES).ok().flatten();
    setup.is_empty() || known.is_some_and(|known| known.trim_end() == hash(setup.as_bytes()))
}

/// Records that a folder was set up by this command.
pub fn mark_set_up(folder: &Path, setup: &str) -> Result<(), String> {
    write_file(&folder.join(SET_UP), &hash(setup.as_bytes()))
}

/// The files of ignore rules.
const RULES: &str = ".gitignore";
/// The maximum number of returns of one loop.
const RETURNS_MAX: u32 = 100_000;

/// The result of a return to a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// The paths of the files written.
    pub written: Vec<String>,
    /// The paths of the files removed.
    pub removed: Vec<String>,
    /// The name of the snapshot that keeps the earlier state.
    pub kept_as: String,
    /// The paths that snapshots leave out, which stayed as they were.
    pub left: Vec<PathBuf>,
}

fn is_of_rules(entry: &IndexEntry) -> bool {
    entry.path().file_name() == Some(RULES.as_ref())
}

/// Gives a file the mode of the one it replaced. It never becomes accessible to more users, except
/// to be run.
fn give_back(file: &Path, mode: u32) -> Result<(), String> {
    let runs = match tree::kind(file) {
        "file" => 0,
        "program" => (mode & 0o444) >> 2,
        _ => return Ok(()),
    };
    let set = tree::set_mode(file, mode & 0o666 | runs);
    set.map_err(|error| format!("{}: {error}", file.display()))
}

impl Snapshots {
    /// Returns the working tree to a snapshot.
    pub fn restore(&self, id: &LoopId, target: &str) -> Result<Restored, String> {
        let _lock = self.hold()?;
        let present = self.taken()?;
        let mut names = (1..RETURNS_MAX).map(|number| format!("back-{number}"));
        let kept_as = names
            .find(|name| self.named(id, name).is_none())
            .ok_or("it already has too many snapshots of earlier returns")?;
        self.name(id, &kept_as, &present.commit)?;
        let mut changed = self.differing(&present.commit, target)?;
        let left: BTreeSet<&Path> = present.left_out.iter().map(|file| &*file.path).collect();
        changed.retain(|entry| {
            let path = entry.path();
            let file = self.checkout.join(path);
            // A repository inside has its own history, and a large file is in no snapshot.
            !(entry.what.starts_with(b"160000")
                || path.ancestors().any(|path| left.contains(path))
                || disk::stamp(&file).is_some_and(|(size, _)| size > FILE_BYTES))
        });
        let restored = self.bring_back(target, changed);
        let mut restored = restored
            .map_err(|why| format!("{why}; crew back {id} {kept_as} brings the tree back"))?;
        restored.left.extend(present.left_out.into_iter().map(|file| file.path));
        Ok(Restored { kept_as, ..restored })
    }

    /// Returns these entries of the working tree to a snapshot, except files that no snapshot
    /// includes.
    fn bring_back(&self, target: &str, changed: Vec<IndexEntry>) -> Result<Restored, String> {
        let (mut gone, mut there): (Vec<IndexEntry>, Vec<IndexEntry>) =
            changed.into_iter().partition(IndexEntry::is_gone);
        // Ignore rules come first. What the earlier rules cover was in no snapshot then, so it
        // stays.
        gone.sort_by_key(|entry| !is_of_rules(entry));
        let rules = gone.partition_point(is_of_rules);
        self.remove_files(&gone[..rules])?;
        self.write_out(target, there.iter().filter(|entry| is_of_rules(entry)))?;
        let covered = self.ignored_of(gone[rules..].iter().map(|entry| &*entry.path));
        let (ignored, gone): (Vec<IndexEntry>, Vec<IndexEntry>) =
            gone.into_iter().partition(|entry| covered.contains(&entry.path));
        self.remove_files(&gone)?;
        let mut left: Vec<PathBuf> = ignored.iter().map(|entry| entry.path().into()).collect();
        let mut forgotten = IndexPaths::default();
        for path in &left {
            forgotten.add(path.clone(), true);
        }
        forgotten.update(|arguments, input| self.printed(arguments, input))?;
        there.retain(|entry| {
            let is_covered = entry.is_new() && self.is_covered(entry.path());
            if is_covered {
                left.push(entry.path().to_owned());
            }
            !is_covered
        });
        let modes: Vec<(PathBuf, u32)> =
            there.iter().filter_map(|entry| self.mode_of(entry)).collect();
        let written = self.write_out(target, there.iter());
        written.and(modes.iter().try_for_each(|(file, mode)| give_back(file, *mode)))?;
        self.taken()?;
        let [written, removed] = [&there, &gone]
            .map(|list| list.iter().map(|entry| entry.path().display().to_string()).collect());
        Ok(Restored { written, removed, left, ..Restored::default() })
    }

    /// The paths among these that the present ignore rules cover.
    pub(super) fn ignored_of<'p>(
        &self,
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> BTreeSet<Vec<u8>> {
        // git fails if no path is ignored.
        ignored_among(paths, |arguments, input| self.printed(arguments, input).ok())
            .unwrap_or_default()
    }

    /// The mode of a file that is about to be replaced: git would make every file readable for all.
    fn mode_of(&self, entry: &IndexEntry) -> Option<(PathBuf, u32)> {
        let file = self.checkout.join(entry.path());
        match tree::kind(&file) {
            "file" | "program" => tree::read_mode(&file).map(|mode| (file, mode)),
            _ => None,
        }
    }

    /// Whether something that no snapshot includes is in the way of a file: an ignored file, or a
    /// folder that was not emptied.
    fn is_covered(&self, path: &Path) -> bool {
        if tree::kind(&self.checkout.join(path)) != "gone" {
            return true;
        }
        let mut above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        above.any(|folder| !matches!(tree::kind(&self.checkout.join(folder)), "folder" | "gone"))
    }

    /// Removes files, and the folders they leave empty. A file behind a link is not part of the
    /// tree.
    fn remove_files(&self, entries: &[IndexEntry]) -> Result<(), String> {
        for path in entries.iter().map(IndexEntry::path) {
            let folders: Vec<PathBuf> =
                path.ancestors().skip(1).map(|folder| self.checkout.join(folder)).collect();
            if folders.iter().all(|folder| tree::is_folder(folder)) {
                disk::remove(&self.checkout.join(path)).map_err(|error| error.to_string())?;
                for folder in folders.iter().filter(|folder| **folder != self.checkout) {
                    tree::remove_if_empty(folder);
                }
            }
        }
        Ok(())
    }

    /// Writes these files of a snapshot, with the current time, by a separate index.
    fn write_out<'e>(
        &self,
        commit: &str,
        entries: impl Iterator<Item = &'e IndexEntry>,
    ) -> Result<(), String> {
        let paths = zero_list(entries.map(IndexEntry::path));
        if paths.is_empty() {
            return Ok(());
        }
        self.on_own_index(commit, |run| {
            run(&["checkout-index", "-f", "-q", "-z", "--stdin"], &paths).map(drop)
        })
    }
}
