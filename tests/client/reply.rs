//! What the scripted model says to one request: its blocks, its usage, its faults and its delays.
//! A reply knows the shape of the Messages API and nothing of connections.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(super) says: Says,
    pub(super) wait: Duration,
    pub(super) pause: Duration,
    pub(super) dropped: bool,
    pub(super) then: Option<Box<Reply>>,
}

#[derive(Debug, Clone)]
pub(super) enum Says {
    Message(Message),
    Fault { status: u16, headers: Vec<(String, String)>, body: Value },
}

#[derive(Debug, Clone)]
pub(super) struct Message {
    blocks: Vec<Block>,
    usage: Value,
    /// The output tokens in the message's first event; its end reports the total.
    begun_with: Option<u64>,
    stop_reason: Option<&'static str>,
}

#[derive(Debug, Clone)]
enum Block {
    Text(String),
    Thinking(String),
    Bash { command: String, in_background: bool },
    Agent { prompt: String },
    Tool { name: &'static str, input: Value },
}

impl Reply {
    fn new(blocks: Vec<Block>) -> Self {
        let usage = json!({
            "input_tokens": 100, "output_tokens": 10,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        });
        let message = Message { blocks, usage, begun_with: None, stop_reason: None };
        Self::says(Says::Message(message))
    }

    fn says(says: Says) -> Self {
        Self { says, wait: Duration::ZERO, pause: Duration::ZERO, dropped: false, then: None }
    }

    /// One block of text.
    pub(crate) fn text(text: &str) -> Self {
        Self::new(vec![Block::Text(text.into())])
    }

    /// A thought; a message with only thoughts makes the client ask again by itself.
    pub(crate) fn thinking(thought: &str) -> Self {
        Self::new(vec![Block::Thinking(thought.into())])
    }

    /// A call of the Bash tool. The answer to its result is the next reply, or `then`.
    pub(crate) fn bash(command: &str) -> Self {
        Self::new(vec![Block::Bash { command: command.into(), in_background: false }])
    }

    /// The same, left running in the background.
    pub(crate) fn background(command: &str) -> Self {
        Self::new(vec![Block::Bash { command: command.into(), in_background: true }])
    }

    /// A call of the Agent tool: a subagent is given this prompt, and asks the same API.
    pub(crate) fn agent(prompt: &str) -> Self {
        Self::new(vec![Block::Agent { prompt: prompt.into() }])
    }

    /// A call of any other tool.
    pub(crate) fn tool(name: &'static str, input: Value) -> Self {
        Self::new(vec![Block::Tool { name, input }])
    }

    /// An HTTP error of the API's shape.
    pub(crate) fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self::says(Says::Fault { status, headers: Vec::new(), body })
    }

    /// A usage limit as it is reported to an account: in headers.
    pub(crate) fn usage_limit(reset: DateTime<Utc>) -> Self {
        Self::error(429, "rate_limit_error", "This request would exceed your limit.")
            .header("anthropic-ratelimit-unified-status", "rejected")
            .header("anthropic-ratelimit-unified-reset", &reset.timestamp().to_string())
            .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
            .no_retry()
    }

    /// One more block of text.
    pub(crate) fn and_text(self, text: &str) -> Self {
        self.and(Block::Text(text.into()))
    }

    /// A call of the Bash tool after what was said.
    pub(crate) fn and_bash(self, command: &str) -> Self {
        self.and(Block::Bash { command: command.into(), in_background: false })
    }

    fn and(mut self, block: Block) -> Self {
        self.message().blocks.push(block);
        self
    }

    /// The answer to the results of this reply's tool calls, so that one entry of a script is one
    /// turn.
    pub(crate) fn then(mut self, reply: Reply) -> Self {
        self.then = Some(Box::new(reply));
        self
    }

    pub(crate) fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        let usage = &mut self.message().usage;
        usage["input_tokens"] = input_tokens.into();
        usage["output_tokens"] = output_tokens.into();
        self
    }

    /// Any other field of its usage, by the API's own name.
    pub(crate) fn used(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.message().usage[name] = value.into();
        self
    }

    /// Reports this many output tokens at the message's beginning, as the API does.
    pub(crate) fn begun_with(mut self, output_tokens: u64) -> Self {
        self.message().begun_with = Some(output_tokens);
        self
    }

    /// Another `stop_reason` than the blocks imply: `max_tokens`, `refusal`.
    pub(crate) fn stop_reason(mut self, reason: &'static str) -> Self {
        self.message().stop_reason = Some(reason);
        self
    }

    /// Waits before the first byte.
    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Waits in the middle of the stream.
    pub(crate) fn pausing(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Drops the connection in the middle of the stream. The client then asks once more for the
    /// whole message at once, whatever its number of retries.
    pub(crate) fn dropped(mut self) -> Self {
        self.dropped = true;
        self
    }

    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        self.header("retry-after", &seconds.to_string())
    }

    /// Tells the client's own retries to give up at once.
    pub(crate) fn no_retry(self) -> Self {
        self.header("x-should-retry", "false")
    }

    /// One more header of an error.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        let Says::Fault { headers, .. } = &mut self.says else {
            panic!("only an error carries headers");
        };
        headers.push((name.into(), value.into()));
        self
    }

    fn message(&mut self) -> &mut Message {
        match &mut self.says {
            Says::Message(message) => message,
            Says::Fault { .. } => panic!("an error says nothing"),
        }
    }
}

