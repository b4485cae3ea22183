//! The paths that the agent must not change, such as the tests that judge it. crew cannot hold its hand: an
//! iteration after which such a path is not as it was when the loop began is a failure, no claim is believed
//! then, and the next prompt says which paths to put back. It rests on git: what git ignores is not seen.

use std::collections::{BTreeMap, BTreeSet};

use globset::{GlobBuilder, GlobMatcher};

/// Reads a glob over paths from the checkout's root: `*` and `?` stay within a folder, `**` crosses folders,
/// and what names a folder names all in it. The error says what is wanted.
pub fn glob(text: &str) -> Result<GlobMatcher, String> {
    if text.starts_with('/') || text.split('/').any(|part| part == ".." || part == ".") {
        return Err("paths from the root of the checkout".to_owned());
    }
    let built = GlobBuilder::new(text.trim_end_matches('/')).literal_separator(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| format!("a glob ({})", error.kind()))
}

/// Those of `paths` that a glob covers, each once and in their order. A glob that is none covers nothing: the
/// reader of the settings has refused it.
pub fn covered<'path>(globs: &[String], paths: &[&'path str]) -> Vec<&'path str> {
    let globs: Vec<GlobMatcher> = globs.iter().filter_map(|text| glob(text).ok()).collect();
    let mut covered: Vec<&str> = Vec::new();
    for path in paths {
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        let is_covered = above.chain([*path]).any(|it| globs.iter().any(|glob| glob.is_match(it)));
        if is_covered && !covered.contains(path) {
            covered.push(path);
        }
    }
    covered
}

/// What stands at protected paths that differ from the commit the loop began at: a mark of its content for each.
pub type Marks = BTreeMap<String, String>;

/// The paths that are not as they were when the loop began.
pub fn changed(began: &Marks, now: &Marks) -> Vec<String> {
    let either: BTreeSet<&String> = began.keys().chain(now.keys()).collect();
    let changed = either.into_iter().filter(|path| began.get(*path) != now.get(*path));
    changed.cloned().collect()
}

/// What the paths are held to after crew itself moved the working tree, as by a rebase: to what is there now,
/// but for those that were changed `before`.
pub fn moved(began: &Marks, before: &Marks, after: Marks) -> Marks {
    let mut held = after;
    for path in changed(began, before) {
        match began.get(&path) {
            Some(mark) => held.insert(path, mark.clone()),
            None => held.remove(&path),
        };
    }
    held
}

/// What is wrong where git told of them when the loop began, and no longer does.
pub const UNSEEN: &str = "git no longer tells what stands at the protected paths; put the repository back as the loop found it";

/// What is wrong, and what to do about it; `None` when nothing was changed.
pub fn complaint(changed: &[String]) -> Option<String> {
    const NAMED_MAX: usize = 5;
    let named: Vec<String> =
        changed.iter().take(NAMED_MAX).map(|path| format!("`{path}`")).collect();
    let more = match changed.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = format!("{}{more}", named.join(", "));
    (!changed.is_empty()).then(|| {
        format!("protected paths were changed: {named}; put them back as the loop found them")
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
            assert_eq!(covered(&[glob.to_owned()], &paths), expected, "{glob}");
        }
    }

    #[test]
    fn what_is_no_glob_or_leaves_the_checkout_is_refused() {
        for text in ["/etc/passwd", "../other", "a/./b"] {
            assert_eq!(glob(text).unwrap_err(), "paths from the root of the checkout");
        }
        assert!(glob("a[").unwrap_err().starts_with("a glob (unclosed"));
    }

    fn marks(marks: &[(&str, &str)]) -> Marks {
        marks.iter().map(|(path, mark)| ((*path).to_owned(), (*mark).to_owned())).collect()
    }

    #[test]
    fn a_path_is_changed_that_is_not_as_the_loop_found_it() {
        let began = marks(&[("mine", "1"), ("old", "1")]);
        let table = [
            (marks(&[("mine", "1"), ("old", "1")]), ""),
            (marks(&[("mine", "2"), ("old", "1")]), "mine"),
            (marks(&[("mine", "1")]), "old"),
            (marks(&[("mine", "1"), ("new", "1"), ("old", "1")]), "new"),
        ];
        for (now, expected) in table {
            assert_eq!(changed(&began, &now).join(" "), expected, "{now:?}");
        }
    }

    #[test]
    fn what_crew_itself_moves_is_nobodys_fault_and_excuses_nothing_from_before() {
        let began = marks(&[("mine", "1")]);
        let before = marks(&[("mine", "2"), ("planted", "1")]);
        let after = marks(&[("mine", "2"), ("planted", "1"), ("theirs", "1")]);
        let held = moved(&began, &before, after.clone());
        assert_eq!(held, marks(&[("mine", "1"), ("theirs", "1")]));
        assert_eq!(changed(&held, &after), ["mine", "planted"]);
    }

    #[test]
    fn a_complaint_names_five_and_counts_the_rest() {
        let paths = ["a", "b", "c", "d", "e", "f", "g"].map(str::to_owned);
        assert_eq!(complaint(&[]), None);
        assert_eq!(
            complaint(&paths).unwrap(),
            "protected paths were changed: `a`, `b`, `c`, `d`, `e` and 2 more; put them back as the loop found them"
        );
    }
}
