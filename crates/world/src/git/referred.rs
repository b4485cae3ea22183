//! What commits refer to but git does not push with them: commits of submodules, and files of git
//! LFS, of which a commit has pointers and each repository a store. All of it must be on its remote
//! before a commit lands; otherwise the error says how to push it. No git command runs in an
//! agent's submodule, because its configuration is the agent's.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use shell_words::quote;

use super::Git;
use super::command::{FETCH, read_setting};
use super::head::{common_folder, git_folder};
use super::inside::list_submodules;
use super::land::LandTree;
use super::remotes::{Refs, in_a_new_repository};
use crate::files::{disk, tree};
use crate::process::Stop;
use crate::store::hash_stream;
use engine::git::{GitFault, GitStep, GitTrouble, RefUpdate, SwapResult, name_files};
use engine::text::{count, words_of};
use readers::parse::git::parse_raw_diff;
use readers::parse::remote::{LfsFile, lfs_pointers, without_secrets};

/// Where the work of a landing came from, and where it goes.
pub struct Referred<'a> {
    pub tree: LandTree<'a>,
    /// The user's repository, whose settings apply.
    pub repository: &'a Path,
    /// The address of the remote.
    pub url: &'a str,
    /// The clone in which the work was done, or another working tree that may contain it.
    pub clone: &'a Path,
    /// The branch to which crew may push a submodule's commit at its remote.
    pub branch: &'a str,
}

impl Referred<'_> {
    /// Makes sure that the submodule commits which `commit` records, and `main` does not, are on
    /// their remotes. The user's `push.recurseSubmodules` is obeyed: with `no` none is checked,
    /// with `on-demand` crew pushes them to a branch with the task's name.
    ///
    /// # Errors
    /// [`GitTrouble::Incomplete`], with how to push what is missing.
    pub fn have_submodules(&self, main: &str, commit: &str) -> Result<(), GitFault> {
        let person = read_setting(self.repository, "push.recurseSubmodules");
        if matches!(person.as_deref(), Some("no" | "false" | "off" | "0")) {
            return Ok(());
        }
        let pushes = matches!(person.as_deref(), Some("on-demand" | "only"));
        let form = ["diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", main, commit];
        let listed = self.tree.git().printed(&form).unwrap_or_default();
        let mut lacking: Vec<(String, String, String)> = Vec::new();
        for entry in parse_raw_diff(&listed) {
            let Some(id) = entry.what.strip_prefix(b"160000 ") else { continue };
            let id = String::from_utf8_lossy(id).into_owned();
            let path = entry.path().display().to_string();
            let (url, is_there) = match self.find_address(commit, &path) {
                Some((url, is_own)) => {
                    let path = if pushes && is_own { Some(&*path) } else { None };
                    let is_there = self.is_on_remote(&url, &id, path)?;
                    (url, is_there)
                }
                None => ("REMOTE".to_owned(), false),
            };
            if !is_there {
                lacking.push((path, id, url));
            }
        }
        let Some((first, id, url)) = lacking.first() else { return Ok(()) };
        let (git, url) = (git_in(&self.clone.join(first)), without_secrets(url));
        let paths: Vec<String> = lacking.iter().map(|(path, ..)| path.clone()).collect();
        let cause = format!("commits of submodules are on no remote: {}", name_files(&paths));
        // In a clone, pushes to the remote's name are disabled.
        let hint = format!("push them first: {git} push {} {id}:refs/heads/BRANCH", quote(&url));
        Err(GitFault::new(GitStep::Push, GitTrouble::Incomplete, cause, hint))
    }

    /// The address of the submodule at a path, as the user configured it or else as the commit
    /// says; and whether it is the user's.
    fn find_address(&self, commit: &str, path: &str) -> Option<(String, bool)> {
        let file = format!("{commit}:.gitmodules");
        let listed = list_submodules(self.tree.git(), &["--blob", &file]);
        let (name, _) = listed.into_iter().find(|(_, at)| at == Path::new(path))?;
        let key = format!("submodule.{name}.url");
        if let Some(own) = read_setting(self.repository, &key) {
            return Some((own, true));
        }
        let url = self.tree.git().line(&["config", "--blob", &file, "--get", &key])?;
        // git would read an address that begins with a dash as an option.
        let url = if url.starts_with('.') { relative_address(self.url, &url) } else { url };
        if url.is_empty() || url.starts_with('-') { None } else { Some((url, false)) }
    }

    /// Whether a remote has a commit. With a path, a missing commit is fetched from the submodule
    /// there and pushed.
    fn is_on_remote(&self, url: &str, id: &str, path: Option<&str>) -> Result<bool, GitFault> {
        in_a_new_repository(|folder| {
            let refs = Refs { folder, remote: url, stop: self.tree.stop, patience: None };
            let is_there = refs.has_commit(id)?;
            let (Some(path), false) = (path, is_there) else { return Ok(is_there) };
            let from = self.clone.join(path).display().to_string();
            let arguments: Vec<&str> =
                words_of(FETCH).chain(["--refmap=", "--", &*from, id]).collect();
            let variables = [("GIT_ALLOW_PROTOCOL", "file".to_owned())];
            let brings = Git { variables: &variables, ..Git::lazily(folder) };
            if !brings.said(&arguments).is_good() {
                return Ok(false);
            }
            let name = format!("refs/heads/{}", self.branch);
            let update = RefUpdate { name, old: None, new: Some(id.to_owned()) };
            Ok(refs.swap(&[update])? == SwapResult::Done)
        })
    }

    /// Sends the files of git LFS that the commits of `tip` add to those of `main`.
    ///
    /// # Errors
    /// [`GitTrouble::Incomplete`] if they are not all at the remote, or that cannot be known.
    pub fn send_lfs(&self, main: &str, tip: &str) -> Result<(), GitFault> {
        let push = LfsPush {
            git: self.tree.git(),
            remote: self.url,
            address: self.url,
            repository: self.repository,
            clones: &[self.clone, self.tree.folder],
            branch: None,
        };
        push.send(&[tip, "--not", main])
    }
}