impl Message {
    /// The whole message, for a request that did not ask for a stream.
    pub(super) fn json(&self, id: &str, model: &Value) -> Value {
        let content: Vec<Value> =
            self.blocks.iter().enumerate().map(|(index, block)| block.json(id, index)).collect();
        json!({
            "id": id, "type": "message", "role": "assistant", "model": model, "content": content,
            "stop_reason": self.stop_reason(), "stop_sequence": null, "usage": self.usage,
        })
    }

    /// The same message as the events of a stream.
    pub(super) fn events(&self, id: &str, model: &Value) -> Vec<Value> {
        let mut events = vec![json!({"type": "message_start", "message": {
            "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": self.first_usage(),
        }})];
        for (index, block) in self.blocks.iter().enumerate() {
            let start = block.opening(id, index);
            events.push(
                json!({"type": "content_block_start", "index": index, "content_block": start}),
            );
            for delta in block.deltas() {
                events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        events.push(json!({
            "type": "message_delta",
            "delta": {"stop_reason": self.stop_reason(), "stop_sequence": null},
            "usage": {"output_tokens": self.usage["output_tokens"]},
        }));
        events.push(json!({"type": "message_stop"}));
        events
    }

    /// The ids of its tool calls, made from the message's own.
    pub(super) fn tool_calls(&self, id: &str) -> Vec<String> {
        let indexed = self.blocks.iter().enumerate();
        indexed
            .filter(|(_, block)| block.call().is_some())
            .map(|(index, _)| call_id(id, index))
            .collect()
    }

    fn stop_reason(&self) -> &'static str {
        let calls = self.blocks.iter().any(|block| block.call().is_some());
        self.stop_reason.unwrap_or(if calls { "tool_use" } else { "end_turn" })
    }

    fn first_usage(&self) -> Value {
        let mut usage = self.usage.clone();
        if let Some(output_tokens) = self.begun_with {
            usage["output_tokens"] = output_tokens.into();
        }
        usage
    }
}

impl Block {
    /// The tool it calls, and with what.
    fn call(&self) -> Option<(&'static str, Value)> {
        match self {
            Self::Text(_) | Self::Thinking(_) => None,
            Self::Bash { command, in_background } => {
                let mut input = json!({"command": command, "description": "as the script says"});
                if *in_background {
                    input["run_in_background"] = json!(true);
                }
                Some(("Bash", input))
            }
            Self::Agent { prompt } => {
                let input = json!({"description": "a part of the work", "prompt": prompt,
                    "subagent_type": "general-purpose"});
                Some(("Agent", input))
            }
            Self::Tool { name, input } => Some((*name, input.clone())),
        }
    }

    fn json(&self, id: &str, index: usize) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Thinking(text) => {
                json!({"type": "thinking", "thinking": text, "signature": "scripted"})
            }
            _ => self.tool_use(id, index, |input| input),
        }
    }

    fn opening(&self, id: &str, index: usize) -> Value {
        match self {
            Self::Text(_) => json!({"type": "text", "text": ""}),
            Self::Thinking(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            _ => self.tool_use(id, index, |_| json!({})),
        }
    }

    fn tool_use(&self, id: &str, index: usize, input: impl Fn(Value) -> Value) -> Value {
        let (name, asked) = self.call().unwrap();
        json!({"type": "tool_use", "id": call_id(id, index), "name": name, "input": input(asked)})
    }

    fn deltas(&self) -> Vec<Value> {
        match self {
            Self::Text(text) => {
                let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at));
                let (one, two) = text.split_at(half.unwrap_or(0));
                [one, two].map(|part| json!({"type": "text_delta", "text": part})).into()
            }
            Self::Thinking(text) => vec![
                json!({"type": "thinking_delta", "thinking": text}),
                json!({"type": "signature_delta", "signature": "scripted"}),
            ],
            Self::Bash { .. } | Self::Agent { .. } | Self::Tool { .. } => {
                let (_, input) = self.call().unwrap();
                vec![json!({"type": "input_json_delta", "partial_json": input.to_string()})]
            }
        }
    }
}

fn call_id(message: &str, index: usize) -> String {
    format!("toolu_{message}_{index}")
}
