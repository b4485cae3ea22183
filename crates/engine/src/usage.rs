//! What a loop used: tokens by kind, and their cost. Sums never wrap. A part that could not be
//! counted is reported, never taken for zero.

use derive_getters::Getters;
use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// How many models without a price are named.
const UNPRICED_NAMED: usize = 4;

/// Tokens, by kind because each has its own price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    pub input: u64,
    /// Tokens written to the cache for five minutes.
    pub cache_write: u64,
    /// Tokens written to the cache for an hour.
    pub cache_write_hour: u64,
    pub cache_read: u64,
    pub output: u64,
}

impl Tokens {
    /// The sum of all kinds.
    pub fn total(&self) -> u64 {
        self.prompt_tokens().saturating_add(self.output)
    }

    /// The tokens that the model read.
    pub fn prompt_tokens(&self) -> u64 {
        let written = self.cache_write.saturating_add(self.cache_write_hour);
        self.input.saturating_add(written).saturating_add(self.cache_read)
    }

    /// Combines each kind in `self` with its counterpart in `other`.
    fn zip_kinds(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input: with(self.input, other.input),
            cache_write: with(self.cache_write, other.cache_write),
            cache_write_hour: with(self.cache_write_hour, other.cache_write_hour),
            cache_read: with(self.cache_read, other.cache_read),
            output: with(self.output, other.output),
        }
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = self.zip_kinds(other, u64::saturating_add);
    }
}

/// An amount of money in picodollars, so that the price of one token is a whole number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(pub u64);

impl Money {
    /// From millionths of a dollar.
    pub fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000_000))
    }

    /// In millionths of a dollar, rounded up.
    pub fn micros(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// In dollars, for programs.
    #[expect(clippy::cast_precision_loss, reason = "a sum a person could pay is exact enough")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e12
    }

    fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.dollars();
        if self.0 == 0 || dollars >= 0.01 {
            write!(out, "${dollars:.2}")
        } else {
            write!(out, "${dollars:.4}")
        }
    }
}

/// One message of a model, as its client reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    pub id: String,
    pub model: String,
    pub tokens: Tokens,
    pub web_searches: u64,
    /// Whether a faster answer was requested, which may cost more.
    pub is_fast: bool,
    /// Whether it was answered in the United States only, which costs more.
    pub in_the_us: bool,
    /// Its cost; `None` if its model has no known price.
    pub cost: Option<Money>,
}

/// The usage of a message, as last reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedMessage {
    id: String,
    tokens: Tokens,
    cost: Option<Money>,
}

/// What was used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub tokens: Tokens,
    /// The cost of the tokens whose model has a known price.
    pub cost: Money,
    /// The part of `tokens` whose model has no known price.
    pub unpriced: Tokens,
    /// The first few models without a known price.
    pub unpriced_models: Vec<String>,
    /// Whether some usage was missed and will never be counted.
    pub lost: bool,
    /// Whether something was written that has not been read yet.
    pub behind: bool,
}

impl Usage {
    /// Tokens of a model without a known price. Where none were reported, the use is lost.
    pub fn without_price(tokens: Option<Tokens>, model: &str) -> Self {
        let Some(tokens) = tokens else { return Self { lost: true, ..Self::default() } };
        let unpriced_models = vec![model.to_owned()];
        Self { tokens, unpriced: tokens, unpriced_models, ..Self::default() }
    }

    /// Adds the result of another count; `behind` is taken from the later one.
    pub fn add_usage(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.cost = self.cost.saturating_add(other.cost);
        self.unpriced += other.unpriced;
        for model in &other.unpriced_models {
            self.name_model(model);
        }
        self.lost |= other.lost;
        self.behind = other.behind;
    }

