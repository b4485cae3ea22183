//! The parts of a file that run or configure checks. Of a manifest: scripts, and the settings of
//! runners and linters; dependencies and the rest of it are work. Of the work's own files: Rust's
//! test modules, doc tests, tests in a Python or JavaScript file that is not named as one. It finds
//! text that differs when a test may differ; it does not understand a language.

use serde_json::{Map, Value};

use crate::parse::patterns::{RUST_TEST, RUST_TEST_CONDITION, RUST_TEST_MODULE};
use engine::text::{is_word_of, words_of};

/// Keys of a package.json, from its root.
const PACKAGE: &str = "scripts jest vitest mocha ava tap nyc c8 xo eslintConfig prettier lint-staged husky \
    wireit workspaces standard";
/// Keys of a Cargo.toml, with the tables they are in.
const CARGO: &str = "test lib.test lib.harness lib.doctest package.autotests profile.test lints \
    workspace.lints alias";
/// Tables below `tool` of a pyproject.toml that describe the build and its dependencies, not the
/// checks.
const BUILD_TOOLS: &str = "poetry uv setuptools setuptools_scm flit maturin hatch pdm rye cibuildwheel bumpversion \
    commitizen semantic_release scikit-build";
/// Keys of deno.json and composer.json.
const DENO: &str = "tasks test lint fmt";
const COMPOSER: &str = "scripts";
/// Prefixes of the setup.cfg headings under which a tool is configured.
const SECTIONS: &str = "[tool: [coverage: [flake8 [mypy [tox [isort [pycodestyle [aliases";

/// Prefixes of a runner's settings files that name files to load.
const SETTINGS: &str = "jest.config. vitest.config. .mocharc. ava.config. playwright.config. cypress.config. \
    pytest. .pytest. tox.ini .rspec .taprc bunfig.toml package.json pyproject.toml setup.cfg";

/// Prefixes of the names of recipe files, in lower case, and the words with which a line includes a
/// file.
const RECIPES: &str = "makefile gnumakefile justfile .justfile";
const INCLUDES: &str = "include -include sinclude import import? mod mod?";

/// Whether a file of that name may name files that a runner loads.
pub fn names_files(name: &str) -> bool {
    words_of(SETTINGS).any(|start| name.starts_with(start)) || is_recipe(name)
}

fn is_recipe(name: &str) -> bool {
    words_of(RECIPES).any(|start| name.to_lowercase().starts_with(start))
}

/// The words of such a file that may be files: paths, and modules after `-p`.
pub fn words_of_settings(name: &str, text: &str) -> Vec<String> {
    let text = match running_parts(name, text) {
        Some(mut parts) => {
            parts.as_object_mut().map(|parts| parts.remove("scripts"));
            parts.to_string()
        }
        None if is_recipe(name) => {
            text.lines().filter(|line| is_include(line)).collect::<Vec<_>>().join("\n")
        }
        None => text.to_owned(),
    };
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && !"_-./".contains(c)).collect();
    let modules = words.windows(2).filter(|pair| pair[0] == "-p").map(|pair| pair[1]);
    let modules = modules.map(|module| format!("{}.py", module.replace('.', "/")));
    words.iter().map(|word| word.trim_start_matches('/').to_owned()).chain(modules).collect()
}

fn is_include(line: &str) -> bool {
    line.split_whitespace().next().is_some_and(|word| is_word_of(INCLUDES, word))
}

/// The format of a manifest.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Json,
    Toml,
    Sections,
}

/// Whether the parts that run or configure checks are equal in two texts of one manifest. A text
/// that cannot be read equals only itself.
pub fn same_running_parts(path: &str, one: &str, other: &str) -> bool {
    one == other
        || running_parts(path, one).is_some_and(|parts| Some(parts) == running_parts(path, other))
}

/// The manifest `now` with its running parts replaced by those of `then`; `None` if one of them
/// cannot be read.
pub fn put_running_parts_back(path: &str, now: &str, then: &str) -> Option<String> {
    let format = format_of(path)?;
    if format == Format::Sections {
        let (rest, _) = split_sections(now);
        return Some([rest, split_sections(then).1].join("\n"));
    }
    let (mut now, then) = (parse_manifest(format, now)?, parse_manifest(format, then)?);
    let mut keys = keys_of(path, &now);
    keys.extend(keys_of(path, &then));
    for key in keys {
        set_member(&mut now, &key, get_member(&then, &key).cloned());
    }
    match format {
        Format::Json => serde_json::to_string_pretty(&now).ok(),
        _ => toml::to_string(&now).ok(),
    }
}

