//! Claude Code in print mode: `stream-json`, one event a line. The events were recorded from the
//! real client, 2.1.330 and 2.1.197 (tests/fixtures/claude). Only the client's own fields count:
//! text about an error in a file, a tool's result or an answer is only text. A subagent's events
//! count as work and token use, never as the agent's words.

use std::time::Duration;

use crate::clients::FieldsByPointer;
use chrono::{DateTime, Utc};
use serde_json::Value;

use self::spent::Spent;
use super::activity::{Activity, ToolCall, printed, says_error, shown};
use super::events::AgentEvents;
use super::service::{Service, ServiceFailure, UNKNOWN};
use super::turn::AgentTurn;
use super::turn::Work::{Hook, Task, Tool};
use crate::clients::claude::plugin::config_folder;
use crate::engine::text::start;
use crate::engine::usage::{Message, Usage};
use crate::parse::amounts::whole;

mod spent;
#[cfg(test)]
#[macro_use]
mod tests;
#[cfg(test)]
mod closing_tests;

/// Where its model is. A helper that makes keys, named in its settings, is not looked for.
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
/// The kind of error of an answer that the token limit cut.
const CUT: &str = "max_output_tokens";

/// What it has said so far.
#[derive(Debug, Default)]
pub(super) struct Claude {
    spent: Spent,
    /// The model and the tokens of the agent's own fullest message, answer included.
    fullest: Option<(String, u64)>,
    /// The id of the agent's own latest message.
    message: Option<String>,
    /// When the limit that was hit resets, as the client reports it in a field of its own.
    reset: Option<DateTime<Utc>>,
    /// Where it works.
    folder: String,
}

impl AgentEvents for Claude {
    fn event(&mut self, turn: &mut AgentTurn, event: &Value, line: &str) {
        let is_own = event["parent_tool_use_id"].is_null();
        match event.word("/type") {
            "assistant" => {
                let message = self.spent.message(line);
                message.filter(|_| is_own).iter().for_each(|message| self.fills(turn, message));
                self.said(turn, event, is_own);
            }
            "user" => heard(turn, event, is_own),
            "system" => self.system(turn, event),
            "rate_limit_event" => {
                let info = &event["rate_limit_info"];
                self.reset = resets_at(info).filter(|_| info.is("/status", "rejected"));
            }
            "result" => self.result(turn, event),
            _ => turn.see(printed(line)),
        }
    }

    fn end(&mut self, turn: &mut AgentTurn) {
        turn.end.cut = turn.failure.as_ref().is_some_and(|failure| failure.kind == CUT);
        if let Some(failure) = &mut turn.failure {
            failure.reset = self.reset;
        }
    }

    fn usage(&self, _turn: &AgentTurn) -> Option<Usage> {
        self.spent.usage()
    }
}

impl Claude {
    /// Takes a message of the agent itself; a subagent has a context of its own.
    fn fills(&mut self, turn: &mut AgentTurn, message: &Message) {
        let tokens = message.tokens.total();
        if self.fullest.as_ref().is_none_or(|(_, most)| tokens > *most) {
            self.fullest = Some((message.model.clone(), tokens));
        }
        turn.fills(message.tokens);
    }

    /// What the model said; what the client itself says where `error` names a kind.
    fn said(&mut self, turn: &mut AgentTurn, said: &Value, is_own: bool) {
        let blocks = said.list("/message/content");
        match said.text("/error") {
            Some(kind) if is_own => {
                turn.works();
                let texts: Vec<&str> = blocks.iter().filter_map(|it| it.text("/text")).collect();
                return turn.fails(ServiceFailure::of_kind(kind, &texts.join("\n")));
            }
            // The service answered: earlier failures no longer count, and every earlier tool call
            // has its result. Words after a result replace it.
            None if is_own => {
                turn.works();
                let message = said.text("/message/id").map(|id| start(id, NAME_CHARS).to_owned());
                if self.message != message {
                    self.message = message;
                    turn.open.clear(Tool);
                }
            }
            // An answer, even to a subagent, clears an error after which the client tries again.
            None if turn.is_retrying() => turn.works(),
            _ => {}
        }
        for block in blocks {
            let id = block.word("/id");
            match block.word("/type") {
                "tool_use" if is_own => {
                    turn.calls(id, ToolCall::of(block, "/name", "/input", &self.folder));
                }
                "tool_use" => turn.open.begin(Tool, id, None),
                "text" if is_own => turn.says(block.word("/text")),
                _ => {}
            }
        }
    }

