//! The tree itself: rooms kept apart, sizes bounded, and pages that agree with the code. It reads
//! the source as text, so it checks habits that a compiler does not see.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::sandbox::checkout;

mod book;
mod circles;
mod commands;
mod errors;
mod habits;
mod language;
mod layout;
mod names;
mod pages;
mod product;
mod readme;
mod reasons;

/// The mark of a test that `cargo test` leaves out.
const LONG: &str = concat!("#[", "ignore = \"long\"]");
const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
/// The rooms of ARCHITECTURE.md, and the folder of each. Cargo holds the crates apart, and
/// `circles.rs` the folders inside one.
const ROOMS: [(&str, &str); 11] = [
    ("engine", "crates/engine/src/"),
    ("parse", "crates/readers/src/parse/"),
    ("clients", "crates/readers/src/clients/"),
    ("agents", "crates/readers/src/agents/"),
    ("prompts", "crates/readers/src/prompts/"),
    ("world", "crates/world/src/"),
    ("report", "src/report/"),
    ("drive", "src/drive/"),
    ("fleet", "src/fleet/"),
    ("demo", "src/demo/"),
    ("cmd", "src/cmd/"),
];

/// A text file of the checkout, by its path from the root.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_page(&self) -> bool {
        Path::new(&self.path).extension() == Some("md".as_ref())
            && !self.path.starts_with("tests/fixtures/")
    }

    /// Whether the whole file is for tests.
    pub(crate) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.ends_with("tests.rs")
            || name == "properties.rs"
            || self.path.contains("/tests/")
            || name.contains("fixture")
    }

    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

fn read(path: &str) -> String {
    let file = checkout().join(path);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
}

/// Every text file of the tree, except built and fetched ones.
pub(crate) fn tree() -> Vec<File> {
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

pub(crate) fn source(folder: &str) -> Vec<File> {
    let is_source = |file: &File| {
        Path::new(&file.path).extension() == Some("rs".as_ref()) && file.path.starts_with(folder)
    };
    tree().into_iter().filter(is_source).collect()
}

/// The source of the program and of its crates, without the test kit.
pub(crate) fn product_source() -> Vec<File> {
    let folders = ["src/", "crates/engine/src/", "crates/readers/src/", "crates/world/src/"];
    folders.iter().flat_map(|folder| source(folder)).collect()
}

/// The text of a file without the parts that only tests see.
fn product_of(text: &str) -> String {
    let tests = pattern(
        r"(?m)^#\[cfg\([^\n]*\btest\b[^\n]*\)\]\n(#\[[^\n]*\]\n)*(mod \w+ \{(.|\n)*?^\}|[^\n]*;)\n",
    );
    tests.replace_all(text, "").into_owned()
}

/// Whether the product has a room: `main.rs` may name one that only tests have.
fn is_in_the_product(room: &str) -> bool {
    product_of(&read("src/main.rs")).contains(&format!("mod {room};"))
}

/// A pattern with ASCII word boundaries, because the product has no tables of Unicode.
pub(crate) fn pattern(pattern: &str) -> Regex {
    Regex::new(&pattern.replace(r"\b", r"(?-u:\b)")).unwrap()
}

/// The first group of every match.
fn found<'text>(regex: &str, text: &'text str) -> BTreeSet<&'text str> {
    pattern(regex).captures_iter(text).map(|found| found.get(1).unwrap().as_str()).collect()
}

/// The text between two marks.
fn between<'text>(text: &'text str, from: &str, to: &str) -> &'text str {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("{from:?} is not there"));
    rest.split_once(to).unwrap_or_else(|| panic!("{to:?} does not follow {from:?}")).0
}

#[track_caller]
fn none(complaints: &[String], rule: &str) {
    assert!(complaints.is_empty(), "{rule}:\n  {}", complaints.join("\n  "));
}

#[test]
fn every_source_folder_is_a_room_of_the_architecture() {
    let architecture = read("ARCHITECTURE.md");
    for file in product_source() {
        let room = ROOMS.iter().find(|(_, folder)| file.path.starts_with(folder));
        if let Some((room, _)) = room {
            let is_listed = architecture.contains(&format!("\n| `{room}` |"));
            assert!(is_listed, "{}: give the room {room} its row in ARCHITECTURE.md", file.path);
            continue;
        }
        let inside = file.path.strip_prefix("src/").and_then(|path| path.split_once('/'));
        let is_in_a_room = inside.is_some_and(|(room, _)| is_in_the_product(room));
        assert!(!is_in_a_room, "{}: give its room a row in tests/tidy", file.path);
    }
}

#[test]
fn the_pure_rooms_have_no_side_effects() {
    let mut complaints = Vec::new();
    let impure = pattern(
        r"\b(std::fs|std::process|std::env\b|std::thread|std::io|std::net|Instant\b|SystemTime\b)|std::\{|(print|eprint)(ln)?!|Utc::now|Local::now|\b(rustix|fs2|libc|signal_hook)::|\.(exists|is_file|is_dir|symlink_metadata|metadata|read_dir|canonicalize|read_link)\(\)",
    );
    let framing = pattern(r"\b(clap|anyhow)\b");
    let rooms = ["crates/engine/src/", "crates/readers/src/", "src/report/"];
    for file in rooms.iter().flat_map(|room| source(room)) {
        for (number, line) in file.lines().filter(|(_, line)| !line.trim().starts_with("//")) {
            let is_engines = file.path.starts_with("crates/engine/src/");
            let found = impure.find(line).or_else(|| framing.find(line).filter(|_| is_engines));
            if let Some(found) = found {
                complaints.push(format!("{}:{number} uses {}", file.path, found.as_str()));
            }
        }
    }
    none(
        &complaints,
        "these rooms get all they need as arguments; pass this in, or add a field to Facts",
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
    none(&complaints, "files of at most 600 lines, functions of at most 70; split by noun");
}

#[test]
fn every_source_file_begins_with_its_purpose() {
    let files = source("");
    let siblings: BTreeSet<&str> = files
        .iter()
        .filter(|file| file.text.contains("#[path"))
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
fn unsafe_code_is_only_where_no_safe_code_would_do() {
    let code = pattern(&format!(r"\b{}\s*(\{{|\(|fn|impl)", "unsafe"));
    let files = source("");
    let with = files.iter().filter(|file| code.is_match(&file.text));
    let with: Vec<&str> = with.map(|file| file.path.as_str()).collect();
    let allowed = [
        "benches/hook/call.rs",
        "benches/hook/weigh.rs",
        "src/pow.rs",
        "crates/world/src/process/groups.rs",
        "crates/world/src/process/signals.rs",
        "tests/spawned.rs",
    ];
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
            // A test may be long (.ci/long), and nothing else keeps one from running.
            let line = line.replace(LONG, "");
            for mark in marks.iter().filter(|mark| line.contains(mark.as_str())) {
                complaints.push(format!("{}:{number} holds {mark}", file.path));
            }
        }
    }
    none(&complaints, "finish it, or take it out");
}
