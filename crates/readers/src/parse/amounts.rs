//! Amounts with their unit, as people type them and as files write them: `15`, `12h`, `2.50`,
//! `500k`, `80%`. It refuses an amount that it would have to guess.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Value;

use engine::text::format_period;

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Whole things: iterations, turns, days.
    Count,
    Seconds,
    /// US dollars, counted in millionths.
    Dollars,
    Tokens,
    /// A percentage of the context.
    Percent,
    Bytes,
}

const UNITS: [Unit; 6] =
    [Unit::Count, Unit::Seconds, Unit::Dollars, Unit::Tokens, Unit::Percent, Unit::Bytes];

/// The suffixes of a number, with their factors. Only 0 may leave out the unit of a size.
const TOKENS: [(&str, u64); 5] =
    [("k", 1_000), ("K", 1_000), ("m", 1_000_000), ("M", 1_000_000), ("", 1)];
const BYTES: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

impl Unit {
    /// The number that a string stands for.
    ///
    /// # Errors
    /// What should have been written instead.
    pub fn parse_text(self, text: &str) -> Result<u64, String> {
        let (number, wanted) = match self {
            Self::Seconds => return parse_duration(text).map(whole_seconds).map_err(str::to_owned),
            Self::Count => match all_digits(text) {
                None => (None, "a whole number, such as 15"),
                Some(digits) => {
                    (digits.parse().map(u32::into).ok(), "a whole number up to 4294967295")
                }
            },
            Self::Dollars => (parse_dollars(text), "US dollars, such as 5.00"),
            Self::Tokens => {
                (parse_suffixed(text, &TOKENS), "a whole number, perhaps with k or M, such as 500k")
            }
            Self::Percent => {
                let percent =
                    parse_suffixed(text, &[("%", 1), ("", 1)]).filter(|percent| *percent <= 100);
                (percent, "a part of the context, from 0 (never) to 100%")
            }
            Self::Bytes => {
                // A blank may come before the unit.
                let end = text.trim_start_matches(|c: char| c.is_ascii_digit());
                let bare = text[..text.len() - end.len()].to_owned() + end.trim_start();
                let bytes = if text == "0" { Some(0) } else { parse_suffixed(&bare, &BYTES) };
                (bytes, "a size with its unit, such as 500MiB or 2GiB")
            }
        };
        number.ok_or_else(|| wanted.to_owned())
    }

    /// The number of a value in a settings file.
    ///
    /// # Errors
    /// What should have been written instead.
    pub fn parse_value(self, value: &Value) -> Result<u64, String> {
        self.parse_text(&text_of(value))
    }

    /// A number as people write it: `12h`, `2.50`, `500k`.
    pub fn format_number(self, number: u64) -> String {
        const SIZES: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        const THOUSANDS: [(u64, &str); 2] = [(1_000_000, "M"), (1_000, "k")];
        match self {
            _ if number == 0 => "0".to_owned(),
            Self::Count => number.to_string(),
            Self::Seconds => format_period(number),
            Self::Dollars => {
                let (dollars, cents) = (number / 1_000_000, number % 1_000_000 / 10_000);
                let beyond = format!("{:04}", number % 10_000);
                format!("{dollars}.{cents:02}{}", beyond.trim_end_matches('0'))
            }
            Self::Tokens => in_units(number, &THOUSANDS, ""),
            Self::Percent => format!("{number}%"),
            Self::Bytes => in_units(number, &SIZES, "B"),
        }
    }
}

/// A number in the first of these units that divides it, otherwise in the `least` unit.
fn in_units(number: u64, units: &[(u64, &str)], least: &str) -> String {
    let fitting = units.iter().find(|(unit, _)| number.is_multiple_of(*unit));
    let (unit, name) = fitting.copied().unwrap_or((1, least));
    format!("{}{name}", number / unit)
}

/// A whole number with one of these suffixes.
fn parse_suffixed(text: &str, marks: &[(&str, u64)]) -> Option<u64> {
    let (number, factor) =
        marks.iter().find_map(|(mark, factor)| Some((text.strip_suffix(mark)?, *factor)))?;
    all_digits(number)?.parse::<u64>().ok()?.checked_mul(factor)
}

/// US dollars, with or without the sign, in millionths: `5`, `2.50`, `$2.50`. An amount below one
/// millionth becomes one, because 0 would mean no limit.
fn parse_dollars(text: &str) -> Option<u64> {
    let text = text.strip_prefix('$').unwrap_or(text);
    let is_decimal = text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let dollars: f64 = text.parse().ok()?;
    let micros = to_count((dollars * 1e6).round()).max(u64::from(dollars > 0.0));
    if is_decimal && dollars.is_finite() { Some(micros) } else { None }
}

/// A number without its fraction, never below zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut to what fits")]
pub fn to_count(number: f64) -> u64 {
    number as u64
}

/// Returns the text if it consists only of digits.
pub fn all_digits(text: &str) -> Option<&str> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Some(text) } else { None }
}

