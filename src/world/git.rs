//! Runs git and gives its text. An agent that can write the checkout can write its configuration too, so
//! nothing that configuration names as a program is run: no file-system monitor, no hooks, no filters.

use std::path::Path;
use std::time::Duration;

use super::disk;
use super::home::hash;
use super::process::{End, FOR_PARSING, Order, run};
use crate::engine::handoff::Since;
use crate::parse::git::{Status, status};

/// The longest a look at the working tree may take.
const LOOK: Duration = Duration::from_secs(20);
/// The most commits a page lists.
const COMMITS_MAX: &str = "-30";

/// The working tree's root, with every link resolved; `None` outside git.
pub fn top(folder: &Path) -> Option<std::path::PathBuf> {
    let text = git(folder, &["rev-parse", "--show-toplevel"])?;
    disk::real_path(Path::new(text.trim_end_matches('\n'))).ok()
}

/// What differs from the commit, every untracked file named; `None` outside git, or when it took too
/// long or printed too much.
pub fn look(top: &Path) -> Option<Status> {
    let filters = filters(top);
    let mut arguments: Vec<&str> = Vec::new();
    for setting in &filters {
        arguments.extend(["-c", setting]);
    }
    arguments.extend(["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"]);
    // A submodule's own configuration would be obeyed inside it; its commit is seen all the same.
    arguments.push("--ignore-submodules=dirty");
    Some(status(&git(top, &arguments)?))
}

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
    let stat = ["diff", "--stat=100", "--no-ext-diff", "--no-textconv", start, "--", ".", OURS];
    let stat = git(top, &stat);
    Since {
        commits: log.unwrap_or_default().lines().map(str::to_owned).collect(),
        diffstat: stat.unwrap_or_default().trim_end().to_owned(),
        told: String::new(),
    }
}

const OURS: &str = ":(exclude,top).claude/branches";

/// Settings that empty every content filter the configuration names.
fn filters(top: &Path) -> Vec<String> {
    let pattern = r"^filter\..*\.(clean|process|required)$";
    let names = git(top, &["config", "-z", "--name-only", "--get-regexp", pattern]);
    let names = names.unwrap_or_default();
    names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(|name| {
            let value = if name.ends_with(".required") { "false" } else { "" };
            format!("{name}={value}")
        })
        .collect()
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let fixed = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager"];
    let arguments: Vec<&str> = fixed.iter().chain(arguments).copied().collect();
    let variables = [
        ("GIT_OPTIONAL_LOCKS", "0".to_owned()),
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
        ("LC_ALL", "C".to_owned()),
    ];
    let order = Order {
        program: "git",
        arguments: &arguments,
        folder,
        variables: &variables,
        within: LOOK,
        keep: FOR_PARSING,
        with_errors: false,
    };
    let ended = run(&order, None, || false).ok()?;
    let whole = ended.end == End::Exit(0) && !ended.cut;
    whole.then(|| String::from_utf8_lossy(&ended.output).into_owned())
}
