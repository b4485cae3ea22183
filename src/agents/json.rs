//! JSON objects of foreign events. Each field is read by its path, without trust in its shape: one
//! of an unexpected type is absent, so a changed field of a later client does not lose the event.
//! Nothing is copied but what is asked for: in memory a line's parts are many times as large as
//! their text.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::parse::amounts::whole;

/// The most parts of a list kept.
const LIST_MAX: usize = 1000;

/// A JSON object as its text. One that is absent has no fields.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct JsonObject<'line>(&'line str);

impl<'line> JsonObject<'line> {
    /// Reads a text that is one JSON object; `None` for anything else.
    pub(super) fn of(text: &'line str) -> Option<Self> {
        let value: &RawValue = serde_json::from_slice(text.as_bytes()).ok()?;
        value.get().starts_with('{').then_some(Self(value.get()))
    }

    /// The JSON text of the field at this path: names with dots between them.
    fn json(self, path: &str) -> Option<&'line str> {
        path.split('.').try_fold(self.0, |object, name| {
            let mut object = serde_json::Deserializer::from_str(object);
            Some(object.deserialize_map(Named(name)).ok()??.get())
        })
    }

    fn value<T: Deserialize<'line>>(self, path: &str) -> Option<T> {
        serde_json::from_slice(self.json(path)?.as_bytes()).ok()
    }

    /// Whether there is a field other than `null` at this path.
    pub(super) fn has(self, path: &str) -> bool {
        self.json(path).is_some_and(|json| json != "null")
    }

    pub(super) fn text(self, path: &str) -> Option<String> {
        self.value(path)
    }

    /// The text at this path; empty where there is none.
    pub(super) fn word(self, path: &str) -> String {
        self.text(path).unwrap_or_default()
    }

    /// Whether the field at this path is this text.
    pub(super) fn is(self, path: &str, word: &str) -> bool {
        self.text(path).is_some_and(|text| text == word)
    }

    pub(super) fn flag(self, path: &str) -> Option<bool> {
        self.value(path)
    }

    pub(super) fn number(self, path: &str) -> Option<f64> {
        self.value(path)
    }

    /// The number at this path as a count: without its fraction, never below zero.
    pub(super) fn count(self, path: &str) -> u64 {
        self.number(path).map_or(0, whole)
    }

    /// The number at this path as the exit status of a command.
    pub(super) fn exit(self, path: &str) -> Option<i64> {
        self.number(path).and_then(|code| format!("{code:.0}").parse().ok())
    }

    /// The number at this path as the status of an HTTP answer.
    pub(super) fn status(self, path: &str) -> Option<u16> {
        self.number(path).and_then(|status| u16::try_from(whole(status)).ok())
    }

    /// An amount of money of at least 0, as a number or as text.
    pub(super) fn dollars(self, path: &str) -> Option<f64> {
        let text = || self.text(path)?.trim().trim_start_matches('$').parse().ok();
        let amount = self.number(path).or_else(text);
        amount.filter(|amount| amount.is_finite() && *amount >= 0.0)
    }

    /// The object at this path; `None` for anything else.
    pub(super) fn object(self, path: &str) -> Option<Self> {
        Self::of(self.json(path)?)
    }

    /// The fields of the object at this path, by name; `None` for one that is not an object itself.
    pub(super) fn objects(self, path: &str) -> Option<BTreeMap<String, Option<Self>>> {
        let fields: BTreeMap<String, &RawValue> = self.value(path)?;
        Some(fields.into_iter().map(|(name, value)| (name, Self::of(value.get()))).collect())
    }

    /// The objects at the end of a list; empty for anything else.
    pub(super) fn list(self, path: &str) -> VecDeque<Self> {
        let mut list = serde_json::Deserializer::from_str(self.json(path).unwrap_or_default());
        list.deserialize_seq(ListEnd).unwrap_or_default()
    }
}

/// Finds the field of this name, the last if there are several.
struct Named<'name>(&'name str);

