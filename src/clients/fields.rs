//! The JSON a client writes to a hook's stdin. Only what crew needs is read, field by field, so a
//! field with a new shape elsewhere never loses the event. Unknown events and fields are not
//! errors; a payload that is not a JSON object is.

use serde_json::{Map, Value};

/// The fields of a payload that nobody has taken yet.
#[derive(Debug)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a payload. The error is one line for stderr.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes)
            .or_else(|_| serde_json::from_slice(&without_half_characters(bytes)))
            .map(Self)
            .map_err(|error| format!("the hook's payload is not a JSON object ({error})"))
    }

    /// Takes a text; a field of another type is absent.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let Value::String(text) = self.value(name)? else { return None };
        Some(text)
    }

    /// A text, which stays for later readers.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    /// Takes any value.
    pub fn value(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }
}

/// The client counts in UTF-16 and may cut a text in the middle of a character. JSON can hold the
/// remaining half, but text cannot. It is replaced, so that the whole event is not lost for it.
fn without_half_characters(bytes: &[u8]) -> Vec<u8> {
    let mut mended = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        let width = match (first, escaped_unit(rest)) {
            (b'\\', Some(0xd800..=0xdbff)) if rest.get(6..).is_some_and(is_low_half) => 12,
            (b'\\', Some(0xd800..=0xdfff)) => {
                mended.extend_from_slice(b"\\ufffd");
                rest = &rest[6..];
                continue;
            }
            (b'\\', None) if !after.is_empty() => 2,
            _ => 1,
        };
        mended.extend_from_slice(&rest[..width]);
        rest = &rest[width..];
    }
    mended
}

fn is_low_half(bytes: &[u8]) -> bool {
    matches!(escaped_unit(bytes), Some(0xdc00..=0xdfff))
}

/// The UTF-16 unit of an escape at the very beginning.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// A session id names a file, so it may hold nothing that a path could.
pub fn is_session_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=128).contains(&text.len()) && text.bytes().all(plain) && text != "null"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clients::{Hook, HookEvent, Stopped};

    fn parse(bytes: &[u8]) -> Result<Hook<'static>, String> {
        Hook::read(bytes, &|_| None)
    }

    #[test]
    fn what_crew_needs_is_taken_and_a_field_of_another_shape_is_absent() {
        let stop = parse(
            br#"{"hook_event_name":"Stop","session_id":"a-1","cwd":"/repo","stop_hook_active":true,
                 "prompt_id":7,"last_assistant_message":"done","background_tasks":"new shape"}"#,
        )
        .unwrap();
        assert_eq!((&*stop.name, stop.session_id.as_deref()), ("Stop", Some("a-1")));
        assert_eq!(stop.turn, None);
        let last_message = Some("done".to_owned());
        let stopped = Stopped { last_message, background: Vec::new() };
        assert_eq!(stop.event, HookEvent::Stopped(stopped));
    }

    #[test]
    fn a_session_id_that_could_name_another_file_is_no_session() {
        for id in ["", "null", "../x", "a/b", "a b", &"x".repeat(129)] {
            let payload = format!(r#"{{"hook_event_name":"Stop","session_id":"{id}"}}"#);
            assert_eq!(parse(payload.as_bytes()).unwrap().session_id, None, "{id:?}");
        }
    }

    #[test]
    fn junk_is_one_line_that_says_what_is_wrong() {
        for (junk, expected) in [
            (&b"{"[..], "not a JSON object"),
            (b"[1]", "not a JSON object"),
            (b"{\"session_id\":\"a\"}", "no hook_event_name"),
            (b"{\"hook_event_name\":\"St\xffop\"}", "not a JSON object"),
        ] {
            let complaint = parse(junk).unwrap_err();
            assert!(complaint.contains(expected) && !complaint.contains('\n'), "{complaint}");
        }
    }

    #[test]
    fn half_a_character_is_replaced_and_a_whole_one_kept() {
        let table = [
            (r"cut \ud83d", "cut \u{fffd}"),
            (r"\uDE00 cut", "\u{fffd} cut"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
            (r"\ud83d\n\\ud83d \u00e9\\", "\u{fffd}\n\\ud83d é\\"),
        ];
        for (escaped, expected) in table {
            let payload = format!(r#"{{"prompt":"{escaped}"}}"#);
            let found = Fields::parse(payload.as_bytes()).unwrap().take("prompt");
            assert_eq!(found.as_deref(), Some(expected));
        }
    }

    proptest! {
        #[test]
        fn no_payload_makes_a_reader_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }
    }
}
