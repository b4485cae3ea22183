//! Reader of Claude Code in print mode: `stream-json`, one event a line. Its tests read recordings
//! of the real client, 2.1.330 and 2.1.197 (tests/fixtures/claude). Only the client's own fields
//! count: text about an error in a file, a tool's result or an answer is only text. A subagent's
//! events count as work and token use, never as the agent's words.

use std::time::Duration;

use crate::clients::FieldsByPointer;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::activity::{Activity, ToolCall, parse_printed, sanitize_text, says_error};
use super::events::AgentEvents;
use super::service::{Service, ServiceFailure, UNKNOWN};
use super::turn::AgentTurn;
use super::turn::Work::{Hook, Task, Tool};
use crate::clients::claude::plugin::config_folder;
use crate::clients::claude::transcript::{self, is_priced};
use crate::parse::amounts::to_count;
use engine::text::text_start;
use engine::usage::{CountedMessage, Message, Money, Tokens, Usage};

#[cfg(test)]
#[macro_use]
mod tests;
#[cfg(test)]
mod closing_tests;

/// The address of its model's service. A key helper named in its settings is not checked.
pub(super) const SERVICE: Service = Service {
    set_by: "ANTHROPIC_BASE_URL",
    usual: "https://api.anthropic.com",
    elsewhere: &["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"],
    keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    login: |path| Some(config_folder(path)?.join(".credentials.json")),
};

/// The longest name of a message kept, in characters.
const NAME_CHARS: usize = 200;
/// The longest folder kept, in characters.
const FOLDER_CHARS: usize = 4096;
/// How many recent messages are remembered.
const RECENT: usize = 64;
/// The kind of error for an answer that the token limit truncated.
const CUT: &str = "max_output_tokens";

/// What its events have reported so far.
#[derive(Debug, Default)]
pub(super) struct Claude {
    /// The most recently counted messages: the lines of a message may be interleaved with those of
    /// subagents.
    recent: Vec<CountedMessage>,
    /// Tokens written to the one-hour cache by all messages, which 2.1.197 leaves out of its sum.
    hour: u64,
    /// Whether the client reported its total at the end of a turn; `None` before the first end.
    sums_up: Option<bool>,
    /// Whether a reported cost cannot be read: the use is then unknown, never $0.00.
    is_unreadable: bool,
    /// The model and the tokens of the agent's own fullest message, answer included.
    fullest: Option<(String, u64)>,
    /// The id of the agent's own latest message.
    message: Option<String>,
    /// When the limit that was hit resets, as the client reports it in a field of its own.
    reset: Option<DateTime<Utc>>,
    /// The agent's working folder.
    folder: String,
}

impl AgentEvents for Claude {
    fn take_event(&mut self, turn: &mut AgentTurn, event: &Value, line: &str) {
        let is_own = event["parent_tool_use_id"].is_null();
        match event.word("/type") {
            "assistant" => {
                if let Some((message, _)) = transcript::parse_message(line) {
                    self.count_message(turn, &message, is_own);
                }
                self.take_answer(turn, event, is_own);
            }
            "user" => take_results(turn, event, is_own),
            "system" => self.take_system(turn, event),
            "rate_limit_event" => {
                let info = &event["rate_limit_info"];
                self.reset = if info.is("/status", "rejected") { resets_at(info) } else { None };
            }
            "result" => self.take_result(turn, event),
            _ => turn.show_steps(parse_printed(line)),
        }
    }

    fn end(&mut self, turn: &mut AgentTurn) {
        turn.end.cut = turn.service.failure.as_ref().is_some_and(|failure| failure.kind == CUT);
        if let Some(failure) = &mut turn.service.failure {
            failure.reset = self.reset;
        }
    }

    /// The usage; `None` if the client finished without reporting it. If the client ended earlier,
    /// or printed nothing, its usage is lost.
    fn usage(&self, turn: &AgentTurn) -> Option<Usage> {
        let is_counted = turn.usage.as_ref().is_some_and(|used| used.tokens.total() > 0);
        let is_silent = self.sums_up == Some(false) && !is_counted;
        if self.is_unreadable || is_silent { None } else { Some(turn.usage()) }
    }
}

impl Claude {
    /// Counts a part of a message, until the client reports its total: an unfinished answer reports
    /// only the usage at its beginning. A subagent has a context of its own.
    fn count_message(&mut self, turn: &mut AgentTurn, message: &Message, is_own: bool) {
        let used = turn.usage.get_or_insert_default();
        let before = used.tokens;
        used.count_message(message, &mut self.recent, RECENT);
        self.hour += used.tokens.cache_write_hour - before.cache_write_hour;
        turn.is_unreported |= used.tokens != before || self.sums_up.is_none();
        let tokens = message.tokens.total();
        if is_own && self.fullest.as_ref().is_none_or(|(_, most)| tokens > *most) {
            self.fullest = Some((message.model.clone(), tokens));
            turn.count_message(message.tokens);
        }
    }

