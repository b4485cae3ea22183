//! Claude Code in print mode: `stream-json`, one event a line. The events were recorded from the
//! real client, 2.1.330 and 2.1.197 (tests/fixtures/claude). Only the client's own fields count:
//! text about an error in a file, a tool's result or an answer is only text. A subagent's events
//! count as work and token use, never as the agent's words.

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};

use self::context::Context;
use self::events::OUT_OF_TURNS;
use self::spent::Spent;
use super::activity::{Activity, OpenCalls, ToolCall, printed};
use super::json::JsonObject;
use super::open_work::OpenWork;
use super::open_work::Work::{Hook, Task, Tool};
use super::service::Service;
use super::waiting::ServiceWait;
use super::words::{KEPT_BYTES, end, note, shown, start};
use super::{EventAgent, OutputReader, Report};
use crate::clients::claude::setup::config_folder;
use crate::engine::boundary::facts::{AgentClosing, ApiError};
use crate::parse::{api_error, reset};

mod context;
mod events;
mod spent;
#[cfg(test)]
#[macro_use]
mod tests;
#[cfg(test)]
mod closing_tests;

const NAME: &str = "claude";

/// The default agent.
pub(super) const AGENT: EventAgent =
    EventAgent { name: NAME, reader: |_| Box::<Claude>::default() };

/// Where its model is. A helper that makes keys, named in its settings, is not looked for.
pub(super) const SERVICE: Service = Service {
    set_by: "ANTHROPIC_BASE_URL",
    usual: "https://api.anthropic.com",
    elsewhere: &["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"],
    keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    login: |path| Some(config_folder(path)?.join(".credentials.json")),
};

/// The longest name kept, in characters: of a model, a message or a kind of error.
const NAME_CHARS: usize = 200;
/// The longest folder kept, in characters.
const FOLDER_CHARS: usize = 4096;
/// The longest error kept, in characters.
const ERROR_CHARS: usize = 2000;

/// What the stream has said so far.
#[derive(Debug, Default)]
pub(super) struct Claude {
    words: Option<String>,
    /// Whether no work of the agent followed its words.
    words_are_last: bool,
    open: OpenWork,
    spent: Spent,
    context: Context,
    error: Option<ServiceError>,
    /// The id of the agent's own latest message.
    message: Option<String>,
    /// When the limit that was hit resets, as the client reports it in a field of its own.
    reset: Option<DateTime<Utc>>,
    denied: Vec<String>,
    ending: Option<ClosingEvent>,
    model: Option<String>,
    turns: Option<u32>,
    calls: OpenCalls,
    /// Where it works.
    folder: String,
}

/// An error that the client reported in place of an answer.
#[derive(Debug)]
struct ServiceError {
    kind: String,
    message: String,
    /// The client's retry. An answer, even to a subagent, then clears the error.
    retry: Option<ServiceWait>,
}

/// What the last `result` said. A client that waits for its background work sends one for each
/// turn.
#[derive(Debug)]
struct ClosingEvent {
    /// What went wrong, unless it was the client's own limit on turns.
    failed: Option<String>,
    /// Whether turns will follow.
    is_queued: bool,
    out_of_turns: bool,
    /// HTTP status of the service's error.
    status: Option<u16>,
    /// Whether the event reports a failed service, even without a kind or a status.
    is_api_error: bool,
    message: Option<String>,
}

impl ClosingEvent {
    fn is_error(&self) -> bool {
        self.failed.is_some() || self.out_of_turns
    }
}