fn running_parts(path: &str, text: &str) -> Option<Value> {
    let format = format_of(path)?;
    if format == Format::Sections {
        return Some(Value::String(split_sections(text).1));
    }
    let manifest = parse_manifest(format, text)?;
    let mut parts = Map::new();
    for key in keys_of(path, &manifest) {
        if let Some(part) = get_member(&manifest, &key).cloned() {
            parts.insert(key, part);
        }
    }
    Some(Value::Object(parts))
}

fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_lowercase()
}

fn format_of(path: &str) -> Option<Format> {
    Some(match name_of(path).rsplit_once('.')? {
        ("setup", "cfg") => Format::Sections,
        (_, "toml") => Format::Toml,
        (_, "json" | "jsonc") => Format::Json,
        _ => return None,
    })
}

fn parse_manifest(format: Format, text: &str) -> Option<Value> {
    let value: Value = match format {
        Format::Json => serde_json::from_slice(text.as_bytes()).ok()?,
        _ => toml::from_str(text).ok()?,
    };
    if value.is_object() { Some(value) } else { None }
}

/// The keys of the parts, with the tables they are in before a point.
fn keys_of(path: &str, manifest: &Value) -> Vec<String> {
    let keys = match &*name_of(path) {
        "package.json" => PACKAGE,
        "cargo.toml" => CARGO,
        "composer.json" => COMPOSER,
        "pyproject.toml" => {
            let tools = manifest.get("tool").and_then(Value::as_object);
            let names = tools.into_iter().flat_map(Map::keys);
            let names = names.filter(|name| !is_word_of(BUILD_TOOLS, name));
            let more = ["tool.hatch.envs", "tool.pdm.scripts", "project.entry-points"];
            let names = names.map(|name| format!("tool.{name}"));
            return names.chain(more.map(str::to_owned)).collect();
        }
        _ => DENO,
    };
    words_of(keys).map(str::to_owned).collect()
}

fn get_member<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    key.split('.').try_fold(value, |value, name| value.get(name))
}

fn set_member(value: &mut Value, key: &str, to: Option<Value>) {
    let (tables, name) = key.rsplit_once('.').unwrap_or(("", key));
    let mut table = value;
    for name in tables.split('.').filter(|name| !name.is_empty()) {
        let Some(map) = table.as_object_mut() else { return };
        if to.is_none() && !map.contains_key(name) {
            return;
        }
        table = map.entry(name).or_insert_with(|| Value::Object(Map::new()));
    }
    let Some(map) = table.as_object_mut() else { return };
    match to {
        Some(value) => drop(map.insert(name.to_owned(), value)),
        None => drop(map.remove(name)),
    }
}

/// A setup.cfg in two parts: without the sections that configure a tool, and only those sections.
fn split_sections(text: &str) -> (String, String) {
    let (mut rest, mut tools, mut is_tool) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        if line.starts_with('[') {
            is_tool = words_of(SECTIONS).any(|start| line.starts_with(start));
        }
        if is_tool { tools.push(line) } else { rest.push(line) }
    }
    (rest.join("\n"), tools.join("\n"))
}

/// A Rust file with its new code and the old test modules at its end; `None` if they cannot be
/// separated.
pub fn with_old_test_module(now: &str, old: &str) -> Option<String> {
    let ((now_code, now_tests), (_, old_tests)) = (rust_parts(now), rust_parts(old));
    let is_apart = !RUST_TEST.is_match(&now_code);
    if is_apart && now_tests != old_tests { Some(format!("{now_code}{old_tests}")) } else { None }
}

/// Whether the code of a Rust file now behaves differently in tests, or can no longer be separated
/// from them.
pub fn acts_otherwise_in_tests(now: &str, old: &str) -> bool {
    let ((now_code, _), (old_code, old_tests)) = (rust_parts(now), rust_parts(old));
    let was_apart = !old_tests.is_empty() && !RUST_TEST.is_match(&old_code);
    let [conditions, before] =
        [&now_code, &old_code].map(|code| RUST_TEST_CONDITION.find_iter(code).count());
    was_apart && RUST_TEST.is_match(&now_code) || conditions != before
}

/// A Rust file in two: its code, and its outermost test modules, `mod … { … }`. If the number of
/// quotes shows that a module seems to end within a string, everything counts as code.
fn rust_parts(text: &str) -> (String, String) {
    let tests: String = RUST_TEST_MODULE.find_iter(text).map(|module| module.as_str()).collect();
    let plain = tests.replace("\\\\", "").replace("\\\"", "").replace("'\"'", "");
    if plain.matches('"').count() % 2 == 1 {
        return (text.to_owned(), String::new());
    }
    (RUST_TEST_MODULE.replace_all(text, "").into_owned(), tests)
}

