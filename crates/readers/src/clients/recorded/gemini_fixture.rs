//! Gemini 0.61.0: its own events and answers, and a last message that grows from stop to stop.

use std::time::Duration;

use serde_json::{Value, json};

use crate::clients::{
    Client, ClientVariables, EventFormat, FieldsByPointer, HookEvent, Output, Reply, SessionFacts,
    Stopped, TurnRules, recorded,
};
use engine::text::clean_text;

/// Gemini as a client.
pub static GEMINI: Client = Client {
    name: "gemini",
    program: "gemini",
    title: "Gemini CLI",
    commands: None,
    turns: TurnRules {
        // The user's prompt itself; crew's reasons do not replace it.
        id: "/prompt",
        // The client honoured 130 of 130 with different answers; after some ten equal ones it makes
        // no more turns.
        cap: None,
        wakes: false,
        waits_at_the_end: Duration::ZERO,
        steers_within_the_turn: false,
    },
    transcript: None,
    variables: ClientVariables {
        data: None,
        project: Some("GEMINI_PROJECT_DIR"),
        plugin: None,
        mark: "GEMINI_SESSION_ID",
        own: "GEMINI_CWD GEMINI_PLANS_DIR GEMINI_PROJECT_DIR GEMINI_SESSION_ID",
        shifting: &[],
    },
    question_tool: None,
    settings: &[],
    set_by: |_| Vec::new(),
    events: EventFormat {
        sent: |_, variable| variable("GEMINI_SESSION_ID").is_some(),
        read,
        write,
        notify: |_, _| {},
    },
    session: SessionFacts {
        // Which session a hook's process has was not recorded: the test's parent process stands for
        // the client.
        is_owner: |_, _| true,
        caution: |_, _| None,
        is_attended: |_| false,
    },
};

fn read(name: &str, payload: &Value) -> HookEvent {
    match name {
        "AfterAgent" => HookEvent::Stopped(Stopped {
            last_message: payload.owned("/prompt_response"),
            background: Vec::new(),
        }),
        "BeforeAgent" => recorded::message(payload.word("/prompt")),
        "SessionStart" => HookEvent::SessionBegan { compacted: false },
        "SessionEnd" => HookEvent::SessionEnded {
            why: payload.owned("/reason").unwrap_or_else(|| "other".to_owned()),
        },
        _ => HookEvent::NotOurs,
    }
}

fn write(name: &str, reply: &Reply) -> Output {
    let out = match reply {
        Reply::Nothing | Reply::Wake(_) => return Output::default(),
        Reply::GoOn { prompt, line, .. } if name == "AfterAgent" => {
            json!({ "decision": "deny", "reason": prompt, "systemMessage": clean_text(line) })
        }
        Reply::GoOn { prompt, line, .. } => json!({
            "systemMessage": clean_text(line),
            "hookSpecificOutput": { "hookEventName": name, "additionalContext": prompt },
        }),
        Reply::Instead(text) | Reply::Executed(text) => {
            json!({ "decision": "deny", "reason": clean_text(text) })
        }
        Reply::Decide(text) => panic!("this client asks through no hook: {text}"),
        Reply::Say(text) => json!({ "systemMessage": clean_text(text) }),
    };
    Output { out: Some(out), ..Output::default() }
}
