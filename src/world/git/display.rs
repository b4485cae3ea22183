//! How a person's git shows a difference on a terminal. It is asked outside every repository: an
//! agent could set a pager in its own.

use std::path::Path;

use super::command::{Command, whole};

/// Whether a person wants colours. `outside` is a folder in no repository.
pub fn has_colour(outside: &Path) -> bool {
    asked(outside, &["config", "--get-colorbool", "color.diff", "true"]) != "false"
}

/// The person's pager, "cat" for none. Without `-p` git names none to a program that it has told
/// to use none.
pub fn pager(outside: &Path) -> String {
    asked(outside, &["-p", "var", "GIT_PAGER"])
}

fn asked(outside: &Path, arguments: &[&str]) -> String {
    let ended = Command::default().run(outside, arguments, || false);
    let printed = ended.ok().and_then(whole).unwrap_or_default();
    String::from_utf8_lossy(&printed).trim_end().to_owned()
}
