//! The states of a working tree over time, in a private git dir under `$CREW_HOME`. It has its own
//! configuration, so nothing that an agent plants in the repository runs. It borrows no objects, so
//! it survives whatever happens to the repository, and it never writes to the user's repository.
//!
//! A snapshot is a tree, identified by its id: equal working trees are equal snapshots. A loop's
//! snapshots also have names, each a file with an id: `7` is the end of iteration 7, `7-agent` what
//! the agent left before checks and crew changed the tree, `0` the tree as found, `0-checked` the
//! tree after the first checks, `back-1` the tree before a return.

pub mod checkout;
mod fill;
pub mod protect;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::checkout::Restored;
pub use self::fill::{count_bytes, fill_git_dir, forget_unnamed, prune_snapshots};
use super::Git;
use super::command::{IndexPaths, WRITE_TREE};
use super::head::checked_out;
use crate::clock::Deadline;
use crate::files::disk::{self, Durability, Lock};
use crate::files::tree;
use crate::store::removal::LISTS;
use crate::store::{Home, hash};
use crate::{env, recorded_environment};
use engine::evidence::changes::Changes;
use engine::record::{Loop, LoopId};
use engine::test_changes::kind::ChangedPath;
use readers::parse::git::{
    FileChange, FileChangeKind, IndexEntry, STATUS, changes_white_space_alone, is_id,
    parse_ignored, parse_objects, parse_raw_diff, parse_status, tree_changes, zero_ended_names,
    zero_ended_paths, zero_list,
};

/// The size of the largest file in a snapshot, in bytes.
pub const FILE_BYTES: u64 = 50 << 20;
/// The longest wait for another process that is taking a snapshot.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The maximum number of changed paths in one snapshot, except the first of a repository.
const CHANGES_MAX: usize = 100_000;
/// The list of repositories inside, in the git dir, and the most bytes of it that are read.
const LINKS: &str = "crew.repositories";
const LINKS_BYTES: u64 = 1 << 20;
/// The largest file with one id, in bytes.
const ID_BYTES: u64 = 4096;

/// The private git dir of one checkout.
#[derive(Debug, Clone)]
pub struct Snapshots {
    folder: PathBuf,
    checkout: PathBuf,
    /// The environment of the loop, as its checks have it.
    variables: Vec<(String, String)>,
    without: Vec<OsString>,
    /// The deadline for all commands together; `None` gives each the usual limit of a query.
    deadline: Option<Deadline>,
}

/// Runs git on one index, with these arguments and this input; returns its output.
type OnIndex<'a> = dyn Fn(&[&str], &[u8]) -> Result<Vec<u8>, String> + 'a;

/// The state of a working tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The id of its tree.
    pub commit: String,
    /// Files and repositories that the snapshot leaves out.
    pub left_out: Vec<LeftOut>,
    /// The known repositories inside.
    pub repositories: Vec<PathBuf>,
}

/// A file or repository that a snapshot leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub path: PathBuf,
    pub is_repository: bool,
    /// A value that changes when its content seems to change.
    stamp: String,
}

impl Snapshot {
    /// An identity that is equal for equal working trees.
    pub fn identity(&self) -> String {
        let stamps: Vec<&str> = self.left_out.iter().map(|left| &*left.stamp).collect();
        match &stamps[..] {
            [] => self.commit.clone(),
            stamps => hash([&self.commit, "\0", &stamps.join("\0")].concat().as_bytes()),
        }
    }
}

