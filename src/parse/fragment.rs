//! A piece of a prompt as a person writes it, in a settings file or behind an option.

use std::path::{Component, Path, PathBuf};

use crate::engine::run::Fragment;

/// What stands before the name of one of crew's own fragments.
const BUILT_IN: &str = "builtin:";
/// How the names of prompts end; a word that ends so is a file's.
const ENDINGS: [&str; 3] = [".md", ".hbs", ".txt"];

/// What a piece of a prompt is by its text: crew's own after `builtin:`; a file, found from `folder`, if it is
/// one word with a `/` in it or with the ending of a prompt; else the words themselves. A file whose name has
/// blanks is written `./a name.md`. Whether the file is
/// there makes no difference: a prompt does not change its meaning when a file is gone.
pub fn fragment(text: &str, folder: &Path) -> Result<Fragment, &'static str> {
    if let Some(name) = text.strip_prefix(BUILT_IN) {
        return Ok(Fragment::BuiltIn(name.trim().to_owned()));
    }
    let ends_like_one = ENDINGS.iter().any(|ending| text.ends_with(ending));
    let is_file = if text.contains(char::is_whitespace) {
        let starts_like_one = ["./", "../", "~/"].iter().any(|start| text.starts_with(start));
        starts_like_one && ends_like_one && !text.contains('\n')
    } else {
        ends_like_one || text.contains('/')
    };
    if !is_file {
        return Ok(Fragment::Text(text.to_owned()));
    }
    if text.starts_with("~/") {
        return Err("a path without ~");
    }
    plain(&folder.join(text)).map(Fragment::File).ok_or("a path that leads somewhere")
}

/// A path without `.` and `..`; `None` where it climbs past its own beginning.
fn plain(path: &Path) -> Option<PathBuf> {
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
    fn one_word_that_looks_like_a_file_is_one_and_everything_else_is_words() {
        let file = |path: &str| Ok(Fragment::File(path.into()));
        let text = |text: &str| Ok(Fragment::Text(text.to_owned()));
        let table = [
            ("builtin:observe", Ok(Fragment::BuiltIn("observe".to_owned()))),
            ("look.md", file("/repo/.claude/look.md")),
            ("prompts/look", file("/repo/.claude/prompts/look")),
            ("./a name.hbs", file("/repo/.claude/a name.hbs")),
            ("../docs/./look.md", file("/repo/docs/look.md")),
            ("/etc/motd", file("/etc/motd")),
            ("Look at README.md", text("Look at README.md")),
            ("/review the last commit", text("/review the last commit")),
            ("./run.sh and look", text("./run.sh and look")),
            ("./a\nlook.md", text("./a\nlook.md")),
            ("Look", text("Look")),
            ("~/look.md", Err("a path without ~")),
            ("../../../../look.md", Err("a path that leads somewhere")),
        ];
        for (written, expected) in table {
            assert_eq!(fragment(written, Path::new("/repo/.claude")), expected, "{written}");
        }
    }
}
