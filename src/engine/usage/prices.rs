//! What a token costs: the arithmetic of a price list. The lists belong to the clients. A model on
//! none of them is charged at the highest rate, never at zero.

use serde::{Deserialize, Serialize};

use super::{Message, Money, Tokens};

/// How fast a model was asked to answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Speed {
    #[default]
    Standard,
    Fast,
}

/// Prices in millionths of a dollar for a million tokens of a kind, which is picodollars for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates(pub Tokens);

/// What the tokens of one model cost.
#[derive(Debug)]
pub struct Price {
    pub model: &'static str,
    pub rates: Rates,
    /// The rates of fast mode, if it costs more.
    pub fast: Option<Rates>,
    /// The token count above which a prompt costs more, and the rates then.
    pub long: Option<(u64, Rates)>,
}

/// The rates charged for a model without a known price. No list has higher ones.
pub const HIGHEST: Rates = rates(30_000, 150_000, 3_000);

/// A web search, in picodollars.
const WEB_SEARCH: u64 = 10_000_000_000;

/// In thousandths of a dollar for a million tokens: input, output, cache reads. Writing to the
/// cache costs a quarter more than input for five minutes, and twice as much as input for an hour.
pub const fn rates(input: u64, output: u64, cache_read: u64) -> Rates {
    Rates(Tokens {
        input: input * 1000,
        cache_write: input * 1250,
        cache_write_hour: input * 2000,
        cache_read: cache_read * 1000,
        output: output * 1000,
    })
}

impl Price {
    /// What a message of this model cost.
    pub fn of(&self, message: &Message) -> Money {
        let rates = match (message.speed, self.fast, self.long) {
            (Speed::Fast, Some(fast), _) => fast,
            (_, _, Some((above, long))) if message.tokens.prompt() > above => long,
            _ => self.rates,
        };
        let tokens = rates.of(&message.tokens).0;
        let searches = message.web_searches.saturating_mul(WEB_SEARCH);
        let abroad = if message.in_the_us { tokens / 10 } else { 0 };
        Money(tokens.saturating_add(abroad).saturating_add(searches))
    }
}

impl Rates {
    /// What tokens cost.
    pub fn of(&self, tokens: &Tokens) -> Money {
        Money(tokens.zip(self.0, u64::saturating_mul).total())
    }
}
