//! Fields of foreign events, read without trust in their shape. A field of an unexpected type is
//! absent, so one changed field of a later client does not lose the event. Only the end of a list
//! is kept, because in memory its parts are many times as large as their text.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::activity::{ToolCall, changed, verb};
use super::words::start;
use crate::parse::amounts::whole;

/// The most parts of a list kept.
const LIST_MAX: usize = 1000;
/// The longest text of a tool call kept, in characters.
const CALL_CHARS: usize = 200;

/// A value of this type, or `None` for anything else.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Lenient<T>(pub(super) Option<T>);

pub(super) type TextField = Lenient<String>;
pub(super) type NumberField = Lenient<f64>;
pub(super) type FlagField = Lenient<bool>;

/// An amount of money of at least 0, as a number or as text; `None` for anything else.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Dollars(pub(super) Option<f64>);

/// The end of a list of objects. Parts of another type are left out; anything but a list is empty.
#[derive(Debug, Default)]
pub(super) struct ListField<T>(VecDeque<T>);

/// What a tool returned: a text, or the texts of a list of parts; empty for anything else.
#[derive(Debug, Default)]
pub(super) struct OutputField(pub(super) String);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputPart {
    text: TextField,
}

/// The arguments of a tool call that are worth showing, the most useful first.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolInput {
    command: TextField,
    #[serde(alias = "filePath")]
    file_path: TextField,
    path: TextField,
    pattern: TextField,
    url: TextField,
    query: TextField,
    description: TextField,
    prompt: TextField,
    notebook_path: TextField,
    #[serde(alias = "oldString", alias = "old_str")]
    old_string: TextField,
    #[serde(alias = "newString", alias = "new_str")]
    new_string: TextField,
    #[serde(alias = "file_text")]
    content: TextField,
    edits: ListField<EditInput>,
}

/// The texts of an edit.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EditInput {
    old_string: TextField,
    new_string: TextField,
}

impl TextField {
    pub(super) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl NumberField {
    /// The number as a count: without its fraction, never below zero.
    pub(super) fn count(self) -> u64 {
        self.0.map_or(0, whole)
    }

    /// The number as the exit status of a command.
    pub(super) fn exit(self) -> Option<i64> {
        self.0.and_then(|code| format!("{code:.0}").parse().ok())
    }

    /// The number as the status of an HTTP answer.
    pub(super) fn status(self) -> Option<u16> {
        self.0.and_then(|_| u16::try_from(self.count()).ok())
    }
}

impl FlagField {
    pub(super) fn is_unset(self) -> bool {
        self.0 == Some(false)
    }

    /// Anything but `true` counts as false.
    pub(super) fn is_set(self) -> bool {
        self.0 == Some(true)
    }
}

impl<T> ListField<T> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

impl ToolInput {
    /// The call of a tool with these arguments.
    pub(super) fn call(&self, tool: &str) -> ToolCall {
        let subject = self.argument().unwrap_or_default();
        ToolCall { lines: self.changed(), ..ToolCall::new(verb(tool), subject) }
    }

    /// The most useful argument, shortened.
    pub(super) fn argument(&self) -> Option<&str> {
        let Self { command, file_path, path, pattern, url, query, description, prompt, .. } = self;
        let file_path = if file_path.0.is_some() { file_path } else { &self.notebook_path };
        let texts = [command, file_path, path, pattern, url, query, description, prompt];
        texts.into_iter().find_map(TextField::text).map(|text| start(text, CALL_CHARS))
    }
}

impl ToolInput {
    /// The lines that the call adds and removes; `None` where it changes none.
    pub(super) fn changed(&self) -> Option<(usize, usize)> {
        let of = |old: &TextField, new: &TextField| {
            Some(changed(old.text().unwrap_or_default(), new.text()?))
        };
        let edits = self.edits.iter().filter_map(|edit| of(&edit.old_string, &edit.new_string));
        let edits = edits.reduce(|one, other| (one.0 + other.0, one.1 + other.1));
        edits
            .or(of(&self.old_string, &self.new_string))
            .or(of(&TextField::default(), &self.content))
    }
}

/// Reads a value of this type. A list is `None`, because serde would read it as an object's fields
/// in order.
fn read<'de, T: Deserialize<'de>>(raw: &'de RawValue) -> Option<T> {
    let text = Some(raw.get()).filter(|text| !text.starts_with('['))?;
    serde_json::from_str(text).ok()
}

/// Reads a text that is one JSON object; `None` for anything else.
pub(super) fn object<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str::<Lenient<T>>(text).ok()?.0
}