    /// Reads the client's own total for the whole process so far. It includes the tokens of every
    /// model, of subagents and of side requests, so it replaces the earlier count.
    fn take_sum(&mut self, turn: &mut AgentTurn, result: &Value) {
        if let Some(models) = result.members("/modelUsage") {
            self.is_unreadable = false;
            let (mut sum, mut hour) = (Usage::default(), self.hour);
            for (model, used) in models {
                match of_model(model, used, &mut hour) {
                    _ if !used.is_object() => sum.lost = true,
                    Some(used) => sum.add_usage(&used),
                    None => self.is_unreadable = true,
                }
            }
            turn.usage = Some(sum);
        } else if let Some(dollars) = result.dollars("/total_cost_usd") {
            // Only the messages report tokens.
            turn.usage.get_or_insert_default().cost = convert_dollars(dollars);
        } else {
            self.sums_up.get_or_insert(false);
            return;
        }
        (self.sums_up, turn.is_unreported) = (Some(true), false);
    }

    /// Records what the model said, or what the client itself says where `error` names a kind.
    pub(super) fn take_answer(&mut self, turn: &mut AgentTurn, event: &Value, is_own: bool) {
        let blocks = event.list("/message/content");
        match event.text("/error") {
            Some(kind) if is_own => {
                turn.clear_failure();
                let texts: Vec<&str> =
                    blocks.iter().filter_map(|block| block.text("/text")).collect();
                return turn.set_failure(ServiceFailure::of_kind(kind, &texts.join("\n")));
            }
            // The service answered: earlier failures no longer count, and every earlier tool call
            // has its result. Words after a result replace it.
            None if is_own => {
                turn.clear_failure();
                let message =
                    event.text("/message/id").map(|id| text_start(id, NAME_CHARS).to_owned());
                if self.message != message {
                    self.message = message;
                    turn.open.clear(Tool);
                }
            }
            // An answer, even to a subagent, clears an error after which the client tries again.
            None if turn.is_retrying() => turn.clear_failure(),
            _ => {}
        }
        for block in blocks {
            let id = block.word("/id");
            match block.word("/type") {
                "tool_use" if is_own => {
                    let call = ToolCall::from_event(block, "/name", "/input", &self.folder);
                    turn.show_call(id, call);
                }
                "tool_use" => turn.open.begin(Tool, id, None),
                "text" if is_own => turn.add_words(block.word("/text")),
                _ => {}
            }
        }
    }

    fn take_system(&mut self, turn: &mut AgentTurn, system: &Value) {
        match system.word("/subtype") {
            "init" => {
                text_start(system.word("/cwd"), FOLDER_CHARS).clone_into(&mut self.folder);
                turn.set_model(system.text("/model"));
                // A new turn begins: the result of the previous one no longer counts.
                turn.note_more_work();
            }
            "task_started" => turn.open.begin(Task, system.word("/task_id"), None),
            "task_notification" => turn.open.end(Task, system.word("/task_id")),
            "background_tasks_changed" => {
                turn.open.clear(Task);
                for task in system.list("/tasks") {
                    turn.open.begin(Task, task.word("/task_id"), None);
                }
            }
            "hook_started" => turn.open.begin(Hook, system.word("/hook_id"), None),
            "hook_response" => turn.open.end(Hook, system.word("/hook_id")),
            "permission_denied" if system["tool_name"].is_string() => {
                turn.note_denial(system.word("/tool_name"));
                turn.show_note(&format!("denied: {}", system.word("/tool_name")));
            }
            "api_retry" => {
                // If the client ends while it retries, the service was what failed.
                let kind = system.text("/error").unwrap_or(UNKNOWN);
                let pause =
                    system.number("/retry_delay_ms").map(to_count).map(Duration::from_millis);
                let failure = ServiceFailure::of_kind(kind, &retry_line(system));
                turn.begin_retry(failure.with_pause(pause), None);
            }
            _ => {}
        }
    }

    /// Records the end of a turn. A client that waits for its background work sends one for each.
    fn take_result(&mut self, turn: &mut AgentTurn, result: &Value) {
        for denial in result.list("/permission_denials") {
            turn.note_denial(denial.word("/tool_name"));
        }
        let turns = u32::try_from(result.count("/num_turns")).unwrap_or(u32::MAX);
        turn.turns = turn.turns.saturating_add(turns);
        let (kind, words) = (result.word("/subtype"), result.word("/result"));
        let is_error = result["is_error"] == true || kind.starts_with("error");
        turn.end.out_of_turns = kind == "error_max_turns";
        if is_error {
            let status = result.status("/api_error_status");
            let is_api_error = status.is_some() || result.is("/terminal_reason", "api_error");
            if is_api_error && turn.service.failure.is_none() {
                turn.service.failure = Some(ServiceFailure::of_kind(UNKNOWN, words));
            }
            if let Some(failure) = &mut turn.service.failure {
                failure.apply_status(status);
            }
            let reason = if words.trim().is_empty() { kind } else { words.trim() };
            turn.close_turn(if turn.end.out_of_turns { Ok(()) } else { Err(says_error(reason)) });
        } else {
            turn.clear_failure();
            // The closing event repeats the last words, unless they came in no other event. An
            // overruled stop hook leaves it empty.
            if !words.trim().is_empty() && !turn.has_said(words) {
                turn.show_steps([Activity::Said(sanitize_text(words.trim()))]);
            }
            if !words.trim().is_empty() {
                turn.keep_words(words);
            }
            turn.close_turn(Ok(()));
        }
        turn.closing.is_queued = result.count("/queued_turn_count") > 0;
        self.take_sum(turn, result);
        turn.end.context_percent = turn.end.context_percent.max(self.context_percent(result));
    }

