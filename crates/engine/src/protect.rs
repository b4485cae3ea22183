//! The paths that the agent must not change, such as the tests that judge it. crew cannot prevent a
//! change. But an iteration that leaves such a path changed since the loop began is a failure, its
//! claim is not believed, and the next prompt names the paths to restore. What git ignored when the
//! loop began is left out.

use std::collections::BTreeMap;

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::text::join_first_names;

/// The maximum number of paths that a message names.
const NAMED_MAX: usize = 5;

/// Parses a glob over paths from the checkout's root: `*` and `?` stay within a folder, `**`
/// crosses folders, and a glob that matches a folder covers everything in it. The error says what
/// was expected.
pub fn parse_glob(text: &str) -> Result<GlobMatcher, String> {
    if text.starts_with('/') || text.split('/').any(|part| part == ".." || part == ".") {
        return Err("paths from the root of the checkout".to_owned());
    }
    let built = GlobBuilder::new(text.trim_end_matches('/')).literal_separator(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| format!("a glob ({})", error.kind()))
}

/// What a list of globs covers. An invalid glob covers nothing; the reader of the settings has
/// refused it.
#[derive(Debug)]
pub struct GlobCover {
    globs: Vec<GlobMatcher>,
    /// Globs of the folders that may contain what a glob matches.
    leads: Vec<GlobMatcher>,
    /// The leading part of each glob that is a plain path.
    plain: Vec<String>,
}

impl GlobCover {
    /// Compiles the globs.
    pub fn from_globs<T: AsRef<str>>(globs: &[T]) -> Self {
        let texts = || globs.iter().map(|text| text.as_ref().trim_end_matches('/'));
        let leads = texts().flat_map(|text| {
            let parts: Vec<&str> = text.split('/').collect();
            let crosses = parts.iter().position(|it| *it == "**").map_or(parts.len(), |at| at + 1);
            let above = (1..parts.len().min(crosses + 1)).map(|end| parts[..end].join("/"));
            // Half of an alternation with a slash is not a glob; any folder may lead there then.
            above
                .filter_map(|text| parse_glob(&text).or_else(|_| parse_glob("**")).ok())
                .collect::<Vec<_>>()
        });
        let plain = texts().map(|text| {
            let parts = text.split('/').take_while(|it| !it.contains(['*', '?', '[', '{', '\\']));
            parts.collect::<Vec<_>>().join("/")
        });
        Self {
            globs: texts().filter_map(|text| parse_glob(text).ok()).collect(),
            leads: leads.collect(),
            plain: plain.collect(),
        }
    }

    /// Whether a glob matches this exact path.
    pub fn matches_exactly(&self, path: &str) -> bool {
        self.globs.iter().any(|glob| glob.is_match(path))
    }

    /// Whether a glob matches this path or a folder above it.
    pub fn covers(&self, path: &str) -> bool {
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        above.chain([path]).any(|it| self.matches_exactly(it))
    }

    /// Whether an uncovered folder may contain a covered path.
    pub fn may_lead_to(&self, folder: &str) -> bool {
        self.leads.iter().any(|glob| glob.is_match(folder))
    }

    /// Whether a link at this path would replace a folder that a glob names literally. Where a glob
    /// searches all folders, links are not followed.
    pub fn leads_plainly(&self, path: &str) -> bool {
        let within = |path: &str, folder: &str| {
            path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut plain = self.plain.iter().filter(|plain| !plain.is_empty());
        self.may_lead_to(path) && plain.any(|plain| within(path, plain) || within(plain, path))
    }

    /// Every covered path is below one of these; empty means the whole tree.
    pub fn roots(&self) -> &[String] {
        if self.plain.iter().any(String::is_empty) { &[] } else { &self.plain }
    }
}

/// The state that protected paths must keep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protected {
    /// The snapshot that they are compared with.
    pub snapshot: String,
    /// Marks of the kind and content of protected paths that no snapshot includes, by path.
    pub outside: BTreeMap<String, String>,
}

/// The message for ignored paths under a protect glob; `None` if there are none.
pub fn left_out(paths: &[String]) -> Option<String> {
    let it = if paths.len() == 1 { "it" } else { "them" };
    (!paths.is_empty()).then(|| {
        format!("not protected, because git ignores {it}: {}", join_first_names(paths, NAMED_MAX))
    })
}

