//! The JSON schemas in docs/reference are those that the lists of the readers produce.

use std::path::Path;

use regex::Regex;
use serde_json::Value;

use crate::fleet::tasks::schema_tests as fleet;
use crate::report::help::{FLEET_SCHEMA, SETTINGS_SCHEMA};
use readers::agents::output_formats;
use readers::parse::settings::schema_fixture as settings;

fn schemas() -> [(&'static str, &'static str, Value); 2] {
    [
        ("crew.schema.json", SETTINGS_SCHEMA, settings::schema(&output_formats())),
        ("fleet.schema.json", FLEET_SCHEMA, fleet::schema()),
    ]
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test writes the files it compares")]
fn the_schemas_match_the_readers() {
    for (name, file, schema) in schemas() {
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if std::env::var("CREW_REFERENCE").is_ok_and(|value| value == "write") {
            std::fs::write(format!("{}/docs/reference/{name}", env!("CARGO_MANIFEST_DIR")), text)
                .unwrap();
        } else {
            assert!(text == file, "docs/reference/{name} is old: `just reference` writes it again");
        }
    }
}

/// The files below a folder with this ending, each with its text.
#[expect(clippy::disallowed_methods, reason = "a test reads the pages")]
fn files(folder: &Path, endings: &[&str]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path, endings));
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            all.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
    all
}

/// The texts in TOML and the task files of a page: its blocks, and what a shell writes into a file.
fn blocks(page: &str) -> Vec<&str> {
    let block = Regex::new(r"(?ms)^ *```(\w+)\n(.*?)^ *```").unwrap();
    let blocks = block.captures_iter(page).map(|block| block.extract().1);
    let blocks = blocks.filter(|[language, text]| *language == "toml" || is_task(text));
    let mut all: Vec<&str> = blocks.map(|[_, text]| text).collect();
    for written in Regex::new(r"(?m)^.*<<'?(\w+)'?$").unwrap().captures_iter(page) {
        let (line, [end]) = written.extract();
        let (_, rest) = page.split_once(line).unwrap();
        let (text, _) = rest[1..].split_once(&format!("\n{end}\n")).unwrap();
        if is_task(text) || line.contains(".toml") {
            all.push(text);
        }
    }
    all
}

fn is_task(text: &str) -> bool {
    text.starts_with("---\n") || text.starts_with("+++\n")
}

#[test]
fn every_file_shown_in_pages_and_examples_is_valid_and_fits_its_schema() {
    let [(.., settings_schema), (.., fleet_schema)] = schemas();
    let verdicts = |text: &str| {
        if is_task(text) {
            return vec![fleet::task_verdicts(&fleet_schema, text)];
        }
        let of_settings = settings::verdicts(&settings_schema, text, &output_formats());
        vec![of_settings, fleet::judge_text(&fleet_schema, text)]
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = files(&root.join("docs"), &[".md"]);
    pages.extend(files(&root.join("examples"), &[".md", ".toml"]));
    pages.push(("README.md".to_owned(), include_str!("../../README.md").to_owned()));
    let mut count = 0;
    for (path, page) in &pages {
        let is_whole =
            Path::new(path).extension().is_some_and(|ending| ending == "toml") || is_task(page);
        for text in if is_whole { vec![&**page] } else { blocks(page) } {
            count += 1;
            let verdicts = verdicts(text);
            assert!(
                verdicts.iter().any(|two| two.iter().all(Result::is_ok)),
                "{path}:\n{text}\n{verdicts:#?}"
            );
        }
    }
    assert!(count > 25, "only {count} were found");
}
