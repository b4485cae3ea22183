//! The reference in a copy of the checkout with one more option, key, outcome, variable and JSON
//! field: it is stale until it is generated again. The copy is compiled, so the test only runs if
//! `CREW_SCRATCH_COPY` is set.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::client::say;
use crate::sandbox::checkout;

/// The additions: the file, a text in it, its replacement, the page, and the text that the page
/// then contains.
const ADDED: [[&str; 5]; 8] = [
    [
        "src/cli.rs",
        "    pub line: bool,",
        "    pub line: bool,\n    /// From the last row to the first\n    #[arg(long)]\n    pub upward: bool,",
        "commands.md",
        "- `--upward`: From the last row to the first.",
    ],
    [
        "crates/readers/src/parse/settings/options.rs",
        "    /// Whether the machine is kept awake",
        "    /// The tint of a page.\n    pub tint: Option<String>,\n    /// Whether the machine is kept awake",
        "settings.md",
        "- `tint` (default `\"red\"`; needs trust): The tint of a page.",
    ],
    [
        "crates/readers/src/parse/settings/keys.json",
        "  [\"awake\",",
        "  [\"tint\", null, \"\", \"every\", \"'red'\", \"\", \"\"],\n  [\"awake\",",
        "",
        "",
    ],
    [
        "crates/engine/src/record/outcome.rs",
        "    Error,\n}",
        "    Error,\n    Postponed,\n}",
        "outcomes.md",
        "- `postponed` (exit code 15)",
    ],
    [
        "crates/engine/src/record/outcome.rs",
        "[Self; 8] = [",
        "[Self; 9] = [\n        Self::Postponed,",
        "",
        "",
    ],
    [
        "src/exit.rs",
        "            Outcome::Error => 1,",
        "            Outcome::Error => 1,\n            Outcome::Postponed => 15,",
        "",
        "",
    ],
    [
        "crates/engine/src/words/programs.rs",
        "        (\"CREW_ON\",",
        "        (\"CREW_MOOD\", String::new()),\n        (\"CREW_ON\",",
        "reactions.md",
        "- `CREW_MOOD`",
    ],
    [
        "crates/engine/src/view/columns.rs",
        "        map.serialize_entry(\"branch\",",
        "        map.serialize_entry(\"mood\", &1)?;\n        map.serialize_entry(\"branch\",",
        "json.md",
        "- `mood`",
    ],
];

#[test]
fn an_addition_to_the_code_makes_the_reference_stale_until_it_is_regenerated() {
    if std::env::var_os("CREW_SCRATCH_COPY").is_none() {
        say("skipped: CREW_SCRATCH_COPY is not set\n");
        return;
    }
    let copy = copied();
    for [file, before, after, ..] in ADDED {
        replace(&copy.join(file), before, after);
    }
    let stale = reference(&copy, "");
    let printed = String::from_utf8_lossy(&stale.stdout).into_owned();
    assert!(printed.contains("the_reference_matches_the_code"), "{stale:?}");
    assert!(!stale.status.success(), "{printed}");
    let lists = ADDED.iter().filter(|[.., page, _]| !page.is_empty());
    for [.., page, _] in lists.clone() {
        assert!(printed.contains(&format!("docs/reference/{page}: ")), "{page}: {printed}");
    }
    let written = reference(&copy, "write");
    assert!(written.status.success(), "{written:?}");
    for [.., page, item] in lists {
        let text = fs::read_to_string(copy.join("docs/reference").join(page)).unwrap();
        assert!(text.contains(&format!("{item}\n")), "{page} lacks {item}");
    }
    let current = reference(&copy, "");
    assert!(current.status.success(), "{current:?}");
}

/// A copy of the checkout without the additions of an earlier test. Its path never changes, so that
/// compiled files can be used again.
fn copied() -> PathBuf {
    let copy = checkout().join("target/scratch-copy");
    let _ = fs::remove_dir_all(&copy);
    let files = Command::new("git").arg("ls-files").current_dir(checkout()).output().unwrap();
    for file in String::from_utf8(files.stdout).unwrap().lines() {
        let to = copy.join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(checkout().join(file), to).unwrap();
    }
    // Under the checkout's own version cargo would take one of the two programs for the other.
    let version = env!("CARGO_PKG_VERSION");
    let manifest = copy.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap().replace(version, "0.0.0");
    fs::write(manifest, text).unwrap();
    let lock = copy.join("Cargo.lock");
    let mut text = fs::read_to_string(&lock).unwrap();
    for krate in ["", "-engine", "-readers", "-world", "-testkit"] {
        let package = |version| format!("name = \"crew-loop{krate}\"\nversion = \"{version}\"");
        text = text.replace(&package(version), &package("0.0.0"));
    }
    fs::write(lock, text).unwrap();
    copy
}

#[track_caller]
fn replace(file: &Path, before: &str, after: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.matches(before).count(), 1, "{}: {before}", file.display());
    fs::write(file, text.replace(before, after)).unwrap();
}

/// Runs the test of the reference in the copy.
fn reference(copy: &Path, mode: &str) -> Output {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--locked", "--bin", "crew", "--", "the_reference_matches_the_code"]);
    cargo.current_dir(copy).env("CARGO_TARGET_DIR", checkout().join("target"));
    cargo.env("CREW_REFERENCE", mode).output().unwrap()
}
