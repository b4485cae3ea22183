//! Commits an iteration's work, path by path, without the user's *drafts*: what was uncommitted
//! when the loop began and has not changed since. A snapshot has their content. The commit is made
//! with a separate index; the user's index changes only at the committed paths.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::Git;
use super::command::{IndexPaths, WRITE_TREE};
use super::inside::{Behind, listed_submodules};
use super::snapshots::Snapshots;
use super::steps::{Steps, Underway, conflict_fault};
use crate::files::disk::{self, Durability};
use crate::process::identity;
use crate::store::Home;
use engine::git::{GitFault, GitStep, GitTrouble, name_files};
use engine::record::{Loop, LoopId};
use readers::parse::git::{
    FileChange, FileChangeKind, STATUS, parse_status, zero_ended_paths, zero_list,
};

/// The result of a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommitResult {
    /// The new commit; `None` if there was nothing to commit.
    pub commit: Option<String>,
    /// The branch of the commit; `None` on a detached head.
    pub branch: Option<String>,
    /// Files that the user had changed before the loop began and the agent has changed since. They
    /// are committed whole.
    pub taken: Vec<PathBuf>,
    /// Paths that were ignored when the loop began and no longer are. They are not committed.
    pub ignored: Vec<PathBuf>,
    /// The user's drafts that no longer appear among the changes.
    pub left: LeftDrafts,
    /// Nested repositories in the working tree. They are not committed.
    pub nested: Vec<PathBuf>,
    /// Submodules still at the commit from before a rebase or a merge that recorded another one.
    /// They are not committed.
    pub behind: Vec<PathBuf>,
}

/// The prefix of the separate index in git's folder, followed by the id of crew's process.
const INDEX: &str = "crew.index.";
/// The maximum number of names in git's folder that are searched for leftovers of a killed crew
/// process.
const NAMES_MAX: usize = 10_000;

/// Commits all changes, staged or not, except crew's own files and unchanged `drafts` of the user.
pub fn commit_changes(
    steps: &Steps<'_>,
    message: &str,
    drafts: &Drafts,
) -> Result<CommitResult, GitFault> {
    let state = steps.begin(GitStep::Commit)?;
    let mut kept = CommitResult { branch: state.branch.clone(), ..CommitResult::default() };
    let changes = list_changes(steps)?;
    kept.left = drafts.find_left(steps, &changes)?;
    let paths = sort_changes(steps, drafts, changes, &mut kept)?;
    if paths.are_none() {
        return Ok(kept);
    }
    let beside = Beside::new(steps);
    beside.printed_line(&["read-tree", state.head.as_deref().unwrap_or("--empty")], &[])?;
    paths.update(|arguments, input| beside.printed_line(arguments, input))?;
    let tree = beside.printed_line(WRITE_TREE, &[])?;
    if state.tree.as_deref() == Some(&*tree) {
        kept.taken.clear();
        return Ok(kept);
    }
    let mut arguments = vec!["commit-tree", &*tree, "-F", "-"];
    arguments.extend(state.head.iter().flat_map(|head| ["-p", head]));
    let commit = beside.printed_line(&arguments, message.as_bytes())?;
    let subject = format!("commit: {}", message.lines().next().unwrap_or_default());
    let before = state.head.as_deref().unwrap_or_default();
    let underway = Underway::begin(steps, GitStep::Commit, before);
    let moved =
        steps.well(GitStep::Commit, &["update-ref", "-m", &subject, "HEAD", &commit, before]);
    // A git that was killed may still have moved the branch.
    if let Err(fault) = moved
        && Git::here(steps.checkout()).commit("HEAD").as_deref() != Some(&*commit)
    {
        return Err(fault);
    }
    // Then the index. Both must change or neither: a path updated in only one would look staged.
    let updated = paths.update(|list, input| steps.printed(GitStep::Commit, list, input));
    if let Err(fault) = updated {
        underway.clear_locks();
        let back = match before {
            "" => vec!["update-ref", "-d", "HEAD", &commit],
            before => vec!["update-ref", "HEAD", before, &commit],
        };
        let _ = steps.to_the_end().well(GitStep::Commit, &back);
        return Err(fault);
    }
    kept.commit =
        Some(steps.well(GitStep::Commit, &["rev-parse", "--short", &commit])?.trim().to_owned());
    Ok(kept)
}

