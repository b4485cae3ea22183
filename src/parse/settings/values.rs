//! The values of a settings file. Each refusal names the key, what stands there, and a line that works.

use super::{Reader, Value};
use crate::engine::settings::{Limit, Unit};
use crate::parse::spelling::{nearest, shown};
use crate::parse::{amounts, duration};

/// What is wanted of an amount of money, and of a number of tokens.
const DOLLARS: &str = "an amount in US dollars";
const TOKENS: &str = "a number of tokens, such as 500k or 2M";

const BYTES: &str = "a size with its unit, such as 500MiB or 2GiB";

/// Reads a limit from the text of its variable. The error says what is wanted, and an example of it.
pub(super) fn number(limit: Limit, text: &str) -> Result<u64, (&'static str, &'static str)> {
    let example = example(limit.key().1);
    let found = match limit.unit() {
        Unit::Seconds => duration::parse(text).map(duration::whole_seconds),
        Unit::Micros => amounts::dollars(text).map(amounts::micros).ok_or(DOLLARS),
        Unit::Tokens => amounts::tokens(text).ok_or(TOKENS),
        Unit::Bytes => amounts::bytes(text).ok_or(BYTES),
        Unit::Iterations | Unit::Turns | Unit::Days => {
            text.parse::<u32>().map(u64::from).map_err(|_| "a whole number")
        }
    };
    found.map_err(|wanted| (wanted, example))
}

/// A value that makes sense, as a variable holds it.
fn example(key: &str) -> &'static str {
    match key {
        "max_iterations" => "15",
        "max_turns" => "50",
        "days" => "90",
        "timeout" => "10m",
        "idle_timeout" => "15m",
        "delay" => "30s",
        "max_duration" | "max" => "12h",
        "max_cost" => "5.00",
        "max_tokens" => "500k",
        "token_budget" => "100k",
        "logs" => "2GiB",
        _ => "3",
    }
}

impl Reader<'_> {
    /// "KEY takes WANTED, not VALUE: KEY = EXAMPLE".
    pub(super) fn refuse(&mut self, key: &str, wanted: &str, value: &Value<'_>, example: &str) {
        let at = value.span();
        let written = shown(self.text.get(at.clone()).unwrap_or_default());
        self.fault(&at, format!("{key} takes {wanted}, not {written}: {key} = {example}"));
    }

    /// A whole number of things.
    pub(super) fn count(&mut self, key: &str, value: &Value<'_>) -> Option<u64> {
        let integer = value.get_ref().as_integer();
        let number =
            integer.and_then(|integer| u32::from_str_radix(integer.as_str(), integer.radix()).ok());
        if number.is_none() {
            let wanted = if integer.is_some() {
                "a whole number from 0 (no limit) to 4294967295"
            } else {
                "a whole number without quotes"
            };
            self.refuse(key, wanted, value, example(key));
        }
        number.map(u64::from)
    }

    /// A span of time, in seconds.
    pub(super) fn seconds(&mut self, key: &str, value: &Value<'_>) -> Option<u64> {
        let example = &format!("\"{}\"", example(key));
        let zero = value.get_ref().as_integer().is_some_and(|integer| integer.as_str() == "0");
        let text = if zero { Some("0") } else { value.get_ref().as_str() };
        let Some(text) = text else {
            self.refuse(key, "a time with its unit, in quotes", value, example);
            return None;
        };
        match duration::parse(text) {
            Ok(duration) => Some(duration::whole_seconds(duration)),
            Err(wanted) => {
                self.refuse(key, wanted, value, example);
                None
            }
        }
    }

    /// A span of time that is not 0.
    pub(super) fn some_seconds(&mut self, key: &str, value: &Value<'_>) -> Option<u64> {
        let seconds = self.seconds(key, value);
        if seconds == Some(0) {
            let example = format!("\"{}\"", example(key));
            self.refuse(key, "a time of at least a second", value, &example);
        }
        seconds.filter(|seconds| *seconds > 0)
    }

    /// An amount of US dollars, in millionths.
    pub(super) fn micros(&mut self, key: &str, value: &Value<'_>) -> Option<u64> {
        let number = amounts::dollars(&self.amount(value)).map(amounts::micros);
        if number.is_none() {
            self.refuse(key, DOLLARS, value, example(key));
        }
        number
    }

    /// A number of tokens.
    pub(super) fn tokens(&mut self, key: &str, value: &Value<'_>) -> Option<u64> {
        let number = amounts::tokens(&self.amount(value));
        if number.is_none() {
            self.refuse(key, TOKENS, value, &format!("\"{}\"", example(key)));
        }
        number
    }

    /// A size, in bytes.
    pub(super) fn bytes(&mut self, key: &str, value: &Value<'_>) -> Option<u64> {
        let number = amounts::bytes(&self.amount(value));
        if number.is_none() {
            self.refuse(key, BYTES, value, &format!("\"{}\"", example(key)));
        }
        number
    }

    /// True or false.
    pub(super) fn switch(&mut self, key: &str, value: &Value<'_>) -> Option<bool> {
        let switch = value.get_ref().as_bool();
        if switch.is_none() {
            self.refuse(key, "true or false", value, "true");
        }
        switch
    }

    /// One of a few words; `usual` is suggested where none is near.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &str,
        words: &[(&'static str, T)],
        usual: &'static str,
        value: &Value<'_>,
    ) -> Option<T> {
        let text = value.get_ref().as_str().unwrap_or_default();
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let names: Vec<&'static str> = words.iter().map(|(word, _)| *word).collect();
            let meant = nearest(text, &names).unwrap_or(usual);
            let (last, others) = names.split_last().unwrap_or((&usual, &[]));
            let wanted = format!("{} or {last}", others.join(", "));
            self.refuse(key, &wanted, value, &format!("\"{meant}\""));
        }
        found.map(|(_, choice)| *choice)
    }

    /// The digits of a number, or what stands in quotes.
    fn amount(&self, value: &Value<'_>) -> String {
        let quoted = value.get_ref().as_str();
        let bare = self.text.get(value.span()).unwrap_or_default();
        quoted.map_or_else(|| bare.replace('_', ""), str::to_owned)
    }

    /// A text that is not blank.
    pub(super) fn text(&mut self, key: &str, example: &str, value: &Value<'_>) -> Option<String> {
        let text = value.get_ref().as_str().filter(|text| !text.trim().is_empty());
        if text.is_none() {
            self.refuse(key, "a text in quotes", value, example);
        }
        text.map(str::to_owned)
    }

    /// A command for `sh -c`.
    pub(super) fn command(
        &mut self,
        key: &str,
        example: &str,
        value: &Value<'_>,
    ) -> Option<String> {
        let run = value.get_ref().as_str().filter(|run| !run.trim().is_empty());
        match run {
            None => self.refuse(key, "a command in quotes", value, example),
            Some(run) if run.contains('\0') => {
                self.refuse(key, "a command without a NUL character", value, example);
            }
            // Detection at every start would run what nobody has written down or trusted.
            Some("auto") => {
                let what = format!(
                    "{key} cannot be `auto` in a file: write the command, or let `crew init` do it"
                );
                self.fault(&value.span(), what);
            }
            Some(run) => return Some(run.to_owned()),
        }
        None
    }
}
