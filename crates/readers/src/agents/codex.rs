//! Reader of Codex's `exec --json`: one event a line; tried with 0.169.0. It reports the tokens of
//! a turn, but neither the model nor a price, and no tool that its sandbox refused. An error is one
//! sentence.

use std::time::Duration;

use crate::clients::FieldsByPointer;
use serde_json::Value;

use super::activity::{Activity, RUN, ToolCall, sanitize_text};
use super::events::AgentEvents;
use super::service::ServiceFailure;
use super::turn::AgentTurn;

/// The prefix of its report that it tries again. After a limit it then sleeps as long as the
/// service asked it to, and prints nothing.
const RETRY: &str = "Reconnecting...";
/// Its words for an answer that the token limit truncated.
const CUT: &str = "reason: max_output_tokens";
/// The fields with the tokens of a turn; its output includes the tokens of its thoughts.
const TOKENS: [&str; 4] =
    ["/input_tokens", "/cached_input_tokens", "/cache_write_input_tokens", "/output_tokens"];

#[derive(Debug, Default)]
pub(super) struct Codex;

impl AgentEvents for Codex {
    fn take_event(&mut self, turn: &mut AgentTurn, event: &Value, _line: &str) {
        match event.word("/type") {
            "turn.started" => {
                turn.begin_turn();
                turn.is_unreported = true;
            }
            "turn.completed" => {
                if event["usage"].is_object() {
                    turn.set_tokens(event["usage"].tokens(TOKENS));
                }
                turn.clear_failure();
                turn.close_turn(Ok(()));
            }
            "turn.failed" => {
                take_failure(turn, event.text("/error/message").unwrap_or("turn failed"));
                turn.close_turn(Ok(()));
            }
            "error" => take_failure(turn, event.text("/message").unwrap_or("error")),
            kind if kind.starts_with("item.") => take_item(turn, kind, &event["item"]),
            _ => {}
        }
    }
}

fn take_item(turn: &mut AgentTurn, kind: &str, item: &Value) {
    let (is_begun, is_over) = (kind == "item.started", kind == "item.completed");
    let (id, what) = (item.word("/id"), item.word("/type"));
    if !["", "error"].contains(&what) {
        turn.clear_failure();
    }
    match what {
        "agent_message" if is_over => turn.add_words(item.word("/text")),
        "error" => {
            if let Some(message) = item.text("/message") {
                turn.show_note(message);
            }
        }
        // Words, thoughts, and a list that stays open for the whole turn are not work.
        "" | "agent_message" | "reasoning" | "todo_list" => {}
        "file_change" if is_begun => turn.begin_call(id, None),
        what if is_begun => turn.show_call(id, call_of_item(what, item)),
        what if is_over && item.is("/status", "declined") => {
            let call = call_of_item(what, item);
            turn.deny_call(id, &format!("{} {}", call.verb(), call.subject()));
        }
        what if is_over => {
            let output = item.first(&["/aggregated_output", "/message"]).unwrap_or_default();
            turn.end_call(id, output, item.exit("/exit_code"), item.is("/status", "failed"));
            if what == "file_change" {
                let changes = item.list("/changes").iter().map(call_of_change);
                turn.show_steps(changes.map(Activity::Called));
            }
        }
        _ => {}
    }
}

/// Records an error, after which Codex may retry; the following events show whether that succeeded.
fn take_failure(turn: &mut AgentTurn, message: &str) {
    if message.contains(CUT) {
        turn.end.cut = true;
        return turn.show_note(message);
    }
    let Some((_, words)) = message.strip_prefix(RETRY).and_then(|rest| rest.split_once('(')) else {
        return turn.set_failure(ServiceFailure::from_status(None, message));
    };
    let failure = ServiceFailure::from_status(None, words.trim_end().trim_end_matches(')'));
    // Any other failure recurs within seconds; a silence after it is the model at work.
    let longest = if failure.is_limit() { None } else { Some(Duration::ZERO) };
    turn.begin_retry(failure, longest);
}

/// The call of an item of this kind.
fn call_of_item(what: &str, item: &Value) -> ToolCall {
    let with = item.first(&["/command", "/tool", "/query"]).unwrap_or_default();
    match what {
        "command_execution" => ToolCall::new(RUN, &of_the_shell(with)),
        "web_search" => ToolCall::new("search", with),
        "file_change" => ToolCall::new("edit", with),
        other => ToolCall::new(&sanitize_text(&other.replace('_', " ")), with),
    }
}

/// The call of a change of a file.
fn call_of_change(change: &Value) -> ToolCall {
    let verb = match change.word("/kind") {
        "add" => "write",
        "delete" => "delete",
        _ => "edit",
    };
    ToolCall::new(verb, change.word("/path"))
}

/// The command without the shell that runs it: Codex runs every command in one.
fn of_the_shell(command: &str) -> String {
    match shell_words::split(command).as_deref() {
        Ok([_, option, inner]) if ["-lc", "-c"].contains(&option.as_str()) => inner.clone(),
        _ => command.to_owned(),
    }
}

#[cfg(test)]
#[path = "codex_tests.rs"]
mod tests;
