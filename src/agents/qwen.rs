//! Qwen Code's `stream-json`: Claude Code's events with differences; tried with 0.24.4. Input
//! tokens include those of the cache, no cost is reported, and an error stands in `error.message`
//! of the result. Words of a retried answer are glued together. That it waits for the service, and
//! that its turns are used up, is reported only on standard error.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::activity::Activity;
use super::claude::Claude;
use super::failure::ServiceFailure;
use super::json::JsonObject;
use super::waiting::ServiceWait;
use super::{EventAgent, OutputReader, Report};
use crate::engine::boundary::facts::AgentClosing;
use crate::engine::usage::{Tokens, Usage};
use crate::parse::amounts::digits;

const NAME: &str = "qwen";

/// Qwen Code.
pub(super) const AGENT: EventAgent = EventAgent {
    name: NAME,
    reader: |name| Box::new(Qwen { name: name.to_owned(), ..Qwen::default() }),
};

/// It asks the model so often to finish a cut answer; after that it takes the parts for the whole.
const PARTS_MAX: u32 = 3;
/// What standard error says while it waits for the service, before "attempt 1, retry in 3570s".
const WAITING: &str = "[qwen-code] Waiting for API capacity";
/// What standard error says at the agent's own limit on turns, for which there is no event.
const OUT_OF_TURNS: &str = "Reached max session turns";

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
    /// Reads what differs from Claude Code's events.
    fn event(&mut self, event: JsonObject<'_>) {
        match &*event.word("type") {
            "assistant" => {
                (self.failure, self.tries, self.cut) = (None, 0, false);
                if let Some(used) = event.object("message.usage").map(tokens) {
                    self.since += used;
                    self.fullest = self.fullest.max(Some(used.total()));
                }
            }
            "user" => self.parts = 0,
            "system" if event.is("subtype", "retry") => {
                // Where the words so far stay, the model is asked for the rest of a cut answer.
                let is_rest = event.flag("data.preserveText") == Some(true);
                self.parts = if is_rest { self.parts.saturating_add(1) } else { 0 };
            }
            "result" => {
                self.cut = self.parts >= PARTS_MAX;
                self.parts = 0;
                if let Some(used) = event.object("usage").map(tokens) {
                    self.told = Some(used);
                    self.since = Tokens::default();
                }
                let words = event.word("error.message");
                let is_failure = event.flag("is_error") == Some(true) && !words.is_empty();
                self.failure = is_failure.then(|| ServiceFailure::of(None, &words));
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

/// What was used. Its input includes the tokens of the cache.
fn tokens(usage: JsonObject<'_>) -> Tokens {
    let input = usage.count("input_tokens");
    let cache_read = usage.count("cache_read_input_tokens").min(input);
    let output = usage.count("output_tokens");
    Tokens { input: input - cache_read, cache_read, output, ..Tokens::default() }
}

impl OutputReader for Qwen {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        if let Some(event) = JsonObject::of(line) {
            self.event(event);
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
