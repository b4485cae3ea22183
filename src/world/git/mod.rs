//! Runs git and gives its text. An agent that can write the checkout can write its configuration too, so
//! nothing that configuration names as a program is run: no file-system monitor, no hooks, no filters. What
//! changes a repository is in `steps`.

mod command;
mod push;
mod rebase;
pub mod steps;
#[cfg(test)]
mod tests;
pub mod worktree;

use std::path::Path;
use std::time::Duration;

use self::command::{Command, whole};
use super::disk;
use super::home::hash;
use crate::engine::handoff::Since;
use crate::engine::protect::{Marks, covered};
use crate::parse::git::{Status, status};

/// The longest a look at the working tree may take.
const LOOK: Duration = Duration::from_secs(20);
/// The largest file whose content is compared.
const MARKED_BYTES: u64 = 16 << 20;
/// The most commits a page lists.
const COMMITS_MAX: &str = "-30";

/// Whether there is a git that runs.
pub fn answers(folder: &Path) -> bool {
    git(folder, &["--version"]).is_some()
}

/// The working tree's root, with every link resolved; `None` outside git.
pub fn top(folder: &Path) -> Option<std::path::PathBuf> {
    let text = git(folder, &["rev-parse", "--show-toplevel"])?;
    disk::real_path(Path::new(text.trim_end_matches('\n'))).ok()
}

/// What differs from the commit, every untracked file named; `None` outside git, or when it took too
/// long or printed too much.
pub fn look(top: &Path) -> Option<Status> {
    let arguments =
        ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", NO_SUBMODULES];
    Some(status(&git_on_files(top, &arguments)?))
}

/// A submodule's own configuration would be obeyed inside it; its commit is seen all the same.
const NO_SUBMODULES: &str = "--ignore-submodules=dirty";

/// One hash for the state of the working tree: the commit, each path that differs, its size and time.
pub fn fingerprint(top: &Path) -> Option<String> {
    use std::fmt::Write as _;
    let status = look(top)?;
    let mut text = status.head.unwrap_or_default();
    for entry in &status.entries {
        let (size, time) = disk::stamp(&top.join(&entry.path)).unwrap_or_default();
        let _ = write!(text, "\0{}\0{size} {time}", entry.line);
    }
    Some(hash(text.as_bytes()))
}

/// Commits and changes since `start`.
pub fn since(top: &Path, start: &str) -> Since {
    let range = format!("{start}..HEAD");
    let log = git(top, &["log", "--no-show-signature", "--format=%h %s", COMMITS_MAX, &range]);
    let stat = ["diff", "--stat=100", "--no-ext-diff", "--no-textconv", NO_SUBMODULES, start, "--"];
    let stat = git_on_files(top, &[&stat[..], &[".", OURS]].concat());
    Since {
        commits: log.unwrap_or_default().lines().map(str::to_owned).collect(),
        diffstat: stat.unwrap_or_default().trim_end().to_owned(),
        told: String::new(),
    }
}

const OURS: &str = ":(exclude,top).claude/branches";

/// A mark of what stands at each path that the globs cover and that differs from the commit `start`; without
/// one, at each that is there. `None` outside git, or when it took too long or printed too much.
pub fn protected(top: &Path, start: Option<&str>, globs: &[String]) -> Option<Marks> {
    let diff = ["diff", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv"];
    let tracked = match start {
        Some(start) => git_on_files(top, &[&diff[..], &[NO_SUBMODULES, start, "--"]].concat())?,
        None => git(top, &["ls-files", "-z"])?,
    };
    let untracked = git(top, &["ls-files", "-z", "--others", "--exclude-standard"])?;
    let paths: Vec<&str> = tracked.split('\0').chain(untracked.split('\0')).collect();
    let covered = covered(globs, &paths).into_iter().filter(|path| !path.is_empty());
    Some(covered.map(|path| (path.to_owned(), mark(&top.join(path)))).collect())
}

fn mark(path: &Path) -> String {
    match disk::read(path, MARKED_BYTES) {
        Ok(Some(bytes)) => hash(&bytes),
        Ok(None) => "gone".to_owned(),
        // A folder, a link to one, or a file too large to be read at every boundary.
        Err(_) => format!("{:?}", disk::stamp(path)),
    }
}

/// `git status --porcelain`, for a prompt.
pub fn status_text(top: &Path) -> Option<String> {
    git_on_files(top, &["status", "--porcelain", NO_SUBMODULES, "--", ".", OURS])
}

/// `git diff HEAD`, for a prompt.
pub fn diff_text(top: &Path) -> Option<String> {
    let arguments = ["diff", "--no-ext-diff", "--no-textconv", NO_SUBMODULES, "HEAD", "--", "."];
    git_on_files(top, &[&arguments[..], &[OURS]].concat())
}

/// `git log --oneline -10`, for a prompt.
pub fn log_text(top: &Path) -> Option<String> {
    git(top, &["log", "--no-show-signature", "--oneline", "-10"])
}

/// Runs a command of git that reads the files of the working tree: every content filter that the
/// configuration names is emptied.
fn git_on_files(top: &Path, arguments: &[&str]) -> Option<String> {
    let pattern = r"^filter\..*\.(clean|process|required)$";
    let names = git(top, &["config", "-z", "--name-only", "--get-regexp", pattern]);
    let names = names.unwrap_or_default();
    let names = names.split('\0').filter(|name| !name.is_empty());
    run_git(top, arguments, &names.collect::<Vec<_>>())
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    run_git(folder, arguments, &[])
}

/// Runs git with some of its settings emptied.
fn run_git(folder: &Path, arguments: &[&str], emptied: &[&str]) -> Option<String> {
    let value = |name: &str| if name.ends_with(".required") { "false" } else { "" };
    let settings = emptied.iter().map(|name| ((*name).to_owned(), value(name).to_owned()));
    let command = Command {
        folder,
        arguments,
        settings: &settings.collect::<Vec<_>>(),
        variables: &[],
        online: false,
        with_errors: false,
        within: LOOK,
    };
    whole(&command.run(|| false).ok()?)
}
