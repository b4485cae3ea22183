//! The JSON of clients and agents: the payload that a client writes to a hook's stdin, and the
//! events that an agent prints. Only what crew needs is read, field by field, so a field with a new
//! shape elsewhere never loses the event. Unknown events and fields are not errors; a payload that
//! is not a JSON object is.

use regex::Captures;
use serde_json::{Map, Value};

use crate::parse::amounts::to_count;
use crate::parse::patterns::HALF_CHARACTER;
use engine::usage::Tokens;

/// Parses a JSON object of a client or an agent. The client counts in UTF-16 and may truncate a
/// string in the middle of a character. JSON can contain the remaining half, but a Rust string
/// cannot: it is replaced, so that the whole event is not lost because of it.
pub fn parse_object(bytes: &[u8]) -> serde_json::Result<Value> {
    let read = serde_json::from_slice(bytes);
    if read.is_err()
        && let Ok(text) = std::str::from_utf8(bytes)
        && text.trim_start().starts_with('{')
    {
        let whole = HALF_CHARACTER.replace_all(text, |escape: &Captures<'_>| {
            if escape.get(1).is_some() { "\\ufffd".to_owned() } else { escape[0].to_owned() }
        });
        return serde_json::from_slice(whole.as_bytes()).map(Value::Object);
    }
    read.map(Value::Object)
}

/// Whether a string is a session id. It becomes a file name and may contain nothing special to a
/// path.
pub fn is_session_id(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        && text != "null"
}

/// Reads a value by pointers, such as `/message/content`, without trust in its shape: a field of an
/// unexpected type is absent, so a changed field of a later client does not lose the event.
pub trait FieldsByPointer {
    /// The value at this pointer.
    fn at(&self, pointer: &str) -> Option<&Value>;

    /// The string at this pointer.
    fn text(&self, pointer: &str) -> Option<&str> {
        self.at(pointer)?.as_str()
    }

    /// An owned copy of the string at this pointer.
    fn owned(&self, pointer: &str) -> Option<String> {
        self.text(pointer).map(str::to_owned)
    }

    /// The first of these strings that is present.
    fn first(&self, pointers: &[&str]) -> Option<&str> {
        pointers.iter().find_map(|pointer| self.text(pointer))
    }

    /// The boolean at this pointer.
    fn flag(&self, pointer: &str) -> Option<bool> {
        self.at(pointer)?.as_bool()
    }

    /// The number at this pointer.
    fn number(&self, pointer: &str) -> Option<f64> {
        self.at(pointer)?.as_f64()
    }

    /// The members of the object at this pointer.
    fn members(&self, pointer: &str) -> Option<&Map<String, Value>> {
        self.at(pointer)?.as_object()
    }

    /// The items of the list at this pointer; empty for anything else.
    fn list(&self, pointer: &str) -> &[Value] {
        self.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The string at this pointer; empty if there is none.
    fn word(&self, pointer: &str) -> &str {
        self.text(pointer).unwrap_or_default()
    }

    /// Whether the string at this pointer equals `word`.
    fn is(&self, pointer: &str, word: &str) -> bool {
        self.text(pointer) == Some(word)
    }

    /// The number at this pointer as a count: without its fraction, never below zero.
    fn count(&self, pointer: &str) -> u64 {
        self.number(pointer).map_or(0, to_count)
    }

    /// The number at this pointer as the exit status of a command.
    fn exit(&self, pointer: &str) -> Option<i64> {
        self.number(pointer).and_then(|code| format!("{code:.0}").parse().ok())
    }

    /// The number at this pointer as the status of an HTTP answer.
    fn status(&self, pointer: &str) -> Option<u16> {
        self.number(pointer).and_then(|status| u16::try_from(to_count(status)).ok())
    }

    /// An amount of money of at least 0, as a number or as text.
    fn dollars(&self, pointer: &str) -> Option<f64> {
        let amount = match self.number(pointer) {
            Some(amount) => amount,
            None => self.text(pointer)?.trim().trim_start_matches('$').parse().ok()?,
        };
        Some(amount).filter(|amount| amount.is_finite() && *amount >= 0.0)
    }

    /// What was used, from pointers to the tokens of the input, of the cache read and written
    /// (which the input includes) and of the output.
    fn tokens(&self, [input, cache_read, cache_write, output]: [&str; 4]) -> Tokens {
        let input = self.count(input);
        let cache_read = self.count(cache_read).min(input);
        let cache_write = self.count(cache_write).min(input - cache_read);
        let input = input - cache_read - cache_write;
        Tokens { input, cache_write, cache_read, output: self.count(output), ..Tokens::default() }
    }
}

impl FieldsByPointer for Value {
    fn at(&self, pointer: &str) -> Option<&Value> {
        self.pointer(pointer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clients::{Hook, HookEvent, Stopped};

    fn parse(bytes: &[u8]) -> Result<Hook<'static>, String> {
        Hook::parse(bytes, &|_| None)
    }

    #[test]
    fn only_needed_fields_are_read_and_one_of_another_type_is_absent() {
        let stop = parse(
            br#"{"hook_event_name":"Stop","session_id":"a-1","cwd":"/repo","stop_hook_active":true,
                 "prompt_id":7,"last_assistant_message":"done","background_tasks":"new shape"}"#,
        )
        .unwrap();
        assert_eq!((&**stop.name(), stop.session_id().as_deref()), ("Stop", Some("a-1")));
        assert_eq!(*stop.turn(), None);
        let last_message = Some("done".to_owned());
        let stopped = Stopped { last_message, background: Vec::new() };
        assert_eq!(*stop.event(), HookEvent::Stopped(stopped));
    }

