//! Codex 0.169.0: Claude Code's events under the same names, without commands and without a wake.

use std::time::Duration;

use serde_json::{Value, json};

use crate::clients::{
    Abilities, Client, EnvLookup, FieldsByPointer, HookEvent, Output, Reply, Stopped, recorded,
};
use crate::engine::text::clean;
use crate::parse::process_table::ProcessRow;

/// The client.
#[derive(Debug)]
pub struct Codex;

static ABILITIES: Abilities = Abilities {
    name: "codex",
    program: "codex",
    title: "Codex",
    commands: None,
    // The client honoured 40 of 40 in a row.
    cap: None,
    // The client writes what exceeds 10 KB to a file, cut in mid-sentence.
    wakes: false,
    waits_at_the_end: Duration::from_secs(3),
    transcript: None,
    turn: "/turn_id",
    steers_within_the_turn: false,
    data: Some("PLUGIN_DATA"),
    project: None,
    plugin: None,
    question_tool: None,
    mark: "CODEX_MANAGED_BY_NPM",
    own: "CODEX_MANAGED_BY_NPM PLUGIN_DATA PLUGIN_ROOT",
    shifting: &[],
    settings: &[],
    set_by: |_| Vec::new(),
};

impl Client for Codex {
    fn abilities(&self) -> &'static Abilities {
        &ABILITIES
    }

    fn sent(&self, payload: &Value, variable: EnvLookup<'_>) -> bool {
        payload.text("/turn_id").is_some() || variable(ABILITIES.mark).is_some()
    }

    fn read(&self, name: &str, payload: &Value) -> HookEvent {
        match name {
            "Stop" => HookEvent::Stopped(Stopped {
                last_message: payload.owned("/last_assistant_message"),
                background: Vec::new(),
            }),
            "UserPromptSubmit" => recorded::message(payload.word("/prompt")),
            "SessionStart" => {
                HookEvent::SessionBegan { compacted: payload.is("/source", "compact") }
            }
            "SessionEnd" => HookEvent::SessionEnded {
                why: payload.owned("/reason").unwrap_or_else(|| "other".to_owned()),
            },
            _ => HookEvent::NotOurs,
        }
    }

    fn write(&self, name: &str, reply: &Reply) -> Output {
        let out = match reply {
            Reply::Nothing | Reply::Wake(_) => return Output::default(),
            Reply::GoOn { prompt, line, .. } if name == "Stop" => {
                json!({ "decision": "block", "reason": prompt, "systemMessage": clean(line) })
            }
            Reply::GoOn { prompt, line, .. } => json!({
                "systemMessage": clean(line),
                "hookSpecificOutput": { "hookEventName": name, "additionalContext": prompt },
            }),
            Reply::Instead(text) | Reply::Obeyed(text) => {
                json!({ "decision": "block", "reason": clean(text) })
            }
            Reply::Decide(text) => panic!("this client asks through no hook: {text}"),
            Reply::Say(text) => json!({ "systemMessage": clean(text) }),
        };
        Output { out: Some(out), ..Output::default() }
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
