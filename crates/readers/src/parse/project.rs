//! Finds the command that tests a project, from the files in its folder: the project's own recipe
//! named `test` if there is one, else the usual command of each language found there. It only names
//! commands that the files prove to exist; it runs nothing.

use derive_getters::Getters;
use std::collections::BTreeMap;

use serde_json::Value;

use super::patterns::{CARGO_WORKSPACE, JUST_TEST, MAKE_RULE, PYTEST, RAKE_TEST};
use engine::text::words_of;

/// The files whose text is read, in addition to Python's tests.
const READ: &str = "justfile Justfile .justfile GNUmakefile makefile Makefile Cargo.toml package.json \
    pyproject.toml setup.cfg tox.ini requirements.txt requirements-dev.txt Rakefile composer.json CMakeLists.txt manage.py";
/// The other files with fixed names, which are only checked for existence.
const SEEN: &str = "go.mod pom.xml mvnw gradlew .rspec spec/spec_helper.rb Gemfile test/test_helper.rb phpunit.xml \
    phpunit.xml.dist phpunit.dist.xml pnpm-lock.yaml bun.lock bun.lockb yarn.lock uv.lock poetry.lock pdm.lock \
    Pipfile.lock pytest.ini conftest.py tests/conftest.py tests/__init__.py test/__init__.py";
/// The folders whose file names are read; the first is the project's own.
pub const FOLDERS: [&str; 4] = ["", "tests/", "test/", "spec/"];

/// The usual commands of the languages except node and Python.
const TOOLS: &str = include_str!("project_tools.txt");

/// The signs that a project uses pytest.
const PYTEST_MARKS: &str = "pytest.ini|conftest.py|tests/conftest.py|pyproject.toml:pytest|setup.cfg:pytest|\
    tox.ini:pytest|requirements.txt:pytest|requirements-dev.txt:pytest";

/// A project's files by path, with their text if it is read.
type Files = BTreeMap<String, String>;

/// A command that tests the project.
#[derive(Getters, Debug, Clone, PartialEq, Eq)]
pub struct DetectedCommand {
    run: String,
    /// The file it was found in.
    because: String,
}

/// The result of the detection.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq)]
pub struct Detection {
    /// The checks to use.
    checks: Vec<DetectedCommand>,
    /// Commands that a recipe of the project most likely runs already.
    others: Vec<DetectedCommand>,
}

/// The files that are searched for by their full name.
pub fn fixed_names() -> impl Iterator<Item = &'static str> {
    words_of(READ).chain(words_of(SEEN))
}

/// Whether the contents of this file say how a project is tested.
pub fn is_read(path: &str) -> bool {
    words_of(READ).any(|name| name == path) || is_python_test(path)
}

/// Finds the commands. `files` has the names in `FOLDERS`, with the contents of each file that is
/// read.
pub fn detect_commands(files: &Files) -> Detection {
    let mut tools = TOOLS.split("\n\n").map(|rows| detect_tool(files, rows));
    let own = [tools.next().flatten(), detect_node(files), detect_python(files)].into_iter();
    let languages: Vec<DetectedCommand> = own.chain(tools).flatten().collect();
    let mut own = [detect_just(files), detect_make(files, "test")].into_iter().flatten();
    match own.next() {
        Some(first) => Detection { checks: vec![first], others: own.chain(languages).collect() },
        None if languages.is_empty() => Detection {
            checks: detect_make(files, "check").into_iter().collect(),
            others: Vec::new(),
        },
        None => Detection { checks: languages, others: Vec::new() },
    }
}

impl DetectedCommand {
    fn new(run: impl Into<String>, because: &str) -> Self {
        Self { run: run.into(), because: because.to_owned() }
    }
}

fn detect_tool(files: &Files, rows: &str) -> Option<DetectedCommand> {
    rows.lines().filter_map(|row| row.split_once(" = ")).find_map(|(marks, run)| {
        let marks: Option<Vec<_>> = words_of(marks).map(|mark| find_marked(files, mark)).collect();
        Some(DetectedCommand::new(run, marks?.first()?))
    })
}

/// The file that has one of the marks.
fn find_marked<'a>(files: &'a Files, marks: &str) -> Option<&'a String> {
    marks.split('|').find_map(|mark| {
        let (name, part) = mark.split_once(':').unwrap_or((mark, ""));
        let mut found =
            files.iter().filter(|(path, text)| has_name(path, name) && contains_part(text, part));
        found.next().map(|(path, _)| path)
    })
}

/// Whether a file has this name; a name with a star is the end of one in the project's own folder.
fn has_name(path: &str, name: &str) -> bool {
    match name.strip_prefix('*') {
        Some(ending) => path.ends_with(ending) && !path.contains('/'),
        None => path == name,
    }
}

