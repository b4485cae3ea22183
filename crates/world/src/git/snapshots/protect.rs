//! Finds changed paths among those that a loop protects. Snapshots show changes of every file in
//! them, whatever git ignores later. Files that no snapshot includes are compared by hash: in
//! repositories inside, behind links, too large, or ignored by a later rule.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{FILE_BYTES, Snapshots, remove_folder, write_file};
use crate::files::{disk, tree};
use crate::store::{Home, hash};
use engine::protect::{GlobCover, Protected};
use engine::record::Loop;
use engine::test_changes::kind::ChangedPath;
use readers::parse::git::BRANCHES;

/// The name of the snapshot that the protected paths are compared with.
pub const PROTECTED: &str = "protected";
/// The maximum number of files examined, in all and in one ignored folder.
const FILES_MAX: usize = 500_000;
const IGNORED_MAX: usize = 20_000;
/// The largest file of ignore rules, in bytes.
const RULES_BYTES: u64 = 256 << 10;
const RULES: &str = ".gitignore";

/// The kind and content hash of files that no snapshot includes, by path.
type Marks = BTreeMap<String, String>;
/// Links in the tree, each with the file in the tree that it points to.
type Links = Vec<(String, String)>;

/// The protected paths of a loop.
struct ProtectedPaths<'a> {
    top: &'a Path,
    cover: GlobCover,
    /// The loop's snapshots, and a git dir whose working tree has only the ignore rules of the
    /// start.
    snapshots: Snapshots,
    rules: Snapshots,
    /// What was ignored when the loop began: files and whole folders.
    ignored: BTreeSet<String>,
}

/// Records the snapshot `now` as the state to protect. Also returns existing paths that are not
/// protected because git ignores them.
pub fn begin_protection(
    home: &Home,
    subject: &Loop,
    now: &str,
) -> Result<(Protected, Vec<String>), String> {
    let paths = ProtectedPaths::of(home, subject);
    paths.keep_rules()?;
    paths.snapshots.name(&subject.id, PROTECTED, now)?;
    let (outside, _) = paths.mark_outside(now)?;
    let missed = paths.ignored.iter().filter(|path| paths.covers_ignored(path));
    Ok((Protected { snapshot: now.to_owned(), outside }, missed.cloned().collect()))
}

/// The protected paths that differ now, in the snapshot `now` or outside of it.
pub fn changed_paths(home: &Home, subject: &Loop, now: &str) -> Result<Vec<String>, String> {
    let Some(began) = &subject.protected else { return Ok(Vec::new()) };
    let paths = ProtectedPaths::of(home, subject);
    let (outside, links) = paths.mark_outside(now)?;
    let differing = paths.snapshots.changed(&began.snapshot, now)?;
    let mut changed = BTreeSet::new();
    for (link, to) in links {
        if differing.iter().any(|entry| entry.path == to) {
            changed.insert(link);
        }
    }
    for path in began.outside.keys().chain(outside.keys()) {
        if began.outside.get(path) != outside.get(path) {
            changed.insert(path.clone());
        }
    }
    let new = differing.iter().filter(|entry| entry.is_new);
    let left_out = paths.left_out(&new.map(|entry| entry.path.clone()).collect::<Vec<_>>());
    for ChangedPath { path, is_link, .. } in differing {
        let is_covered = paths.cover.covers(&path) || is_link && paths.cover.leads_plainly(&path);
        // In a repository inside, the files count, not the commit.
        let is_repository = disk::exists(&paths.top.join(&path).join(".git"));
        if is_covered && !is_repository && !left_out.contains(&path) {
            changed.insert(path);
        }
    }
    Ok(changed.into_iter().collect())
}

impl<'a> ProtectedPaths<'a> {
    fn of(home: &Home, subject: &'a Loop) -> Self {
        let (top, snapshots) = (&*subject.place.checkout, Snapshots::of(home, subject));
        let folder = home.loop_file(&subject.id, "rules");
        let rules =
            Snapshots { folder: folder.join(".git"), checkout: folder, ..snapshots.clone() };
        let mut ignored: BTreeSet<String> = snapshots.ignored_at_the_start(&subject.id);
        ignored.retain(|path| !Path::new(path).starts_with(BRANCHES));
        Self {
            top,
            cover: GlobCover::from_globs(&subject.contract.protect),
            snapshots,
            rules,
            ignored,
        }
    }