/// The complaint and its remedy; `None` if nothing changed. `head` is the commit at which the loop
/// began, because a later commit may contain the change.
pub fn protected_complaint(changed: &[String], head: Option<&str>) -> Option<String> {
    (!changed.is_empty()).then(|| {
        let quoted: Vec<String> = changed.iter().map(|path| format!("`{path}`")).collect();
        let named = join_first_names(&quoted, NAMED_MAX);
        let at = head.and_then(|head| head.get(..12));
        let at = at.map(|head| format!(" (commit {head})")).unwrap_or_default();
        format!("protected paths were changed: {named}; restore them as the loop found them{at}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_covers_files_folders_and_what_is_below_them() {
        let paths = ["Cargo.lock", "tests/it.rs", "tests/deep/a.rs", "src/a.rs", "src/b/c.snap"];
        let table: [(&str, &[&str]); 8] = [
            ("Cargo.lock", &["Cargo.lock"]),
            ("tests", &["tests/it.rs", "tests/deep/a.rs"]),
            ("tests/", &["tests/it.rs", "tests/deep/a.rs"]),
            ("tests/*.rs", &["tests/it.rs"]),
            ("tests/**", &["tests/it.rs", "tests/deep/a.rs"]),
            ("**/*.snap", &["src/b/c.snap"]),
            ("*.{lock,toml}", &["Cargo.lock"]),
            ("test", &[]),
        ];
        for (glob, expected) in table {
            let cover = GlobCover::from_globs(&[glob]);
            let covered: Vec<&str> = paths.into_iter().filter(|path| cover.covers(path)).collect();
            assert_eq!(covered, expected, "{glob}");
        }
    }

    #[test]
    fn a_glob_is_searched_for_only_in_folders_that_may_contain_matches() {
        let folders = ["src", "src/deep", "tests", "tests/a", "tests/a/b"];
        let table: [(&str, &[&str], &[&str]); 8] = [
            ("Cargo.lock", &[], &["Cargo.lock"]),
            ("*.lock", &[], &[]),
            ("tests/**", &["tests"], &["tests"]),
            ("tests/*/b/*.rs", &["tests", "tests/a", "tests/a/b"], &["tests"]),
            ("tests/**/*.rs", &["tests", "tests/a", "tests/a/b"], &["tests"]),
            ("src/deep/a.rs", &["src", "src/deep"], &["src/deep/a.rs"]),
            ("**/*.snap", &folders, &[]),
            ("{src/a,tests}/*.rs", &folders, &[]),
        ];
        for (glob, expected, roots) in table {
            let cover = GlobCover::from_globs(&[glob]);
            let led: Vec<&str> =
                folders.into_iter().filter(|folder| cover.may_lead_to(folder)).collect();
            assert_eq!(
                (&led[..], cover.roots()),
                (expected, &roots.iter().map(|root| (*root).to_owned()).collect::<Vec<_>>()[..]),
                "{glob}"
            );
        }
    }

    #[test]
    fn a_link_counts_as_a_folder_only_where_a_glob_names_each_folder_above_it() {
        let cover = GlobCover::from_globs(&["lib/tests/**/*.py", "**/*.snap"]);
        let paths = ["lib", "lib/tests", "lib/tests/unit", "lib/other", "src", "lib/test"];
        let led: Vec<&str> = paths.into_iter().filter(|path| cover.leads_plainly(path)).collect();
        assert_eq!(led, ["lib", "lib/tests", "lib/tests/unit"]);
    }

    #[test]
    fn an_invalid_glob_or_one_that_leaves_the_checkout_is_refused() {
        for text in ["/etc/passwd", "../other", "a/./b"] {
            assert_eq!(parse_glob(text).unwrap_err(), "paths from the root of the checkout");
        }
        assert!(parse_glob("a[").unwrap_err().starts_with("a glob (unclosed"));
    }

    #[test]
    fn a_complaint_names_five_paths_and_counts_the_rest() {
        let paths = ["a", "b", "c", "d", "e", "f", "g"].map(str::to_owned);
        assert_eq!(protected_complaint(&[], None), None);
        assert_eq!(
            protected_complaint(&paths, None).unwrap(),
            "protected paths were changed: `a`, `b`, `c`, `d`, `e` and 2 more; restore them as the loop found them"
        );
    }

    #[test]
    fn ignored_paths_that_are_not_protected_are_named() {
        assert_eq!(left_out(&[]), None);
        let paths = ["tests/__pycache__/", "tests/a.log"].map(str::to_owned);
        assert_eq!(
            left_out(&paths[..1]).unwrap(),
            "not protected, because git ignores it: tests/__pycache__/"
        );
        assert_eq!(
            left_out(&paths).unwrap(),
            "not protected, because git ignores them: tests/__pycache__/, tests/a.log"
        );
    }
}
