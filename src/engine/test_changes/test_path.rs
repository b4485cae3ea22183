//! Which paths of a working tree are tests. The path alone says so; no file is read.

use crate::engine::text::is_word_of;

/// Folders of tests, of what they read and of what they expect.
const FOLDERS: &str = "test tests spec specs e2e testdata test_data fixtures snapshots \
    __tests__ __snapshots__ __mocks__ __fixtures__ __file_snapshots__ __image_snapshots__ golden expected";
/// What the name of a test has before its ending, or as its ending.
const ENDINGS: [&str; 7] =
    ["_test.", "_tests.", ".test.", ".tests.", ".spec.", "_spec.", ".approved."];
/// What is a test by its ending.
const KINDS: [&str; 4] = ["snap", "feature", "bats", "golden"];
/// Languages whose tests end in a capitalised word: `TaxTest.java`, `TaxTests.cs`.
const CAPITALISED: [&str; 8] = ["java", "kt", "cs", "fs", "scala", "groovy", "php", "swift"];

/// Whether a path, from the root of the checkout, is a test, a part of one or a snapshot of one.
/// Upper and lower case are the same, as on some disks.
pub fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_capitalised = CAPITALISED.contains(&ending)
        && (["Test", "Tests", "Spec", "IT"].iter().any(|word| stem.ends_with(word))
            || stem.strip_prefix("Test").is_some_and(|it| it.starts_with(char::is_uppercase)));
    let (path, name) = (path.to_lowercase(), name.to_lowercase());
    let mut folders = path.split('/').rev().skip(1);
    is_capitalised
        || folders.any(|folder| is_word_of(FOLDERS, folder))
        || name.starts_with("test_")
        || name == "tests.rs"
        || name == "test.rs"
        || KINDS.contains(&&*ending.to_lowercase())
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
            "src/__mocks__/api.ts",
            "spec/tax.rb",
            "test_tax.py",
            "Test_Tax.PY",
            "pkg/tax_test.go",
            "src/tax.test.ts",
            "src/tax.spec.js",
            "tax_spec.rb",
            "src/snapshots/page.snap",
            "pkg/testdata/page.html",
            "src/tax/tests.rs",
            "src/tax_tests.rs",
            "src/test/java/com/x/TaxTest.java",
            "app/TaxTest.java",
            "app/TestTax.java",
            "Shop.Tests/TaxTests.cs",
            "Tests/ShopTests/Tax.swift",
            "fixtures/order.json",
            "e2e/login.ts",
            "features/tax.feature",
            "golden/page.html",
            "out/page.approved.txt",
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
            "app/Latest.java",
            "app/Testament.java",
            "src/inspector.ts",
        ];
        assert_eq!(tests.map(is_test), [true; 26], "{tests:?}");
        assert_eq!(others.map(is_test), [false; 11], "{others:?}");
    }
}