/// Whether a file contains this part: a table, a separate word, a task, or any string.
fn contains_part(text: &str, part: &str) -> bool {
    match part {
        "[workspace]" => CARGO_WORKSPACE.is_match(text),
        "pytest" => PYTEST.is_match(text),
        "test" => RAKE_TEST.is_match(text) || has_script(text),
        _ => text.contains(part),
    }
}

/// Whether a package has a script `test` that does something, unlike the one of `npm init`.
fn has_script(package: &str) -> bool {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    let script = &package["scripts"]["test"];
    let lines = script.as_array().map_or(std::slice::from_ref(script), Vec::as_slice);
    lines.iter().filter_map(Value::as_str).any(does_something)
}

/// The word of the first existing lock file in a list of `file:word`.
fn find_lock<'a>(files: &Files, locks: &'a str) -> Option<&'a str> {
    let mut locks = words_of(locks).filter_map(|lock| lock.split_once(':'));
    locks.find(|(lock, _)| files.contains_key(*lock)).map(|(_, word)| word)
}

fn detect_just(files: &Files) -> Option<DetectedCommand> {
    let name = find_marked(files, "justfile|Justfile|.justfile")?;
    let text = &files[name];
    let recipe = JUST_TEST.find(text)?;
    let is_useful = recipe_does_something(text, recipe.end().saturating_sub(1));
    if is_useful { Some(DetectedCommand::new("just test", name)) } else { None }
}

fn detect_make(files: &Files, target: &str) -> Option<DetectedCommand> {
    let name = find_marked(files, "GNUmakefile|makefile|Makefile")?;
    let text = &files[name];
    let has_rule = MAKE_RULE.captures_iter(text).any(|rule| {
        rule[1].split(' ').any(|name| name == target)
            && rule.get(1).is_some_and(|targets| recipe_does_something(text, targets.end()))
    });
    if has_rule { Some(DetectedCommand::new(format!("make {target}"), name)) } else { None }
}

