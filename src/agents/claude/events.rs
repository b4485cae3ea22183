//! The events of the stream, as far as they are read.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::agents::lenient::{Call, Dollars, Flag, List, Number, Part, Word, part};
use crate::agents::words::shown;

/// The kind of an end by the client's own limit on turns.
pub(super) const OUT_OF_TURNS: &str = "error_max_turns";

#[derive(Debug)]
pub(super) enum Event {
    Said(Said),
    Heard(Heard),
    System(System),
    Limit(Limit),
    Result(Box<Result>),
    Unknown,
}

impl Event {
    /// Reads a line; one that is no event, or none that is known, is `Unknown`.
    pub(super) fn read(line: &str) -> Self {
        #[derive(Deserialize)]
        struct Kind {
            #[serde(rename = "type", default)]
            kind: Word,
        }
        fn read<'a, T: Deserialize<'a>>(line: &'a str, event: fn(T) -> Event) -> Event {
            serde_json::from_str(line).map_or(Event::Unknown, event)
        }
        let Ok(Kind { kind }) = serde_json::from_str(line) else { return Self::Unknown };
        match kind.text() {
            Some("assistant") => read(line, Self::Said),
            Some("user") => read(line, Self::Heard),
            Some("system") => read(line, Self::System),
            Some("rate_limit_event") => read(line, Self::Limit),
            Some("result") => read(line, |result| Self::Result(Box::new(result))),
            _ => Self::Unknown,
        }
    }
}

/// Words of the model, or the client's own in place of them where `error` names a kind.
#[derive(Debug, Deserialize)]
pub(super) struct Said {
    pub(super) parent_tool_use_id: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) error: Word,
    #[serde(default, deserialize_with = "part")]
    message: Message,
}

/// What the model was told: the results of its tools.
#[derive(Debug, Deserialize)]
pub(super) struct Heard {
    pub(super) parent_tool_use_id: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "part")]
    message: Message,
}

#[derive(Debug, Default, Deserialize)]
struct Message {
    #[serde(default)]
    id: Word,
    #[serde(default)]
    content: List<Block>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Block {
    #[serde(rename = "type", default)]
    pub(super) kind: Word,
    #[serde(default)]
    pub(super) id: Word,
    #[serde(default)]
    pub(super) tool_use_id: Word,
    #[serde(default)]
    pub(super) text: Word,
    #[serde(default)]
    name: Word,
    #[serde(default)]
    input: Call,
}

impl Said {
    pub(super) fn message_id(&self) -> Option<&str> {
        self.message.id.text()
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.message.content.iter()
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.blocks().filter_map(|block| block.text.text())
    }
}

impl Heard {
    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.message.content.iter()
    }
}

impl Block {
    /// "Bash: cargo test".
    pub(super) fn spoken(&self) -> String {
        let name = self.name.text().unwrap_or("a tool");
        let with = self.input.told().map(|with| format!(": {with}")).unwrap_or_default();
        shown(&format!("{name}{with}"))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct System {
    #[serde(default)]
    pub(super) subtype: Word,
    #[serde(default)]
    pub(super) model: Word,
    #[serde(default)]
    pub(super) tool_name: Word,
    #[serde(default)]
    pub(super) task_id: Word,
    #[serde(default)]
    pub(super) hook_id: Word,
    #[serde(default)]
    pub(super) tasks: List<Task>,
    #[serde(default)]
    pub(super) error: Word,
    #[serde(default)]
    error_status: Number,
    #[serde(default)]
    attempt: Number,
    #[serde(default)]
    max_retries: Number,
}

#[derive(Debug, Deserialize)]
pub(super) struct Task {
    #[serde(default)]
    pub(super) task_id: Word,
}

impl System {
    /// "the service did not answer (overloaded, 529): retry 1 of 2".
    pub(super) fn spoken_retry(&self) -> String {
        let error = self.error.text().unwrap_or("unknown");
        let status = self.error_status.0.map(|status| format!(", {status}")).unwrap_or_default();
        let (attempt, most) = (self.attempt.0.unwrap_or(0.0), self.max_retries.0.unwrap_or(0.0));
        let told =
            format!("the service did not answer ({error}{status}): retry {attempt} of {most}");
        shown(&told)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Limit {
    #[serde(default, deserialize_with = "part")]
    pub(super) rate_limit_info: LimitInfo,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct LimitInfo {
    /// `allowed`, `allowed_warning` or `rejected`.
    #[serde(default)]
    pub(super) status: Word,
    #[serde(rename = "resetsAt", default)]
    resets_at: Number,
}

impl LimitInfo {
    pub(super) fn resets_at(&self) -> Option<DateTime<Utc>> {
        self.resets_at.0?;
        DateTime::from_timestamp(i64::try_from(self.resets_at.count()).ok()?, 0)
    }
}

/// The end of a turn.
#[derive(Debug, Deserialize)]
pub(super) struct Result {
    #[serde(default)]
    pub(super) subtype: Word,
    #[serde(default)]
    pub(super) is_error: Flag,
    #[serde(rename = "result", default)]
    pub(super) words: Word,
    #[serde(default)]
    pub(super) terminal_reason: Word,
    #[serde(default)]
    pub(super) permission_denials: List<Denial>,
    /// By model, of the whole process so far, subagents and side requests included.
    #[serde(rename = "modelUsage", default)]
    pub(super) model_usage: Part<BTreeMap<String, Part<ModelUse>>>,
    #[serde(default)]
    api_error_status: Number,
    #[serde(default)]
    num_turns: Number,
    /// Of the whole process so far.
    #[serde(default)]
    pub(super) total_cost_usd: Dollars,
    /// Turns that will follow this one.
    #[serde(default)]
    pub(super) queued_turn_count: Number,
}

#[derive(Debug, Deserialize)]
pub(super) struct Denial {
    #[serde(default)]
    pub(super) tool_name: Word,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ModelUse {
    pub(super) input_tokens: Number,
    pub(super) output_tokens: Number,
    pub(super) cache_read_input_tokens: Number,
    pub(super) cache_creation_input_tokens: Number,
    /// 2.1.330 and later.
    pub(super) cache_creation_ephemeral1h_input_tokens: Number,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Dollars,
    /// `list`, `managed` or `unknown`; 2.1.330 and later.
    pub(super) cost_basis: Word,
}

impl Result {
    pub(super) fn status(&self) -> Option<u16> {
        self.api_error_status.0.map(|_| u16::try_from(self.api_error_status.count()).unwrap_or(0))
    }

    /// What it says went wrong, where it ended in an error that is no limit of its own.
    pub(super) fn failed(&self) -> Option<String> {
        let kind = self.subtype.text().unwrap_or_default();
        let is_error = self.is_error.0 || kind.starts_with("error");
        let words = self.words.text().map(str::trim).filter(|words| !words.is_empty());
        let told = words.unwrap_or(kind);
        (is_error && kind != OUT_OF_TURNS)
            .then(|| format!("the agent's closing event says error: {}", shown(told)))
    }

    pub(super) fn turns(&self) -> u32 {
        u32::try_from(self.num_turns.count()).unwrap_or(u32::MAX)
    }
}