/// Sends the files of git LFS that a commit adds to what this remote is known to have, and to the
/// commits in `has`.
pub fn send_lfs(
    repository: &Path,
    remote: &str,
    commit: &str,
    has: &[String],
    stop: Stop<'_>,
) -> Result<(), GitFault> {
    let address = read_setting(repository, &format!("remote.{remote}.url")).unwrap_or_default();
    let push = LfsPush {
        git: Git { stop: Some(stop), ..Git::lazily(repository) },
        remote,
        address: &address,
        repository,
        clones: &[],
        branch: None,
    };
    let has = has.iter().map(String::as_str).filter(|id| *id != commit);
    let seen = format!("--remotes={remote}");
    // A commit that is unknown here excludes nothing.
    push.send(
        &[commit, "--ignore-missing", "--not", &seen].into_iter().chain(has).collect::<Vec<_>>(),
    )
}

/// The absolute form of a relative address in `.gitmodules`, based on the remote's own.
fn relative_address(remote: &str, url: &str) -> String {
    let (mut base, mut rest) = (remote.trim_end_matches('/'), url);
    loop {
        if let Some(after) = rest.strip_prefix("../") {
            let end = base.rfind(['/', ':']).unwrap_or(0);
            (base, rest) = (&base[..end], after);
        } else if let Some(after) = rest.strip_prefix("./") {
            rest = after;
        } else {
            break;
        }
    }
    if rest.starts_with('/') { rest.to_owned() } else { format!("{base}/{rest}") }
}

/// The longest time git LFS may take to send files.
pub(super) const LFS_WITHIN: Duration = Duration::from_secs(600);
/// The maximum number of bytes in `.gitattributes` read.
const ATTRIBUTES_BYTES: u64 = 1 << 20;
/// Selects every object that is small enough for a pointer, which has at most 1,024 bytes.
const SMALL: &str = "--filter=combine:blob:limit=1025+object:type=blob";
/// The maximum number of files passed to one call of git-lfs.
const AT_ONCE: usize = 500;

/// A push of files of git LFS.
pub(super) struct LfsPush<'a> {
    /// A call of git that may contact the remote.
    pub git: Git<'a>,
    /// The name of the remote for git, and its address.
    pub remote: &'a str,
    pub address: &'a str,
    /// The working tree of the repository that sends the files.
    pub repository: &'a Path,
    /// Clones that may also have the files. Agents can write their settings.
    pub clones: &'a [&'a Path],
    /// The branch whose files are sent. Without one, files are sent by their ids.
    pub branch: Option<&'a str>,
}