    fn system(&mut self, turn: &mut AgentTurn, system: &Value) {
        match system.word("/subtype") {
            "init" => {
                start(system.word("/cwd"), FOLDER_CHARS).clone_into(&mut self.folder);
                turn.works_with(system.text("/model"));
                // A new turn begins: the result of the previous one no longer counts.
                turn.goes_on();
            }
            "task_started" => turn.open.begin(Task, system.word("/task_id"), None),
            "task_notification" => turn.open.end(Task, system.word("/task_id")),
            "background_tasks_changed" => {
                turn.open.clear(Task);
                let tasks = system.list("/tasks").iter();
                tasks.for_each(|task| turn.open.begin(Task, task.word("/task_id"), None));
            }
            "hook_started" => turn.open.begin(Hook, system.word("/hook_id"), None),
            "hook_response" => turn.open.end(Hook, system.word("/hook_id")),
            "permission_denied" if system["tool_name"].is_string() => {
                turn.denies(system.word("/tool_name"));
                turn.notes(&format!("denied: {}", system.word("/tool_name")));
            }
            "api_retry" => {
                // If the client ends while it retries, the service was what failed.
                let kind = system.text("/error").unwrap_or(UNKNOWN);
                let pause = system.number("/retry_delay_ms").map(whole).map(Duration::from_millis);
                let failure = ServiceFailure::of_kind(kind, &retry_line(system));
                turn.retries(failure.pausing(pause), None);
            }
            _ => {}
        }
    }

    /// The end of a turn. A client that waits for its background work sends one for each turn.
    fn result(&mut self, turn: &mut AgentTurn, result: &Value) {
        for denial in result.list("/permission_denials") {
            turn.denies(denial.word("/tool_name"));
        }
        let turns = u32::try_from(result.count("/num_turns")).unwrap_or(u32::MAX);
        turn.turns = turn.turns.saturating_add(turns);
        let (kind, words) = (result.word("/subtype"), result.word("/result"));
        let is_error = result["is_error"] == true || kind.starts_with("error");
        turn.end.out_of_turns = kind == "error_max_turns";
        if is_error {
            let status = result.status("/api_error_status");
            let is_api_error = status.is_some() || result.is("/terminal_reason", "api_error");
            if is_api_error && turn.failure.is_none() {
                turn.failure = Some(ServiceFailure::of_kind(UNKNOWN, words));
            }
            if let Some(failure) = &mut turn.failure {
                failure.takes_status(status);
            }
            let reason = if words.trim().is_empty() { kind } else { words.trim() };
            turn.closes(if turn.end.out_of_turns { Ok(()) } else { Err(says_error(reason)) });
        } else {
            turn.works();
            // The closing event repeats the last words, unless they came in no other event. An
            // overruled stop hook leaves it empty.
            if !words.trim().is_empty() && !turn.has_said(words) {
                turn.see([Activity::Said(shown(words.trim()))]);
            }
            if !words.trim().is_empty() {
                turn.keeps(words);
            }
            turn.closes(Ok(()));
        }
        turn.is_queued = result.count("/queued_turn_count") > 0;
        self.spent.result(result);
        turn.end.context_percent = turn.end.context_percent.max(self.percent(result));
    }

    /// How full the context was: the fullest message against the window that the client reports for
    /// the model. A client that names no window says nothing of it.
    fn percent(&self, result: &Value) -> Option<u8> {
        let ((model, tokens), models) = (self.fullest.as_ref()?, result.members("/modelUsage")?);
        // "opus[1m]" is the model `opus` with a larger window.
        let is_its = |name: &str| name.split('[').next() == Some(model) || models.len() == 1;
        let windows = models.iter().filter(|(name, _)| is_its(name));
        let window = windows.map(|(_, used)| used.count("/contextWindow")).max()?;
        let percent = tokens.saturating_mul(100).checked_div(window)?;
        Some(u8::try_from(percent.min(100)).unwrap_or(100))
    }
}

/// What the model received: the results of its tools.
fn heard(turn: &mut AgentTurn, heard: &Value, is_own: bool) {
    for block in heard.list("/message/content") {
        match block.text("/tool_use_id") {
            Some(id) if is_own => ended(turn, id, block),
            Some(id) => turn.open.end(Tool, id),
            None => {}
        }
    }
}

/// A call is over. Its output is a text, or the texts of a list of parts.
fn ended(turn: &mut AgentTurn, id: &str, block: &Value) {
    let parts = || block.list("/content").iter().filter_map(|part| part.text("/text"));
    let output = block.text("/content").map(str::to_owned);
    let output = output.unwrap_or_else(|| parts().collect::<Vec<_>>().join("\n"));
    let is_failure = block["is_error"] == true;
    let exit = output.strip_prefix("Exit code ").and_then(|rest| rest.lines().next());
    let exit = exit.and_then(|exit| exit.trim().parse().ok()).filter(|_| is_failure);
    turn.ends(id, &output, exit, is_failure);
}

/// "the service did not answer (overloaded, 529): retry 1 of 2".
fn retry_line(retry: &Value) -> String {
    let error = retry.text("/error").unwrap_or(UNKNOWN);
    let status = retry.number("/error_status").map(|status| format!(", {status}"));
    let status = status.unwrap_or_default();
    let [attempt, most] =
        ["/attempt", "/max_retries"].map(|at| retry.number(at).unwrap_or_default());
    shown(&format!("the service did not answer ({error}{status}): retry {attempt} of {most}"))
}

/// When a limit resets.
fn resets_at(limit: &Value) -> Option<DateTime<Utc>> {
    let seconds = whole(limit.number("/resetsAt")?);
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)
}
