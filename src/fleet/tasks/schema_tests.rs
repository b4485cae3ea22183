//! The JSON schema of fleet.toml and of the front matter of a task, made of the lists that their
//! reader uses.

use serde_json::{Map, Value, json};

use super::front_matter::split_front_matter;
use super::options::{FRONT_MATTER, LAND, TASK, TOP, TaskOptions, check_value, option_keys};
use super::tests::read_files;
use engine::fleet::USUAL_PRIORITY;
use engine::text::words_of;
use readers::parse::amounts::Unit;
use readers::parse::schema_fixture::{
    DIALECT, NO_OPTION, amount, described, references, some, some_time, table, text, texts,
};
use readers::parse::settings::options::Key;
use readers::parse::settings::schema_fixture::{
    by_schema, description, differences, key, keys, listed, words,
};

/// The schema of a number that may also be a text, as in front matter and fleet.toml.
fn loose(mut part: Value) -> Value {
    let takes_text = part["type"] == "string" || part["type"][0] == "string";
    if takes_text {
        let kinds = part["type"].as_array().cloned().unwrap_or(vec![json!("string")]);
        part["type"] = [kinds, vec![json!("number")]].concat().into();
    }
    if !part["items"].is_null() {
        part["items"] = loose(part["items"].take());
    }
    part
}

/// The schema of an option of `crew run`, found by trying if it is not a setting.
fn option(name: &str) -> Value {
    let takes = |value: toml::Value| check_value::<TaskOptions>(name, Some(&value)).is_ok();
    let part = match Key::find_in_table("loop", name) {
        Some(setting) => key(setting),
        None if takes(true.into()) => json!({ "type": "boolean" }),
        None if takes(vec!["a"].into()) => texts(),
        None => text(),
    };
    let mut part = described(part, &description(name));
    if name == "prove" {
        let typed = words(name).into_iter().map(Value::from);
        part["enum"] = typed.chain([true.into(), false.into()]).collect();
    }
    if part["pattern"] == NO_OPTION {
        part["pattern"] = text()["pattern"].take();
    }
    loose(part)
}

/// The schema of fleet.toml, whose definition `front-matter` is that of a task's front matter.
pub fn schema() -> Value {
    let names = || option_keys().filter(|name| *name != TASK);
    let words = json!({ "type": "array", "items": { "type": ["string", "number"] } });
    let words = described(words, "The agent's own options, as after --");
    let id = "^[A-Za-z0-9_][A-Za-z0-9._-]*$";
    let name = json!({ "type": "string", "pattern": id, "maxLength": 60 });
    let after = json!({ "type": ["string", "array"], "pattern": id, "items": name });
    let branch = json!({ "type": "string", "pattern": r"^[^\s-]\S*$" });
    let mut definitions: Map<_, _> = names().map(|name| (name.to_owned(), option(name))).collect();
    definitions.insert(TASK.to_owned(), words.clone());
    let mut top = listed(
        TOP,
        [
            ("name", loose(name), "The fleet's name, unless it is that of its folder"),
            ("base", loose(branch), "The branch that tasks start from and land on"),
            ("slots", some(amount(Unit::Count)), "The most iterations at once"),
            ("max-cost", amount(Unit::Dollars), "US dollars for all tasks together; 0 = no limit"),
            ("setup", loose(text()), "The command that prepares each new clone, and each landing"),
            ("setup-timeout", some_time(), "The time after which it is ended and has failed"),
            (
                "keep-branches",
                json!({ "type": "boolean" }),
                "Whether a landed task's branches stay at the remote until crew fleet clean",
            ),
        ],
    );
    let task = table(references(option_keys()), &["n"]);
    top["properties"]["task"] = described(
        task,
        "Options of crew run for every task; a task's own value replaces them, its commands and texts are added",
    );
    let land = listed(
        LAND,
        [
            (
                "check",
                loose(texts()),
                "Commands that must pass on the base before a task's work lands",
            ),
            (
                "keep",
                loose(texts()),
                "Ignored files that a landing's checkout keeps, as patterns of git",
            ),
        ],
    );
    top["properties"]["land"] = described(land, "What a landing does");
    let most = json!({ "type": ["integer", "string"], "minimum": 0, "maximum": 9, "pattern": "^[0-9]$", "default": USUAL_PRIORITY });
    let own = listed(
        FRONT_MATTER,
        [
            ("after", loose(after), "The tasks whose work this one builds on"),
            ("priority", most, "From 0 to 9, the most urgent"),
            (
                "touches",
                loose(texts()),
                "The paths that it changes, as globs; tasks that overlap run one by one",
            ),
            ("words", words, "The agent's own options, as after --"),
        ],
    );
    let own = own["properties"].as_object().unwrap().clone();
    let front = table(references(names()).into_iter().chain(own), &["n"]);
    definitions.insert("front-matter".to_owned(), described(front, "How a task runs"));
    top["$schema"] = DIALECT.into();
    top["title"] = "fleet.toml of crew".into();
    top["description"] = "What holds for all tasks of a fleet; the definition front-matter is the front matter of a task".into();
    top["definitions"] = definitions.into();
    top
}

