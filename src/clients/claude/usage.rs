//! What a model's message used, as a line of the client's transcript reports it. The client writes
//! one line for each block of a message, each with the message's id and its usage. A line of
//! another shape reports nothing.

use std::borrow::Cow;

use chrono::DateTime;
use serde::Deserialize;

use super::prices;
use crate::clients::Dated;
use crate::engine::usage::prices::Speed;
use crate::engine::usage::{Message, Tokens};
use crate::parse::amounts;

/// The longest id or model kept, in characters.
const NAME_CHARS: usize = 80;

/// The message a line reports and when it was written; `None` for every other line.
pub fn message(line: &str) -> Option<Dated> {
    if !may_hold_one(line) {
        return None;
    }
    let line: Line<'_> = serde_json::from_slice(line.as_bytes()).ok()?;
    if line.kind != "assistant" {
        return None;
    }
    let Told { id, model, usage } = line.message;
    let written = usage.cache_creation.unwrap_or_default();
    // The one-hour part never exceeds what was written in all.
    let hour = whole(written.hour).min(whole(usage.cache_write));
    let tokens = Tokens {
        input: whole(usage.input),
        cache_write: whole(usage.cache_write) - hour,
        cache_write_hour: hour,
        cache_read: whole(usage.cache_read),
        output: whole(usage.output),
    };
    let mut message = Message {
        id: clipped(&id),
        model: clipped(&model),
        tokens,
        web_searches: usage.tools.map_or(0, |tools| whole(tools.web_searches)),
        speed: if usage.speed.as_deref() == Some("fast") { Speed::Fast } else { Speed::Standard },
        in_the_us: usage.geo.as_deref() == Some("us"),
        cost: None,
    };
    message.cost = prices::cost(&message);
    let used = message.tokens.total() > 0 || message.web_searches > 0;
    let at = line.timestamp.and_then(|at| DateTime::parse_from_rfc3339(&at).ok());
    used.then(|| (message, at.map(|at| at.to_utc())))
}

/// A cheap test: whether a line, or the beginning of one, can be a model's.
pub fn may_hold_one(line: &str) -> bool {
    line.contains("\"assistant\"")
}

fn clipped(text: &str) -> String {
    text.chars().take(NAME_CHARS).collect()
}

/// Numbers come from the client: one that is absent counts as 0, a fraction is cut off.
fn whole(number: Option<f64>) -> u64 {
    number.map_or(0, amounts::whole)
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Told<'a>,
}

#[derive(Deserialize)]
struct Told<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    model: Cow<'a, str>,
    #[serde(borrow)]
    usage: Used<'a>,
}

#[derive(Deserialize)]
struct Used<'a> {
    #[serde(rename = "input_tokens")]
    input: Option<f64>,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_write: Option<f64>,
    cache_creation: Option<Written>,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: Option<f64>,
    #[serde(rename = "output_tokens")]
    output: Option<f64>,
    #[serde(rename = "server_tool_use")]
    tools: Option<Tools>,
    #[serde(borrow)]
    speed: Option<Cow<'a, str>>,
    #[serde(rename = "inference_geo", borrow)]
    geo: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
struct Written {
    #[serde(rename = "ephemeral_1h_input_tokens")]
    hour: Option<f64>,
}

#[derive(Deserialize)]
struct Tools {
    #[serde(rename = "web_search_requests")]
    web_searches: Option<f64>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(usage: &Value) -> String {
        json!({
            "type": "assistant", "timestamp": "2026-11-22T00:05:17.250Z", "isSidechain": false,
            "message": {"id": "msg_1", "model": "claude-opus-5-5", "role": "assistant",
                "content": [{"type": "text", "text": "a \"quoted\" word"}], "usage": usage},
        })
        .to_string()
    }

    #[test]
    fn a_models_line_tells_what_its_message_used_and_every_other_line_nothing() {
        let (told, at) = message(&line(&json!({
            "input_tokens": 1, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300,
            "output_tokens": 4000, "cache_creation": {"ephemeral_1h_input_tokens": 5,
            "ephemeral_5m_input_tokens": 15}, "server_tool_use": {"web_search_requests": 2},
            "inference_geo": "us", "speed": "fast", "iterations": [], "service_tier": null,
        })))
        .unwrap();
        let tokens = Tokens {
            input: 1,
            cache_write: 15,
            cache_write_hour: 5,
            cache_read: 300,
            output: 4000,
        };
        let expected = Message {
            id: "msg_1".to_owned(),
            model: "claude-opus-5-5".to_owned(),
            tokens,
            web_searches: 2,
            speed: Speed::Fast,
            in_the_us: true,
            cost: told.cost,
        };
        assert_eq!(told, expected);
        assert_eq!(at.unwrap().timestamp_millis(), 1_795_305_917_250);
        let others = [
            String::new(),
            "{".to_owned(),
            r#"{"type":"user","message":{"content":"\"assistant\""}}"#.to_owned(),
            r#"{"type":"assistant","message":{"content":[]}}"#.to_owned(),
            line(&json!({"input_tokens": 0, "output_tokens": 0})),
            line(&json!({"input_tokens": -5, "output_tokens": null})),
            line(&json!({"input_tokens": "many"})),
            line(&json!([])),
        ];
        for other in others {
            assert_eq!(message(&other), None, "{other}");
        }
    }

    #[test]
    fn what_is_written_for_an_hour_is_a_part_of_what_is_written() {
        let table = [
            (json!({"cache_creation_input_tokens": 10}), (10, 0)),
            (json!({"cache_creation_input_tokens": 10, "cache_creation": null}), (10, 0)),
            (
                json!({"cache_creation_input_tokens": 10,
                    "cache_creation": {"ephemeral_1h_input_tokens": 30}}),
                (0, 10),
            ),
            (json!({"input_tokens": 1e30, "cache_creation": {}}), (0, 0)),
        ];
        for (usage, expected) in table {
            let tokens = message(&line(&usage)).unwrap().0.tokens;
            assert_eq!((tokens.cache_write, tokens.cache_write_hour), expected, "{usage}");
        }
    }
}
