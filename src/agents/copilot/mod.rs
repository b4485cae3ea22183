//! Copilot CLI's `--output-format json`, one event a line; tried with 1.0.102. What it used is not
//! among the events but in a file that it writes at its end (`usage.rs`). That the token limit cut
//! an answer shows only in a turn without a message, after which it asks again.

use chrono::{DateTime, FixedOffset};
use serde::Deserialize;

use super::activity::{Activity, printed};
use super::failure::ServiceFailure;
use super::lenient::{FlagField, ListField, NumberField, TextField, ToolInput, object, part};
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

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CopilotEvent {
    #[serde(rename = "type")]
    kind: TextField,
    #[serde(deserialize_with = "part")]
    data: CopilotData,
    /// Set in what a subagent does.
    agent_id: TextField,
    /// Set in the `result`.
    exit_code: NumberField,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CopilotData {
    content: TextField,
    model: TextField,
    tool_requests: ListField<Request>,
    /// Set in what a subagent does.
    parent_tool_call_id: TextField,
    tool_call_id: TextField,
    tool_name: TextField,
    #[serde(deserialize_with = "part")]
    arguments: ToolInput,
    success: FlagField,
    #[serde(deserialize_with = "part")]
    result: ToolResult,
    #[serde(deserialize_with = "part")]
    error: ToolError,
    #[serde(deserialize_with = "part")]
    shell_execution: ShellExecution,
    status_code: NumberField,
    error_message: TextField,
    error_type: TextField,
    /// Set in a `model.call_failure`: `top_level`, or what asked for the agent.
    source: TextField,
    /// Set in a `session.error`.
    message: TextField,
}

#[derive(Debug, Default, Deserialize)]
struct Request {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolResult {
    content: TextField,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolError {
    message: TextField,
    code: TextField,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ShellExecution {
    exit_code: NumberField,
}

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
    fn event(&mut self, event: &CopilotEvent) -> Vec<Activity> {
        let data = &event.data;
        let id = data.tool_call_id.text().unwrap_or_default();
        let is_subagent =
            [&event.agent_id, &data.parent_tool_call_id].iter().any(|it| it.0.is_some());
        match event.kind.text().unwrap_or_default() {
            // What a subagent says, asks and fails at is not the agent's; that it works is.
            kind if is_subagent && !kind.starts_with("tool.") => {}
            "model.call_failure" if data.source.text().is_some_and(|it| it != "top_level") => {}
            "assistant.turn_start" => {
                self.turn.turns = self.turn.turns.saturating_add(1);
                self.turn.goes_on();
                self.has_message = false;
            }
            "assistant.turn_end" if !self.has_message => self.cuts = self.cuts.saturating_add(1),
            "model.call_start" => {
                self.turn.works_with(data.model.text());
                self.turn.asks();
            }
            "model.call_failure" => {
                let words = data.error_message.text().unwrap_or_default();
                return self.turn.retries(ServiceFailure::of(data.status(), words), None);
            }
            "assistant.message" => return self.said(data),
            "tool.execution_start" => {
                let tool = data.tool_name.text().unwrap_or("a tool");
                return self.turn.calls(id, data.arguments.call(tool));
            }
            "tool.execution_complete" if data.error.code.text() == Some("denied") => {
                return self.turn.is_denied(id, "a tool");
            }
            "tool.execution_complete" => {
                let is_failure = data.success.is_unset();
                let output = data.result.content.text().or(data.error.message.text());
                let output = output.unwrap_or_default();
                let exit = data.shell_execution.exit_code.exit();
                return self.turn.ends(id, |call| call.came_to(output, exit, is_failure));
            }
            "session.error" => {
                let words = data.message.text().unwrap_or_default();
                return self.turn.fails(ServiceFailure::of(data.status(), words));
            }
            "abort" => self.turn.goes_on(),
            "result" => {
                let is_well = event.exit_code.0 == Some(0.0);
                let code = event.exit_code.exit().map_or("unknown".to_owned(), |it| it.to_string());
                let how = says_error(&format!("exit code {code}"));
                return self.turn.closes(if is_well { Ok(()) } else { Err(how) });
            }
            _ => {}
        }
        Vec::new()
    }

    fn said(&mut self, data: &CopilotData) -> Vec<Activity> {
        self.has_message = true;
        self.turn.works_with(data.model.text());
        let seen = self.turn.says(data.content.text().unwrap_or_default());
        if data.tool_requests.iter().next().is_some() {
            self.turn.goes_on();
        } else {
            self.turn.cut = self.cuts >= CUTS_MAX;
        }
        self.cuts = 0;
        seen
    }
}

impl CopilotData {
    /// The status that a kind of error stands for, or the one beside it: GitHub answers 403 to who
    /// asks too often, too.
    fn status(&self) -> Option<u16> {
        match self.error_type.text() {
            Some("authentication" | "authorization") => Some(401),
            Some("quota") => Some(402),
            Some("rate_limit") => Some(429),
            _ => self.status_code.status(),
        }
    }
}

impl OutputReader for Copilot {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        let steps = object(line).map_or_else(|| printed(line), |event| self.event(&event));
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
