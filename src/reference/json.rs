//! The JSON objects that programs read.

use super::page::{Block, Part, entry};
use super::source::{FILES, Field, fields, keys};
use regex::Regex;

/// Where the code has the keys of an object.
enum Place {
    /// A struct that serde writes.
    Type(&'static str),
    /// A function that writes them, with its file.
    Function(&'static str, &'static str),
    /// A function that inserts them into the map of this name, with its file.
    Map(&'static str, &'static str, &'static str),
}

use Place::{Function, Map, Type};

const VIEW: &str = "crates/engine/src/view.rs";
const EVENTS: &str = "src/report/events.rs";
const STATE: &str = "crates/engine/src/words/programs.rs";
const SHOW: &str = "src/report/show.rs";

/// Each object, with the places of its keys.
const OBJECTS: [(&str, &[Place]); 37] = [
    ("status", &[Function(EVENTS, "status_json"), Function("src/cmd/status.rs", "show_json")]),
    ("loop", &[Function("crates/engine/src/view/columns.rs", "serialize")]),
    ("limits", &[Type("Limits")]),
    ("usage", &[Function(VIEW, "usage_value")]),
    ("check", &[Type("Check")]),
    ("owner", &[Type("Owner")]),
    ("doing", &[Type("Doing")]),
    ("dialog", &[Type("Dialog")]),
    ("git", &[Type("GitSteps")]),
    ("evidence", &[Type("Evidence")]),
    ("check result", &[Type("CheckResult")]),
    ("tests of a check", &[Type("TestReport")]),
    ("recorded usage", &[Type("Usage")]),
    ("changed file", &[Type("ChangedFile")]),
    ("head", &[Type("HeadMove")]),
    ("check_end", &[Function(EVENTS, "check_fields")]),
    ("history", &[Function("src/report/list.rs", "history_json"), Type("Totals")]),
    ("account", &[Function("src/report/list.rs", "windows_json")]),
    ("show", &[Function(SHOW, "story_json")]),
    ("iteration", &[Function(SHOW, "iteration_json")]),
    ("page", &[Type("Page")]),
    ("check of a page", &[Type("PageCheck")]),
    ("iteration of a page", &[Type("IterationLine")]),
    ("changes", &[Type("Changes")]),
    ("config", &[Function("src/report/settings.rs", "config_json")]),
    ("setting", &[Type("ConfigRow")]),
    (
        "doctor",
        &[
            Function("src/report/setup.rs", "doctor_json"),
            Function("src/drive/installation/doctor.rs", "examine_machine"),
        ],
    ),
    ("finding", &[Type("Finding")]),
    ("fleet", &[Function("src/fleet/status.rs", "serialize")]),
    ("task of a fleet", &[Type("TaskStatus")]),
    ("event", &[Function(EVENTS, "render_event")]),
    ("iteration_end", &[Function(EVENTS, "iteration_fields")]),
    ("finish", &[Function(EVENTS, "finish_fields")]),
    ("reaction", &[Function("crates/engine/src/words/programs.rs", "loop_document")]),
    ("state.json", &[Map(STATE, "merge_view", "file")]),
    ("loop of state.json", &[Function(STATE, "loop_values"), Map(STATE, "merge_view", "ours")]),
    ("result.json", &[Function("src/drive/page.rs", "write_result"), Type("Commits")]),
];

/// A block for each object, and one for the events of a run.
pub fn blocks() -> Vec<Block> {
    let object = |(name, places): &(&str, &[Place])| {
        let mut all: Vec<Field> = Vec::new();
        for field in places.iter().flat_map(of_place) {
            if all.iter().all(|known| known.name != field.name) {
                all.push(field);
            }
        }
        Block::new(*name, all.iter().map(|field| entry(&field.name, "", &field.words)).collect())
    };
    let mut blocks: Vec<Block> = OBJECTS.iter().map(object).collect();
    blocks.push(Block::new("events", events()));
    blocks
}

fn of_place(place: &Place) -> Vec<Field> {
    match place {
        Type(name) => fields(name),
        Function(file, name) => without_words(keys(file, name, "")),
        Map(file, name, map) => without_words(keys(file, name, map)),
    }
}

fn without_words(keys: Vec<String>) -> Vec<Field> {
    keys.into_iter().map(|name| Field { name, words: String::new() }).collect()
}

/// The events, each with its fields besides those that all events have.
fn events() -> Vec<Part> {
    let (_, body) =
        FILES[EVENTS].split_once("pub fn event_fields").expect("the events are made there");
    let body = body.split("\nfn ").next().unwrap_or_default();
    let arm = Regex::new(r#"\([ \n]*"([a-z_]+)",[ \n]*(?:json!\(\{([^}]*)\})?"#).unwrap();
    let key = Regex::new(r#""([a-z_]+)":"#).unwrap();
    let events = arm.captures_iter(body).map(|arm| {
        let carried = arm.get(2).map_or("", |keys| keys.as_str());
        let carried = key.captures_iter(carried).map(|key| format!("`{}`", &key[1]));
        let carried = carried.collect::<Vec<_>>().join(", ");
        let note = if carried.is_empty() { carried } else { format!(" ({carried})") };
        entry(&arm[1], &note, "")
    });
    events.collect()
}