impl OutputReader for Claude {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        let event = JsonObject::of(line).unwrap_or_default();
        let steps = match &*event.word("type") {
            "assistant" => self.said(line, event),
            "user" => self.heard(event),
            "system" => self.system(event).into_iter().map(Activity::Noted).collect(),
            "rate_limit_event" => self.limit(event),
            "result" => self.result(event),
            _ => printed(line),
        };
        self.calls.told(&steps);
        steps
    }

    fn waits(&self, _now: DateTime<FixedOffset>) -> Option<ServiceWait> {
        let told = self.error.as_ref().filter(|_| !self.tool_is_open())?;
        told.retry
    }

    fn tool_is_open(&self) -> bool {
        let kinds = if self.ending.is_some() { &[Tool][..] } else { &[Tool, Task] };
        self.open.is_any(kinds)
    }

    fn is_closed(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| !ending.is_queued)
            && !self.open.is_any(&[Tool, Task, Hook])
    }

    fn report(&mut self, now: DateTime<FixedOffset>) -> Report {
        let cut = self.error.as_ref().is_some_and(|told| told.kind == "max_output_tokens");
        let ending = self.ending.as_ref();
        let own = self.words.clone().filter(|_| self.words_are_last);
        let final_message = match ending {
            Some(ending) if ending.is_error() => None,
            // An overruled stop hook leaves the result empty.
            Some(ending) => ending.message.clone().or(own),
            None => own,
        };
        let error = if cut { None } else { self.api_error(now) };
        let closing = match ending.map(|ending| &ending.failed) {
            None => AgentClosing::Missing,
            Some(Some(how)) if !cut && error.is_none() => AgentClosing::Failed(how.clone()),
            Some(_) => AgentClosing::Plain,
        };
        Report {
            final_message,
            last_words: self.words.clone(),
            may_echo: false,
            usage: self.spent.usage(),
            closing,
            error,
            denied: self.denied.clone(),
            cut,
            out_of_turns: ending.is_some_and(|ending| ending.out_of_turns),
            model: self.model.clone(),
            turns: self.turns,
            context_percent: self.context.percent(),
            context_tokens: self.context.tokens(),
        }
    }
}

impl Claude {
    /// Whether its closing event came, whatever work is open.
    pub(super) fn has_ended(&self) -> bool {
        self.ending.is_some()
    }

    /// What the model said; what the client itself says where `error` names a kind.
    fn said(&mut self, line: &str, said: JsonObject<'_>) -> Vec<Activity> {
        let is_own = !said.has("parent_tool_use_id");
        let (blocks, error) = (said.list("message.content"), said.text("error"));
        let message = self.spent.message(line);
        message.filter(|_| is_own).iter().for_each(|message| self.context.message(message));
        if let Some(kind) = error.as_ref().filter(|_| is_own) {
            let texts = blocks.iter().filter_map(|block| block.text("text"));
            let message = texts.collect::<Vec<_>>().join("\n");
            self.ending = None;
            self.fails(kind, &message, None);
            return vec![Activity::Noted(shown(&message))];
        }
        if error.is_none() && self.error.as_ref().is_some_and(|told| told.retry.is_some()) {
            self.error = None;
        }
        if is_own {
            // The service answered: earlier failures no longer count, and every earlier tool call
            // has its result.
            self.error = None;
            // Words after a result replace it.
            self.ending = None;
            let message = said.text("message.id");
            let message = message.map(|id| start(&id, NAME_CHARS).to_owned());
            if self.message != message {
                self.message = message;
                self.open.clear(Tool);
            }
        }
        let mut seen = Vec::new();
        for block in blocks {
            match (&*block.word("type"), block.text("text")) {
                ("tool_use", _) => {
                    let id = block.word("id");
                    self.open.begin(Tool, &id);
                    self.words_are_last &= !is_own;
                    if is_own {
                        let call = ToolCall::of(block, "name", "input", &self.folder);
                        self.calls.begin(&id, &call);
                        seen.push(Activity::Called(call));
                    }
                }
                ("text", Some(text)) if is_own && !text.trim().is_empty() => {
                    self.words = Some(end(text.trim(), KEPT_BYTES).to_owned());
                    self.words_are_last = true;
                    seen.push(Activity::Said(shown(&text)));
                }
                _ => {}
            }
        }
        seen
    }

    fn fails(&mut self, kind: &str, message: &str, retry: Option<ServiceWait>) {
        let kind = start(kind, NAME_CHARS).to_owned();
        let message = start(message, ERROR_CHARS).to_owned();
        self.error = Some(ServiceError { kind, message, retry });
    }

    /// What the model received: the results of its tools.
    fn heard(&mut self, heard: JsonObject<'_>) -> Vec<Activity> {
        let mut seen = Vec::new();
        for block in heard.list("message.content") {
            if let Some(id) = block.text("tool_use_id") {
                self.open.end(Tool, &id);
                self.words_are_last &= heard.has("parent_tool_use_id");
                seen.extend(self.calls.end(&id, |call| events::result(block, call)));
            }
        }
        seen
    }

