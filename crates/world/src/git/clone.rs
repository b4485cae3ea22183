//! Clones for the attempts and landings of fleets. Each has its own refs, stash, configuration and
//! hooks, and takes over the settings of the user's repository that commits and the remote need.
//! An attempt shares objects by hard link, also those of submodules and of git LFS, so neither side
//! can take objects from the other. A landing borrows them while it lasts: on another disk, each
//! would copy them all.

mod bring;
mod inside;
mod settings;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::bring::{bring_branch, give_commit, keep_strays};
use super::command::{FETCH, format_setting, is_disk_full};
use super::steps::repository_folder;
use super::{Git, find_commit, referred, remotes, shared_folder};
use crate::clock::Deadline;
use crate::files::disk::{self, Durability};
use crate::files::tree;
use crate::process::Stop;
use engine::git::{GitBaseline, GitFault, GitStep, GitTrouble};
use engine::text::words_of;
use readers::parse::git::zero_ended_names;

/// The longest time a clone may take.
const WITHIN: Duration = Duration::from_secs(30 * 60);
/// The maximum number of names in a folder of objects.
const OBJECTS_MAX: usize = 4_000_000;
/// How often objects are listed, if a repack keeps replacing some.
const OBJECTS_TRIES: u32 = 5;
/// The extensions of a pack's files.
const PACKED: &str = "pack idx rev promisor mtimes";
/// How many repositories may lend objects to each other.
const LENDERS_MAX: usize = 20;
/// The largest of git's small files that is read, in bytes.
const SMALL_BYTES: u64 = 16 << 20;
/// What a fetch from `origin` brings in a clone.
const ALL_HEADS: &str = "+refs/heads/*:refs/remotes/origin/*";
/// The push address of a clone, which git names when a push fails.
const NO_PUSH: &str = "/push-is-disabled/crew-pushes-this-branch-itself";

/// The branches of a clone, and the condition that ends the cloning early.
#[derive(Clone, Copy)]
pub struct CloneTerms<'a> {
    pub base: &'a str,
    pub branch: &'a str,
    /// The commit where the branch begins; `None` means the newest of the base, from the remote if
    /// there is one.
    pub start: Option<&'a str>,
    /// The condition that ends it early.
    pub stop: Stop<'a>,
}

/// A person's repository on this machine.
#[derive(Clone, Copy)]
pub struct CloneSource<'a> {
    pub checkout: &'a Path,
    /// The address of `origin` in the clone.
    pub url: Option<&'a str>,
    /// The settings that the user agreed to. Without them, no setting that names a program is
    /// copied.
    pub trusted: Option<&'a GitBaseline>,
}

/// Clones a person's repository into a new folder, with the branch checked out. Returns notes for
/// the user.
pub fn clone_local(
    source: &CloneSource<'_>,
    terms: &CloneTerms<'_>,
    to: &Path,
) -> Result<Vec<String>, GitFault> {
    let ends = Ends { deadline: Deadline::after(WITHIN), stop: terms.stop };
    let twin = Twin::at(to, false);
    let common = begin_clone(source, terms, &twin, ends)?;
    let own = repository_folder(source.checkout).unwrap_or_else(|| common.clone());
    twin.copy_file("info/sparse-checkout", &own.join("info/sparse-checkout"))?;
    twin.share_lfs(&own, ends)?;
    twin.check_out(ends)?;
    inside::fill_all(source.checkout, &common, twin, ends)
}

/// Replaces a clone's `.git`, so that no setting, hook, ref, index or lock of an earlier use
/// remains. The working files stay as they are. The clone borrows the objects of the user's
/// repository.
pub fn renew_clone(
    source: &CloneSource<'_>,
    terms: &CloneTerms<'_>,
    at: &Path,
) -> Result<(), GitFault> {
    let ends = Ends { deadline: Deadline::after(WITHIN), stop: terms.stop };
    let twin = Twin::at(at, true);
    twin.clear_place().map_err(clone_refused)?;
    begin_clone(source, terms, &twin, ends).map(drop)
}

