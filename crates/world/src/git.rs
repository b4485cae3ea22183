//! Runs git and returns its output. An agent that can write to the checkout can also write its
//! configuration, so crew never runs the programs that the configuration names: no file-system
//! monitor, no hooks, no filters. The steps that change a repository are in `steps`.

pub mod clone;
pub mod command;
pub mod commit;
pub mod head;
pub mod include;
pub mod inside;
pub mod land;
pub mod readiness;
pub mod referred;
pub mod remotes;
pub mod snapshots;
pub mod steps;
pub mod sync;
#[cfg(test)]
mod tests;
pub mod worktree;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shell_words::quote;

use self::command::{Setting, all_words};
pub use self::head::{OwnCommit, commits_since};
use super::env;
use super::files::disk;
use crate::process::{ExitCause, Stop};
use engine::evidence::changes::{ChangeKind, ChangedFile, Changes};
use engine::git::{GitFault, GitStep, RemoteRef};
use engine::record::Loop;
use engine::text::distinct_texts;
use readers::parse::git::{
    BRANCHES, FileChange, STATUS, find_error, is_id, parse_status, tree_changes,
};

/// Whether git can be run.
pub fn can_run(folder: &Path) -> bool {
    run_git(folder, &["--version"]).is_some()
}

/// The root of the working tree, with every link resolved; `None` outside a repository.
pub fn find_top(folder: &Path) -> Option<PathBuf> {
    find_place(folder, &["rev-parse", "--show-toplevel"])
}

/// A path that git prints for the repository that contains `folder`, with every link resolved.
fn find_place(folder: &Path, arguments: &[&str]) -> Option<PathBuf> {
    let path = Git::climbing(folder).line(arguments)?;
    disk::real_path(Path::new(&path)).ok()
}

/// Why git refuses an existing repository, in git's own words, and a hint; `None` without a
/// repository, or where git accepts it.
pub fn find_refusal(folder: &Path) -> Option<(String, String)> {
    let top = folder.ancestors().find(|folder| has_repository(folder))?.display().to_string();
    let cause = match Git::climbing(folder).start(&["rev-parse", "--show-toplevel"]) {
        Ok(ended) if ended.cause() == ExitCause::Exit(0) => return None,
        Ok(ended) => format!("git refuses {top}: {}", find_error(&all_words(&ended))),
        Err(error) => format!("git cannot be started: {error}"),
    };
    let hints = [
        ("cannot be started", "put git on PATH".to_owned()),
        ("dubious ownership", format!("git config --global --add safe.directory {}", quote(&top))),
        ("config", "correct that setting, then start again".to_owned()),
        ("repo version", "update git".to_owned()),
        ("repository extension", "update git".to_owned()),
    ];
    let hint = match hints.into_iter().find(|(words, _)| cause.contains(words)) {
        Some((_, hint)) => hint,
        None => format!("git status in {top} shows it; put back what is missing"),
    };
    Some((cause, hint))
}

fn has_repository(folder: &Path) -> bool {
    let git = folder.join(".git");
    disk::size(&git) > 0 && (disk::is_file(&git) || !disk::names(&git, 1).is_empty())
}

/// The folder in which git keeps the repository that contains `folder`; all its working trees share
/// it.
pub fn shared_folder(folder: &Path) -> Option<PathBuf> {
    find_place(folder, &["rev-parse", "--path-format=absolute", "--git-common-dir"])
}

/// The branch (`None` when detached) and the commit (`None` before the first one). The working tree
/// is not read, so its size does not matter.
pub fn read_head(top: &Path) -> (Option<String>, Option<String>) {
    Git::here(top).head()
}

/// The commit that a name denotes in a working tree.
pub fn find_commit(top: &Path, name: &str) -> Option<String> {
    Git::here(top).commit(name)
}

/// Deletes a ref, if it still points to the commit it was seen with. That commit may be lost with
/// it.
pub fn delete_ref(top: &Path, seen: &RemoteRef) -> Result<(), GitFault> {
    let arguments = ["update-ref", "--no-deref", "-d", &seen.name, &seen.id];
    Git::here(top).well(GitStep::Refs, &arguments).map(drop)
}

/// Whether a name denotes a commit: a branch, a tag or an id.
pub fn is_a_commit(folder: &Path, name: &str) -> bool {
    Git::climbing(folder).commit(name).is_some()
}

/// What the second name changed since it left the first one, as a diff; with `stat` as a summary of
/// so many columns. `None` if one of the names is unknown here.
pub fn difference_text(top: &Path, from: &str, to: &str, stat: Option<u16>) -> Option<String> {
    let range = format!("{from}...{to}");
    let columns = stat.map(|columns| format!("--stat={columns}"));
    let form = ["diff", "--no-ext-diff", "--no-textconv", "--no-color"].into_iter();
    let arguments: Vec<&str> = form.chain(columns.as_deref()).chain([&*range, "--"]).collect();
    Git::here(top).run(&arguments)
}

/// How many commits of `of` are missing from `other`; `None` if either is unknown here.
pub fn count_lacking(top: &Path, of: &str, other: &str) -> Option<u64> {
    Git::here(top).count_commits(&[of, "--not", other, "--"])
}

