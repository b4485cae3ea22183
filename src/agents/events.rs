//! The reader that all agents with events share: a line is a JSON event. What an event means is in
//! the file of its agent; what follows from that for the claim is in `turn.rs`.

use std::fmt;

use chrono::{DateTime, FixedOffset};
use serde_json::Value;

use super::activity::{Activity, printed};
use super::report::{OutputReader, Report};
use super::service::ServiceWait;
use super::turn::AgentTurn;
use crate::clients::parse_object;
use crate::engine::usage::Usage;

/// What the events of one agent mean.
pub(super) trait AgentEvents: fmt::Debug {
    /// Takes an event, and the line that holds it.
    fn event(&mut self, turn: &mut AgentTurn, event: &Value, line: &str);

    /// Takes a line of standard error, where some agents say that they wait or why they end.
    fn error_line(&mut self, _turn: &mut AgentTurn, _line: &str) {}

    /// Takes the text of the file in which the agent leaves what it used.
    fn usage_file(&mut self, _turn: &mut AgentTurn, _text: &str) {}

    /// Adds to the turn what only its end shows; it may be asked more than once.
    fn end(&mut self, _turn: &mut AgentTurn) {}

    /// What was used.
    fn usage(&self, turn: &AgentTurn) -> Option<Usage> {
        Some(turn.usage())
    }
}

/// The reader of one process's events.
#[derive(Debug)]
pub(super) struct EventReader {
    pub(super) turn: AgentTurn,
    pub(super) events: Box<dyn AgentEvents>,
}

impl OutputReader for EventReader {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        match parse_object(line.as_bytes()) {
            Ok(event) => self.events.event(&mut self.turn, &Value::Object(event), line),
            Err(_) => self.turn.see(printed(line)),
        }
        self.turn.take_seen()
    }

    fn read_error(&mut self, line: &str) {
        self.events.error_line(&mut self.turn, line);
        // The line itself is shown.
        self.turn.take_seen();
    }

    fn read_usage(&mut self, text: &str) {
        self.events.usage_file(&mut self.turn, text);
    }

    fn waits(&self, now: DateTime<FixedOffset>) -> Option<ServiceWait> {
        self.turn.waits(now)
    }

    fn tool_is_open(&self) -> bool {
        self.turn.tool_is_open()
    }

    fn is_closed(&self) -> bool {
        self.turn.is_closed()
    }

    fn report(&mut self, now: DateTime<FixedOffset>) -> Report {
        self.events.end(&mut self.turn);
        let usage = self.events.usage(&self.turn);
        self.turn.report(usage, now)
    }
}
