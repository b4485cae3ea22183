//! Reader of Qwen Code's `stream-json`: Claude Code's events with differences; tried with 0.24.4.
//! Input tokens include cached ones, no cost is reported, and an error is in `error.message` of the
//! result. Words of a retried answer are glued together. It reports only on standard error that it
//! waits for the service, and that its turns are used up.

use std::time::Duration;

use crate::clients::FieldsByPointer;
use serde_json::Value;

use super::claude::Claude;
use super::events::AgentEvents;
use super::service::ServiceFailure;
use super::turn::AgentTurn;
use crate::parse::amounts::all_digits;
use engine::usage::Usage;

/// How often it asks the model to finish a truncated answer before it treats the parts as the
/// whole.
const PARTS_MAX: u32 = 3;
/// What standard error says while it waits for the service, before "attempt 1, retry in 3570s".
const WAITING: &str = "[qwen-code] Waiting for API capacity";
/// What standard error says at the agent's own limit on turns, which has no event.
const OUT_OF_TURNS: &str = "Reached max session turns";
/// Where the tokens of a message or of the whole process are.
const TOKENS: [&str; 4] = ["/input_tokens", "/cache_read_input_tokens", "", "/output_tokens"];

/// What its events have reported so far.
#[derive(Debug, Default)]
pub(super) struct Qwen {
    claude: Claude,
    /// How often the rest of a truncated answer was asked for.
    parts: u32,
    /// Whether the last result treated the parts of an answer as the whole.
    is_in_parts: bool,
}

impl AgentEvents for Qwen {
    fn take_event(&mut self, turn: &mut AgentTurn, event: &Value, line: &str) {
        // What it used is reported by other fields.
        if event.is("/type", "assistant") {
            self.claude.take_answer(turn, event, event["parent_tool_use_id"].is_null());
        } else {
            self.claude.take_event(turn, event, line);
        }
        match event.word("/type") {
            "assistant" => {
                self.is_in_parts = false;
                if event["message"]["usage"].is_object() {
                    let used = event["message"]["usage"].tokens(TOKENS);
                    if used.total() > 0 {
                        // Until a result sums up the process: messages show less than was used.
                        let used_here = Usage::without_price(Some(used), &turn.name);
                        turn.usage.get_or_insert_default().add_usage(&used_here);
                        turn.is_unreported = true;
                    }
                    turn.count_message(used);
                }
            }
            "user" => self.parts = 0,
            "system" if event.is("/subtype", "retry") => {
                // If the words so far are kept, the model is asked for the rest of a truncated
                // answer.
                let is_rest = event.flag("/data/preserveText") == Some(true);
                self.parts = if is_rest { self.parts.saturating_add(1) } else { 0 };
            }
            "result" => {
                self.is_in_parts = self.parts >= PARTS_MAX;
                self.parts = 0;
                if event["usage"].is_object() {
                    turn.set_tokens(event["usage"].tokens(TOKENS));
                }
                let words = event.word("/error/message");
                if event["is_error"] == true && !words.is_empty() {
                    turn.set_failure(ServiceFailure::from_status(None, words));
                }
            }
            _ => {}
        }
    }

    fn take_error_line(&mut self, turn: &mut AgentTurn, line: &str) {
        turn.end.out_of_turns |= line.starts_with(OUT_OF_TURNS);
        if let Some(wait) = line.strip_prefix(WAITING) {
            let pause = wait.split_once("retry in ").and_then(|(_, rest)| rest.split_once('s'));
            let pause = pause.and_then(|(amount, _)| all_digits(amount)?.parse().ok());
            let words = "the service has no capacity for this account";
            let failure = ServiceFailure::from_status(Some(429), words);
            turn.begin_retry(failure.with_pause(pause.map(Duration::from_secs)), None);
        }
    }

    fn end(&mut self, turn: &mut AgentTurn) {
        let is_cut = self.is_in_parts || self.parts >= PARTS_MAX;
        turn.end.cut = is_cut && turn.service.failure.is_none();
    }
}

#[cfg(test)]
#[path = "qwen_tests.rs"]
mod tests;