    /// The fill level of the context in percent: the fullest message compared with the window that
    /// the client reports for the model. `None` if the client reports no window.
    fn context_percent(&self, result: &Value) -> Option<u8> {
        let ((model, tokens), models) = (self.fullest.as_ref()?, result.members("/modelUsage")?);
        // "opus[1m]" is the model `opus` with a larger window.
        let windows = models
            .iter()
            .filter(|(name, _)| name.split('[').next() == Some(model) || models.len() == 1);
        let window = windows.map(|(_, used)| used.count("/contextWindow")).max()?;
        let percent = tokens.saturating_mul(100).checked_div(window)?;
        Some(u8::try_from(percent.min(100)).unwrap_or(100))
    }
}

/// Records what the model received: the results of its tools.
fn take_results(turn: &mut AgentTurn, event: &Value, is_own: bool) {
    for block in event.list("/message/content") {
        match block.text("/tool_use_id") {
            Some(id) if is_own => end_call(turn, id, block),
            Some(id) => turn.open.end(Tool, id),
            None => {}
        }
    }
}

/// Closes a call. Its output is a string, or the strings in a list of parts.
fn end_call(turn: &mut AgentTurn, id: &str, block: &Value) {
    let output = if let Some(text) = block.text("/content") {
        text.to_owned()
    } else {
        let parts = block.list("/content").iter().filter_map(|part| part.text("/text"));
        parts.collect::<Vec<_>>().join("\n")
    };
    let is_failure = block["is_error"] == true;
    let exit = match output.strip_prefix("Exit code ") {
        Some(rest) if is_failure => rest.lines().next().and_then(|line| line.trim().parse().ok()),
        _ => None,
    };
    turn.end_call(id, &output, exit, is_failure);
}

/// "the service did not answer (overloaded, 529): retry 1 of 2".
fn retry_line(retry: &Value) -> String {
    let error = retry.text("/error").unwrap_or(UNKNOWN);
    let status = retry.number("/error_status").map(|status| format!(", {status}"));
    let status = status.unwrap_or_default();
    let [attempt, most] =
        ["/attempt", "/max_retries"].map(|at| retry.number(at).unwrap_or_default());
    sanitize_text(&format!(
        "the service did not answer ({error}{status}): retry {attempt} of {most}"
    ))
}

/// The time at which a limit resets.
fn resets_at(limit: &Value) -> Option<DateTime<Utc>> {
    let seconds = to_count(limit.number("/resetsAt")?);
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)
}

/// The longest model name kept, in characters.
const MODEL_CHARS: usize = 80;

/// What one model used; `None` if its cost cannot be read. The client guesses a cost for a model
/// without a known price; crew does not.
fn of_model(name: &str, used: &Value, hour_seen: &mut u64) -> Option<Usage> {
    let written = used.count("/cacheCreationInputTokens");
    // 2.1.330 and later report it.
    let hour = match used.number("/cacheCreationEphemeral1hInputTokens") {
        Some(hour) => to_count(hour).min(written),
        None => written.min(*hour_seen),
    };
    *hour_seen -= hour.min(*hour_seen);
    let tokens = Tokens {
        input: used.count("/inputTokens"),
        cache_write: written - hour,
        cache_write_hour: hour,
        cache_read: used.count("/cacheReadInputTokens"),
        output: used.count("/outputTokens"),
    };
    let model = text_start(name.split('[').next().unwrap_or(name), MODEL_CHARS).to_owned();
    // `list`, `managed` or `unknown`; 2.1.330 and later.
    let is_priced = match used.text("/costBasis") {
        Some(basis) => basis != "unknown",
        None => is_priced(&model),
    };
    if is_priced {
        Some(Usage { tokens, cost: convert_dollars(used.dollars("/costUSD")?), ..Usage::default() })
    } else {
        Some(Usage { tokens, unpriced: tokens, unpriced_models: vec![model], ..Usage::default() })
    }
}

/// Converts dollars, which the client sums as floats.
fn convert_dollars(dollars: f64) -> Money {
    Money(to_count((dollars * 1e12).round()))
}
