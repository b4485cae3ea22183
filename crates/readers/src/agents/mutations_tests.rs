//! Damaged output of real agents: truncated, with flipped bits, with fields swapped or of other
//! types, with lines dropped, doubled and rearranged. No reader panics, and success is claimed only
//! if the last remaining closing event reports success and the tag is whole in the model's words.

use serde_json::{Value, json};

use super::recordings_tests::{RECORDED, pass};
use super::*;
use engine::claim::Claim;
use engine::claim::promise::Promise;

/// How many mutated lines are read.
const MUTATED: usize = 100_000;
const TAG: &str = "<promise>COMPLETE</promise>";
/// The recordings in which success is claimed; every other recording claims none.
const CLAIMING: [&str; 3] = ["claim", "false-claim", "429-short"];

/// Numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % most.max(1)
    }
}

/// A line, and whether it was printed to standard output.
type Line = (String, bool);

/// Changes one line of a stream: its bytes, its JSON, or its place among the others. Returns
/// whether it did.
fn mutate(lines: &mut Vec<Line>, at: usize, dice: &mut Dice) -> bool {
    let text = lines[at].0.clone();
    let changed = match dice.below(8) {
        0 => text.chars().take(dice.below(text.chars().count())).collect(),
        1 => {
            let mut bytes = text.into_bytes();
            let byte = dice.below(bytes.len());
            if let Some(byte) = bytes.get_mut(byte) {
                *byte ^= 1 << dice.below(8);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
        2 => {
            lines.remove(at);
            return true;
        }
        3 => {
            let to = dice.below(lines.len());
            let line = lines[at].clone();
            lines.insert(to, line);
            return true;
        }
        4 => {
            let other = dice.below(lines.len());
            lines.swap(at, other);
            return at != other;
        }
        kind => {
            let Ok(mut value) = serde_json::from_str::<Value>(&text) else { return false };
            if kind == 5 {
                let (one, other) = (taken(&mut value, dice), taken(&mut value, dice));
                put(&mut value, other, dice);
                put(&mut value, one, dice);
            } else {
                let others = [
                    json!(null),
                    json!(true),
                    json!(-1),
                    json!(1e300),
                    json!(""),
                    json!([[TAG]]),
                    json!({"text": TAG}),
                    json!(TAG),
                    json!(0),
                    json!("success"),
                ];
                put(&mut value, others[dice.below(others.len())].clone(), dice);
            }
            value.to_string()
        }
    };
    let is_changed = lines[at].0 != changed;
    lines[at].0 = changed;
    is_changed
}

/// A random value inside this one.
fn somewhere<'a>(value: &'a mut Value, dice: &mut Dice) -> &'a mut Value {
    let most = match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    if most == 0 || dice.below(4) == 0 {
        return value;
    }
    let child = dice.below(most);
    let children: Vec<&mut Value> = match value {
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    };
    somewhere(children.into_iter().nth(child).unwrap(), dice)
}

fn taken(value: &mut Value, dice: &mut Dice) -> Value {
    somewhere(value, dice).clone()
}

fn put(value: &mut Value, new: Value, dice: &mut Dice) {
    *somewhere(value, dice) = new;
}

/// The model's own words in an event, read in the simplest way.
fn says(event: &Value) -> String {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
    match text("/type") {
        "item.completed" if text("/item/type") == "agent_message" => text("/item/text").to_owned(),
        "message" if text("/role") == "assistant" => text("/content").to_owned(),
        "assistant.message" => text("/data/content").to_owned(),
        "text" => text("/part/text").to_owned(),
        "result" => text("/result").to_owned(),
        "assistant" => {
            let blocks = event.pointer("/message/content").and_then(Value::as_array);
            let texts =
                blocks.into_iter().flatten().filter_map(|block| block.get("text")?.as_str());
            texts.collect()
        }
        _ => String::new(),
    }
}

/// Whether an event ends the work successfully; `None` if it ends nothing.
fn closes(agent: &str, event: &Value) -> Option<bool> {
    let is = |path: &str, word: &str| event.pointer(path).and_then(Value::as_str) == Some(word);
    let kind = event.get("type")?.as_str()?;
    match (agent, kind) {
        ("codex", "turn.completed") => Some(true),
        ("codex", "turn.failed") | ("opencode", "error") => Some(false),
        ("copilot", "result") => Some(event.get("exitCode").and_then(Value::as_f64) == Some(0.0)),
        ("gemini", "result") => Some(is("/status", "success")),
        ("opencode", "step_finish") => Some(is("/part/reason", "stop")),
        ("claude" | "qwen", "result") => {
            let subtype = event.get("subtype").and_then(Value::as_str).unwrap_or_default();
            Some(event.get("is_error") != Some(&json!(true)) && !subtype.starts_with("error"))
        }
        _ => None,
    }
}

/// Whether a completion is invented, judged by other code than the reader's: the last closing event
/// among the lines does not report success, or the tag is not whole in the model's words.
fn is_invented(agent: &str, lines: &[Line]) -> bool {
    let events = lines.iter().filter(|(_, is_event)| *is_event);
    let events: Vec<Value> =
        events.filter_map(|(line, _)| serde_json::from_str(line).ok()).collect();
    let last = events.iter().rev().find_map(|event| closes(agent, event));
    let said: String = events.iter().map(says).collect();
    last != Some(true) || !said.contains(TAG)
}

#[test]
fn no_reader_panics_or_invents_a_completion_in_a_hundred_thousand_mutated_lines() {
    let now = DateTime::parse_from_rfc3339("2026-11-25T01:00:00Z").unwrap();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut mutated, mut completed) = (0, 0);
    while mutated < MUTATED {
        let recorded = &RECORDED[dice.below(RECORDED.len())];
        let streams = recorded.streams;
        let name = CLAIMING[dice.below(CLAIMING.len())];
        let claiming = streams.iter().find(|(known, _)| *known == name).unwrap();
        let other = &streams[dice.below(streams.len())];
        let (_, stream) = if dice.below(2) == 0 { claiming } else { other };
        let mut lines: Vec<Line> =
            stream.lines().map(|line| (line.to_owned(), line.starts_with('{'))).collect();
        for _ in 0..=dice.below(2 * lines.len()) {
            if !lines.is_empty() {
                let at = dice.below(lines.len());
                mutated += usize::from(mutate(&mut lines, at, &mut dice));
            }
        }
        let mut reader = create_reader(&find_agent(recorded.agent).unwrap());
        for (line, is_event) in &lines {
            pass(&mut reader, line, *is_event);
            reader.service_wait(now);
        }
        let report = reader.report(now);
        let claim = report.claim("Go.", "Go.", Some(&Promise::default()));
        if claim == Claim::Success {
            completed += 1;
            let stream: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
            assert!(
                !is_invented(recorded.agent, &lines),
                "{}: {}",
                recorded.agent,
                stream.join("\n")
            );
        }
    }
    assert!(completed > 100, "only {completed} streams completed: nothing was tried");
}
