//! The paths that the agent must not change, such as the tests that judge it. crew cannot hold its hand: an
//! iteration after which such a path differs from what it was is a failure, and the next prompt says which.

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
}
