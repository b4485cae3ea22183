//! A walk over the files of a working tree that does not use git. It does not follow links, and
//! skips git's own files and what crew writes. A walk that would exceed one of its bounds returns
//! nothing.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk;
use crate::engine::boundary::protect::{Cover, IgnoreRules};
use crate::parse::git::BRANCHES;
use crate::parse::ignore::Ignore;
use crate::world::clock::Deadline;

/// The most bytes of all ignore rules of a working tree together.
pub const RULES_BYTES: u64 = 256 << 10;

/// The most folder entries that a walk over a whole tree visits.
const ENTRIES_MAX: usize = 100_000;
/// The longest such a walk may take.
const WITHIN: Duration = Duration::from_secs(2);

/// Every file of a tree that its own `.gitignore` files do not name, sorted; `None` if there are
/// too many.
pub fn files(top: &Path) -> Option<Vec<PathBuf>> {
    let (cover, rules) = (Cover::of(&["**"]), IgnoreRules::default());
    let walk = Walk::over(top, &cover, &rules, ENTRIES_MAX, Deadline::after(WITHIN));
    let mut files = Walk { reads_rules: true, ..walk }.walk()?.files;
    files.sort();
    Some(files)
}

/// What is walked, and with which bounds.
#[derive(Debug)]
pub struct Walk<'a> {
    pub top: &'a Path,
    /// The folder where it starts, relative to the top.
    pub from: PathBuf,
    /// The wanted files.
    pub cover: &'a Cover,
    /// The rules for what is left out.
    pub rules: &'a IgnoreRules,
    /// Whether each `.gitignore` found on the way counts too.
    pub reads_rules: bool,
    /// Whether a repository below the top is treated like any other folder.
    pub enters_repositories: bool,
    pub entries_max: usize,
    pub deadline: Deadline,
}

/// What was found, as paths from the top.
#[derive(Debug, Default)]
pub struct Walked {
    /// Everything that is not a folder, and folders that cannot be read.
    pub files: Vec<PathBuf>,
    /// Ignored paths that may hold a wanted file; a folder ends with a slash.
    pub left_out: Vec<String>,
    /// Each `.gitignore` that was read, by its folder.
    pub rules: BTreeMap<String, String>,
}

impl<'a> Walk<'a> {
    /// A walk over the whole tree, by these rules alone.
    pub fn over(
        top: &'a Path,
        cover: &'a Cover,
        rules: &'a IgnoreRules,
        entries_max: usize,
        deadline: Deadline,
    ) -> Self {
        let (from, reads_rules, enters_repositories) = (PathBuf::new(), false, true);
        Self { top, from, cover, rules, reads_rules, enters_repositories, entries_max, deadline }
    }

    /// Walks; `None` if a bound is exceeded.
    #[expect(clippy::disallowed_methods, reason = "a walk lists folders, up to its own bounds")]
    pub fn walk(&self) -> Option<Walked> {
        let mut ignore = Ignore::read(self.rules);
        let mut walked = Walked::default();
        let mut open = vec![self.from.clone()];
        let mut entries_left = self.entries_max;
        let mut rules_left = RULES_BYTES;
        while let Some(folder) = open.pop() {
            let Ok(entries) = fs::read_dir(self.top.join(&folder)) else {
                let path = folder.to_string_lossy();
                if self.cover.covers(&path) || self.cover.leads(&path) {
                    walked.files.push(folder);
                }
                continue;
            };
            let entries = entries.take(entries_left + 1).filter_map(Result::ok);
            let entries: Vec<DirEntry> = entries.collect();
            entries_left = entries_left.checked_sub(entries.len())?;
            if self.deadline.passed() {
                return None;
            }
            let holds = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
            if !self.enters_repositories && !folder.as_os_str().is_empty() && holds(".git") {
                continue;
            }
            if self.reads_rules && holds(".gitignore") {
                let text = rules(&self.top.join(&folder).join(".gitignore"), &mut rules_left)?;
                let folder = folder.to_string_lossy().into_owned();
                ignore.add(&folder, &text);
                walked.rules.insert(folder, text);
            }
            for entry in entries.iter().filter(|entry| entry.file_name() != ".git") {
                self.sort(entry, &folder, &ignore, &mut walked, &mut open);
            }
        }
        Some(walked)
    }

