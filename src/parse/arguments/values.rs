//! The values of options: counts, durations, money, tokens. A refusal says what is expected
//! instead.

use clap::builder::TypedValueParser;

use crate::engine::record::Outcome;
use crate::parse::amounts;
use crate::parse::settings::amount::Unit;
use crate::parse::settings::options::one_of;

/// A prefix for a word that is not an option, so that clap does not read it as one. No shell can
/// pass this character.
pub(super) const MARK: &str = "\0";

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

/// US dollars, in millionths.
pub(super) fn dollars(text: &str) -> Result<u64, String> {
    Unit::Dollars.read(text)
}

/// A text that is not blank, without its mark.
///
/// # Errors
/// Where nothing is left to read.
pub fn text(marked: &str) -> Result<String, String> {
    let text = marked.strip_prefix(MARK).unwrap_or(marked);
    if text.trim().is_empty() { Err("a text".to_owned()) } else { Ok(text.to_owned()) }
}

/// An iteration by its number.
pub fn iteration(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "the number of an iteration, such as 3")
}

/// An outcome by its word.
pub fn outcomes() -> impl TypedValueParser<Value = Outcome> {
    one_of(Outcome::ALL, Outcome::label)
}