    fn system(&mut self, system: JsonObject<'_>) -> Option<String> {
        match &*system.word("subtype") {
            "init" => {
                start(&system.word("cwd"), FOLDER_CHARS).clone_into(&mut self.folder);
                self.model = system.text("model").map(|it| start(&it, NAME_CHARS).to_owned());
                // A new turn begins: the result of the previous one no longer counts.
                self.ending = None;
                self.words_are_last = false;
            }
            "task_started" => self.open.begin(Task, &system.word("task_id")),
            "task_notification" => self.open.end(Task, &system.word("task_id")),
            "background_tasks_changed" => {
                self.open.clear(Task);
                for task in system.list("tasks") {
                    self.open.begin(Task, &task.word("task_id"));
                }
            }
            "hook_started" => self.open.begin(Hook, &system.word("hook_id")),
            "hook_response" => self.open.end(Hook, &system.word("hook_id")),
            "permission_denied" => {
                let tool = system.text("tool_name")?;
                note(&mut self.denied, &tool);
                return Some(format!("denied: {}", shown(&tool)));
            }
            "api_retry" => {
                // If the client ends while it retries, the service was what failed.
                let retry = events::retry_line(system);
                let tries = u32::try_from(system.count("attempt")).unwrap_or(u32::MAX);
                let pause = events::pause(system);
                let wait = ServiceWait { tries, pause, is_hopeless: false };
                let kind = system.text("error").unwrap_or("unknown".to_owned());
                self.fails(&kind, &retry, Some(wait));
                return Some(retry);
            }
            _ => {}
        }
        None
    }

    fn limit(&mut self, limit: JsonObject<'_>) -> Vec<Activity> {
        let info = limit.object("rate_limit_info").unwrap_or_default();
        self.reset = events::resets_at(info).filter(|_| info.is("status", "rejected"));
        Vec::new()
    }

    /// The end of a turn.
    fn result(&mut self, result: JsonObject<'_>) -> Vec<Activity> {
        for denial in result.list("permission_denials") {
            note(&mut self.denied, &denial.word("tool_name"));
        }
        let turns = u32::try_from(result.count("num_turns")).unwrap_or(u32::MAX);
        self.turns = Some(self.turns.unwrap_or(0).saturating_add(turns));
        self.open.clear(Tool);
        let failed = events::failed(result);
        let is_error = result.flag("is_error") == Some(true) || failed.is_some();
        if !is_error {
            self.error = None;
        }
        let words = result.word("result");
        let text = Some(words.trim()).filter(|text| !text.is_empty());
        self.ending = Some(ClosingEvent {
            failed,
            is_queued: result.count("queued_turn_count") > 0,
            out_of_turns: result.is("subtype", OUT_OF_TURNS),
            status: result.status("api_error_status"),
            is_api_error: result.is("terminal_reason", "api_error"),
            message: text.map(|text| end(text, KEPT_BYTES).to_owned()),
        });
        self.spent.result(result);
        self.context.result(result);
        // The closing event repeats the last words, unless they came in no other event.
        let is_told = is_error || text == self.words.as_deref();
        text.filter(|_| !is_told).map(|text| Activity::Said(shown(text))).into_iter().collect()
    }

    fn api_error(&self, now: DateTime<FixedOffset>) -> Option<ApiError> {
        let ending = self.ending.as_ref();
        let status = ending.and_then(|ending| ending.status);
        let (kind, message) = if let Some(told) = &self.error {
            (told.kind.as_str(), told.message.as_str())
        } else {
            let ending = ending.filter(|ending| ending.is_error())?;
            if status.is_none() && !ending.is_api_error {
                return None;
            }
            ("unknown", ending.message.as_deref().unwrap_or_default())
        };
        let kind = if kind == "unknown" { by_status(status) } else { kind };
        let error = api_error::classify(kind, message, now);
        let pause = self.error.as_ref().and_then(|told| told.retry?.long_pause());
        let pause = pause.and_then(|pause| TimeDelta::from_std(pause).ok());
        let due = pause.and_then(|pause| now.with_timezone(&Utc).checked_add_signed(pause));
        let exact = self.reset.or(due);
        let exact = exact.filter(|at| reset::is_believed(*at, now));
        Some(match error {
            ApiError::Transient { message, reset, is_limit: true } => {
                ApiError::Transient { message, reset: exact.or(reset), is_limit: true }
            }
            other => other,
        })
    }
}

/// The client calls some errors unknown although their status identifies them.
fn by_status(status: Option<u16>) -> &'static str {
    match status {
        Some(401) => "authentication_failed",
        Some(429) => "rate_limit",
        Some(400 | 413 | 422) => "invalid_request",
        _ => "unknown",
    }
}
