//! Reader of opencode's `run --format json`, one event a line; tried with 1.18.33. It reports the
//! tokens and cost of each step, and a truncated answer. It retries a broken stream or an overlong
//! context forever, with hundreds of requests a minute. Only its log reports that it waits for the
//! service.

use std::time::Duration;

use crate::clients::FieldsByPointer;
use serde_json::Value;

use super::activity::{ToolCall, says_error};
use super::events::AgentEvents;
use super::service::ServiceFailure;
use super::turn::AgentTurn;
use crate::parse::amounts::{all_digits, to_count};
use engine::usage::{Money, Tokens, Usage};

/// The number of consecutive steps without a result after which the agent is ended.
const STEPS_IN_VAIN: u32 = 3;
/// The prefix of the result of a call that its settings do not allow.
const REJECTED: &str = "The user rejected permission";

/// What its events have reported so far.
#[derive(Debug, Default)]
pub(super) struct OpenCode {
    /// Consecutive steps without a result.
    in_vain: u32,
    /// The unknown model that its log names; its event reports that only as an unknown error.
    unknown_model: Option<ServiceFailure>,
    is_unexplained: bool,
}

impl AgentEvents for OpenCode {
    fn take_event(&mut self, turn: &mut AgentTurn, event: &Value, _line: &str) {
        let part = &event["part"];
        match event.word("/type") {
            "step_start" => {
                turn.begin_turn();
                turn.is_unreported = true;
                self.is_unexplained = false;
                // A step begins with the service's answer, and a call is reported when it is over.
                turn.ask_again();
            }
            // The program wrote the message itself.
            "text" if part["synthetic"] == true => turn.note_more_work(),
            "text" => turn.add_words(part.word("/text")),
            "tool_use" => self.take_tool_use(turn, part),
            "step_finish" => self.take_finished_step(turn, part),
            "error" => self.take_error(turn, &event["error"]),
            _ => {}
        }
    }

    /// `… level=ERROR … message="stream error" … small=false … error.error="KIND: WORDS"`. The
    /// small model only writes the session's title. For a model that it does not have: `…
    /// message=failed … error="ProviderModelNotFoundError: WORDS"`.
    fn take_error_line(&mut self, turn: &mut AgentTurn, line: &str) {
        if let Some((_, words)) = line.split_once("ProviderModelNotFoundError: ") {
            let words = words.split(['"', ')', '\\']).next().unwrap_or_default();
            self.unknown_model = Some(ServiceFailure::from_status(Some(404), words));
        }
        let is_retry = line.contains(r#"message="stream error""#) && line.contains("small=false");
        if is_retry && let Some((_, words)) = line.split_once(r#"error.error=""#) {
            let words = words.trim_end().trim_end_matches('"');
            let words = words.split_once("Error: ").map_or(words, |(_, words)| words);
            turn.begin_retry(ServiceFailure::from_status(None, words), None);
        }
    }

    fn end(&mut self, turn: &mut AgentTurn) {
        if self.is_unexplained
            && let Some(failure) = self.unknown_model.take()
        {
            turn.set_failure(failure);
        }
    }
}

impl OpenCode {
    /// Records a call, which is reported when it is over. A refusal also ends the turn, without an
    /// event.
    fn take_tool_use(&mut self, turn: &mut AgentTurn, part: &Value) {
        let (id, state) = (part.word("/callID"), &part["state"]);
        let is_failure = state.is("/status", "error");
        if state.is("/status", "completed") {
            self.in_vain = 0;
        }
        if part.is("/tool", "task") {
            // A session of its own, whose steps are not among the events.
            turn.usage.get_or_insert_default().lost = true;
        }
        let output = state.first(&["/error", "/output"]).unwrap_or_default();
        turn.show_call(id, ToolCall::from_event(part, "/tool", "/state/input", ""));
        if is_failure && output.starts_with(REJECTED) {
            turn.deny_call(id, "a tool");
            return turn.close_turn(Ok(()));
        }
        turn.end_call(id, output, state.exit("/metadata/exit"), is_failure);
    }

    fn take_finished_step(&mut self, turn: &mut AgentTurn, part: &Value) {
        turn.is_unreported = false;
        if part["tokens"].is_object() {
            let tokens = parse_tokens(&part["tokens"]);
            let used = step_usage(tokens, part.dollars("/cost"), &turn.name);
            turn.usage.get_or_insert_default().add_usage(&used);
            turn.count_message(tokens);
        } else {
            turn.usage.get_or_insert_default().lost = true;
        }
        match part.text("/reason").unwrap_or("unknown") {
            "tool-calls" => {
                self.in_vain = 0;
                turn.note_more_work();
            }
            "stop" => turn.close_turn(Ok(())),
            "length" => turn.close_cut(),
            "unknown" => {
                let words = "the answer was interrupted";
                self.repeat_step(turn, ServiceFailure::from_status(None, words));
            }
            other => turn.close_turn(Err(says_error(other))),
        }
    }

    fn take_error(&mut self, turn: &mut AgentTurn, error: &Value) {
        let name = error.word("/name");
        let words = error.text("/data/message").unwrap_or(name);
        let reported = error.status("/data/statusCode");
        let status = match name {
            "MessageOutputLengthError" => return turn.close_cut(),
            "ContextOverflowError" => {
                return self.repeat_step(turn, ServiceFailure::from_status(Some(400), words));
            }
            "ProviderAuthError" => reported.or(Some(401)),
            _ => reported,
        };
        self.is_unexplained |= name == "UnknownError";
        let seconds = all_digits(error.word("/data/responseHeaders/retry-after"));
        let pause = seconds.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        turn.close_with_failure(ServiceFailure::from_status(status, words).with_pause(pause));
    }

    /// Notes that a step had no result, and the agent repeats it.
    fn repeat_step(&mut self, turn: &mut AgentTurn, failure: ServiceFailure) {
        turn.note_more_work();
        self.in_vain = self.in_vain.saturating_add(1);
        turn.begin_retry(failure, Some(Duration::ZERO));
        // It will never stop by itself.
        turn.service.is_hopeless |= self.in_vain >= STEPS_IN_VAIN;
    }
}

/// The usage of a step. A model without a price is reported at $0, which means nothing.
fn step_usage(tokens: Tokens, cost: Option<f64>, name: &str) -> Usage {
    match cost {
        Some(cost) if cost > 0.0 => {
            Usage { tokens, cost: Money(to_count((cost * 1e12).round())), ..Usage::default() }
        }
        _ if tokens == Tokens::default() => Usage::default(),
        _ => Usage::without_price(Some(tokens), name),
    }
}

/// The tokens of a step. Its input does not include cached tokens.
fn parse_tokens(fields: &Value) -> Tokens {
    let [input, cache_read, cache_write] =
        ["/input", "/cache/read", "/cache/write"].map(|at| fields.count(at));
    let read = [cache_read, cache_write].into_iter().fold(input, u64::saturating_add);
    let output = match fields.number("/total") {
        Some(_) => fields.count("/total").saturating_sub(read),
        None => fields.count("/output").saturating_add(fields.count("/reasoning")),
    };
    Tokens { input, cache_write, cache_read, output, ..Tokens::default() }
}

#[cfg(test)]
#[path = "opencode_tests.rs"]
mod tests;