    /// Whether an ignored file, or a file in an ignored folder, is protected.
    fn covers_ignored(&self, path: &str) -> bool {
        if self.cover.covers(path.trim_end_matches('/')) {
            return true;
        }
        let folder = self.top.join(path);
        let files =
            if path.ends_with('/') { tree::list_files(&folder, IGNORED_MAX) } else { Vec::new() };
        files.iter().any(|file| self.cover.covers(&format!("{path}{}", file.display())))
    }

    /// Copies the current files of ignore rules above the protected paths.
    fn keep_rules(&self) -> Result<(), String> {
        remove_folder(&self.rules.checkout)?;
        self.snapshots.lay_down(&self.rules)?;
        let above = self.cover.roots().iter().flat_map(|root| Path::new(root).ancestors());
        let above = above.map(|folder| folder.join(RULES).display().to_string());
        let mut files: BTreeSet<String> = self.list_files()?.into_iter().chain(above).collect();
        files.insert(RULES.to_owned());
        files.retain(|path| path.rsplit('/').next() == Some(RULES));
        for path in files {
            let file = self.top.join(&path);
            if matches!(tree::kind(&file), "file" | "program") {
                let text =
                    disk::read_text(&file, RULES_BYTES).map_err(|error| error.to_string())?;
                write_file(&self.rules.checkout.join(&path), &text.unwrap_or_default())?;
            }
        }
        Ok(())
    }

    /// The files that a glob may match, except git's own, crew's, and those in folders ignored as a
    /// whole.
    fn list_files(&self) -> Result<Vec<String>, String> {
        let roots = self.cover.roots();
        let roots = if roots.is_empty() { &[String::new()] } else { roots };
        let mut files = Vec::new();
        for root in roots {
            let folder = self.top.join(root);
            if !tree::is_folder(&folder) {
                if disk::exists(&folder) {
                    files.push(root.clone());
                }
                continue;
            }
            let root = Path::new(root);
            let found = tree::files_within(&folder, FILES_MAX + 1, |below| {
                let path = root.join(below).display().to_string();
                !below.ends_with(".git")
                    && path != BRANCHES
                    && !self.ignored.contains(&(path + "/"))
            });
            files.extend(found.iter().map(|below| root.join(below).display().to_string()));
        }
        if files.len() > FILES_MAX {
            return Err("the globs of `protect` cover more files than crew reads".to_owned());
        }
        Ok(files)
    }

    /// The protected files that no snapshot includes, with their marks; and the protected links
    /// with the files in the tree that they point to.
    fn mark_outside(&self, now: &str) -> Result<(Marks, Links), String> {
        let entries = self.snapshots.entries(now)?;
        let held: BTreeSet<&String> = entries.iter().map(|(_, path)| path).collect();
        let mut files = self.list_files()?;
        files.retain(|path| self.cover.covers(path) && !held.contains(path));
        let left_out = self.left_out(&files);
        files.retain(|path| !left_out.contains(path));
        let mut marks: Marks =
            files.into_iter().map(|path| (path.clone(), self.mark_of(&path))).collect();
        let mut links = Vec::new();
        for (mode, path) in &entries {
            if mode == "120000" && self.cover.covers(path) {
                let target = disk::real_path(&self.top.join(path)).unwrap_or_default();
                let target = target.strip_prefix(self.top).unwrap_or(&target).display().to_string();
                if held.contains(&target) {
                    links.push((path.clone(), target));
                } else {
                    marks.insert(path.clone(), self.mark_of(path));
                }
            }
        }
        Ok((marks, links))
    }

    /// Which of these paths git ignored when the loop began.
    fn left_out(&self, paths: &[String]) -> BTreeSet<String> {
        let (within, others): (Vec<&String>, Vec<&String>) = paths.iter().partition(|path| {
            let mut folders = path.match_indices('/').map(|(end, _)| &path[..=end]);
            self.ignored.contains(*path) || folders.any(|folder| self.ignored.contains(folder))
        });
        let by_rules = self.rules.ignored_of(others.iter().map(|path| path.as_bytes()));
        let by_rules = by_rules.iter().map(|path| String::from_utf8_lossy(path).into_owned());
        within.into_iter().cloned().chain(by_rules).collect()
    }

    fn mark_of(&self, path: &str) -> String {
        let file = self.top.join(path);
        let content = disk::read(&file, FILE_BYTES).ok().flatten().map(|content| hash(&content));
        match tree::kind(&file) {
            "link" => format!("link {}", content.unwrap_or_default()),
            kind @ ("file" | "program") => {
                let content = content.unwrap_or_else(|| format!("{:?}", disk::stamp(&file)));
                format!("{kind} {content}")
            }
            kind => kind.to_owned(),
        }
    }
}
