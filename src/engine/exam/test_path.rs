//! Which paths of a working tree are tests. The path alone says so; no file is read.

/// Folders of tests, of what they read and of what they expect.
const FOLDERS: [&str; 6] = ["test", "tests", "spec", "__tests__", "testdata", "__snapshots__"];
/// What the name of a test has before its ending, or as its ending.
const ENDINGS: [&str; 4] = ["_test.", ".test.", ".spec.", "_spec."];

/// Whether a path, from the root of the checkout, is a test or a snapshot of one (DESIGN §12).
pub fn is_test(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    let name = parts.next().unwrap_or_default();
    parts.any(|folder| FOLDERS.contains(&folder))
        || name.starts_with("test_")
        || name.rsplit_once('.').is_some_and(|(_, ending)| ending == "snap")
        || ENDINGS.iter().any(|ending| name.contains(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_known_by_its_folder_or_its_name() {
        let tests = [
            "tests/tax.rs",
            "test/tax.js",
            "pkg/tests/data/a.json",
            "src/__tests__/tax.tsx",
            "spec/tax.rb",
            "test_tax.py",
            "pkg/tax_test.go",
            "src/tax.test.ts",
            "src/tax.spec.js",
            "tax_spec.rb",
            "src/snapshots/page.snap",
            "pkg/testdata/page.html",
        ];
        let others = [
            "src/tax.rs",
            "src/testing.rs",
            "test",
            "latest.py",
            "contest/tax.py",
            "tests.md",
            "src/attests/a.rs",
            "Cargo.toml",
        ];
        assert_eq!(tests.map(is_test), [true; 12], "{tests:?}");
        assert_eq!(others.map(is_test), [false; 8], "{others:?}");
    }
}