impl Snapshots {
    /// The snapshots of a loop's working tree. Nothing is read or created yet.
    pub fn of(home: &Home, subject: &Loop) -> Self {
        let plan = recorded_environment::plan_environment(subject);
        let mut variables = plan.replaced;
        variables.retain(|(name, _)| !name.starts_with("GIT_"));
        let path = subject.state.owner().search_path.clone();
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

    /// Whether the private git dir exists.
    pub fn are_kept(&self) -> bool {
        self.last().is_some()
    }

    /// The last snapshot.
    fn last(&self) -> Option<String> {
        let id = disk::read_text(&self.folder.join("HEAD"), ID_BYTES).ok()??;
        let id = id.trim_end();
        if is_id(id) { Some(id.to_owned()) } else { None }
    }

    /// Locks the private git dir against other processes, and removes a lock that a killed git
    /// process left in it.
    fn hold(&self) -> Result<Lock, String> {
        let lock = disk::take_lock(&self.folder.with_extension("lock"), LOCK_WAIT);
        let lock = lock.map_err(|error| error.to_string())?;
        let lock = lock.ok_or("another crew process is taking a snapshot here")?;
        let _ = disk::remove(&self.folder.join("index.lock"));
        Ok(lock)
    }

    /// Takes a snapshot of the current state. If nothing changed since the last one, this starts
    /// only one process.
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

    /// Sorts changes into what a snapshot includes and what it leaves out.
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
                paths.add(path, true);
            } else if stamp.is_some_and(|(size, _)| size > FILE_BYTES) || !tree::is_readable(&file)
            {
                let stamp = format!("{} {stamp:?}", path.display());
                left_out.push(LeftOut { path, is_repository: false, stamp });
            } else {
                paths.add(path, false);
            }
        }
        (paths, left_out)
    }

    /// Writes the index as a tree, which becomes the last snapshot.
    fn commit(&self) -> Result<String, String> {
        let tree = parse_id(self.printed(WRITE_TREE, &[])?)?;
        write_file(&self.folder.join("HEAD"), &tree)?;
        Ok(tree)
    }

    /// Works on a separate index that starts with a snapshot.
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

    /// A new snapshot, made from another one by a command on the index.
    fn updated(&self, commit: &str, update: &[&str], input: &[u8]) -> Result<String, String> {
        self.on_own_index(commit, |run| {
            run(update, input)?;
            parse_id(run(WRITE_TREE, &[])?)
        })
    }

    /// The output of a git command on the checkout.
    fn printed(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
        self.printed_in(&self.checkout, arguments, input, None)
    }

    /// The output of a git command on snapshots alone; the checkout may be gone.
    fn stored(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        self.printed_in(&self.folder, arguments, &[], None)
    }

    /// The output of a git command with this folder as the working tree, and perhaps a separate
    /// index.
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
        let cause = ended.cause();
        ended.whole_output(&[0]).ok_or_else(|| format!("git {} failed ({cause})", arguments[0]))
    }
}

/// Variables of every command. The identity is part of a snapshot's id.
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

/// Replaces a file of a private git dir, and creates its folder if necessary.
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

/// The name of the tree as the checks before the first iteration left it.
pub const CHECKED: &str = "0-checked";
/// The name of the tree when a loop ended or was paused during an iteration.
pub const ENDED: &str = "ended";
/// The name of the tree as found, with changes that crew itself made.
pub const FOUND: &str = "found";
/// The maximum number of snapshots of one loop.
const NAMES_MAX: usize = 1_000_000;
const YOURS: &str = LISTS[0];
const IGNORED: &str = LISTS[1];
/// The largest such list, in bytes: a build may leave many thousand ignored files.
const LIST_BYTES: u64 = 16 << 20;

impl Snapshots {
    fn names(&self, id: &LoopId) -> PathBuf {
        self.folder.join("refs/crew").join(id.as_str())
    }

    /// Gives a loop's snapshot a name.
    pub fn name(&self, id: &LoopId, name: &str, commit: &str) -> Result<(), String> {
        write_file(&self.names(id).join(name), commit)
    }

    /// The loop's snapshot of that name.
    pub fn named(&self, id: &LoopId, name: &str) -> Option<String> {
        let text = disk::read_text(&self.names(id).join(name), ID_BYTES).ok()??;
        Some(text.trim_end().to_owned()).filter(|commit| is_id(commit))
    }

    /// Names the end of an iteration. The snapshot that had this name before is kept as the agent's
    /// own state.
    pub fn end(&self, id: &LoopId, iteration: u32, commit: &str) -> Result<(), String> {
        let agents = format!("{iteration}-agent");
        match self.named(id, &iteration.to_string()) {
            Some(before) if before == commit => return Ok(()),
            Some(before) if self.named(id, &agents).is_none() => self.name(id, &agents, &before)?,
            _ => {}
        }
        self.name(id, &iteration.to_string(), commit)
    }

