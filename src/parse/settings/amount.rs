//! Amounts with their unit, as options and files write them: `15`, `12h`, `2.50`, `500k`, `80%`.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Value;

use crate::engine::text::period;
use crate::parse::amounts;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Whole things: iterations, turns, days.
    Count,
    Seconds,
    /// US dollars, counted in millionths.
    Dollars,
    Tokens,
    /// Of the context.
    Percent,
    Bytes,
}

const UNITS: [Unit; 6] =
    [Unit::Count, Unit::Seconds, Unit::Dollars, Unit::Tokens, Unit::Percent, Unit::Bytes];

impl Unit {
    /// The number of a text.
    ///
    /// # Errors
    /// What should have been written instead.
    pub fn read(self, text: &str) -> Result<u64, String> {
        match self {
            Self::Count => {
                let digits = amounts::digits(text).ok_or("a whole number, such as 15")?;
                digits.parse().map(u32::into).map_err(|_| "a whole number up to 4294967295")
            }
            Self::Seconds => amounts::duration(text).map(amounts::whole_seconds),
            Self::Dollars => {
                amounts::dollars(text).map(amounts::micros).ok_or("US dollars, such as 5.00")
            }
            Self::Tokens => {
                amounts::tokens(text).ok_or("a whole number, perhaps with k or M, such as 500k")
            }
            Self::Percent => {
                amounts::percent(text).ok_or("a part of the context, from 0 (never) to 100%")
            }
            Self::Bytes => {
                amounts::bytes(text).ok_or("a size with its unit, such as 500MiB or 2GiB")
            }
        }
        .map_err(str::to_owned)
    }

    /// The number of a value in a settings file.
    ///
    /// # Errors
    /// What should have been written instead.
    pub fn of(self, value: &Value) -> Result<u64, String> {
        self.read(&text_of(value))
    }

    /// A number as a person writes it: `12h`, `2.50`, `500k`.
    pub fn written(self, number: u64) -> String {
        const BYTES: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        const TOKENS: [(u64, &str); 2] = [(1_000_000, "M"), (1_000, "k")];
        let in_units = |units: &[(u64, &str)], least: &str| {
            let fitting = units.iter().find(|(unit, _)| number.is_multiple_of(*unit));
            let (unit, name) = fitting.copied().unwrap_or((1, least));
            format!("{}{name}", number / unit)
        };
        match self {
            _ if number == 0 => "0".to_owned(),
            Self::Count => number.to_string(),
            Self::Seconds => period(number),
            Self::Dollars => {
                let (dollars, cents) = (number / 1_000_000, number % 1_000_000 / 10_000);
                let beyond = format!("{:04}", number % 10_000);
                format!("{dollars}.{cents:02}{}", beyond.trim_end_matches('0'))
            }
            Self::Tokens => in_units(&TOKENS, ""),
            Self::Percent => format!("{number}%"),
            Self::Bytes => in_units(&BYTES, "B"),
        }
    }
}

/// A value as a person writes it, a text without its quotes.
pub fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A number of the unit with this place in the list of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount<const UNIT: usize>(pub u64);

/// Whole things.
pub type Count = Amount<0>;
/// Seconds.
pub type Seconds = Amount<1>;
/// Tokens of every kind.
pub type TokenCount = Amount<3>;
/// A part of the context.
pub type Percent = Amount<4>;
/// Bytes.
pub type Bytes = Amount<5>;

impl<const UNIT: usize> FromStr for Amount<UNIT> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        UNITS[UNIT].read(text).map(Self)
    }
}

impl<'de, const UNIT: usize> Deserialize<'de> for Amount<UNIT> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let number = UNITS[UNIT].of(&Value::deserialize(source)?);
        number.map(Self).map_err(|wanted| D::Error::custom(format!("expected {wanted}")))
    }
}

impl<const UNIT: usize> fmt::Display for Amount<UNIT> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&UNITS[UNIT].written(self.0))
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

/// The value of a limit: itself or, with `+` before it, what is added to the one that a loop has.
/// A file holds no such addition.
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
            _ => Err(D::Error::custom("expected a text in quotes, or false")),
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

/// One text, or a list of texts.
///
/// # Errors
/// Where it is neither.
pub fn texts<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<String>, D::Error> {
    let list = match Value::deserialize(source)? {
        Value::Array(list) => list,
        one => vec![one],
    };
    let text = |one: &Value| match one {
        Value::String(text) if !text.trim().is_empty() && !text.contains('\0') => {
            // In a file of Windows a shell would take the carriage return for a part of a word.
            Ok(text.replace("\r\n", "\n"))
        }
        other => Err(D::Error::custom(format!("expected a text or a list of texts, not {other}"))),
    };
    list.iter().map(text).collect()
}
