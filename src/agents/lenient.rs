//! Fields of foreign events, read without trust in their shape. A field of another kind than it was is
//! absent, so that a later client's event is not lost for one of its fields; of a list only the end is
//! kept, because in memory its parts are many times as large as their text.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::words::start;

/// The most parts of a list that are kept.
const LIST_MAX: usize = 1000;
/// The longest text of a tool call that is kept, in characters.
const CALL_CHARS: usize = 200;
/// What a tool call's input tells a person, the most telling first.
const TELLING: [&str; 8] =
    ["command", "file_path", "path", "pattern", "url", "query", "description", "prompt"];

/// A text; anything else is none.
#[derive(Debug, Default, Clone)]
pub(super) struct Word(Option<String>);

/// A number; anything else is none.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Number(pub(super) Option<f64>);

/// An amount of money that is not below nothing, as a number or its text; anything else is none.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Dollars(pub(super) Option<f64>);

/// Whether it is said to be so; anything but yes is no.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Flag(pub(super) bool);

/// The end of a list of objects, without what is none in it; anything else is an empty one.
#[derive(Debug)]
pub(super) struct List<T>(VecDeque<T>);

/// What a tool is called with: the one text of it that tells a person most, shortened.
#[derive(Debug, Default)]
pub(super) struct Call(Option<String>);

impl Word {
    pub(super) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Number {
    /// The number as a count: without its fraction, never below zero.
    pub(super) fn count(self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float is cut to what fits"
        )]
        self.0.map_or(0, |number| number as u64)
    }
}

/// An object; anything else is none.
#[derive(Debug)]
pub(super) struct Part<T>(pub(super) Option<T>);

