//! The remotes of a repository, by their addresses. Nobody is asked over the network.

use std::path::Path;

use super::{git, head};
use crate::world::files::disk;

/// The name and the address of the remote that a working tree pushes to: that of its branch, else
/// `origin`, else the only one. A path becomes absolute.
pub fn of(top: &Path) -> Option<(String, String)> {
    let names = names(top);
    let is_known = |name: &String| names.contains(name);
    let of_branch =
        head(top).0.and_then(|branch| line(top, &["config", &format!("branch.{branch}.remote")]));
    let of_branch = of_branch.filter(is_known);
    let origin = Some("origin".to_owned()).filter(is_known);
    let only = names.first().filter(|_| names.len() == 1).cloned();
    let name = of_branch.or(origin).or(only)?;
    let address = address(top, &name)?;
    Some((name, address))
}

/// The name of the remote that pushes to an address, which was called `before`.
pub fn at(top: &Path, url: &str, before: &str) -> Option<String> {
    let mut names = names(top);
    names.sort_by_key(|name| name != before);
    names.into_iter().find(|name| address(top, name).as_deref() == Some(url))
}

fn names(top: &Path) -> Vec<String> {
    git(top, &["remote"]).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn address(top: &Path, name: &str) -> Option<String> {
    let url = line(top, &["remote", "get-url", "--push", name])?;
    let path = disk::real_path(&top.join(&url));
    let is_path = !url.contains("://") && (!url.contains(':') || url.starts_with(['/', '.']));
    Some(path.ok().filter(|_| is_path).map_or(url, |path| path.display().to_string()))
}

fn line(top: &Path, arguments: &[&str]) -> Option<String> {
    Some(git(top, arguments)?.trim_end().to_owned())
}
