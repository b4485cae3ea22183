//! What is checked out in a working tree, read from git's own files: a look that starts no process
//! and runs at every boundary. Only when it changed, git is asked what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Git;
use crate::engine::evidence::changes::HeadMove;
use crate::engine::record::{CheckedOut, Loop};
use crate::parse::git::is_id;
use crate::world::files::{disk, tree};

/// The most bytes of a file with one reference.
const LINE_BYTES: u64 = 4096;
/// The most bytes of the file with all packed references.
const PACKED_BYTES: u64 = 32 << 20;
/// The most commits of branches that are compared, and bytes of the file that is read for them.
const TIPS_MAX: usize = 256;
const TIPS_BYTES: u64 = 1 << 20;
/// How many references may name each other.
const DEPTH_MAX: usize = 5;

/// Reads it; `None` if the folder is not the root of a working tree.
pub fn checked_out(checkout: &Path) -> Option<CheckedOut> {
    let folder = folder(checkout)?;
    let common = common(&folder);
    let mut named = line(&folder.join("HEAD"))?;
    let mut branch = None;
    for _ in 0..DEPTH_MAX {
        let Some(name) = named.strip_prefix("ref: ") else {
            // An agent can write this file.
            return Some(CheckedOut { branch, commit: Some(named).filter(|id| is_id(id)) });
        };
        branch = name.strip_prefix("refs/heads/").map(str::to_owned).or(branch);
        let loose = line(&folder.join(name)).or_else(|| line(&common.join(name)));
        match loose.or_else(|| packed(&common, name)) {
            Some(next) => named = next,
            None => return Some(CheckedOut { branch, commit: None }),
        }
    }
    None
}

/// The commits of all branches, and of what is checked out in any working tree of the repository;
/// empty where they are more than crew compares.
pub fn tips(checkout: &Path) -> Vec<String> {
    let Some(own) = folder(checkout) else { return Vec::new() };
    let common = common(&own);
    let loose = tree::files(&common.join("refs/heads"), TIPS_MAX + 1);
    let trees = disk::names(&common.join("worktrees"), TIPS_MAX + 1);
    let packed = disk::read_text(&common.join("packed-refs"), TIPS_BYTES);
    let (true, true, Ok(packed)) = (loose.len() <= TIPS_MAX, trees.len() <= TIPS_MAX, packed)
    else {
        return Vec::new();
    };
    let branch = |line: &str| {
        let (id, name) = line.split_once(' ')?;
        Some((PathBuf::from(name.strip_prefix("refs/heads/")?), id.to_owned()))
    };
    let mut branches: BTreeMap<PathBuf, String> =
        packed.unwrap_or_default().lines().filter_map(branch).collect();
    for name in loose {
        branches.extend(line(&common.join("refs/heads").join(&name)).map(|id| (name, id)));
    }
    let heads = trees.iter().map(|name| common.join("worktrees").join(name)).chain([own]);
    let heads = heads.filter_map(|folder| line(&folder.join("HEAD")));
    let tips: BTreeSet<String> =
        branches.into_values().chain(heads).filter(|id| is_id(id)).collect();
    if tips.len() > TIPS_MAX { Vec::new() } else { tips.into_iter().collect() }
}

/// How many commits that change a file are new on other branches and in other working trees.
pub fn new_elsewhere(subject: &Loop, old: &[String], new: &[String]) -> u64 {
    let added: Vec<&str> =
        new.iter().filter(|tip| !old.contains(tip)).map(String::as_str).collect();
    if old.is_empty() || added.is_empty() {
        return 0;
    }
    let known = old.iter().map(String::as_str).chain(["HEAD"]);
    let count = ["rev-list", "--count", "--ignore-missing"].into_iter().chain(added);
    let arguments: Vec<&str> = count.chain(["--not"]).chain(known).chain(["--", "."]).collect();
    let counted = Git::of(subject).run(&arguments);
    counted.and_then(|count| count.trim_end().parse().ok()).unwrap_or_default()
}

/// What happened between two looks; `None` if nothing did.
pub fn moved(subject: &Loop, old: &CheckedOut, new: &CheckedOut) -> Option<HeadMove> {
    if old == new {
        return None;
    }
    let git = Git::of(subject);
    let named = || new.branch.clone().or_else(|| Some(new.commit.as_ref()?.get(..12)?.to_owned()));
    let is_another = old.branch != new.branch || (new.branch.is_none() && old.commit != new.commit);
    let switched_to = is_another.then(named).flatten();
    let (Some(from), Some(to)) = (&old.commit, &new.commit) else {
        let count = new.commit.as_ref().and_then(|to| git.run(&["rev-list", "--count", to]));
        let commits = count.and_then(|count| count.trim_end().parse().ok()).unwrap_or_default();
        return Some(HeadMove { commits, switched_to, holds_work: commits > 0, gone: 0 });
    };
    let range = format!("{from}...{to}");
    let counts = git.run(&["rev-list", "--left-right", "--count", &range]);
    let counts = counts.unwrap_or_default();
    let mut counts = counts.split_whitespace().filter_map(|count| count.parse().ok());
    let (gone, commits) = (counts.next().unwrap_or_default(), counts.next().unwrap_or_default());
    let trees = [from, to].map(|commit| format!("{commit}^{{tree}}"));
    let trees = (commits > 0).then(|| git.run(&["rev-parse", &trees[0], &trees[1]])).flatten();
    let holds_work = trees.is_some_and(|trees| {
        let mut trees = trees.lines();
        trees.next() != trees.next()
    });
    Some(HeadMove { commits, gone, switched_to, holds_work })
}

/// The folder that all working trees of a repository share, of git's folder of one.
pub(super) fn common(folder: &Path) -> PathBuf {
    line(&folder.join("commondir")).map_or_else(|| folder.to_owned(), |it| folder.join(it))
}

/// git's folder of a working tree; a linked one and a submodule have a file that names it.
pub(super) fn folder(checkout: &Path) -> Option<PathBuf> {
    let git = checkout.join(".git");
    if disk::is_folder(&git) {
        return Some(git);
    }
    Some(checkout.join(line(&git)?.strip_prefix("gitdir: ")?))
}

fn line(file: &Path) -> Option<String> {
    let text = disk::read_text(file, LINE_BYTES).ok()??;
    Some(text.trim_end().to_owned())
}

fn packed(common: &Path, name: &str) -> Option<String> {
    let text = disk::read_text(&common.join("packed-refs"), PACKED_BYTES).ok()??;
    let of_that_name = |line: &str| {
        let (id, named) = line.split_once(' ')?;
        (named == name).then(|| id.to_owned())
    };
    text.lines().find_map(of_that_name)
}
