//! Claude Code's events, what is typed into it, its queue, and the JSON that a hook prints for it.
//! An unknown event is ignored, and a field of an unexpected type counts as absent.

use serde_json::{Value, json};

use super::{CLAUDE_CODE, COMMANDS};
use crate::clients::{
    AskedQuestion, FieldsByPointer, HookEvent, Output, Reply, Stopped, Task, split_command,
};
use crate::parse::patterns::PASTED_ELEMENT;
use crate::parse::requests::{after_request, parse_request};
use engine::record::Queue;
use engine::text::{clean_around, clean_text};

/// Reads an event.
pub(super) fn read_event(name: &str, payload: &Value) -> HookEvent {
    match name {
        // A subagent's question stops the session, too.
        "PreToolUse" => parse_question(payload),
        _ if payload.text("/agent_id").is_some() => HookEvent::NotOurs,
        "PostToolUse" => match parse_question(payload) {
            HookEvent::Asked(_) => HookEvent::Answered,
            _ => HookEvent::NotOurs,
        },
        "Stop" => HookEvent::Stopped(Stopped {
            last_message: payload.owned("/last_assistant_message"),
            background: parse_tasks(payload.list("/background_tasks")),
        }),
        "StopFailure" => HookEvent::ServiceFailed {
            kind: payload.owned("/error").unwrap_or_else(|| "unknown".to_owned()),
            // The agent's last message is then the error message, not a claim.
            message: payload.owned("/last_assistant_message").unwrap_or_default(),
        },
        "Notification" => match payload.word("/notification_type") {
            "idle_prompt" => HookEvent::Idle,
            "permission_prompt" => {
                HookEvent::AtDialog { tool: asking_tool(payload.word("/message")) }
            }
            _ => HookEvent::NotOurs,
        },
        "UserPromptExpansion" => match payload.word("/command_name").strip_prefix("crew:") {
            Some(name) => HookEvent::Command {
                name: name.to_owned(),
                raw: payload.owned("/command_args").unwrap_or_default(),
                sure: true,
            },
            None => HookEvent::NotOurs,
        },
        "UserPromptSubmit" => {
            // The newest client tried (2.1.330) declares who wrote a prompt, but does not send it
            // yet.
            let author = payload.text("/source");
            let is_anothers = author.is_some_and(|author| !matches!(author, "user" | "sdk"));
            read_prompt(payload.word("/prompt"), is_anothers)
        }
        "SessionStart" => HookEvent::SessionBegan { compacted: payload.is("/source", "compact") },
        "SessionEnd" => HookEvent::SessionEnded {
            why: payload.owned("/reason").unwrap_or_else(|| "other".to_owned()),
        },
        _ => HookEvent::NotOurs,
    }
}

/// The tool that needs a permission; 2.1.330 names it in some of its dialogs.
fn asking_tool(message: &str) -> Option<String> {
    let (_, tool) = message.split_once(" permission to use ")?;
    Some(tool.trim().to_owned()).filter(|tool| !tool.is_empty())
}

/// A call of the tool that asks the user.
fn parse_question(payload: &Value) -> HookEvent {
    if payload.text("/tool_name") != CLAUDE_CODE.question_tool {
        return HookEvent::NotOurs;
    }
    let questions = payload.list("/tool_input/questions").iter().map(|question| {
        let options = question.list("/options").iter();
        AskedQuestion {
            question: question.word("/question").to_owned(),
            options: options.map(|option| option.word("/label").to_owned()).collect(),
        }
    });
    HookEvent::Asked(questions.collect())
}

fn parse_tasks(listed: &[Value]) -> Vec<Task> {
    let running =
        listed.iter().filter(|task| task.text("/status").is_none_or(|status| status == "running"));
    let tasks = running.map(|task| Task {
        id: task.word("/id").to_owned(),
        kind: task.word("/type").to_owned(),
        description: task.word("/description").to_owned(),
    });
    tasks.collect()
}

/// Reads a prompt. `is_anothers` says that the user did not write it: a schedule or a peer did.
fn read_prompt(prompt: &str, is_anothers: bool) -> HookEvent {
    match pasted_command(prompt) {
        Some(_) if is_anothers => return HookEvent::NotOurs,
        Some((name, raw)) => return HookEvent::Command { name, raw, sure: true },
        // Such a command has its own event.
        None if prompt.trim_start().starts_with(COMMANDS) => return HookEvent::NotOurs,
        None => {}
    }
    let words = without_old_requests(prompt);
    if let Some(request) = parse_request(words) {
        return HookEvent::Request(request);
    }
    if words != prompt
        && let Some((name, raw)) = split_command(&CLAUDE_CODE, words)
    {
        return HookEvent::Command { name: name.to_owned(), raw: raw.to_owned(), sure: false };
    }
    if is_the_clients(prompt) { HookEvent::Notified } else { HookEvent::Prompted }
}