    /// Treats an entry as a file, as a folder to walk, or as nothing.
    fn sort(
        &self,
        entry: &DirEntry,
        folder: &Path,
        ignore: &Ignore,
        walked: &mut Walked,
        open: &mut Vec<PathBuf>,
    ) {
        let path = folder.join(entry.file_name());
        let text = path.to_string_lossy();
        let kind = entry.file_type().ok();
        let is_folder = kind.is_some_and(|kind| kind.is_dir());
        let is_covered = self.cover.covers(&text);
        let is_link = kind.is_some_and(|kind| kind.is_symlink());
        let counts = is_covered
            || (is_folder && self.cover.leads(&text))
            || (is_link && self.cover.leads_plainly(&text));
        if !counts || text == BRANCHES {
            return;
        }
        if ignore.ignores(&text, is_folder) {
            walked.left_out.push(if is_folder { format!("{text}/") } else { text.into_owned() });
        } else if is_folder {
            open.push(path);
        } else {
            walked.files.push(path);
        }
    }
}

/// The text of a file of ignore rules, empty if it does not exist. Links are not followed, as in
/// git. `None` when it exceeds the bytes left.
pub fn rules(path: &Path, left: &mut u64) -> Option<String> {
    if !fs::symlink_metadata(path).is_ok_and(|file| file.is_file()) {
        return Some(String::new());
    }
    *left = left.checked_sub(disk::size(path))?;
    Some(disk::read_text(path, RULES_BYTES).ok().flatten().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::files::disk::Durability;

    fn yard() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in [
            ".git/HEAD",
            ".claude/branches/main/state.json",
            ".claude/crew.toml",
            "a/b/c",
            "a/own/.git/x",
            "a/own/y",
            "z",
        ] {
            let path = folder.path().join(file);
            disk::make_folder(path.parent().unwrap()).unwrap();
            disk::write(&path, b"", Durability::Process).unwrap();
        }
        std::os::unix::fs::symlink(folder.path().join("a"), folder.path().join("link")).unwrap();
        folder
    }

    fn found(globs: &[&str], adapt: impl FnOnce(&mut Walk<'_>)) -> Option<String> {
        let folder = yard();
        disk::write(&folder.path().join("a/.gitignore"), b"b/\n", Durability::Process).unwrap();
        let mut walk = Walk {
            top: folder.path(),
            from: PathBuf::new(),
            cover: &Cover::of(globs),
            rules: &IgnoreRules::default(),
            reads_rules: false,
            enters_repositories: true,
            entries_max: 100,
            deadline: Deadline::after(Duration::from_secs(60)),
        };
        adapt(&mut walk);
        let mut files = walk.walk()?.files;
        files.sort();
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        Some(files.join(" "))
    }

    #[test]
    fn every_file_is_found_but_gits_and_crews_own_and_no_link_is_followed() {
        let all = ".claude/crew.toml a/.gitignore a/b/c a/own/y link z";
        assert_eq!(found(&["**"], |_| ()).unwrap(), all);
        assert_eq!(found(&["a/*/c"], |_| ()).unwrap(), "a/b/c");
        assert_eq!(found(&["**"], |walk| walk.from = "a/b".into()).unwrap(), "a/b/c");
        assert_eq!(found(&["a"], |walk| walk.reads_rules = true).unwrap(), "a/.gitignore a/own/y");
        assert_eq!(
            found(&["a"], |walk| walk.enters_repositories = false).unwrap(),
            "a/.gitignore a/b/c"
        );
    }

    #[test]
    fn a_walk_that_would_pass_a_bound_gives_nothing() {
        // 5 entries of the root, 2 of .claude, 3 of a, 1 of b and 2 of own.
        assert!(found(&["**"], |walk| walk.entries_max = 13).is_some());
        assert_eq!(found(&["**"], |walk| walk.entries_max = 12), None);
        assert_eq!(found(&["z"], |walk| walk.entries_max = 5).unwrap(), "z");
        let passed = Deadline::after(Duration::ZERO);
        assert_eq!(found(&["**"], |walk| walk.deadline = passed), None);
        let folder = yard();
        let large = folder.path().join("large");
        disk::write(&large, &[b'#'; 100], Durability::Process).unwrap();
        assert_eq!(rules(&large, &mut 99), None);
        assert_eq!(rules(&large, &mut 100).unwrap().len(), 100);
        assert_eq!(rules(&folder.path().join("none"), &mut 0).unwrap(), "");
    }
}
