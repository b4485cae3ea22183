//! A separate working tree for a loop: `<repository>.worktrees/NAME`, on the branch NAME. An
//! existing one is reused, and none is ever removed.

use std::path::{Path, PathBuf};

use super::head::list_trees;
use super::{Git, run_git};
use crate::files::disk;
use engine::git::{GitFault, GitStep, GitTrouble, Worktree};
use readers::parse::git::WorkingTree;

/// Opens the working tree of that name in the repository of `checkout`. If necessary it is created,
/// on the branch of that name; a new branch begins at `start`.
pub fn open_worktree(checkout: &Path, name: &str, start: &str) -> Result<Worktree, GitFault> {
    let checked = run_git(checkout, &["check-ref-format", "--branch", name]);
    if checked.is_none_or(|branch| branch.trim_end_matches('\n') != name) {
        let hint = "use letters, digits, -, _ and /: --worktree feat/auth";
        return Err(worktree_fault(format!("{name:?} is not a valid branch name"), hint));
    }
    let trees = list_trees(checkout);
    let Some(main) = trees.first() else {
        return Err(worktree_fault("this is not a git repository", "git init, and a first commit"));
    };
    let path = path_beside(main.path(), name);
    let known = trees.iter().find(|tree| is_same(tree.path(), &path));
    if let Some(known) = known
        && disk::exists(&path)
    {
        return reuse_worktree(known, path, name);
    }
    let elsewhere = trees.iter().find(|tree| tree.branch().as_deref() == Some(name));
    if let Some(tree) = elsewhere.filter(|tree| !is_same(tree.path(), &path)) {
        let cause = format!("the branch {name} is checked out in {}", tree.path().display());
        return Err(worktree_fault(cause, "run crew there, or use another name"));
    }
    make_worktree(checkout, &path, (name, start), known.is_some())?;
    let path = disk::real_path(&path).unwrap_or(path);
    Ok(Worktree { path, is_new: true })
}

fn reuse_worktree(known: &WorkingTree, path: PathBuf, name: &str) -> Result<Worktree, GitFault> {
    if known.branch().as_deref() == Some(name) {
        let path = disk::real_path(&path).unwrap_or(path);
        return Ok(Worktree { path, is_new: false });
    }
    let there = path.display();
    let cause = match known.branch() {
        Some(other) => format!("{there} is on the branch {other}, not {name}"),
        None => format!("{there} is on no branch, not on {name}"),
    };
    Err(worktree_fault(cause, &format!("git -C {there} switch {name}, or use another name")))
}

/// Creates a working tree. `registered` means that git knows one there whose folder is missing.
fn make_worktree(
    checkout: &Path,
    path: &Path,
    (name, start): (&str, &str),
    registered: bool,
) -> Result<(), GitFault> {
    let there = path.display().to_string();
    let branch = format!("refs/heads/{name}");
    if !disk::names(path, 1).is_empty() {
        let cause = format!("{there} exists, and is not a working tree of this repository");
        return Err(worktree_fault(cause, "move it away, or use another name"));
    }
    let mut arguments = vec!["worktree", "add", "--quiet"];
    if registered {
        arguments.push("--force");
    }
    if run_git(checkout, &["show-ref", "--verify", "--quiet", &branch]).is_some() {
        arguments.extend(["--", &there, name]);
    } else if run_git(checkout, &["rev-parse", "--verify", "--quiet", start]).is_some() {
        arguments.extend(["--no-track", "-b", name, "--", &there, start]);
    } else {
        let (cause, hint) = match start {
            "HEAD" => ("there is no commit here yet".to_owned(), "make a first commit"),
            _ => (format!("there is no branch {start} here"), "git branch --all lists them"),
        };
        return Err(worktree_fault(cause, hint));
    }
    Git::lazily(checkout).well(GitStep::Worktree, &arguments).map(drop)
}

fn path_beside(main: &Path, name: &str) -> PathBuf {
    let mut folder = main.as_os_str().to_owned();
    folder.push(".worktrees");
    Path::new(&folder).join(name)
}

/// Whether two paths lead to the same place: git prints real paths, and crew's may contain a link.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other
        || match (disk::real_path(one), disk::real_path(other)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
}

fn worktree_fault(cause: impl Into<String>, hint: &str) -> GitFault {
    GitFault::new(GitStep::Worktree, GitTrouble::Other, cause, hint)
}
