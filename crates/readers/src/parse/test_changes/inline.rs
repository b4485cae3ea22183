//! The tests inside a file of the work itself: Rust's test modules, doc tests, tests in a Python or
//! JavaScript file that is not named as one. It finds text that differs when a test may differ; it
//! does not understand a language.

use crate::parse::patterns::{RUST_TEST, RUST_TEST_CONDITION, RUST_TEST_MODULE};

/// A Rust file with its new code and the old test modules at its end; `None` where they cannot be
/// separated.
pub fn with_old_test_module(now: &str, old: &str) -> Option<String> {
    let ((now_code, now_tests), (_, old_tests)) = (rust_parts(now), rust_parts(old));
    let is_apart = !RUST_TEST.is_match(&now_code);
    if is_apart && now_tests != old_tests { Some(format!("{now_code}{old_tests}")) } else { None }
}

/// Whether the code of a Rust file has become different in tests, or can no longer be separated
/// from them.
pub fn acts_otherwise_in_tests(now: &str, old: &str) -> bool {
    let ((now_code, _), (old_code, old_tests)) = (rust_parts(now), rust_parts(old));
    let was_apart = !old_tests.is_empty() && !RUST_TEST.is_match(&old_code);
    let [conditions, before] =
        [&now_code, &old_code].map(|code| RUST_TEST_CONDITION.find_iter(code).count());
    was_apart && RUST_TEST.is_match(&now_code) || conditions != before
}

/// A Rust file in two: its code, and its outermost test modules, `mod … { … }`. Where one seems to
/// end within a string, by the number of its quotes, all of it is code.
fn rust_parts(text: &str) -> (String, String) {
    let tests: String = RUST_TEST_MODULE.find_iter(text).map(|module| module.as_str()).collect();
    let plain = tests.replace("\\\\", "").replace("\\\"", "").replace("'\"'", "");
    if plain.matches('"').count() % 2 == 1 {
        return (text.to_owned(), String::new());
    }
    (RUST_TEST_MODULE.replace_all(text, "").into_owned(), tests)
}

/// The part of a file from its first test on, with the doc tests before; empty if it has none.
pub fn inline_tests(path: &str, text: &str) -> String {
    let marks: &[&str] = match path.rsplit('.').next() {
        Some("rs") => &["#[cfg(test)]", "#[test]", "#[tokio::test", "#[rstest"],
        Some("py") => &["def test_", "async def test_", "class Test"],
        Some("js" | "mjs" | "cjs" | "ts" | "mts" | "jsx" | "tsx") => {
            &["if (import.meta.vitest", "describe(", "test(", "it("]
        }
        _ => return String::new(),
    };
    let mut found = Vec::new();
    let mut doc = DocTests::default();
    let mut is_inside = false;
    for line in text.lines() {
        let bare = line.trim();
        is_inside |= marks.iter().any(|mark| bare.starts_with(mark));
        if doc.takes_line(bare) || is_inside {
            found.push(line);
        }
    }
    found.join("\n")
}

/// The tests in comments: code between fences in Rust's, a prompt with what follows in Python's.
#[derive(Default)]
struct DocTests {
    is_fenced: bool,
    is_prompted: bool,
}

