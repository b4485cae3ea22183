//! The Responses API, which Codex uses: a response consists of items, each opened, filled and
//! closed.

use serde_json::{Value, json};

use super::{Answer, Part, Tool, halves, named, openai};
use crate::client::refusal::{Fault, Refusal};

/// The tools of a request: functions, some of them in a namespace.
pub(super) fn tools(body: &Value) -> Vec<Tool<'_>> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let all = tools.flat_map(|tool| match tool["tools"].as_array() {
        Some(tools) => tools.iter().collect(),
        None => vec![tool],
    });
    all.filter_map(|tool| Some((tool["name"].as_str()?, &tool["parameters"]))).collect()
}

/// A refusal; a plan's limit has a kind of its own here.
pub(super) fn refuse(refusal: Refusal) -> Fault {
    match refusal {
        Refusal::Limit { reset } => openai::error(
            429,
            &json!({
                "type": "usage_limit_reached", "message": "The usage limit has been reached",
                "plan_type": "plus", "resets_at": reset.timestamp(),
            }),
        ),
        other => openai::refuse(other),
    }
}

pub(super) fn whole(answer: &Answer<'_>) -> Value {
    let items: Vec<Value> =
        answer.parts.iter().enumerate().map(|(index, part)| item(answer.id, index, part)).collect();
    let cut = json!({"reason": "max_output_tokens"});
    let tokens = answer.tokens;
    let input = tokens.input + tokens.cached;
    json!({
        "id": format!("resp_{}", answer.id), "object": "response", "created_at": 0,
        "status": if answer.is_cut { "incomplete" } else { "completed" },
        "model": answer.model, "output": items, "error": null,
        "incomplete_details": answer.is_cut.then_some(cut),
        "usage": {
            "input_tokens": input, "input_tokens_details": {"cached_tokens": tokens.cached},
            "output_tokens": tokens.output, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + tokens.output,
        },
    })
}

pub(super) fn events(answer: &Answer<'_>) -> Vec<String> {
    let response = whole(answer);
    let mut begun = response.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    for (index, part) in answer.parts.iter().enumerate() {
        let item = item(answer.id, index, part);
        match part {
            Part::Text(text) => events.extend(of_a_text(&item, index, text)),
            Part::Call { .. } => events.extend(of_a_call(&item, index)),
        }
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
    }
    let end = if answer.is_cut { "response.incomplete" } else { "response.completed" };
    events.push(json!({"type": end, "response": response}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events.iter().map(named).collect()
}

fn item(id: &str, index: usize, part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({
            "type": "message", "role": "assistant", "id": format!("item_{id}_{index}"),
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Part::Call { name, input } => json!({
            "type": "function_call", "id": format!("item_{id}_{index}"), "status": "completed",
            "call_id": format!("call_{id}_{index}"), "name": name, "arguments": input.to_string(),
        }),
    }
}

fn of_a_text(item: &Value, index: usize, text: &str) -> Vec<Value> {
    let mut opened = item.clone();
    opened["status"] = json!("in_progress");
    opened["content"] = json!([]);
    let at = |kind: &str, key: &str, value: Value| {
        json!({"type": kind, "item_id": item["id"], "output_index": index, "content_index": 0,
            key: value})
    };
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let mut events = vec![
        json!({"type": "response.output_item.added", "output_index": index, "item": opened}),
        at("response.content_part.added", "part", part("")),
    ];
    events.extend(halves(text).map(|half| at("response.output_text.delta", "delta", json!(half))));
    events.push(at("response.output_text.done", "text", json!(text)));
    events.push(at("response.content_part.done", "part", part(text)));
    events
}

fn of_a_call(item: &Value, index: usize) -> Vec<Value> {
    let mut opened = item.clone();
    opened["status"] = json!("in_progress");
    opened["arguments"] = json!("");
    let at = |kind: &str, key: &str| {
        json!({"type": kind, "item_id": item["id"], "output_index": index,
            key: item["arguments"]})
    };
    vec![
        json!({"type": "response.output_item.added", "output_index": index, "item": opened}),
        at("response.function_call_arguments.delta", "delta"),
        at("response.function_call_arguments.done", "arguments"),
    ]
}
