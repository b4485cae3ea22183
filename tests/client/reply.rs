//! The scripted model's reply to one request: its blocks, its usage, its refusals and faults, its
//! delays. `shapes` renders it for the API in use; a reply knows nothing about connections.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::refusal::{Fault, Refusal};

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
    /// A refusal in the format of the API in use.
    Refusal(Refusal),
    /// A fault in Claude's format, or as the test wrote it.
    Fault(Fault),
}

#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) blocks: Vec<Block>,
    /// The usage, by Claude's names.
    pub(super) usage: Value,
    /// The output tokens in the message's first event; its end reports the total.
    pub(super) begun_with: Option<u64>,
    pub(super) stop_reason: Option<&'static str>,
}

/// The tokens of a reply: the input without the cached part, the cached part, the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
}

impl std::ops::Add for Tokens {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            input: self.input + more.input,
            cached: self.cached + more.cached,
            output: self.output + more.output,
        }
    }
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

#[derive(Debug, Clone)]
pub(super) enum Block {
    Text(String),
    Thinking(String),
    /// A call of the shell, whatever its name in the agent.
    Bash {
        command: String,
        in_background: bool,
    },
    /// A call of the tool that writes a file, or of the shell if there is no such tool.
    Write {
        path: String,
        text: String,
    },
    Agent {
        prompt: String,
    },
    Tool {
        name: &'static str,
        input: Value,
    },
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

    /// An empty answer.
    pub(crate) fn nothing() -> Self {
        Self::new(Vec::new())
    }

    /// A text of one block.
    pub(crate) fn text(text: &str) -> Self {
        Self::new(vec![Block::Text(text.into())])
    }

    /// A thought; a message with only thoughts makes the client ask again by itself.
    pub(crate) fn thinking(thought: &str) -> Self {
        Self::new(vec![Block::Thinking(thought.into())])
    }

    /// A call of the Bash tool. The next reply, or `then`, answers its result.
    pub(crate) fn bash(command: &str) -> Self {
        Self::new(vec![Block::Bash { command: command.into(), in_background: false }])
    }

    /// A call of the Bash tool that keeps running in the background.
    pub(crate) fn background(command: &str) -> Self {
        Self::new(vec![Block::Bash { command: command.into(), in_background: true }])
    }

    /// A call of the Agent tool: a subagent gets this prompt, and uses the same API.
    pub(crate) fn agent(prompt: &str) -> Self {
        Self::new(vec![Block::Agent { prompt: prompt.into() }])
    }

    /// A call of any other tool.
    pub(crate) fn tool(name: &'static str, input: Value) -> Self {
        Self::new(vec![Block::Tool { name, input }])
    }

    /// An error in the format of the API in use.
    pub(crate) fn refusal(refusal: Refusal) -> Self {
        Self::says(Says::Refusal(refusal))
    }

    /// An HTTP error in the format of Claude's API.
    pub(crate) fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self::says(Says::Fault(Fault::new(status, body)))
    }

    /// A usage limit, reported in headers.
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

    /// Adds a call of the Bash tool.
    pub(crate) fn and_bash(self, command: &str) -> Self {
        self.and(Block::Bash { command: command.into(), in_background: false })
    }

    /// Adds the writing of a file, whose path is below the repository.
    pub(crate) fn and_write(self, path: &std::path::Path, text: &str) -> Self {
        self.and(Block::Write { path: path.display().to_string(), text: text.into() })
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

    /// Sets another field of its usage, by the API's own name.
    pub(crate) fn used(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.message().usage[name] = value.into();
        self
    }

    /// Reports this many output tokens at the message's beginning, as the API does.
    pub(crate) fn begun_with(mut self, output_tokens: u64) -> Self {
        self.message().begun_with = Some(output_tokens);
        self
    }

    /// Sets a `stop_reason` other than the one the blocks imply: `max_tokens`, `refusal`.
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

    /// Makes the client give up its own retries immediately.
    pub(crate) fn no_retry(self) -> Self {
        self.header("x-should-retry", "false")
    }

    /// Adds a header to an error.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        let Says::Fault(fault) = &mut self.says else {
            panic!("only an error carries headers");
        };
        fault.headers.push((name.into(), value.into()));
        self
    }

    fn message(&mut self) -> &mut Message {
        match &mut self.says {
            Says::Message(message) => message,
            Says::Refusal(_) | Says::Fault(_) => panic!("an error says nothing"),
        }
    }
}

impl Message {
    pub(super) fn tokens(&self) -> Tokens {
        let number = |name: &str| self.usage[name].as_u64().unwrap_or_default();
        Tokens {
            input: number("input_tokens") + number("cache_creation_input_tokens"),
            cached: number("cache_read_input_tokens"),
            output: number("output_tokens"),
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.stop_reason == Some("max_tokens")
    }
}
