//! Reads what an agent prints, line by line, and never more than a bounded part of it at once. For
//! most agents a line is a JSON event: the file of an agent says what its events mean, and
//! `turn.rs` what follows for the claim. The end of plain text is the final message, and nothing
//! else is read from it.

use std::fmt;

use chrono::{DateTime, FixedOffset};
use serde_json::Value;

use super::activity::{self, Activity, parse_printed, sanitize_text};
use super::service::ServiceWait;
use super::turn::{AgentTurn, Report};
use crate::clients::parse_object;
use engine::text::{end_bytes as end, plain_text};
use engine::usage::Usage;

/// Reads the output of one agent.
pub(super) trait AgentEvents: fmt::Debug {
    /// Reads an event; `line` is the line that it was parsed from.
    fn take_event(&mut self, turn: &mut AgentTurn, event: &Value, line: &str);

    /// Reads a line of standard output.
    fn take_line(&mut self, turn: &mut AgentTurn, line: &str) {
        match parse_object(line.as_bytes()) {
            Ok(event) => self.take_event(turn, &event, line),
            Err(_) => turn.show_steps(parse_printed(line)),
        }
    }

    /// Reads a line of standard error, where some agents report that they wait or why they end.
    fn take_error_line(&mut self, _turn: &mut AgentTurn, _line: &str) {}

    /// Reads the file in which the agent leaves its usage.
    fn take_usage_file(&mut self, _turn: &mut AgentTurn, _text: &str) {}

    /// Adds to the turn what is known only when it ends; it may be called more than once.
    fn end(&mut self, _turn: &mut AgentTurn) {}

    /// The usage.
    fn usage(&self, turn: &AgentTurn) -> Option<Usage> {
        Some(turn.usage())
    }
}

/// Reads the output of one process as it arrives. It keeps a bounded amount, whatever the output
/// is.
#[derive(Debug)]
pub struct OutputReader {
    turn: AgentTurn,
    events: Box<dyn AgentEvents>,
}

impl OutputReader {
    /// The reader of an agent's events, before the first one.
    pub(super) fn new(name: &str, events: Box<dyn AgentEvents>) -> Self {
        Self { turn: AgentTurn::new(name), events }
    }

    /// Reads one line of standard output, without its line break; returns what it means.
    pub fn take_line(&mut self, line: &str) -> Vec<Activity> {
        self.events.take_line(&mut self.turn, line);
        self.turn.take_seen()
    }

    /// Reads a line of output, and returns what a person should see of it.
    pub fn render_line(&mut self, line: &str) -> Option<String> {
        activity::render_steps(&self.take_line(line))
    }

    /// Reads one line of standard error. It is never an event, and may be read late: that an agent
    /// waits counts only until the next event, and never after the closing one.
    pub fn read_error(&mut self, line: &str) {
        self.events.take_error_line(&mut self.turn, line);
        // The line itself is shown.
        self.turn.take_seen();
    }

    /// Reads the file in which the agent leaves its usage, once it has ended.
    pub fn read_usage(&mut self, text: &str) {
        self.events.take_usage_file(&mut self.turn, text);
    }

    /// Its wait for the model's service, if it last reported that it does nothing else. `now` is on
    /// the user's clock.
    pub fn service_wait(&self, now: DateTime<FixedOffset>) -> Option<ServiceWait> {
        self.turn.service_wait(now)
    }

    /// Whether a tool call or a background task of the agent is open, so that silence counts as
    /// work. After its closing event only a call counts. Plain text never shows it.
    pub fn tool_is_open(&self) -> bool {
        self.turn.tool_is_open()
    }

    /// Whether its closing event came and no work remains that it would return to: the process then
    /// has no reason to keep running.
    pub fn is_closed(&self) -> bool {
        self.turn.is_closed()
    }

    /// The result, once the process is over. `now` is on the user's clock, which a service's
    /// message uses to name a reset.
    pub fn report(&mut self, now: DateTime<FixedOffset>) -> Report {
        self.events.end(&mut self.turn);
        let usage = self.events.usage(&self.turn);
        self.turn.report(usage, now)
    }
}

/// How much of the end of the output is kept, in bytes.
const KEPT_BYTES: usize = 64 * 1024;

/// The end of the output so far.
#[derive(Debug, Default)]
pub(super) struct Text {
    tail: String,
    /// What the agent prints before an answer.
    mark: Option<String>,
}

impl Text {
    pub(super) fn with_mark(mark: Option<String>) -> Self {
        Self { mark, ..Self::default() }
    }

