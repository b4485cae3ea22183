//! Fills the submodules of a clone from the user's own, without the network where the commit is
//! available here. A submodule that the user has not initialised stays empty. Names and paths
//! come from the branch, so none may lead out of the clone or through a link.

use std::path::{Component, Path, PathBuf};

use super::{Ends, Twin, clone_refused, settings};
use crate::files::disk::{self, Durability};
use crate::files::tree::{self, RealFolder};
use crate::git::Git;
use crate::git::command::{FETCH, format_setting};
use crate::git::head::{common_folder, git_folder};
use crate::git::inside::list_submodules;
use engine::git::GitFault;
use readers::parse::git::is_id;

/// The deepest level of nested submodules that is filled.
const DEPTH_MAX: usize = 8;
/// The ref of the commit at which a submodule begins.
const BEGAN: &str = "refs/remotes/origin/crew-began";
/// The maximum number of submodules of one repository.
const SUBMODULES_MAX: usize = 500;

/// Fills the submodules of a clone, and those inside them. `checkout` is the working tree of the
/// person's repository, which need not exist, and `shared` the folder that all its working trees
/// share. Returns notes about those that stay empty.
pub(super) fn fill_all(
    checkout: &Path,
    shared: &Path,
    twin: Twin,
    ends: Ends<'_>,
) -> Result<Vec<String>, GitFault> {
    let mut notes = Vec::new();
    let mut pending = vec![(checkout.to_owned(), shared.to_owned(), twin, 1)];
    while let Some((checkout, shared, outer, depth)) = pending.pop() {
        let top = &outer.top;
        for (name, path) in named_submodules(top) {
            ends.check().map_err(clone_refused)?;
            let Some(commit) = recorded_commit(top, &path) else { continue };
            let (checkout, name) = (checkout.join(&path), Path::new("modules").join(&name));
            let in_tree = git_folder(&checkout).map(|folder| common_folder(&folder));
            let mut places = in_tree.into_iter().chain([shared.join(&name)]);
            let theirs = places.find(|place| disk::is_folder(&place.join("objects")));
            let Some(theirs) = theirs else { continue };
            let (own, borrows) = (outer.folder.join(&name), outer.borrows);
            let twin = Twin { folder: own, top: top.join(&path), borrows };
            let is_filled = begin_submodule(&twin, &theirs, &commit, ends)?;
            let path = path_text(&path);
            let _ = Git::here(top).said(&["submodule", "--quiet", "init", "--", &path]);
            if !is_filled {
                notes.push(format!("the submodule {path} is empty: its commit is not here"));
                continue;
            }
            twin.share_lfs(&theirs, ends)?;
            twin.check_out(ends)?;
            if depth < DEPTH_MAX {
                pending.push((checkout, theirs, twin, depth + 1));
            }
        }
    }
    Ok(notes)
}

/// Creates the repository of a submodule at this commit. False if no repository has the commit.
fn begin_submodule(
    twin: &Twin,
    theirs: &Path,
    commit: &str,
    ends: Ends<'_>,
) -> Result<bool, GitFault> {
    let config = theirs.join("config");
    let format = ["config", "--file", &path_text(&config), "extensions.objectformat"];
    let format = Git::climbing(&twin.top).line(&format);
    Twin::init_repository(&twin.folder, true, format)?;
    twin.share(theirs, ends).map_err(clone_refused)?;
    let work = format_setting("core.worktree", &path_text(&relative_path(&twin.folder, &twin.top)));
    let bare = format_setting("core.bare", "false");
    let own = settings::of_submodule(&twin.folder, &config);
    twin.add_settings(&(bare + &work + &own))?;
    let link = format!("gitdir: {}\n", path_text(&relative_path(&twin.top, &twin.folder)));
    disk::write(&twin.top.join(".git"), link.as_bytes(), Durability::Process)
        .map_err(clone_refused)?;
    if Git::here(&twin.top).commit(commit).is_none() {
        let arguments = [FETCH, "-- origin", commit].join(" ");
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let _ = ends.git(&twin.top).said(&arguments);
    }
    if Git::here(&twin.top).commit(commit).is_none() {
        let _ = disk::remove(&twin.top.join(".git"));
        tree::remove_folder(&twin.folder).map_err(clone_refused)?;
        return Ok(false);
    }
    twin.well(&["update-ref", "--no-deref", "HEAD", commit])?;
    // The commit was at the remote or in the user's repository: no agent made it.
    twin.well(&["update-ref", BEGAN, commit])?;
    Ok(true)
}

/// The submodules of a working tree by name, with their paths, unless one of these leads out.
fn named_submodules(top: &Path) -> Vec<(String, PathBuf)> {
    if tree::kind(&top.join(".gitmodules")) == "gone" {
        return Vec::new();
    }
    let mut found = list_submodules(Git::here(top), &["--file", ".gitmodules"]);
    found.retain(|(name, path)| is_inside(Path::new(name)) && is_inside(path));
    found.truncate(SUBMODULES_MAX);
    found
}

fn is_inside(path: &Path) -> bool {
    path.components().next().is_some()
        && path.components().all(|part| match part {
            Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
            _ => false,
        })
}

/// The commit that the index records for a submodule, if its folder exists and is not a link.
fn recorded_commit(top: &Path, path: &Path) -> Option<String> {
    let spec = format!(":(literal){}", path_text(path));
    let listed = Git::here(top).run(&["ls-files", "--stage", "-z", "--", &spec])?;
    let id = listed.strip_prefix("160000 ")?.split(' ').next().filter(|id| is_id(id))?;
    if !tree::is_folder(&top.join(path)) {
        // A sparse checkout leaves it out.
        return None;
    }
    RealFolder::open(top).and_then(|top| top.enter(path)).ok()?;
    Some(id.to_owned())
}

/// The relative path from one folder to another, so that both can be moved together.
fn relative_path(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(one, other)| one == other);
    let shared = shared.count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_relative_path_between_two_folders_goes_up_and_then_down() {
        let table = [
            ("/c/.git/modules/a/b", "/c/lib/x", "../../../../lib/x"),
            ("/c/lib/x", "/c/.git/modules/a/b", "../../.git/modules/a/b"),
            ("/c", "/c/x", "x"),
        ];
        for (from, to, expected) in table {
            assert_eq!(relative_path(Path::new(from), Path::new(to)), Path::new(expected));
        }
    }

    #[test]
    fn no_name_or_path_of_a_submodule_leaves_the_clone() {
        let table = [
            ("lib/x", true),
            ("", false),
            ("..", false),
            ("a/../..", false),
            ("/a", false),
            (".git/hooks", false),
            ("a/.GIT", false),
        ];
        for (path, expected) in table {
            assert_eq!(is_inside(Path::new(path)), expected, "{path}");
        }
    }
}