impl LfsPush<'_> {
    /// Sends the files that these commits add, words of `git rev-list`, unless a remote on this
    /// machine has them.
    ///
    /// # Errors
    /// [`GitTrouble::Incomplete`] if they are not all at the remote, or that cannot be known.
    pub fn send(&self, commits: &[&str]) -> Result<(), GitFault> {
        let stores = self.find_stores();
        let mut trees = self.clones.iter().chain([&self.repository]);
        if !trees.any(|tree| names_lfs(tree)) && !stores.iter().any(|store| disk::exists(store)) {
            return Ok(());
        }
        let files = added_files(self.git, commits).ok_or_else(|| {
            let cause = "git does not list the files of git LFS of this branch".to_owned();
            GitFault::new(
                GitStep::Push,
                GitTrouble::Incomplete,
                cause,
                "git lfs ls-files shows them",
            )
        })?;
        let address = self.address.strip_prefix("file://").unwrap_or(self.address);
        let remote = self.git.folder.join(address);
        // With no files this is true of every remote.
        if [".git/lfs", "lfs"].iter().any(|store| are_in(&remote.join(store), &files)) {
            return Ok(());
        }
        self.push_files(&files, &stores).map_err(|why| {
            let files_of = count(files.len() as u64, "file");
            let remote = without_secrets(self.remote);
            let cause = format!("{files_of} of git LFS may be missing on {remote}: {why}");
            GitFault::new(
                GitStep::Push,
                GitTrouble::Incomplete,
                cause,
                self.push_hint(&files[0].id),
            )
        })
    }

    fn push_hint(&self, file: &str) -> String {
        let remote = without_secrets(self.remote);
        let place = self.clones.first().copied().unwrap_or(self.repository);
        if let Some(branch) = self.branch {
            format!("git lfs push {remote} {branch}")
        } else {
            let (git, remote) = (git_in(place), quote(&remote));
            format!("push them first: {git} lfs push --object-id {remote} {file}")
        }
    }

    /// The stores that may have the files: the repository's, and the usual one of each clone.
    fn find_stores(&self) -> Vec<PathBuf> {
        let own = git_folder(self.repository).map(|folder| store_folder(&folder));
        let folders = self.clones.iter().filter_map(|clone| git_folder(clone));
        own.into_iter().chain(folders.map(|folder| common_folder(&folder).join("lfs"))).collect()
    }

    /// Lets git-lfs send the files. The error is a sentence fragment.
    fn push_files(&self, files: &[LfsFile], stores: &[PathBuf]) -> Result<(), String> {
        // git-lfs reads a path as the name of a remote.
        let is_path = self.remote.starts_with('/');
        let remote = format!("{}{}", if is_path { "file://" } else { "" }, self.remote);
        if let Some(branch) = self.branch {
            return self.run_lfs(&["lfs", "push", &remote, &format!("refs/heads/{branch}")]);
        }
        let store = stores.iter().find(|store| are_in(store, files));
        let store = store.ok_or("they are not all on this machine")?;
        let storage = format!("lfs.storage={}", store.display());
        let form = ["-c", &storage, "lfs", "push", "--object-id", &remote];
        files.chunks(AT_ONCE).try_for_each(|some| {
            self.run_lfs(
                &form.into_iter().chain(some.iter().map(|file| &*file.id)).collect::<Vec<_>>(),
            )
        })
    }

    fn run_lfs(&self, arguments: &[&str]) -> Result<(), String> {
        let said = Git { within: Some(LFS_WITHIN), ..self.git }.said(arguments);
        if said.text.contains("is not a git command") {
            return Err("git-lfs is not installed here".to_owned());
        }
        said.check(GitStep::Push).map_err(|fault| fault.cause)
    }
}

