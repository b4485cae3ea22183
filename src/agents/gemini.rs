//! Gemini CLI's `stream-json`, one event a line; tried with 0.61.0. Its exit status lies: 0 after
//! TERM, after a broken stream and after an empty answer. So only `result` closes its work. It
//! tells neither a cost nor that the token limit cut an answer, and that it waits for the service
//! only on standard error.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use serde::Deserialize;

use super::activity::{Activity, printed};
use super::failure::ServiceFailure;
use super::lenient::{FlagField, Lenient, NumberField, TextField, ToolInput, object, part};
use super::turn::AgentTurn;
use super::words::says_error;
use super::{EventAgent, OutputReader, Report};
use crate::engine::usage::{Tokens, Usage};
use crate::parse::amounts::digits;

const NAME: &str = "gemini";

/// Gemini CLI.
pub(super) const AGENT: EventAgent =
    EventAgent { name: NAME, reader: |name| Box::new(Gemini::new(name)) };

/// The longest pause that it makes without a word of how long, between two tries.
const BACKOFF: Duration = Duration::from_secs(30);
/// The longest words of a retry kept, in bytes.
const RETRY_BYTES: usize = 4096;
/// What standard error says where it has no login; standard output then says nothing.
const NO_LOGIN: &str = "Please set an Auth method";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GeminiEvent {
    #[serde(rename = "type")]
    kind: TextField,
    model: TextField,
    role: TextField,
    content: TextField,
    /// Whether `content` is only the next part of the message.
    delta: FlagField,
    tool_name: TextField,
    tool_id: TextField,
    #[serde(deserialize_with = "part")]
    parameters: ToolInput,
    status: TextField,
    output: TextField,
    #[serde(deserialize_with = "part")]
    error: GeminiError,
    severity: TextField,
    /// Set in an `error`.
    message: TextField,
    stats: Lenient<GeminiStats>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GeminiError {
    #[serde(rename = "type")]
    kind: TextField,
    message: TextField,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GeminiStats {
    /// Includes those from the cache.
    #[serde(rename = "input_tokens")]
    input: NumberField,
    #[serde(rename = "output_tokens")]
    output: NumberField,
    /// Includes those of its thoughts, which `output_tokens` does not.
    #[serde(rename = "total_tokens")]
    total: NumberField,
    cached: NumberField,
}

/// What the stream has said so far.
#[derive(Debug, Default)]
struct Gemini {
    /// Stands for the model in sums: the agent uses several at will.
    name: String,
    turn: AgentTurn,
    tokens: Option<Tokens>,
    /// The last error event, for a closing event that does not repeat it.
    complaint: Option<String>,
    out_of_turns: bool,
    /// A retry whose words on standard error are not at their end.
    retry: Option<String>,
}

impl Gemini {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    fn event(&mut self, event: &GeminiEvent) -> Vec<Activity> {
        let text = event.content.text().unwrap_or_default();
        match (event.kind.text().unwrap_or_default(), event.role.text()) {
            ("init", _) => {
                self.turn.works_with(event.model.text());
                self.turn.goes_on();
                Vec::new()
            }
            ("message", Some("assistant")) if event.delta.is_set() => {
                self.turn.says_more(text);
                Vec::new()
            }
            ("message", Some("assistant")) => self.turn.says(text),
            ("tool_use", _) => {
                let tool = event.tool_name.text().unwrap_or("a tool");
                let id = event.tool_id.text().unwrap_or_default();
                self.turn.calls(id, event.parameters.call(tool))
            }
            ("tool_result", _) => self.returned(event),
            ("error", _) if event.severity.text() == Some("error") => {
                self.complaint.clone_from(&event.message.0);
                Vec::new()
            }
            ("result", _) => self.result(event),
            _ => Vec::new(),
        }
    }

    fn returned(&mut self, event: &GeminiEvent) -> Vec<Activity> {
        let id = event.tool_id.text().unwrap_or_default();
        let is_failure = event.status.text() == Some("error");
        let output = event.error.message.text().or(event.output.text()).unwrap_or_default();
        if is_failure && event.error.kind.text() == Some("policy_violation") {
            return self.turn.is_denied(id, "a tool");
        }
        self.turn.ends(id, |call| call.came_to(output, None, is_failure))
    }

    fn result(&mut self, event: &GeminiEvent) -> Vec<Activity> {
        self.tokens = event.stats.0.as_ref().map(GeminiStats::tokens).or(self.tokens);
        if event.status.text() == Some("success") {
            return self.turn.closes(Ok(()));
        }
        let told = event.error.message.text().or(self.complaint.as_deref());
        let told = told.unwrap_or("the agent says no reason").to_owned();
        let status = match event.error.kind.text() {
            Some("FatalTurnLimitedError") => {
                self.out_of_turns = true;
                let seen = self.turn.settle();
                self.turn.goes_on();
                self.turn.closes(Ok(()));
                return seen;
            }
            Some("FatalAuthenticationError") => Some(401),
            // It ended for what is so on this machine, which no wait changes.
            Some(kind) if kind.starts_with("Fatal") => {
                return self.turn.closes(Err(says_error(&told)));
            }
            _ => None,
        };
        self.turn.closes_for(ServiceFailure::of(status, &told))
    }
}

impl GeminiStats {
    fn tokens(&self) -> Tokens {
        let input = self.input.count();
        let cache_read = self.cached.count().min(input);
        let output = self.total.count().saturating_sub(input).max(self.output.count());
        Tokens { input: input - cache_read, cache_read, output, ..Tokens::default() }
    }
}

impl OutputReader for Gemini {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        self.retry = None;
        let steps = object(line).map_or_else(|| printed(line), |event| self.event(&event));
        self.turn.told(&steps);
        steps
    }

    /// "Attempt 1 failed with status 500. Retrying with backoff... {…}", or "Attempt 2 failed:
    /// WORDS" and, on this line or a later one, "Retrying after 5681ms...".
    fn read_error(&mut self, line: &str) {
        if line.starts_with(NO_LOGIN) {
            self.turn.has_no_login(line);
        }
        if line.starts_with("Attempt ") && line.contains(" failed") {
            self.retry = Some(line.to_owned());
        } else if let Some(told) =
            self.retry.as_mut().filter(|told| told.len() + line.len() <= RETRY_BYTES)
        {
            told.push('\n');
            told.push_str(line);
        }
        let Some(told) = self.retry.as_deref().filter(|_| line.contains("Retrying ")) else {
            return;
        };
        let pause = line.split_once("Retrying after ").and_then(|(_, rest)| rest.split_once("ms"));
        let pause =
            pause.and_then(|(amount, _)| digits(amount)?.parse().ok()).map(Duration::from_millis);
        let words = told.split_once("failed: ").map_or(told, |(_, words)| words);
        let words = words.split("Retrying after ").next().unwrap_or(words);
        self.turn.retries(ServiceFailure::of(None, words).pausing(pause), Some(BACKOFF));
        self.retry = None;
    }

    fn turn(&self) -> Option<&AgentTurn> {
        Some(&self.turn)
    }

    fn report(&mut self, now: DateTime<FixedOffset>) -> Report {
        let usage = Usage::unpriced(self.tokens, &self.name);
        Report { out_of_turns: self.out_of_turns, ..self.turn.report(Some(usage), now) }
    }
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
