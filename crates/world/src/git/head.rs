//! What is checked out in a working tree, read from git's own files, without starting a process, at
//! every boundary. Only after a change does git report what happened, and which commits the loop
//! made or its branch lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Git;
use crate::files::{disk, tree};
use engine::evidence::changes::Commits;
use engine::evidence::changes::HeadMove;
use engine::record::{CheckedOut, Loop};
use engine::text::one_line;
use readers::parse::git::{WorkingTree, is_id, parse_worktrees};

/// The largest file with one reference, in bytes.
const LINE_BYTES: u64 = 4096;
/// The largest file of packed references, in bytes.
const PACKED_BYTES: u64 = 32 << 20;
/// The maximum number of branch tips compared, and the most bytes of packed references read for
/// them.
const TIPS_MAX: usize = 256;
const TIPS_BYTES: u64 = 1 << 20;
/// The longest chain of symbolic references that is followed.
const DEPTH_MAX: usize = 5;

/// Reads what is checked out; `None` if the folder is not the root of a working tree.
pub fn checked_out(checkout: &Path) -> Option<CheckedOut> {
    let folder = git_folder(checkout)?;
    let common = common_folder(&folder);
    let mut named = read_line(&folder.join("HEAD"))?;
    let mut branch = None;
    for _ in 0..DEPTH_MAX {
        let Some(name) = named.strip_prefix("ref: ") else {
            // An agent can write this file.
            return Some(CheckedOut { branch, commit: Some(named).filter(|id| is_id(id)) });
        };
        branch = name.strip_prefix("refs/heads/").map(str::to_owned).or(branch);
        let loose = read_line(&folder.join(name)).or_else(|| read_line(&common.join(name)));
        match loose.or_else(|| read_packed(&common, PACKED_BYTES)?.remove(name)) {
            Some(next) => named = next,
            None => return Some(CheckedOut { branch, commit: None }),
        }
    }
    None
}

/// The commits of all branches, and of every working tree's HEAD; empty if there are too many to
/// compare.
pub fn list_tips(checkout: &Path) -> Vec<String> {
    let Some(own) = git_folder(checkout) else { return Vec::new() };
    let common = common_folder(&own);
    let loose = tree::list_files(&common.join("refs/heads"), TIPS_MAX + 1);
    let trees = disk::names(&common.join("worktrees"), TIPS_MAX + 1);
    let packed = read_packed(&common, TIPS_BYTES);
    let (true, true, Some(packed)) = (loose.len() <= TIPS_MAX, trees.len() <= TIPS_MAX, packed)
    else {
        return Vec::new();
    };
    let mut branches: BTreeMap<PathBuf, String> = BTreeMap::new();
    for (name, id) in packed {
        branches.extend(name.strip_prefix("refs/heads/").map(|branch| (branch.into(), id)));
    }
    for name in loose {
        branches.extend(read_line(&common.join("refs/heads").join(&name)).map(|id| (name, id)));
    }
    let heads = trees.iter().map(|name| common.join("worktrees").join(name)).chain([own]);
    let heads = heads.filter_map(|folder| read_line(&folder.join("HEAD")));
    let tips: BTreeSet<String> =
        branches.into_values().chain(heads).filter(|id| is_id(id)).collect();
    if tips.len() > TIPS_MAX { Vec::new() } else { tips.into_iter().collect() }
}

/// How many commits that change files are new on other branches and in other working trees.
pub fn new_elsewhere(subject: &Loop, old: &[String], new: &[String]) -> u64 {
    let added: Vec<&str> =
        new.iter().filter(|tip| !old.contains(tip)).map(String::as_str).collect();
    if old.is_empty() || added.is_empty() {
        return 0;
    }
    let known = old.iter().map(String::as_str).chain(["HEAD"]);
    let new = ["--ignore-missing"].into_iter().chain(added).chain(["--not"]).chain(known);
    let arguments: Vec<&str> = new.chain(["--", "."]).collect();
    Git::of(subject).count_commits(&arguments).unwrap_or_default()
}

