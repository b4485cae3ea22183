//! The pages and the plugin's own files, compared with the code: none of them names something that
//! does not exist, and none omits something that can be typed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{File, ROOMS, between, found, none, pattern, read, source, tree};
use crate::sandbox::{Sandbox, checkout};

#[test]
fn the_plugin_and_the_changelog_name_the_version_of_the_crate() {
    let version = env!("CARGO_PKG_VERSION");
    let plugin: Value = serde_json::from_str(&read(".claude-plugin/plugin.json")).unwrap();
    assert_eq!(plugin["version"], version, "plugin.json and Cargo.toml name two versions");
    let changelog = read("CHANGELOG.md");
    let shown =
        changelog.contains(&format!("\n## [{version}]")) || changelog.contains("\n## [Unreleased]");
    assert!(shown, "CHANGELOG.md has neither {version} nor Unreleased");
}

#[test]
fn every_event_that_crew_answers_has_a_hook_and_every_hook_is_answered() {
    let hooks: Value = serde_json::from_str(&read("hooks/hooks.json")).unwrap();
    let hooked: BTreeSet<&str> =
        hooks["hooks"].as_object().unwrap().keys().map(String::as_str).collect();
    let reader = read("crates/readers/src/clients/claude/event.rs");
    let answered = found(r#"\n {8}"([A-Z]\w+)" =>"#, &reader);
    assert_eq!(hooked, answered, "hooks.json (left) and clients/claude/event.rs (right) differ");
}

#[test]
fn every_command_is_handled_and_named_in_the_help_and_the_pages() {
    let files = tree();
    let in_folder = files.iter().filter_map(|file| file.path.strip_prefix("commands/"));
    let commands: BTreeSet<&str> = in_folder.map(|name| name.trim_end_matches(".md")).collect();
    let session = read("src/drive/session.rs");
    let known = found(r#""([a-z-]+)" (?:=>|\|)"#, between(&session, "match name {", "_ =>"));
    assert_eq!(commands, known, "commands/ (left) and drive/session.rs (right) differ");
    let plugin = read("src/drive/installation/plugin_files.rs");
    let laid_down = found(r#"\("commands/([a-z-]+)\.md""#, &plugin);
    assert_eq!(commands, laid_down, "commands/ (left) and what is laid down (right) differ");
    let help = read("src/report/help/client.txt");
    let shown = found(r"\n  /crew:([a-z-]+) +(?:\w|\[)", &help);
    assert_eq!(commands, shown, "commands/ (left) and report/help/client.txt (right) differ");
    let page = read("docs/reference/commands.md");
    let shown = found(r"(?m)^- `/crew:([a-z-]+)[ `]", &page);
    assert_eq!(commands, shown, "commands/ (left) and docs/reference/commands.md (right) differ");
}

/// The verbs of `crew` that are not hidden, as its manual page lists them.
fn verbs(sandbox: &Sandbox) -> BTreeSet<String> {
    let page = sandbox.crew(&["man"]).success().replace('\\', "");
    let verbs = found(r"(?m)^crew-([a-z]+)\(1\)$", &page).into_iter();
    // Of `crew help VERB` the page of each verb tells.
    verbs.filter(|verb| *verb != "help").map(str::to_owned).collect()
}

#[test]
fn every_subcommand_has_a_heading_and_only_its_own_options_below_it() {
    let sandbox = Sandbox::new();
    let page = read("docs/reference/commands.md");
    let named = found(r"(?m)^### `crew ([a-z]+)", &page).into_iter();
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    assert_eq!(
        verbs(&sandbox),
        named,
        "crew man (left) and docs/reference/commands.md (right) differ"
    );

    let mut complaints = Vec::new();
    let mut count = 0;
    for section in page.split("\n### `crew ").skip(1) {
        let section = section.split("\n## ").next().unwrap_or_default();
        let (verb, section) = section.split_once('`').unwrap();
        let words: Vec<&str> = verb.split(' ').chain(["--help", "--all"]).collect();
        let help = sandbox.crew(&words).success();
        let accepted = options(&help);
        for option in found(r"`(?:-[a-z], )?(--[a-z-]+)", section) {
            count += 1;
            if !accepted.contains(option) {
                complaints.push(format!("{option} of crew {verb}"));
            }
        }
    }
    assert!(count > 100, "only {count} options were found");
    none(&complaints, "docs/reference/commands.md names options that their commands do not take");
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

/// The options that a page of help lists, with their hyphens.
fn options(page: &str) -> BTreeSet<&str> {
    let lines = page.lines().filter(|line| line.starts_with(' '));
    let first = lines.flat_map(|line| found(r"^ +(--?[a-z][a-z-]*)", line));
    let both = page.lines().flat_map(|line| found(r"^ +-[a-z], (--[a-z-]+)", line));
    first.chain(both).filter(|option| !["-h", "--help"].contains(option)).collect()
}

/// Whether a page names an option, perhaps by its other name.
fn names(page: &str, option: &str) -> bool {
    pattern(&format!(r"`(?:-[a-z], )?{option}[ ,`]")).is_match(page)
}

#[test]
fn the_pages_name_every_option_of_a_start_and_of_a_resume() {
    let sandbox = Sandbox::new();
    let page = read("docs/reference/commands.md");
    for (verb, least) in [("run", 40), ("resume", 25), ("set", 6)] {
        let help = sandbox.crew(&[verb, "--help", "--all"]).success();
        let options = options(&help);
        assert!(options.len() >= least, "crew {verb} --help names only {options:?}");
        for option in options {
            assert!(names(&page, option), "docs/reference/commands.md does not name {option}");
        }
    }
}

#[test]
fn the_options_page_names_every_option_of_the_sessions_help() {
    let sandbox = Sandbox::new();
    let asked = sandbox.hook(json!({
        "hook_event_name": "UserPromptExpansion", "command_name": "crew:help",
        "command_args": "", "prompt_id": "p",
    }));
    let shown: Value = serde_json::from_str(&asked.success()).unwrap();
    let page = shown["reason"].as_str().or(shown["stopReason"].as_str()).unwrap();
    let options = options(page);
    assert!(options.len() >= 10, "the help page names only {options:?}");
    let options_page = read("docs/reference/commands.md");
    for option in options {
        assert!(names(&options_page, option), "docs/reference/commands.md does not name {option}");
    }
}

#[test]
fn every_crate_has_a_line_in_the_architecture() {
    let manifest = read("Cargo.toml");
    let dependencies = between(&manifest, "[workspace.dependencies]", "[workspace.lints");
    let crates = found(r"(?m)^([a-z0-9_-]+) = ", dependencies);
    let architecture = read("ARCHITECTURE.md");
    let (_, page) = architecture.split_once("## The crates").unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let explained: BTreeSet<&str> = rows.flat_map(|row| found(r"`([a-z0-9_-]+)`", row)).collect();
    let own = ["engine", "readers", "world"];
    let crates: BTreeSet<&str> = crates.into_iter().filter(|name| !own.contains(name)).collect();
    assert_eq!(crates, explained, "Cargo.toml (left) and ARCHITECTURE.md (right) differ");
}

#[test]
fn pages_stay_short_enough_to_be_read() {
    for (page, lines) in [("ARCHITECTURE.md", 120), ("CONTRIBUTING.md", 60)] {
        let length = read(page).lines().count();
        assert!(length <= lines, "{page} has {length} lines, at most {lines} are read");
    }
}

#[test]
fn every_path_in_the_recipes_exists() {
    let page = read("CONTRIBUTING.md");
    let (_, recipes) = page.split_once("## Where does it go?").unwrap();
    let paths = found(r"`((?:[a-zA-Z_]+/)+[a-zA-Z_]*(?:\.[a-z]+)?|[a-z_]+\.rs)`", recipes);
    assert!(paths.len() > 20, "the recipes name only {paths:?}");
    let files = tree();
    let is_there = |path: &str| {
        let inside = format!("/{path}");
        let in_a_room = path.split_once('/').and_then(|(room, rest)| {
            let (_, folder) = ROOMS.iter().find(|(name, _)| *name == room)?;
            Some(checkout().join(folder).join(rest))
        });
        in_a_room.is_some_and(|path| path.exists())
            || checkout().join("src").join(path).exists()
            || checkout().join(path).exists()
            || !path.contains('/') && files.iter().any(|file| file.path.ends_with(&inside))
    };
    let is_absent = |path: &&str| !is_there(path);
    let absent: Vec<&str> = paths.into_iter().filter(is_absent).collect();
    assert_eq!(absent, [""; 0], "CONTRIBUTING.md sends its readers there");
}

#[test]
fn every_member_named_in_a_file_header_or_a_design_page_exists() {
    let files = source("");
    let comment = pattern(r"(?m)^\s*//.*$");
    let word = pattern(r"\w+");
    let code: Vec<_> = files.iter().map(|file| comment.replace_all(&file.text, "")).collect();
    let known: BTreeSet<&str> =
        code.iter().flat_map(|text| word.find_iter(text)).map(|name| name.as_str()).collect();
    let mut pages = vec![("ARCHITECTURE.md".to_owned(), read("ARCHITECTURE.md"))];
    for file in tree().iter().filter(|file| file.path.starts_with("docs/design/")) {
        pages.push((file.path.clone(), file.text.clone()));
    }
    for file in &files {
        let header: Vec<&str> = file.text.lines().filter(|line| line.starts_with("//!")).collect();
        pages.push((file.path.clone(), header.join("\n")));
    }
    let member = pattern(r"`([A-Z]\w*)::(\w+)(?:\(\))?`");
    let mut complaints = Vec::new();
    let mut count = 0;
    for (path, page) in &pages {
        for name in member.captures_iter(page) {
            count += 1;
            if !known.contains(&name[1]) || !known.contains(&name[2]) {
                complaints.push(format!("{path} names {}", &name[0]));
            }
        }
    }
    assert!(count > 0, "no page names a member of a type");
    none(&complaints, "the code has no such names");
}

#[test]
fn the_readme_has_every_command_that_ci_reads_from_it() {
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

/// Where a test named in `FAULTS.md` may be: `engine::boundary::judge::tests` is
/// `crates/engine/src/boundary/judge…`, `loops` is `tests/loops…`. A folder of tests may have the
/// name of a room.
fn places_of(modules: &str) -> Vec<String> {
    let mut modules: Vec<&str> = modules.split("::").collect();
    let mut places = vec![format!("tests/{}", modules.join("/"))];
    if modules.len() > 1 && modules.last().is_some_and(|last| last.ends_with("tests")) {
        modules.pop();
    }
    if let Some((_, folder)) = ROOMS.iter().find(|(room, _)| *room == modules[0]) {
        places.push(format!("{folder}{}", modules[1..].join("/")));
    }
    places
}

#[test]
fn every_known_fault_has_its_row_and_every_test_named_there_exists() {
    let faults = read("tests/FAULTS.md");
    let expected = [("C", 30), ("B", 20), ("I", 22), ("E", 18), ("F", 12)];
    let expected: Vec<String> = expected
        .into_iter()
        .flat_map(|(kind, count)| (1..=count).map(move |n| format!("{kind}{n}")))
        .collect();
    let rows: Vec<regex::Captures<'_>> =
        pattern(r"(?m)^\| ([CBIEF]\d+) \| [^|]+ \| ([^|]+) \|$").captures_iter(&faults).collect();
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
            let places = places_of(test[1].trim_end_matches("::"));
            let function = format!("fn {}(", &test[2]);
            let stands = |file: &File| {
                let is_there = places.iter().any(|place| file.path.starts_with(place));
                is_there && file.text.contains(&function)
            };
            if !files.iter().any(stands) {
                complaints.push(format!("{name}: there is no {function}…) in {places:?}"));
            }
        }
    }
    none(&complaints, "tests/FAULTS.md and the tests differ");
}
