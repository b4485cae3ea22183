//! Files of git LFS: a commit has pointers to them, and each repository a store. git does not push
//! them with a commit, and its clones lack them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use shell_words::quote;

use super::Git;
use super::head::{common, folder};
use crate::engine::git::{GitFault, GitStep, GitTrouble};
use crate::engine::text::count;
use crate::parse::git_push::lfs_pointers;
use crate::world::files::disk;

/// The longest that git LFS may take to send its files.
pub(super) const LFS_WITHIN: Duration = Duration::from_secs(600);
/// The most that is read of `.gitattributes`, in bytes.
const ATTRIBUTES_BYTES: u64 = 1 << 20;
/// Every object that is small enough for a pointer, which has at most 1,024 bytes.
const SMALL: &str = "--filter=combine:blob:limit=1025+object:type=blob";
/// The most files that one git-lfs gets as arguments.
const AT_ONCE: usize = 500;

/// A push of such files.
pub(super) struct LfsPush<'a> {
    /// A git that may talk to the remote.
    pub git: Git<'a>,
    /// The name of the remote there, and its address.
    pub remote: &'a str,
    pub address: &'a str,
    /// The working trees whose repositories may have the files.
    pub places: &'a [&'a Path],
    /// The branch whose files are sent. Without one they are sent by their ids.
    pub branch: Option<&'a str>,
}

impl LfsPush<'_> {
    /// Sends the files that these commits add, words of `git rev-list`, unless a remote on this
    /// machine has them.
    ///
    /// # Errors
    /// [`GitTrouble::Incomplete`] if they are not all at the remote, or that cannot be known.
    pub fn send(&self, commits: &[&str]) -> Result<(), GitFault> {
        if !self.places.iter().any(|place| uses_lfs(place)) {
            return Ok(());
        }
        let form = ["rev-list", "--objects", "--no-object-names", SMALL];
        let objects = self.git.printed(&[&form[..], commits].concat());
        let files = objects.and_then(|objects| pointers(self.git, &objects)).ok_or_else(|| {
            let cause = "git does not list the files of git LFS of this branch".to_owned();
            GitFault::new(
                GitStep::Push,
                GitTrouble::Incomplete,
                cause,
                "git lfs ls-files shows them",
            )
        })?;
        let address = self.address.strip_prefix("file://").unwrap_or(self.address);
        // It has all of none, too.
        if are_on_disk(&self.git.folder.join(address), &files) {
            return Ok(());
        }
        self.push(&files).map_err(|why| {
            let files_of = count(files.len() as u64, "file");
            let cause = format!("{files_of} of git LFS may be missing on {}: {why}", self.remote);
            GitFault::new(GitStep::Push, GitTrouble::Incomplete, cause, self.cure(&files[0]))
        })
    }

    fn cure(&self, file: &str) -> String {
        let (remote, place) =
            (self.remote, self.places.first().copied().unwrap_or(self.git.folder));
        if let Some(branch) = self.branch {
            format!("git lfs push {remote} {branch}")
        } else {
            let place = quote(&place.display().to_string()).into_owned();
            format!("push them first: git -C {place} lfs push --object-id {remote} {file}")
        }
    }

    /// Has git-lfs send them. The error is a sentence fragment.
    fn push(&self, files: &[String]) -> Result<(), String> {
        if let Some(branch) = self.branch {
            return self.run(&["lfs", "push", self.remote, &format!("refs/heads/{branch}")]);
        }
        let stores = self.places.iter().filter_map(|place| folder(place).map(|it| common(&it)));
        let store = stores.into_iter().find(|store| are_on_disk(store, files));
        let store = store.ok_or("they are not all on this machine")?;
        let storage = format!("lfs.storage={}", store.join("lfs").display());
        let form = ["-c", &storage, "lfs", "push", "--object-id", self.remote];
        files.chunks(AT_ONCE).try_for_each(|some| {
            self.run(&form.into_iter().chain(some.iter().map(String::as_str)).collect::<Vec<_>>())
        })
    }

    fn run(&self, arguments: &[&str]) -> Result<(), String> {
        let said = Git { within: Some(LFS_WITHIN), ..self.git }.said(arguments);
        if said.text.contains("is not a git command") {
            return Err("git-lfs is not installed here".to_owned());
        }
        said.check(GitStep::Push).map_err(|fault| fault.cause)
    }
}

/// The files that these objects point to, one id a line; `None` where git cannot read them.
pub(super) fn pointers(git: Git<'_>, objects: &[u8]) -> Option<Vec<String>> {
    let batch = Git { input: objects, ..git };
    Some(lfs_pointers(&batch.printed(&["cat-file", "--batch"])?))
}

/// Whether the repository in this folder has all of these files.
fn are_on_disk(repository: &Path, files: &[String]) -> bool {
    let stores = [repository.join("lfs/objects"), repository.join(".git/lfs/objects")];
    stores.iter().any(|store| files.iter().all(|id| disk::is_file(&store.join(below_store(id)))))
}

/// The place of a file in a store.
pub(super) fn below_store(id: &str) -> PathBuf {
    Path::new(&id[..2]).join(&id[2..4]).join(id)
}

/// Whether git LFS is, or was, used in the repository of a checkout.
fn uses_lfs(checkout: &Path) -> bool {
    let store = folder(checkout).map(|folder| common(&folder).join("lfs"));
    let attributes = disk::read_text(&checkout.join(".gitattributes"), ATTRIBUTES_BYTES);
    store.is_some_and(|store| disk::exists(&store))
        || attributes.ok().flatten().is_some_and(|text| text.contains("filter=lfs"))
}