/// What happened between two readings; `None` if nothing changed.
pub fn find_move(subject: &Loop, old: &CheckedOut, new: &CheckedOut) -> Option<HeadMove> {
    if old == new {
        return None;
    }
    let git = Git::of(subject);
    let switched_to = match (&new.branch, &new.commit) {
        (Some(branch), _) if old.branch != new.branch => Some(branch.clone()),
        (None, Some(commit)) => commit.get(..12).map(str::to_owned),
        _ => None,
    };
    let (Some(from), Some(to)) = (&old.commit, &new.commit) else {
        let count = new.commit.as_ref().and_then(|to| git.count_commits(&[to]));
        let commits = count.unwrap_or_default();
        return Some(HeadMove { commits, switched_to, holds_work: commits > 0, gone: 0 });
    };
    let counts = git.line(&["rev-list", "--left-right", "--count", &format!("{from}...{to}")]);
    let counts = counts.unwrap_or_default();
    let (gone, commits) = counts.split_once('\t').unwrap_or_default();
    let [gone, commits] = [gone, commits].map(|count| count.parse().unwrap_or_default());
    let holds_work = commits > 0 && have_other_trees(git, from, to);
    Some(HeadMove { commits, gone, switched_to, holds_work })
}

/// Whether two commits have different files.
fn have_other_trees(git: Git<'_>, one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|commit| format!("{commit}^{{tree}}"));
    let trees = git.line(&["rev-parse", &one, &other]).unwrap_or_default();
    trees.split_once('\n').is_some_and(|(one, other)| one != other)
}

/// The folder that all working trees of a repository share, given git's folder of one of them.
pub(super) fn common_folder(folder: &Path) -> PathBuf {
    read_line(&folder.join("commondir"))
        .map_or_else(|| folder.to_owned(), |shared| folder.join(shared))
}

/// git's folder of a working tree. In a linked working tree or a submodule, `.git` is a file that
/// names it.
pub(super) fn git_folder(checkout: &Path) -> Option<PathBuf> {
    let git = checkout.join(".git");
    if disk::is_folder(&git) {
        return Some(git);
    }
    Some(checkout.join(read_line(&git)?.strip_prefix("gitdir: ")?))
}

/// The working trees of the repository that contains `folder`, including those whose folder has
/// disappeared; empty without git.
pub fn list_roots(folder: &Path) -> Vec<PathBuf> {
    let paths = list_trees(folder).into_iter().map(|tree| tree.path().clone());
    paths.map(|path| disk::real_path(&path).unwrap_or(path)).collect()
}

/// The working trees, as git lists them.
pub(super) fn list_trees(folder: &Path) -> Vec<WorkingTree> {
    let list = ["worktree", "list", "--porcelain"];
    parse_worktrees(&Git::climbing(folder).run(&list).unwrap_or_default())
}

fn read_line(file: &Path) -> Option<String> {
    let text = disk::read_text(file, LINE_BYTES).ok()??;
    Some(text.trim_end().to_owned())
}

/// The packed references by name; `None` if their file is larger than `most` bytes.
fn read_packed(common: &Path, most: u64) -> Option<BTreeMap<String, String>> {
    let text = disk::read_text(&common.join("packed-refs"), most).ok()?.unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Some(pairs.map(|(id, name)| (name.to_owned(), id.to_owned())).collect())
}

/// The longest subject line that is kept, in characters.
const SUBJECT_CHARS: usize = 200;
/// How many of crew's own commits are looked up on the current branch, newest first.
const APART_MAX: usize = 30;

/// A commit that crew made.
#[derive(Debug)]
pub struct OwnCommit {
    pub id: String,
    /// Whether crew rebased later. The commit may then be on no branch without being lost.
    pub may_have_copy: bool,
}

/// The commits since a loop started, and those that its branch has lost; `None` if they are
/// unknown. `by_crew` are those that crew made. [`count_uncommitted`](super::count_uncommitted)
/// covers uncommitted changes.
pub fn commits_since(subject: &Loop, by_crew: &[OwnCommit]) -> Option<Commits> {
    let git = Git::of(subject);
    let (branch, commit) = git.head();
    let (made, lost) = match &subject.place.head {
        Some(start) => {
            let own = subject.place.branch.as_ref().map(|branch| format!("refs/heads/{branch}"));
            let lost = own.and_then(|own| log_missing(git, &own, start));
            let lost = lost.or_else(|| log_missing(git, "HEAD", start));
            let (since, brought) = (format!("{start}..HEAD"), exclude_brought(subject));
            let since: Vec<&str> = [&*since].into_iter().chain(brought.as_deref()).collect();
            (log_lines(git, &since)?, lost.unwrap_or_default())
        }
        // The first commit came after the start.
        None => (log_lines(git, &[commit.as_ref()?])?, Vec::new()),
    };
    let apart = find_apart(subject, by_crew);
    let apart = apart.into_iter().filter_map(|own| describe_apart(subject, own)).collect();
    let switched_to = match (branch, commit) {
        (branch, _) if branch.as_deref() == subject.branch() => None,
        (Some(branch), _) => Some(branch),
        (None, commit) => commit.and_then(|commit| Some(commit.get(..12)?.to_owned())),
    };
    Some(Commits { made: Some(made), switched_to, lost, apart, ..Commits::default() })
}

