//! The JSON a client writes to a hook's stdin. Only what crew needs is taken, field by field, so that a
//! field of a new shape elsewhere never loses the event; unknown events and fields are not errors.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::patterns::PASTED_ELEMENT;

/// One event of the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    pub event: String,
    /// Absent, empty or a bare "null" means that no loop can be ours.
    pub session_id: Option<String>,
    pub cwd: Option<PathBuf>,
    pub transcript: Option<PathBuf>,
    pub prompt_id: Option<String>,
    /// Present only in a subagent's events, which are not ours.
    pub agent_id: Option<String>,
    pub last_message: Option<String>,
    /// `UserPromptSubmit`: what the user typed.
    pub prompt: Option<String>,
    /// `UserPromptExpansion`: `crew:loop` and the like, and the raw text after it.
    pub command_name: Option<String>,
    pub command_args: Option<String>,
    /// `SessionStart`: startup, resume, clear, compact, fork. `UserPromptSubmit`: who wrote the prompt; the
    /// newest client tried declares it and does not send it yet (2.1.330).
    pub source: Option<String>,
    /// `SessionEnd`.
    pub reason: Option<String>,
    /// `StopFailure`: the client's word for what went wrong.
    pub error: Option<String>,
    /// `Notification`: `idle_prompt` and others.
    pub notification: Option<String>,
    /// `Stop`: what the client still runs in the background.
    pub background: Vec<Task>,
}

impl Payload {
    /// Whether the client says of a prompt that somebody else than the user wrote it: a schedule, a peer.
    pub fn is_another_authors(&self) -> bool {
        self.source.as_deref().is_some_and(|source| !matches!(source, "user" | "sdk"))
    }
}

/// Work the client runs in the background.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    pub id: String,
    /// shell, subagent, monitor, workflow, teammate; others may come.
    pub kind: String,
    pub description: String,
}

/// Reads a payload. The error is one line for stderr.
pub fn parse(bytes: &[u8]) -> Result<Payload, String> {
    let mut fields: Map<String, Value> = serde_json::from_slice(bytes)
        .or_else(|_| serde_json::from_slice(&without_half_characters(bytes)))
        .map_err(|error| format!("the hook's payload is no JSON object ({error})"))?;
    let background = fields.remove("background_tasks").map_or_else(Vec::new, |it| tasks(&it));
    let mut text = |name: &str| match fields.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let event = text("hook_event_name").ok_or("the hook's payload has no hook_event_name")?;
    Ok(Payload {
        event,
        session_id: text("session_id").filter(|id| is_session_id(id)),
        cwd: text("cwd").map(PathBuf::from),
        transcript: text("transcript_path").map(PathBuf::from),
        prompt_id: text("prompt_id"),
        agent_id: text("agent_id"),
        last_message: text("last_assistant_message"),
        prompt: text("prompt"),
        command_name: text("command_name"),
        command_args: text("command_args"),
        source: text("source"),
        reason: text("reason"),
        error: text("error"),
        notification: text("notification_type"),
        background,
    })
}

fn tasks(value: &Value) -> Vec<Task> {
    let text = |task: &Value, name: &str| task[name].as_str().unwrap_or_default().to_owned();
    let listed = value.as_array().into_iter().flatten();
    let running = listed.filter(|task| task["status"].as_str().is_none_or(|it| it == "running"));
    running
        .map(|task| Task {
            id: text(task, "id"),
            kind: text(task, "type"),
            description: text(task, "description"),
        })
        .collect()
}

/// The client counts in UTF-16 and may cut a text in the middle of a character. JSON can hold the half that
/// is left, text cannot; it is replaced, because a whole stop must not be lost for it.
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

/// The UTF-16 unit that an escape at the very beginning stands for.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// A session id names a file, so it may hold nothing that a path could.
fn is_session_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=128).contains(&text.len()) && text.bytes().all(plain) && text != "null"
}

/// The command inside a prompt that is one single pasted element: the client sends a command that was
/// pasted whole as text. Gives the command's name and its raw arguments.
pub fn pasted_command(prompt: &str) -> Option<(String, String)> {
    let inner = prompt.trim().strip_prefix("<pasted_content")?;
    let (attributes, inner) = inner.split_once('>')?;
    let (inner, rest) = inner.rsplit_once("</pasted_content")?;
    let closing = rest.strip_suffix('>')?;
    let single = closing.is_empty() || closing == attributes;
    if !single || inner.contains("<pasted_content") {
        return None;
    }
    let inner = PASTED_ELEMENT.replace_all(inner, "<$1");
    let command = inner.trim().strip_prefix("/crew:")?;
    let end = command.find(char::is_whitespace).unwrap_or(command.len());
    Some((command[..end].to_owned(), command[end..].to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_crew_needs_is_taken_and_a_field_of_another_shape_is_absent() {
        let stop = parse(
            br#"{"hook_event_name":"Stop","session_id":"a-1","cwd":"/repo","stop_hook_active":true,
                 "prompt_id":7,"last_assistant_message":"done","background_tasks":"new shape"}"#,
        )
        .unwrap();
        assert_eq!(stop.event, "Stop");
        assert_eq!(stop.session_id.as_deref(), Some("a-1"));
        assert_eq!((stop.prompt_id, stop.last_message.as_deref()), (None, Some("done")));
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
            (&b"{"[..], "no JSON object"),
            (b"[1]", "no JSON object"),
            (b"{\"session_id\":\"a\"}", "no hook_event_name"),
            (b"{\"hook_event_name\":\"St\xffop\"}", "no JSON object"),
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
            let payload = format!(r#"{{"hook_event_name":"Stop","prompt":"{escaped}"}}"#);
            assert_eq!(parse(payload.as_bytes()).unwrap().prompt.as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_command_pasted_whole_is_found_and_anything_around_it_is_not_one() {
        let table = [
            (
                "\n\n<pasted_content id=\"5\">\n/crew:loop fix\nall\n</pasted_content>",
                Some(("loop", " fix\nall")),
            ),
            (
                "<pasted_content id=\"5\">\n/crew:loop a\n</pasted_content id=\"5\">\n",
                Some(("loop", " a")),
            ),
            ("<pasted_content id=\"5\">/crew:status</pasted_content>\n", Some(("status", ""))),
            (
                "<pasted_content id=\"5\">/crew:loop a <\\/pasted_content> b</pasted_content id=\"5\">",
                Some(("loop", " a </pasted_content> b")),
            ),
            ("<pasted_content id=\"1\">\n/other:loop a\n</pasted_content>", None),
            ("look: <pasted_content id=\"1\">\n/crew:loop a\n</pasted_content>", None),
            ("<pasted_content id=\"1\">\n/crew:loop a\n</pasted_content> thanks", None),
            ("<pasted_content id=\"1\">\n/crew:loop a\n</pasted_content id=\"2\">", None),
            ("/crew:loop a", None),
        ];
        for (prompt, expected) in table {
            let found = pasted_command(prompt);
            let found = found.as_ref().map(|(name, raw)| (name.as_str(), raw.as_str()));
            assert_eq!(found, expected, "{prompt}");
        }
    }

    proptest! {
        #[test]
        fn no_payload_and_no_prompt_makes_a_reader_panic(bytes: Vec<u8>, prompt: String) {
            let _ = parse(&bytes);
            let _ = pasted_command(&prompt);
            let _ = pasted_command(&format!("<pasted_content {prompt}"));
        }
    }
}
