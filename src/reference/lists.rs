//! Settings, outcomes, files, variables, reactions and agents.

use std::collections::BTreeMap;

use super::page::{Block, Part, entry};
use super::source::{self, FILES, fields};
use regex::Regex;

use crate::exit::Exit;
use engine::fixture::a_loop;
use engine::record::{LoopMoment, Outcome, Proof};
use engine::text::words_of;
use engine::words::programs;
use readers::agents;
use readers::parse::settings::options::{KEYS, Key, Widens};
use readers::parse::settings::{AGENT, CHECK, EXECUTOR, REACTION, TABLES};

/// The keys of settings files, table by table.
pub fn settings() -> Vec<Block> {
    let comments = fields("LoopOptions").into_iter().map(|field| (field.name, field.words));
    let comments: BTreeMap<String, String> = comments.collect();
    let mut tables: BTreeMap<&str, Vec<Part>> = BTreeMap::new();
    for key in KEYS.iter() {
        let (table, name) = key.split_name();
        tables.entry(table).or_default().push(entry(
            name,
            &note(key),
            &comment(&comments[key.name()], key),
        ));
    }
    // Checks have keys of their own, which name each by its command.
    for name in ["verify", "gate", "until", "no-worse"] {
        let list = tables.get_mut("loop").expect("there are keys of [loop]");
        list.push(entry(name, "", &comments[name]));
    }
    let mut blocks: Vec<Block> =
        tables.into_iter().map(|(table, parts)| Block::new(format!("[{table}]"), parts)).collect();
    let tables = ["loop", "check", "agents", "procedures", "on", "wait", "keep", "executor"];
    assert_eq!(TABLES, tables, "list the keys of the new table here");
    for (table, keys) in [
        ("[[check]]", CHECK),
        ("[agents.NAME]", AGENT),
        ("a reaction under [on]", REACTION),
        ("[executor.NAME]", EXECUTOR),
    ] {
        blocks.push(named(table, words_of(keys).map(str::to_owned)));
    }
    blocks
}

