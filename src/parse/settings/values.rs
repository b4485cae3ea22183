//! The values of a settings file. Each refusal names the key, the value found,
//! and a line that works.

use toml::de::DeValue;

use super::{Reader, Value};
use crate::engine::claim::promise::Promise;
use crate::engine::record::{Permissions, Proof, QuestionMode};
use crate::engine::settings::{self, KeyRow, Kind};
use crate::engine::test_changes::TestChanges;
use crate::engine::test_changes::trial::Prove;
use crate::parse::amounts;
use crate::parse::spelling::{nearest, shown};

/// The value that a refusal suggests for a setting. The engine's rows do not name an agent.
pub(super) fn example(row: &KeyRow) -> &'static str {
    match row.kind {
        Kind::Name => "\"claude\"",
        Kind::Agents => "[\"codex\"]",
        _ => row.example,
    }
}

/// A value, or what should have been written instead.
type Taken<T> = Result<T, String>;

/// A value as it was written, and what a refusal says about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written<'text> {
    pub(super) name: &'text str,
    /// A sensible value, as a file writes it.
    pub(super) example: &'text str,
    pub(super) text: &'text str,
    pub(super) value: &'text DeValue<'text>,
}

impl<'text> Written<'text> {
    /// "KEY takes WANTED, not VALUE: KEY = EXAMPLE".
    fn refusal(self, wanted: &str, example: &str) -> String {
        let (name, text) = (self.name, shown(self.text));
        format!("{name} takes {wanted}, not {text}: {name} = {example}")
    }

    fn or<T>(self, found: Option<T>, wanted: &str) -> Taken<T> {
        found.ok_or_else(|| self.refusal(wanted, self.example))
    }