/// The command inside a prompt that is one pasted element: the client sends a command that was
/// pasted whole as text. Returns the command's name and its raw arguments.
fn pasted_command(prompt: &str) -> Option<(String, String)> {
    let inner = prompt.trim().strip_prefix("<pasted_content")?;
    let (attributes, inner) = inner.split_once('>')?;
    let (inner, rest) = inner.rsplit_once("</pasted_content")?;
    let closing = rest.strip_suffix('>')?;
    let single = closing.is_empty() || closing == attributes;
    if !single || inner.contains("<pasted_content") {
        return None;
    }
    let inner = PASTED_ELEMENT.replace_all(inner, "<$1");
    let command = inner.trim().strip_prefix(COMMANDS)?;
    let end = command.find(char::is_whitespace).unwrap_or(command.len());
    Some((command[..end].to_owned(), command[end..].to_owned()))
}

/// A message without the old requests at its front. The client puts a message that was carried out
/// back into its input line, and the next message is appended to it.
fn without_old_requests(message: &str) -> &str {
    let mut left = message.trim();
    while let Some(rest) =
        after_request(left).filter(|rest| rest.starts_with(COMMANDS) || rest.starts_with("crew "))
    {
        left = rest;
    }
    left
}

/// Whether the client wrote the prompt: a wake, or the end of a background task.
fn is_the_clients(prompt: &str) -> bool {
    prompt.trim_start().starts_with("<task-notification>")
}

/// The placeholder in the queue for a message that is not a crew command.
const OTHER: &str = "";
/// The maximum number of queued messages kept, more than a person queues.
const QUEUE_MAX: usize = 64;
/// The longest command kept, in bytes; a longer one waits for its delivery.
const COMMAND_BYTES: usize = 8 << 10;

/// Updates the queue with a line of the transcript. A carried-out command that is taken back counts
/// as typed again if it returns.
pub fn update_queue(queue: &mut Queue, line: &str, session_id: &str) {
    if !line.contains("\"queue-operation\"") {
        return;
    }
    let Ok(line) = serde_json::from_slice::<Value>(line.as_bytes()) else { return };
    if !line.is("/type", "queue-operation") || !line.is("/sessionId", session_id) {
        return;
    }
    // The client delivers it after everything a person typed, so after this queue is empty.
    let text = line.text("/content");
    if text.is_some_and(|text| text.starts_with("<task-notification>")) {
        return;
    }
    let text = text.map(kept_text);
    let Queue { waiting: queue, executed, .. } = queue;
    let gone = match (line.word("/operation"), text) {
        ("enqueue", text) => {
            if queue.len() < QUEUE_MAX {
                queue.push(text.unwrap_or(OTHER).to_owned());
            }
            None
        }
        ("popAll", None) => {
            queue.clear();
            executed.clear();
            None
        }
        // This client does not say which message; only plain messages become part of a turn.
        ("remove", None) => position_of(OTHER, queue),
        // A carried-out command keeps its place in the queue, without its text.
        (operation, Some(text)) => position_of(text, queue).or_else(|| {
            if operation != "dequeue"
                && let Some(at) = executed.iter().position(|executed| executed.command == text)
            {
                executed.remove(at);
            }
            position_of(OTHER, queue)
        }),
        (_, None) if queue.is_empty() => None,
        (_, None) => Some(0),
    };
    if let Some(gone) = gone {
        queue.remove(gone);
    }
}

fn position_of(text: &str, queue: &[String]) -> Option<usize> {
    queue.iter().position(|queued| queued == text)
}

/// The part of a queued message that is kept: the whole text of a command that crew carries out,
/// otherwise [`OTHER`].
fn kept_text(text: &str) -> &str {
    let text = text.trim();
    if text.len() <= COMMAND_BYTES && queued_command(text).is_some() { text } else { OTHER }
}

/// The command in a queued message, and the text after it. The pasted part of a message is not in
/// the queue, so such a message waits for its delivery.
pub fn queued_command(text: &str) -> Option<(&str, &str)> {
    let (name, raw) = split_command(&CLAUDE_CODE, text)?;
    let is_obeyed = matches!(name, "pause" | "cancel-loop" | "status" | "handoff");
    if is_obeyed && !raw.contains("[Pasted text #") { Some((name, raw)) } else { None }
}

