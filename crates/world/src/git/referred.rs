//! What the commit of a landing refers to and git does not push with it: commits of submodules, and
//! files of git LFS. Each is on its remote before the commit lands, or is named with how to push
//! it. No git runs in a submodule of an agent: its configuration is the agent's.

use std::path::Path;

use shell_words::quote;

use super::Git;
use super::inside::list_submodules;
use super::land::LandTree;
use super::lfs::{LfsPush, git_in};
use super::push::{self, read_setting, ssh_variables};
use super::refs::{Refs, in_a_new_repository};
use super::remotes::FETCH;
use crate::process::Stop;
use engine::git::{GitFault, GitTrouble, RefUpdate, SwapResult, name_files};
use engine::text::words_of;
use readers::parse::git::parse_raw_diff;
use readers::parse::remote::without_secrets;

/// Where the work of a landing came from, and where it goes.
pub struct Referred<'a> {
    pub tree: LandTree<'a>,
    /// The person's, whose settings hold.
    pub repository: &'a Path,
    /// The address of the remote.
    pub url: &'a str,
    /// The clone in which the work was done, or another working tree that may have it.
    pub clone: &'a Path,
    /// The name that a commit of a submodule gets at its remote, where crew may push it.
    pub branch: &'a str,
}

impl Referred<'_> {
    /// Has the commits of submodules that `commit` records, and `main` does not, on their remotes.
    /// The person's `push.recurseSubmodules` is obeyed: `no` looks at none of them, `on-demand` has
    /// crew push them to a branch of the task's name.
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
        // The name of the remote in a clone leads to no place for pushes.
        let cure = format!("push them first: {git} push {} {id}:refs/heads/BRANCH", quote(&url));
        Err(push::push_fault(GitTrouble::Incomplete, cause, cure))
    }

    /// The address of the submodule at a path, as the person has set it up or else as the commit
    /// says; and whether it is the person's.
    fn find_address(&self, commit: &str, path: &str) -> Option<(String, bool)> {
        let file = format!("{commit}:.gitmodules");
        let listed = list_submodules(self.tree.git(), &["--blob", &file]);
        let (name, _) = listed.into_iter().find(|(_, at)| at == Path::new(path))?;
        let key = format!("submodule.{name}.url");
        if let Some(own) = read_setting(self.repository, &key) {
            return Some((own, true));
        }
        let url = self.tree.git().line(&["config", "--blob", &file, "--get", &key])?;
        // git would take one that begins with a dash for an option.
        let url = if url.starts_with('.') { relative_address(self.url, &url) } else { url };
        if url.is_empty() || url.starts_with('-') { None } else { Some((url, false)) }
    }

    /// Whether a remote has a commit. With a path, one that is missing is fetched from the
    /// submodule there and pushed.
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
        let variables = ssh_variables(self.tree.folder);
        let push = LfsPush {
            git: Git { variables: &variables, ..self.tree.git() },
            remote: self.url,
            address: self.url,
            repository: self.repository,
            clones: &[self.clone, self.tree.folder],
            branch: None,
        };
        push.send(&[tip, "--not", main])
    }
}

/// Sends the files of git LFS that a commit adds to what a remote of this name was seen to have,
/// and to other commits that it has.
pub fn send_lfs(
    repository: &Path,
    remote: &str,
    commit: &str,
    has: &[String],
    stop: Stop<'_>,
) -> Result<(), GitFault> {
    let variables = ssh_variables(repository);
    let address = read_setting(repository, &format!("remote.{remote}.url")).unwrap_or_default();
    let push = LfsPush {
        git: Git { variables: &variables, stop: Some(stop), ..Git::lazily(repository) },
        remote,
        address: &address,
        repository,
        clones: &[],
        branch: None,
    };
    let has = has.iter().map(String::as_str).filter(|id| *id != commit);
    let seen = format!("--remotes={remote}");
    // One that is not here excludes nothing.
    push.send(
        &[commit, "--ignore-missing", "--not", &seen].into_iter().chain(has).collect::<Vec<_>>(),
    )
}

/// The address that a relative one of `.gitmodules` means, beside the remote's own.
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

#[cfg(test)]
mod referred_tests {
    use super::*;

    #[test]
    fn a_relative_address_of_a_submodule_is_beside_that_of_the_remote() {
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
