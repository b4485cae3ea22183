//! Text that the user, the agent and the client bring into a session.

use std::fs;

use serde_json::json;

use super::{CLAIM, NAME, Source, plant};

/// The text on one line, as a claim and a promise need it.
fn on_one_line(text: &str) -> String {
    text.replace('\u{85}', "")
}

pub(super) const SOURCES: &[Source] = &[
    ("the task", |it, text| it.begins(&format!("'{text}'"))),
    ("the promise", |it, text| {
        it.begins(&format!("'Build it' --completion-promise '{}'", on_one_line(text)));
    }),
    ("a check", |it, text| {
        it.begins(&format!("'Build it' --verify \"echo '{text}'; false\""));
        it.stops(CLAIM);
    }),
    ("what a check prints", |it, text| {
        it.sandbox().write("noise", text);
        it.begins("'Build it' --gate 'cat noise; false'");
        it.stops("Not yet.");
    }),
    ("a user's reason to cancel", |it, text| {
        it.begins("Build it");
        it.crew(&["cancel", "--reason", text]);
    }),
    ("an agent's reason to cancel", |it, text| {
        it.begins("Build it");
        it.other("crew cancel", None, |crew| {
            crew.args(["cancel", "--reason", text]).env("CLAUDECODE", "1")
        });
    }),
    ("a reason after the slash command", |it, text| {
        it.begins("Build it");
        it.types("cancel-loop", text);
    }),
    ("a reason typed as a message", |it, text| {
        it.begins("Build it");
        it.event("UserPromptSubmit", json!({"prompt": format!("crew cancel {text}")}));
    }),
    ("an order that something else wrote", |it, text| {
        it.begins("Build it");
        fs::write(it.file("cancel"), format!("2026-11-18T11:06:40Z agent {text}\n")).unwrap();
        it.stops("Not yet.");
    }),
    ("a background task's description", |it, text| {
        it.begins("Build it");
        let task = json!({"id": "b", "type": "shell", "status": "running", "description": text});
        it.event("Stop", json!({"last_assistant_message": "x", "background_tasks": [task]}));
    }),
    ("a background task's kind", |it, text| {
        it.begins("Build it");
        let task = json!({"id": "b", "type": text, "status": "running", "description": "make"});
        it.event("Stop", json!({"last_assistant_message": "x", "background_tasks": [task]}));
    }),
    ("the reason of a BLOCKED", |it, text| {
        it.begins("Build it");
        it.stops(&format!("<promise>BLOCKED: {}</promise>", on_one_line(text)));
    }),
    ("the reason of a FAILURE", |it, text| {
        it.begins("Build it");
        it.stops(&format!("<promise>FAILURE: {}</promise>", on_one_line(text)));
    }),
    ("a tag with another text", |it, text| {
        it.begins("Build it");
        it.stops(&format!("<promise>{}</promise>", on_one_line(text)));
    }),
    ("words told to the agent", |it, text| {
        it.begins("Build it");
        it.crew(&["tell", text]);
        it.stops("Not yet.");
    }),
    ("the words of a handoff", |it, text| {
        it.begins("Build it");
        it.types("handoff", &format!("review \"{text}\""));
    }),
    ("a commit's subject", |it, text| {
        it.begins("Build it");
        it.sandbox().git(&["commit", "--quiet", "--allow-empty", "--message", text]);
    }),
    ("a branch", |it, _| {
        it.sandbox().git(&["switch", "--quiet", "--create", NAME]);
        it.begins("Build it");
    }),
    ("a file's name", |it, text| {
        it.begins("Build it");
        it.sandbox().write(text, "");
        it.sandbox().git(&["add", "."]);
        it.sandbox().git(&["commit", "--quiet", "--message", "Add it"]);
    }),
    ("a protected file's name", |it, text| {
        it.project("[loop]\nprotect = [\"tests/**\"]\n");
        it.begins("Build it");
        it.sandbox().write(&format!("tests/{text}"), "");
        it.stops(CLAIM);
    }),
    ("the transcript's path", |it, text| {
        it.begins("Build it");
        it.event("Stop", json!({"last_assistant_message": "x", "transcript_path": text}));
    }),
    ("a model's name", |it, text| {
        let file = it.sandbox().home().join("session.jsonl");
        it.begins("Build it");
        let message = json!({"id": "m", "model": text, "role": "assistant", "content": [],
            "usage": {"input_tokens": 1_000_000, "output_tokens": 1}});
        let at = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now());
        let line = json!({"type": "assistant", "timestamp": at.to_rfc3339(), "message": message});
        fs::write(&file, format!("{line}\n")).unwrap();
        it.event("Stop", json!({"last_assistant_message": "x", "transcript_path": file}));
    }),
    ("the service's error", |it, text| {
        it.begins("Build it");
        let words = format!("API Error: 400 {text}");
        let more = json!({"error": "billing_error", "last_assistant_message": words});
        it.event("StopFailure", more);
    }),
    ("the service's kind of error", |it, text| {
        it.begins("Build it");
        it.event("StopFailure", json!({"error": text}));
    }),
    ("the reason of a session's end", |it, text| {
        it.begins("Build it");
        it.event("SessionEnd", json!({"reason": text}));
    }),
    ("a note in the journal", |it, text| {
        it.begins("Build it");
        let journal = fs::read_to_string(it.file("journal.jsonl")).unwrap();
        let event = json!({"noted": {"what": text}});
        let at = "2026-11-18T11:06:40Z";
        let entry = json!({"schema": 1, "at": at, "generation": 1, "event": event});
        fs::write(it.file("journal.jsonl"), format!("{journal}{entry}\n")).unwrap();
    }),
];

#[test]
#[ignore = "long"]
fn no_text_of_a_session_sends_codes_to_a_terminal() {
    plant(SOURCES);
}
