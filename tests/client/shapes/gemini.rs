//! Gemini's API: candidates made of parts, whole in each event of a stream. The time to wait is in
//! the body, not in a header.

use serde_json::{Value, json};

use super::{Answer, Part, Tool, halves, unnamed};
use crate::client::refusal::{Fault, Refusal};

pub(super) fn tools(body: &Value) -> Vec<Tool<'_>> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let functions = tools.filter_map(|tool| tool["functionDeclarations"].as_array()).flatten();
    functions
        .filter_map(|function| {
            let schemas = [&function["parametersJsonSchema"], &function["parameters"]];
            let schema = schemas.into_iter().find(|schema| schema.is_object());
            Some((function["name"].as_str()?, schema.unwrap_or(&Value::Null)))
        })
        .collect()
}

pub(super) fn refuse(refusal: Refusal) -> Fault {
    let (status, kind, message, wait) = match refusal {
        Refusal::Key => (401, "UNAUTHENTICATED", "API key not valid.".to_owned(), None),
        Refusal::Credit => (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details."
                .to_owned(),
            None,
        ),
        Refusal::Busy { seconds } => {
            let message = format!("Rate limit reached. Try again in {seconds}s.");
            (429, "RESOURCE_EXHAUSTED", message, Some(seconds))
        }
        Refusal::Limit { reset } => {
            let seconds = (reset - chrono::Utc::now()).num_seconds().unsigned_abs();
            let message = format!(
                "You have exhausted your capacity on this model. Your quota will reset after \
                 {seconds}s."
            );
            (429, "RESOURCE_EXHAUSTED", message, Some(seconds))
        }
        Refusal::Outage => (500, "INTERNAL", "An internal error has occurred.".to_owned(), None),
    };
    let details: Vec<Value> = wait
        .map(|seconds| {
            json!({"@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": format!("{seconds}s")})
        })
        .into_iter()
        .collect();
    let error = json!({"code": status, "message": message, "status": kind, "details": details});
    Fault::new(status, json!({"error": error}))
}

pub(super) fn whole(answer: &Answer<'_>) -> Value {
    let parts: Vec<Value> = answer.parts.iter().map(part).collect();
    event(answer, &parts, true)
}

/// The events of an answer. A text comes in two events, so that an agent's deltas must be joined.
pub(super) fn events(answer: &Answer<'_>) -> Vec<String> {
    let mut pieces = Vec::new();
    for one in &answer.parts {
        match one {
            Part::Text(text) => pieces.extend(halves(text).map(|half| json!({"text": half}))),
            Part::Call { .. } => pieces.push(part(one)),
        }
    }
    let last = pieces.pop();
    let before = pieces.into_iter().map(|piece| event(answer, &[piece], false));
    let end = event(answer, last.as_slice(), true);
    before.chain([end]).map(|event| unnamed(&event)).collect()
}

fn event(answer: &Answer<'_>, parts: &[Value], is_last: bool) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    let mut event = json!({"modelVersion": answer.model, "responseId": answer.id});
    if is_last {
        candidate["finishReason"] = json!(if answer.is_cut { "MAX_TOKENS" } else { "STOP" });
        let tokens = answer.tokens;
        let prompt = tokens.input + tokens.cached;
        event["usageMetadata"] = json!({
            "promptTokenCount": prompt, "cachedContentTokenCount": tokens.cached,
            "candidatesTokenCount": tokens.output, "totalTokenCount": prompt + tokens.output,
        });
    }
    event["candidates"] = json!([candidate]);
    event
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"text": text}),
        Part::Call { name, input } => json!({"functionCall": {"name": name, "args": input}}),
    }
}
