//! Finds the command that tests a project, from the files in its folder: the project's own recipe
//! named `test` if there is one, else the usual command of each language found there. It only names
//! commands that the files prove to exist; it runs nothing.

use std::collections::BTreeMap;

use serde_json::Value;

use super::patterns::{CARGO_WORKSPACE, JUST_TEST, MAKE_RULE, PYTEST};

/// The files whose text is read.
pub const READ: &str = "justfile Justfile .justfile GNUmakefile makefile Makefile Cargo.toml package.json \
    pyproject.toml setup.cfg tox.ini go.mod requirements.txt requirements-dev.txt";
/// The files whose existence is enough.
pub const LOOKED_FOR: &str = "pnpm-lock.yaml bun.lock bun.lockb yarn.lock pytest.ini conftest.py tests/conftest.py \
    uv.lock poetry.lock Pipfile.lock pdm.lock";

/// The text of each file that was found.
type Files = BTreeMap<&'static str, String>;

/// A command that tests the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    pub run: String,
    /// The file it was found in.
    pub because: &'static str,
}

/// The result of the detection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detection {
    /// The checks to use.
    pub checks: Vec<Detected>,
    /// Commands that a recipe of the project most likely runs already.
    pub others: Vec<Detected>,
}

/// Finds the commands. `files` holds the text of each existing file of `READ`, and an empty text
/// for each existing file of `LOOKED_FOR`.
pub fn detect(files: &Files) -> Detection {
    let languages: Vec<Detected> =
        [cargo(files), node(files), python(files), go(files)].into_iter().flatten().collect();
    let mut own = [just(files), make(files, "test")].into_iter().flatten();
    match own.next() {
        Some(first) => Detection { checks: vec![first], others: own.chain(languages).collect() },
        None if languages.is_empty() => {
            Detection { checks: make(files, "check").into_iter().collect(), others: Vec::new() }
        }
        None => Detection { checks: languages, others: Vec::new() },
    }
}

fn found(run: impl Into<String>, because: &'static str) -> Detected {
    Detected { run: run.into(), because }
}

fn first_of<'a>(files: &'a Files, names: &[&'static str]) -> Option<(&'static str, &'a str)> {
    names.iter().find_map(|name| files.get(name).map(|text| (*name, text.as_str())))
}

fn just(files: &Files) -> Option<Detected> {
    let (name, text) = first_of(files, &["justfile", "Justfile", ".justfile"])?;
    let recipe = JUST_TEST.find(text)?;
    works(text, recipe.end().saturating_sub(1)).then(|| found("just test", name))
}

fn make(files: &Files, target: &str) -> Option<Detected> {
    let (name, text) = first_of(files, &["GNUmakefile", "makefile", "Makefile"])?;
    let mut rules = MAKE_RULE.captures_iter(text);
    let has_rule = rules.any(|rule| {
        let is_it = rule[1].split(' ').any(|name| name == target);
        is_it && rule.get(1).is_some_and(|targets| works(text, targets.end()))
    });
    has_rule.then(|| found(format!("make {target}"), name))
}

/// Whether a recipe has prerequisites, or lines that do something; `from` is in its first line.
fn works(text: &str, from: usize) -> bool {
    let mut lines = text[from..].lines();
    let head = lines.next().unwrap_or_default();
    let needs = head.rsplit_once(':').map_or(head, |(_, needs)| needs);
    let (needs, inline) = needs.split_once(';').unwrap_or((needs, ""));
    let needs = needs.split('#').next().unwrap_or_default();
    let is_body = |line: &&str| line.trim().is_empty() || line.starts_with([' ', '\t']);
    !needs.trim().is_empty()
        || does_something(inline)
        || lines.take_while(is_body).any(does_something)
}

/// Whether a line of shell does more than print or exit.
fn does_something(script: &str) -> bool {
    let mut outside_quotes = script.split(['"', '\'']).step_by(2).collect::<Vec<_>>().join("\"");
    for separator in ["&&", "||", ";", "|"] {
        outside_quotes = outside_quotes.replace(separator, "\n");
    }
    outside_quotes.lines().any(|command| {
        let command = command.trim_start().trim_start_matches(['@', '-', '+']).trim_start();
        let word = command.split_whitespace().next().unwrap_or_default();
        !matches!(word, "" | ":" | "true" | "false" | "exit" | "echo" | "printf")
            && !word.starts_with('#')
    })
}

fn cargo(files: &Files) -> Option<Detected> {
    let text = files.get("Cargo.toml")?;
    // If the root is a package, a plain `cargo test` would test only that package.
    let whole = CARGO_WORKSPACE.is_match(text);
    Some(found(if whole { "cargo test --workspace" } else { "cargo test" }, "Cargo.toml"))
}