    #[test]
    fn a_session_id_that_could_name_another_file_is_refused() {
        for id in ["", "null", "../x", "a/b", "a b", &"x".repeat(129)] {
            let payload = format!(r#"{{"hook_event_name":"Stop","session_id":"{id}"}}"#);
            assert_eq!(*parse(payload.as_bytes()).unwrap().session_id(), None, "{id:?}");
        }
    }

    #[test]
    fn junk_gives_one_line_that_says_what_is_wrong() {
        for (junk, expected) in [
            (&b"{"[..], "not a JSON object"),
            (b"[1]", "not a JSON object"),
            (b"{\"session_id\":\"a\"}", "no hook_event_name"),
            (b"{\"hook_event_name\":\"St\xffop\"}", "not a JSON object"),
        ] {
            let error = parse(junk).unwrap_err();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced_and_a_whole_one_kept() {
        let table = [
            (r"cut \ud83d", "cut \u{fffd}"),
            (r"\uDE00 cut", "\u{fffd} cut"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
            (r"\ud83d\n\\ud83d \u00e9\\", "\u{fffd}\n\\ud83d é\\"),
        ];
        for (escaped, expected) in table {
            let payload = format!(r#"{{"prompt":"{escaped}"}}"#);
            assert_eq!(object(&payload).text("/prompt"), Some(expected));
        }
    }

    fn object(json: &str) -> Value {
        parse_object(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_field_of_another_kind_is_absent() {
        for value in ["null", "true", "{\"n\":[1]}", "[[],7,{}]", "-7", "1.5", "\"x\""] {
            let event = object(&format!("{{\"new\":1, \"it\" : {value} }}"));
            assert_eq!(event.text("/it").is_some(), value == "\"x\"", "{value}");
            assert_eq!(event.is("/it", "x"), value == "\"x\"", "{value}");
            assert_eq!(event.number("/it").is_some(), ["-7", "1.5"].contains(&value), "{value}");
            assert_eq!(event.flag("/it").is_some(), value == "true", "{value}");
            assert_eq!(event.list("/it").is_empty(), !value.starts_with('['), "{value}");
            assert_eq!(event.count("/it/n"), 0, "{value}");
            assert_eq!(event.members("/it").is_some(), value.starts_with('{'), "{value}");
        }
        assert_eq!(object(" {\"n\":-7}").count("/n"), 0);
        assert_eq!(object(r#"{"n":12.9}"#).count("/n"), 12);
        assert_eq!(object(r#"{"n":1,"n":2}"#).count("/n"), 2);
        for (json, exit, status) in [
            (r#"{"n":-1}"#, Some(-1), Some(0)),
            (r#"{"n":429}"#, Some(429), Some(429)),
            (r#"{"n":1e300}"#, None, None),
            (r#"{"n":"7"}"#, None, None),
        ] {
            assert_eq!((object(json).exit("/n"), object(json).status("/n")), (exit, status));
        }
    }

    #[test]
    fn an_event_with_half_a_surrogate_pair_is_read_if_it_is_an_object() {
        assert_eq!(object(r#"{"text":"a \ud800","flag":true}"#).flag("/flag"), Some(true));
        for text in ["", "[]", "[{\"n\":1}]", "7", "{\"n\":1", "{} {}"] {
            assert!(parse_object(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_payload_makes_a_reader_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }
    }
}
