//! The values of options: counts, durations, money, tokens. A refusal says what is expected
//! instead.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::engine::boundary::limits::LimitChange;
use crate::engine::record::{Outcome, Proof};
use crate::parse::amounts;

/// A prefix for a word that is not an option, so that clap does not read it as one. No shell can
/// pass this character.
pub(super) const MARK: &str = "\0";

/// A limit's value: a number or, where there is a value to add to, also `+` and a number.
pub trait Amount: Clone + Send + Sync + 'static {
    /// The value of a text; `read` parses its number.
    fn of(text: &str, read: impl Fn(&str) -> Result<u64, String>) -> Result<Self, String>;
}

impl Amount for u64 {
    fn of(text: &str, read: impl Fn(&str) -> Result<u64, String>) -> Result<Self, String> {
        read(text)
    }
}

impl Amount for LimitChange {
    fn of(text: &str, read: impl Fn(&str) -> Result<u64, String>) -> Result<Self, String> {
        let read = match text.strip_prefix('+') {
            Some(more) => read(more).map(Self::By),
            None => read(text).map(Self::To),
        };
        read.map_err(|it| format!("{it}; + before it adds"))
    }
}

/// A whole number of things.
pub fn whole(text: &str) -> Result<u32, String> {
    let digits = amounts::digits(text).ok_or("a whole number, such as 15")?;
    digits.parse().map_err(|_| "a whole number up to 4294967295".to_owned())
}

/// At least one.
pub(super) fn some(text: &str) -> Result<u32, String> {
    whole(text).and_then(|number| match number {
        0 => Err("at least 1".to_owned()),
        number => Ok(number),
    })
}

pub(super) fn count<T: Amount>(text: &str) -> Result<T, String> {
    T::of(text, |number| whole(number).map(u64::from))
}

/// Seconds.
pub(super) fn duration<T: Amount>(text: &str) -> Result<T, String> {
    T::of(text, |number| Ok(amounts::whole_seconds(amounts::duration(number)?)))
}

/// Millionths of a US dollar.
pub(super) fn dollars<T: Amount>(text: &str) -> Result<T, String> {
    let micros = |number: &str| amounts::dollars(number).map(amounts::micros);
    T::of(text, |number| micros(number).ok_or_else(|| "US dollars, such as 5.00".to_owned()))
}

pub(super) fn tokens<T: Amount>(text: &str) -> Result<T, String> {
    let wanted = "a whole number, perhaps with k or M, such as 500k";
    T::of(text, |number| amounts::tokens(number).ok_or_else(|| wanted.to_owned()))
}

/// A grade of proof that a loop may require.
pub(super) fn proof(text: &str) -> Result<Proof, &'static str> {
    let found = Proof::REQUIRED.into_iter().find(|proof| proof.label() == text);
    found.ok_or("it can be checked or proven")
}

/// A text without its mark.
#[expect(clippy::unnecessary_wraps, reason = "clap's shape of a reader")]
pub(super) fn text(marked: &str) -> Result<String, String> {
    Ok(marked.strip_prefix(MARK).unwrap_or(marked).to_owned())
}

/// Words, each with its mark removed.
#[expect(clippy::unnecessary_wraps, reason = "clap's shape of a reader")]
pub(super) fn words(marked: &str) -> Result<Vec<String>, String> {
    Ok(marked.split(MARK).skip(1).map(str::to_owned).collect())
}

/// An iteration by its number.
pub fn iteration(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "the number of an iteration, such as 3")
}

/// An outcome by its word.
pub fn outcomes() -> impl TypedValueParser<Value = Outcome> {
    PossibleValuesParser::new(Outcome::ALL.map(Outcome::label)).try_map(|word| {
        let named = Outcome::ALL.into_iter().find(|outcome| outcome.label() == word);
        named.ok_or("an outcome")
    })
}
