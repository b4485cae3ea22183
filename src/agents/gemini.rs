//! Gemini CLI's `stream-json`, one event a line; tried with 0.61.0. Its exit status lies: 0 after
//! TERM, after a broken stream and after an empty answer. So only `result` closes its work. It
//! tells neither a cost nor that the token limit cut an answer, and that it waits for the service
//! only on standard error.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::activity::{Activity, ToolCall, printed};
use super::failure::ServiceFailure;
use super::json::JsonObject;
use super::turn::AgentTurn;
use super::words::says_error;
use super::{EventAgent, OutputReader, Report};
use crate::engine::usage::{Tokens, Usage};
use crate::parse::amounts::digits;

const NAME: &str = "gemini";

/// Gemini CLI.
pub(super) const AGENT: EventAgent = EventAgent {
    name: NAME,
    reader: |name| Box::new(Gemini { name: name.to_owned(), ..Gemini::default() }),
};

/// The longest pause that it makes without a word of how long, between two tries.
const BACKOFF: Duration = Duration::from_secs(30);
/// The longest words of a retry kept, in bytes.
const RETRY_BYTES: usize = 4096;
/// What standard error says where it has no login; standard output then says nothing.
const NO_LOGIN: &str = "Please set an Auth method";

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
    fn event(&mut self, event: JsonObject<'_>) -> Vec<Activity> {
        match &*event.word("type") {
            "init" => {
                self.turn.works_with(event.text("model").as_deref());
                self.turn.goes_on();
                Vec::new()
            }
            "message" if event.is("role", "assistant") => {
                let text = event.word("content");
                // The text may be only the next part of the message.
                if event.flag("delta") == Some(true) {
                    self.turn.says_more(&text);
                    return Vec::new();
                }
                self.turn.says(&text)
            }
            "tool_use" => {
                let call = ToolCall::of(event, "tool_name", "parameters", "");
                self.turn.calls(&event.word("tool_id"), call)
            }
            "tool_result" => self.returned(event),
            "error" if event.is("severity", "error") => {
                self.complaint = event.text("message");
                Vec::new()
            }
            "result" => self.result(event),
            _ => Vec::new(),
        }
    }

    fn returned(&mut self, event: JsonObject<'_>) -> Vec<Activity> {
        let (id, is_failure) = (event.word("tool_id"), event.is("status", "error"));
        if is_failure && event.is("error.type", "policy_violation") {
            return self.turn.is_denied(&id, "a tool");
        }
        let output = event.text("error.message").unwrap_or_else(|| event.word("output"));
        self.turn.ends(&id, |call| call.came_to(&output, None, is_failure))
    }

    fn result(&mut self, event: JsonObject<'_>) -> Vec<Activity> {
        self.tokens = event.object("stats").map(tokens).or(self.tokens);
        if event.is("status", "success") {
            return self.turn.closes(Ok(()));
        }
        let told = event.text("error.message").or(self.complaint.clone());
        let told = told.unwrap_or("the agent says no reason".to_owned());
        let status = match &*event.word("error.type") {
            "FatalTurnLimitedError" => {
                self.out_of_turns = true;
                let seen = self.turn.settle();
                self.turn.goes_on();
                self.turn.closes(Ok(()));
                return seen;
            }
            "FatalAuthenticationError" => Some(401),
            // It ended for what is so on this machine, which no wait changes.
            kind if kind.starts_with("Fatal") => {
                return self.turn.closes(Err(says_error(&told)));
            }
            _ => None,
        };
        self.turn.closes_for(ServiceFailure::of(status, &told))
    }
}

/// What it used. Its input includes the tokens from the cache, and only the total those of its
/// thoughts.
fn tokens(stats: JsonObject<'_>) -> Tokens {
    let input = stats.count("input_tokens");
    let cache_read = stats.count("cached").min(input);
    let output = stats.count("total_tokens").saturating_sub(input);
    let output = output.max(stats.count("output_tokens"));
    Tokens { input: input - cache_read, cache_read, output, ..Tokens::default() }
}

impl OutputReader for Gemini {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        self.retry = None;
        let steps = JsonObject::of(line).map_or_else(|| printed(line), |event| self.event(event));
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