/// Reads a field that is an object, and is empty where it is anything else.
pub(super) fn part<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    source: D,
) -> Result<T, D::Error> {
    Ok(Part::deserialize(source)?.0.unwrap_or_default())
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> List<T> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

impl Call {
    pub(super) fn told(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Ok(match source.deserialize_any(Any)? {
            Value::Text(text) => Self(Some(text)),
            _ => Self(None),
        })
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Ok(match source.deserialize_any(Any)? {
            Value::Number(number) => Self(Some(number)),
            _ => Self(None),
        })
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let amount = match source.deserialize_any(Any)? {
            Value::Number(number) => Some(number),
            Value::Text(text) => text.trim().trim_start_matches('$').parse::<f64>().ok(),
            _ => None,
        };
        Ok(Self(amount.filter(|amount| amount.is_finite() && *amount >= 0.0)))
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Ok(Self(matches!(source.deserialize_any(Any)?, Value::Flag(true))))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Part<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Object(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Call {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Ok(match source.deserialize_any(Any)? {
            Value::Call(told) => Self(told),
            _ => Self(None),
        })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Parts(PhantomData))
    }
}

enum Value {
    Text(String),
    Number(f64),
    Flag(bool),
    Call(Option<String>),
    Other,
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("anything")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    #[expect(clippy::cast_precision_loss, reason = "no count or status is that large")]
    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "no count or status is that large")]
    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Value, A::Error> {
        while parts.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut told: Option<(usize, String)> = None;
        while let Some(key) = entries.next_key::<String>()? {
            let Some(rank) = TELLING.iter().position(|name| *name == key) else {
                entries.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = entries.next_value::<Word>()?;
            let is_better = told.as_ref().is_none_or(|(best, _)| rank < *best);
            if let (Some(text), true) = (value.text(), is_better) {
                told = Some((rank, start(text, CALL_CHARS).to_owned()));
            }
        }
        Ok(Value::Call(told.map(|(_, text)| text)))
    }
}

struct Parts<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
    type Value = List<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<List<T>, A::Error> {
        let mut kept = VecDeque::new();
        while let Some(Part(part)) = parts.next_element()? {
            let Some(part) = part else { continue };
            if kept.len() == LIST_MAX {
                kept.pop_front();
            }
            kept.push_back(part);
        }
        Ok(List(kept))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<List<T>, E> {
        Ok(List::default())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<List<T>, E> {
        Ok(List::default())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<List<T>, E> {
        Ok(List::default())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<List<T>, E> {
        Ok(List::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<List<T>, E> {
        Ok(List::default())
    }

    fn visit_unit<E: Error>(self) -> Result<List<T>, E> {
        Ok(List::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<List<T>, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(List::default())
    }
}

struct Object<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
    type Value = Part<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Part<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(entries)).map(|part| Part(Some(part)))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Part<T>, E> {
        Ok(Part(None))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Part<T>, E> {
        Ok(Part(None))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Part<T>, E> {
        Ok(Part(None))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Part<T>, E> {
        Ok(Part(None))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Part<T>, E> {
        Ok(Part(None))
    }

    fn visit_unit<E: Error>(self) -> Result<Part<T>, E> {
        Ok(Part(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Part<T>, A::Error> {
        while parts.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Part(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    struct Entry {
        #[serde(default)]
        n: Number,
    }

    #[derive(Debug, Deserialize)]
    struct Event {
        #[serde(default)]
        word: Word,
        #[serde(default)]
        number: Number,
        #[serde(default)]
        flag: Flag,
        #[serde(default)]
        list: List<Entry>,
        #[serde(default, deserialize_with = "part")]
        part: Entry,
        #[serde(default)]
        may_be: Part<Entry>,
        #[serde(default)]
        call: Call,
    }

    fn read(json: &str) -> Event {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    #[test]
    fn a_field_of_another_kind_is_absent() {
        for value in ["null", "true", "{\"n\":[1]}", "[[],7,{}]", "-7", "1.5", "\"x\""] {
            let names = ["word", "number", "flag", "list", "part", "may_be", "call", "new"];
            let all = names.map(|name| format!("\"{name}\":{value}")).join(",");
            let all = format!("{{{all}}}");
            let event = read(&all);
            assert_eq!(event.word.text().is_some(), value == "\"x\"", "{value}");
            assert_eq!(event.number.0.is_some(), ["-7", "1.5"].contains(&value), "{value}");
            assert_eq!(event.flag.0, value == "true", "{value}");
            assert_eq!(event.list.iter().count(), usize::from(value.starts_with('[')), "{value}");
            assert_eq!(event.part.n.count(), 0, "{value}");
            assert_eq!(event.may_be.0.is_some(), value.starts_with('{'), "{value}");
            assert_eq!(event.call.told(), None, "{value}");
        }
        let event = read("{}");
        assert!(event.word.text().is_none() && event.list.iter().next().is_none());
        assert_eq!(read(r#"{"number":-7}"#).number.count(), 0);
        assert_eq!(read(r#"{"number":12.9}"#).number.count(), 12);
    }

    #[test]
    fn only_the_end_of_a_list_is_kept() {
        let numbers: Vec<String> = (0..5000).map(|number| format!(r#"{{"n":{number}}}"#)).collect();
        let event = read(&format!(r#"{{"list":[{}]}}"#, numbers.join(",")));
        assert_eq!(event.list.iter().count(), LIST_MAX);
        assert_eq!(event.list.iter().last().unwrap().n.count(), 4999);
    }

    #[test]
    fn a_call_is_told_by_the_most_telling_of_its_texts() {
        let table = [
            (r#"{"description":"why","command":"ls","x":1}"#, Some("ls")),
            (r#"{"command":{},"file_path":"a.rs"}"#, Some("a.rs")),
            (r#"{"todos":[]}"#, None),
        ];
        for (input, expected) in table {
            assert_eq!(read(&format!(r#"{{"call":{input}}}"#)).call.told(), expected, "{input}");
        }
        let long = format!(r#"{{"call":{{"command":"{}"}}}}"#, "é".repeat(9000));
        assert_eq!(read(&long).call.told().unwrap().chars().count(), CALL_CHARS);
    }
}