/// The part of a file from its first test on, with the doc tests before it; empty if it has no
/// test.
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

/// The tests in comments: code between fences in Rust, a prompt and its output in Python.
#[derive(Default)]
struct DocTests {
    is_fenced: bool,
    is_prompted: bool,
}

impl DocTests {
    /// Reads a line; returns whether it is part of a test.
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
    fn the_parts_that_run_checks_are_put_back_and_the_rest_stays() {
        let now = r#"{"name": "a", "scripts": {"test": "true"}, "dependencies": {"b": "1"}}"#;
        let then = r#"{"name": "a", "scripts": {"test": "jest"}, "jest": {"bail": true}}"#;
        let back = put_running_parts_back("web/package.json", now, then).unwrap();
        insta::assert_snapshot!(back, @r#"
        {
          "dependencies": {
            "b": "1"
          },
          "jest": {
            "bail": true
          },
          "name": "a",
          "scripts": {
            "test": "jest"
          }
        }
        "#);
        let now = "[project]\nname = \"a\"\ndependencies = [\"b\"]\n[tool.pytest.ini_options]\naddopts = \"-k nothing\"\n[tool.poetry]\nname = \"c\"\n";
        let then = "[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = \"\"\n";
        let back = put_running_parts_back("pyproject.toml", now, then).unwrap();
        insta::assert_snapshot!(back, @r#"
        [project]
        dependencies = ["b"]
        name = "a"

        [tool.poetry]
        name = "c"

        [tool.pytest.ini_options]
        addopts = ""
        "#);
        let now = "[package]\nname = \"a\"\nautotests = false\n[dependencies]\nb = \"1\"\n[[test]]\nname = \"x\"\n";
        let then = "[package]\nname = \"a\"\n";
        let back = put_running_parts_back("Cargo.toml", now, then).unwrap();
        insta::assert_snapshot!(back, @r#"
        [dependencies]
        b = "1"

        [package]
        name = "a"
        "#);
        let now = "[metadata]\nname = a\n[tool:pytest]\naddopts = -k nothing\n";
        let then = "[metadata]\nname = b\n[tool:pytest]\naddopts =\n";
        insta::assert_snapshot!(put_running_parts_back("setup.cfg", now, then).unwrap(), @"
        [metadata]
        name = a
        [tool:pytest]
        addopts =
        ");
    }

    #[test]
    fn settings_name_the_files_that_a_runner_loads() {
        for (name, text, expected) in [
            ("package.json", r#"{"main": "m.js", "jest": {"setupFiles": ["./q.js"]}}"#, "./q.js"),
            ("jest.config.js", "setupFiles: ['<rootDir>/q.js']", "q.js"),
            ("pytest.ini", "[pytest]\naddopts = -p q.r", "q/r.py"),
            ("Makefile", "-include mk/rules.inc\nall:\n\tsh m.js\n", "mk/rules.inc"),
            ("justfile", "mod more 'tasks/more'\ntest: more::all\n", "tasks/more"),
        ] {
            let words = words_of_settings(name, text);
            assert!(names_files(name) && words.iter().any(|word| word == expected), "{words:?}");
            assert!(!words.iter().any(|word| word == "m.js"), "{words:?}");
        }
    }

    #[test]
    fn only_a_change_to_the_parts_that_run_checks_counts() {
        for (path, one, other, expected) in [
            ("package.json", r#"{"version": "1"}"#, r#"{"version": "2"}"#, true),
            ("package.json", r#"{"scripts": {}}"#, r#"{"scripts": {"test": "x"}}"#, false),
            ("Cargo.toml", "[dependencies]\na = \"1\"", "[dependencies]\nb = \"1\"", true),
            ("Cargo.toml", "", "[lints.clippy]\nall = \"allow\"", false),
            ("pyproject.toml", "", "[tool.uv]\nx = 1", true),
            ("pyproject.toml", "", "[tool.ruff]\nx = 1", false),
            ("package.json", "{", "{{", false),
        ] {
            assert_eq!(same_running_parts(path, one, other), expected, "{path}: {other}");
        }
    }
}

#[cfg(test)]
mod inline_tests {
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
    fn the_old_rust_tests_are_restored_however_they_are_spelled() {
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
