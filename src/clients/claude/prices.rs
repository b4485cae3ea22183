//! Prices by model. They were measured, not copied from a page: each row is what Claude Code
//! 2.1.330 itself put into its `total_cost_usd` for that kind of token alone, on 2026-11-22.
//! 2.1.197 has the same prices with three exceptions: it prices Sonnet 5 like Sonnet 4.6, a model
//! it does not know like another one, and it does not know the price of US-only answers. A test
//! asks the real client again for every row, so a changed price is noticed.

use crate::engine::usage::prices::{Price, Rates, rates};
use crate::engine::usage::{Message, Money};
use crate::parse::amounts::digits;

impl Price {
    const fn with_fast(self, fast: Rates) -> Self {
        Self { fast: Some(fast), ..self }
    }

    const fn with_long(self, above: u64, long: Rates) -> Self {
        Self { long: Some((above, long)), ..self }
    }
}

const fn price(model: &'static str, rates: Rates) -> Price {
    Price { model, rates, fast: None, long: None }
}

const OPUS: Rates = rates(5_000, 25_000, 500);
const OPUS_FAST: Rates = rates(30_000, 150_000, 3_000);
const SONNET: Rates = rates(3_000, 15_000, 300);
const FABLE: Rates = rates(10_000, 50_000, 1_000);
const FABLE_1: Rates = rates(10_000, 50_000, 250);
const FABLE_2: Rates = rates(8_000, 40_000, 200);
const FABLE_2_FAST: Rates = rates(16_000, 80_000, 400);

static PRICES: [Price; 24] = [
    price("claude-3-5-haiku", rates(800, 4_000, 80)),
    price("claude-haiku-4-5", rates(1_000, 5_000, 100)),
    price("claude-haiku-5-5", rates(100, 500, 10)).with_long(100_000, rates(500, 2_500, 50)),
    price("claude-3-5-sonnet", SONNET),
    price("claude-3-7-sonnet", SONNET),
    price("claude-sonnet-4", SONNET),
    price("claude-sonnet-4-5", SONNET),
    price("claude-sonnet-4-6", SONNET),
    price("claude-sonnet-5", rates(2_000, 10_000, 200)),
    price("claude-sonnet-5-5", rates(2_000, 10_000, 100)),
    price("claude-opus-4", rates(15_000, 75_000, 1_500)),
    price("claude-opus-4-1", rates(15_000, 75_000, 1_500)),
    price("claude-opus-4-5", OPUS),
    price("claude-opus-4-6", OPUS).with_fast(OPUS_FAST),
    price("claude-opus-4-7", OPUS).with_fast(OPUS_FAST),
    price("claude-opus-4-8", OPUS).with_fast(FABLE),
    price("claude-opus-5", OPUS).with_fast(FABLE),
    price("claude-opus-5-5", rates(4_000, 20_000, 200)).with_fast(rates(8_000, 40_000, 400)),
    price("claude-fable-5", FABLE),
    price("claude-fable-5-1", FABLE_1),
    price("claude-fable-5-2", FABLE_2).with_fast(FABLE_2_FAST),
    price("claude-mythos-5", FABLE),
    price("claude-mythos-5-1", FABLE_1),
    price("claude-mythos-5-2", FABLE_2).with_fast(FABLE_2_FAST),
];

/// What a message cost; `None` where its model has no known price.
pub(super) fn cost(message: &Message) -> Option<Money> {
    Some(find(&message.model)?.of(message))
}

/// Whether a model has a known price.
pub fn is_priced(model: &str) -> bool {
    find(model).is_some()
}

fn find(model: &str) -> Option<&'static Price> {
    PRICES.iter().find(|price| price.model == bare(model))
}

