//! What a model's message costs, by the prices of `prices.txt`. A model that is not there has no
//! price.

use crate::parse::amounts::all_digits;
use engine::usage::{Message, Money, Price, Rates, new_rates};

/// The prices; the file says what its columns are.
const PRICES: &str = include_str!("prices.txt");

/// What a message cost; `None` where its model has no known price.
pub(super) fn message_cost(message: &Message) -> Option<Money> {
    Some(find_price(&message.model)?.cost_of(message))
}

/// Whether a model has a known price.
pub fn is_priced(model: &str) -> bool {
    find_price(model).is_some()
}

fn find_price(model: &str) -> Option<Price> {
    let model = bare_model(model);
    let mut rows = PRICES.lines().filter_map(|row| row.split_once(' '));
    let (_, columns) = rows.find(|(name, _)| *name == model)?;
    let columns: Vec<u64> =
        columns.split_whitespace().map_while(|column| column.parse().ok()).collect();
    let columns: [u64; 10] = columns.try_into().ok()?;
    Some(Price {
        rates: rates_at(0, &columns),
        fast: if columns[3] > 0 { Some(rates_at(3, &columns)) } else { None },
        long: if columns[6] > 0 { Some((columns[6], rates_at(7, &columns))) } else { None },
    })
}

/// The rates in three columns, of which this is the first.
fn rates_at(first: usize, columns: &[u64; 10]) -> Rates {
    new_rates(columns[first], columns[first + 1], columns[first + 2])
}

/// A model's name without its date, its place and its version there.
/// `us.anthropic.claude-opus-4-8-v1:0`, `claude-haiku-4-5@20251001` and `claude-opus-4-8[1m]` get
/// the same name as elsewhere.
fn bare_model(model: &str) -> &str {
    let from = model.find("claude-").unwrap_or(0);
    let name = &model[from..];
    let name = name.split(['@', '[', ':']).next().unwrap_or(name);
    let name = drop_last_part(name, |end| {
        end.strip_prefix('v').is_some_and(|number| all_digits(number).is_some())
    });
    let name = drop_last_part(name, |end| end.len() == 8 && all_digits(end).is_some());
    if name.ends_with("-4-0") { &name[..name.len() - 2] } else { name }
}

/// The name without its last part, if `is_so` accepts that part.
fn drop_last_part(name: &str, is_so: impl Fn(&str) -> bool) -> &str {
    match name.rsplit_once('-') {
        Some((rest, end)) if is_so(end) => rest,
        _ => name,
    }
}

#[cfg(test)]
mod prices_tests {
    use super::*;
    use engine::usage::{HIGHEST, Tokens};

    fn of(model: &str) -> Option<Rates> {
        find_price(model).map(|price| price.rates)
    }

    #[test]
    fn no_rate_is_higher_than_that_of_a_model_without_a_price() {
        let rows: Vec<&str> = PRICES.lines().filter(|row| !row.starts_with('#')).collect();
        assert_eq!(rows.len(), 24);
        for model in rows.into_iter().map(|row| row.split(' ').next().unwrap()) {
            let price = find_price(model).expect(model);
            let long = price.long.map(|(_, rates)| rates);
            for Rates(rates) in [Some(price.rates), price.fast, long].into_iter().flatten() {
                assert!(rates.input <= HIGHEST.0.input && rates.output <= HIGHEST.0.output);
                assert!(rates.cache_write <= HIGHEST.0.cache_write, "{model}");
                assert!(rates.cache_write_hour <= HIGHEST.0.cache_write_hour);
                assert!(rates.cache_read <= HIGHEST.0.cache_read, "{model}");
            }
        }
    }

    #[test]
    fn a_model_is_known_by_all_its_names() {
        for name in [
            "claude-haiku-4-5",
            "claude-haiku-4-5-20251001",
            "claude-haiku-4-5@20251001",
            "us.anthropic.claude-haiku-4-5-20251001-v1:0",
            "anthropic/claude-haiku-4-5",
            "claude-haiku-4-5[1m]",
        ] {
            assert_eq!(of(name), Some(new_rates(1_000, 5_000, 100)), "{name}");
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
            message_cost(&opus),
            Some(Money(
                5_000_000_000_000
                    + 625_000_000_000
                    + 100_000_000_000
                    + 1_000_000_000_000
                    + 75_000_000_000
            ))
        );
        let fast = Message { is_fast: true, ..opus.clone() };
        assert_eq!(message_cost(&fast).unwrap().0, message_cost(&opus).unwrap().0 * 2);
        let here = Message { in_the_us: true, web_searches: 3, ..opus.clone() };
        assert_eq!(
            message_cost(&here).unwrap().0,
            message_cost(&opus).unwrap().0 / 10 * 11 + 30_000_000_000
        );
        let haiku = |input| message("claude-haiku-5-5", Tokens { input, ..Tokens::default() });
        assert_eq!(message_cost(&haiku(100_000)), Some(Money::from_micros(10_000)));
        assert_eq!(message_cost(&haiku(100_002)), Some(Money::from_micros(50_001)));
        assert_eq!(message_cost(&message("claude-strange-9", tokens)), None);
        let all = Tokens { input: u64::MAX, ..tokens };
        assert_eq!(message_cost(&message("claude-opus-4-8", all)), Some(Money(u64::MAX)));
        assert!(HIGHEST.cost_of(&tokens) >= message_cost(&fast).unwrap());
    }
}
