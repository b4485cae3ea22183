//! The tree itself: rooms held apart, sizes kept, and pages that say what the code says. Reads the
//! source as text, so it holds the habits a compiler does not see.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::Value;

use crate::sandbox::checkout;

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;
/// Which rooms each room may name. What is not listed is the frame around them.
const ARROWS: [(&str, &[&str]); 9] = [
    ("engine", &["engine"]),
    ("parse", &["parse", "engine"]),
    ("agents", &["agents", "engine", "parse"]),
    ("prompts", &["prompts", "engine", "parse"]),
    ("report", &["report", "engine"]),
    ("world", &["world", "engine", "parse"]),
    ("drive", &["drive", "agents", "engine", "parse", "prompts", "world"]),
    ("demo", &["demo", "world"]),
    (
        "cmd",
        &[
            "cmd", "agents", "demo", "drive", "engine", "parse", "prompts", "report", "world",
            "cli", "exit",
        ],
    ),
];

/// A text file of the checkout, by its path from the root.
struct File {
    path: String,
    text: String,
}

impl File {
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

fn read(path: &str) -> String {
    let file = checkout().join(path);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
}

/// Every text file of the tree, built and fetched ones left out.
fn tree() -> Vec<File> {
    let mut folders = vec![checkout().to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let is_ours = ![".git", ".claude", "target"].contains(&name.as_str());
            if !is_ours || name.ends_with(".pending-snap") {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if let Ok(text) = fs::read_to_string(entry.path()) {
                files.push(File { path: from_root(&entry.path()), text });
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

fn from_root(path: &Path) -> String {
    let path: PathBuf = path.strip_prefix(checkout()).unwrap().into();
    path.display().to_string()
}

fn source(folder: &str) -> Vec<File> {
    let is_source = |file: &File| {
        Path::new(&file.path).extension() == Some("rs".as_ref()) && file.path.starts_with(folder)
    };
    tree().into_iter().filter(is_source).collect()
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

/// The first group of every match.
fn found<'text>(regex: &str, text: &'text str) -> BTreeSet<&'text str> {
    pattern(regex).captures_iter(text).map(|found| found.get(1).unwrap().as_str()).collect()
}

/// What stands between two marks.
fn between<'text>(text: &'text str, from: &str, to: &str) -> &'text str {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("{from:?} is not there"));
    rest.split_once(to).unwrap_or_else(|| panic!("{to:?} does not follow {from:?}")).0
}

#[track_caller]
fn none(complaints: &[String], rule: &str) {
    assert!(complaints.is_empty(), "{rule}:\n  {}", complaints.join("\n  "));
}

#[test]
fn each_room_names_only_the_rooms_it_may_know() {
    let mut complaints = Vec::new();
    let named = pattern(r"crate::(?:\{([^}]*)\}|(\w+))");
    for (room, known) in ARROWS {
        for file in source(&format!("src/{room}/")) {
            for found in named.captures_iter(&file.text) {
                let rooms = found.get(1).or(found.get(2)).unwrap().as_str();
                let rooms = rooms.split(',').map(|part| part.trim().split("::").next().unwrap());
                for other in rooms.filter(|other| !other.is_empty() && !known.contains(other)) {
                    complaints.push(format!("{} names crate::{other}", file.path));
                }
            }
            if file.text.contains("super::super::") {
                complaints.push(format!("{} climbs by super::super: name the room", file.path));
            }
        }
    }
    none(&complaints, "the arrows of ARCHITECTURE.md (which room may know which) are broken");
}

#[test]
fn every_folder_of_the_source_is_a_room_of_the_architecture() {
    let architecture = read("ARCHITECTURE.md");
    for file in source("src/") {
        let Some((room, _)) = file.path["src/".len()..].split_once('/') else { continue };
        let listed = ARROWS.iter().any(|(name, _)| *name == room);
        assert!(listed, "{}: give the room {room} its arrows in tests/tidy.rs", file.path);
        let told = architecture.contains(&format!("\n| `{room}` |"));
        assert!(told, "{}: give the room {room} its row in ARCHITECTURE.md", file.path);
    }
}

#[test]
fn the_engine_is_pure() {
    let mut complaints = Vec::new();
    let impure = pattern(
        r"\b(std::fs|std::process|std::env\b|std::thread|std::io|std::net|Instant\b|SystemTime\b|clap\b|anyhow\b)|std::\{|(print|eprint)(ln)?!|Utc::now|Local::now",
    );
    for file in source("src/engine/") {
        for (number, line) in file.lines().filter(|(_, line)| !line.trim().starts_with("//")) {
            if let Some(found) = impure.find(line) {
                complaints.push(format!("{}:{number} uses {}", file.path, found.as_str()));
            }
        }
    }
    none(
        &complaints,
        "the engine gets all it needs as arguments; pass this in, or add a field to Facts",
    );
}

#[test]
fn no_file_and_no_function_is_too_long() {
    let mut complaints = Vec::new();
    let opens = pattern(r"^(\s*)(?:pub(?:\(\w+\))? )?(?:const |async |unsafe )*fn (\w+)");
    for file in source("") {
        let lines: Vec<&str> = file.text.lines().collect();
        if lines.len() > FILE_LINES_MAX {
            complaints.push(format!("{} has {} lines", file.path, lines.len()));
        }
        for (index, line) in lines.iter().enumerate() {
            let Some(opened) = opens.captures(line).filter(|_| !line.ends_with(['}', ';'])) else {
                continue;
            };
            // In formatted source a body ends at the first brace in its own column.
            let end = format!("{}}}", &opened[1]);
            let body = lines[index..].iter().position(|line| *line == end);
            let length = body.map_or(usize::MAX, |length| length + 1);
            if length > FUNCTION_LINES_MAX {
                complaints.push(format!(
                    "{}:{} {} has {length} lines",
                    file.path,
                    index + 1,
                    &opened[2]
                ));
            }
        }
    }
    none(&complaints, "files of at most 400 lines, functions of at most 70; split by noun");
}

#[test]
fn every_source_file_opens_with_what_it_is_for() {
    let files = source("");
    let siblings: BTreeSet<&str> = files
        .iter()
        .flat_map(|file| found(r#"#\[path = "(\w+\.rs)"\]\s*mod tests;"#, &file.text))
        .collect();
    let mut complaints = Vec::new();
    for file in &files {
        let name = file.path.rsplit('/').next().unwrap();
        if siblings.contains(name) && !name.ends_with("_tests.rs") {
            complaints.push(format!("{}: a file of tests is named *_tests.rs", file.path));
        }
        let is_bare = siblings.contains(name) || ["tests.rs", "properties.rs"].contains(&name);
        if !is_bare && !file.text.starts_with("//! ") {
            complaints.push(format!("{} does not open with `//! `", file.path));
        }
    }
    none(&complaints, "a file says on its first line what it is for");
}

#[test]
fn unsafe_code_stands_only_where_nothing_safe_will_do() {
    let code = pattern(&format!(r"\b{}\s*(\{{|fn|impl)", "unsafe"));
    let files = source("");
    let with = files.iter().filter(|file| code.is_match(&file.text));
    let with: Vec<&str> = with.map(|file| file.path.as_str()).collect();
    let allowed =
        ["benches/hook/call.rs", "benches/hook/weigh.rs", "src/world/unix.rs", "tests/child.rs"];
    let strange: Vec<_> = with.into_iter().filter(|path| !allowed.contains(path)).collect();
    assert!(
        strange.is_empty(),
        "unsafe code in {strange:?}: is there a safe way in std or rustix?"
    );
}

#[test]
fn nothing_unfinished_is_left_behind() {
    let marks = ["dbg", "todo", "unimplemented"].map(|name| format!("{name}!"));
    let marks = marks
        .into_iter()
        .chain(["FIX", "XX"].iter().zip(["ME", "X"]).map(|(a, b)| format!("{a}{b}")));
    let marks: Vec<String> = marks.chain([format!("#[{}", "ignore")]).collect();
    let mut complaints = Vec::new();
    for file in tree() {
        for (number, line) in file.lines() {
            for mark in marks.iter().filter(|mark| line.contains(mark.as_str())) {
                complaints.push(format!("{}:{number} holds {mark}", file.path));
            }
        }
    }
    none(&complaints, "finish it, or take it out");
}

#[test]
fn the_plugin_and_the_changelog_name_the_version_of_the_crate() {
    let version = env!("CARGO_PKG_VERSION");
    let plugin: Value = serde_json::from_str(&read(".claude-plugin/plugin.json")).unwrap();
    assert_eq!(plugin["version"], version, "plugin.json and Cargo.toml name two versions");
    let changelog = read("CHANGELOG.md");
    let told =
        changelog.contains(&format!("\n## [{version}]")) || changelog.contains("\n## [Unreleased]");
    assert!(told, "CHANGELOG.md has neither {version} nor Unreleased");
}

#[test]
fn every_event_the_door_answers_is_hooked_and_every_hook_is_answered() {
    let hooks: Value = serde_json::from_str(&read("hooks/hooks.json")).unwrap();
    let hooked: BTreeSet<&str> =
        hooks["hooks"].as_object().unwrap().keys().map(String::as_str).collect();
    let session = read("src/drive/session.rs");
    let arms = between(&session, "match payload.event.as_str() {", "_ =>");
    let answered = found(r#""([A-Z]\w+)"(?: =>| \|)"#, arms);
    assert_eq!(hooked, answered, "hooks.json (left) and drive/session.rs (right) differ");
    for file in source("src/drive/").into_iter().chain(source("src/cmd/")) {
        let compared = found(r#"event [!=]= "(\w+)""#, &file.text);
        let strange: Vec<_> = compared.difference(&hooked).collect();
        assert!(strange.is_empty(), "{} asks for {strange:?}, which no hook sends", file.path);
    }
}

#[test]
fn every_command_is_known_to_the_door_and_named_in_the_help_and_the_readme() {
    let files = tree();
    let in_folder = files.iter().filter_map(|file| file.path.strip_prefix("commands/"));
    let commands: BTreeSet<&str> = in_folder.map(|name| name.trim_end_matches(".md")).collect();
    let session = read("src/drive/session.rs");
    let known = found(r#"\n\s+"([a-z-]+)" =>"#, between(&session, "match name {", "_ =>"));
    assert_eq!(commands, known, "commands/ (left) and drive/session.rs (right) differ");
    let help = read("src/report/help.rs");
    let told = found(r"\n  /crew:([a-z-]+) +(?:\w|\[)", &help);
    assert_eq!(commands, told, "commands/ (left) and report/help.rs (right) differ");
    let readme = read("README.md");
    let told = found(r"(?m)^\| `/crew:([a-z-]+)[ `]", &readme);
    assert_eq!(commands, told, "commands/ (left) and README.md (right) differ");
}

#[test]
fn no_command_file_lets_a_shell_or_the_model_start_anything() {
    let mut complaints = Vec::new();
    for file in tree().iter().filter(|file| file.path.starts_with("commands/")) {
        for shell in ["!`", "```", "$ARGUMENTS", "allowed-tools"] {
            if file.text.contains(shell) {
                complaints.push(format!("{} holds {shell}", file.path));
            }
        }
        if !file.text.contains("\ndisable-model-invocation: true\n") {
            complaints.push(format!("{} can be started by the model", file.path));
        }
    }
    none(&complaints, "commands are answered by the hook, which no shell stands before");
}

#[test]
fn the_readme_names_every_option_of_the_help_and_the_grammar_knows_it() {
    let help = read("src/report/help.rs");
    let options = found(r"(--?[a-z][a-z-]*)\b", between(&help, "TASK is one", "Example:"));
    assert!(options.len() > 10, "the help page names only {options:?}");
    let readme = read("README.md");
    let grammar = read("src/parse/arguments/flags.rs");
    for option in options {
        let told = pattern(&format!(r"`{option}[ `]")).is_match(&readme);
        assert!(told, "README.md does not name {option}");
        assert!(grammar.contains(&format!("\"{option}\"")), "the grammar does not know {option}");
    }
}

#[test]
fn every_crate_has_its_line_in_the_architecture() {
    let manifest = read("Cargo.toml");
    let dependencies = between(&manifest, "[dependencies]", "[profile");
    let crates = found(r"(?m)^([a-z0-9_-]+) = ", dependencies);
    let architecture = read("ARCHITECTURE.md");
    let (_, page) = architecture.split_once("## The crates").unwrap();
    let explained = found(r"(?m)^\| `([a-z0-9_-]+)` \|", page);
    assert_eq!(crates, explained, "Cargo.toml (left) and ARCHITECTURE.md (right) differ");
}

#[test]
fn pages_stay_short_enough_to_be_read() {
    for (page, lines) in [("README.md", 200), ("ARCHITECTURE.md", 120), ("CONTRIBUTING.md", 60)] {
        let length = read(page).lines().count();
        assert!(length <= lines, "{page} has {length} lines, at most {lines} are read");
    }
}

#[test]
fn the_readme_has_each_command_that_ci_takes_from_it() {
    let (readme, script) = (read("README.md"), read(".ci/run"));
    let starts = found(r#"=\$\(readme "([^"]+)"\)"#, &script);
    assert!(!starts.is_empty(), ".ci/run takes no command from README.md");
    let blocks = found(r"(?ms)^```sh\n(.*?)^```", &readme);
    for start in starts {
        let lines = blocks.iter().flat_map(|block| block.lines());
        let count = lines.filter(|line| line.starts_with(start)).count();
        assert_eq!(count, 1, "commands in README.md that begin with {start:?}");
    }
}

/// Where a test named in `FAULTS.md` must stand: `engine::judge::tests` is `src/engine/judge…`,
/// `loops` is `tests/loops…`.
fn file_of(modules: &str) -> String {
    let mut folders: Vec<&str> = modules.split("::").collect();
    let is_unit = ARROWS.iter().any(|(room, _)| *room == folders[0]) && folders.len() > 1;
    if is_unit && folders.last() == Some(&"tests") {
        folders.pop();
    }
    format!("{}/{}", if is_unit { "src" } else { "tests" }, folders.join("/"))
}

#[test]
fn every_known_fault_has_its_row_and_every_test_named_there_exists() {
    let faults = read("tests/FAULTS.md");
    let expected = [("C", 30), ("B", 20), ("I", 12)];
    let expected: Vec<String> = expected
        .into_iter()
        .flat_map(|(kind, count)| (1..=count).map(move |n| format!("{kind}{n}")))
        .collect();
    let rows: Vec<regex::Captures<'_>> =
        pattern(r"(?m)^\| ([CBI]\d+) \| [^|]+ \| ([^|]+) \|$").captures_iter(&faults).collect();
    let names: Vec<&str> = rows.iter().map(|row| row.get(1).unwrap().as_str()).collect();
    assert_eq!(names, expected, "the rows of tests/FAULTS.md");
    let files = source("");
    let named = pattern(r"`((?:\w+::)+)(\w+)`");
    let mut complaints = Vec::new();
    for row in rows {
        let (name, cover) = (&row[1], &row[2]);
        let tests: Vec<_> = named.captures_iter(cover).collect();
        let excused = cover.contains("by construction: ") || cover.contains("later: ");
        if tests.is_empty() && !excused {
            complaints.push(format!("{name} names no test, no reason and no later work"));
        }
        for test in tests {
            let place = file_of(test[1].trim_end_matches("::"));
            let function = format!("fn {}(", &test[2]);
            let stands =
                |file: &File| file.path.starts_with(&place) && file.text.contains(&function);
            if !files.iter().any(stands) {
                complaints.push(format!("{name}: there is no {function}…) in {place}*"));
            }
        }
    }
    none(&complaints, "tests/FAULTS.md and the tests differ");
}
