//! The chat completions API, which most agents use that accept any model: a message in pieces, its
//! end, its usage, and a final event.

use serde_json::{Value, json};

use super::{Answer, Part, Tool, halves, unnamed};

pub(super) fn tools(body: &Value) -> Vec<Tool<'_>> {
    let tools = body["tools"].as_array().into_iter().flatten().map(|tool| &tool["function"]);
    tools.filter_map(|tool| Some((tool["name"].as_str()?, &tool["parameters"]))).collect()
}

pub(super) fn whole(answer: &Answer<'_>) -> Value {
    let text: String = texts(answer).collect();
    let mut message = json!({"role": "assistant", "content": text});
    let calls: Vec<Value> = calls(answer).map(|(_, call)| call).collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut whole = base(answer, "chat.completion");
    whole["choices"] = json!([{"index": 0, "message": message, "finish_reason": end(answer)}]);
    whole["usage"] = usage(answer);
    whole
}

pub(super) fn events(answer: &Answer<'_>) -> Vec<String> {
    let piece = |delta: Value, end: Option<&str>| {
        let mut piece = base(answer, "chat.completion.chunk");
        piece["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": end}]);
        unnamed(&piece)
    };
    let mut events = vec![piece(json!({"role": "assistant", "content": ""}), None)];
    for text in texts(answer) {
        events.extend(halves(text).map(|half| piece(json!({"content": half}), None)));
    }
    for (index, mut call) in calls(answer) {
        call["index"] = index.into();
        events.push(piece(json!({"tool_calls": [call]}), None));
    }
    events.push(piece(json!({}), Some(end(answer))));
    let mut used = base(answer, "chat.completion.chunk");
    used["choices"] = json!([]);
    used["usage"] = usage(answer);
    events.push(unnamed(&used));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn base(answer: &Answer<'_>, object: &str) -> Value {
    json!({"id": format!("chatcmpl-{}", answer.id), "object": object, "created": 0,
        "model": answer.model})
}

fn texts<'a>(answer: &'a Answer<'_>) -> impl Iterator<Item = &'a str> {
    answer.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Call { .. } => None,
    })
}

fn calls(answer: &Answer<'_>) -> impl Iterator<Item = (usize, Value)> {
    let calls = answer.parts.iter().filter_map(|part| match part {
        Part::Text(_) => None,
        Part::Call { name, input } => Some((name, input)),
    });
    calls.enumerate().map(|(index, (name, input))| {
        let function = json!({"name": name, "arguments": input.to_string()});
        let id = format!("call_{}_{index}", answer.id);
        (index, json!({"id": id, "type": "function", "function": function}))
    })
}

fn end(answer: &Answer<'_>) -> &'static str {
    if answer.is_cut {
        "length"
    } else if calls(answer).next().is_some() {
        "tool_calls"
    } else {
        "stop"
    }
}

fn usage(answer: &Answer<'_>) -> Value {
    let tokens = answer.tokens;
    let prompt = tokens.input + tokens.cached;
    json!({
        "prompt_tokens": prompt, "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens": tokens.output, "total_tokens": prompt + tokens.output,
    })
}
