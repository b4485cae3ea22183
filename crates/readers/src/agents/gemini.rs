//! Reader of Gemini CLI's `stream-json`, one event a line; tried with 0.61.0. Its exit status is
//! not reliable: 0 after TERM, after a broken stream and after an empty answer. Only `result`
//! closes its work. It reports neither a cost nor that the token limit truncated an answer, and
//! reports only on standard error that it waits for the service.

use std::time::Duration;

use crate::clients::FieldsByPointer;
use serde_json::Value;

use super::activity::{ToolCall, says_error};
use super::events::AgentEvents;
use super::service::ServiceFailure;
use super::turn::AgentTurn;
use crate::parse::amounts::all_digits;

/// The longest pause between two tries that it makes without reporting its length.
const BACKOFF: Duration = Duration::from_secs(30);
/// The longest words of a retry kept, in bytes.
const RETRY_BYTES: usize = 4096;
/// Its message on standard error if it has no login; standard output is then empty.
const NO_LOGIN: &str = "Please set an Auth method";
/// Where the tokens of the whole process are.
const TOKENS: [&str; 4] = ["/input_tokens", "/cached", "", "/output_tokens"];

/// What its events have reported so far.
#[derive(Debug, Default)]
pub(super) struct Gemini {
    /// The last error event, for a closing event that does not repeat it.
    last_error: Option<String>,
    /// A retry whose message on standard error is not complete yet.
    retry: Option<String>,
}

impl AgentEvents for Gemini {
    fn take_event(&mut self, turn: &mut AgentTurn, event: &Value, _line: &str) {
        self.retry = None;
        match event.word("/type") {
            "init" => {
                turn.set_model(event.text("/model"));
                turn.note_more_work();
            }
            // The text may be only the next part of the message.
            "message" if event.is("/role", "assistant") && event["delta"] == true => {
                turn.add_part(event.word("/content"));
            }
            "message" if event.is("/role", "assistant") => turn.add_words(event.word("/content")),
            "tool_use" => {
                let call = ToolCall::from_event(event, "/tool_name", "/parameters", "");
                turn.show_call(event.word("/tool_id"), call);
            }
            "tool_result" => {
                let (id, is_failure) = (event.word("/tool_id"), event.is("/status", "error"));
                if is_failure && event.is("/error/type", "policy_violation") {
                    return turn.deny_call(id, "a tool");
                }
                let output = event.first(&["/error/message", "/output"]).unwrap_or_default();
                turn.end_call(id, output, None, is_failure);
            }
            "error" if event.is("/severity", "error") => {
                self.last_error = event.text("/message").map(str::to_owned);
            }
            "result" => self.take_result(turn, event),
            _ => {}
        }
    }

    /// "Attempt 1 failed with status 500. Retrying with backoff... {…}", or "Attempt 2 failed:
    /// WORDS" and, on this line or a later one, "Retrying after 5681ms...".
    fn take_error_line(&mut self, turn: &mut AgentTurn, line: &str) {
        if line.starts_with(NO_LOGIN) {
            turn.note_missing_login(line);
        }
        if line.starts_with("Attempt ") && line.contains(" failed") {
            self.retry = Some(line.to_owned());
        } else if let Some(retry) = &mut self.retry
            && retry.len() + line.len() <= RETRY_BYTES
        {
            retry.push('\n');
            retry.push_str(line);
        }
        if !line.contains("Retrying ") {
            return;
        }
        let Some(retry) = self.retry.take() else { return };
        let pause = line.split_once("Retrying after ").and_then(|(_, rest)| rest.split_once("ms"));
        let pause = pause
            .and_then(|(amount, _)| all_digits(amount)?.parse().ok())
            .map(Duration::from_millis);
        let words = retry.split_once("failed: ").map_or(&*retry, |(_, words)| words);
        let words = words.split("Retrying after ").next().unwrap_or(words);
        turn.begin_retry(ServiceFailure::from_status(None, words).with_pause(pause), Some(BACKOFF));
    }
}

impl Gemini {
    fn take_result(&self, turn: &mut AgentTurn, event: &Value) {
        let stats = &event["stats"];
        if stats.is_object() {
            let mut tokens = stats.tokens(TOKENS);
            // Only the total includes the tokens of its thoughts.
            let input = tokens.input + tokens.cache_read;
            tokens.output = stats.count("/total_tokens").saturating_sub(input).max(tokens.output);
            turn.set_tokens(tokens);
        }
        if event.is("/status", "success") {
            return turn.close_turn(Ok(()));
        }
        let reason = event.text("/error/message").or(self.last_error.as_deref());
        let reason = reason.unwrap_or("the agent gave no reason");
        let status = match event.word("/error/type") {
            "FatalTurnLimitedError" => {
                turn.end.out_of_turns = true;
                turn.finish_words();
                turn.note_more_work();
                return turn.close_turn(Ok(()));
            }
            "FatalAuthenticationError" => Some(401),
            // It ended because of something on this machine, which no wait changes.
            kind if kind.starts_with("Fatal") => return turn.close_turn(Err(says_error(reason))),
            _ => None,
        };
        turn.close_with_failure(ServiceFailure::from_status(status, reason));
    }
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