impl DocTests {
    /// Takes a line; whether it is a part of a test.
    fn takes_line(&mut self, line: &str) -> bool {
        let is_end = line.is_empty() || line.starts_with("\"\"\"") || line.starts_with("'''");
        self.is_prompted = line.starts_with(">>>") || self.is_prompted && !is_end;
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let is_fence = doc.is_some_and(|doc| doc.trim_start().starts_with("```"));
        let was_fenced = self.is_fenced && doc.is_some();
        self.is_fenced = was_fenced != is_fence;
        self.is_prompted || was_fenced || is_fence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rust_file_gets_its_new_code_and_its_old_test_module() {
        let file = |code: &str, tests: &str| {
            format!(
                "{code}\n#[cfg(test)]\nmod tests {{\n    #[test]\n    fn two() {{{tests}}}\n}}\n"
            )
        };
        let (old, now) = (file("fn a() {}\n", "assert!(a())"), file("fn b() {}\n", ""));
        assert_eq!(with_old_test_module(&now, &old), Some(file("fn b() {}\n", "assert!(a())")));
        assert_eq!(with_old_test_module(&now, "fn a() {}\n"), Some("fn b() {}\n\n".to_owned()));
        assert_eq!(with_old_test_module("fn b() {}\n", &old).unwrap().matches("fn").count(), 2);
        assert_eq!(with_old_test_module(&old, &file("fn c() {}\n", "assert!(a())")), None, "equal");
        let mixed = "#[test]\nfn two() {}\nfn b() {}\n";
        assert_eq!(with_old_test_module(mixed, &old), None, "not apart");
        let shim = format!("#[cfg(test)]\nfn c() {{}}\n{now}");
        assert!(acts_otherwise_in_tests(&shim, &old) && !acts_otherwise_in_tests(&now, &old));
    }

    #[test]
    fn no_spelling_keeps_an_old_rust_test_out() {
        let old = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn two() {\n        \
                   assert!(a(\"{\\\"\"));\n    }\n}\n";
        let now = old.replace("assert!", "drop");
        for now in [
            format!("// Run with #[test].\n{now}"),
            now.replace("cfg(test)", "cfg( test )"),
            format!("{now}\nfn c() {{}}\n"),
            format!("{now}// end\n"),
        ] {
            let back = with_old_test_module(&now, old);
            let back = back.unwrap_or_default();
            assert!(back.contains("assert!") && !back.contains("drop"), "{now}");
            assert!(!acts_otherwise_in_tests(&now, old), "{now}");
        }
        for (now, expected) in [
            (now.replace("mod tests", "// It\nmod tests"), true),
            (now.replace("#[cfg(test)]\n", "#[ test ]\nfn b() {}\n"), true),
            (now.replace("a() {}", "a() { if cfg!(any(test, x)) {} }"), true),
            (now.replace("a() {}", "a() { if cfg! ( not ( test ) ) {} }"), true),
            (now.replace("a() {}", "a() { if cfg!(feature = \"test\") {} }"), false),
            (now.replace("drop", "drop(\"\n}\n\");\n    drop"), true),
        ] {
            assert_eq!(acts_otherwise_in_tests(&now, old), expected, "{now}");
        }
    }

    #[test]
    fn the_tests_in_a_file_of_the_work_are_separated_from_the_work() {
        let rust = "//! Tax.\n/// Twice.\n/// ```\n/// assert_eq!(tax::twice(1), 2);\n/// ```\npub fn twice(n: u32) -> u32 { n * 2 }\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn two() {}\n}\n";
        insta::assert_snapshot!(inline_tests("src/tax.rs", rust), @"
        /// ```
        /// assert_eq!(tax::twice(1), 2);
        /// ```
        #[cfg(test)]
        mod tests {
            #[test]
            fn two() {}
        }
        ");
        let python = "def twice(n):\n    \"\"\"\n    >>> twice(1)\n    2\n    \"\"\"\n    return n * 2\n\ndef test_twice():\n    assert twice(1) == 2\n";
        insta::assert_snapshot!(inline_tests("tax.py", python), @"
            >>> twice(1)
            2
        def test_twice():
            assert twice(1) == 2
        ");
        let script = "export const twice = (n) => n * 2\nit('doubles', () => {})\n";
        insta::assert_snapshot!(inline_tests("src/tax.ts", script), @"it('doubles', () => {})");
        for (path, text) in [
            ("src/tax.rs", "/// Twice.\npub fn twice(n: u32) -> u32 { n * 2 }\n"),
            ("tax.py", "def twice(n):\n    return latest_(n)\n"),
            ("tax.go", "func TestTwice(t *testing.T) {}\n"),
            ("src/tax.ts", "export const submit = (n) => edit(n)\n"),
        ] {
            assert_eq!(inline_tests(path, text), "", "{path}");
        }
    }
}