    /// The state at the end of an iteration or the nearest earlier one, with that iteration's
    /// number. 0 is the tree as the loop found it.
    pub fn at_the_end_of(&self, id: &LoopId, iteration: u32) -> Option<(u32, String)> {
        let names = disk::names(&self.names(id), NAMES_MAX);
        let ends = names.iter().filter_map(|name| name.parse().ok());
        let newest = ends.filter(|end| *end <= iteration).max()?;
        Some((newest, self.named(id, &newest.to_string())?))
    }

    /// Removes the name [`ENDED`]. If this fails, the page shows the state of an earlier end.
    pub fn reopen(&self, id: &LoopId) {
        let _ = disk::remove(&self.names(id).join(ENDED));
    }

    /// The last known state of a loop: where it was interrupted, if it `is_at_rest`, else its last
    /// boundary.
    pub fn final_state(&self, id: &LoopId, is_at_rest: bool) -> Option<String> {
        if is_at_rest && let Some(ended) = self.named(id, ENDED) {
            return Some(ended);
        }
        Some(self.at_the_end_of(id, u32::MAX)?.1)
    }

    /// The states before and after the agent's work in an iteration; `None` if they are not known.
    pub fn of_iteration(&self, id: &LoopId, iteration: u32) -> Option<(String, String)> {
        let (newest, end) = self.at_the_end_of(id, iteration.checked_sub(1)?)?;
        let checked = if newest == 0 { self.named(id, CHECKED) } else { None };
        let from = checked.unwrap_or(end);
        let agents = self.named(id, &format!("{iteration}-agent"));
        let to = agents.or_else(|| Some(self.at_the_end_of(id, iteration)?.1))?;
        Some((from, to))
    }

    /// The tree as the loop found it, with later changes by crew or a person before the first
    /// iteration.
    pub fn as_found(&self, id: &LoopId) -> Option<String> {
        [FOUND, CHECKED, "0"].into_iter().find_map(|name| self.named(id, name))
    }

    /// What changed from one snapshot to another.
    pub fn compare(&self, from: &str, to: &str) -> Result<Changes, String> {
        let arguments = ["diff-tree", "-r", "-M", "--raw", "--numstat", "-z", from, to];
        Ok(tree_changes(&self.stored(&arguments)?))
    }

    /// As [`Self::compare`], and also whether only white space differs. A patch that is too large
    /// to read counts as other changes.
    pub fn compare_closely(&self, from: &str, to: &str) -> Result<Changes, String> {
        let plain = ["--no-ext-diff", "--no-textconv", "-p", "-U1000000"];
        let form = ["diff-tree", "-r", "-M", "--raw", "--numstat", "-z"];
        let arguments = [&form[..], &plain, &[from, to]].concat();
        let Ok(printed) = self.stored(&arguments) else { return self.compare(from, to) };
        let patch =
            printed.windows(2).position(|two| two == b"\0\0").map_or(printed.len(), |at| at + 2);
        let mut changes = tree_changes(&printed[..patch]);
        let is_plain = changes.modified > 0 && changes.file_count() == changes.modified;
        changes.white_space = is_plain && changes_white_space_alone(&printed[patch..]);
        Ok(changes)
    }

    /// The difference as a patch, or with `stat` as a summary of so many columns.
    pub fn text(&self, from: &str, to: &str, stat: Option<u16>) -> Result<String, String> {
        let shown = match stat {
            Some(columns) => format!("--stat={columns}"),
            None => "--patch".to_owned(),
        };
        let plain = ["--no-ext-diff", "--no-textconv", "--color=never"];
        let arguments = [&["diff-tree", "-r", "-M"], &plain[..], &[&shown, from, to]].concat();
        Ok(String::from_utf8_lossy(&self.stored(&arguments)?).into_owned())
    }

