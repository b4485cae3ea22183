//! Paths that stay in the tree that a command runs on, and those by which it may leave it.

use std::path::{Path, PathBuf};

use super::command::FOLDERS;
use crate::engine::text::is_word_of;

/// The first path in a command by which it may leave the tree that it runs on for the checkout: it
/// leads into it or to a folder above it. `checkout` is its absolute path, `value` that of a
/// variable, and `real` follows links.
pub fn way_to(
    checkout: &Path,
    run: &str,
    value: &dyn Fn(&str) -> Option<String>,
    real: &dyn Fn(&str) -> PathBuf,
) -> Option<String> {
    let mut before = "";
    run.split([' ', '\t', '\n', '\'', '"', '`', ';', '&', '|', '<', '>', '(', ')', '=', ',', ':'])
        .filter(|word| !word.is_empty())
        .find_map(|word| {
            let changes_to = is_word_of(FOLDERS, before) || ["cd", "pushd"].contains(&before);
            before = word;
            let path = expanded(word, value).filter(|path| path.starts_with('/'))?;
            let real = real(&path);
            let is_above = checkout.starts_with(&real) && (changes_to || real.parent().is_some());
            (is_above || real.starts_with(checkout)).then_some(path)
        })
}

/// A word with the home or the variable that it begins with; `None` where that is not known, or is
/// that of the present folder.
fn expanded(word: &str, value: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let named = word.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let (name, rest) = match (named, word.strip_prefix('$')) {
        (Some(rest), _) => ("HOME", rest),
        (None, None) => return Some(word.to_owned()),
        (None, Some(variable)) => match variable.strip_prefix('{') {
            Some(braced) => braced.split_once('}')?,
            None => variable.split_at(variable.find('/').unwrap_or(variable.len())),
        },
    };
    let value = value(name).filter(|_| !["PWD", "OLDPWD"].contains(&name))?;
    Some(value + rest)
}

/// A path below a folder, without `.` and `..`; `None` if it leads out of the tree.
pub fn path_below(folder: &str, path: &str) -> Option<String> {
    if path.starts_with('~') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_out_of_the_tree_that_a_command_runs_on_is_found() {
        let value = |name: &str| match name {
            "HOME" => Some("/w".to_owned()),
            "PWD" | "HERE" => Some("/w/repo".to_owned()),
            "PATH" => Some("/bin:/usr/bin".to_owned()),
            _ => None,
        };
        let real = |path: &str| PathBuf::from(if path == "/link" { "/w/repo/a" } else { path });
        for (run, expected) in [
            ("cd /w && cd repo && sh check.sh", Some("/w")),
            ("make -C /w/repo test", Some("/w/repo")),
            ("D=/w; sh $D/repo/check.sh", Some("/w")),
            ("sh ~/repo/check.sh", Some("/w/repo/check.sh")),
            ("cd \"$HOME\" && sh repo/check.sh", Some("/w")),
            ("sh ${HERE}/check.sh", Some("/w/repo/check.sh")),
            ("sh /link", Some("/link")),
            ("cd / && sh w/repo/check.sh", Some("/")),
            ("sh \"$PWD/check.sh\"", None),
            ("grep -r / a", None),
            ("PATH=$HOME/bin:$PATH make test > /w/log", None),
            ("cd sub && sh ../check.sh $1 ${2}", None),
        ] {
            assert_eq!(
                way_to(Path::new("/w/repo"), run, &value, &real).as_deref(),
                expected,
                "{run}"
            );
        }
    }
}
