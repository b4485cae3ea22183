//! The settings of test runners in a working tree: not held, but an end after a change of them is
//! believed less. Of a file with other uses only the runner's part counts.

use std::fmt::Write as _;

use serde_json::Value;
use toml::Table;

/// Files that are a runner's settings as a whole.
const WHOLE: [&str; 20] = [
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "noxfile.py",
    "sitecustomize.py",
    "usercustomize.py",
    ".rspec",
    "phpunit.xml",
    "phpunit.xml.dist",
    ".mocharc.json",
    ".mocharc.js",
    ".mocharc.cjs",
    ".mocharc.yml",
    ".mocharc.yaml",
    "nextest.toml",
    "ava.config.js",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    "bunfig.toml",
];
/// The beginnings of the names of such files.
const BEGINNINGS: [&str; 6] = [
    "jest.config.",
    "vitest.config.",
    "vitest.workspace.",
    "playwright.config.",
    "cypress.config.",
    "karma.conf.",
];
/// Files of which only a part is a runner's.
const PARTLY: [&str; 5] =
    ["conftest.py", "pyproject.toml", "setup.cfg", "Cargo.toml", "package.json"];
/// Keys of a `package.json` that a runner reads.
const PACKAGE_KEYS: [&str; 7] = ["jest", "vitest", "mocha", "ava", "tap", "nyc", "c8"];

/// What a conftest holds that changes how tests run, defined there or imported.
const HOOKS: [&str; 12] = [
    "def pytest_",
    "pytest_plugins",
    "pytest_collect",
    "pytest_configure",
    "pytest_exception",
    "pytest_generate",
    "pytest_itemcollected",
    "pytest_pyfunc",
    "pytest_report",
    "pytest_runtest",
    "pytest_session",
    "pytest_terminal",
];

/// Whether a file of that name may hold settings of a test runner.
pub fn may_be_settings(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    is_whole(path, name) || PARTLY.contains(&name) || name.starts_with("vite.config.")
}

/// Where a folder that is ignored as a whole may hold such a file, below the folder of the checks
/// and those above it.
pub const IN_OWN_FOLDERS: [&str; 3] =
    [".cargo/config.toml", ".cargo/config", ".config/nextest.toml"];

/// Patterns of git for the names of all such files.
pub fn patterns() -> impl Iterator<Item = String> {
    let begun = BEGINNINGS.into_iter().chain(["vite.config.", ".cargo/config"]);
    let begun = begun.map(|name| format!("{name}*"));
    let whole = WHOLE.into_iter().chain(PARTLY).map(str::to_owned);
    begun.chain(whole).map(|name| format!(":(glob)**/{name}"))
}

fn is_whole(path: &str, name: &str) -> bool {
    let is_cargos = path.ends_with(".cargo/config.toml") || path.ends_with(".cargo/config");
    WHOLE.contains(&name) || is_cargos || BEGINNINGS.iter().any(|it| name.starts_with(it))
}

/// The part of a file that a test runner obeys, as text that differs when the part does; `None` if
/// the file has none.
pub fn runner_part(path: &str, text: &str) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    // A file that is not text may still hold settings that the runner understands.
    if is_whole(path, name) || text.starts_with('\0') {
        return Some(text.to_owned());
    }
    let part = match name {
        "conftest.py" => conftest(path, text),
        "pyproject.toml" => tables(text, &[&["tool", "pytest"], &["tool", "tox"]]),
        "setup.cfg" => section(text, "[tool:pytest]"),
        "Cargo.toml" => {
            let keys: [&[&str]; 4] =
                [&["test"], &["lib", "test"], &["lib", "harness"], &["package", "autotests"]];
            tables(text, &keys)
        }
        "package.json" => package(text),
        _ if name.starts_with("vite.config.") && text.contains("test") => text.to_owned(),
        _ => String::new(),
    };
    Some(part).filter(|part| !part.is_empty())
}

/// A conftest below the tests without a hook is a test's own file.
fn conftest(path: &str, text: &str) -> String {
    let is_below = path.split('/').rev().skip(1).any(|part| part == "tests" || part == "test");
    let has_hook = HOOKS.iter().any(|hook| text.contains(hook));
    if is_below && !has_hook { String::new() } else { text.to_owned() }
}

fn tables(text: &str, keys: &[&[&str]]) -> String {
    let Ok(table) = text.parse::<Table>() else { return String::new() };
    let mut part = String::new();
    for key in keys {
        let mut value = table.get(key[0]);
        for name in &key[1..] {
            value = value.and_then(|value| value.get(name));
        }
        if let Some(value) = value {
            let _ = writeln!(part, "{} = {value:?}", key.join("."));
        }
    }
    part
}

fn section(text: &str, heading: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.trim().starts_with(heading));
    let heading = lines.next().map(str::to_owned);
    let body = lines.take_while(|line| !line.starts_with('['));
    heading.into_iter().chain(body.map(str::to_owned)).collect::<Vec<_>>().join("\n")
}

fn package(text: &str) -> String {
    let Ok(package) = serde_json::from_str::<Value>(text) else { return String::new() };
    let parts = PACKAGE_KEYS.iter().filter_map(|key| Some((key, package.get(key)?)));
    parts.fold(String::new(), |all, (key, value)| all + key + ": " + &value.to_string() + "\n")
}
