//! Copilot CLI's `--output-format json`, one event a line; tried with 1.0.102. What it used is not
//! among the events but in a file that it writes at its end (`usage.rs`). That the token limit cut
//! an answer shows only in a turn without a message, after which it asks again.

use chrono::{DateTime, FixedOffset};

use super::activity::{Activity, ToolCall, printed};
use super::failure::ServiceFailure;
use super::json::JsonObject;
use super::turn::AgentTurn;
use super::words::says_error;
use super::{EventAgent, OutputReader, Report};
use crate::engine::usage::Usage;

mod usage;

const NAME: &str = "copilot";

/// Copilot CLI.
pub(super) const AGENT: EventAgent =
    EventAgent { name: NAME, reader: |_| Box::<Copilot>::default() };

/// So often in a row it asks again after a cut answer; then it takes the next one as it is.
const CUTS_MAX: u32 = 2;
/// What standard error says where it has no login; standard output then says nothing.
const NO_LOGIN: &str = "Error: No authentication information found";

/// What the stream has said so far.
#[derive(Debug, Default)]
struct Copilot {
    turn: AgentTurn,
    /// Whether the model's turn brought a message.
    has_message: bool,
    /// Turns in a row without one.
    cuts: u32,
    usage: Option<Usage>,
}

impl Copilot {
    fn event(&mut self, event: JsonObject<'_>) -> Vec<Activity> {
        let data = event.object("data").unwrap_or_default();
        let id = data.word("toolCallId");
        let is_subagent =
            event.text("agentId").is_some() || data.text("parentToolCallId").is_some();
        match &*event.word("type") {
            // What a subagent says, asks and fails at is not the agent's; that it works is.
            kind if is_subagent && !kind.starts_with("tool.") => {}
            // What else asked than the agent itself.
            "model.call_failure" if data.text("source").is_some_and(|it| it != "top_level") => {}
            "assistant.turn_start" => {
                self.turn.turns = self.turn.turns.saturating_add(1);
                self.turn.goes_on();
                self.has_message = false;
            }
            "assistant.turn_end" if !self.has_message => self.cuts = self.cuts.saturating_add(1),
            "model.call_start" => {
                self.turn.works_with(data.text("model").as_deref());
                self.turn.asks();
            }
            "model.call_failure" => {
                let failure = ServiceFailure::of(status(data), &data.word("errorMessage"));
                return self.turn.retries(failure, None);
            }
            "assistant.message" => return self.said(data),
            "tool.execution_start" => {
                return self.turn.calls(&id, ToolCall::of(data, "toolName", "arguments", ""));
            }
            "tool.execution_complete" if data.is("error.code", "denied") => {
                return self.turn.is_denied(&id, "a tool");
            }
            "tool.execution_complete" => {
                let is_failure = data.flag("success") == Some(false);
                let output = data.text("result.content");
                let output = output.unwrap_or_else(|| data.word("error.message"));
                let exit = data.exit("shellExecution.exitCode");
                return self.turn.ends(&id, |call| call.came_to(&output, exit, is_failure));
            }
            "session.error" => {
                return self.turn.fails(ServiceFailure::of(status(data), &data.word("message")));
            }
            "abort" => self.turn.goes_on(),
            "result" => {
                let is_well = event.number("exitCode") == Some(0.0);
                let code = event.exit("exitCode").map_or("unknown".to_owned(), |it| it.to_string());
                let how = says_error(&format!("exit code {code}"));
                return self.turn.closes(if is_well { Ok(()) } else { Err(how) });
            }
            _ => {}
        }
        Vec::new()
    }

    fn said(&mut self, data: JsonObject<'_>) -> Vec<Activity> {
        self.has_message = true;
        self.turn.works_with(data.text("model").as_deref());
        let seen = self.turn.says(&data.word("content"));
        if data.list("toolRequests").is_empty() {
            self.turn.cut = self.cuts >= CUTS_MAX;
        } else {
            self.turn.goes_on();
        }
        self.cuts = 0;
        seen
    }
}

/// The status that a kind of error stands for, or the one beside it: GitHub answers 403 to who asks
/// too often, too.
fn status(data: JsonObject<'_>) -> Option<u16> {
    match &*data.word("errorType") {
        "authentication" | "authorization" => Some(401),
        "quota" => Some(402),
        "rate_limit" => Some(429),
        _ => data.status("statusCode"),
    }
}

impl OutputReader for Copilot {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        let steps = JsonObject::of(line).map_or_else(|| printed(line), |event| self.event(event));
        self.turn.told(&steps);
        steps
    }

    fn read_error(&mut self, line: &str) {
        if line.starts_with(NO_LOGIN) {
            self.turn.has_no_login(line);
        }
    }

    fn read_usage(&mut self, text: &str) {
        self.usage = usage::read(text);
    }

    fn turn(&self) -> Option<&AgentTurn> {
        Some(&self.turn)
    }

    fn report(&mut self, now: DateTime<FixedOffset>) -> Report {
        let usage = self.usage.clone().unwrap_or_else(|| Usage::unpriced(None, NAME));
        self.turn.report(Some(usage), now)
    }
}

#[cfg(test)]
mod tests;
