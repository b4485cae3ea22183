//! Reader of Copilot CLI's `--output-format json`, one event a line; tried with 1.0.102. Its usage
//! is not among the events but in a file that it writes when it ends: its cost is in credits of an
//! account, not in money, and the tokens have no known price. An answer that the token limit
//! truncated shows only as a turn without a message, after which it asks again.

use serde_json::Value;

use super::activity::{ToolCall, says_error};
use super::events::AgentEvents;
use super::service::ServiceFailure;
use super::turn::AgentTurn;
use crate::clients::{FieldsByPointer, parse_object};
use engine::text::text_start;
use engine::usage::Usage;

/// The number of consecutive truncated answers after which it accepts the next one.
const CUTS_MAX: u32 = 2;
/// The longest name of a model kept, in characters.
const MODEL_CHARS: usize = 80;
/// Its message on standard error if it has no login; standard output is then empty.
const NO_LOGIN: &str = "Error: No authentication information found";
/// Where the tokens of a model are in the file.
const TOKENS: [&str; 4] = [
    "/usage/inputTokens",
    "/usage/cacheReadTokens",
    "/usage/cacheWriteTokens",
    "/usage/outputTokens",
];

/// What its events have reported so far.
#[derive(Debug, Default)]
pub(super) struct Copilot {
    /// Whether the model's turn brought a message.
    has_message: bool,
    /// Consecutive turns without a message.
    cuts: u32,
}

impl AgentEvents for Copilot {
    fn take_event(&mut self, turn: &mut AgentTurn, event: &Value, _line: &str) {
        let data = &event["data"];
        let id = data.word("/toolCallId");
        let is_subagent = event["agentId"].is_string() || data["parentToolCallId"].is_string();
        match event.word("/type") {
            // What a subagent says, asks and fails at is not the agent's; that it works is.
            kind if is_subagent && !kind.starts_with("tool.") => {}
            // A call that the agent itself did not make.
            "model.call_failure"
                if data.text("/source").is_some_and(|source| source != "top_level") => {}
            "assistant.turn_start" => {
                turn.begin_turn();
                self.has_message = false;
            }
            "assistant.turn_end" if !self.has_message => self.cuts = self.cuts.saturating_add(1),
            "model.call_start" => {
                turn.set_model(data.text("/model"));
                turn.ask_again();
            }
            "model.call_failure" => turn.begin_retry(parse_failure(data, "/errorMessage"), None),
            "assistant.message" => {
                self.has_message = true;
                turn.set_model(data.text("/model"));
                turn.add_words(data.word("/content"));
                if data.list("/toolRequests").is_empty() {
                    turn.end.cut = self.cuts >= CUTS_MAX;
                } else {
                    turn.note_more_work();
                }
                self.cuts = 0;
            }
            "tool.execution_start" => {
                turn.show_call(id, ToolCall::from_event(data, "/toolName", "/arguments", ""));
            }
            "tool.execution_complete" if data.is("/error/code", "denied") => {
                turn.deny_call(id, "a tool");
            }
            "tool.execution_complete" => {
                let output = data.first(&["/result/content", "/error/message"]).unwrap_or_default();
                let exit = data.exit("/shellExecution/exitCode");
                turn.end_call(id, output, exit, data["success"] == false);
            }
            "session.error" => turn.set_failure(parse_failure(data, "/message")),
            "abort" => turn.note_more_work(),
            "result" if event.number("/exitCode") == Some(0.0) => turn.close_turn(Ok(())),
            "result" => {
                let code =
                    event.exit("/exitCode").map_or("unknown".to_owned(), |code| code.to_string());
                turn.close_turn(Err(says_error(&format!("exit code {code}"))));
            }
            _ => {}
        }
    }

    fn take_error_line(&mut self, turn: &mut AgentTurn, line: &str) {
        if line.starts_with(NO_LOGIN) {
            turn.note_missing_login(line);
        }
    }

    fn take_usage_file(&mut self, turn: &mut AgentTurn, text: &str) {
        turn.usage = parse_usage(text);
    }
}

/// The failure, with its words at this pointer. GitHub also answers 403 to too many requests: the
/// kind of error takes precedence over the status beside it.
fn parse_failure(data: &Value, words: &str) -> ServiceFailure {
    let status = match data.word("/errorType") {
        "authentication" | "authorization" => Some(401),
        "quota" => Some(402),
        "rate_limit" => Some(429),
        _ => data.status("/statusCode"),
    };
    ServiceFailure::from_status(status, data.word(words))
}

/// What the whole process used, by model; `None` if the file does not report it.
fn parse_usage(file: &str) -> Option<Usage> {
    let file = parse_object(file.as_bytes()).ok()?;
    let mut sum = Usage::default();
    for (model, used) in file.members("/modelMetrics")? {
        let tokens = if used.is_object() { Some(used.tokens(TOKENS)) } else { None };
        sum.add_usage(&Usage::without_price(tokens, text_start(model, MODEL_CHARS)));
    }
    Some(sum)
}

#[cfg(test)]
#[path = "copilot_tests.rs"]
mod tests;