fn node(files: &Files) -> Option<Detected> {
    let package: Value = serde_json::from_slice(files.get("package.json")?.as_bytes()).ok()?;
    let script = package.get("scripts")?.get("test")?.as_str()?;
    // Such as the placeholder that `npm init` writes.
    if !does_something(script) {
        return None;
    }
    let named = package.get("packageManager").and_then(Value::as_str).unwrap_or_default();
    let named = named.split('@').next().unwrap_or_default();
    let locks = [
        ("pnpm-lock.yaml", "pnpm"),
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
        ("yarn.lock", "yarn"),
    ];
    let locked = locks.iter().find(|(lock, _)| files.contains_key(lock)).map(|(_, name)| *name);
    let manager = ["npm", "pnpm", "bun", "yarn"].into_iter().find(|name| *name == named);
    let run = match manager.or(locked).unwrap_or("npm") {
        // `bun test` is bun's own runner, not the script.
        "bun" => "bun run test".to_owned(),
        manager => format!("{manager} test"),
    };
    Some(found(run, "package.json"))
}

fn python(files: &Files) -> Option<Detected> {
    let there = ["pytest.ini", "conftest.py", "tests/conftest.py"];
    let mentions =
        ["pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt", "requirements-dev.txt"];
    let says = |name: &&str| files.get(*name).is_some_and(|text| PYTEST.is_match(text));
    let because = there.into_iter().find(|name| files.contains_key(name));
    let because = because.or_else(|| mentions.into_iter().find(says))?;
    let runners = [
        ("uv.lock", "uv run pytest"),
        ("poetry.lock", "poetry run pytest"),
        ("pdm.lock", "pdm run pytest"),
        ("Pipfile.lock", "pipenv run pytest"),
    ];
    let runner = runners.iter().find(|(lock, _)| files.contains_key(lock));
    Some(found(runner.map_or("pytest", |(_, run)| *run), because))
}

fn go(files: &Files) -> Option<Detected> {
    files.get("go.mod").map(|_| found("go test ./...", "go.mod"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(files: &[(&'static str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        detect(&files).checks.into_iter().map(|check| check.run).collect()
    }

    type Row<'a> = (&'a [(&'static str, &'a str)], &'a [&'a str]);

    #[test]
    fn the_files_of_a_folder_name_its_test_command() {
        let vitest = r#"{"scripts":{"test":"vitest run"}}"#;
        let pnpm = r#"{"scripts":{"test":"a"},"packageManager":"pnpm@9.1.0"}"#;
        let default = r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#;
        let python = "[tool.pytest.ini_options]\n";
        let idle = r#"{"scripts":{"test":"echo no tests"}}"#;
        let exits = r#"{"scripts":{"test":"exit 0"}}"#;
        let quoted = r#"{"scripts":{"test":"'node_modules/.bin/x'"}}"#;
        let table: [Row<'_>; 33] = [
            (&[], &[]),
            (&[("Cargo.toml", "[package]\n")], &["cargo test"]),
            (&[("Cargo.toml", "[package]\n[workspace]\n")], &["cargo test --workspace"]),
            (&[("Cargo.toml", "[workspace.package]\n")], &["cargo test --workspace"]),
            (&[("package.json", vitest)], &["npm test"]),
            (&[("package.json", vitest), ("pnpm-lock.yaml", "")], &["pnpm test"]),
            (&[("package.json", vitest), ("bun.lock", "")], &["bun run test"]),
            (&[("package.json", vitest), ("yarn.lock", "")], &["yarn test"]),
            (&[("package.json", pnpm), ("yarn.lock", "")], &["pnpm test"]),
            (&[("package.json", default)], &[]),
            (&[("package.json", "{}")], &[]),
            (&[("package.json", "not JSON")], &[]),
            (&[("pyproject.toml", python)], &["pytest"]),
            (&[("pyproject.toml", python), ("uv.lock", "")], &["uv run pytest"]),
            (&[("pyproject.toml", "[project]\n")], &[]),
            (&[("tests/conftest.py", ""), ("poetry.lock", "")], &["poetry run pytest"]),
            (&[("go.mod", "module x\n")], &["go test ./..."]),
            (&[("go.mod", ""), ("package.json", vitest)], &["npm test", "go test ./..."]),
            (&[("Makefile", "test:\n\tgo test\n"), ("go.mod", "")], &["make test"]),
            (&[("Makefile", "all test: build\n")], &["make test"]),
            (&[("Makefile", "test := x\ntest_all:\n"), ("go.mod", "")], &["go test ./..."]),
            (&[("Makefile", "check:\n\t./check\n")], &["make check"]),
            (&[("Makefile", "check:\n")], &[]),
            (&[("Makefile", "test:\n\t@echo \"no tests; yet\"\n\t@exit 0\n")], &[]),
            (
                &[("Makefile", "test: # later\n\nall:\n\tcc x.c\n"), ("go.mod", "")],
                &["go test ./..."],
            ),
            (&[("Makefile", "test: ; ./check\n")], &["make test"]),
            (&[("justfile", "test:\n    @echo none\n\nbuild:\n    cc x.c\n")], &[]),
            (&[("package.json", idle)], &[]),
            (&[("package.json", exits)], &[]),
            (&[("package.json", quoted)], &["npm test"]),
            (&[("justfile", "@test *args='': build\n"), ("Makefile", "test:\n")], &["just test"]),
            (&[("justfile", "test name:\n"), ("Cargo.toml", "")], &["cargo test"]),
            (&[("justfile", "test := 'x'\n"), ("Cargo.toml", "")], &["cargo test"]),
        ];
        for (files, expected) in table {
            assert_eq!(runs(files), expected, "{files:?}");
        }
    }
}
