//! Codex 0.169.0: Claude Code's events under the same names, without commands and without a wake.

use std::time::Duration;

use serde_json::{Value, json};

use crate::clients::{
    Client, ClientVariables, EventFormat, FieldsByPointer, HookEvent, Output, Reply, SessionFacts,
    Stopped, TurnRules, recorded,
};
use engine::text::clean_text;

/// Codex as a client.
pub static CODEX: Client = Client {
    name: "codex",
    program: "codex",
    title: "Codex",
    commands: None,
    turns: TurnRules {
        id: "/turn_id",
        // The client honoured 40 of 40 in a row.
        cap: None,
        // The client writes what exceeds 10 KB to a file, cut in mid-sentence.
        wakes: false,
        waits_at_the_end: Duration::from_secs(3),
        steers_within_the_turn: false,
    },
    transcript: None,
    variables: ClientVariables {
        data: Some("PLUGIN_DATA"),
        project: None,
        plugin: None,
        mark: "CODEX_MANAGED_BY_NPM",
        own: "CODEX_MANAGED_BY_NPM PLUGIN_DATA PLUGIN_ROOT",
        shifting: &[],
    },
    question_tool: None,
    settings: &[],
    set_by: |_| Vec::new(),
    events: EventFormat {
        sent: |payload, variable| {
            payload.text("/turn_id").is_some() || variable("CODEX_MANAGED_BY_NPM").is_some()
        },
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
        "Stop" => HookEvent::Stopped(Stopped {
            last_message: payload.owned("/last_assistant_message"),
            background: Vec::new(),
        }),
        "UserPromptSubmit" => recorded::message(payload.word("/prompt")),
        "SessionStart" => HookEvent::SessionBegan { compacted: payload.is("/source", "compact") },
        "SessionEnd" => HookEvent::SessionEnded {
            why: payload.owned("/reason").unwrap_or_else(|| "other".to_owned()),
        },
        _ => HookEvent::NotOurs,
    }
}

fn write(name: &str, reply: &Reply) -> Output {
    let out = match reply {
        Reply::Nothing | Reply::Wake(_) => return Output::default(),
        Reply::GoOn { prompt, line, .. } if name == "Stop" => {
            json!({ "decision": "block", "reason": prompt, "systemMessage": clean_text(line) })
        }
        Reply::GoOn { prompt, line, .. } => json!({
            "systemMessage": clean_text(line),
            "hookSpecificOutput": { "hookEventName": name, "additionalContext": prompt },
        }),
        Reply::Instead(text) | Reply::Executed(text) => {
            json!({ "decision": "block", "reason": clean_text(text) })
        }
        Reply::Decide(text) => panic!("this client asks through no hook: {text}"),
        Reply::Say(text) => json!({ "systemMessage": clean_text(text) }),
    };
    Output { out: Some(out), ..Output::default() }
}
