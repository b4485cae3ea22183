//! A request of the client as the scripted API logged it, with what tests need to know about it.

use serde_json::Value;

use super::http::HttpRequest;
use super::shapes::Shape;

/// The beginning of Qwen's prompt about its own memory, after the work.
const MEMORY: &str = "Managed memory has TWO directories";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request of the main loop: it offers `Bash`, or in another API than Claude's any tool. Only
    /// these consume the script.
    Main,
    /// A request without tools: a title, a summary.
    Side,
    CountTokens,
    /// A stream in both directions, which no API of these tests supports: the agent then uses HTTP.
    Upgrade,
    /// Everything else: `HEAD` and `GET` before the first message.
    Probe,
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(super) shape: Option<Shape>,
    /// Whether the answer is to be a stream of events.
    pub(super) is_streamed: bool,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Request {
    pub(super) fn new(request: HttpRequest) -> Self {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let path = request.path.split('?').next().unwrap_or_default();
        let shape = Shape::of(path).filter(|_| request.method == "POST");
        let is_main = shape.is_some_and(|shape| {
            let tools = shape.tools(&body);
            match shape {
                Shape::Messages => tools.iter().any(|(name, _)| *name == "Bash"),
                _ => !tools.is_empty() && !body.to_string().contains(MEMORY),
            }
        });
        let has_header = |wanted: &str| request.headers.iter().any(|(name, _)| name == wanted);
        let kind = match shape {
            Some(_) if is_main => Kind::Main,
            Some(_) => Kind::Side,
            None if path.ends_with("/count_tokens") => Kind::CountTokens,
            None if has_header("upgrade") => Kind::Upgrade,
            None => Kind::Probe,
        };
        let is_streamed = body["stream"] == true || path.ends_with(":streamGenerateContent");
        Self { kind, shape, is_streamed, headers: request.headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a subagent sent it. A subagent's tools include `Bash`, too, so it consumes the
    /// script like the main loop.
    pub(crate) fn is_of_a_subagent(&self) -> bool {
        self.header("x-claude-code-agent-id").is_some()
    }

    /// Everything said so far, by either side; distinguishes sessions that share a server.
    pub(crate) fn conversation(&self) -> String {
        texts(self.messages())
    }

    /// The new part of the conversation: everything after the model's last message, tool results
    /// included.
    pub(crate) fn newest(&self) -> String {
        let messages = self.messages();
        let said = messages
            .iter()
            .rposition(|message| message["role"] == "assistant" || message["role"] == "model");
        texts(&messages[said.map_or(0, |at| at + 1)..])
    }

    /// The ids of the tool calls answered in the new part.
    pub(super) fn answered_calls(&self) -> Vec<&str> {
        let last = self.messages().iter().rev().take_while(|m| m["role"] != "assistant");
        let blocks = last.filter_map(|message| message["content"].as_array()).flatten();
        blocks.filter_map(|block| block["tool_use_id"].as_str()).collect()
    }

    fn messages(&self) -> &[Value] {
        self.shape.map_or(&[], |shape| shape.conversation(&self.body))
    }
}

fn texts(messages: &[Value]) -> String {
    let mut lines = Vec::new();
    for message in messages {
        for content in ["content", "parts"] {
            collect_texts(&message[content], &mut lines);
        }
    }
    lines.join("\n")
}

fn collect_texts<'a>(content: &'a Value, lines: &mut Vec<&'a str>) {
    match content {
        Value::String(text) => lines.push(text),
        Value::Array(blocks) => {
            for block in blocks {
                lines.extend(block["text"].as_str());
                collect_texts(&block["content"], lines);
            }
        }
        _ => {}
    }
}
