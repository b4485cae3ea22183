//! Codex's `exec --json`: one event a line, as documented in `docs/exec.md` of openai/codex and the
//! types of its `exec_events.rs`; not tried with the real tool. It reports the tokens of a turn,
//! but neither the model nor a price. An error is one sentence, classified here by the statuses and
//! phrases in Codex's source. Only error events are classified.

use std::collections::BTreeMap;

use chrono::{DateTime, FixedOffset};
use serde::Deserialize;

use super::lenient::{Lenient, NumberField, TextField, part};
use super::open_work::OpenWork;
use super::open_work::Work::Tool;
use super::words::{KEPT_BYTES, end, note, shown, start};
use super::{EventAgent, OutputReader, Report};
use crate::engine::boundary::facts::AgentClosing;
use crate::engine::record::{Agent, Dialect, Permissions};
use crate::engine::usage::{Tokens, Usage};
use crate::parse::api_error;

const NAME: &str = "codex";

/// Codex, known from its documentation and its source.
pub(super) const AGENT: EventAgent =
    EventAgent { name: NAME, is_tried: false, agent, reader: |name| Box::new(Codex::new(name)) };

/// The longest command shown, in characters.
const CALL_CHARS: usize = 200;
/// The longest error kept, in characters.
const ERROR_CHARS: usize = 2000;
/// Items that are not work: words, thoughts, and a list that stays open for the whole turn.
const NO_WORK: [&str; 4] = ["agent_message", "reasoning", "todo_list", "error"];

