//! Codex's `exec --json`: one event a line; tried with 0.169.0. It reports the tokens of a turn,
//! but neither the model nor a price, and no tool that its sandbox refused. An error is one
//! sentence.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::activity::{Activity, RUN, ToolCall, printed};
use super::failure::ServiceFailure;
use super::json::JsonObject;
use super::turn::AgentTurn;
use super::words::shown;
use super::{EventAgent, OutputReader, Report};
use crate::engine::usage::{Tokens, Usage};

const NAME: &str = "codex";

/// Codex.
pub(super) const AGENT: EventAgent = EventAgent {
    name: NAME,
    reader: |name| Box::new(Codex { name: name.to_owned(), ..Codex::default() }),
};

/// How it says that it tries again. After a limit it then sleeps as long as the service asked it
/// to, and prints nothing.
const RETRY: &str = "Reconnecting...";
/// How it says that the token limit cut the answer.
const CUT: &str = "reason: max_output_tokens";

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
    fn event(&mut self, event: JsonObject<'_>) -> Vec<Activity> {
        match &*event.word("type") {
            "turn.started" => {
                self.turn.turns = self.turn.turns.saturating_add(1);
                self.turn.goes_on();
                self.is_untold = true;
                Vec::new()
            }
            "turn.completed" => {
                let used = event.object("usage").map(tokens);
                self.is_untold &= used.is_none();
                self.tokens = used.or(self.tokens);
                self.turn.works();
                self.turn.closes(Ok(()))
            }
            "turn.failed" => {
                let message = event.text("error.message");
                let seen = self.failed(message.as_deref().unwrap_or("turn failed"));
                self.turn.closes(Ok(()));
                seen
            }
            "error" => self.failed(event.text("message").as_deref().unwrap_or("error")),
            kind if kind.starts_with("item.") => {
                self.item(kind, event.object("item").unwrap_or_default())
            }
            _ => Vec::new(),
        }
    }

    fn item(&mut self, kind: &str, item: JsonObject<'_>) -> Vec<Activity> {
        let (is_begun, is_over) = (kind == "item.started", kind == "item.completed");
        let (id, what) = (item.word("id"), item.word("type"));
        if !["", "error"].contains(&&*what) {
            self.turn.works();
        }
        match &*what {
            "agent_message" if is_over => self.turn.says(&item.word("text")),
            "error" => {
                item.text("message").map(|it| Activity::Noted(shown(&it))).into_iter().collect()
            }
            // Words, thoughts, and a list that stays open for the whole turn are no work.
            "" | "agent_message" | "reasoning" | "todo_list" => Vec::new(),
            "file_change" if is_begun => {
                self.turn.begins(&id);
                Vec::new()
            }
            what if is_begun => self.turn.calls(&id, call(what, item)),
            what if is_over && item.is("status", "declined") => {
                let call = call(what, item);
                self.turn.is_denied(&id, &format!("{} {}", call.verb, call.subject))
            }
            what if is_over => {
                let mut seen = self.turn.ends(&id, |call| result(call, item));
                if what == "file_change" {
                    let files = item.list("changes").into_iter().map(file);
                    seen.extend(files.map(Activity::Called));
                }
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

/// The call of an item of this kind.
fn call(what: &str, item: JsonObject<'_>) -> ToolCall {
    let with = ["command", "tool", "query"].into_iter().find_map(|name| item.text(name));
    let with = with.unwrap_or_default();
    match what {
        "command_execution" => ToolCall::new(RUN, &of_the_shell(&with)),
        "web_search" => ToolCall::new("search", &with),
        "file_change" => ToolCall::new("edit", &with),
        other => ToolCall::new(&shown(&other.replace('_', " ")), &with),
    }
}

/// A change of a file as a call.
fn file(change: JsonObject<'_>) -> ToolCall {
    let verb = match &*change.word("kind") {
        "add" => "write",
        "delete" => "delete",
        _ => "edit",
    };
    ToolCall::new(verb, &change.word("path"))
}

fn result(call: &ToolCall, item: JsonObject<'_>) -> Option<String> {
    let output = item.word(if call.verb == RUN { "aggregated_output" } else { "message" });
    call.came_to(&output, item.exit("exit_code"), item.is("status", "failed"))
}

/// What a turn used. Its input includes the tokens from and to the cache, its output those of its
/// thoughts.
fn tokens(usage: JsonObject<'_>) -> Tokens {
    let input = usage.count("input_tokens");
    let cache_read = usage.count("cached_input_tokens").min(input);
    let cache_write = usage.count("cache_write_input_tokens").min(input - cache_read);
    let input = input - cache_read - cache_write;
    let output = usage.count("output_tokens");
    Tokens { input, cache_write, cache_read, output, ..Tokens::default() }
}

impl OutputReader for Codex {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        let steps = JsonObject::of(line).map_or_else(|| printed(line), |event| self.event(event));
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
