//! The JSON a hook prints for Claude Code. A loop continues by `additionalContext`: the client
//! sends the reason of a `decision: block` twice and labels it as an error (2.1.330). Nothing is
//! printed for an event that is not crew's. The client prints these words in its terminal, so they
//! are cleaned here.

use serde_json::{Value, json};

use crate::clients::{Output, Reply};
use crate::engine::text::{clean, clean_around};

/// Exit status 2 of a companion starts a turn with what it wrote to standard error.
const WAKES: u8 = 2;
/// The width of the client's line for a refused prompt.
const LINE_CHARS: usize = 100;

/// The answer to the event `name`.
pub(super) fn write(name: &str, reply: &Reply) -> Output {
    let out = match reply {
        Reply::Nothing => return Output::default(),
        Reply::Wake(prompt) => {
            return Output { err: Some(prompt.clone()), status: WAKES, ..Output::default() };
        }
        Reply::GoOn { task, prompt, line } => json!({
            "systemMessage": clean(line),
            "hookSpecificOutput": {
                "hookEventName": name,
                "additionalContext": clean_around(task, prompt),
            },
        }),
        Reply::Say(text) => json!({ "systemMessage": clean(text.trim_end()) }),
        Reply::Instead(text) => json!({ "decision": "block", "reason": clean(text.trim_end()) }),
        Reply::Obeyed(text) => obeyed(text),
        Reply::Decide(words) => json!({
            "hookSpecificOutput": {
                "hookEventName": name,
                "permissionDecision": "deny",
                "permissionDecisionReason": clean(words),
            },
        }),
    };
    Output { out: Some(out), ..Output::default() }
}

/// The client puts an order that was typed as a message back into its input line. It shows one line
/// of the reason, and only with `suppressOriginalPrompt` (2.1.330).
fn obeyed(text: &str) -> Value {
    const CLEAR: &str = "(Ctrl-U clears the line)";
    let room = LINE_CHARS - CLEAR.chars().count() - "crew:  ".len();
    let shown: String = clean(text).chars().take(room).collect();
    json!({
        "decision": "block",
        "reason": format!("crew: {shown} {CLEAR}"),
        "hookSpecificOutput": {
            "hookEventName": "UserPromptSubmit",
            "suppressOriginalPrompt": true,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_order_is_answered_in_one_line_of_at_most_a_hundred_characters() {
        for text in ["pauses after iteration 4".to_owned(), "x".repeat(300)] {
            let value = obeyed(&text);
            let reason = value["reason"].as_str().unwrap();
            assert!(reason.chars().count() <= LINE_CHARS, "{reason}");
            assert!(reason.ends_with("(Ctrl-U clears the line)"), "{reason}");
        }
    }
}