/// The default of a key, and which of its values need trust in a project's file.
fn note(key: &'static Key) -> String {
    let default = match key.built_in() {
        "" => String::new(),
        value => format!("default `{}`", value.replace('\'', "\"")),
    };
    let trust = match *key.widens() {
        Widens::More => "more needs trust",
        Widens::Less => "less needs trust",
        Widens::On => "on needs trust",
        Widens::Other | Widens::OtherOrOff => "another value needs trust",
        Widens::Every => "needs trust",
        Widens::Nothing => "",
    };
    let notes = [default.as_str(), trust].into_iter().filter(|note| !note.is_empty());
    let notes: Vec<_> = notes.collect();
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

/// The comment of an option without its default, which follows the name: of "(10; 0 = no limit)"
/// the half behind the semicolon stays.
fn comment(words: &str, key: &'static Key) -> String {
    let default = key.built_in().trim_matches('\'');
    let known = match default {
        "1h" => "60m",
        default => default,
    };
    words.replace(&format!("({known}; "), "(").replace(&format!(" ({known})."), ".")
}

/// A list of names whose descriptions are on the page.
fn named(block: &str, names: impl IntoIterator<Item = String>) -> Block {
    Block::new(block, names.into_iter().map(|name| entry(&name, "", "")).collect())
}

/// Outcomes, proofs and exit codes.
pub fn outcomes() -> Vec<Block> {
    let code = |outcome: Outcome| format!(" (exit code {})", Exit::for_outcome(outcome).code());
    let outcomes = Outcome::ALL.map(|outcome| entry(outcome.label(), &code(outcome), ""));
    let proofs = [Proof::Proven, Proof::Checked, Proof::Passing, Proof::Claimed];
    assert_eq!(proofs.len(), source::count_variants("Proof"), "list the new proof here");
    let mut codes = Outcome::ALL.map(|outcome| Exit::for_outcome(outcome).code()).to_vec();
    let constants =
        source::texts(r"const [A-Z]+: Self = Self\(([0-9]+)\)", |file| file == "src/exit.rs");
    codes.extend(constants.iter().filter_map(|code| code.parse::<u8>().ok()));
    codes.sort_unstable();
    codes.dedup();
    vec![
        Block::new("outcomes", outcomes.into()),
        Block::new("proofs", proofs.map(|proof| entry(proof.label(), "", "")).into()),
        named("exit codes", codes.iter().map(ToString::to_string)),
    ]
}

/// The files of a home, of a loop, of a fleet and of a checkout.
pub fn files() -> Vec<Block> {
    let in_home = |file: &str| file == "crates/world/src/home.rs";
    let mut of_a_loop: Vec<String> = FILES.values().flat_map(|text| loop_files(text)).collect();
    of_a_loop.sort();
    of_a_loop.dedup();
    let in_fleet = |file: &str| file.starts_with("src/fleet/");
    vec![
        named("the home", source::texts(r#"(?:root\.join|of_checkout)\("([a-z]+)""#, in_home)),
        named("a loop", of_a_loop),
        named("a fleet", source::texts(r#"\.root\.join\((?:format!\()?"([a-z][a-z.]*)"#, in_fleet)),
    ]
}

/// The files of a loop that a file of the code names, itself or by a constant.
fn loop_files(text: &str) -> Vec<String> {
    let call = Regex::new(r#"loop_file\([^;"]*?(?:"([a-z][a-z._]*)"|[ :]([A-Z_]{4,}))\)"#).unwrap();
    let constant = |name: &str| {
        let pattern = format!(r#"const {name}: &str = "([^"]+)""#);
        let here = Regex::new(&pattern).unwrap().captures(text).map(|found| found[1].to_owned());
        here.or_else(|| source::texts(&format!("pub {pattern}"), |_| true).pop())
    };
    let files = call.captures_iter(text).filter_map(|found| match (found.get(1), found.get(2)) {
        (Some(name), _) => Some(name.as_str().to_owned()),
        (_, name) => constant(name?.as_str()),
    });
    files.collect()
}

/// The variables that crew reads or sets.
pub fn variables() -> Vec<Block> {
    let all = source::texts(r#""(CREW_[A-Z_]+)""#, |_| true);
    let of_tests = source::texts(r#""(CREW_(?:TEST_[A-Z]+|[A-Z_]+_MS|FAULT|PANIC))""#, |_| true);
    let own = all.into_iter().filter(|name| !of_tests.contains(name));
    let read =
        source::texts(r#"(?:env::(?:find_folder|text|raw)|path)\("([A-Z_]+)"[,)]"#, |_| true);
    let others = read.into_iter().filter(|name| !name.starts_with("CREW_"));
    // A crate, the system or a function that is handed over reads these.
    let handed = ["CLICOLOR_FORCE", "NO_COLOR", "TMPDIR", "VTE_VERSION"];
    vec![
        named("variables of crew", own),
        named("variables of others", others.chain(handed.map(str::to_owned))),
        named("variables of crew's own tests", of_tests),
    ]
}

/// The moments of a run, and what a reaction gets.
pub fn reactions() -> Vec<Block> {
    let variables = programs::reaction_variables(&a_loop(), LoopMoment::Finish);
    vec![
        named("moments", LoopMoment::ALL.map(|moment| moment.label().to_owned())),
        named("variables", variables.into_iter().map(|(name, _)| name.to_owned())),
    ]
}

/// The agents that crew knows by name.
pub fn agents() -> Vec<Block> {
    let known = agents::known_names().into_iter();
    let tried = known.map(|name| {
        let note = if agents::is_tried(&name) { "" } else { " (from its documentation)" };
        entry(&name, note, "")
    });
    vec![Block::new("agents", tried.collect())]
}