    /// The line without the agent's own mark, if the mark is coloured or on the first line.
    /// Elsewhere the same characters belong to the agent's text, such as a quote.
    fn strip_mark<'line>(&self, line: &'line str) -> &'line str {
        let Some(mark) = &self.mark else { return line };
        let mut rest = line;
        while let Some((code, after)) =
            rest.strip_prefix("\x1b[").and_then(|code| code.split_once('m'))
            && code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';')
        {
            rest = after;
        }
        let is_decorated = rest.len() < line.len() || self.tail.trim().is_empty();
        if is_decorated { rest.strip_prefix(mark.as_str()).unwrap_or(line) } else { line }
    }
}

impl AgentEvents for Text {
    fn take_event(&mut self, _turn: &mut AgentTurn, _event: &Value, _line: &str) {}

    fn take_line(&mut self, turn: &mut AgentTurn, line: &str) {
        // One line may be longer than everything that is kept.
        let words = end(self.strip_mark(line), KEPT_BYTES);
        self.tail.push_str(words);
        self.tail.push('\n');
        // Cutting moves everything that is kept, so it happens rarely.
        if self.tail.len() > 2 * KEPT_BYTES {
            self.tail = end(&self.tail, KEPT_BYTES).to_owned();
        }
        turn.show_steps([Activity::Printed(sanitize_text(line))]);
    }

    fn end(&mut self, turn: &mut AgentTurn) {
        let message = plain_text(end(&self.tail, KEPT_BYTES));
        let message = message.trim_end();
        turn.words.text = if message.is_empty() { None } else { Some(message.to_owned()) };
        (turn.words.are_last, turn.words.may_echo) = (true, true);
        turn.close_turn(Ok(()));
    }

    fn usage(&self, _turn: &AgentTurn) -> Option<Usage> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::claim::promise::Promise;
    use engine::claim::{Claim, NearMiss};

    fn marked(mark: Option<&str>) -> OutputReader {
        OutputReader::new("mine", Box::new(Text::with_mark(mark.map(str::to_owned))))
    }

    fn read(lines: &[&str]) -> Report {
        let mut reader = marked(None);
        for line in lines {
            reader.render_line(line);
        }
        assert!(!reader.tool_is_open());
        reader.report(DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap())
    }

    #[test]
    fn the_final_message_is_the_end_of_the_output_without_its_colours() {
        let report = read(&["one", "\x1b[32m<promise>COMPLETE</promise>\x1b[0m\r", "", " "]);
        assert_eq!(report.final_message.as_deref(), Some("one\n<promise>COMPLETE</promise>"));
        assert_eq!(report.claim("Go.", "Go.", Some(&Promise::default())), Claim::Success);
        assert_eq!(report.usage, None);
        assert_eq!(read(&[]).final_message, None);
        assert_eq!(read(&["\x1b[0m", ""]).final_message, None);
    }

    #[test]
    fn output_that_looks_like_an_error_is_only_output() {
        let report =
            read(&["API Error: 429 rate limit reached, resets 3pm", "{\"type\":\"error\"}"]);
        assert_eq!(report.agent.error, None);
    }

    #[test]
    fn a_bullet_before_the_agents_answer_does_not_make_the_answer_a_quote() {
        let table: [(&[&str], Claim); 4] = [
            (&["\x1b[38;5;141m> \x1b[0m<promise>COMPLETE</promise>"], Claim::Success),
            (&["> Done.", "<promise>COMPLETE</promise>"], Claim::Success),
            (
                &["> Reading.", "a tool", "\x1b[1m> \x1b[0mDone.", "<promise>COMPLETE</promise>"],
                Claim::Success,
            ),
            (&["> You said:", "> <promise>COMPLETE</promise>"], Claim::NearMiss(NearMiss::Quoted)),
        ];
        for (lines, expected) in table {
            let mut reader = marked(Some("> "));
            for line in lines {
                reader.render_line(line);
            }
            let now = DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap();
            let claim = reader.report(now).claim("Go.", "Go.", Some(&Promise::default()));
            assert_eq!(claim, expected, "{lines:?}");
        }
    }

    #[test]
    fn only_the_end_of_the_output_is_kept_whatever_is_printed() {
        let (mut reader, mut turn) = (Text::default(), AgentTurn::new("mine"));
        let long = "é".repeat(3 * KEPT_BYTES);
        for _ in 0..100 {
            reader.take_line(&mut turn, &long);
            reader.take_line(&mut turn, "x");
            assert!(reader.tail.len() <= 2 * KEPT_BYTES + KEPT_BYTES);
        }
        reader.take_line(&mut turn, "the end");
        reader.end(&mut turn);
        let message = turn.words.text.unwrap();
        assert!(message.len() <= KEPT_BYTES && message.ends_with("é\nx\nthe end"));
    }
}
