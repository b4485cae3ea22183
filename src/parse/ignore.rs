//! git's ignore rules, read from their texts. The rules of a folder override those of its parents,
//! and all of them override those of no folder; the last match decides. A line that is not a rule
//! is skipped, as in git.

use std::collections::BTreeMap;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::engine::boundary::protect::IgnoreRules;

/// Parsed rules.
#[derive(Debug)]
pub struct Ignore {
    everywhere: Vec<Gitignore>,
    folders: BTreeMap<String, Gitignore>,
}

impl Ignore {
    /// Parses rules.
    pub fn read(rules: &IgnoreRules) -> Self {
        let folders = rules.folders.iter().map(|(folder, text)| (folder.clone(), file(text)));
        let everywhere = rules.everywhere.iter().map(|text| file(text));
        Self { everywhere: everywhere.collect(), folders: folders.collect() }
    }

    /// Adds the rules of a folder.
    pub fn add(&mut self, folder: &str, text: &str) {
        self.folders.insert(folder.to_owned(), file(text));
    }

    /// Whether a path from the root is ignored. Nothing inside an ignored folder can be
    /// re-included, so a walk does not enter one.
    pub fn ignores(&self, path: &str, is_folder: bool) -> bool {
        let above = path.rmatch_indices('/').map(|(at, _)| (&path[..at], &path[at + 1..]));
        let above = above.chain([("", path)]);
        let of_folders = above.filter_map(|(at, rest)| Some((self.folders.get(at)?, rest)));
        let everywhere = self.everywhere.iter().rev().map(|rules| (rules, path));
        let found = of_folders.chain(everywhere).map(|(it, rest)| it.matched(rest, is_folder));
        let decides = found.into_iter().find(|found| !found.is_none());
        decides.is_some_and(|found| found.is_ignore())
    }
}

fn file(text: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rule_decides_and_of_one_text_the_last() {
        let text = |text: &str| text.to_owned();
        let rules = IgnoreRules {
            everywhere: vec![text("*.bak\n*.mine\n"), text("!wanted.mine\n")],
            folders: [
                (text(""), text("\u{feff}# a comment\n__pycache__/\n*.log\n!kept.log\n/top.txt\n")),
                (text("tests"), text("kept.log\n/*.out\r\n!deep.bak\n")),
            ]
            .into(),
        };
        let ignore = Ignore::read(&rules);
        let table = [
            ("a.log", false, true),
            ("kept.log", false, false),
            ("tests/kept.log", false, true),
            ("tests/a.out", false, true),
            ("tests/deep/a.out", false, false),
            ("a.out", false, false),
            ("tests/deep/__pycache__", true, true),
            ("tests/__pycache__", false, false),
            ("top.txt", false, true),
            ("tests/top.txt", false, false),
            ("a.bak", false, true),
            ("tests/deep.bak", false, false),
            ("a.mine", false, true),
            ("src/wanted.mine", false, false),
        ];
        for (path, is_folder, expected) in table {
            assert_eq!(ignore.ignores(path, is_folder), expected, "{path}");
        }
    }
}
