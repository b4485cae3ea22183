//! The JSON a hook prints for the client. A loop goes on by `additionalContext`: the client sends the
//! reason of a `decision: block` twice and labels it as an error (2.1.330). Nothing is printed for what is
//! not ours.

use serde_json::{Value, json};

/// A stop that goes on: `context` for the agent, `line` for the person.
pub fn go_on(context: &str, line: &str) -> Value {
    json!({
        "systemMessage": line,
        "hookSpecificOutput": { "hookEventName": "Stop", "additionalContext": context },
    })
}

/// A line or page for the person; the event itself takes its course.
pub fn say(text: &str) -> Value {
    json!({ "systemMessage": text.trim_end() })
}

/// A command that goes to the agent with crew's words added.
pub fn begin(event: &str, context: &str, line: &str) -> Value {
    json!({
        "systemMessage": line,
        "hookSpecificOutput": { "hookEventName": event, "additionalContext": context },
    })
}

/// A command that is answered here and costs no model turn.
pub fn instead(text: &str) -> Value {
    json!({ "decision": "block", "reason": text.trim_end() })
}
