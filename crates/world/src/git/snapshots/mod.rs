//! The states of a working tree over time, in a private git dir under `$CREW_HOME`. It has its own
//! configuration, so nothing that an agent plants in the repository runs; it borrows no object, so
//! it outlives whatever happens there; and it never writes to the repository of the user.
//!
//! A snapshot is a tree, named by its id: equal working trees are equal snapshots.

pub mod checkout;
mod fill;
pub mod history;
pub mod protect;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::checkout::Restored;
pub use self::fill::prune_snapshots;
use super::Git;
use super::command::{IndexPaths, WRITE_TREE, whole_output};
use super::head::checked_out;
use crate::clock::Deadline;
use crate::files::disk::{self, Durability, Lock};
use crate::files::tree;
use crate::store::{Home, hash};
use crate::{env, recorded_environment};
use engine::record::Loop;
use readers::parse::git::{
    FileChange, FileChangeKind, STATUS, is_id, parse_status, zero_ended_paths,
};

/// The largest file that a snapshot holds, in bytes.
pub const FILE_BYTES: u64 = 50 << 20;
/// The longest that one snapshot waits for another process's.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The most paths that one snapshot takes, except the first of a repository.
const CHANGES_MAX: usize = 100_000;
/// The list of the repositories inside, in the git dir, and the most bytes that are read of it.
const LINKS: &str = "crew.repositories";
const LINKS_BYTES: u64 = 1 << 20;
/// The most bytes of a file that holds one id.
const ID_BYTES: u64 = 4096;

/// The private git dir of one checkout.
#[derive(Debug, Clone)]
pub struct Snapshots {
    folder: PathBuf,
    checkout: PathBuf,
    /// The environment of the loop, as its checks get it.
    variables: Vec<(String, String)>,
    without: Vec<OsString>,
    /// When all commands together have to be done; `None` gives each the time of a look.
    deadline: Option<Deadline>,
}

/// Runs git on one index: arguments, input, what it printed.
type OnIndex<'a> = dyn Fn(&[&str], &[u8]) -> Result<Vec<u8>, String> + 'a;

/// The state of a working tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The commit that holds it.
    pub commit: String,
    /// What differs from the commit and is not in it.
    pub left_out: Vec<LeftOut>,
    /// The repositories inside that it knows of.
    pub repositories: Vec<PathBuf>,
}

/// A file or a repository that a snapshot leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub path: PathBuf,
    pub is_repository: bool,
    /// Changes when its content seems to.
    stamp: String,
}

impl Snapshot {
    /// What is equal for equal trees.
    pub fn identity(&self) -> String {
        let stamps: Vec<&str> = self.left_out.iter().map(|left| &*left.stamp).collect();
        match &stamps[..] {
            [] => self.commit.clone(),
            stamps => hash([&self.commit, "\0", &stamps.join("\0")].concat().as_bytes()),
        }
    }
}

impl Snapshots {
    /// The snapshots of the working tree of a loop. Nothing is read or made yet.
    pub fn of(home: &Home, subject: &Loop) -> Self {
        let plan = recorded_environment::plan_environment(subject);
        let mut variables = plan.replaced;
        variables.retain(|(name, _)| !name.starts_with("GIT_"));
        let path = subject.state.owner.search_path.clone();
        variables.extend(path.map(|path| ("PATH".to_owned(), path)));
        let theirs =
            env::all_variables().into_keys().filter(|name| name.as_bytes().starts_with(b"GIT_"));
        let checkout = subject.place.checkout.clone();
        Self {
            folder: home.tree_folder(&checkout),
            checkout,
            variables,
            without: plan.dropped.into_iter().chain(theirs).collect(),
            deadline: None,
        }
    }

    /// Whether there is a private git dir.
    pub fn are_kept(&self) -> bool {
        self.last().is_some()
    }

    /// The commit that was taken last.
    fn last(&self) -> Option<String> {
        let id = disk::read_text(&self.folder.join("HEAD"), ID_BYTES).ok()??;
        let id = id.trim_end();
        if is_id(id) { Some(id.to_owned()) } else { None }
    }

    /// Holds the private git dir against other processes, and removes a lock that a killed git left
    /// in it.
    fn hold(&self) -> Result<Lock, String> {
        let lock = disk::take_lock(&self.folder.with_extension("lock"), LOCK_WAIT);
        let lock = lock.map_err(|error| error.to_string())?;
        let lock = lock.ok_or("another crew is taking a snapshot here")?;
        let _ = disk::remove(&self.folder.join("index.lock"));
        Ok(lock)
    }

    /// The present state: one process if nothing changed since the last snapshot.
    pub fn take(&self) -> Result<Snapshot, String> {
        let _lock = self.hold()?;
        self.taken()
    }

    fn taken(&self) -> Result<Snapshot, String> {
        let last = self.last().ok_or("the private git dir is missing")?;
        let printed = self.printed(&STATUS, &[])?;
        let changes = parse_status(&printed);
        let is_limited = self.deadline.is_none() || !disk::exists(&self.checkout.join(".git"));
        if is_limited && changes.len() > CHANGES_MAX {
            return Err("there are more files than crew reads".to_owned());
        }
        let (paths, left_out) = self.sort_changes(changes);
        let mut repositories = self.links();
        let beside = left_out.iter().filter(|left| left.is_repository);
        repositories.extend(beside.map(|left| left.path.clone()));
        if paths.are_none() {
            return Ok(Snapshot { commit: last, left_out, repositories });
        }
        paths.update(|arguments, input| self.printed(arguments, input))?;
        Ok(Snapshot { commit: self.commit()?, left_out, repositories })
    }