/// Fills the submodules of a [renewed](renew_clone) clone, as its index records them. Returns notes
/// about those that stay empty.
pub fn fill_submodules(
    checkout: &Path,
    at: &Path,
    stop: Stop<'_>,
) -> Result<Vec<String>, GitFault> {
    let ends = Ends { deadline: Deadline::after(WITHIN), stop };
    let common = shared_folder(checkout).ok_or_else(|| is_lost(checkout))?;
    inside::fill_all(checkout, &common, Twin::at(at, true), ends)
}

/// Creates the clone's repository with its objects, settings and branches, but no working files.
/// Returns the folder that all working trees of the user's repository share.
fn begin_clone(
    source: &CloneSource<'_>,
    terms: &CloneTerms<'_>,
    twin: &Twin,
    ends: Ends<'_>,
) -> Result<PathBuf, GitFault> {
    let checkout = source.checkout;
    let common = shared_folder(checkout).ok_or_else(|| is_lost(checkout))?;
    let name = source.url.and_then(|url| remotes::remote_at(checkout, url, "origin"));
    let tracked = name.map(|name| format!("refs/remotes/{name}/{}", terms.base));
    let base = tracked.and_then(|tracked| find_commit(checkout, &tracked));
    let base = base.or_else(|| find_commit(checkout, &format!("refs/heads/{}", terms.base)));
    let Some(start) = terms.start.map(str::to_owned).or_else(|| base.clone()) else {
        let cause = format!("there is no branch {} here", terms.base);
        return Err(clone_fault(cause, "git branch --all lists them"));
    };
    let format = Git::here(checkout).line(&["rev-parse", "--show-object-format"]);
    Twin::init_repository(&twin.top, false, format)?;
    twin.share(&common, ends).map_err(clone_refused)?;
    twin.add_settings(&settings::taken_over(source, &twin.top))?;
    twin.point_to(terms, &start, base.as_deref(), source.url.is_some())?;
    if source.url.is_some() && terms.start.is_none() {
        // The local base may have commits that were never pushed, or that the remote has dropped.
        fetch_heads(&twin.top, terms.base, ends)?;
        twin.point_to_fetched(terms)?;
    }
    Ok(common)
}

fn is_lost(checkout: &Path) -> GitFault {
    clone_fault(format!("{} is not a repository", checkout.display()), "git status there")
}

/// Clones a remote into a new folder, with the branch checked out.
pub fn clone_remote(url: &str, terms: &CloneTerms<'_>, to: &Path) -> Result<(), GitFault> {
    let ends = Ends { deadline: Deadline::after(WITHIN), stop: terms.stop };
    to.parent().map_or(Ok(()), disk::make_folder).map_err(clone_refused)?;
    let (parent, there) = (to.parent().unwrap_or(to), to.display().to_string());
    let form = "clone --quiet --no-checkout --no-tags --no-local --template= --origin=origin";
    let single = ["--single-branch", "--branch", terms.base, "--", url, &there];
    let arguments: Vec<&str> = words_of(form).chain(single).collect();
    let variables = [("GIT_DEFAULT_REF_FORMAT", "files".to_owned())];
    let git = Git { variables: &variables, climbs: true, ..ends.git(parent) };
    git.well(GitStep::Worktree, &arguments)?;
    let twin = Twin::at(to, false);
    twin.well(&["config", "--replace-all", "remote.origin.fetch", ALL_HEADS])?;
    twin.add_settings(&format_setting("remote.origin.pushurl", NO_PUSH))?;
    // Other attempts have their work on these branches.
    let fleet: Vec<&str> = terms.branch.split('/').take(2).collect();
    let fleet = fleet.join("/");
    fetch_heads(to, &format!("{fleet}/*"), ends)?;
    twin.well(&["update-ref", "-d", &format!("refs/heads/{}", terms.base)])?;
    twin.point_to_fetched(terms)?;
    twin.check_out(ends)?;
    if disk::exists(&to.join(".gitmodules")) {
        let update = ["submodule", "--quiet", "update", "--init", "--recursive"];
        ends.git(to).well(GitStep::Worktree, &update)?;
    }
    Ok(())
}

