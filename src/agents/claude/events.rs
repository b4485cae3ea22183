//! The fields of the stream's events that crew reads. A line that is not a known event is
//! `Unknown`, and a field of another shape is absent.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::agents::activity::{ToolCall, verb};
use crate::agents::lenient::{
    Dollars, FlagField, Lenient, ListField, NumberField, OutputField, TextField, ToolInput, part,
};
use crate::agents::words::{says_error, shown};

/// The result's subtype when the client's own limit on turns ended it.
pub(super) const OUT_OF_TURNS: &str = "error_max_turns";

#[derive(Debug)]
pub(super) enum ClaudeEvent {
    /// What the model said.
    Assistant(MessageEvent),
    /// What it received: the results of its tools.
    User(MessageEvent),
    System(SystemEvent),
    RateLimit(RateLimitEvent),
    Result(Box<ResultEvent>),
    Unknown,
}

impl ClaudeEvent {
    /// Reads a line. `Unknown` if it is not an event or not a known one.
    pub(super) fn read(line: &str) -> Self {
        #[derive(Deserialize)]
        struct EventKind {
            #[serde(rename = "type")]
            kind: TextField,
        }
        fn read<'a, T: Deserialize<'a>>(line: &'a str, event: fn(T) -> ClaudeEvent) -> ClaudeEvent {
            serde_json::from_str(line).map_or(ClaudeEvent::Unknown, event)
        }
        let Ok(EventKind { kind }) = serde_json::from_str(line) else { return Self::Unknown };
        match kind.text() {
            Some("assistant") => read(line, Self::Assistant),
            Some("user") => read(line, Self::User),
            Some("system") => read(line, Self::System),
            Some("rate_limit_event") => read(line, Self::RateLimit),
            Some("result") => read(line, |result| Self::Result(Box::new(result))),
            _ => Self::Unknown,
        }
    }
}

/// A message from or to the model; from the client itself where `error` names a kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageEvent {
    pub(super) parent_tool_use_id: Option<IgnoredAny>,
    pub(super) error: TextField,
    #[serde(deserialize_with = "part")]
    message: EventMessage,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EventMessage {
    id: TextField,
    content: ListField<ContentBlock>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContentBlock {
    #[serde(rename = "type")]
    pub(super) kind: TextField,
    pub(super) id: TextField,
    pub(super) tool_use_id: TextField,
    pub(super) text: TextField,
    name: TextField,
    #[serde(deserialize_with = "part")]
    input: ToolInput,
    pub(super) is_error: FlagField,
    content: OutputField,
}

impl MessageEvent {
    pub(super) fn message_id(&self) -> Option<&str> {
        self.message.id.text()
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = &ContentBlock> {
        self.message.content.iter()
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.blocks().filter_map(|block| block.text.text())
    }
}

impl ContentBlock {
    /// The call that this block makes. Paths below `folder` are shown relative to it.
    pub(super) fn call(&self, folder: &str) -> ToolCall {
        let name = self.name.text().unwrap_or("a tool");
        let subject = self.input.argument().unwrap_or_default();
        let below = subject.strip_prefix(folder).filter(|_| !folder.is_empty());
        let below = below.and_then(|below| below.strip_prefix('/'));
        ToolCall {
            lines: self.input.changed(),
            ..ToolCall::new(verb(name), below.unwrap_or(subject))
        }
    }

    /// The result of a call; `None` where it is not worth showing.
    pub(super) fn result(&self, call: &ToolCall) -> Option<String> {
        let (output, is_failure) = (&*self.content.0, self.is_error.is_set());
        let exit = output.strip_prefix("Exit code ").and_then(|rest| rest.lines().next());
        let exit = exit.and_then(|exit| exit.trim().parse().ok());
        call.came_to(output, exit.filter(|_| is_failure), is_failure)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SystemEvent {
    pub(super) subtype: TextField,
    pub(super) model: TextField,
    /// The folder it works in.
    pub(super) cwd: TextField,
    pub(super) tool_name: TextField,
    pub(super) task_id: TextField,
    pub(super) hook_id: TextField,
    pub(super) tasks: ListField<BackgroundTask>,
    pub(super) error: TextField,
    error_status: NumberField,
    pub(super) attempt: NumberField,
    retry_delay_ms: NumberField,
    max_retries: NumberField,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BackgroundTask {
    pub(super) task_id: TextField,
}

impl SystemEvent {
    /// How long it pauses before the next try.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.retry_delay_ms.0.map(|_| Duration::from_millis(self.retry_delay_ms.count()))
    }

    /// "the service did not answer (overloaded, 529): retry 1 of 2".
    pub(super) fn retry_line(&self) -> String {
        let error = self.error.text().unwrap_or("unknown");
        let status = self.error_status.0.map(|status| format!(", {status}")).unwrap_or_default();
        let (attempt, most) = (self.attempt.0.unwrap_or(0.0), self.max_retries.0.unwrap_or(0.0));
        let retry =
            format!("the service did not answer ({error}{status}): retry {attempt} of {most}");
        shown(&retry)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RateLimitEvent {
    #[serde(deserialize_with = "part")]
    pub(super) rate_limit_info: RateLimitInfo,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RateLimitInfo {
    /// `allowed`, `allowed_warning` or `rejected`.
    pub(super) status: TextField,
    #[serde(rename = "resetsAt")]
    resets_at: NumberField,
}

impl RateLimitInfo {
    pub(super) fn resets_at(&self) -> Option<DateTime<Utc>> {
        self.resets_at.0?;
        DateTime::from_timestamp(i64::try_from(self.resets_at.count()).ok()?, 0)
    }
}

/// The end of a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultEvent {
    pub(super) subtype: TextField,
    pub(super) is_error: FlagField,
    #[serde(rename = "result")]
    pub(super) words: TextField,
    pub(super) terminal_reason: TextField,
    pub(super) permission_denials: ListField<PermissionDenial>,
    /// By model, for the whole process so far, including subagents and side requests.
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: Lenient<BTreeMap<String, Lenient<ModelUse>>>,
    api_error_status: NumberField,
    num_turns: NumberField,
    /// For the whole process so far.
    pub(super) total_cost_usd: Dollars,
    /// Turns that will follow this one.
    pub(super) queued_turn_count: NumberField,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PermissionDenial {
    pub(super) tool_name: TextField,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ModelUse {
    pub(super) input_tokens: NumberField,
    pub(super) output_tokens: NumberField,
    pub(super) cache_read_input_tokens: NumberField,
    pub(super) cache_creation_input_tokens: NumberField,
    /// 2.1.330 and later.
    pub(super) cache_creation_ephemeral1h_input_tokens: NumberField,
    /// The most tokens that its context holds.
    pub(super) context_window: NumberField,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Dollars,
    /// `list`, `managed` or `unknown`; 2.1.330 and later.
    pub(super) cost_basis: TextField,
}

impl ResultEvent {
    pub(super) fn status(&self) -> Option<u16> {
        self.api_error_status.status()
    }

    /// The error the event reports; `None` if there is none or it is the client's own limit on
    /// turns.
    pub(super) fn failed(&self) -> Option<String> {
        let kind = self.subtype.text().unwrap_or_default();
        let is_error = self.is_error.is_set() || kind.starts_with("error");
        let words = self.words.text().map(str::trim).filter(|words| !words.is_empty());
        let reason = words.unwrap_or(kind);
        (is_error && kind != OUT_OF_TURNS).then(|| says_error(reason))
    }

    pub(super) fn turns(&self) -> u32 {
        u32::try_from(self.num_turns.count()).unwrap_or(u32::MAX)
    }
}
