//! The steps in real repositories, each with its own remotes on this machine. Every setting that
//! git could take from the user's configuration is set in the repository, so that the user's does
//! not matter.

mod clone;
mod commit;
mod commits;
mod include;
mod push;
mod rebase;
mod refs;
mod snapshots;
mod underway;
mod worktree;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::commit::{Drafts, commit_changes};
use super::steps;
use super::steps::{Steps, read_trusted};
use super::sync::{push_branch, rebase_branch};
use crate::files::disk::{self, Durability};
use crate::process::{Call, ExitCause};
use engine::fixture::a_loop;
use engine::git::{GitBaseline, GitFault, Pushed, Rebased};
use engine::record::Place;

/// A folder with the repository `repo`, on the branch `main`, with one commit.
struct Yard {
    root: TempDir,
    checkout: PathBuf,
}

impl Yard {
    fn new() -> Self {
        let root = testkit::folder();
        let checkout = disk::real_path(root.path()).unwrap().join("repo");
        let yard = Self { root, checkout };
        yard.git(".", &["init", "-q", "-b", "main", "repo"]);
        yard.identify("repo");
        yard.write("repo/file", "one\n");
        yard.git("repo", &["add", "."]);
        yard.git("repo", &["commit", "-qm", "first"]);
        yard
    }

    /// Makes a bare repository and returns its address.
    fn remote(&self, name: &str) -> String {
        self.git(".", &["init", "-q", "--bare", "-b", "main", name]);
        format!("file://{}", self.path(name).display())
    }

    /// Like `new`, with the remote `origin`, which has the commit and is the upstream.
    fn with_origin() -> Self {
        let yard = Self::new();
        let address = yard.remote("origin.git");
        yard.git("repo", &["remote", "add", "origin", &address]);
        yard.git("repo", &["push", "-q", "-u", "origin", "main"]);
        yard
    }

    fn identify(&self, folder: &str) {
        self.git(folder, &["config", "user.name", "Somebody"]);
        self.git(folder, &["config", "user.email", "somebody@example.com"]);
    }

    fn path(&self, name: &str) -> PathBuf {
        disk::real_path(self.root.path()).unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        disk::make_folder(path.parent().unwrap()).unwrap();
        disk::write(&path, text.as_bytes(), Durability::Process).unwrap();
    }

    fn read(&self, name: &str) -> String {
        disk::read_text(&self.path(name), 1 << 20).unwrap().unwrap_or_default()
    }

    fn script(&self, name: &str, text: &str) {
        self.write(name, text);
        self.sh(".", &format!("chmod +x {name}"));
    }

    fn git(&self, folder: &str, arguments: &[&str]) -> String {
        start(&self.path(folder), "git", arguments)
    }

    fn sh(&self, folder: &str, line: &str) -> String {
        start(&self.path(folder), "sh", &["-c", line])
    }

    fn commit_file(&self, folder: &str, file: &str, text: &str) {
        self.write(&format!("{folder}/{file}"), text);
        self.git(folder, &["add", "--all"]);
        self.git(folder, &["commit", "-qm", &format!("change {file}")]);
    }

    fn trusted(&self) -> GitBaseline {
        read_trusted(&self.checkout).unwrap()
    }

    fn place(&self) -> Place {
        place_of(&self.checkout)
    }

    /// Commits every change.
    fn commit(&self, message: &str) -> Result<Option<String>, GitFault> {
        let kept = commit_changes(
            &Steps::new(&self.place(), &self.trusted(), &|| false),
            message,
            &Drafts::default(),
        );
        kept.map(|kept| kept.commit)
    }

    fn push(&self) -> Result<Pushed, GitFault> {
        let place = self.place();
        push_branch(
            &Steps::new(&place, &self.trusted(), &|| false),
            place.branch.as_deref(),
            None,
            false,
        )
        .map(|pushed| Pushed { commit: String::new(), ..pushed })
    }

    fn rebase(&self, onto: &str) -> Result<Rebased, GitFault> {
        let place = self.place();
        rebase_branch(
            &Steps::new(&place, &self.trusted(), &|| false),
            place.branch.as_deref(),
            onto,
            None,
        )
    }

    /// Branch, commit, state of every file, and the changes: everything that a step could alter.
    fn shape(&self) -> String {
        [
            "rev-parse --abbrev-ref HEAD",
            "rev-parse HEAD",
            "status --porcelain",
            "diff HEAD",
            "stash list",
        ]
        .map(|words| self.git("repo", &words.split(' ').collect::<Vec<_>>()))
        .join("--\n")
    }
}

/// The place of a loop that starts in this checkout now.
fn place_of(checkout: &Path) -> Place {
    let (branch, head) = super::read_head(checkout);
    let repository = steps::repository_folder(checkout);
    Place { checkout: checkout.to_owned(), branch, head, repository, ..a_loop().place }
}

/// Runs a program that must succeed, with no configuration except the repository's.
fn start(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let variables = [
        ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
        ("GIT_CONFIG_SYSTEM", "/dev/null".to_owned()),
        ("LC_ALL", "C".to_owned()),
    ];
    let call = Call::of(program, folder).args(arguments).envs(variables);
    let ended = call.within(std::time::Duration::from_secs(60)).run(|| false).unwrap();
    let output = ended.text();
    assert_eq!(ended.cause(), ExitCause::Exit(0), "{program} {arguments:?}: {output}");
    output
}