/// Selects the paths to commit. Records in `kept` what is left out, and which drafts are committed.
fn sort_changes(
    steps: &Steps<'_>,
    drafts: &Drafts,
    changes: Vec<FileChange>,
    kept: &mut CommitResult,
) -> Result<IndexPaths, GitFault> {
    let (mut paths, behind) = (IndexPaths::default(), Behind::read(steps.checkout()));
    for FileChange { path, kind, .. } in changes {
        let is_draft = drafts.hold(&path);
        match kind {
            FileChangeKind::Unmerged => {
                return Err(conflict_fault(GitStep::Commit, &path.display().to_string()));
            }
            _ if drafts.were_ignored(&path) => kept.ignored.push(path),
            _ if is_draft && drafts.are_untouched(&path) => {}
            _ if behind.holds(&path) => kept.behind.push(path),
            FileChangeKind::Repository => kept.nested.push(path),
            FileChangeKind::Added if !listed_submodules(steps.checkout()).contains(&path) => {
                kept.nested.push(path);
            }
            kind => {
                paths.add(path.clone(), kind == FileChangeKind::Gone);
                if is_draft && !kept.taken.contains(&path) {
                    kept.taken.push(path);
                }
            }
        }
    }
    Ok(paths)
}

/// Steps that use crew's separate index.
struct Beside<'a> {
    steps: &'a Steps<'a>,
    index: PathBuf,
}

impl<'a> Beside<'a> {
    fn new(steps: &'a Steps<'a>) -> Self {
        let folder = steps.folder();
        clear_indexes(&folder, |pid| identity::identify_process(pid).is_none());
        let me = std::process::id();
        let beside = Self { steps, index: folder.join(format!("{INDEX}{me}")) };
        beside.clear_index();
        beside
    }

    fn clear_index(&self) {
        let me = std::process::id().cast_signed();
        clear_indexes(&self.steps.folder(), |pid| pid == me);
    }

    /// The line that git prints for this input.
    fn printed_line(&self, arguments: &[&str], input: &[u8]) -> Result<String, GitFault> {
        let variables = [("GIT_INDEX_FILE", self.index.display().to_string())];
        let git = Git { variables: &variables, input, ..self.steps.git() };
        Ok(git.well(GitStep::Commit, arguments)?.trim_end().to_owned())
    }
}

/// Removes the separate indexes, and their locks, that a killed crew left. Those of a live crew are
/// never touched: its commit would lose every file.
fn clear_indexes(folder: &Path, is_left: impl Fn(i32) -> bool) {
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
        self.clear_index();
    }
}

/// The list of the drafts' paths in the loop's folder, each followed by a zero byte.
const DRAFTS_FILE: &str = "drafts";
/// The largest list that is read, in bytes.
const DRAFTS_BYTES: u64 = 256 << 20;
/// The name of the snapshot with the drafts as the user left them.
pub const DRAFTS: &str = "drafts";

/// The drafts of a loop.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Drafts {
    paths: BTreeSet<PathBuf>,
    /// What was ignored when the loop began: files and whole folders.
    ignored: BTreeSet<PathBuf>,
    /// Every path changed since; `None` without a snapshot to compare with.
    changed: Option<BTreeSet<PathBuf>>,
}

/// The drafts when a loop begins.
#[derive(Debug)]
pub struct ListedDrafts {
    pub drafts: Vec<String>,
    /// Nested repositories, which are never committed.
    pub nested: Vec<String>,
}

/// Drafts that no longer differ from the commit, so crew has nothing to commit there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LeftDrafts {
    /// Drafts that were committed, but not by crew.
    pub committed: Vec<PathBuf>,
    /// Drafts that were deleted, or are equal to the commit.
    pub gone: Vec<PathBuf>,
}

/// Whether a loop's drafts were recorded.
pub fn drafts_are_listed(home: &Home, id: &LoopId) -> bool {
    disk::exists(&home.loop_file(id, DRAFTS_FILE))
}

/// Records the uncommitted changes as the loop's drafts.
pub fn list_drafts(
    home: &Home,
    subject: &Loop,
    steps: &Steps<'_>,
) -> Result<ListedDrafts, GitFault> {
    let (mut drafts, mut nested) = (BTreeSet::new(), BTreeSet::new());
    for FileChange { path, kind, .. } in list_changes(steps)? {
        let list = if kind == FileChangeKind::Repository { &mut nested } else { &mut drafts };
        list.insert(path);
    }
    let snapshots = Snapshots::of(home, subject);
    if let Ok(now) = snapshots.take() {
        let _ = snapshots.name(&subject.id, DRAFTS, &now.commit);
    }
    save_drafts(home, &subject.id, &drafts).map_err(|error| {
        let cause = format!("the user's uncommitted files cannot be listed: {error}");
        GitFault::new(GitStep::Commit, GitTrouble::Other, cause, "fix that, then crew resume")
    })?;
    let [drafts, nested] =
        [drafts, nested].map(|paths| paths.iter().map(|path| path.display().to_string()).collect());
    Ok(ListedDrafts { drafts, nested })
}