/// Why a text is not a fleet.toml: according to the reader, and to the schema.
pub fn judge_text(schema: &Value, text: &str) -> [Result<(), String>; 2] {
    [read_files(&[], Some(text)).map(drop), by_schema(schema, schema, text)]
}

/// Why a text is not a task file.
pub fn task_verdicts(schema: &Value, text: &str) -> [Result<(), String>; 2] {
    let (entries, _) = split_front_matter(text).unwrap_or_else(|(_, why)| panic!("{why}: {text}"));
    let entries = entries.into_iter().map(|entry| (entry.key, entry.value));
    let front: toml::Table = entries.filter_map(|(key, value)| Some((key, value?))).collect();
    let toml = toml::to_string(&front).unwrap();
    let [_, by_schema] = front_verdicts(schema, &toml);
    [without_neighbours(text), by_schema]
}

/// Whether a task file can be read on its own, whichever other tasks exist.
fn without_neighbours(text: &str) -> Result<(), String> {
    let read = read_files(&[("b.md", text)], None).map(drop);
    read.or_else(|why| if why.contains("does not exist") { Ok(()) } else { Err(why) })
}

/// Why a text is not front matter in TOML.
pub fn front_verdicts(schema: &Value, text: &str) -> [Result<(), String>; 2] {
    let task = format!("+++\n{text}+++\ndo it");
    let front = &schema["definitions"]["front-matter"];
    [without_neighbours(&task), by_schema(schema, front, text)]
}

#[test]
fn the_reader_and_the_schema_accept_the_same_values() {
    let schema = schema();
    let line = |key: &str, value: &str| format!("{key} = {value}\n");
    let mut top = keys(&schema);
    top.retain(|key| !["task", "land"].contains(key));
    let verdicts = |text: &str| judge_text(&schema, text);
    let mut shown = differences(&top, line, verdicts);
    let land = keys(&schema["properties"]["land"]);
    shown += &differences(&land, |key, value| format!("[land]\n{key} = {value}\n"), verdicts);
    let front = keys(&schema["definitions"]["front-matter"]);
    shown += &differences(&front, line, |text: &str| front_verdicts(&schema, text));
    insta::assert_snapshot!(shown, @r"
    base = -1: only the schema
    name = -1: only the schema
    setup-timeout = '0s': only the schema
    after = -1: only the schema
    ");
    let task = keys(&schema["properties"]["task"]);
    let mut known: Vec<&str> = option_keys().collect();
    known.sort_unstable();
    assert_eq!(task, known);
}

#[test]
fn the_page_lists_every_key_of_the_files() {
    let page = include_str!("../../../docs/reference/fleet-files.md");
    let keys = words_of(TOP).chain(words_of(FRONT_MATTER)).map(|key| format!("| `{key}` |"));
    let land = words_of(LAND).map(|key| format!("| `[land] {key}` |"));
    for row in keys.chain(land) {
        assert!(page.contains(&row), "docs/reference/fleet-files.md lacks {row}");
    }
}