/// A model's name without its date, its place and its version there.
/// `us.anthropic.claude-opus-4-8-v1:0`, `claude-haiku-4-5@20251001` and `claude-opus-4-8[1m]` get
/// the same name as elsewhere.
fn bare(model: &str) -> &str {
    let from = model.find("claude-").unwrap_or(0);
    let name = &model[from..];
    let name = name.split(['@', '[', ':']).next().unwrap_or(name);
    let name = cut(name, |end| end.strip_prefix('v').is_some_and(|it| digits(it).is_some()));
    let name = cut(name, |end| end.len() == 8 && digits(end).is_some());
    if name.ends_with("-4-0") { &name[..name.len() - 2] } else { name }
}

/// The name without its last part, if `is_so` accepts that part.
fn cut(name: &str, is_so: impl Fn(&str) -> bool) -> &str {
    name.rsplit_once('-').filter(|(_, end)| is_so(end)).map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::usage::Tokens;
    use crate::engine::usage::prices::{HIGHEST, Speed};

    fn of(model: &str) -> Option<Rates> {
        find(model).map(|price| price.rates)
    }

    #[test]
    fn no_rate_is_higher_than_that_of_a_model_without_a_price() {
        for price in &PRICES {
            let long = price.long.map(|(_, rates)| rates);
            for Rates(rates) in [Some(price.rates), price.fast, long].into_iter().flatten() {
                assert!(rates.input <= HIGHEST.0.input && rates.output <= HIGHEST.0.output);
                assert!(rates.cache_write <= HIGHEST.0.cache_write, "{}", price.model);
                assert!(rates.cache_write_hour <= HIGHEST.0.cache_write_hour);
                assert!(rates.cache_read <= HIGHEST.0.cache_read, "{}", price.model);
            }
        }
    }

    #[test]
    fn a_model_is_known_by_all_its_names_and_no_other_is() {
        for name in [
            "claude-haiku-4-5",
            "claude-haiku-4-5-20251001",
            "claude-haiku-4-5@20251001",
            "us.anthropic.claude-haiku-4-5-20251001-v1:0",
            "anthropic/claude-haiku-4-5",
            "claude-haiku-4-5[1m]",
        ] {
            assert_eq!(of(name), Some(rates(1_000, 5_000, 100)), "{name}");
        }
        assert_eq!(of("claude-opus-4-20250514"), of("claude-opus-4-0"));
        for name in ["", "claude", "gpt-9", "claude-haiku-9", "claude-haiku-4-5-new", "@", "-"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn every_kind_of_token_has_its_price_and_speed_length_and_place_theirs() {
        let message =
            |model: &str, tokens| Message { model: model.to_owned(), tokens, ..Message::default() };
        let tokens = Tokens {
            input: 1_000_000,
            cache_write: 100_000,
            cache_write_hour: 10_000,
            cache_read: 2_000_000,
            output: 3_000,
        };
        let opus = message("claude-opus-4-8", tokens);
        assert_eq!(
            cost(&opus),
            Some(Money(
                5_000_000_000_000
                    + 625_000_000_000
                    + 100_000_000_000
                    + 1_000_000_000_000
                    + 75_000_000_000
            ))
        );
        let fast = Message { speed: Speed::Fast, ..opus.clone() };
        assert_eq!(cost(&fast).unwrap().0, cost(&opus).unwrap().0 * 2);
        let here = Message { in_the_us: true, web_searches: 3, ..opus.clone() };
        assert_eq!(cost(&here).unwrap().0, cost(&opus).unwrap().0 / 10 * 11 + 30_000_000_000);
        let haiku = |input| message("claude-haiku-5-5", Tokens { input, ..Tokens::default() });
        assert_eq!(cost(&haiku(100_000)), Some(Money::from_micros(10_000)));
        assert_eq!(cost(&haiku(100_002)), Some(Money::from_micros(50_001)));
        assert_eq!(cost(&message("claude-strange-9", tokens)), None);
        let all = Tokens { input: u64::MAX, ..tokens };
        assert_eq!(cost(&message("claude-opus-4-8", all)), Some(Money(u64::MAX)));
        assert!(HIGHEST.of(&tokens) >= cost(&fast).unwrap());
    }
}