/// The commits that a ref points to now, and has pointed to as far back as its reflog goes.
pub fn named_by(top: &Path, name: &str) -> Vec<String> {
    let logged = Git::here(top).run(&["rev-list", "--walk-reflogs", name, "--"]);
    let logged = logged.unwrap_or_default();
    find_commit(top, name).into_iter().chain(logged.lines().map(str::to_owned)).collect()
}

/// Whether a commit is among `by`, or an ancestor of one of them.
pub fn is_held(top: &Path, id: &str, by: &[String]) -> bool {
    let by = by.iter().map(String::as_str).chain(["--"]);
    Git::here(top).count_commits(&[id, "--not"].into_iter().chain(by).collect::<Vec<_>>())
        == Some(0)
}

/// A branch below `below` that has some of the commits that `of` has and `other` lacks.
pub fn begun_beyond(top: &Path, of: &str, other: &str, below: &str) -> Option<String> {
    let listed = run_git(top, &["for-each-ref", "--format=%(refname:lstrip=2)", below])?;
    for branch in listed.lines() {
        let common = Git::here(top).line(&["merge-base", of, branch]).unwrap_or_default();
        // A branch that was merged by hand has nothing else.
        let is_merged = find_commit(top, branch).as_ref() == Some(&common);
        if !is_merged && count_lacking(top, &common, other).is_some_and(|some| some > 0) {
            return Some(branch.to_owned());
        }
    }
    None
}

/// The changes compared with HEAD, untracked files included; `None` outside a repository, or when
/// git took too long or printed too much.
pub fn look_at_tree(top: &Path) -> Option<Vec<FileChange>> {
    Git::here(top).look()
}

/// The files with an unresolved conflict.
fn unmerged_files(top: &Path) -> Vec<String> {
    // This reads only the index: no untracked file is examined, and no filter runs.
    let listed = run_git(top, &["ls-files", "--unmerged", "-z"]).unwrap_or_default();
    let paths = listed.split_terminator('\0').filter_map(|entry| Some(entry.split_once('\t')?.1));
    distinct_texts(paths.map(str::to_owned))
}

const NO_SUBMODULES: &str = "--ignore-submodules=dirty";

/// How many of these changed files are in no commit; `None` outside a repository, or when git took
/// too long or printed too much.
pub fn count_uncommitted(subject: &Loop, changes: &Changes) -> Option<u64> {
    let differing = Git::of(subject).look()?.into_iter().map(|change| change.path);
    let paths: BTreeSet<PathBuf> = differing.collect();
    let named = changes.files.iter().filter(|file| paths.contains(Path::new(&file.path))).count();
    // If many files changed, only the first are known by name. The rest count as uncommitted if all
    // of the first do.
    let (known, all) = (changes.files.len(), changes.file_count());
    if named == known && (known as u64 == all || paths.len() as u64 >= all) {
        return Some(all);
    }
    if known as u64 == all { Some(named as u64) } else { None }
}

/// How many ignored files changed since a loop started, by the top-level file or folder that they
/// are in. Also empty if git took too long or printed too much.
pub fn ignored_since(subject: &Loop) -> BTreeMap<String, u64> {
    let list = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard"];
    let listed = Git::of(subject).run_on_theirs(&list).unwrap_or_default();
    let began = i128::from(subject.started_at.timestamp_micros()) * 1000;
    let mut found = BTreeMap::new();
    for path in listed.split_terminator('\0') {
        let stamp = disk::stamp(&subject.place.checkout.join(path));
        if stamp.is_some_and(|(_, changed)| changed >= began) {
            let root = path.split_inclusive('/').next().unwrap_or(path).to_owned();
            *found.entry(root).or_insert(0) += 1;
        }
    }
    found
}

/// What differs from the commit at which a loop started, for a loop without snapshots. Changes from
/// before the start and after the end are included. `None` if it started without a commit.
pub fn changes_since(subject: &Loop) -> Option<Changes> {
    let start = subject.place.head.as_ref()?;
    let git = Git::of(subject);
    let form = ["diff", "--raw", "--numstat", "-z", "-M", "--no-ext-diff", "--no-textconv"];
    let tracked = git.run_on_theirs(&[&form[..], &[NO_SUBMODULES, start]].concat())?;
    let list = ["ls-files", "-z", "--others", "--exclude-standard"];
    let untracked = git.run_on_theirs(&list).unwrap_or_default();
    let created = untracked.split_terminator('\0').map(|path| ChangedFile {
        path: path.to_owned(),
        kind: ChangeKind::Created,
        lines: None,
        yours: false,
    });
    Some(tree_changes(tracked.as_bytes()).with_files(created))
}

/// The files with ignore rules for the whole tree: the user's, then the repository's.
pub fn exclude_files(subject: &Loop) -> Vec<PathBuf> {
    let git = Git::of(subject);
    let users = match git.line(&["config", "--type=path", "--get", "core.excludesFile"]) {
        Some(path) => Some(git.folder.join(path)),
        None => {
            env::find_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("git/ignore"))
        }
    };
    let own = git.line(&["rev-parse", "--git-path", "info/exclude"]);
    users.into_iter().chain(own.map(|path| git.folder.join(path))).collect()
}

