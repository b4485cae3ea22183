//! opencode's `run --format json`, one event a line; tried with 1.18.33. It tells tokens and cost
//! of each step and a cut answer. A broken stream and a context that is too long it repeats for
//! ever, hundreds of requests a minute. Only its log reports that it waits for the service.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::activity::{Activity, ToolCall, printed};
use super::failure::ServiceFailure;
use super::json::JsonObject;
use super::turn::AgentTurn;
use super::words::says_error;
use super::{EventAgent, OutputReader, Report};
use crate::engine::usage::{Money, Tokens, Usage};
use crate::parse::amounts::{digits, whole};

const NAME: &str = "opencode";

/// opencode.
pub(super) const AGENT: EventAgent = EventAgent {
    name: NAME,
    reader: |name| Box::new(OpenCode { name: name.to_owned(), ..OpenCode::default() }),
};

/// After so many steps in a row that came to nothing it is ended.
const STEPS_IN_VAIN: u32 = 3;
/// How the result of a call begins that its settings do not allow.
const REJECTED: &str = "The user rejected permission";

/// What the stream has said so far.
#[derive(Debug, Default)]
struct OpenCode {
    /// Stands for the model in sums, because its name is not reported.
    name: String,
    turn: AgentTurn,
    /// Steps in a row that came to nothing.
    in_vain: u32,
    /// The model it does not have, as its log says; its event calls that an unknown error.
    unknown_model: Option<ServiceFailure>,
    is_unexplained: bool,
    used: Option<Usage>,
    /// Whether a step is open, so its use was not reported.
    is_untold: bool,
}

impl OpenCode {
    fn event(&mut self, event: JsonObject<'_>) -> Vec<Activity> {
        let part = event.object("part").unwrap_or_default();
        match &*event.word("type") {
            "step_start" => {
                self.turn.turns = self.turn.turns.saturating_add(1);
                self.is_untold = true;
                self.is_unexplained = false;
                self.turn.goes_on();
                // A step begins with the service's answer, and a call is reported when it is over.
                self.turn.asks();
                Vec::new()
            }
            // The program wrote the text itself.
            "text" if part.flag("synthetic") == Some(true) => {
                self.turn.goes_on();
                Vec::new()
            }
            "text" => self.turn.says(&part.word("text")),
            "tool_use" => self.used_a_tool(part),
            "step_finish" => self.finished(part),
            "error" => self.failed(event.object("error").unwrap_or_default()),
            _ => Vec::new(),
        }
    }

    /// A call, which is reported when it is over. A refusal also ends the turn, without an event.
    fn used_a_tool(&mut self, part: JsonObject<'_>) -> Vec<Activity> {
        let (id, state) = (part.word("callID"), part.object("state").unwrap_or_default());
        let is_failure = state.is("status", "error");
        if state.is("status", "completed") {
            self.in_vain = 0;
        }
        if part.is("tool", "task") {
            // A session of its own, whose steps are not among the events.
            self.used.get_or_insert_default().lost = true;
        }
        let output = state.text("error").unwrap_or_else(|| state.word("output"));
        let mut seen = self.turn.calls(&id, ToolCall::of(part, "tool", "state.input", ""));
        self.turn.told(&seen);
        if is_failure && output.starts_with(REJECTED) {
            seen.extend(self.turn.is_denied(&id, "a tool"));
            seen.extend(self.turn.closes(Ok(())));
            return seen;
        }
        let exit = state.exit("metadata.exit");
        seen.extend(self.turn.ends(&id, |call| call.came_to(&output, exit, is_failure)));
        seen
    }

    fn finished(&mut self, part: JsonObject<'_>) -> Vec<Activity> {
        self.is_untold = false;
        let used = self.used.get_or_insert_default();
        match part.object("tokens").map(tokens) {
            Some(tokens) => {
                used.add(&step(tokens, part.dollars("cost"), &self.name));
                self.turn.fills(tokens);
            }
            None => used.lost = true,
        }
        match part.text("reason").as_deref().unwrap_or("unknown") {
            "tool-calls" => {
                self.in_vain = 0;
                self.turn.goes_on();
                Vec::new()
            }
            "stop" => self.turn.closes(Ok(())),
            "length" => {
                let seen = self.turn.closes(Ok(()));
                self.turn.cut = true;
                seen
            }
            "unknown" => self.again(ServiceFailure::of(None, "the stream of the answer broke off")),
            other => self.turn.closes(Err(says_error(other))),
        }
    }

