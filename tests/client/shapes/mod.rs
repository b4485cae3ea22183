//! The model APIs that the scripted server supports, one file each: what a request offers and
//! contains, and how a reply is rendered. They know nothing about connections, and no API knows
//! another; what two of them share is in `openai`.

use serde_json::Value;

use super::refusal::{Fault, Refusal};
use super::reply::{Block, Message, Tokens};

mod chat;
mod gemini;
pub(super) mod messages;
mod offered;
mod openai;
mod responses;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Claude's Messages API.
    Messages,
    /// Codex's Responses API.
    Responses,
    /// The chat completions API, used here by Copilot, opencode and Qwen.
    Chat,
    Gemini,
}

/// A message to be rendered for an API.
#[derive(Debug)]
struct Answer<'a> {
    id: &'a str,
    model: &'a str,
    parts: Vec<Part>,
    tokens: Tokens,
    /// Whether the token limit truncates it.
    is_cut: bool,
}

#[derive(Debug)]
pub(super) enum Part {
    Text(String),
    Call { name: String, input: Value },
}

/// A tool that a request offers: its name and the JSON schema of its input.
pub(super) type Tool<'request> = (&'request str, &'request Value);

impl Shape {
    pub(super) fn of(path: &str) -> Option<Self> {
        let ends = |end| path.ends_with(end);
        if ends("/messages") {
            Some(Self::Messages)
        } else if ends("/responses") {
            Some(Self::Responses)
        } else if ends("/chat/completions") {
            Some(Self::Chat)
        } else if ends(":generateContent") || ends(":streamGenerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    pub(super) fn tools(self, body: &Value) -> Vec<Tool<'_>> {
        match self {
            Self::Messages => messages::tools(body),
            Self::Responses => responses::tools(body),
            Self::Chat => chat::tools(body),
            Self::Gemini => gemini::tools(body),
        }
    }

    /// The conversation so far, one entry for each message.
    pub(super) fn conversation(self, body: &Value) -> &[Value] {
        let key = match self {
            Self::Messages | Self::Chat => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
        };
        body[key].as_array().map_or(&[], Vec::as_slice)
    }

    pub(super) fn refuse(self, refusal: Refusal) -> Fault {
        match self {
            Self::Messages => messages::refuse(refusal),
            Self::Responses => responses::refuse(refusal),
            Self::Chat => openai::refuse(refusal),
            Self::Gemini => gemini::refuse(refusal),
        }
    }

    /// The whole message, for a request that did not ask for a stream.
    pub(super) fn whole(self, message: &Message, body: &Value, id: &str) -> Value {
        let answer = || self.answer(message, body, id);
        match self {
            Self::Messages => messages::whole(message, body, id),
            Self::Responses => responses::whole(&answer()),
            Self::Chat => chat::whole(&answer()),
            Self::Gemini => gemini::whole(&answer()),
        }
    }

    /// The message as the events of a stream, each as it is sent.
    pub(super) fn events(self, message: &Message, body: &Value, id: &str) -> Vec<String> {
        let answer = || self.answer(message, body, id);
        match self {
            Self::Messages => messages::events(message, body, id),
            Self::Responses => responses::events(&answer()),
            Self::Chat => chat::events(&answer()),
            Self::Gemini => gemini::events(&answer()),
        }
    }

    fn answer<'a>(self, message: &Message, body: &'a Value, id: &'a str) -> Answer<'a> {
        let tools = self.tools(body);
        let parts = message.blocks.iter().filter_map(|block| Part::of(block, &tools)).collect();
        Answer {
            id,
            model: body["model"].as_str().unwrap_or("scripted"),
            parts,
            tokens: message.tokens(),
            is_cut: message.is_cut(),
        }
    }
}

impl Part {
    /// The block in this API; `None` for what only Claude's API has, and for an empty text.
    fn of(block: &Block, tools: &[Tool<'_>]) -> Option<Self> {
        let (name, input) = match block {
            Block::Text(text) => {
                return (!text.is_empty()).then(|| Self::Text(text.clone()));
            }
            Block::Bash { command, .. } => offered::shell(tools, command),
            Block::Write { path, text } => offered::write(tools, path, text),
            Block::Tool { name, input } => ((*name).to_owned(), input.clone()),
            Block::Thinking(_) | Block::Agent { .. } => return None,
        };
        Some(Self::Call { name, input })
    }
}

/// An event whose name is the `type` of its data.
fn named(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or("message");
    format!("event: {name}\ndata: {data}\n\n")
}

/// An event without a name.
fn unnamed(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// A text in two pieces, as a model would send it.
fn halves(text: &str) -> [&str; 2] {
    let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at));
    let (one, two) = text.split_at(half.unwrap_or(0));
    [one, two]
}