/// The newest of the commits that these arguments select, one per line.
fn log_lines(git: Git<'_>, commits: &[&str]) -> Option<Vec<String>> {
    let most = format!("-{}", Commits::MOST);
    let form = ["log", "--no-show-signature", "--format=%h %s", &most];
    let text = git.run(&[&form[..], commits].concat())?;
    Some(text.lines().map(|line| one_line(line, SUBJECT_CHARS)).collect())
}

/// The commits that lead to `commit` and that a branch lacks. Commits that were only rebased do not
/// count, nor do merges, which a rebase drops. A commit that a rebase altered cannot be
/// distinguished from a lost one.
fn log_missing(git: Git<'_>, branch: &str, commit: &str) -> Option<Vec<String>> {
    let apart = format!("{branch}...{commit}");
    log_lines(git, &["--cherry-pick", "--right-only", "--no-merges", &apart])
}

/// A commit that HEAD does not contain, and where it is; `None` if it is not lost.
fn describe_apart(subject: &Loop, own: &OwnCommit) -> Option<String> {
    let line = log_missing(Git::of(subject), "HEAD", &own.id)?.into_iter().next()?;
    let there = match branch_with(subject, &own.id) {
        Some(branch) => format!("on {branch}"),
        None if own.may_have_copy => return None,
        None => "on no branch".to_owned(),
    };
    if line.starts_with(own.id.get(..7)?) { Some(format!("{line} ({there})")) } else { None }
}

/// The files changed since a loop started by commits that came from a remote and have another
/// committer address; empty if that is not known.
pub fn changed_by_others(subject: &Loop) -> Vec<String> {
    let Some(start) = &subject.place.head else { return Vec::new() };
    let changed = show_others(Git::of(subject), &format!("{start}..HEAD")).unwrap_or_default();
    changed.split(['\0', '\n']).filter(|path| !path.is_empty()).map(str::to_owned).collect()
}

fn show_others(git: Git<'_>, since: &str) -> Option<String> {
    let own = git.run(&["config", "user.email"]).unwrap_or_default();
    let form = ["log", "--no-show-signature", "--format=%H %ce", since];
    let only_here = git.run(&[&form[..], &["--not", "--remotes"]].concat())?;
    let only_here: BTreeSet<&str> = only_here.lines().collect();
    let all = git.run(&form)?;
    let mut show = vec!["show", "--no-show-signature", "--format=", "--name-only", "-z"];
    let options = show.len();
    for line in all.lines().filter(|line| !only_here.contains(line)) {
        if let Some((id, address)) = line.split_once(' ')
            && address != own.trim()
        {
            show.push(id);
        }
    }
    if show.len() == options { None } else { git.run(&show) }
}

/// Excludes what a rebase brought to the branch of a task. A run that a person started may push its
/// own commits to the branch it is rebased onto.
fn exclude_brought(subject: &Loop) -> Option<String> {
    let (Some(_), Some(run)) = (&subject.fleet, &subject.contract.run) else { return None };
    Some(format!("^{}", Git::of(subject).commit(run.git.rebase.as_ref()?)?))
}

/// The newest of crew's commits that HEAD does not contain.
fn find_apart<'a>(subject: &Loop, by_crew: &'a [OwnCommit]) -> Vec<&'a OwnCommit> {
    let newest = &by_crew[by_crew.len().saturating_sub(APART_MAX)..];
    if newest.is_empty() {
        return Vec::new();
    }
    let ids: Vec<&str> = newest.iter().map(|commit| commit.id.as_str()).collect();
    let list = [&["rev-list", "--ignore-missing"], &ids[..], &["--not", "HEAD"]].concat();
    let listed = Git::of(subject).run(&list).unwrap_or_default();
    let mut apart: Vec<&OwnCommit> = newest.iter().rev().collect();
    apart.retain(|own| listed.lines().any(|line| line.starts_with(own.id.as_str())));
    apart
}

/// A branch that contains the commit.
fn branch_with(subject: &Loop, id: &str) -> Option<String> {
    let list = ["branch", "--list", "--format=%(refname:short)", "--contains", id];
    let named = Git::of(subject).run(&list)?;
    named.lines().find(|name| !name.starts_with('(')).map(str::to_owned)
}
