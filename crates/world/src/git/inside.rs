//! The repositories inside a working tree: submodules and others. Snapshots include neither their
//! commits nor their files, so each is examined separately. If a rebase or a merge recorded another
//! commit of a submodule without updating it, the submodule is listed, and no commit includes it.
//! crew does not update it, because git would apply the submodule's own configuration.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::Git;
use super::head::{checked_out, git_folder};
use crate::files::disk::{self, Durability};
use crate::store::hash;
use engine::record::{Loop, RepositoryInside};
use readers::parse::git::{
    FileChangeKind, parse_raw_diff, zero_ended_names, zero_ended_paths, zero_list,
};

/// The maximum number of repositories examined.
const REPOSITORIES_MAX: usize = 100;
/// The maximum number of files of a repository compared by content, and the largest, in bytes.
const FILES_READ: usize = 1000;
const FILE_BYTES: u64 = 1 << 20;

/// The state of each repository inside the working tree, by its path from the root: those at these
/// paths, the submodules, and all inside them. If there are none, no process is started.
pub fn look_inside(subject: &Loop, at: &[PathBuf]) -> BTreeMap<String, RepositoryInside> {
    let top = &subject.place.checkout;
    let mut found = BTreeMap::new();
    let mut pending: Vec<PathBuf> = at.iter().cloned().chain(listed_submodules(top)).collect();
    while let Some(path) = pending.pop() {
        let (folder, name) = (top.join(&path), path.to_string_lossy().into_owned());
        let name = name.trim_end_matches('/').to_owned();
        let is_known = found.contains_key(&name) || found.len() == REPOSITORIES_MAX;
        if is_known || disk::is_missing(&folder.join(".git")) {
            continue;
        }
        let (state, inside) = read_state(subject, &folder);
        pending.extend(inside.iter().map(|nested| path.join(nested)));
        found.insert(name, state);
    }
    found
}

/// The state of one repository, and the repositories inside it.
fn read_state(subject: &Loop, folder: &Path) -> (RepositoryInside, Vec<PathBuf>) {
    let commit = checked_out(folder).and_then(|head| head.commit);
    let entries = Git { folder, ..Git::of(subject) }.look().unwrap_or_default();
    let mut text = String::new();
    for (index, entry) in entries.iter().enumerate() {
        let file = folder.join(&entry.path);
        let content =
            if index < FILES_READ { disk::read(&file, FILE_BYTES).ok().flatten() } else { None };
        let mark = match content {
            Some(content) => hash(&content),
            None => format!("{:?}", disk::stamp(&file)),
        };
        let _ = write!(text, "{}\0{mark}\0", String::from_utf8_lossy(&entry.record));
    }
    let uncommitted = if text.is_empty() { None } else { Some(hash(text.as_bytes())) };
    let inside = entries.iter().filter(|entry| entry.kind == FileChangeKind::Repository);
    let inside = inside.map(|entry| entry.path.clone()).chain(listed_submodules(folder)).collect();
    (RepositoryInside { commit, uncommitted }, inside)
}

/// The file in git's folder that lists outdated submodules: path and commit, each followed by a
/// zero byte, because a path need not be UTF-8.
const LIST: &str = "crew.submodules";
/// The largest such file that is read, in bytes.
const LIST_BYTES: u64 = 1 << 20;

/// The outdated submodules by path, each with the commit that was checked out in it.
#[derive(Debug, Default)]
pub(super) struct Behind(BTreeMap<PathBuf, String>);

impl Behind {
    /// Reads the list, and drops submodules that have been moved since.
    pub fn read(checkout: &Path) -> Self {
        let listed =
            disk::read(&list_file(checkout), LIST_BYTES).ok().flatten().unwrap_or_default();
        let (paths, commits) =
            (zero_ended_paths(&listed).step_by(2), zero_ended_names(&listed).skip(1).step_by(2));
        let mut behind = Self(paths.map(Path::to_owned).zip(commits).collect());
        let listed = behind.0.len();
        behind.0.retain(|path, commit| is_at(checkout, path, commit));
        if behind.0.len() < listed {
            behind.save_list(checkout);
        }
        behind
    }

    /// Writes the list.
    fn save_list(&self, checkout: &Path) {
        let pairs = self.0.iter().flat_map(|(path, commit)| [path.as_os_str(), commit.as_ref()]);
        let text = zero_list(pairs);
        let file = list_file(checkout);
        if !text.is_empty() || disk::exists(&file) {
            let _ = disk::write(&file, &text, Durability::Process);
        }
    }

    /// Whether a submodule is outdated.
    pub fn holds(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }
}

/// Lists the submodules that are still at the commit that `before` records, where the index records
/// another one after a rebase or a merge. Otherwise a commit would include them.
pub(super) fn note_submodules(checkout: &Path, before: &str) {
    let form = ["diff-index", "--cached", "-R", "--raw", "-z", "--no-renames", "--no-abbrev"];
    // This reads no file of the working tree.
    let arguments = [&form[..], &["--ignore-submodules=dirty", before]].concat();
    let Some(moved) = Git::here(checkout).printed(&arguments) else { return };
    let mut behind = Behind::read(checkout);
    for entry in parse_raw_diff(&moved).into_iter().filter(|entry| !entry.is_new()) {
        let path = PathBuf::from(OsString::from_vec(entry.path));
        // A submodule that was outdated before stays so: this step started from what it recorded.
        if let Some(commit) = entry.what.strip_prefix(b"160000 ")
            && !behind.holds(&path)
        {
            behind.0.insert(path, String::from_utf8_lossy(commit).into_owned());
        }
    }
    behind.0.retain(|path, commit| is_at(checkout, path, commit));
    behind.save_list(checkout);
}

/// The submodules by name, with their paths, from the `.gitmodules` that these arguments of `git
/// config` select.
pub(super) fn list_submodules(git: Git<'_>, file: &[&str]) -> Vec<(String, PathBuf)> {
    let form = ["-z", "--get-regexp", r"^submodule\..*\.path$"];
    let listed = git.run(&[&["config"], file, &form].concat()).unwrap_or_default();
    listed.split_terminator('\0').filter_map(parse_submodule).collect()
}

fn parse_submodule(record: &str) -> Option<(String, PathBuf)> {
    let (key, path) = record.split_once('\n')?;
    let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
    Some((name.to_owned(), PathBuf::from(path)))
}

/// The submodules that `.gitmodules` names, by path.
pub(super) fn listed_submodules(checkout: &Path) -> Vec<PathBuf> {
    let modules = disk::read_text(&checkout.join(".gitmodules"), LIST_BYTES).ok().flatten();
    let modules = modules.unwrap_or_default();
    let paths = modules.lines().filter_map(|line| line.trim().strip_prefix("path = "));
    paths.map(PathBuf::from).collect()
}

fn is_at(checkout: &Path, path: &Path, commit: &str) -> bool {
    Git::here(&checkout.join(path)).commit("HEAD").as_deref() == Some(commit)
}

fn list_file(checkout: &Path) -> PathBuf {
    git_folder(checkout).unwrap_or_else(|| checkout.join(".git")).join(LIST)
}
