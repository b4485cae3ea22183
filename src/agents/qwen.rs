//! Qwen Code's `stream-json`: Claude Code's events with differences; tried with 0.24.4. Input
//! tokens include those of the cache, no cost is reported, and an error stands in `error.message`
//! of the result. Words of a retried answer are glued together. That it waits for the service, and
//! that its turns are used up, is reported only on standard error.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use serde::Deserialize;

use super::activity::Activity;
use super::claude::Claude;
use super::failure::ServiceFailure;
use super::lenient::{FlagField, Lenient, NumberField, TextField, object, part};
use super::waiting::ServiceWait;
use super::{EventAgent, OutputReader, Report};
use crate::engine::boundary::facts::AgentClosing;
use crate::engine::usage::{Tokens, Usage};
use crate::parse::amounts::digits;

const NAME: &str = "qwen";

/// Qwen Code.
pub(super) const AGENT: EventAgent =
    EventAgent { name: NAME, reader: |name| Box::new(Qwen::new(name)) };

/// It asks the model so often to finish a cut answer; after that it takes the parts for the whole.
const PARTS_MAX: u32 = 3;
/// What standard error says while it waits for the service, before "attempt 1, retry in 3570s".
const WAITING: &str = "[qwen-code] Waiting for API capacity";
/// What standard error says at the agent's own limit on turns, for which there is no event.
const OUT_OF_TURNS: &str = "Reached max session turns";

/// The fields that differ from Claude Code's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct QwenEvent {
    #[serde(rename = "type")]
    kind: TextField,
    subtype: TextField,
    is_error: FlagField,
    #[serde(deserialize_with = "part")]
    error: QwenError,
    usage: Lenient<QwenUsage>,
    #[serde(deserialize_with = "part")]
    message: QwenMessage,
    #[serde(deserialize_with = "part")]
    data: RetryData,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct QwenError {
    message: TextField,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct QwenMessage {
    usage: Lenient<QwenUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RetryData {
    /// Whether the words so far stay: the model is asked for the rest of a cut answer.
    preserve_text: FlagField,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct QwenUsage {
    /// Includes those of the cache.
    #[serde(rename = "input_tokens")]
    input: NumberField,
    #[serde(rename = "output_tokens")]
    output: NumberField,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: NumberField,
}

/// What the stream has said so far.
#[derive(Debug, Default)]
struct Qwen {
    /// Stands for the model in sums.
    name: String,
    events: Claude,
    /// The tokens of the fullest message.
    fullest: Option<u64>,
    /// Of the messages since the last result.
    since: Tokens,
    /// The sum of the last result, for the whole process.
    told: Option<Tokens>,
    /// How often the rest of a cut answer was asked for.
    parts: u32,
    /// Whether the last result gave the parts of an answer for the whole.
    cut: bool,
    failure: Option<ServiceFailure>,
    /// How often it reported in a row that it waits.
    tries: u32,
    out_of_turns: bool,
}

impl Qwen {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    fn event(&mut self, event: &QwenEvent) {
        match (event.kind.text().unwrap_or_default(), event.subtype.text()) {
            ("assistant", _) => {
                (self.failure, self.tries, self.cut) = (None, 0, false);
                if let Some(used) = event.message.usage.0.as_ref().map(QwenUsage::tokens) {
                    self.since += used;
                    self.fullest = self.fullest.max(Some(used.total()));
                }
            }
            ("user", _) => self.parts = 0,
            ("system", Some("retry")) => {
                let parts = self.parts.saturating_add(1);
                self.parts = if event.data.preserve_text.is_set() { parts } else { 0 };
            }
            ("result", _) => {
                self.cut = self.parts >= PARTS_MAX;
                self.parts = 0;
                self.told = event.usage.0.as_ref().map(QwenUsage::tokens).or(self.told);
                if event.usage.0.is_some() {
                    self.since = Tokens::default();
                }
                let words = event.error.message.text().unwrap_or_default();
                let failure = event.is_error.is_set().then(|| ServiceFailure::of(None, words));
                self.failure = failure.filter(|_| !words.is_empty());
            }
            _ => {}
        }
    }

    /// The messages show less than was used.
    fn usage(&self) -> Usage {
        let since = Some(self.since).filter(|tokens| tokens.total() > 0);
        let mut usage = Usage::unpriced(self.told.or(since), &self.name);
        if let (Some(_), Some(since)) = (self.told, since) {
            usage.add(&Usage::unpriced(Some(since), &self.name));
        }
        usage.lost |= since.is_some();
        usage
    }
}

impl QwenUsage {
    fn tokens(&self) -> Tokens {
        let input = self.input.count();
        let cache_read = self.cache_read.count().min(input);
        let output = self.output.count();
        Tokens { input: input - cache_read, cache_read, output, ..Tokens::default() }
    }
}

impl OutputReader for Qwen {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        if let Some(event) = object(line) {
            self.event(&event);
        }
        self.events.read(line)
    }

    fn read_error(&mut self, line: &str) {
        self.out_of_turns |= line.starts_with(OUT_OF_TURNS);
        // A line may be read late, after the closing event.
        if let Some(told) = line.strip_prefix(WAITING).filter(|_| !self.events.has_ended()) {
            let pause = told.split_once("retry in ").and_then(|(_, rest)| rest.split_once('s'));
            let pause = pause.and_then(|(amount, _)| digits(amount)?.parse().ok());
            let failure =
                ServiceFailure::of(Some(429), "the service has no capacity for this account");
            self.failure = Some(failure.pausing(pause.map(Duration::from_secs)));
            self.tries = self.tries.saturating_add(1);
        }
    }

    fn waits(&self, now: DateTime<FixedOffset>) -> Option<ServiceWait> {
        let is_idle = !self.tool_is_open() && !self.events.has_ended();
        let failure = self.failure.as_ref().filter(|_| self.tries > 0 && is_idle)?;
        Some(ServiceWait { tries: self.tries, pause: failure.pause(now), is_hopeless: false })
    }

    fn tool_is_open(&self) -> bool {
        self.events.tool_is_open()
    }

    fn is_closed(&self) -> bool {
        self.events.is_closed()
    }

    fn report(&mut self, now: DateTime<FixedOffset>) -> Report {
        let report = self.events.report(now);
        let error = self.failure.as_ref().map(|failure| failure.error(now));
        let closing = match report.closing {
            AgentClosing::Missing if !self.out_of_turns => AgentClosing::Missing,
            AgentClosing::Failed(how) if error.is_none() => AgentClosing::Failed(how),
            _ => AgentClosing::Plain,
        };
        Report {
            final_message: report.final_message.filter(|_| error.is_none() && !self.out_of_turns),
            usage: Some(self.usage()),
            context_tokens: self.fullest,
            error,
            closing,
            cut: (self.cut || self.parts >= PARTS_MAX) && self.failure.is_none(),
            out_of_turns: self.out_of_turns,
            ..report
        }
    }
}

#[cfg(test)]
#[path = "qwen_tests.rs"]
mod tests;
