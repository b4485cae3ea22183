//! Qwen 0.24.4: Claude Code's events and answers with other facts, such as a hard cap.

use std::time::Duration;

use serde_json::Value;

use crate::clients::claude::CLAUDE_CODE;
use crate::clients::{
    Cap, Client, ClientVariables, EventFormat, FieldsByPointer, HookEvent, SessionFacts, TurnRules,
};

/// Qwen as a client.
pub static QWEN: Client = Client {
    name: "qwen",
    program: "qwen",
    title: "Qwen Code",
    commands: Some("/"),
    turns: TurnRules {
        id: "/prompt_id",
        // A variable raises the cap to one less than its value.
        cap: Some(Cap { usual: 7, variable: None }),
        wakes: false,
        waits_at_the_end: Duration::ZERO,
        steers_within_the_turn: false,
    },
    transcript: None,
    variables: ClientVariables {
        data: None,
        project: Some("QWEN_PROJECT_DIR"),
        plugin: None,
        mark: "QWEN_CODE_SESSION_ID",
        own: "QWEN_CODE_SESSION_ID QWEN_PROJECT_DIR",
        shifting: &[],
    },
    question_tool: None,
    settings: &[],
    set_by: |_| Vec::new(),
    events: EventFormat {
        sent: |_, variable| variable("QWEN_CODE_SESSION_ID").is_some(),
        read,
        write: CLAUDE_CODE.events.write,
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
        "UserPromptExpansion" => HookEvent::Command {
            name: payload.owned("/command_name").unwrap_or_default(),
            raw: payload.owned("/command_args").unwrap_or_default(),
            sure: true,
        },
        _ => (CLAUDE_CODE.events.read)(name, payload),
    }
}
