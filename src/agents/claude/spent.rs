//! What the process used. The client's own sum at the end of a turn counts the tokens of every
//! model, of subagents and of side requests, so it takes precedence. A process that ends before it
//! reports one is counted by its messages. They show less than was used, and the result is marked
//! as incomplete.

use crate::clients::FieldsByPointer;
use serde_json::Value;

use crate::clients::claude::transcript;
use crate::clients::claude::usage::is_priced;
use crate::engine::text::start;
use crate::engine::usage::{Counted, Message, Money, Tokens, Usage};
use crate::parse::amounts::whole;

/// How many recent messages are remembered: lines of one message may be mixed with those of
/// subagents.
const RECENT: usize = 64;
/// The longest model name kept, in characters.
const MODEL_CHARS: usize = 80;

#[derive(Debug, Default)]
pub(super) struct Spent {
    /// The client's own sum for the whole process so far.
    told: Option<Usage>,
    /// Use counted from the messages since that sum.
    since: Usage,
    recent: Vec<Counted>,
    /// Tokens written to the one-hour cache by all messages, which 2.1.197 leaves out of its sum.
    hour: u64,
    /// Whether a turn ended; the client reports its use then.
    is_over: bool,
    /// Whether a reported cost cannot be read: the use is then unknown, never $0.00.
    is_unreadable: bool,
}

impl Spent {
    /// Counts a line if it is part of a model's message, which is returned.
    pub(super) fn message(&mut self, line: &str) -> Option<Message> {
        let (message, _) = transcript::message(line)?;
        let before = self.since.tokens.cache_write_hour;
        self.since.count(&message, &mut self.recent, RECENT);
        self.hour += self.since.tokens.cache_write_hour - before;
        Some(message)
    }

    /// Replaces what was counted by the client's own sum.
    pub(super) fn result(&mut self, result: &Value) {
        self.is_over = true;
        // By model, for the whole process so far, including subagents and side requests.
        let Some(models) = result.members("/modelUsage") else {
            return self.sum(result.dollars("/total_cost_usd"));
        };
        self.is_unreadable = false;
        let mut told = Usage::default();
        let mut hour = self.hour;
        for (model, used) in models {
            match of_model(model, used, &mut hour) {
                _ if !used.is_object() => told.lost = true,
                Some(used) => told.add(&used),
                None => self.is_unreadable = true,
            }
        }
        self.told = Some(told);
        self.since = Usage::default();
    }

    /// Takes the cost of the whole process where only its messages report tokens.
    fn sum(&mut self, dollars: Option<f64>) {
        let Some(dollars) = dollars else { return };
        let mut told = self.told.take().unwrap_or_default();
        let since = std::mem::take(&mut self.since);
        told.add(&Usage { cost: Money::default(), ..since });
        told.cost = money(dollars);
        self.told = Some(told);
    }

    /// What was used. `None` where a client reached its end without reporting it. For a client that
    /// ended earlier, or that said nothing, the use is lost.
    pub(super) fn usage(&self) -> Option<Usage> {
        if self.is_unreadable {
            return None;
        }
        let mut since = self.since.clone();
        let is_counted = since.tokens.total() > 0;
        // An unfinished answer reports only the use at its beginning.
        since.lost |= is_counted || !self.is_over;
        let mut usage = self.told.clone().unwrap_or_default();
        usage.add(&since);
        (self.told.is_some() || is_counted || !self.is_over).then_some(usage)
    }
}

/// What one model used; `None` if its cost cannot be read. The client guesses a cost for a model
/// without a known price; crew does not.
fn of_model(name: &str, used: &Value, hour_seen: &mut u64) -> Option<Usage> {
    let written = used.count("/cacheCreationInputTokens");
    // 2.1.330 and later report it.
    let hour = match used.number("/cacheCreationEphemeral1hInputTokens") {
        Some(hour) => whole(hour).min(written),
        None => written.min(*hour_seen),
    };
    *hour_seen -= hour.min(*hour_seen);
    let tokens = Tokens {
        input: used.count("/inputTokens"),
        cache_write: written - hour,
        cache_write_hour: hour,
        cache_read: used.count("/cacheReadInputTokens"),
        output: used.count("/outputTokens"),
    };
    let model = start(name.split('[').next().unwrap_or(name), MODEL_CHARS).to_owned();
    // `list`, `managed` or `unknown`; 2.1.330 and later.
    let is_priced = match used.text("/costBasis") {
        Some(basis) => basis != "unknown",
        None => is_priced(&model),
    };
    if is_priced {
        Some(Usage { tokens, cost: money(used.dollars("/costUSD")?), ..Usage::default() })
    } else {
        Some(Usage { tokens, unpriced: tokens, unpriced_models: vec![model], ..Usage::default() })
    }
}

/// Converts dollars, which the client sums as floats.
fn money(dollars: f64) -> Money {
    Money(whole((dollars * 1e12).round()))
}