    fn failed(&mut self, error: JsonObject<'_>) -> Vec<Activity> {
        let name = error.word("name");
        let words = error.text("data.message").unwrap_or_else(|| name.clone());
        let told = error.status("data.statusCode");
        let status = match &*name {
            "MessageOutputLengthError" => {
                let seen = self.turn.closes(Ok(()));
                self.turn.cut = true;
                return seen;
            }
            "ContextOverflowError" => return self.again(ServiceFailure::of(Some(400), &words)),
            "UnknownError" => {
                self.is_unexplained = true;
                told
            }
            "ProviderAuthError" => told.or(Some(401)),
            _ => told,
        };
        let seconds = error.word("data.responseHeaders.retry-after");
        let pause = digits(&seconds).and_then(|it| it.parse().ok()).map(Duration::from_secs);
        self.turn.closes_for(ServiceFailure::of(status, &words).pausing(pause))
    }

    /// A step came to nothing, and the agent repeats it.
    fn again(&mut self, failure: ServiceFailure) -> Vec<Activity> {
        self.turn.goes_on();
        self.in_vain = self.in_vain.saturating_add(1);
        let seen = self.turn.retries(failure, Some(Duration::ZERO));
        if self.in_vain >= STEPS_IN_VAIN {
            self.turn.is_in_vain();
        }
        seen
    }
}

/// What a step used. A model without a price costs $0 here, which says nothing.
fn step(tokens: Tokens, cost: Option<f64>, name: &str) -> Usage {
    match cost {
        Some(cost) if cost > 0.0 => {
            Usage { tokens, cost: Money(whole((cost * 1e12).round())), ..Usage::default() }
        }
        _ if tokens == Tokens::default() => Usage::default(),
        _ => Usage::unpriced(Some(tokens), name),
    }
}

/// The tokens of a step. Its input is without those of the cache.
fn tokens(told: JsonObject<'_>) -> Tokens {
    let (input, cache_read) = (told.count("input"), told.count("cache.read"));
    let cache_write = told.count("cache.write");
    let read = [cache_read, cache_write].into_iter().fold(input, u64::saturating_add);
    let output = match told.number("total") {
        Some(_) => told.count("total").saturating_sub(read),
        None => told.count("output").saturating_add(told.count("reasoning")),
    };
    Tokens { input, cache_write, cache_read, output, ..Tokens::default() }
}

impl OutputReader for OpenCode {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        let steps = JsonObject::of(line).map_or_else(|| printed(line), |event| self.event(event));
        self.turn.told(&steps);
        steps
    }

    /// `… level=ERROR … message="stream error" … small=false … error.error="KIND: WORDS"`. The
    /// small model only gives the session its title. For a model that it does not have:
    /// `… message=failed … error="ProviderModelNotFoundError: WORDS"`.
    fn read_error(&mut self, line: &str) {
        if let Some((_, words)) = line.split_once("ProviderModelNotFoundError: ") {
            let words = words.split(['"', ')', '\\']).next().unwrap_or_default();
            self.unknown_model = Some(ServiceFailure::of(Some(404), words));
        }
        let is_retry = line.contains(r#"message="stream error""#) && line.contains("small=false");
        let told = line.split_once(r#"error.error=""#).filter(|_| is_retry);
        if let Some((_, words)) = told {
            let words = words.trim_end().trim_end_matches('"');
            let words = words.split_once("Error: ").map_or(words, |(_, words)| words);
            self.turn.retries(ServiceFailure::of(None, words), None);
        }
    }

    fn turn(&self) -> Option<&AgentTurn> {
        Some(&self.turn)
    }

    fn report(&mut self, now: DateTime<FixedOffset>) -> Report {
        let mut usage = self.used.clone().unwrap_or_else(|| Usage::unpriced(None, &self.name));
        usage.lost |= self.is_untold;
        if let Some(failure) = self.unknown_model.take_if(|_| self.is_unexplained) {
            self.turn.fails(failure);
        }
        self.turn.report(Some(usage), now)
    }
}

#[cfg(test)]
#[path = "opencode_tests.rs"]
mod tests;
