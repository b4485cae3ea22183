//! The entry in the client's settings that names the command of its status line. Every other byte
//! of the settings stays as it is, and an entry that is not crew's is never changed.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const KEY: &str = "statusLine";
/// How often the client runs the command, in seconds. By itself it runs it only at events of the
/// session, so the line of a loop that has ended would stay.
const REFRESH_S: u64 = 2;

/// The entry for a command.
pub fn entry(command: &str) -> Value {
    json!({ "type": "command", "command": command, "refreshInterval": REFRESH_S })
}

/// Whether an entry runs this command; the person may have added keys to it.
fn runs(entry: &Value, command: &str) -> bool {
    entry["command"].as_str().is_some_and(|theirs| theirs.trim() == command)
}

/// Why an entry is not written.
#[derive(Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The file is not a JSON object.
    Broken(String),
    /// It has another status line, as the client runs it.
    Taken(String),
}

/// The settings with a line for `command`; `None` if they have it. An empty text is an empty file.
pub fn with_line(text: &str, command: &str) -> Result<Option<String>, NoRoom> {
    let ours = entry(command);
    let entry = format!("\"{KEY}\": {ours}");
    if text.trim().is_empty() {
        return Ok(Some(format!("{{\n  {entry}\n}}\n")));
    }
    let settings: Value = serde_json::from_slice(text.as_bytes())
        .map_err(|error| NoRoom::Broken(error.to_string()))?;
    let Some(settings) = settings.as_object() else {
        return Err(NoRoom::Broken("not an object".to_owned()));
    };
    match settings.get(KEY) {
        Some(there) if runs(there, command) => return Ok(None),
        Some(there) => {
            let command = there["command"].as_str();
            return Err(NoRoom::Taken(command.map_or_else(|| there.to_string(), str::to_owned)));
        }
        None => {}
    }
    let (before, inside) = text.split_once('{').unwrap_or_default();
    let first = inside.trim_start();
    let blanks = &inside[..inside.len() - first.len()];
    Ok(Some(if settings.is_empty() {
        format!("{before}{{\n  {entry}\n{first}")
    } else {
        format!("{before}{{{blanks}{entry},{blanks}{first}")
    }))
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, rename = "statusLine")]
    line: &'a RawValue,
}

/// The settings without crew's line for `command`; `None` if they do not have it.
pub fn without_line(text: &str, command: &str) -> Option<String> {
    let there = serde_json::from_slice::<Entry<'_>>(text.as_bytes()).ok()?.line.get();
    if !runs(&serde_json::from_slice(there.as_bytes()).ok()?, command) {
        return None;
    }
    // The value is a part of the text, so its address tells where it stands.
    let start = there.as_ptr() as usize - text.as_ptr() as usize;
    let (before, after) = (&text[..start], &text[start + there.len()..]);
    let key = before.trim_end().strip_suffix(':')?.trim_end();
    let before = key.strip_suffix(&format!("\"{KEY}\""))?;
    let rest = after.trim_start();
    Some(match (rest.strip_prefix(','), before.trim_end().strip_suffix(',')) {
        (Some(rest), _) => format!("{before}{}", rest.trim_start()),
        (None, Some(before)) => format!("{before}{after}"),
        (None, None) => format!("{}{rest}", before.trim_end()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COMMAND: &str = "'/a home/bin/crew' status --line";

    #[test]
    fn the_entry_is_written_beside_what_is_there_and_taken_back_to_the_byte() {
        for text in [
            "{\n  \"model\": \"opus\",\n    \"env\": {\"A\": \"é\"}\n}\n",
            "{\"a\":1}",
            "\t{ \"a\" : [1, 2] , \"b\":{} }",
            "{\r\n\t\"text\": \"statusLine\"\r\n}",
        ] {
            let written = with_line(text, COMMAND).unwrap().unwrap();
            let settings: Value = serde_json::from_str(&written).unwrap();
            assert_eq!(settings[KEY], entry(COMMAND), "{written}");
            assert_eq!(with_line(&written, COMMAND), Ok(None));
            assert_eq!(without_line(&written, COMMAND).as_deref(), Some(text));
        }
        for empty in ["", " \n", "{}", "{ }\n"] {
            let written = with_line(empty, COMMAND).unwrap().unwrap();
            let without = without_line(&written, COMMAND).unwrap();
            assert_eq!(without.trim(), "{}", "{empty:?} {written}");
        }
    }

    #[test]
    fn an_entry_that_the_client_wrote_anew_is_found_wherever_it_stands() {
        let line = serde_json::to_string_pretty(&entry(COMMAND)).unwrap();
        for (text, expected) in [
            (format!("{{\"a\": 1, \"statusLine\" : {line}}}"), "{\"a\": 1}"),
            (format!("{{\"a\": 1,\n\"statusLine\": {line},\n\"b\": 2}}"), "{\"a\": 1,\n\"b\": 2}"),
            (format!("{{\"statusLine\": {line}\n}}"), "{}"),
        ] {
            assert_eq!(without_line(&text, COMMAND).as_deref(), Some(expected));
        }
    }

    #[test]
    fn an_entry_is_crews_if_its_command_is_whatever_else_a_person_added() {
        for more in [r#","padding":0"#, r#","refreshInterval":9"#, r#","type":"command""#] {
            let theirs = format!(r#"{{"a":1,"statusLine":{{"command":"{COMMAND}"{more}}}}}"#);
            assert_eq!(with_line(&theirs, COMMAND), Ok(None), "{theirs}");
            assert_eq!(without_line(&theirs, COMMAND).as_deref(), Some(r#"{"a":1}"#));
        }
    }

    #[test]
    fn what_is_not_crews_is_left() {
        let theirs = r#"{"statusLine":{"type":"command","command":"mine.sh"}}"#;
        assert_eq!(with_line(theirs, COMMAND), Err(NoRoom::Taken("mine.sh".to_owned())));
        assert_eq!(without_line(theirs, COMMAND), None);
        for broken in ["{", "[]", "7", "{\"a\":1,}"] {
            assert!(matches!(with_line(broken, COMMAND), Err(NoRoom::Broken(_))), "{broken}");
            assert_eq!(without_line(broken, COMMAND), None);
        }
        assert_eq!(without_line(r#"{"a":{"statusLine":1}}"#, COMMAND), None);
    }

    proptest! {
        #[test]
        fn no_settings_are_harmed(text in "[{}\\[\\]\",: \na-z0-9é]{0,40}", name in "[a-zé\"]{0,9}") {
            let _ = with_line(&text, COMMAND);
            let _ = without_line(&text, COMMAND);
            let settings = json!({ name: text, "b": [1] }).to_string();
            let written = with_line(&settings, COMMAND).unwrap().unwrap();
            prop_assert_eq!(without_line(&written, COMMAND), Some(settings));
        }
    }
}
