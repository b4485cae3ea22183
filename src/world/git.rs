//! Runs git and gives its text. An agent that can write the checkout can write its configuration too, so
//! nothing that configuration names as a program is run: no file-system monitor, no hooks, no filters.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::home::hash;
use super::process::{End, FOR_PARSING, Order, run};
use super::{disk, env};
use crate::engine::handoff::Since;
use crate::engine::looped::Loop;
use crate::parse::git::{Status, status};

/// The longest a look at the working tree may take.
const LOOK: Duration = Duration::from_secs(20);
/// The most commits a page lists.
const COMMITS_MAX: &str = "-30";

/// Whether there is a git that runs.
pub fn answers(folder: &Path) -> bool {
    Git::here(folder).run(&["--version"]).is_some()
}

/// The working tree's root, with every link resolved; `None` outside git.
pub fn top(folder: &Path) -> Option<PathBuf> {
    let text = Git::here(folder).run(&["rev-parse", "--show-toplevel"])?;
    disk::real_path(Path::new(text.trim_end_matches('\n'))).ok()
}

/// The branch, `None` when detached, and the commit, `None` before the first one. No file of the working
/// tree is looked at, so a large or slow one takes no longer.
pub fn head(top: &Path) -> (Option<String>, Option<String>) {
    let git = Git::here(top);
    let line = |arguments: &[&str]| Some(git.run(arguments)?.trim_end().to_owned());
    let branch = line(&["symbolic-ref", "--quiet", "HEAD"]);
    let branch = branch.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned));
    (branch, line(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]))
}

/// What differs from the commit, every untracked file named; `None` outside git, or when it took too
/// long or printed too much.
fn look(git: Git<'_>) -> Option<Status> {
    let arguments =
        ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", NO_SUBMODULES];
    Some(status(&git.run_on_files(&arguments)?))
}

/// A submodule's own configuration would be obeyed inside it; its commit is seen all the same.
const NO_SUBMODULES: &str = "--ignore-submodules=dirty";

/// One hash for the state of a loop's working tree: the commit, each path that differs, its size and time.
pub fn fingerprint(subject: &Loop) -> Option<String> {
    use std::fmt::Write as _;
    let git = Git::of(subject);
    let status = look(git)?;
    let mut text = status.head.unwrap_or_default();
    for entry in &status.entries {
        let (size, time) = disk::stamp(&git.folder.join(&entry.path)).unwrap_or_default();
        let _ = write!(text, "\0{}\0{size} {time}", entry.line);
    }
    Some(hash(text.as_bytes()))
}

/// Commits and changes since a loop began; empty where it began without a commit.
pub fn since(subject: &Loop) -> Since {
    let Some(start) = &subject.place.head else { return Since::default() };
    let git = Git::of(subject);
    let range = format!("{start}..HEAD");
    let log = git.run(&["log", "--no-show-signature", "--format=%h %s", COMMITS_MAX, &range]);
    let stat = ["diff", "--stat=100", "--no-ext-diff", "--no-textconv", NO_SUBMODULES, start, "--"];
    let stat = git.run_on_files(&[&stat[..], &[".", OURS]].concat());
    Since {
        commits: log.unwrap_or_default().lines().map(str::to_owned).collect(),
        diffstat: stat.unwrap_or_default().trim_end().to_owned(),
        told: String::new(),
    }
}

const OURS: &str = ":(exclude,top).claude/branches";

/// Which git runs, and where.
#[derive(Debug, Clone, Copy)]
struct Git<'a> {
    folder: &'a Path,
    /// `None` is this process's own.
    search_path: Option<&'a str>,
}

impl<'a> Git<'a> {
    fn here(folder: &'a Path) -> Self {
        Self { folder, search_path: None }
    }

    /// By the `PATH` the loop began with, as its checks: a hook's may have been set by the agent.
    fn of(subject: &'a Loop) -> Self {
        let search_path = subject.state.owner.search_path.as_deref();
        Self { folder: &subject.place.checkout, search_path }
    }

    fn run(self, arguments: &[&str]) -> Option<String> {
        run_git(self, arguments, &[])
    }

    /// Runs a command that reads the files of the working tree: every content filter that the
    /// configuration names is emptied.
    fn run_on_files(self, arguments: &[&str]) -> Option<String> {
        let pattern = r"^filter\..*\.(clean|process|required)$";
        let names = self.run(&["config", "-z", "--name-only", "--get-regexp", pattern]);
        let names = names.unwrap_or_default();
        let names = names.split('\0').filter(|name| !name.is_empty());
        run_git(self, arguments, &names.collect::<Vec<_>>())
    }
}

/// Runs git with some of its settings emptied. They go by variables, because a name that holds a `=`
/// cannot go by `-c`.
fn run_git(git: Git<'_>, arguments: &[&str], emptied: &[&str]) -> Option<String> {
    let fixed = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager"];
    let arguments: Vec<&str> = fixed.iter().chain(arguments).copied().collect();
    let theirs = env::text("GIT_CONFIG_COUNT").and_then(|count| count.parse::<u16>().ok());
    let theirs = usize::from(theirs.unwrap_or(0));
    let mut settings = Vec::new();
    for (index, name) in (theirs..).zip(emptied) {
        let value = if name.ends_with(".required") { "false" } else { "" };
        settings.push((format!("GIT_CONFIG_KEY_{index}"), (*name).to_owned()));
        settings.push((format!("GIT_CONFIG_VALUE_{index}"), value.to_owned()));
    }
    let mut variables = vec![
        ("GIT_OPTIONAL_LOCKS", "0".to_owned()),
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
        // An object that is missing would be asked for by a program that the configuration names.
        ("GIT_NO_LAZY_FETCH", "1".to_owned()),
        ("GIT_ALLOW_PROTOCOL", "none".to_owned()),
        ("LC_ALL", "C".to_owned()),
        ("GIT_CONFIG_COUNT", (theirs + emptied.len()).to_string()),
    ];
    variables.extend(settings.iter().map(|(name, value)| (&**name, value.clone())));
    variables.extend(git.search_path.map(|path| ("PATH", path.to_owned())));
    let order = Order {
        program: "git",
        arguments: &arguments,
        folder: git.folder,
        variables: &variables,
        within: LOOK,
        keep: FOR_PARSING,
        with_errors: false,
    };
    let ended = run(&order, None, || false).ok()?;
    let whole = ended.end == End::Exit(0) && !ended.cut;
    whole.then(|| String::from_utf8_lossy(&ended.output).into_owned())
}