/// The exit status with which a companion starts a turn, whose prompt is what it wrote to standard
/// error.
const WAKES: u8 = 2;
/// The width of the client's line for a refused prompt.
const LINE_CHARS: usize = 100;

/// The answer to the event `name`.
pub(super) fn write_reply(name: &str, reply: &Reply) -> Output {
    let out = match reply {
        Reply::Nothing => return Output::default(),
        Reply::Wake(prompt) => {
            return Output { err: Some(prompt.clone()), status: WAKES, ..Output::default() };
        }
        Reply::GoOn { task, prompt, line } => json!({
            "systemMessage": clean_text(line),
            "hookSpecificOutput": {
                "hookEventName": name,
                "additionalContext": clean_around(task, prompt),
            },
        }),
        Reply::Say(text) => json!({ "systemMessage": clean_text(text.trim_end()) }),
        Reply::Instead(text) => {
            json!({ "decision": "block", "reason": clean_text(text.trim_end()) })
        }
        Reply::Executed(text) => acknowledge_request(text),
        Reply::Decide(words) => json!({
            "hookSpecificOutput": {
                "hookEventName": name,
                "permissionDecision": "deny",
                "permissionDecisionReason": clean_text(words),
            },
        }),
    };
    Output { out: Some(out), ..Output::default() }
}

/// The answer to a request that was typed as a message, which the client puts back into its input
/// line. It shows one line of the reason, and only with `suppressOriginalPrompt` (2.1.330).
fn acknowledge_request(text: &str) -> Value {
    const CLEAR: &str = "(Ctrl-U clears the line)";
    let room = LINE_CHARS - CLEAR.chars().count() - "crew:  ".len();
    let shown: String = clean_text(text).chars().take(room).collect();
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
mod prompt_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pasted_command_is_found_only_if_nothing_surrounds_it() {
        let table = [
            (
                "\n\n<pasted_content id=\"5\">\n/crew:loop fix\nall\n</pasted_content>",
                Some(("loop", " fix\nall")),
            ),
            (
                "<pasted_content id=\"5\">\n/crew:loop a\n</pasted_content id=\"5\">\n",
                Some(("loop", " a")),
            ),
            ("<pasted_content id=\"5\">/crew:status</pasted_content>\n", Some(("status", ""))),
            (
                "<pasted_content id=\"5\">/crew:loop a <\\/pasted_content> b</pasted_content id=\"5\">",
                Some(("loop", " a </pasted_content> b")),
            ),
            ("<pasted_content id=\"1\">\n/other:loop a\n</pasted_content>", None),
            ("look: <pasted_content id=\"1\">\n/crew:loop a\n</pasted_content>", None),
            ("<pasted_content id=\"1\">\n/crew:loop a\n</pasted_content> thanks", None),
            ("<pasted_content id=\"1\">\n/crew:loop a\n</pasted_content id=\"2\">", None),
            ("/crew:loop a", None),
        ];
        for (prompt, expected) in table {
            let found = pasted_command(prompt);
            let found = found.as_ref().map(|(name, raw)| (name.as_str(), raw.as_str()));
            assert_eq!(found, expected, "{prompt}");
        }
    }

    #[test]
    fn requests_at_the_front_of_a_message_are_removed_once_carried_out() {
        let table = [
            ("crew cancel/crew:cancel-loop", "/crew:cancel-loop"),
            ("crew pausecrew status", "crew status"),
            ("crew pausecrew statuscrew cancel wrong branch", "crew cancel wrong branch"),
            ("crew status/crew:handoff \"half\"", "/crew:handoff \"half\""),
            ("crew pause", "crew pause"),
            ("crew pauses often", "crew pauses often"),
            ("crew cancel k3v9abcdcrew status", "crew status"),
            ("crew status k3v9abcd/crew:resume k3v9abcd", "/crew:resume k3v9abcd"),
            ("crew cancel k3v9abcd", "crew cancel k3v9abcd"),
            ("crew cancel k3v9abcd crew status", "crew cancel k3v9abcd crew status"),
            ("crew pause /crew:status", "crew pause /crew:status"),
            ("please crew pausecrew status", "please crew pausecrew status"),
        ];
        for (message, expected) in table {
            assert_eq!(without_old_requests(message), expected, "{message:?}");
        }
    }

    #[test]
    fn the_text_of_a_wake_does_not_count_as_the_users() {
        assert!(is_the_clients("<task-notification>\n<summary>Stop hook feedback</summary>"));
        assert!(!is_the_clients("what is a <task-notification>?"));
    }

    proptest! {
        #[test]
        fn no_prompt_makes_the_reader_panic(prompt: String) {
            let _ = read_prompt(&prompt, false);
            let _ = read_prompt(&format!("<pasted_content {prompt}"), false);
        }
    }
}

