//! Claude Code's events. An unknown event is not crew's, and a field of another shape is absent.

use serde_json::Value;

use super::prompt;
use crate::clients::{AskedQuestion, Fields, HookEvent, Stopped, Task};

/// Reads what happened.
pub(super) fn read(name: &str, payload: &mut Fields) -> HookEvent {
    let is_a_subagents = payload.take("agent_id").is_some();
    match name {
        // A subagent's question stops the session, too.
        "PreToolUse" => asked(payload),
        _ if is_a_subagents => HookEvent::NotOurs,
        "PostToolUse" => match asked(payload) {
            HookEvent::Asked(_) => HookEvent::Answered,
            _ => HookEvent::NotOurs,
        },
        "Stop" => HookEvent::Stopped(Stopped {
            last_message: payload.take("last_assistant_message"),
            background: payload.value("background_tasks").map_or_else(Vec::new, |it| tasks(&it)),
        }),
        "StopFailure" => HookEvent::ServiceFailed {
            kind: payload.take("error").unwrap_or_else(|| "unknown".to_owned()),
            // The agent's last message is then the text of the error, not a claim.
            message: payload.take("last_assistant_message").unwrap_or_default(),
        },
        "Notification" => match payload.take("notification_type").as_deref() {
            Some("idle_prompt") => HookEvent::Idle,
            Some("permission_prompt") => HookEvent::AtDialog {
                tool: payload.take("message").as_deref().and_then(asking_tool),
            },
            _ => HookEvent::NotOurs,
        },
        "UserPromptExpansion" => match payload.take("command_name") {
            Some(name) if name.starts_with("crew:") => HookEvent::Command {
                name: name["crew:".len()..].to_owned(),
                raw: payload.take("command_args").unwrap_or_default(),
                sure: true,
            },
            _ => HookEvent::NotOurs,
        },
        "UserPromptSubmit" => {
            // The newest client tried (2.1.330) declares who wrote a prompt, but does not send it
            // yet.
            let author = payload.take("source");
            let is_anothers = author.is_some_and(|author| !matches!(&*author, "user" | "sdk"));
            prompt::read(&payload.take("prompt").unwrap_or_default(), is_anothers)
        }
        "SessionStart" => HookEvent::SessionBegan {
            compacted: payload.take("source").as_deref() == Some("compact"),
        },
        "SessionEnd" => HookEvent::SessionEnded {
            why: payload.take("reason").unwrap_or_else(|| "other".to_owned()),
        },
        _ => HookEvent::NotOurs,
    }
}

/// The tool for which the client asks; 2.1.330 names it in some of its dialogs.
fn asking_tool(message: &str) -> Option<String> {
    let (_, tool) = message.split_once(" permission to use ")?;
    Some(tool.trim().to_owned()).filter(|tool| !tool.is_empty())
}

/// A call of the tool that asks the user.
fn asked(payload: &mut Fields) -> HookEvent {
    let (tool, input) = (payload.take("tool_name"), payload.value("tool_input"));
    if tool.as_deref() != super::ABILITIES.question_tool {
        return HookEvent::NotOurs;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let listed = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let asked = |it: &Value| AskedQuestion {
        question: text(&it["question"]),
        options: listed(&it["options"]).iter().map(|option| text(&option["label"])).collect(),
    };
    let questions = input.map_or_else(Vec::new, |input| listed(&input["questions"]));
    HookEvent::Asked(questions.iter().map(asked).collect())
}

fn tasks(value: &Value) -> Vec<Task> {
    let text = |task: &Value, name: &str| task[name].as_str().unwrap_or_default().to_owned();
    let listed = value.as_array().into_iter().flatten();
    let running = listed.filter(|task| task["status"].as_str().is_none_or(|it| it == "running"));
    let task = |task| Task {
        id: text(task, "id"),
        kind: text(task, "type"),
        description: text(task, "description"),
    };
    running.map(task).collect()
}