/// Whether a recipe has prerequisites, or lines that do something; `from` is in its first line.
fn recipe_does_something(text: &str, from: usize) -> bool {
    let mut lines = text[from..].lines();
    let head = lines.next().unwrap_or_default();
    let needs = head.rsplit_once(':').map_or(head, |(_, needs)| needs);
    let (needs, inline) = needs.split_once(';').unwrap_or((needs, ""));
    let needs = needs.split('#').next().unwrap_or_default();
    let mut body = lines.take_while(|line| line.trim().is_empty() || line.starts_with([' ', '\t']));
    !needs.trim().is_empty() || does_something(inline) || body.any(does_something)
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

fn detect_node(files: &Files) -> Option<DetectedCommand> {
    let package = files.get("package.json").filter(|package| has_script(package))?;
    let package: Value = serde_json::from_str(package).ok()?;
    let named = package["packageManager"].as_str().and_then(|named| named.split('@').next());
    let manager = ["npm", "pnpm", "bun", "yarn"].into_iter().find(|name| Some(*name) == named);
    let locked = find_lock(files, "pnpm-lock.yaml:pnpm bun.lock:bun bun.lockb:bun yarn.lock:yarn");
    // `bun test` is bun's own runner, not the script.
    let manager = manager.or(locked).unwrap_or("npm").replace("bun", "bun run");
    Some(DetectedCommand::new(format!("{manager} test"), "package.json"))
}

/// Whether `unittest` finds a test here by its name.
fn is_python_test(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    folder != "spec" && name.strip_suffix(".py").is_some_and(|name| name.starts_with("test_"))
}

fn detect_python(files: &Files) -> Option<DetectedCommand> {
    let runner = find_lock(files, "uv.lock:uv poetry.lock:poetry pdm.lock:pdm Pipfile.lock:pipenv");
    let runner = runner.map_or_else(String::new, |runner| format!("{runner} run "));
    if let Some(because) = find_marked(files, PYTEST_MARKS) {
        return Some(DetectedCommand::new(format!("{runner}pytest"), because));
    }
    if let Some(because) = find_marked(files, "manage.py:django") {
        return Some(DetectedCommand::new(format!("{runner}python3 manage.py test"), because));
    }
    let (test, _) = files.iter().find(|(path, _)| is_python_test(path))?;
    let tests = files.iter().filter(|(path, _)| is_python_test(path));
    let tests: String = tests.map(|(_, text)| text.as_str()).collect();
    let module = match test.rsplit_once('/') {
        _ if tests.contains("import pytest") || !tests.contains("TestCase") => "pytest".to_owned(),
        // Without it `unittest` does not look into the folder.
        Some((folder, _)) if !files.contains_key(&format!("{folder}/__init__.py")) => {
            format!("unittest discover -s {folder}")
        }
        _ => "unittest".to_owned(),
    };
    Some(DetectedCommand::new(format!("{runner}python3 -m {module}"), test))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let files = files.collect();
        detect_commands(&files).checks.into_iter().map(|check| check.run).collect()
    }

    type Row<'a> = (&'a [(&'static str, &'a str)], &'a [&'a str]);

    #[test]
    fn the_files_of_a_folder_determine_its_test_command() {
        let vitest = r#"{"scripts":{"test":"vitest run"}}"#;
        let pnpm = r#"{"scripts":{"test":"a"},"packageManager":"pnpm@9.1.0"}"#;
        let default = r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#;
        let python = "[tool.pytest.ini_options]\n";
        let idle = r#"{"scripts":{"test":"echo no tests"}}"#;
        let exits = r#"{"scripts":{"test":"exit 0"}}"#;
        let quoted = r#"{"scripts":{"test":"'node_modules/.bin/x'"}}"#;
        let table: [Row<'_>; 34] = [
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
            (&[("Cargo.toml", ""), ("package.json", vitest)], &["cargo test", "npm test"]),
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

    #[test]
    fn a_project_without_a_recipe_is_tested_with_the_usual_command_of_its_language() {
        let case = "class Case(unittest.TestCase):\n";
        let mocked = "from unittest import mock\ndef test_add(): pass\n";
        let both = format!("import pytest\n{case}");
        let django = "import django\n";
        let ctest = "enable_testing()\n";
        let cmake =
            "cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure";
        let table: [Row<'_>; 33] = [
            (&[("test_todo.py", case)], &["python3 -m unittest"]),
            (&[("test_todo.py", "def test_add(): pass\n")], &["python3 -m pytest"]),
            (&[("test_todo.py", mocked)], &["python3 -m pytest"]),
            (&[("test_todo.py", &both)], &["python3 -m pytest"]),
            (&[("test_todo.py", case), ("requirements.txt", "pytest==8\n")], &["pytest"]),
            (&[("test_todo.py", case), ("uv.lock", "")], &["uv run python3 -m unittest"]),
            (&[("tests/test_a.py", case), ("tests/__init__.py", "")], &["python3 -m unittest"]),
            (&[("tests/test_a.py", case)], &["python3 -m unittest discover -s tests"]),
            (&[("test/test_a.py", case)], &["python3 -m unittest discover -s test"]),
            (&[("manage.py", django), ("tests/test_a.py", case)], &["python3 manage.py test"]),
            (&[("manage.py", "import flask\n"), ("test_a.py", case)], &["python3 -m unittest"]),
            (&[("todo.py", "")], &[]),
            (&[("pom.xml", "")], &["mvn -q test"]),
            (&[("pom.xml", ""), ("mvnw", "")], &["./mvnw -q test"]),
            (&[("build.gradle", "")], &["gradle test"]),
            (&[("build.gradle.kts", ""), ("gradlew", "")], &["./gradlew test"]),
            (&[("shop.sln", "")], &["dotnet test"]),
            (&[("Shop.csproj", ""), ("tests/Tests.csproj", "")], &["dotnet test"]),
            (&[("spec/spec_helper.rb", ""), ("Gemfile", "")], &["bundle exec rspec"]),
            (&[(".rspec", "")], &["rspec"]),
            (&[("Rakefile", "task :test\n"), ("Gemfile", "")], &["bundle exec rake test"]),
            (&[("Rakefile", "task(\"test\" => :unit)\n")], &["rake test"]),
            (&[("Rakefile", "Minitest::TestTask.create\n")], &["rake test"]),
            (&[("Rakefile", "load_tasks\n"), ("test/test_helper.rb", "")], &["bin/rails test"]),
            (&[("Rakefile", "task :test_all\ntask \"test:unit\"\n")], &[]),
            (&[("Rakefile", "task :build\n"), ("Gemfile", "")], &[]),
            (&[("Rakefile", "Bundler.require(:default, :test)\n")], &[]),
            (&[("composer.json", r#"{"scripts": {"test": "pest"}}"#)], &["composer test"]),
            (
                &[("composer.json", r#"{"scripts": {"test": ["@lint", "pest"]}}"#)],
                &["composer test"],
            ),
            (&[("composer.json", r#"{"autoload": {"test": "x"}}"#)], &[]),
            (&[("composer.json", "{}"), ("phpunit.xml.dist", "")], &["vendor/bin/phpunit"]),
            (&[("CMakeLists.txt", ctest)], &[cmake]),
            (&[("CMakeLists.txt", "project(x)\n")], &[]),
        ];
        for (files, expected) in table {
            assert_eq!(runs(files), expected, "{files:?}");
        }
    }

    #[test]
    fn each_file_that_implies_a_test_command_is_searched_for() {
        let rows = TOOLS.lines().filter_map(|row| row.split_once(" = "));
        let marks = rows.flat_map(|(marks, _)| marks.split([' ', '|']));
        for name in marks.map(|mark| mark.split(':').next().unwrap_or_default()) {
            assert!(name.starts_with('*') || fixed_names().any(|fixed| fixed == name), "{name}");
        }
    }
}