#[cfg(test)]
mod queue_tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn op(operation: &str, content: Option<&str>) -> String {
        let mut line =
            json!({ "type": "queue-operation", "operation": operation, "sessionId": "s-1" });
        if let Some(content) = content {
            line["content"] = content.into();
        }
        line.to_string()
    }

    fn queue(lines: &[String]) -> Vec<String> {
        let mut queue = Queue::default();
        for line in lines {
            update_queue(&mut queue, line, "s-1");
        }
        queue.waiting
    }

    #[test]
    fn the_queue_keeps_commands_that_were_neither_withdrawn_nor_delivered() {
        let put = |text: &str| op("enqueue", Some(text));
        let (pause, status) = ("/crew:pause", "/crew:status");
        let table = [
            (vec![put(pause), put(status)], vec![pause, status]),
            (vec![put(pause), put(status), op("dequeue", None)], vec![status]),
            (vec![put(pause), op("popAll", Some(pause)), put(status)], vec![status]),
            (vec![put(pause), put(status), op("popAll", None)], vec![]),
            (vec![put(pause), put("hello"), op("remove", Some("hello"))], vec![pause]),
            (vec![put(pause), put("hello"), op("remove", None)], vec![pause]),
            (vec![put(pause), op("remove", None)], vec![pause]),
            (vec![put("hello"), put(pause), op("dequeue", None)], vec![pause]),
            (vec![put("<task-notification>x"), put(pause), op("dequeue", None)], vec![]),
            (
                vec![put("/crew:resume"), put("/crew:handoff [Pasted text #1 +9 lines]")],
                vec!["", ""],
            ),
        ];
        for (lines, expected) in table {
            assert_eq!(queue(&lines), expected, "{lines:#?}");
        }
    }

    #[test]
    fn an_operation_is_a_separate_line_of_this_session() {
        let inner = op("enqueue", Some("/crew:pause"));
        let table = [
            json!({ "type": "user", "message": { "content": inner } }).to_string(),
            json!({ "type": "user", "toolUseResult": serde_json::from_str::<Value>(&inner).unwrap() })
                .to_string(),
            inner.replace("s-1", "s-2"),
            inner.replace('}', ""),
            format!("text before {inner}"),
        ];
        for line in table {
            assert_eq!(queue(std::slice::from_ref(&line)), Vec::<String>::new(), "{line}");
        }
        assert_eq!(queue(&[inner]), ["/crew:pause"]);
    }

    #[test]
    fn a_queued_command_is_one_of_four_followed_by_its_text() {
        let table = [
            ("/crew:pause", Some(("pause", ""))),
            (" /crew:pause now ", Some(("pause", "now"))),
            ("/crew:cancel-loop wrong branch", Some(("cancel-loop", "wrong branch"))),
            ("/crew:status", Some(("status", ""))),
            ("/crew:handoff review \"done\"", Some(("handoff", "review \"done\""))),
            ("/crew:loop x", None),
            ("/crew:statusx", None),
            ("/other:status", None),
            ("please /crew:pause", None),
        ];
        for (text, expected) in table {
            assert_eq!(queued_command(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_the_reader_panic(line: String, operation: String, content: Option<String>) {
            let waiting = vec!["/crew:pause".to_owned()];
            let mut queue = Queue { waiting, ..Queue::default() };
            update_queue(&mut queue, &line, "s-1");
            update_queue(&mut queue, &op(&operation, content.as_deref()), "s-1");
        }
    }
}

#[cfg(test)]
mod reply_tests {
    use super::*;

    #[test]
    fn a_typed_request_is_answered_in_one_line_of_at_most_a_hundred_characters() {
        for text in ["pauses after iteration 4".to_owned(), "x".repeat(300)] {
            let value = acknowledge_request(&text);
            let reason = value["reason"].as_str().unwrap();
            assert!(reason.chars().count() <= LINE_CHARS, "{reason}");
            assert!(reason.ends_with("(Ctrl-U clears the line)"), "{reason}");
        }
    }
}
