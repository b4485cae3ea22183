//! What a fleet needs from a repository on this machine, checked before anything runs. It changes
//! nothing and contacts no remote.

use std::path::{Path, PathBuf};

use super::inside::list_submodules;
use super::{Git, run_git, shared_folder, steps};
use crate::files::disk;
use engine::git::{GitFault, GitStep, RemoteRef};

/// The maximum number of names in a folder of refs.
const NAMES_MAX: usize = 20_000;
/// The locks in a repository that keep crew from fetching and from deleting refs.
const LOCKS: [&str; 2] = ["packed-refs.lock", "shallow.lock"];

/// Checks that git knows who commits in this repository, by the same rules as for crew's commits.
pub fn check_identity(top: &Path) -> Result<(), GitFault> {
    for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
        Git::here(top).well(GitStep::Commit, &["var", who])?;
    }
    Ok(())
}

/// The refs of this repository below these prefixes.
pub fn refs_below(top: &Path, below: &[&str]) -> Vec<RemoteRef> {
    let form = "--format=%(objectname) %(refname)";
    let listed = run_git(top, &[&["for-each-ref", form], below].concat()).unwrap_or_default();
    let parts = listed.lines().filter_map(|line| line.split_once(' '));
    parts.map(|(id, name)| RemoteRef { name: name.to_owned(), id: id.to_owned() }).collect()
}

/// The refs that block one of the `wanted`. If one name is a folder of the other, git accepts only
/// one of the two.
pub fn in_the_way<'a>(refs: &'a [String], wanted: &[String]) -> Vec<&'a str> {
    let mut blocking: Vec<&str> = refs.iter().map(String::as_str).collect();
    blocking.retain(|name| wanted.iter().any(|one| is_below(one, name) || is_below(name, one)));
    blocking
}

fn is_below(one: &str, other: &str) -> bool {
    one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

/// The locks that keep crew from fetching into refs below `below` and that do not go away: left by
/// a killed git, or held by one that hangs.
pub fn left_locks(top: &Path, below: &str) -> Vec<PathBuf> {
    let Some(shared) = shared_folder(top) else { return Vec::new() };
    let folder = shared.join(below);
    let mut names = disk::names(&folder, NAMES_MAX);
    names.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "lock"));
    let refs = names.iter().map(|name| folder.join(name));
    steps::held_locks(LOCKS.iter().map(|name| shared.join(name)).chain(refs).collect())
}

/// A submodule whose commit does not exist here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentSubmodule {
    pub path: String,
    /// Whether it is checked out in this working tree.
    pub is_initialised: bool,
}

/// The submodules of a commit whose recorded commit does not exist here.
pub fn absent_submodules(top: &Path, commit: &str) -> Vec<AbsentSubmodule> {
    let mut absent = Vec::new();
    for (_, path) in list_submodules(Git::here(top), &["--blob", &format!("{commit}:.gitmodules")])
    {
        let (folder, path) = (top.join(&path), path.display().to_string());
        let entry = run_git(top, &["ls-tree", "-z", commit, "--", &path]).unwrap_or_default();
        let Some(recorded) = entry.strip_prefix("160000 commit ") else { continue };
        let recorded = recorded.split('\t').next().unwrap_or_default();
        let is_initialised = disk::exists(&folder.join(".git"));
        if !is_initialised || super::find_commit(&folder, recorded).is_none() {
            absent.push(AbsentSubmodule { path, is_initialised });
        }
    }
    absent
}

/// Whether a commit's `.gitattributes` gives files to git-lfs.
pub fn uses_lfs(top: &Path, commit: &str) -> bool {
    let attributes = run_git(top, &["cat-file", "blob", &format!("{commit}:.gitattributes")]);
    attributes.is_some_and(|text| text.contains("filter=lfs"))
}

/// The size of a commit's files in bytes; `None` if git needs its remote for that, or takes too
/// long.
pub fn checkout_bytes(top: &Path, commit: &str) -> Option<u64> {
    let listed = run_git(top, &["ls-tree", "-r", "-l", "-z", commit])?;
    let sizes = listed.split_terminator('\0').filter_map(|entry| entry.split_whitespace().nth(3));
    Some(sizes.filter_map(|size| size.parse::<u64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ref_conflicts_with_refs_below_it_and_with_its_parent_folders() {
        let wanted = ["refs/heads/fleet/shop/vat/1", "refs/crew/shop/record"].map(str::to_owned);
        for (name, is_blocking) in [
            ("refs/heads/fleet", true),
            ("refs/heads/fleet/shop", true),
            ("refs/heads/fleet/shop/vat", true),
            ("refs/heads/fleet/shop/vat/1", false),
            ("refs/heads/fleet/shop/vat/1/x", true),
            ("refs/heads/fleet/shop/va", false),
            ("refs/heads/fleets", false),
            ("refs/tags/fleet", false),
            ("refs/crew", true),
            ("refs/crew/shop", true),
            ("refs/crew/shop/record", false),
        ] {
            let found = !in_the_way(&[name.to_owned()], &wanted).is_empty();
            assert_eq!(found, is_blocking, "{name}");
        }
    }
}