    /// Records which paths were changed before the loop began, and which were ignored.
    pub fn keep_beginning(&self, id: &LoopId, yours: &[String]) -> Result<(), String> {
        self.keep_list(id, YOURS, yours)?;
        self.keep_list(id, IGNORED, &self.all_ignored()?)
    }

    fn keep_list(&self, id: &LoopId, list: &str, paths: &[String]) -> Result<(), String> {
        write_file(&self.folder.join(list).join(id.as_str()), &paths.join("\0"))
    }

    /// Which paths were changed before the loop began.
    pub fn yours(&self, id: &LoopId) -> Vec<String> {
        self.list(id, YOURS).unwrap_or_default()
    }

    /// What was ignored when the loop began: files, and whole folders, which end with a slash.
    pub fn ignored_at_the_start(&self, id: &LoopId) -> BTreeSet<String> {
        self.list(id, IGNORED).unwrap_or_default().into_iter().collect()
    }

    fn list(&self, id: &LoopId, list: &str) -> Option<Vec<String>> {
        let file = self.folder.join(list).join(id.as_str());
        let text = disk::read_text(&file, LIST_BYTES).ok()??;
        let paths = text.trim_end_matches('\n').split('\0').filter(|path| !path.is_empty());
        Some(paths.map(str::to_owned).collect())
    }

    /// The files that `now` has and `found` does not, and that were ignored when the loop began.
    /// Removing their ignore rule adds nothing new. New files in a folder that was ignored as a
    /// whole count too.
    pub fn revealed(
        &self,
        id: &LoopId,
        found: &str,
        now: &str,
    ) -> Result<BTreeSet<String>, String> {
        let ignored = self.list(id, IGNORED).ok_or("what was ignored at the start is not known")?;
        let ignored: BTreeSet<&Path> = ignored.iter().map(Path::new).collect();
        let mut changed = self.changed(found, now)?;
        changed.retain(|changed| {
            changed.is_new
                && Path::new(&changed.path).ancestors().any(|path| ignored.contains(path))
        });
        Ok(changed.into_iter().map(|changed| changed.path).collect())
    }
}

/// The largest file that is read, in bytes.
const TEXT_BYTES: usize = 1 << 20;
/// How many files are read by one process.
const TEXTS_AT_ONCE: usize = 100;
/// A git pattern that matches no path. If all patterns begin with an ignored folder, git 2.47 dies
/// of "directory entry not superset of prefix".
const NO_PLACE: &str = ":(glob)[/]";

impl Snapshots {
    /// Every path that differs between two snapshots; a renamed file counts as two.
    pub fn paths(&self, from: &str, to: &str) -> Result<Vec<String>, String> {
        Ok(self.changed(from, to)?.into_iter().map(|changed| changed.path).collect())
    }

    /// Every path that differs between two snapshots, with its kind: whether it is new, a program
    /// or a link.
    pub fn changed(&self, from: &str, to: &str) -> Result<Vec<ChangedPath>, String> {
        let entries = self.differing(from, to)?;
        let changed = entries.iter().map(|entry| ChangedPath {
            path: String::from_utf8_lossy(&entry.path).into_owned(),
            is_new: entry.is_new(),
            is_executable: entry.has_mode(b"100755"),
            is_link: entry.has_mode(b"120000"),
        });
        Ok(changed.collect())
    }

    pub(super) fn differing(&self, from: &str, to: &str) -> Result<Vec<IndexEntry>, String> {
        let form = ["diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", from, to];
        Ok(parse_raw_diff(&self.printed(&form, &[])?))
    }

    /// The mode and path of everything in a snapshot.
    pub fn entries(&self, commit: &str) -> Result<Vec<(String, String)>, String> {
        let listed = self.printed(&["ls-tree", "-r", "-z", "--full-tree", commit], &[])?;
        let entries = zero_ended_names(&listed).filter_map(|entry| {
            let (about, path) = entry.split_once('\t')?;
            Some((about.split(' ').next()?.to_owned(), path.to_owned()))
        });
        Ok(entries.collect())
    }

