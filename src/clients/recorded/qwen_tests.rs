//! Qwen 0.24.4: Claude Code's events and answers with other facts, such as a hard cap.

use std::time::Duration;

use serde_json::Value;

use crate::clients::claude::ClaudeCode;
use crate::clients::{
    Abilities, Cap, Client, EnvLookup, FieldsByPointer, HookEvent, Output, Reply,
};
use crate::parse::process_table::ProcessRow;

/// The client.
#[derive(Debug)]
pub struct Qwen;

static ABILITIES: Abilities = Abilities {
    name: "qwen",
    program: "qwen",
    title: "Qwen Code",
    commands: Some("/"),
    // A variable raises the cap to one less than its value.
    cap: Some(Cap { usual: 7, variable: None }),
    wakes: false,
    waits_at_the_end: Duration::ZERO,
    transcript: None,
    turn: "/prompt_id",
    steers_within_the_turn: false,
    data: None,
    project: Some("QWEN_PROJECT_DIR"),
    plugin: None,
    question_tool: None,
    mark: "QWEN_CODE_SESSION_ID",
    own: "QWEN_CODE_SESSION_ID QWEN_PROJECT_DIR",
    shifting: &[],
    settings: &[],
    set_by: |_| Vec::new(),
};

impl Client for Qwen {
    fn abilities(&self) -> &'static Abilities {
        &ABILITIES
    }

    fn read(&self, name: &str, payload: &Value) -> HookEvent {
        match name {
            "UserPromptExpansion" => HookEvent::Command {
                name: payload.owned("/command_name").unwrap_or_default(),
                raw: payload.owned("/command_args").unwrap_or_default(),
                sure: true,
            },
            _ => ClaudeCode.read(name, payload),
        }
    }

    fn write(&self, name: &str, reply: &Reply) -> Output {
        ClaudeCode.write(name, reply)
    }

    /// Which session a hook's process has was not recorded: the test's parent process stands for
    /// the client.
    fn is_owner(&self, _hook: &ProcessRow, _above: &ProcessRow) -> bool {
        true
    }

    fn is_attended(&self, _variable: EnvLookup<'_>) -> bool {
        false
    }
}
