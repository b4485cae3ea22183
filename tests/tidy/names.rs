//! A client's name appears only in its own folder: all other code uses the client through the seam.

use std::collections::BTreeSet;

use super::{File, none, pattern, product_of, source};

/// Files that may name a client outside `crates/readers/src/clients/`, each with the reason.
const MAY_NAME: [(&str, &str, &str); 5] = [
    (
        "claude",
        "crates/readers/src/agents/claude",
        "the agent prints the lines that the transcripts hold",
    ),
    (
        "claude",
        "src/drive/installation/install.rs",
        "crew is installed by this client's own commands",
    ),
    (
        "claude",
        "src/drive/installation/plugin_files.rs",
        "these are the files of the plugin for this client",
    ),
    ("claude", "src/drive/installation/doctor.rs", "crew doctor looks at this client's own files"),
    ("claude", "src/demo", "the demo plays this client"),
];

/// The name of each client: that of its folder.
fn clients() -> BTreeSet<String> {
    let files = source("crates/readers/src/clients/");
    let folders = files.iter().filter_map(|file| {
        let (folder, _) = file.path["crates/readers/src/clients/".len()..].split_once('/')?;
        (folder != "recorded").then(|| folder.to_owned())
    });
    folders.collect()
}

fn complaints(folders: &[&str], regex: &str, may: &[&str]) -> Vec<String> {
    let names = pattern(regex);
    let files: Vec<File> = folders.iter().flat_map(|folder| source(folder)).collect();
    let is_test = |path: &str| path.ends_with("tests.rs") || path.ends_with("fixture.rs");
    let is_free = |path: &str| may.iter().any(|it| path.starts_with(it));
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !is_test(&file.path) && !is_free(&file.path)) {
        let text = product_of(&file.text);
        let lines = text.lines().filter(|line| names.is_match(line));
        found.extend(lines.map(|line| format!("{}: {}", file.path, line.trim())));
    }
    found
}

#[test]
fn the_engine_contains_no_name_of_a_client() {
    let found =
        complaints(&["crates/engine/src/"], r"(?i)claude|codex|gemini|copilot|qwen|/crew:", &[]);
    none(&found, "the engine gets names as values: let clients/ or report/ spell them");
}

#[test]
fn only_the_folder_of_a_client_knows_its_variables_and_its_module() {
    let clients = clients();
    assert!(clients.contains("claude"), "{clients:?}");
    for client in clients {
        let regex = format!(r"{}[_A-Z]|clients::(\{{[^}}]*)?{client}", client.to_uppercase());
        let its_own = MAY_NAME.iter().filter(|(name, ..)| *name == client);
        let may: Vec<&str> =
            its_own.map(|(_, path, _)| *path).chain(["crates/readers/src/clients"]).collect();
        let found = complaints(&["src/", "crates/"], &regex, &may);
        none(&found, "take it through the Client of the event, or make it a field of Client");
    }
}

#[test]
fn the_world_knows_only_the_variable_names_of_clients() {
    let found = complaints(&["crates/world/src/"], r"clients::([A-Z{*]|[a-z]+([(:;]|_[^v]))", &[]);
    none(&found, "hand the client's fact in as a value");
}
