//! The JSON a hook prints for the client. A loop goes on by `additionalContext`: the client sends the
//! reason of a `decision: block` twice and labels it as an error (2.1.330). Nothing is printed for what is
//! not ours. The client prints these words in its terminal, so they are cleaned here.

use serde_json::{Value, json};

use crate::engine::text::{clean, clean_around, start};

/// Something that goes to the agent with crew's words added: `prompt` for the agent, who is told `task` as it
/// was typed, and `line` for the person.
pub fn go_on(event: &str, task: &str, prompt: &str, line: &str) -> Value {
    let context = clean_around(task, prompt);
    json!({
        "systemMessage": clean(line),
        "hookSpecificOutput": { "hookEventName": event, "additionalContext": context },
    })
}

/// A line or page for the person; the event itself takes its course.
pub fn say(text: &str) -> Value {
    json!({ "systemMessage": clean(text.trim_end()) })
}

/// A notice for the user's terminal, which shows it outside the client if it knows OSC 9.
pub fn notice(text: &str) -> Value {
    let line: Vec<&str> = text.split_whitespace().collect();
    json!({ "terminalSequence": format!("\x1b]9;crew: {}\x07", clean(&line.join(" "))) })
}

/// Adds a line for the person to an answer, or makes one of it.
pub fn also(answer: Option<Value>, line: &str) -> Value {
    let mut answer = answer.unwrap_or_else(|| json!({}));
    let text = match answer["systemMessage"].as_str() {
        Some(text) => format!("{text}\n{line}"),
        None => line.to_owned(),
    };
    answer["systemMessage"] = clean(&text).into();
    answer
}

/// The commands that are named for a terminal.
const FOR_A_TERMINAL: [&str; 10] =
    ["cancel", "config", "doctor", "init", "pause", "resume", "set", "status", "tell", "trust"];

/// An answer that names crew's commands for a terminal as that finds them: by the path of the program. `keeps_quotes`
/// leaves alone what is quoted.
pub fn called(mut answer: Value, program: &str, keeps_quotes: bool) -> Value {
    for key in ["systemMessage", "reason"] {
        let Some(text) = answer[key].as_str() else { continue };
        let named = FOR_A_TERMINAL.iter().fold(text.to_owned(), |text, verb| {
            let named = |before: &str, text: &str| {
                text.replace(&format!("{before}crew {verb}"), &format!("{before}{program} {verb}"))
            };
            let text = named(" ", &text);
            if keeps_quotes { text } else { named("`", &text) }
        });
        answer[key] = clean(&named).into();
    }
    answer
}

/// A command that is answered here and costs no model turn.
pub fn instead(text: &str) -> Value {
    json!({ "decision": "block", "reason": clean(text.trim_end()) })
}

/// An order typed as a message in the middle of the agent's work. The client puts the text back into its
/// input line and shows one line of the reason, and that only with `suppressOriginalPrompt` (2.1.330).
pub fn typed(text: &str) -> Value {
    const CLEAR: &str = "(Ctrl-U clears the line)";
    let room = LINE_CHARS - CLEAR.chars().count() - "crew:  ".len();
    let text = clean(text);
    let shown = start(&text, room);
    json!({
        "decision": "block",
        "reason": format!("crew: {shown} {CLEAR}"),
        "hookSpecificOutput": {
            "hookEventName": "UserPromptSubmit",
            "suppressOriginalPrompt": true,
        },
    })
}

/// The width of the client's line.
const LINE_CHARS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminals_commands_are_called_by_their_path_and_nothing_else_is() {
        let text = "crew: paused; crew resume k3v9 goes on\nhint: `crew cancel k3v9`, /crew:resume, a crew of two";
        let named = called(instead(text), "~/crew/target/release/crew", false);
        let expected = "crew: paused; ~/crew/target/release/crew resume k3v9 goes on\n\
            hint: `~/crew/target/release/crew cancel k3v9`, /crew:resume, a crew of two";
        assert_eq!(named["reason"], expected);
        assert_eq!(named["systemMessage"], Value::Null);
    }

    #[test]
    fn a_typed_order_is_answered_in_one_line_of_at_most_a_hundred_characters() {
        for text in ["pauses after iteration 4".to_owned(), "x".repeat(300)] {
            let value = typed(&text);
            let reason = value["reason"].as_str().unwrap();
            assert!(reason.chars().count() <= LINE_CHARS, "{reason}");
            assert!(reason.ends_with("(Ctrl-U clears the line)"), "{reason}");
        }
    }
}