/// How the agent is started. Without a prompt argument it reads the prompt from standard input. In
/// this mode it asks nobody, and it would refuse to start outside git; `crew run` has already
/// decided that the folder is right.
fn agent() -> Agent {
    let permissions: [(Permissions, &[&str]); 3] = [
        (Permissions::Default, &[]),
        (Permissions::AcceptEdits, &["--sandbox", "workspace-write"]),
        (Permissions::Bypass, &["--dangerously-bypass-approvals-and-sandbox"]),
    ];
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    Agent {
        name: NAME.to_owned(),
        command: owned(&[NAME, "exec", "--json", "--skip-git-repo-check"]),
        dialect: Dialect(NAME.into()),
        permissions: BTreeMap::from(permissions.map(|(kind, words)| (kind, owned(words)))),
        model: Some("-m".to_owned()),
        ..Agent::default()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CodexEvent {
    #[serde(rename = "type")]
    kind: TextField,
    #[serde(deserialize_with = "part")]
    item: CodexItem,
    usage: Lenient<CodexUsage>,
    /// Set in an `error`.
    message: TextField,
    /// Set in a `turn.failed`.
    #[serde(deserialize_with = "part")]
    error: TurnFailure,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CodexItem {
    id: TextField,
    #[serde(rename = "type")]
    kind: TextField,
    text: TextField,
    command: TextField,
    status: TextField,
    tool: TextField,
    query: TextField,
    message: TextField,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CodexUsage {
    /// Includes those from the cache.
    #[serde(rename = "input_tokens")]
    input: NumberField,
    #[serde(rename = "cached_input_tokens")]
    cached: NumberField,
    /// Includes those of its thoughts.
    #[serde(rename = "output_tokens")]
    output: NumberField,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TurnFailure {
    message: TextField,
}

/// What the stream has said so far.
#[derive(Debug, Default)]
struct Codex {
    /// Stands for the model in sums, because Codex does not report the model's name.
    name: String,
    words: Option<String>,
    words_are_last: bool,
    open: OpenWork,
    /// For the whole thread, as the last finished turn reported it.
    tokens: Option<Tokens>,
    /// Whether a turn is open or failed, so its use was not reported.
    is_untold: bool,
    error: Option<String>,
    denied: Vec<String>,
    turns: u32,
    /// Whether the last turn event was an end.
    is_closed: bool,
}

impl Codex {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    fn item(&mut self, kind: &str, item: &CodexItem) -> Option<String> {
        let what = item.kind.text()?;
        let id = item.id.text().unwrap_or_default();
        if !NO_WORK.contains(&what) {
            self.words_are_last = false;
            match kind {
                "item.started" => self.open.begin(Tool, id),
                "item.completed" => self.open.end(Tool, id),
                _ => return None,
            }
            let is_declined = item.status.text() == Some("declined");
            if is_declined {
                note(&mut self.denied, &what.replace('_', " "));
            }
            // An item is shown when it starts; a change of files has no start event.
            let is_shown = kind == "item.started" || what == "file_change" || is_declined;
            return is_shown.then(|| item.line(what, is_declined));
        }
        let text = item.text.text().map(str::trim).filter(|text| !text.is_empty());
        match (what, text) {
            ("agent_message", Some(text)) if kind == "item.completed" => {
                self.words = Some(end(text, KEPT_BYTES).to_owned());
                self.words_are_last = true;
                Some(shown(text))
            }
            ("error", _) => item.message.text().map(shown),
            _ => None,
        }
    }

    fn failed(&mut self, message: &str) -> String {
        self.error = Some(start(message.trim(), ERROR_CHARS).to_owned());
        shown(message)
    }

    /// What was used. If the process reported nothing, all of it is lost.
    fn usage(&self) -> Usage {
        let Some(tokens) = self.tokens else {
            return Usage { lost: true, ..Usage::default() };
        };
        Usage {
            tokens,
            unpriced: tokens,
            unpriced_models: vec![self.name.clone()],
            lost: self.is_untold,
            ..Usage::default()
        }
    }
}

impl CodexItem {
    fn line(&self, what: &str, is_declined: bool) -> String {
        let with = [&self.command, &self.tool, &self.query].into_iter().find_map(TextField::text);
        let with = with.map(|it| format!(": {}", start(it, CALL_CHARS))).unwrap_or_default();
        let denied = if is_declined { "denied: " } else { "" };
        shown(&format!("{denied}{}{with}", what.replace('_', " ")))
    }
}

impl CodexUsage {
    fn tokens(&self) -> Tokens {
        let input = self.input.count();
        let cache_read = self.cached.count().min(input);
        Tokens {
            input: input - cache_read,
            cache_read,
            output: self.output.count(),
            ..Tokens::default()
        }
    }
}

impl OutputReader for Codex {
    fn line(&mut self, line: &str) -> Option<String> {
        let Ok(Lenient(Some(event))) = serde_json::from_str::<Lenient<CodexEvent>>(line) else {
            let is_broken = line.trim_start().starts_with('{');
            return (!is_broken).then(|| shown(line)).filter(|shown| !shown.is_empty());
        };
        match event.kind.text()? {
            "turn.started" => {
                self.turns = self.turns.saturating_add(1);
                self.is_untold = true;
                self.is_closed = false;
                None
            }
            "turn.completed" => {
                self.tokens = event.usage.0.as_ref().map(CodexUsage::tokens).or(self.tokens);
                self.is_untold &= event.usage.0.is_none();
                self.error = None;
                self.is_closed = true;
                self.open.clear(Tool);
                None
            }
            "turn.failed" => {
                self.is_closed = true;
                self.open.clear(Tool);
                Some(self.failed(event.error.message.text().unwrap_or("turn failed")))
            }
            // Codex may retry after this error; the following events show whether that succeeded.
            "error" => Some(self.failed(event.message.text().unwrap_or("error"))),
            kind if kind.starts_with("item.") => self.item(kind, &event.item),
            _ => None,
        }
    }

    fn tool_is_open(&self) -> bool {
        self.open.is_any(&[Tool])
    }

    fn is_closed(&self) -> bool {
        self.is_closed && !self.open.is_any(&[Tool])
    }

    fn report(&mut self, now: DateTime<FixedOffset>) -> Report {
        let error = self.error.as_deref();
        let message = self.words.clone().filter(|_| self.words_are_last && error.is_none());
        Report {
            final_message: message,
            last_words: self.words.clone(),
            usage: Some(self.usage()),
            error: error.map(|error| api_error::classify(kind_of(error), error, now)),
            closing: if self.is_closed { AgentClosing::Plain } else { AgentClosing::Missing },
            denied: self.denied.clone(),
            turns: (self.turns > 0).then_some(self.turns),
            ..Report::default()
        }
    }
}

/// The kind of error a Codex sentence names, as `api_error` spells it. An unrecognised sentence
/// counts as a temporary error.
fn kind_of(message: &str) -> &'static str {
    const PHRASES: [(&str, &str); 17] = [
        ("status 401", "authentication_failed"),
        ("status: 401", "authentication_failed"),
        ("401 unauthorized", "authentication_failed"),
        ("status 403", "authentication_failed"),
        ("status: 403", "authentication_failed"),
        ("403 forbidden", "authentication_failed"),
        ("please log out and sign in again", "authentication_failed"),
        ("quota exceeded", "billing_error"),
        ("402 payment required", "billing_error"),
        ("model_not_found", "model_not_found"),
        ("does not exist or you do not have access to it", "model_not_found"),
        ("context window", "invalid_request"),
        ("status 400", "invalid_request"),
        ("400 bad request", "invalid_request"),
        ("invalid request", "invalid_request"),
        ("usage limit", "rate_limit"),
        ("429 too many requests", "rate_limit"),
    ];
    let message = message.to_lowercase();
    let found = PHRASES.iter().find(|(phrase, _)| message.contains(phrase));
    found.map_or("unknown", |(_, kind)| kind)
}

#[cfg(test)]
#[path = "codex_tests.rs"]
mod tests;
