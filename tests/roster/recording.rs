//! Recordings: with `CREW_RECORD=1` the output of an agent in the first iteration of a cell is kept
//! as a fixture, shortened, and with placeholders for parts that differ from run to run.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::agent::Agent;
use super::scenario::Scenario;
use crate::client::Api;
use crate::sandbox::{Sandbox, checkout};

/// How many lines of the beginning of a long recording are kept; its end is kept, too.
const FIRST_LINES: usize = 40;
const LAST_LINES: usize = 20;
const TEXT_CHARS: usize = 300;
const LIST_ITEMS: usize = 5;

pub(super) fn keep(agent: &Agent, scenario: &Scenario, sandbox: &Sandbox, api: &Api) {
    if std::env::var("CREW_RECORD").as_deref() != Ok("1") {
        return;
    }
    let Some(text) = first_log(sandbox) else { return };
    let clients = checkout().join("target/clients");
    let words = [
        (clients.canonicalize().unwrap().display().to_string(), "CLIENTS"),
        (sandbox.repository().display().to_string(), "REPOSITORY"),
        (sandbox.home().display().to_string(), "HOME"),
        (sandbox.root().display().to_string(), "WORLD"),
        (api.url(), "http://SERVER"),
    ];
    let text = words.into_iter().fold(text, |text, (from, word)| text.replace(&from, word));
    let lines: Vec<String> = text.lines().map(shortened).collect();
    let left_out = FIRST_LINES..lines.len().saturating_sub(LAST_LINES);
    let kept = lines.iter().enumerate().filter(|(index, _)| !left_out.contains(index));
    let text: String = kept.flat_map(|(_, line)| [line.as_str(), "\n"]).collect();
    let folder = folder(agent);
    std::fs::create_dir_all(&folder).unwrap();
    let name = format!("{}.jsonl", scenario.name.replace(' ', "-"));
    std::fs::write(folder.join(name), text).unwrap();
}

fn folder(agent: &Agent) -> PathBuf {
    let name = format!("{}-{}", agent.name, agent.version);
    checkout().join("tests/fixtures/agents").join(name)
}

fn first_log(sandbox: &Sandbox) -> Option<String> {
    let loops = std::fs::read_dir(sandbox.crew_home().join("loops")).ok()?;
    let folder = loops.flatten().next()?.path();
    let bytes = std::fs::read(folder.join(Path::new("iterations/0001.log"))).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A line with its long texts and lists truncated; it remains valid JSON.
fn shortened(line: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else {
        return line.chars().take(TEXT_CHARS).collect();
    };
    shorten(&mut value);
    value.to_string()
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().count() > TEXT_CHARS => {
            *text = text.chars().take(TEXT_CHARS).chain(['…']).collect();
        }
        Value::Array(items) => {
            items.truncate(LIST_ITEMS);
            items.iter_mut().for_each(shorten);
        }
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}
