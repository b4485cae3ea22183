//! A piece of a prompt as the user writes it, in a settings file or as an option. It reads no file.

use std::path::{Component, Path, PathBuf};

use engine::record::Fragment;

/// The prefix of the names of crew's own fragments.
const BUILT_IN: &str = "builtin:";
/// The file endings of prompts; a single word with such an ending is a file.
const ENDINGS: [&str; 3] = [".md", ".j2", ".txt"];

/// Returns whether a path is an existing file.
pub type IsThere<'a> = &'a dyn Fn(&Path) -> bool;

/// What a piece of a prompt is, judged by its text: crew's own fragment after `builtin:`; a file,
/// relative to `folder`, if it has a `/` or an extension and `is_there` says that it exists;
/// otherwise the text itself. A single word with the ending of a prompt, or `./a name.md`, is
/// always a file: its reader reports that it is missing.
///
/// # Errors
/// What should have been written instead of a path that cannot be followed.
pub fn parse_fragment(
    text: &str,
    folder: &Path,
    is_there: IsThere<'_>,
) -> Result<Fragment, &'static str> {
    if let Some(name) = text.strip_prefix(BUILT_IN) {
        return Ok(Fragment::BuiltIn(name.trim().to_owned()));
    }
    let has_extension = Path::new(text).extension().is_some_and(|ending| !ending.is_empty());
    if text.contains('\n') || !(text.contains('/') || has_extension) {
        return Ok(Fragment::Text(text.to_owned()));
    }
    let ends_like_one = ENDINGS.iter().any(|ending| text.ends_with(ending));
    let is_one_word = !text.contains(char::is_whitespace);
    let starts_like_one = ["./", "../", "~/"].iter().any(|start| text.starts_with(start));
    let is_surely_one = ends_like_one && (is_one_word || starts_like_one);
    if text.starts_with("~/") && (is_surely_one || is_one_word) {
        return Err("a path without ~");
    }
    match normalize_path(&folder.join(text)) {
        Some(path) if is_surely_one || is_there(&path) => Ok(Fragment::File(path)),
        None if is_surely_one => Err("a path within the file system"),
        Some(_) | None => Ok(Fragment::Text(text.to_owned())),
    }
}

/// A path without `.` and `..`; `None` if it leads above its start.
pub fn normalize_path(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            part => plain.push(part),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_existing_file_or_one_that_ends_like_a_prompt_is_a_file() {
        let file = |path: &str| Ok(Fragment::File(path.into()));
        let text = |text: &str| Ok(Fragment::Text(text.to_owned()));
        let table = [
            ("builtin:observe", Ok(Fragment::BuiltIn("observe".to_owned()))),
            ("gone.md", file("/repo/.claude/gone.md")),
            ("prompts/look", file("/repo/.claude/prompts/look")),
            ("prompts/gone", text("prompts/gone")),
            ("TCP/IP", text("TCP/IP")),
            ("Hurry.", text("Hurry.")),
            ("fix", text("fix")),
            ("notes.org", file("/repo/.claude/notes.org")),
            ("gone.org", text("gone.org")),
            ("a name.txt", file("/repo/.claude/a name.txt")),
            ("./a gone name.j2", file("/repo/.claude/a gone name.j2")),
            ("../docs/./gone.md", file("/repo/docs/gone.md")),
            ("/etc/motd", file("/etc/motd")),
            ("Look at README.md", text("Look at README.md")),
            ("/review the last commit", text("/review the last commit")),
            ("./run.sh and look", text("./run.sh and look")),
            ("./a\nlook.md", text("./a\nlook.md")),
            ("~/look.md", Err("a path without ~")),
            ("../../../../look.md", Err("a path within the file system")),
        ];
        let there = ["prompts/look", "fix", "Hurry.", "notes.org", "a name.txt", "/etc/motd"];
        let folder = Path::new("/repo/.claude");
        let is_there = |path: &Path| there.iter().any(|name| folder.join(name) == path);
        for (written, expected) in table {
            assert_eq!(parse_fragment(written, folder, &is_there), expected, "{written}");
        }
    }
}
