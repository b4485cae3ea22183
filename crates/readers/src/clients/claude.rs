//! Claude Code: what it can do, and how its events, answers and transcripts are read and written.
//! The facts were tried on 2.1.197 and 2.1.330. Only this folder and the agent of the same name
//! know these facts.

mod event;
pub mod plugin;
pub mod transcript;

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Cap, Client, ClientVariables, EnvLookup, EventFormat, FieldsByPointer, SessionFacts,
    Transcript, TurnRules,
};

/// The prefix of a command's name.
const COMMANDS: &str = "/crew:";
/// The variable that changes the cap.
pub const CAP: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";

/// Claude Code as a client.
pub static CLAUDE_CODE: Client = Client {
    name: "claude-code",
    program: plugin::PRODUCT.program,
    title: plugin::PRODUCT.name,
    commands: Some(COMMANDS),
    turns: TurnRules {
        id: "/prompt_id",
        // The client overrides the ninth hook in a row that continues the agent without a tool call
        // between.
        cap: Some(Cap { usual: 8, variable: Some(CAP) }),
        wakes: true,
        waits_at_the_end: Duration::from_millis(1500),
        // 2.1.197 reports it only once that turn is over.
        steers_within_the_turn: true,
    },
    transcript: Some(Transcript {
        final_text: transcript::final_text,
        used_a_tool: transcript::used_a_tool,
        pending_calls: transcript::pending_calls,
        has_result: transcript::has_result,
        interrupted: transcript::was_interrupted,
        message: transcript::parse_message,
        may_hold_a_message: transcript::may_be_a_models,
        agents: |transcript| transcript.with_extension("").join("subagents"),
        is_an_agents: transcript::is_an_agents,
        follow: event::update_queue,
        queued: event::queued_command,
    }),
    variables: ClientVariables {
        data: Some("CLAUDE_PLUGIN_DATA"),
        project: Some("CLAUDE_PROJECT_DIR"),
        plugin: Some("CLAUDE_PLUGIN_ROOT"),
        mark: "CLAUDECODE",
        own: "CLAUDECODE CLAUDE_CODE_CHILD_NOTES_DIR CLAUDE_CODE_CHILD_SESSION CLAUDE_CODE_ENTRYPOINT \
            CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS CLAUDE_CODE_MESSAGING_SOCKET \
            CLAUDE_CODE_MESSAGING_TOKEN CLAUDE_CODE_SESSION_ATTENDED CLAUDE_CODE_SESSION_ID \
            CLAUDE_CODE_SSE_PORT CLAUDE_CODE_STARTER_MAY_HOLD_CONNECTOR_FILE CLAUDE_EFFORT \
            CLAUDE_ENV_FILE CLAUDE_PID CLAUDE_PLUGIN_DATA CLAUDE_PLUGIN_ROOT CLAUDE_PROJECT_DIR",
        // The client renews its token.
        shifting: &["CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_SESSION_ACCESS_TOKEN"],
    },
    question_tool: Some("AskUserQuestion"),
    settings: &[".claude/settings.json", ".claude/settings.local.json"],
    set_by: plugin::settings_variables,
    events: EventFormat {
        sent: |_, variable| variable("CLAUDECODE").is_some(),
        read: event::read_event,
        write: event::write_reply,
        // The client passes on no codes but those of notices and titles, and in `-p` none. It takes
        // them from every hook that it waits for (tried on `PreToolUse`, `Notification` and
        // `Stop`).
        notify: |output, codes| {
            output.out.get_or_insert_with(|| json!({}))["terminalSequence"] = codes.into();
        },
    },
    session: SessionFacts {
        // The client gives each hook its own session, so shells between it and the hook do not
        // count.
        is_owner: |hook, above| above.session != hook.session,
        caution: find_caution,
        is_attended,
    },
};

/// What the user should know about the session's mode. `claude -p` has no dialogs, so what is not
/// allowed is denied. In plan mode nothing can be edited there either.
fn find_caution(payload: &Value, variable: EnvLookup<'_>) -> Option<&'static str> {
    match payload.text("/permission_mode")? {
        "plan" => Some("plan mode: claude cannot edit; leave it with shift+tab"),
        _ if !is_attended(variable) => None,
        "default" => Some("manual mode: claude will stop at dialogs; shift+tab changes that"),
        "acceptEdits" => {
            Some("claude may edit, but stops at dialogs for commands; shift+tab changes that")
        }
        _ => None,
    }
}

/// Whether a person attends the client, which is not so for `claude -p`. No companion may wait
/// there, because the client waits for the companion when it ends.
fn is_attended(variable: EnvLookup<'_>) -> bool {
    match variable("CLAUDE_CODE_SESSION_ATTENDED") {
        Some(attended) => attended != "0",
        None => variable("CLAUDE_CODE_ENTRYPOINT").is_some_and(|entry| entry == "cli"),
    }
}