    /// Counts a message. A message is reported in several lines, later ones sometimes with more
    /// tokens: for one already in `recent` only the increase counts.
    pub fn count_message(
        &mut self,
        message: &Message,
        recent: &mut Vec<CountedMessage>,
        keep: usize,
    ) {
        let known = recent.iter_mut().find(|counted| counted.id == message.id);
        let before = known.as_ref().map_or_else(CountedMessage::default, |known| (**known).clone());
        let after = CountedMessage {
            id: message.id.clone(),
            tokens: message.tokens.zip_kinds(before.tokens, u64::max),
            cost: message.cost.max(before.cost),
        };
        let grown = after.tokens.zip_kinds(before.tokens, u64::saturating_sub);
        self.tokens += grown;
        if let Some(Money(cost)) = after.cost {
            let before = before.cost.unwrap_or_default().0;
            self.cost = self.cost.saturating_add(Money(cost.saturating_sub(before)));
        } else {
            self.unpriced += grown;
            self.name_model(&message.model);
        }
        match known {
            Some(known) => *known = after,
            None => recent.push(after),
        }
        recent.drain(..recent.len().saturating_sub(keep));
    }

    fn name_model(&mut self, model: &str) {
        let known = self.unpriced_models.iter().any(|named| named == model);
        if !known && self.unpriced_models.len() < UNPRICED_NAMED {
            self.unpriced_models.push(model.to_owned());
        }
    }

    /// Whether more may have been used than was counted.
    pub fn is_lower_bound(&self) -> bool {
        self.lost || self.behind
    }

    /// Whether any usage is known; an agent may report its cost alone.
    pub fn is_reported(&self) -> bool {
        self.tokens.total() > 0 || self.cost > Money::default()
    }

    /// The cost compared with a limit: a model without a known price counts at the highest rate.
    pub fn cost_at_most(&self) -> Money {
        self.cost.saturating_add(HIGHEST.cost_of(&self.unpriced))
    }

    /// "$1.84", with more words if the sum is incomplete; the tokens alone where none has a known
    /// price. `limited` says that the cost has a limit; a model without a known price then counts
    /// at the highest rate. `None` while nothing was used.
    pub fn cost_text(&self, limited: bool) -> Option<String> {
        if !self.is_reported() {
            return None;
        }
        let bound = if self.is_lower_bound() { "at least " } else { "" };
        if self.unpriced_models.is_empty() {
            return Some(format!("{bound}{}", self.cost));
        }
        let models = self.unpriced_models.join(", ");
        Some(if limited {
            let cost = self.cost_at_most();
            format!("{bound}{cost} (no known price for {models}: counted at the highest)")
        } else {
            let tokens = tokens_text(self.unpriced.total());
            let cost = if self.has_price() { format!("{} and ", self.cost) } else { String::new() };
            format!("{bound}{cost}{tokens} tokens of {models}, of unknown price")
        })
    }

    /// Cost and tokens, such as "$1.84 · 123k tokens", or the tokens alone where none has a known
    /// price.
    pub fn usage_text(&self, limited: bool) -> Option<String> {
        let cost = self.cost_text(limited)?;
        let tokens = self.tokens.total() > 0;
        Some(if tokens && (limited || self.has_price()) {
            format!("{cost} · {} tokens", tokens_text(self.tokens.total()))
        } else {
            cost
        })
    }

    /// Whether any of its tokens has a known price.
    pub fn has_price(&self) -> bool {
        self.cost > Money::default() || self.unpriced != self.tokens
    }
}

/// A number of tokens as text: "950", "123k", "2.1M".
pub fn tokens_text(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens / 100_000 % 10).replace(".0M", "M"),
    }
}

/// Prices in millionths of a dollar for a million tokens of a kind, which is picodollars for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates(pub Tokens);

/// What the tokens of one model cost.
#[derive(Debug)]
pub struct Price {
    pub rates: Rates,
    /// The rates of fast mode, if it costs more.
    pub fast: Option<Rates>,
    /// The token count above which a prompt costs more, and the rates then.
    pub long: Option<(u64, Rates)>,
}

/// The rates charged for a model without a known price. No list has higher ones.
pub const HIGHEST: Rates = new_rates(30_000, 150_000, 3_000);

/// The price of a web search, in picodollars.
const WEB_SEARCH: u64 = 10_000_000_000;

