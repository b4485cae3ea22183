//! Codex's `exec --json`: one event a line, as documented in `docs/exec.md` of openai/codex and the
//! types of its `exec_events.rs`; not tried with the real tool. It reports the tokens of a turn,
//! but neither the model nor a price. An error is one sentence, classified here by the statuses and
//! phrases in Codex's source. Only error events are classified.

use std::collections::BTreeMap;

use chrono::{DateTime, FixedOffset};
use serde::Deserialize;

use super::activity::{Activity, OpenCalls, RUN, ToolCall, came_to, why};
use super::lenient::{Lenient, ListField, NumberField, TextField, part};
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
        login: owned(&["login", "status"]),
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
    aggregated_output: TextField,
    exit_code: NumberField,
    changes: ListField<CodexChange>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CodexChange {
    path: TextField,
    kind: TextField,
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
    calls: OpenCalls,
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

    fn event(&mut self, event: &CodexEvent) -> Vec<Activity> {
        match event.kind.text().unwrap_or_default() {
            "turn.started" => {
                self.turns = self.turns.saturating_add(1);
                self.is_untold = true;
                self.is_closed = false;
                Vec::new()
            }
            "turn.completed" => {
                self.tokens = event.usage.0.as_ref().map(CodexUsage::tokens).or(self.tokens);
                self.is_untold &= event.usage.0.is_none();
                self.error = None;
                self.is_closed = true;
                self.open.clear(Tool);
                Vec::new()
            }
            "turn.failed" => {
                self.is_closed = true;
                self.open.clear(Tool);
                self.failed(event.error.message.text().unwrap_or("turn failed"))
            }
            // Codex may retry after this error; the following events show whether that succeeded.
            "error" => self.failed(event.message.text().unwrap_or("error")),
            kind if kind.starts_with("item.") => self.item(kind, &event.item),
            _ => Vec::new(),
        }
    }

    fn item(&mut self, kind: &str, item: &CodexItem) -> Vec<Activity> {
        let Some(what) = item.kind.text() else { return Vec::new() };
        let id = item.id.text().unwrap_or_default();
        if !NO_WORK.contains(&what) {
            self.words_are_last = false;
            match kind {
                "item.started" => self.open.begin(Tool, id),
                "item.completed" => self.open.end(Tool, id),
                _ => return Vec::new(),
            }
            let is_declined = item.status.text() == Some("declined");
            if is_declined {
                note(&mut self.denied, &what.replace('_', " "));
                let call = item.call(what);
                return vec![Activity::Noted(format!("denied: {} {}", call.verb, call.subject))];
            }
            if what == "file_change" {
                return item.files().map(Activity::Called).collect();
            }
            if kind == "item.started" {
                let call = item.call(what);
                self.calls.begin(id, &call);
                return vec![Activity::Called(call)];
            }
            return self.calls.end(id, |call| item.result(call)).into_iter().collect();
        }
        let text = item.text.text().map(str::trim).filter(|text| !text.is_empty());
        match (what, text) {
            ("agent_message", Some(text)) if kind == "item.completed" => {
                self.words = Some(end(text, KEPT_BYTES).to_owned());
                self.words_are_last = true;
                vec![Activity::Said(shown(text))]
            }
            ("error", _) => {
                item.message.text().map(shown).map(Activity::Noted).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn failed(&mut self, message: &str) -> Vec<Activity> {
        self.error = Some(start(message.trim(), ERROR_CHARS).to_owned());
        vec![Activity::Noted(shown(message))]
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
    fn call(&self, what: &str) -> ToolCall {
        let with = [&self.command, &self.tool, &self.query].into_iter().find_map(TextField::text);
        let with = with.unwrap_or_default();
        match what {
            "command_execution" => ToolCall::new(RUN, &of_the_shell(with)),
            "web_search" => ToolCall::new("search", with),
            "file_change" => ToolCall::new("edit", with),
            other => ToolCall::new(&shown(&other.replace('_', " ")), with),
        }
    }

    fn files(&self) -> impl Iterator<Item = ToolCall> {
        self.changes.iter().map(|change| {
            let verb = match change.kind.text() {
                Some("add") => "write",
                Some("delete") => "delete",
                _ => "edit",
            };
            ToolCall::new(verb, change.path.text().unwrap_or_default())
        })
    }

    fn result(&self, call: &ToolCall) -> Option<String> {
        let is_failure = self.status.text() == Some("failed");
        let output = self.aggregated_output.text().unwrap_or_default();
        if call.verb == RUN {
            let exit = self.exit_code.0.and_then(|code| format!("{code:.0}").parse().ok());
            return Some(came_to(output, exit, is_failure));
        }
        is_failure.then(|| why(self.message.text().unwrap_or_default()))
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
    fn read(&mut self, line: &str) -> Vec<Activity> {
        let steps = match serde_json::from_str::<Lenient<CodexEvent>>(line) {
            Ok(Lenient(Some(event))) => self.event(&event),
            _ if line.trim_start().starts_with('{') => Vec::new(),
            _ => {
                let printed = Some(shown(line)).filter(|shown| !shown.is_empty());
                printed.into_iter().map(Activity::Printed).collect()
            }
        };
        self.calls.told(&steps);
        steps
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

/// The command that a shell is started for, without the shell: Codex runs all in one.
fn of_the_shell(command: &str) -> String {
    match shell_words::split(command).as_deref() {
        Ok([_, option, inner]) if ["-lc", "-c"].contains(&option.as_str()) => inner.clone(),
        _ => command.to_owned(),
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
