//! Codex's `exec --json`: one event a line; tried with 0.169.0. It reports the tokens of a turn,
//! but neither the model nor a price, and no tool that its sandbox refused. An error is one
//! sentence.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use serde::Deserialize;

use super::activity::{Activity, RUN, ToolCall, printed};
use super::failure::ServiceFailure;
use super::lenient::{Lenient, ListField, NumberField, TextField, object, part};
use super::turn::AgentTurn;
use super::words::shown;
use super::{EventAgent, OutputReader, Report};
use crate::engine::usage::{Tokens, Usage};

const NAME: &str = "codex";

/// Codex.
pub(super) const AGENT: EventAgent =
    EventAgent { name: NAME, reader: |name| Box::new(Codex::new(name)) };

/// How it says that it tries again. After a limit it then sleeps as long as the service asked it
/// to, and prints nothing.
const RETRY: &str = "Reconnecting...";
/// How it says that the token limit cut the answer.
const CUT: &str = "reason: max_output_tokens";

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
    /// Includes those from and to the cache.
    #[serde(rename = "input_tokens")]
    input: NumberField,
    #[serde(rename = "cached_input_tokens")]
    cached: NumberField,
    #[serde(rename = "cache_write_input_tokens")]
    cache_write: NumberField,
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
    turn: AgentTurn,
    /// For the whole thread, as the last finished turn reported it.
    tokens: Option<Tokens>,
    /// Whether a turn is open or failed, so its use was not reported.
    is_untold: bool,
}

impl Codex {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    fn event(&mut self, event: &CodexEvent) -> Vec<Activity> {
        match event.kind.text().unwrap_or_default() {
            "turn.started" => {
                self.turn.turns = self.turn.turns.saturating_add(1);
                self.turn.goes_on();
                self.is_untold = true;
                Vec::new()
            }
            "turn.completed" => {
                self.tokens = event.usage.0.as_ref().map(CodexUsage::tokens).or(self.tokens);
                self.is_untold &= event.usage.0.is_none();
                self.turn.works();
                self.turn.closes(Ok(()))
            }
            "turn.failed" => {
                let message = event.error.message.text().unwrap_or("turn failed");
                let seen = self.failed(message);
                self.turn.closes(Ok(()));
                seen
            }
            "error" => self.failed(event.message.text().unwrap_or("error")),
            kind if kind.starts_with("item.") => self.item(kind, &event.item),
            _ => Vec::new(),
        }
    }

    fn item(&mut self, kind: &str, item: &CodexItem) -> Vec<Activity> {
        let (is_begun, is_over) = (kind == "item.started", kind == "item.completed");
        let id = item.id.text().unwrap_or_default();
        let what = item.kind.text().unwrap_or_default();
        if !["", "error"].contains(&what) {
            self.turn.works();
        }
        match what {
            "agent_message" if is_over => self.turn.says(item.text.text().unwrap_or_default()),
            "error" => item.message.text().map(shown).map(Activity::Noted).into_iter().collect(),
            // Words, thoughts, and a list that stays open for the whole turn are no work.
            "" | "agent_message" | "reasoning" | "todo_list" => Vec::new(),
            "file_change" if is_begun => {
                self.turn.begins(id);
                Vec::new()
            }
            what if is_begun => self.turn.calls(id, item.call(what)),
            what if is_over && item.status.text() == Some("declined") => {
                let call = item.call(what);
                self.turn.is_denied(id, &format!("{} {}", call.verb, call.subject))
            }
            what if is_over => {
                let mut seen = self.turn.ends(id, |call| item.result(call));
                let files = item.files().filter(|_| what == "file_change");
                seen.extend(files.map(Activity::Called));
                seen
            }
            _ => Vec::new(),
        }
    }

    /// Codex may retry after an error; the following events show whether that succeeded.
    fn failed(&mut self, message: &str) -> Vec<Activity> {
        if message.contains(CUT) {
            self.turn.cut = true;
            return vec![Activity::Noted(shown(message))];
        }
        let Some((_, words)) = message.strip_prefix(RETRY).and_then(|it| it.split_once('(')) else {
            return self.turn.fails(ServiceFailure::of(None, message));
        };
        let failure = ServiceFailure::of(None, words.trim_end().trim_end_matches(')'));
        // Other failures it meets again within seconds; a silence after them is the model at work.
        let longest = if failure.is_limit() { None } else { Some(Duration::ZERO) };
        self.turn.retries(failure, longest)
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
        let output =
            if call.verb == RUN { output } else { self.message.text().unwrap_or_default() };
        call.came_to(output, self.exit_code.exit(), is_failure)
    }
}

impl CodexUsage {
    fn tokens(&self) -> Tokens {
        let input = self.input.count();
        let cache_read = self.cached.count().min(input);
        let cache_write = self.cache_write.count().min(input - cache_read);
        Tokens {
            input: input - cache_read - cache_write,
            cache_write,
            cache_read,
            output: self.output.count(),
            ..Tokens::default()
        }
    }
}

impl OutputReader for Codex {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        let steps = object(line).map_or_else(|| printed(line), |event| self.event(&event));
        self.turn.told(&steps);
        steps
    }

    fn turn(&self) -> Option<&AgentTurn> {
        Some(&self.turn)
    }

    fn report(&mut self, now: DateTime<FixedOffset>) -> Report {
        let mut usage = Usage::unpriced(self.tokens, &self.name);
        usage.lost |= self.is_untold;
        self.turn.report(Some(usage), now)
    }
}

/// The command that a shell is started for, without the shell: Codex runs all in one.
fn of_the_shell(command: &str) -> String {
    match shell_words::split(command).as_deref() {
        Ok([_, option, inner]) if ["-lc", "-c"].contains(&option.as_str()) => inner.clone(),
        _ => command.to_owned(),
    }
}

#[cfg(test)]
#[path = "codex_tests.rs"]
mod tests;