/// The maximum length in bytes of a string that is read as a duration.
const MAX_DURATION_BYTES: usize = 64;
/// The longest duration; a longer one is a typing error.
const MAX_DURATION: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// Reads a duration of one second to ten years, or 0. The error says what is expected instead.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    let wanted = "a time with its unit, such as 90m, 12h or \"1h 30m\"";
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte == b'0') {
        return Ok(Duration::ZERO);
    }
    if text.ends_with(|c: char| c.is_ascii_digit()) {
        return Err(wanted);
    }
    // The crate's addition can overflow and panic; numbers this short cannot cause that.
    let longest = text.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
    if text.len() > MAX_DURATION_BYTES || longest > 9 {
        return Err("a time of at most ten years");
    }
    let duration = humantime::parse_duration(text).map_err(|_| wanted)?;
    if duration > MAX_DURATION {
        return Err("a time of at most ten years");
    }
    if !duration.is_zero() && duration < Duration::from_secs(1) {
        return Err("a time of at least a second");
    }
    Ok(duration)
}

/// Whole seconds, rounded up: a limit of less than a second must not become 0, which means none.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// A value as people write it, a string without its quotes.
pub fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A number of the unit with this index in `UNITS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount<const UNIT: usize>(pub u64);

/// A number of things.
pub type Count = Amount<0>;
/// A number of seconds.
pub type Seconds = Amount<1>;
/// A number of tokens of every kind.
pub type TokenCount = Amount<3>;
/// A percentage of the context.
pub type Percent = Amount<4>;
/// A number of bytes.
pub type Bytes = Amount<5>;

impl<const UNIT: usize> FromStr for Amount<UNIT> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        UNITS[UNIT].parse_text(text).map(Self)
    }
}

impl<'de, const UNIT: usize> Deserialize<'de> for Amount<UNIT> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let number = UNITS[UNIT].parse_value(&Value::deserialize(source)?);
        number.map(Self).map_err(|wanted| D::Error::custom(format!("expected {wanted}")))
    }
}

impl<const UNIT: usize> fmt::Display for Amount<UNIT> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&UNITS[UNIT].format_number(self.0))
    }
}

impl<const UNIT: usize> Serialize for Amount<UNIT> {
    fn serialize<S: Serializer>(&self, target: S) -> Result<S::Ok, S::Error> {
        match UNITS[UNIT] {
            Unit::Count => target.serialize_u64(self.0),
            _ => target.collect_str(self),
        }
    }
}

/// The value of a limit or, with a `+` before it, an addition to the loop's present limit. A file
/// cannot contain such an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limit<const UNIT: usize> {
    pub amount: Amount<UNIT>,
    #[serde(skip)]
    pub adds: bool,
}

impl<const UNIT: usize> FromStr for Limit<UNIT> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let more = text.strip_prefix('+');
        Ok(Self { amount: more.unwrap_or(text).parse()?, adds: more.is_some() })
    }
}

/// A value, or `false` for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrOff<T> {
    On(T),
    Off,
}

impl<T: FromStr> FromStr for OrOff<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(Self::On)
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for OrOff<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        match Value::deserialize(source)? {
            Value::Boolean(false) => Ok(Self::Off),
            Value::String(text) => text.parse().map(Self::On).map_err(D::Error::custom),
            _ => Err(D::Error::custom("expected a string in quotes, or false")),
        }
    }
}

impl<T: Serialize> Serialize for OrOff<T> {
    fn serialize<S: Serializer>(&self, target: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::On(value) => value.serialize(target),
            Self::Off => target.serialize_bool(false),
        }
    }
}

/// One string, or a list of strings.
///
/// # Errors
/// If it is neither.
pub fn deserialize_texts<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<String>, D::Error> {
    let list = match Value::deserialize(source)? {
        Value::Array(list) => list,
        one => vec![one],
    };
    let texts = list.into_iter().map(|one| match one {
        Value::String(text) if !text.trim().is_empty() && !text.contains('\0') => {
            // In a file with Windows line ends a shell would read the carriage return as part of a
            // word.
            Ok(text.replace("\r\n", "\n"))
        }
        other => {
            Err(D::Error::custom(format!("expected a string or a list of strings, not {other}")))
        }
    });
    texts.collect()
}

/// A prefix for a word that is not an option, so that clap does not read it as one. No shell can
/// pass this character.
pub const MARK: &str = "\0";

/// Reads a string that is not blank, without its mark.
///
/// # Errors
/// If nothing is left to read.
pub fn parse_text(marked: &str) -> Result<String, String> {
    let text = marked.strip_prefix(MARK).unwrap_or(marked);
    if text.trim().is_empty() {
        Err("text that is not blank".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_kept_to_the_millionth_and_a_small_amount_never_becomes_no_limit() {
        let table = [
            ("5", Some(5_000_000)),
            ("$2.50", Some(2_500_000)),
            ("0.0000001", Some(1)),
            ("0", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("1e3", None),
            (".5", None),
            ("5.", None),
            ("1.2.3", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(Unit::Dollars.parse_text(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn sizes_are_written_with_their_units() {
        let table = [
            ("2GiB", Some(2 << 30)),
            ("500 MiB", Some(500 << 20)),
            ("3kB", Some(3000)),
            ("10B", Some(10)),
            ("0", Some(0)),
            ("500", None),
            ("GiB", None),
            ("1.5GiB", None),
            ("99999999999TiB", None),
        ];
        for (text, expected) in table {
            assert_eq!(Unit::Bytes.parse_text(text).ok(), expected, "{text}");
        }
    }
}