    /// The text inside the quotes of a file.
    fn quoted(self) -> Option<&'text str> {
        self.value.as_str()
    }

    /// A text that is not blank.
    pub(super) fn text(self) -> Taken<String> {
        let text = self.quoted().filter(|text| !text.trim().is_empty());
        self.or(text.map(str::to_owned), "a text in quotes")
    }

    fn switch(self) -> Option<bool> {
        self.value.as_bool()
    }

    /// The digits of a number, or the text inside quotes.
    fn amount(self) -> String {
        self.quoted().map_or_else(|| self.text.replace('_', ""), str::to_owned)
    }

    fn count(self) -> Taken<u64> {
        let (number, wanted) = match self.value.as_integer() {
            None => (None, "a whole number without quotes"),
            Some(integer) => (
                u32::from_str_radix(integer.as_str(), integer.radix()).ok(),
                "a whole number from 0 (no limit) to 4294967295",
            ),
        };
        self.or(number.map(u64::from), wanted)
    }

    fn seconds(self) -> Taken<u64> {
        let zero = self.value.as_integer().filter(|integer| integer.as_str() == "0").map(|_| "0");
        let text = self.or(zero.or(self.quoted()), "a time with its unit, in quotes")?;
        let found = amounts::duration(text).map(amounts::whole_seconds);
        found.map_err(|wanted| self.refusal(wanted, self.example))
    }

    /// A duration other than 0.
    pub(super) fn some_seconds(self) -> Taken<u64> {
        let seconds = self.seconds()?;
        self.or(Some(seconds).filter(|seconds| *seconds > 0), "a time of at least a second")
    }

    /// A list of arguments.
    pub(super) fn words(self) -> Taken<Vec<String>> {
        let words = self.value.as_array().and_then(|list| {
            let words = list.iter().map(|word| word.get_ref().as_str().map(str::to_owned));
            words.collect::<Option<Vec<String>>>()
        });
        let words = words.filter(|words| !words.iter().any(|word| word.contains('\0')));
        self.or(words, "a list of words, each in quotes")
    }

    /// A list of names; a text holds them between commas.
    fn names(self) -> Taken<Vec<String>> {
        let Some(text) = self.quoted() else { return self.words() };
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(names.map(str::to_owned).collect())
    }

    /// One of a few words. If no word is similar, the example is suggested.
    pub(super) fn choice<T: Copy>(self, all: &[T], label: fn(T) -> &'static str) -> Taken<T> {
        let text = self.quoted().unwrap_or_default();
        let found = all.iter().find(|choice| label(**choice) == text);
        found.copied().ok_or_else(|| {
            let usual = self.example.trim_matches('"');
            let names: Vec<&str> = all.iter().map(|choice| label(*choice)).collect();
            let meant = nearest(text, &names).unwrap_or(usual);
            let (last, others) = names.split_last().unwrap_or((&usual, &[]));
            let wanted = format!("{} or {last}", others.join(", "));
            self.refusal(&wanted, &format!("{meant:?}"))
        })
    }

    /// A command for `sh -c`.
    pub(super) fn command(self) -> Taken<String> {
        let run = self.quoted().filter(|run| !run.trim().is_empty());
        let run = self.or(run, "a command in quotes")?;
        // Detection at every start would run commands that nobody has written down or trusted.
        if run == "auto" {
            return Err(format!(
                "{} cannot be `auto` in a file: write the command, or let `crew init` do it",
                self.name
            ));
        }
        let run = Some(run).filter(|run| !run.contains('\0'));
        self.or(run.map(str::to_owned), "a command without a NUL character")
    }

    /// The value of a key of this kind.
    pub(super) fn read(self, kind: Kind) -> Taken<settings::Value> {
        use settings::Value::{self as Is, Number, Off, Switch, Text};
        match kind {
            Kind::Iterations | Kind::Turns | Kind::Days => self.count().map(Number),
            Kind::Seconds => self.seconds().map(Number),
            Kind::Micros => {
                let dollars = amounts::dollars(&self.amount());
                Ok(Number(amounts::micros(self.or(dollars, "an amount in US dollars")?)))
            }
            Kind::Tokens => {
                let wanted = "a number of tokens, such as 500k or 2M";
                self.or(amounts::tokens(&self.amount()), wanted).map(Number)
            }
            Kind::Percent => {
                let percent = amounts::percent(&self.amount());
                self.or(percent, "a part of the context, from 0 (never) to 100%")
                    .map(|it| Number(it.into()))
            }
            Kind::Bytes => {
                let wanted = "a size with its unit, such as 500MiB or 2GiB";
                self.or(amounts::bytes(&self.amount()), wanted).map(Number)
            }
            Kind::Switch => {
                self.switch().map(Switch).ok_or_else(|| self.refusal("true or false", "true"))
            }
            Kind::Promise | Kind::Branch if self.switch() == Some(false) => Ok(Off),
            Kind::Promise => {
                let promise = Promise::new(&self.text()?);
                promise.map(Is::Promise).map_err(|error| format!("{}: {error}", self.name))
            }
            Kind::Proof => self.choice(&Proof::REQUIRED, Proof::label).map(Is::Proof),
            Kind::Prove => self.choice(&Prove::ALL, Prove::label).map(Is::Prove),
            Kind::TestChanges => {
                self.choice(&TestChanges::ALL, TestChanges::label).map(Is::TestChanges)
            }
            Kind::Questions => {
                self.choice(&QuestionMode::ALL, QuestionMode::label).map(Is::Questions)
            }
            Kind::Name => self.text().map(Text),
            Kind::Model => {
                let is_name = |text: &String| {
                    !text.is_empty() && !text.starts_with('-') && !text.contains('\0')
                };
                let name = Some(self.text()?).filter(is_name);
                self.or(name, "the name of a model").map(Text)
            }
            Kind::Permissions => {
                self.choice(&Permissions::ALL, Permissions::label).map(Is::Permissions)
            }
            Kind::Branch => {
                let name = self.quoted().filter(|text| is_branch(text)).map(str::to_owned);
                self.or(name, "a branch in quotes, or false").map(Text)
            }
            Kind::Agents => self.names().map(Is::Words),
            Kind::Words => self.words().map(Is::Words),
            Kind::Commands(_) | Kind::Globs => self.or(None, "a list"),
        }
    }
}

/// Whether git could accept a text as a branch, and not as an option. Whether the branch exists is
/// checked at the start.
pub(in crate::parse) fn is_branch(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

impl Reader<'_> {
    /// The result of `read` for a value; an error is recorded as a fault.
    pub(super) fn read<'value, T>(
        &mut self,
        name: &'value str,
        example: &'value str,
        value: &'value Value<'value>,
        read: impl FnOnce(Written<'value>) -> Taken<T>,
    ) -> Option<T>
    where
        Self: 'value,
    {
        let text = self.text.get(value.span()).unwrap_or_default();
        let found = read(Written { name, example, text, value: value.get_ref() });
        found.map_err(|fault| self.fault(&value.span(), fault)).ok()
    }

    /// "KEY takes WANTED, not VALUE: KEY = EXAMPLE".
    pub(super) fn refuse(&mut self, name: &str, wanted: &str, value: &Value<'_>, example: &str) {
        self.read::<()>(name, example, value, |written| written.or(None, wanted));
    }
}
