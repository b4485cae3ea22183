//! The Messages API, which Claude Code uses: a message consists of numbered blocks.

use serde_json::{Value, json};

use super::{Tool, halves, named};
use crate::client::refusal::{Fault, Refusal};
use crate::client::reply::{Block, Message};

pub(super) fn tools(body: &Value) -> Vec<Tool<'_>> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| Some((tool["name"].as_str()?, &tool["input_schema"]))).collect()
}

pub(super) fn refuse(refusal: Refusal) -> Fault {
    let (status, kind, message) = match refusal {
        Refusal::Key => (401, "authentication_error", "invalid x-api-key".to_owned()),
        Refusal::Credit => (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & \
             Billing to upgrade or purchase credits."
                .to_owned(),
        ),
        Refusal::Busy { .. } => {
            let message = "This request would exceed your rate limit. Please try again later.";
            (429, "rate_limit_error", message.to_owned())
        }
        Refusal::Limit { reset } => {
            let words = reset.format("You've hit your session limit · resets %-I:%M%P (UTC)");
            (429, "rate_limit_error", words.to_string())
        }
        Refusal::Outage => (500, "api_error", "Internal server error".to_owned()),
    };
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    Fault::new(status, body).retry_after(refusal)
}

pub(super) fn whole(message: &Message, body: &Value, id: &str) -> Value {
    let blocks = message.blocks.iter().enumerate();
    let content: Vec<Value> = blocks.map(|(index, block)| block_json(block, id, index)).collect();
    json!({
        "id": id, "type": "message", "role": "assistant", "model": body["model"],
        "content": content, "stop_reason": stop_reason(message), "stop_sequence": null,
        "usage": message.usage,
    })
}

pub(super) fn events(message: &Message, body: &Value, id: &str) -> Vec<String> {
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": id, "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": first_usage(message),
    }})];
    for (index, block) in message.blocks.iter().enumerate() {
        let start = opening(block, id, index);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas(block) {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(message), "stop_sequence": null},
        "usage": {"output_tokens": message.usage["output_tokens"]},
    }));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(named).collect()
}

/// The ids of its tool calls, made from the message's own.
pub(in crate::client) fn tool_calls(message: &Message, id: &str) -> Vec<String> {
    let indexed = message.blocks.iter().enumerate();
    let calls = indexed.filter(|(_, block)| call(block).is_some());
    calls.map(|(index, _)| call_id(id, index)).collect()
}

fn stop_reason(message: &Message) -> &'static str {
    let calls = message.blocks.iter().any(|block| call(block).is_some());
    message.stop_reason.unwrap_or(if calls { "tool_use" } else { "end_turn" })
}

fn first_usage(message: &Message) -> Value {
    let mut usage = message.usage.clone();
    if let Some(output_tokens) = message.begun_with {
        usage["output_tokens"] = output_tokens.into();
    }
    usage
}

/// The tool that a block calls, with its arguments.
fn call(block: &Block) -> Option<(&'static str, Value)> {
    match block {
        Block::Text(_) | Block::Thinking(_) => None,
        Block::Bash { command, in_background } => {
            let mut input = json!({"command": command, "description": "as the script says"});
            if *in_background {
                input["run_in_background"] = json!(true);
            }
            Some(("Bash", input))
        }
        Block::Write { path, text } => Some(("Write", json!({"file_path": path, "content": text}))),
        Block::Agent { prompt } => {
            let input = json!({"description": "a part of the work", "prompt": prompt,
                "subagent_type": "general-purpose"});
            Some(("Agent", input))
        }
        Block::Tool { name, input } => Some((*name, input.clone())),
    }
}

fn block_json(block: &Block, id: &str, index: usize) -> Value {
    match block {
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::Thinking(text) => {
            json!({"type": "thinking", "thinking": text, "signature": "scripted"})
        }
        _ => tool_use(block, id, index, |input| input),
    }
}

fn opening(block: &Block, id: &str, index: usize) -> Value {
    match block {
        Block::Text(_) => json!({"type": "text", "text": ""}),
        Block::Thinking(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
        _ => tool_use(block, id, index, |_| json!({})),
    }
}

fn tool_use(block: &Block, id: &str, index: usize, input: impl Fn(Value) -> Value) -> Value {
    let (name, asked) = call(block).unwrap();
    json!({"type": "tool_use", "id": call_id(id, index), "name": name, "input": input(asked)})
}

fn deltas(block: &Block) -> Vec<Value> {
    match block {
        Block::Text(text) => {
            halves(text).map(|part| json!({"type": "text_delta", "text": part})).into()
        }
        Block::Thinking(text) => vec![
            json!({"type": "thinking_delta", "thinking": text}),
            json!({"type": "signature_delta", "signature": "scripted"}),
        ],
        _ => {
            let (_, input) = call(block).unwrap();
            vec![json!({"type": "input_json_delta", "partial_json": input.to_string()})]
        }
    }
}

fn call_id(message: &str, index: usize) -> String {
    format!("toolu_{message}_{index}")
}