/// Copies the files of git LFS that these commits of a clone point to, because git fetches only
/// pointers. The commits are arguments of `git rev-list`. An agent may have left anything in the
/// clone, so a file is copied only if its content matches its name.
pub(super) fn take_over(repository: &Path, clone: &Path, commits: &[&str]) -> io::Result<()> {
    let theirs = clone.join(".git/lfs");
    let (true, Some(own)) = (disk::is_folder(&theirs), git_folder(repository)) else {
        return Ok(());
    };
    let own = store_folder(&own);
    let git = Git { within: Some(LFS_WITHIN), ..Git::lazily(repository) };
    let added = added_files(git, commits);
    let added = added.ok_or_else(|| io::Error::other("git cannot list its files of git LFS"))?;
    for file in added.iter().filter(|file| find_file(&own, file).is_none()) {
        let there = find_file(&theirs, file).filter(|path| tree::kind(path) != "link");
        let Some(from) = there.map_or(Ok(None), |path| disk::open_file(&path))? else { continue };
        let to = file_place(&own, &file.id);
        let part = to.with_extension("crew");
        part.parent().map_or(Ok(()), disk::make_folder)?;
        // A part that a killed crew left may be read-only.
        disk::remove(&part)?;
        let mut copy = disk::create_private(&part)?;
        copy.set_permissions(from.metadata()?.permissions())?;
        // The file may grow while it is copied.
        io::copy(&mut from.take(file.bytes), &mut copy)?;
        if disk::open_file(&part)?.map(hash_stream).transpose()?.as_ref() == Some(&file.id) {
            disk::rename(&part, &to)?;
        } else {
            disk::remove(&part)?;
        }
    }
    Ok(())
}

/// The files of git LFS that these commits add pointers to; `None` if git fails.
fn added_files(git: Git<'_>, commits: &[&str]) -> Option<Vec<LfsFile>> {
    let form = ["rev-list", "--objects", "--no-object-names", SMALL];
    let objects = git.printed(&[&form[..], commits].concat())?;
    read_pointers(git, &objects)
}

/// The beginning of a git command for a folder, which may be on another machine.
pub(super) fn git_in(folder: &Path) -> String {
    let is_here = disk::exists(&folder.join(".git"));
    if is_here { format!("git -C {}", quote(&folder.display().to_string())) } else { "git".into() }
}

/// The files that these objects point to, one object per line; `None` if git cannot read them.
pub(super) fn read_pointers(git: Git<'_>, objects: &[u8]) -> Option<Vec<LfsFile>> {
    let batch = Git { input: objects, ..git };
    Some(lfs_pointers(&batch.printed(&["cat-file", "--batch"])?))
}

/// The store of a repository, given git's folder of a working tree. An agent can set it to any
/// place in its clone, so no file is taken from there.
pub(super) fn store_folder(folder: &Path) -> PathBuf {
    let own = format!("--git-dir={}", folder.display());
    let set = Git::climbing(folder).line(&[&own, "config", "--get", "lfs.storage"]);
    common_folder(folder).join(set.filter(|place| !place.is_empty()).as_deref().unwrap_or("lfs"))
}

/// Whether a store has all of these files.
fn are_in(store: &Path, files: &[LfsFile]) -> bool {
    files.iter().all(|file| find_file(store, file).is_some())
}

/// The path of a file in a store; `None` if it is missing or has another size.
pub(super) fn find_file(store: &Path, file: &LfsFile) -> Option<PathBuf> {
    let path = file_place(store, &file.id);
    if disk::is_file(&path) && disk::size(&path) == file.bytes { Some(path) } else { None }
}

/// The path of a file in a store.
pub(super) fn file_place(store: &Path, id: &str) -> PathBuf {
    store.join("objects").join(&id[..2]).join(&id[2..4]).join(id)
}

/// Whether the attributes of a checkout assign files to git LFS.
fn names_lfs(checkout: &Path) -> bool {
    let attributes = disk::read_text(&checkout.join(".gitattributes"), ATTRIBUTES_BYTES);
    attributes.ok().flatten().is_some_and(|text| text.contains("filter=lfs"))
}

#[cfg(test)]
mod referred_tests {
    use super::*;

    #[test]
    fn a_submodules_relative_address_is_resolved_against_its_remotes_address() {
        let table = [
            ("https://h/a/top.git", "../sub.git", "https://h/a/sub.git"),
            ("https://h/a/top.git/", "../../b/sub", "https://h/b/sub"),
            ("git@h:a/top.git", "../sub.git", "git@h:a/sub.git"),
            ("/srv/top.git", "./../sub", "/srv/sub"),
            ("/srv/top", "./sub", "/srv/top/sub"),
            ("https://h/top", "/srv/sub", "/srv/sub"),
        ];
        for (remote, url, expected) in table {
            assert_eq!(relative_address(remote, url), expected, "{remote} {url}");
        }
    }
}
