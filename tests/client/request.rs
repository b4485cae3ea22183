//! One request of the client as the scripted API logged it, and the questions tests ask of it.

use serde_json::Value;

use super::http::HttpRequest;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The main loop: its tools hold `Bash`. Only these consume the script.
    Main,
    /// A request without that tool: a title, a summary.
    Side,
    CountTokens,
    /// Everything else: `HEAD` and `GET` before the first message.
    Probe,
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Request {
    pub(super) fn new(request: HttpRequest) -> Self {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let path = request.path.split('?').next().unwrap_or_default();
        let has_bash = body["tools"].as_array().into_iter().flatten().any(|t| t["name"] == "Bash");
        let kind = match (request.method.as_str(), path) {
            ("POST", "/v1/messages") if has_bash => Kind::Main,
            ("POST", "/v1/messages") => Kind::Side,
            ("POST", "/v1/messages/count_tokens") => Kind::CountTokens,
            _ => Kind::Probe,
        };
        Self { kind, headers: request.headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a subagent asks. Its tools hold `Bash` too, so it asks the script like the main
    /// loop.
    pub(crate) fn is_of_a_subagent(&self) -> bool {
        self.header("x-claude-code-agent-id").is_some()
    }

    /// Everything said so far, by either side; sessions that share a server are told apart by it.
    pub(crate) fn conversation(&self) -> String {
        texts(self.messages())
    }

    /// What the model was newly told: all that follows its own last message, tool results included.
    pub(crate) fn newest(&self) -> String {
        let messages = self.messages();
        let said = messages.iter().rposition(|message| message["role"] == "assistant");
        texts(&messages[said.map_or(0, |at| at + 1)..])
    }

    /// The ids of the tool calls answered by what is new.
    pub(super) fn answered_calls(&self) -> Vec<&str> {
        let last = self.messages().iter().rev().take_while(|m| m["role"] != "assistant");
        let blocks = last.filter_map(|message| message["content"].as_array()).flatten();
        blocks.filter_map(|block| block["tool_use_id"].as_str()).collect()
    }

    fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }
}

fn texts(messages: &[Value]) -> String {
    let mut lines = Vec::new();
    for message in messages {
        collect_texts(&message["content"], &mut lines);
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