/// `git status --porcelain`, for a prompt.
pub fn status_text(top: &Path) -> Option<String> {
    Git::here(top).run_on_theirs(&["status", "--porcelain", NO_SUBMODULES])
}

/// `git diff HEAD`, for a prompt.
pub fn diff_text(top: &Path) -> Option<String> {
    let plain = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", NO_SUBMODULES, "HEAD"];
    Git::here(top).run_on_theirs(&plain)
}

/// `git log --oneline -10`, for a prompt.
pub fn log_text(top: &Path) -> Option<String> {
    run_git(top, &["log", "--no-color", "--no-show-signature", "--oneline", "-10"])
}

/// One call of git. At the root of a working tree it never accepts a repository in a parent folder.
#[derive(Clone, Copy)]
struct Git<'a> {
    folder: &'a Path,
    /// Whether a repository in a parent folder is accepted.
    climbs: bool,
    /// The loop whose environment git gets; `None` for this process's environment.
    subject: Option<&'a Loop>,
    /// Settings for this call. They are passed in variables, because `-c` cannot pass a name that
    /// contains `=`.
    settings: &'a [Setting],
    /// The variables of this process that git does not get.
    without: &'a [OsString],
    variables: &'a [(&'a str, String)],
    /// The bytes for its standard input.
    input: &'a [u8],
    /// Whether it may reach a remote.
    online: bool,
    /// The longest time it may take; `None` for the usual limit of a query or a step.
    within: Option<Duration>,
    /// The condition that ends it early.
    stop: Option<Stop<'a>>,
}

impl<'a> Git<'a> {
    /// A call of git in a loop's checkout. Like the checks, it gets the environment the loop
    /// started with, because an agent may have set the environment of a hook.
    fn of(subject: &'a Loop) -> Self {
        Self { subject: Some(subject), ..Self::here(&subject.place.checkout) }
    }

    /// A call of git in any folder of a repository.
    fn climbing(folder: &'a Path) -> Self {
        Self { climbs: true, ..Self::here(folder) }
    }

    /// A call of git for a step in a partial clone, which may have to fetch missing files from the
    /// remote.
    fn lazily(folder: &'a Path) -> Self {
        Self { online: true, ..Self::here(folder) }
    }

    /// How many commits these arguments of `git rev-list` select.
    fn count_commits(self, commits: &[&str]) -> Option<u64> {
        self.line(&[&["rev-list", "--count"], commits].concat())?.parse().ok()
    }

    fn head(self) -> (Option<String>, Option<String>) {
        let both = ["rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD"];
        if let Some(lines) = self.line(&both)
            && let Some((commit, name)) = lines.split_once('\n')
        {
            let branch = name.strip_prefix("refs/heads/");
            return (branch.map(str::to_owned), Some(commit.to_owned()));
        }
        // Before the first commit, or where a branch or a tag has the name HEAD.
        let branch = self.line(&["symbolic-ref", "--quiet", "HEAD"]);
        let branch = branch.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned));
        (branch, self.commit("HEAD"))
    }

    /// The commit that a name denotes; if a branch and a tag have the same name, the branch's.
    fn commit(self, name: &str) -> Option<String> {
        if name.starts_with('-') {
            return None;
        }
        let is_full = name == "HEAD" || name.starts_with("refs/") || is_id(name);
        let kinds: &[&str] = if is_full { &[""] } else { &["refs/heads/", "refs/remotes/", ""] };
        for kind in kinds {
            let name = format!("{kind}{name}^{{commit}}");
            if let Some(id) = self.line(&["rev-parse", "--verify", "--quiet", &name]) {
                return Some(id);
            }
        }
        None
    }

    fn look(self) -> Option<Vec<FileChange>> {
        Some(parse_status(self.run_on_files(&STATUS)?.as_bytes()))
    }

    /// Runs a command that reads files of the working tree, with every content filter of the
    /// configuration disabled.
    fn run_on_files(self, arguments: &[&str]) -> Option<String> {
        let pattern = r"^filter\..*\.(clean|process|required)$";
        let names = self.run(&["config", "-z", "--name-only", "--get-regexp", pattern]);
        let mut emptied: Vec<Setting> = Vec::new();
        for name in names.unwrap_or_default().split_terminator('\0') {
            let value = if name.ends_with(".required") { "false" } else { "" };
            emptied.push((name.to_owned(), value.to_owned()));
        }
        Git { settings: &emptied, ..self }.run(arguments)
    }

    /// Like [`Self::run_on_files`], without the files that crew itself writes.
    fn run_on_theirs(self, arguments: &[&str]) -> Option<String> {
        let ours = format!(":(exclude,top){BRANCHES}");
        self.run_on_files(&[arguments, &["--", ".", &ours]].concat())
    }
}

/// Runs git with this process's environment.
fn run_git(folder: &Path, arguments: &[&str]) -> Option<String> {
    Git::here(folder).run(arguments)
}