/// Gives a loop the drafts of an earlier one in the same working tree. What changed since then
/// counts as work.
pub fn hand_drafts_on(home: &Home, from: &LoopId, to: &Loop) -> io::Result<()> {
    let Some(drafts) = read_drafts(home, from)? else { return Ok(()) };
    let snapshots = Snapshots::of(home, to);
    if let Some(state) = snapshots.named(from, DRAFTS) {
        let _ = snapshots.name(&to.id, DRAFTS, &state);
    }
    save_drafts(home, &to.id, &drafts)
}

/// The names of these files, for a message.
pub fn name_paths(paths: &[PathBuf]) -> String {
    name_files(&paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
}

fn read_drafts(home: &Home, id: &LoopId) -> io::Result<Option<BTreeSet<PathBuf>>> {
    let bytes = disk::read(&home.loop_file(id, DRAFTS_FILE), DRAFTS_BYTES)?;
    Ok(bytes.map(|bytes| zero_ended_paths(&bytes).map(Path::to_owned).collect()))
}

fn save_drafts(home: &Home, id: &LoopId, paths: &BTreeSet<PathBuf>) -> io::Result<()> {
    disk::write(&home.loop_file(id, DRAFTS_FILE), &zero_list(paths), Durability::Machine)
}

/// The paths changed since the drafts were recorded; `None` without a snapshot to compare with.
fn changed_since(snapshots: &Snapshots, id: &LoopId) -> Option<BTreeSet<PathBuf>> {
    let before = snapshots.named(id, DRAFTS)?;
    let changed = snapshots.paths(&before, &snapshots.take().ok()?.commit).ok()?;
    Some(changed.into_iter().map(PathBuf::from).collect())
}

impl Drafts {
    /// Reads a loop's drafts and compares them with the current tree; `None` if none were recorded.
    pub fn read(home: &Home, subject: &Loop) -> io::Result<Option<Self>> {
        let Some(paths) = read_drafts(home, &subject.id)? else { return Ok(None) };
        let snapshots = Snapshots::of(home, subject);
        let changed = if paths.is_empty() { None } else { changed_since(&snapshots, &subject.id) };
        let ignored = snapshots.ignored_at_the_start(&subject.id);
        let ignored = ignored.into_iter().map(PathBuf::from).collect();
        Ok(Some(Self { paths, ignored, changed }))
    }

    /// Whether a path is a draft.
    pub fn hold(&self, path: &Path) -> bool {
        self.paths.contains(path)
    }

    /// Whether a path was ignored when the drafts were recorded.
    pub fn were_ignored(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.ignored.contains(path))
    }

    /// Whether a path is unchanged, as far as crew knows.
    pub fn are_untouched(&self, path: &Path) -> bool {
        let path = PathBuf::from(path.to_string_lossy().into_owned());
        self.changed.as_ref().is_none_or(|changed| !changed.contains(&path))
    }

    /// The drafts that no longer appear among the changes. One that was committed since the loop
    /// began stops being a draft. One that is gone may come back, for example from a stash.
    pub(super) fn find_left(
        &self,
        steps: &Steps<'_>,
        changes: &[FileChange],
    ) -> Result<LeftDrafts, GitFault> {
        let changed: BTreeSet<&Path> = changes.iter().map(|change| &*change.path).collect();
        let left = self.paths.iter().filter(|path| !changed.contains(&***path));
        let left: Vec<PathBuf> = left.cloned().collect();
        if left.is_empty() {
            return Ok(LeftDrafts::default());
        }
        let arguments = match steps.place.head.as_deref() {
            Some(start) => {
                vec!["diff-tree", "-r", "--name-only", "--no-renames", "-z", start, "HEAD"]
            }
            None => vec!["ls-files", "-z"],
        };
        let since = steps.printed(GitStep::Commit, &arguments, &[])?;
        let since: BTreeSet<&Path> = zero_ended_paths(&since).collect();
        let (committed, mut gone): (Vec<PathBuf>, Vec<PathBuf>) =
            left.into_iter().partition(|path| since.contains(&**path));
        // A file that is now ignored still exists.
        gone.retain(|path| !self.are_untouched(path));
        Ok(LeftDrafts { committed, gone })
    }

    /// Removes drafts that are committed now.
    pub fn forget(&mut self, home: &Home, id: &LoopId, paths: &[PathBuf]) -> io::Result<()> {
        self.paths.retain(|path| !paths.contains(path));
        save_drafts(home, id, &self.paths)
    }
}

/// What differs from HEAD, except what crew itself writes in the working tree.
fn list_changes(steps: &Steps<'_>) -> Result<Vec<FileChange>, GitFault> {
    Ok(parse_status(&steps.printed(GitStep::Commit, &STATUS, &[])?))
}
