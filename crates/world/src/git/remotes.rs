//! The remotes of a checkout, by their addresses, and how crew fetches from one.

use std::path::Path;

use super::push::read_setting;
use super::{Git, read_head, run_git};
use crate::files::disk;

/// A setting as a configuration file has it. Its value may be a secret, so it never becomes a word
/// of a command.
pub(super) fn format_setting(name: &str, value: &str) -> String {
    let (section, rest) = name.split_once('.').unwrap_or((name, ""));
    let (subsection, key) = match rest.rsplit_once('.') {
        Some((subsection, key)) => (format!(" \"{}\"", quote_value(subsection)), key),
        None => (String::new(), rest),
    };
    format!("[{section}{subsection}]\n\t{key} = \"{}\"\n", quote_value(value))
}

fn quote_value(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// How crew fetches: no more than the objects and refs that are named.
pub(super) const FETCH: &str =
    "fetch --quiet --no-write-fetch-head --no-tags --no-recurse-submodules";

/// The name and the address of the remote that a working tree pushes to: that of its branch, else
/// `origin`, else the only one. A path becomes absolute.
pub fn remote_of(top: &Path) -> Option<(String, String)> {
    let names = remote_names(top);
    let of_branch =
        read_head(top).0.and_then(|branch| read_setting(top, &format!("branch.{branch}.remote")));
    let mut preferred = of_branch.into_iter().chain(["origin".to_owned()]);
    let name = match preferred.find(|name| names.contains(name)) {
        Some(name) => name,
        None if names.len() == 1 => names[0].clone(),
        None => return None,
    };
    let address = push_address(top, &name)?;
    Some((name, address))
}

/// The name of the remote that pushes to an address, which was called `before`.
pub fn remote_at(top: &Path, url: &str, before: &str) -> Option<String> {
    let mut names = remote_names(top);
    names.sort_by_key(|name| name != before);
    names.into_iter().find(|name| push_address(top, name).as_deref() == Some(url))
}

fn remote_names(top: &Path) -> Vec<String> {
    run_git(top, &["remote"]).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn push_address(top: &Path, name: &str) -> Option<String> {
    let url = Git::here(top).line(&["remote", "get-url", "--push", name])?;
    let is_path = !url.contains("://") && (!url.contains(':') || url.starts_with(['/', '.']));
    match disk::real_path(&top.join(&url)) {
        Ok(path) if is_path => Some(path.display().to_string()),
        _ => Some(url),
    }
}
