//! Whether two tasks may change the same path, by the globs that their files name. A wrong "no"
//! would let two agents overwrite each other, so it says yes wherever it is not sure.

use super::task::FleetTask;
use crate::engine::boundary::protect;

/// What makes a part of a path a pattern.
const PATTERN: [char; 5] = ['*', '?', '[', '{', '\\'];

/// The first globs of two tasks, one of each, that can cover the same path. A task that names no
/// globs overlaps with nothing.
///
/// A glob covers what it matches and everything below that, as `protect` does. So two globs are
/// compared folder by folder, until one of them ends: what is left of the other lies below it. They
/// are apart only where two names differ, where a pattern does not match the other's name, or where
/// two patterns begin or end with different letters. `**`, `[…]` and braces around a slash may
/// stand for any number of folders: from there on, the globs overlap.
pub fn overlap(one: &FleetTask, other: &FleetTask) -> Option<(String, String)> {
    let pairs =
        one.touches.iter().flat_map(|mine| other.touches.iter().map(move |its| (mine, its)));
    pairs.into_iter().find(|(mine, its)| meet(mine, its)).map(|(a, b)| (a.clone(), b.clone()))
}

fn meet(one: &str, other: &str) -> bool {
    let mut parts =
        one.trim_end_matches('/').split('/').zip(other.trim_end_matches('/').split('/'));
    parts.find_map(|(one, other)| names_meet(one, other)).unwrap_or(true)
}

/// Whether the globs are known to overlap or to be apart at these parts; `None` if both can name
/// the same folder or file, and what follows decides.
fn names_meet(one: &str, other: &str) -> Option<bool> {
    if crosses(one) || crosses(other) {
        return Some(true);
    }
    let can_meet = match (one.contains(PATTERN), other.contains(PATTERN)) {
        (false, false) => one == other,
        _ if !edges_meet(one, other) => false,
        (true, true) => true,
        (true, false) => matches(one, other),
        (false, true) => matches(other, one),
    };
    if can_meet { None } else { Some(false) }
}

/// Whether a part may match a slash, or is a piece of something that does.
fn crosses(part: &str) -> bool {
    let is_piece = || part.contains(['{', '}', '\\']) && protect::glob(part).is_err();
    part.contains("**") || part.contains('[') || is_piece()
}

fn matches(pattern: &str, name: &str) -> bool {
    protect::glob(pattern).is_ok_and(|glob| glob.is_match(name))
}

/// Whether one name can begin and end with the plain letters of both.
fn edges_meet(one: &str, other: &str) -> bool {
    let (one_lead, other_lead) = (lead(one), lead(other));
    let (one_tail, other_tail) = (tail(one), tail(other));
    (one_lead.starts_with(other_lead) || other_lead.starts_with(one_lead))
        && (one_tail.ends_with(other_tail) || other_tail.ends_with(one_tail))
}

/// The plain letters before the first pattern.
fn lead(part: &str) -> &str {
    part.split(PATTERN).next().unwrap_or_default()
}

/// The plain letters after the last pattern; the one after a backslash is plain.
fn tail(part: &str) -> &str {
    part.rsplit(['*', '?', '}', '\\']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::boundary::protect::Cover;

    fn task(touches: &[&str]) -> FleetTask {
        FleetTask {
            id: "a".parse().unwrap(),
            prompt: "do it".to_owned(),
            words: Vec::new(),
            after: Vec::new(),
            touches: touches.iter().map(|glob| (*glob).to_owned()).collect(),
            priority: 5,
            revision: String::new(),
        }
    }

    #[test]
    fn globs_overlap_unless_a_name_on_the_way_keeps_them_apart() {
        for (one, other, expected) in [
            ("src/auth/**", "src/auth/**", true),
            ("src/auth/**", "src/auth/login.rs", true),
            ("src/auth", "src/auth/login.rs", true),
            ("src/", "src/auth/*.rs", true),
            ("Cargo.lock", "*.lock", true),
            ("src/*.rs", "src/main.rs", true),
            ("src/a*", "src/*b", true),
            ("**/*.md", "src/lib.rs", true),
            ("src/{a,b}/x", "src/b/x", true),
            ("{src/a,tests}/x", "docs/x", true),
            ("x[!a]y", "x/y", true),
            ("a\\*", "a*", true),
            ("src/auth/**", "src/user/**", false),
            ("src/auth", "src/authority", false),
            ("*.lock", "Cargo.toml", false),
            ("src/*.rs", "src/*.md", false),
            ("src/a*", "src/b*", false),
            ("src/?.rs", "src/main.rs", false),
            ("src/{a,b}/x", "src/c/x", false),
            ("src/*/x", "src/a/y", false),
            ("a\\*", "ab", false),
        ] {
            assert_eq!(meet(one, other), expected, "{one} and {other}");
            assert_eq!(meet(other, one), expected, "{other} and {one}");
        }
    }

    #[test]
    fn the_first_pair_that_meets_is_named_and_no_globs_meet_nothing() {
        let found = overlap(&task(&["docs", "src/*.rs"]), &task(&["tests", "src/main.rs"]));
        assert_eq!(found, Some(("src/*.rs".to_owned(), "src/main.rs".to_owned())));
        assert_eq!(overlap(&task(&["docs"]), &task(&["tests"])), None);
        assert_eq!(overlap(&task(&[]), &task(&["**"])), None);
    }

    /// A few names, so that globs and paths meet often.
    fn path() -> impl Strategy<Value = String> {
        prop::collection::vec("[ab]{1,2}", 1..4).prop_map(|names| names.join("/"))
    }

    fn glob() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            4 => "[ab]{1,2}",
            4 => "[ab*?]{1,3}",
            1 => Just("**".to_owned()),
            1 => "[ab]?\\{[ab*]{1,2},[ab/]{0,2}\\}[ab]?",
            1 => "[ab]?\\[!?[ab]\\][ab]?",
            1 => "\\\\[ab*]",
        ];
        let globs = prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"));
        globs.prop_filter("a glob", |glob| protect::glob(glob).is_ok())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]
        #[test]
        fn globs_that_cover_one_path_overlap(one in glob(), other in glob(), path in path()) {
            let covers = |glob: &String| Cover::of(&[glob]).covers(&path);
            if covers(&one) && covers(&other) {
                prop_assert!(meet(&one, &other), "{one} and {other} cover {path}");
            }
        }

        #[test]
        fn a_glob_overlaps_itself_and_order_does_not_matter(one in glob(), other in glob()) {
            prop_assert!(meet(&one, &one), "{one}");
            prop_assert_eq!(meet(&one, &other), meet(&other, &one));
        }
    }
}
