//! The commit of an iteration's work, path by path, without what the user had changed before the
//! loop began and nobody has changed since. It is made with a separate index; the user's index is
//! touched only at the committed paths.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::changes::changes;
use super::command::Command;
use super::drafts::{Drafts, Left};
use super::steps::{Steps, unmerged};
use super::submodules::{Behind, listed};
use super::underway::Underway;
use crate::engine::git::{GitFault, GitStep};
use crate::parse::git_changes::{FileChange, FileChangeKind};
use crate::world::files::disk;
use crate::world::process::identity;

/// The result of a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommitResult {
    /// `None` where there was nothing to commit.
    pub commit: Option<String>,
    /// The branch it is on; `None` on a detached head.
    pub branch: Option<String>,
    /// Files that the user had changed before the loop began and the agent has changed since. They
    /// are committed whole.
    pub taken: Vec<PathBuf>,
    /// What was ignored when the loop began and no longer is. It is left out.
    pub ignored: Vec<PathBuf>,
    /// The user's drafts that are no longer among the changes.
    pub left: Left,
    /// Nested repositories in the working tree, which are left out.
    pub nested: Vec<PathBuf>,
    /// Submodules that are as they were before a rebase or a merge moved what the head records of
    /// them, which are left out.
    pub behind: Vec<PathBuf>,
}

/// A partial clone lacks what is outside its sparse checkout.
const WRITE_TREE: &[&str] = &["write-tree", "--missing-ok"];
/// The prefix of the separate index in git's folder; the id of the crew process follows.
const INDEX: &str = "crew.index.";
/// The most names in git's folder that are searched for files that a killed crew left.
const NAMES_MAX: usize = 10_000;

impl Steps<'_> {
    /// Commits what differs, staged or not, except crew's own files and `drafts`, the user's, that
    /// are as they were.
    pub fn commit(&self, message: &str, drafts: &Drafts) -> Result<CommitResult, GitFault> {
        let stand = self.begin(GitStep::Commit)?;
        let mut kept = CommitResult { branch: stand.branch.clone(), ..CommitResult::default() };
        let (mut paths, behind) = (Paths::default(), Behind::read(self.checkout()));
        let changes = changes(self, GitStep::Commit)?;
        kept.left = drafts.left(self, &changes)?;
        for change in changes {
            if change.kind == FileChangeKind::Unmerged {
                return Err(unmerged(GitStep::Commit, &change.path.display().to_string()));
            }
            if drafts.were_ignored(&change.path) {
                kept.ignored.push(change.path);
                continue;
            }
            let is_draft = drafts.hold(&change.path);
            if is_draft && drafts.are_untouched(&change.path) {
                continue;
            }
            if behind.holds(&change.path) {
                kept.behind.push(change.path);
                continue;
            }
            let is_nested = match change.kind {
                FileChangeKind::Repository => true,
                FileChangeKind::Added => !listed(self.checkout()).contains(&change.path),
                _ => false,
            };
            if is_nested {
                kept.nested.push(change.path);
                continue;
            }
            paths.add(&change);
            if is_draft && !kept.taken.contains(&change.path) {
                kept.taken.push(change.path);
            }
        }
        if paths.gone.is_empty() && paths.there.is_empty() {
            return Ok(kept);
        }
        let beside = Beside::new(self);
        beside.fed(&["read-tree", stand.head.as_deref().unwrap_or("--empty")], &[])?;
        paths.update(|arguments, input| beside.fed(arguments, input))?;
        let tree = id(&beside.fed(WRITE_TREE, &[])?);
        if stand.tree.as_deref() == Some(&*tree) {
            kept.taken.clear();
            return Ok(kept);
        }
        let mut arguments = vec!["commit-tree", &*tree, "-F", "-"];
        arguments.extend(stand.head.iter().flat_map(|head| ["-p", head]));
        let commit = id(&beside.fed(&arguments, message.as_bytes())?);
        let subject = format!("commit: {}", message.lines().next().unwrap_or_default());
        let before = stand.head.as_deref().unwrap_or_default();
        let _underway = Underway::begin(self, GitStep::Commit, before);
        self.well(GitStep::Commit, &["update-ref", "-m", &subject, "HEAD", &commit, before])?;
        // Then the index, and both or neither: a path that one of them lacks would look staged.
        if let Err(fault) = paths.update(|arguments, input| self.fed(arguments, input)) {
            let back = match before {
                "" => vec!["update-ref", "-d", "HEAD", &commit],
                before => vec!["update-ref", "HEAD", before, &commit],
            };
            let _ = self.to_the_end().well(GitStep::Commit, &back);
            return Err(fault);
        }
        kept.commit =
            Some(self.well(GitStep::Commit, &["rev-parse", "--short", &commit])?.trim().to_owned());
        Ok(kept)
    }
}

/// The object that git prints, among its warnings.
fn id(text: &str) -> String {
    let is_id = |line: &&str| line.len() >= 40 && line.bytes().all(|it| it.is_ascii_hexdigit());
    text.lines().find(is_id).unwrap_or_default().to_owned()
}

/// The paths of a commit, each followed by a zero byte.
#[derive(Default)]
struct Paths {
    gone: Vec<u8>,
    there: Vec<u8>,
}

impl Paths {
    fn add(&mut self, change: &FileChange) {
        let list =
            if change.kind == FileChangeKind::Gone { &mut self.gone } else { &mut self.there };
        list.extend(change.path.as_os_str().as_bytes());
        list.push(0);
    }

    /// Makes an index match the working tree at these paths. Deletions come first: a folder may
    /// have replaced a file.
    fn update(
        &self,
        git: impl Fn(&[&str], &[u8]) -> Result<String, GitFault>,
    ) -> Result<(), GitFault> {
        for (list, how) in
            [(&self.gone, &["--force-remove"][..]), (&self.there, &["--add", "--replace"])]
        {
            if !list.is_empty() {
                git(&[&["update-index"], how, &["-z", "--stdin"]].concat(), list)?;
            }
        }
        Ok(())
    }
}

/// Steps with crew's separate index.
struct Beside<'a> {
    steps: &'a Steps<'a>,
    index: PathBuf,
}

impl<'a> Beside<'a> {
    fn new(steps: &'a Steps<'a>) -> Self {
        let folder = steps.folder();
        clear(&folder, |pid| identity::identity(pid).is_none());
        let me = std::process::id();
        let beside = Self { steps, index: folder.join(format!("{INDEX}{me}")) };
        beside.clear();
        beside
    }

    fn clear(&self) {
        let me = std::process::id().cast_signed();
        clear(&self.steps.folder(), |pid| pid == me);
    }

    fn fed(&self, arguments: &[&str], input: &[u8]) -> Result<String, GitFault> {
        let variables = [("GIT_INDEX_FILE", self.index.display().to_string())];
        let terms = Command { variables: &variables, input, ..Command::default() };
        self.steps.run_with(arguments, terms).well(GitStep::Commit)
    }
}

/// Removes separate indexes and their locks that a killed crew left. Those of a live crew are never
/// touched: its commit would lose every file.
fn clear(folder: &Path, is_left: impl Fn(i32) -> bool) {
    for name in disk::names(folder, NAMES_MAX) {
        let whose =
            name.strip_prefix(INDEX).and_then(|id| id.trim_end_matches(".lock").parse().ok());
        if whose.is_some_and(&is_left) {
            let _ = disk::remove(&folder.join(&name));
        }
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}