/// Fetches the base from a clone's remote, as `refs/remotes/origin/<base>`.
pub fn fetch_base(clone: &Path, base: &str, stop: Stop<'_>) -> Result<(), GitFault> {
    let ends = Ends { deadline: Deadline::after(remotes::WITHIN), stop };
    fetch_heads(clone, base, ends)
}

/// Fetches the branches of this name, which may end with a star, from the remote.
fn fetch_heads(clone: &Path, name: &str, ends: Ends<'_>) -> Result<(), GitFault> {
    let refspec = format!("+refs/heads/{name}:refs/remotes/origin/{name}");
    // Objects that are missing in a clone cannot be fetched from it, so even a partial clone gets
    // all new files.
    let form = ["--no-filter", "--refmap=", "--", "origin", &*refspec];
    let arguments: Vec<&str> = words_of(FETCH).chain(form).collect();
    let fetched = ends.git(clone).step(&arguments);
    fetched.map(drop).map_err(|said| remotes::explain_failure("origin", &said))
}

/// The conditions that end a clone early.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    pub deadline: Deadline,
    pub stop: Stop<'a>,
}

impl<'a> Ends<'a> {
    /// A call of git that may run until the deadline, and fetches what a partial clone lacks.
    fn git(self, folder: &'a Path) -> Git<'a> {
        Git { within: Some(self.deadline.left()), stop: Some(self.stop), ..Git::lazily(folder) }
    }

    fn check(self) -> io::Result<()> {
        let is_over = self.deadline.passed() || (self.stop)();
        if is_over { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

/// A new repository.
struct Twin {
    /// Its git folder.
    folder: PathBuf,
    /// The root of its working tree.
    top: PathBuf,
    /// Whether it borrows its objects instead of having its own.
    borrows: bool,
}

impl Twin {
    fn at(top: &Path, borrows: bool) -> Self {
        Self { folder: top.join(".git"), top: top.to_owned(), borrows }
    }

    /// Removes the git folder, and anything but a folder in the place of the working tree.
    fn clear_place(&self) -> io::Result<()> {
        if !tree::is_folder(&self.top) {
            disk::remove(&self.top)?;
            disk::make_private_folder(&self.top)?;
        }
        if tree::is_folder(&self.folder) {
            return tree::remove_stubborn(&self.folder);
        }
        disk::remove(&self.folder)
    }

    /// Creates the repository. Its refs are files, whatever the user's settings say.
    fn init_repository(at: &Path, is_bare: bool, format: Option<String>) -> Result<(), GitFault> {
        let parent = at.parent().unwrap_or(at);
        disk::make_folder(parent).map_err(clone_refused)?;
        let there = at.display().to_string();
        let mut arguments = vec!["init", "--quiet", "--template="];
        if is_bare {
            arguments.push("--bare");
        }
        arguments.extend(["--", &there]);
        let variables = [
            ("GIT_DEFAULT_HASH", format.unwrap_or_else(|| "sha1".to_owned())),
            ("GIT_DEFAULT_REF_FORMAT", "files".to_owned()),
        ];
        let git = Git { variables: &variables, ..Git::climbing(parent) };
        git.well(GitStep::Worktree, &arguments).map(drop)
    }

    /// Adds the objects of a repository with the shared folder `common`, and its ignore rules.
    fn share(&self, common: &Path, ends: Ends<'_>) -> io::Result<()> {
        let (theirs, own) = (common.join("objects"), self.folder.join("objects"));
        if self.borrows {
            let line = format!("{}\n", theirs.display());
            disk::write(&own.join("info/alternates"), line.as_bytes(), Durability::Process)?;
        } else {
            share_objects(&theirs, &own, ends)?;
        }
        for name in ["shallow", "info/exclude", "info/attributes"] {
            let copied = self.copy_file(name, &common.join(name));
            copied.map_err(|fault| io::Error::other(fault.cause))?;
        }
        Ok(())
    }

    /// Copies a small file into the git folder, if it exists.
    fn copy_file(&self, name: &str, file: &Path) -> Result<(), GitFault> {
        let copied = disk::read(file, SMALL_BYTES).and_then(|text| {
            let Some(text) = text else { return Ok(()) };
            let target = self.folder.join(name);
            target.parent().map_or(Ok(()), disk::make_folder)?;
            disk::write(&target, &text, Durability::Process)
        });
        copied.map_err(clone_refused)
    }

    /// Adds to its configuration. Values may be secrets, so they are never passed as arguments.
    fn add_settings(&self, text: &str) -> Result<(), GitFault> {
        let file = self.folder.join("config");
        let before = disk::read_text(&file, SMALL_BYTES).map_err(clone_refused)?;
        let text = before.unwrap_or_default() + text;
        disk::write(&file, text.as_bytes(), Durability::Process).map_err(clone_refused)
    }

    /// Creates the clone's branch, and the local and tracking branches of the base, which an agent
    /// can compare with.
    fn point_to(
        &self,
        terms: &CloneTerms<'_>,
        start: &str,
        base: Option<&str>,
        has_remote: bool,
    ) -> Result<(), GitFault> {
        let own = format!("refs/heads/{}", terms.branch);
        self.well(&["update-ref", "--no-deref", &own, start])?;
        self.well(&["symbolic-ref", "HEAD", &own])?;
        let tracked = format!("refs/remotes/origin/{}", terms.base);
        let local = format!("refs/heads/{}", terms.base);
        self.well(&["update-ref", &local, base.unwrap_or(start)])?;
        if has_remote {
            self.well(&["update-ref", &tracked, base.unwrap_or(start)])?;
        }
        Ok(())
    }

    /// Creates the branches, with the base as it was fetched.
    fn point_to_fetched(&self, terms: &CloneTerms<'_>) -> Result<(), GitFault> {
        let base = find_commit(&self.top, &format!("refs/remotes/origin/{}", terms.base));
        let start = terms.start.or(base.as_deref()).ok_or_else(|| {
            clone_fault(format!("the remote has no branch {}", terms.base), "push it there")
        })?;
        self.point_to(terms, start, base.as_deref(), true)
    }

    /// Gives the clone the files of git LFS that its commit refers to, from the repository with the
    /// folder `theirs`, so that none is downloaded.
    fn share_lfs(&self, theirs: &Path, ends: Ends<'_>) -> Result<(), GitFault> {
        // The user's own settings may name one place for every repository.
        self.add_settings(&format_setting("lfs.storage", "lfs"))?;
        let store = referred::store_folder(theirs);
        if !disk::is_folder(&store) {
            return Ok(());
        }
        self.well(&["read-tree", "HEAD"])?;
        let list = ["--attr-source=HEAD", "ls-files", "-s", "-z", "--", ":(attr:filter=lfs)"];
        // A git before 2.43 cannot list them; git LFS then downloads what it lacks.
        let listed = ends.git(&self.top).printed(&list).unwrap_or_default();
        let entries = zero_ended_names(&listed);
        let ids: Vec<String> =
            entries.filter_map(|entry| entry.split(' ').nth(1).map(str::to_owned)).collect();
        let objects = ids.join("\n");
        let files =
            referred::read_pointers(Git::here(&self.top), objects.as_bytes()).unwrap_or_default();
        let own = self.folder.join("lfs");
        for file in &files {
            let Some(from) = referred::find_file(&store, file) else { continue };
            let to = referred::file_place(&own, &file.id);
            let made = to.parent().map_or(Ok(()), disk::make_folder);
            let shared = made.and_then(|()| tree::share_file(&from, &to, ends.deadline));
            shared.map_err(clone_refused)?;
        }
        Ok(())
    }

    /// Writes its working files.
    fn check_out(&self, ends: Ends<'_>) -> Result<(), GitFault> {
        let reset = ["reset", "--quiet", "--hard", "HEAD"];
        ends.git(&self.top).well(GitStep::Worktree, &reset).map(drop)
    }

    fn well(&self, arguments: &[&str]) -> Result<(), GitFault> {
        Git::here(&self.top).well(GitStep::Worktree, arguments).map(drop)
    }
}

/// A folder of objects, and those that it borrows from.
fn find_lenders(objects: &Path) -> Vec<PathBuf> {
    let mut found = vec![objects.to_owned()];
    let mut next = 0;
    while let Some(folder) = found.get(next).cloned() {
        next += 1;
        let listed = disk::read_text(&folder.join("info/alternates"), SMALL_BYTES).ok().flatten();
        for line in listed.unwrap_or_default().lines().filter(|line| !line.starts_with('#')) {
            let lender = folder.join(line);
            if !line.is_empty() && !found.contains(&lender) && found.len() < LENDERS_MAX {
                found.push(lender);
            }
        }
    }
    found
}

/// Links all objects of one folder, and of those it borrows from, into another. No file that can
/// change is linked. Returns their bytes.
pub(super) fn share_objects(from: &Path, to: &Path, ends: Ends<'_>) -> io::Result<u64> {
    let mut bytes = 0;
    for lender in find_lenders(from) {
        let mut tries_left = OBJECTS_TRIES;
        bytes += loop {
            tries_left -= 1;
            match share_objects_once(&lender, to, ends) {
                // A file that is gone has moved to a pack.
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries_left > 0 => {}
                shared => break shared?,
            }
        };
    }
    Ok(bytes)
}

fn share_objects_once(from: &Path, to: &Path, ends: Ends<'_>) -> io::Result<u64> {
    let mut bytes = 0;
    let mut folders = disk::list_names(from, OBJECTS_MAX)?;
    folders.retain(|name| name.len() == 2 && is_hex(name));
    // A repack writes a pack before it removes what the pack replaces, so packs come last.
    folders.push("pack".to_owned());
    for folder in folders {
        let (theirs, own) = (from.join(&folder), to.join(&folder));
        let mut names = disk::list_names(&theirs, OBJECTS_MAX)?;
        names.retain(|name| if folder == "pack" { is_of_pack(name) } else { is_hex(name) });
        if !names.is_empty() {
            disk::make_folder(&own)?;
        }
        for name in names {
            ends.check()?;
            let file = theirs.join(&name);
            // A hard link to a symbolic link would lead elsewhere.
            let file = if tree::kind(&file) == "link" { disk::real_path(&file)? } else { file };
            tree::share_file(&file, &own.join(&name), ends.deadline)?;
            bytes += disk::size(&file);
        }
    }
    Ok(bytes)
}

fn is_hex(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_of_pack(name: &str) -> bool {
    let kind = name.strip_prefix("pack-").and_then(|name| name.rsplit_once('.'));
    kind.is_some_and(|(_, kind)| words_of(PACKED).any(|known| known == kind))
}

fn clone_fault(cause: impl Into<String>, hint: &str) -> GitFault {
    GitFault::new(GitStep::Worktree, GitTrouble::Other, cause, hint)
}

fn clone_refused(error: impl Into<io::Error>) -> GitFault {
    let cause = error.into().to_string();
    let trouble = if is_disk_full(&cause) { GitTrouble::DiskFull } else { GitTrouble::Other };
    GitFault::new(GitStep::Worktree, trouble, cause, "try again")
}