/// Reads a field that is an object; the default if it is anything else.
pub(super) fn part<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    source: D,
) -> Result<T, D::Error> {
    Ok(Lenient::deserialize(source)?.0.unwrap_or_default())
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Deserialize::deserialize(source).map(|raw| Self(read(raw)))
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let raw = Deserialize::deserialize(source)?;
        let text = || read::<String>(raw)?.trim().trim_start_matches('$').parse().ok();
        let amount = read(raw).or_else(text);
        Ok(Self(amount.filter(|amount: &f64| amount.is_finite() && *amount >= 0.0)))
    }
}

impl<'de> Deserialize<'de> for OutputField {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let raw: &RawValue = Deserialize::deserialize(source)?;
        let parts: ListField<OutputPart> = serde_json::from_str(raw.get()).unwrap_or_default();
        let texts: Vec<&str> = parts.iter().filter_map(|part| part.text.text()).collect();
        Ok(Self(read(raw).unwrap_or_else(|| texts.join("\n"))))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ListField<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let raw: &RawValue = Deserialize::deserialize(source)?;
        let list =
            serde_json::Deserializer::from_str(raw.get()).deserialize_seq(ListEnd(PhantomData));
        Ok(Self(list.unwrap_or_default()))
    }
}

struct ListEnd<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListEnd<T> {
    type Value = VecDeque<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<VecDeque<T>, A::Error> {
        let mut kept = VecDeque::new();
        while let Some(Lenient(part)) = parts.next_element()? {
            if let Some(part) = part {
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

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Entry {
        n: NumberField,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Event {
        word: TextField,
        number: NumberField,
        flag: FlagField,
        list: ListField<Entry>,
        #[serde(deserialize_with = "part")]
        part: Entry,
        may_be: Lenient<Entry>,
        #[serde(deserialize_with = "part")]
        call: ToolInput,
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
            assert_eq!(event.flag.is_set(), value == "true", "{value}");
            assert_eq!(event.list.iter().count(), usize::from(value.starts_with('[')), "{value}");
            assert_eq!(event.part.n.count(), 0, "{value}");
            assert_eq!(event.may_be.0.is_some(), value.starts_with('{'), "{value}");
            assert_eq!(event.call.argument(), None, "{value}");
        }
        let event = read("{}");
        assert!(event.word.text().is_none() && event.list.iter().next().is_none());
        assert_eq!(read(r#"{"number":-7}"#).number.count(), 0);
        assert_eq!(read(r#"{"number":12.9}"#).number.count(), 12);
        let of = |json: &str| (read(json).number.exit(), read(json).number.status());
        assert_eq!(of(r#"{"number":-1}"#), (Some(-1), Some(0)));
        assert_eq!(of(r#"{"number":429}"#), (Some(429), Some(429)));
        assert_eq!(of(r#"{"number":1e300}"#), (None, None));
        assert_eq!(of(r#"{"number":"7"}"#), (None, None));
    }

    #[test]
    fn a_field_that_cannot_be_read_costs_no_other() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for value in [r#""\ud800""#, "1e999", &deep, r#"{"n":1,"n":2}"#, "[{\"n\":1}"] {
            let json = format!(r#"{{"word":{value},"number":{value},"part":{value},"flag":true}}"#);
            let Ok(event) = serde_json::from_str::<Event>(&json) else {
                assert_eq!(value, "[{\"n\":1}", "only what is not JSON costs the event");
                continue;
            };
            assert!(event.flag.is_set() && event.word.text().is_none(), "{value:.99}");
            assert!(event.number.0.is_none() && event.part.n.0.is_none(), "{value:.99}");
        }
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
            assert_eq!(
                read(&format!(r#"{{"call":{input}}}"#)).call.argument(),
                expected,
                "{input}"
            );
        }
        let long = format!(r#"{{"call":{{"command":"{}"}}}}"#, "é".repeat(9000));
        assert_eq!(read(&long).call.argument().unwrap().chars().count(), CALL_CHARS);
    }
}