impl<'line> Visitor<'line> for Named<'_> {
    type Value = Option<&'line RawValue>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'line>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some((name, value)) = fields.next_entry::<String, &RawValue>()? {
            if name == self.0 {
                found = Some(value);
            }
        }
        Ok(found)
    }
}

/// Keeps the last objects of a list.
struct ListEnd;

impl<'line> Visitor<'line> for ListEnd {
    type Value = VecDeque<JsonObject<'line>>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'line>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut kept = VecDeque::new();
        while let Some(part) = parts.next_element::<&RawValue>()? {
            if let Some(part) = JsonObject::of(part.get()) {
                if kept.len() == LIST_MAX {
                    kept.pop_front();
                }
                kept.push_back(part);
            }
        }
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> JsonObject<'_> {
        JsonObject::of(json).unwrap_or_else(|| panic!("{json}"))
    }

    #[test]
    fn a_field_of_another_kind_is_absent() {
        for value in ["null", "true", "{\"n\":[1]}", "[[],7,{}]", "-7", "1.5", "\"x\""] {
            let event = format!("{{\"new\":1, \"it\" : {value} }}");
            let event = read(&event);
            assert_eq!(event.text("it").is_some(), value == "\"x\"", "{value}");
            assert_eq!(event.is("it", "x"), value == "\"x\"", "{value}");
            assert_eq!(event.number("it").is_some(), ["-7", "1.5"].contains(&value), "{value}");
            assert_eq!(event.flag("it"), (value == "true").then_some(true), "{value}");
            assert_eq!(event.list("it").len(), usize::from(value.starts_with('[')), "{value}");
            assert_eq!(event.count("it.n"), 0, "{value}");
            assert_eq!(event.object("it").is_some(), value.starts_with('{'), "{value}");
            assert_eq!(event.objects("it").is_some(), value.starts_with('{'), "{value}");
            assert_eq!(event.has("it"), value != "null", "{value}");
            assert!(!event.has("it.x") && !event.has("x"), "{value}");
        }
        for text in ["", "[]", "[{\"n\":1}]", "7", "{\"n\":1", "{} {}"] {
            assert!(JsonObject::of(text).is_none(), "{text}");
        }
        assert_eq!(read(" {\"n\":-7}").count("n"), 0);
        assert_eq!(read(r#"{"n":12.9}"#).count("n"), 12);
        assert_eq!(read(r#"{"n":1,"n":2}"#).count("n"), 2);
        let of = |json| (read(json).exit("n"), read(json).status("n"));
        assert_eq!(of(r#"{"n":-1}"#), (Some(-1), Some(0)));
        assert_eq!(of(r#"{"n":429}"#), (Some(429), Some(429)));
        assert_eq!(of(r#"{"n":1e300}"#), (None, None));
        assert_eq!(of(r#"{"n":"7"}"#), (None, None));
    }

    #[test]
    fn a_field_that_cannot_be_read_costs_no_other() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for value in [r#""\ud800""#, "1e999", &deep, r#"{"n":1e999}"#, "[{\"n\":1}"] {
            let json = format!(r#"{{"it":{value},"flag":true,"it2":{value}}}"#);
            let Some(event) = JsonObject::of(&json) else {
                assert_eq!(value, "[{\"n\":1}", "only what is not JSON costs the event");
                continue;
            };
            assert_eq!(event.flag("flag"), Some(true), "{value:.99}");
            assert!(event.text("it").is_none() && event.number("it").is_none(), "{value:.99}");
            assert!(event.number("it.n").is_none() && event.list("it").is_empty(), "{value:.99}");
        }
    }

    #[test]
    fn only_the_end_of_a_list_is_kept() {
        let numbers: Vec<String> = (0..5000).map(|number| format!(r#"{{"n":{number}}}"#)).collect();
        let event = format!(r#"{{"list":[{}]}}"#, numbers.join(","));
        let list = read(&event).list("list");
        assert_eq!((list.len(), list.back().unwrap().count("n")), (LIST_MAX, 4999));
    }
}