    /// The files at these places, patterns of git, that ignore rules keep out of every snapshot. A
    /// folder that is ignored as a whole ends with a slash and stands for its contents.
    pub fn ignored(&self, places: &[String]) -> Result<Vec<String>, String> {
        let list = ["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory", "--"];
        let places = places.iter().map(String::as_str).chain([NO_PLACE]);
        let listed = self.printed(&list.into_iter().chain(places).collect::<Vec<_>>(), &[])?;
        Ok(zero_ended_names(&listed).collect())
    }

    /// Whether ignore rules keep a file out of every snapshot, even inside a folder that is ignored
    /// as a whole.
    pub fn ignores(&self, file: &str) -> Result<bool, String> {
        let literal = format!(":(top,literal){file}");
        let list = ["ls-files", "-z", "-o", "-i", "--exclude-standard", "--", &literal, NO_PLACE];
        Ok(zero_ended_names(&self.printed(&list, &[])?).any(|path| path == file))
    }

    /// All files and whole folders that ignore rules keep out of every snapshot. A folder that
    /// merely contains ignored files does not count; `ls-files --directory` would list it.
    pub(super) fn all_ignored(&self) -> Result<Vec<String>, String> {
        // Another process may be taking a snapshot, so the index must not be written.
        let list = [&["--no-optional-locks"], &STATUS[..], &["--ignored=matching"]].concat();
        let listed = self.printed(&list, &[])?;
        let paths = parse_ignored(&listed).into_iter();
        Ok(paths.map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// A snapshot with the current content of these files, ignored or not.
    pub fn with_present(&self, commit: &str, files: &[String]) -> Result<String, String> {
        if files.is_empty() {
            return Ok(commit.to_owned());
        }
        for file in files {
            if disk::size(&self.checkout.join(file)) > FILE_BYTES {
                return Err(format!("{file} is too large"));
            }
        }
        let update = ["update-index", "--add", "--replace", "-z", "--stdin"];
        self.updated(commit, &update, &zero_list(files))
    }

    /// The contents of files in a snapshot, one for each path, read many at a time. They are empty
    /// for a file that is missing, large or not text. Links are not followed.
    pub fn texts(&self, commit: &str, paths: &[&str]) -> Vec<String> {
        let mut texts = Vec::new();
        for paths in paths.chunks(TEXTS_AT_ONCE) {
            let read = self.read(commit, paths, &[]).unwrap_or_else(|_| {
                // Together they were too large, or a name contains a line break.
                paths.iter().map(|path| self.one_text(commit, path)).collect()
            });
            texts.extend(read.into_iter().map(Option::unwrap_or_default));
        }
        texts
    }

    /// The text of one file, whatever its name.
    fn one_text(&self, commit: &str, path: &str) -> Option<String> {
        let printed = self.printed(&["cat-file", "blob", &format!("{commit}:{path}")], &[]).ok()?;
        String::from_utf8(printed).ok().filter(|text| text.len() <= TEXT_BYTES)
    }

    /// The text of a file in a snapshot; a link within the tree is followed. `None` if the file is
    /// missing, large or not text.
    pub fn file(&self, commit: &str, path: &str) -> Result<Option<String>, String> {
        Ok(self.read(commit, &[path], &["--follow-symlinks"])?.pop().flatten())
    }

    fn read(
        &self,
        commit: &str,
        paths: &[&str],
        how: &[&str],
    ) -> Result<Vec<Option<String>>, String> {
        let named: Vec<String> = paths.iter().map(|path| format!("{commit}:{path}\n")).collect();
        let arguments = [&["cat-file", "--batch"], how].concat();
        let printed = self.printed(&arguments, named.concat().as_bytes())?;
        let objects = parse_objects(&printed);
        if objects.len() != paths.len() {
            return Err("git printed other files".to_owned());
        }
        let texts = objects.into_iter().map(|object| match object? {
            (kind, content) if kind == "blob" && content.len() <= TEXT_BYTES => {
                str::from_utf8(content).ok().map(str::to_owned)
            }
            _ => None,
        });
        Ok(texts.collect())
    }
}