    /// The repositories that the user's index named when this git dir was filled.
    fn links(&self) -> Vec<PathBuf> {
        let listed = disk::read(&self.folder.join(LINKS), LINKS_BYTES).ok().flatten();
        zero_ended_paths(&listed.unwrap_or_default()).map(Path::to_owned).collect()
    }

    /// What a snapshot takes, and what it leaves out.
    fn sort_changes(&self, changes: Vec<FileChange>) -> (IndexPaths, Vec<LeftOut>) {
        let (mut paths, mut left_out) = (IndexPaths::default(), Vec::new());
        for FileChange { path, kind, .. } in changes {
            let file = self.checkout.join(&path);
            let stamp = disk::stamp(&file);
            if matches!(kind, FileChangeKind::Repository | FileChangeKind::Added) {
                let commit = checked_out(&file).and_then(|head| head.commit);
                let stamp = format!("{} {commit:?}", path.display());
                left_out.push(LeftOut { path, is_repository: true, stamp });
            } else if kind == FileChangeKind::Gone || stamp.is_none() {
                paths.gone.push(path);
            } else if stamp.is_some_and(|(size, _)| size > FILE_BYTES) || !tree::is_readable(&file)
            {
                let stamp = format!("{} {stamp:?}", path.display());
                left_out.push(LeftOut { path, is_repository: false, stamp });
            } else {
                paths.there.push(path);
            }
        }
        (paths, left_out)
    }

    /// Makes a commit of the index, the last one.
    fn commit(&self) -> Result<String, String> {
        let tree = parse_id(self.printed(WRITE_TREE, &[])?)?;
        write_file(&self.folder.join("HEAD"), &tree)?;
        Ok(tree)
    }

    /// Works on an index of its own that begins with a snapshot.
    fn on_own_index<T>(
        &self,
        commit: &str,
        work: impl FnOnce(&OnIndex<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let index = self.folder.join(format!("index.{}", std::process::id()));
        let run = |arguments: &[&str], input: &[u8]| {
            self.printed_in(&self.checkout, arguments, input, Some(&index))
        };
        let result = run(&["read-tree", commit], &[]).and_then(|_| work(&run));
        let _ = disk::remove(&index);
        result
    }

    /// A snapshot that differs from another one by a command on the index.
    fn updated(&self, commit: &str, update: &[&str], input: &[u8]) -> Result<String, String> {
        self.on_own_index(commit, |run| {
            run(update, input)?;
            parse_id(run(WRITE_TREE, &[])?)
        })
    }

    /// What git prints about the checkout.
    fn printed(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
        self.printed_in(&self.checkout, arguments, input, None)
    }

    /// What git prints about snapshots alone, also where the checkout is gone.
    fn stored(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        self.printed_in(&self.folder, arguments, &[], None)
    }

    /// The same with a folder as the working tree, and an index of its own.
    fn printed_in(
        &self,
        folder: &Path,
        arguments: &[&str],
        input: &[u8],
        index: Option<&Path>,
    ) -> Result<Vec<u8>, String> {
        let mut variables: Vec<(&str, String)> =
            self.variables.iter().map(|(name, value)| (&**name, value.clone())).collect();
        let here = self.folder.display().to_string();
        variables.extend(FIXED.map(|(name, value)| (name, value.to_owned())));
        variables.extend(["GIT_DIR", "HOME", "XDG_CONFIG_HOME"].map(|name| (name, here.clone())));
        variables.extend(index.map(|index| ("GIT_INDEX_FILE", index.display().to_string())));
        let git = Git {
            without: &self.without,
            variables: &variables,
            input,
            within: self.deadline.map(Deadline::left),
            ..Git::climbing(folder)
        };
        let ended = git.start(arguments);
        let ended = ended.map_err(|error| format!("git cannot be started: {error}"))?;
        let cause = ended.cause;
        whole_output(ended).ok_or_else(|| format!("git {} failed ({cause})", arguments[0]))
    }
}

/// What is the same for every command. The identity is part of a snapshot's id.
const FIXED: [(&str, &str); 11] = [
    ("GIT_OPTIONAL_LOCKS", "1"),
    ("GIT_WORK_TREE", "."),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_AUTHOR_NAME", "crew"),
    ("GIT_AUTHOR_EMAIL", "crew"),
    ("GIT_AUTHOR_DATE", "@0 +0000"),
    ("GIT_COMMITTER_NAME", "crew"),
    ("GIT_COMMITTER_EMAIL", "crew"),
    ("GIT_COMMITTER_DATE", "@0 +0000"),
];

/// The id that git printed.
fn parse_id(printed: Vec<u8>) -> Result<String, String> {
    let id = String::from_utf8(printed).unwrap_or_default().trim_end().to_owned();
    if is_id(&id) { Ok(id) } else { Err("git printed no id".to_owned()) }
}

/// Replaces a file of a private git dir, in a folder that is made if necessary.
fn write_file(file: &Path, text: &str) -> Result<(), String> {
    make_folder(file.parent().unwrap_or(file))?;
    disk::write(file, format!("{text}\n").as_bytes(), Durability::Remade)
        .map_err(|error| error.to_string())
}

fn make_folder(folder: &Path) -> Result<(), String> {
    disk::make_private_folder(folder).map_err(|error| error.to_string())
}

fn remove_folder(folder: &Path) -> Result<(), String> {
    tree::remove_folder(folder).map_err(|error| error.to_string())
}