/// In thousandths of a dollar for a million tokens: input, output, cache reads. Writing to the
/// cache costs a quarter more than input for five minutes, and twice as much as input for an hour.
pub const fn new_rates(input: u64, output: u64, cache_read: u64) -> Rates {
    Rates(Tokens {
        input: input * 1000,
        cache_write: input * 1250,
        cache_write_hour: input * 2000,
        cache_read: cache_read * 1000,
        output: output * 1000,
    })
}

impl Price {
    /// The cost of a message from this model.
    pub fn cost_of(&self, message: &Message) -> Money {
        let rates = match (self.fast, self.long) {
            (Some(fast), _) if message.is_fast => fast,
            (_, Some((above, long))) if message.tokens.prompt_tokens() > above => long,
            _ => self.rates,
        };
        let tokens = rates.cost_of(&message.tokens).0;
        let searches = message.web_searches.saturating_mul(WEB_SEARCH);
        let abroad = if message.in_the_us { tokens / 10 } else { 0 };
        Money(tokens.saturating_add(abroad).saturating_add(searches))
    }
}

impl Rates {
    /// What tokens cost.
    pub fn cost_of(&self, tokens: &Tokens) -> Money {
        Money(tokens.zip_kinds(self.0, u64::saturating_mul).total())
    }
}

/// The spread of some durations, each in milliseconds.
#[derive(Getters, Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Spread {
    #[getter(copy)]
    min: u64,
    #[getter(copy)]
    mean: u64,
    #[getter(copy)]
    max: u64,
}

/// The maximum number of single iteration times kept in a record; the newest are kept.
pub const TIMES_KEPT: usize = 100;

/// The totals of the iteration times that are not kept singly: a record that grew with its
/// iterations would make each one slower than the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    pub count: u64,
    min_ms: u64,
    pub max_ms: u64,
    pub sum_ms: u64,
}

impl Earlier {
    /// Adds the times of another loop.
    pub fn merge_times(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min_ms = if self.count == 0 { other.min_ms } else { self.min_ms.min(other.min_ms) };
        self.max_ms = self.max_ms.max(other.max_ms);
        self.count += other.count;
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
    }

    /// Adds one time.
    pub fn add_time(&mut self, ms: u64) {
        self.merge_times(&Self { count: 1, min_ms: ms, max_ms: ms, sum_ms: ms });
    }

    /// The spread of at least two durations; `None` for fewer.
    pub fn spread(&self) -> Option<Spread> {
        if self.count < 2 {
            return None;
        }
        let mean = self.sum_ms.saturating_add(self.count / 2) / self.count;
        Some(Spread { min: self.min_ms, mean, max: self.max_ms })
    }
}

/// The spread of at least two durations, the `newest` and the `earlier` ones; `None` for fewer.
pub fn spread_times(earlier: &Earlier, newest: &[u64]) -> Option<Spread> {
    let mut all = *earlier;
    for ms in newest {
        all.add_time(*ms);
    }
    if newest.is_empty() { None } else { all.spread() }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod times_tests {
    use super::*;

    #[test]
    fn the_spread_of_iterations_is_their_minimum_mean_and_maximum() {
        let table: [(&[u64], Option<[u64; 3]>); 6] = [
            (&[], None),
            (&[45_200], None),
            (&[10, 10], Some([10, 10, 10])),
            (&[2, 4, 4, 4, 5, 5, 7, 9], Some([2, 5, 9])),
            (&[45_200, 38_700, 52_100], Some([38_700, 45_333, 52_100])),
            (&[0, u64::MAX], Some([0, u64::MAX / 2, u64::MAX])),
        ];
        for (times, expected) in table {
            let found =
                spread_times(&Earlier::default(), times).map(|it| [it.min, it.mean, it.max]);
            assert_eq!(found, expected, "{times:?}");
        }
    }

    #[test]
    fn summed_times_give_the_same_spread_as_single_ones() {
        let times: Vec<u64> = (0..1000).map(|number| 40_000 + number * 7919 % 9_000).collect();
        let all = spread_times(&Earlier::default(), &times);
        for cut in [1, 500, 999] {
            let mut earlier = Earlier::default();
            times[..cut].iter().for_each(|ms| earlier.add_time(*ms));
            assert_eq!(spread_times(&earlier, &times[cut..]), all, "{cut}");
        }
    }
}
