//! The tests inside a file of the work itself: Rust's test modules, doc tests, tests in a Python or
//! JavaScript file that is not named as one. It finds text that differs when a test may differ; it
//! does not understand a language.

/// The mark of what Rust compiles for its tests only.
const RUST_TESTS: &str = "#[cfg(test)]";

/// A Rust file with its new code and the old test module at its end; `None` where they cannot be
/// told apart.
pub fn with_old_test_module(now: &str, old: &str) -> Option<String> {
    let ((now_code, now_tests), (_, old_tests)) = (rust_parts(now), rust_parts(old));
    let is_apart = |code: &str| !code.contains("#[test]");
    (is_apart(now_code) && now_tests != old_tests).then(|| format!("{now_code}{old_tests}"))
}

/// Whether the code of a Rust file before its test module has become another one in tests.
pub fn acts_otherwise_in_tests(now: &str, old: &str) -> bool {
    let count = |text: &str| {
        ["cfg(test)", "cfg!(test)", "cfg(not(test))"]
            .map(|it| rust_parts(text).0.matches(it).count())
    };
    count(now) != count(old)
}

/// A Rust file in two: up to its test module, `mod … { … }` at the end of the file, and that.
fn rust_parts(text: &str) -> (&str, &str) {
    let starts = text.match_indices(RUST_TESTS).map(|(at, _)| at);
    let is_line = |at: &usize| *at == 0 || text[..*at].ends_with('\n');
    let is_module = |at: &usize| {
        let after = text[at + RUST_TESTS.len()..].lines().map(str::trim);
        let mut items = after.filter(|line| !line.is_empty() && !line.starts_with("#["));
        let is_block =
            items.next().is_some_and(|line| line.contains("mod ") && line.ends_with('{'));
        // At its own indentation rustfmt closes it, and nothing follows.
        let closing = text[*at..].find("\n}").map(|end| at + end + 2);
        is_block && closing.is_some_and(|end| text[end..].trim().is_empty())
    };
    let start = starts.filter(is_line).find(is_module).unwrap_or(text.len());
    text.split_at(start)
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
        if doc.holds(bare) || is_inside {
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
    fn holds(&mut self, line: &str) -> bool {
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
    fn the_tests_in_a_file_of_the_work_are_told_from_the_work() {
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
