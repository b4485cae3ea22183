//! The client's queue: what the user types while the agent works, kept until the turn ends. The
//! transcript reports changes in separate lines: `enqueue` with the text; `popAll` when the user
//! takes everything back to edit it; `remove` when a plain text went into the turn; `dequeue` when
//! something is delivered. The same words inside another line are ignored. In doubt a command
//! counts as gone.

use serde::Deserialize;

use super::ClaudeCode;
use crate::clients::Queued;
use crate::clients::spelling::split;
use crate::engine::record::{Obeyed, Queue};

/// Stands in the queue for a text that is not a command of crew's.
const OTHER: &str = "";
/// More than a person queues; further texts are not kept.
const QUEUE_MAX: usize = 64;
/// The longest command kept, in bytes; a longer one waits for its delivery.
const COMMAND_BYTES: usize = 8 << 10;

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    operation: String,
    #[serde(rename = "sessionId")]
    session_id: String,
    content: Option<String>,
}

/// Updates the queue with a line of the transcript. An obeyed command that is taken back counts as
/// typed again if it comes back.
pub fn follow(queue: &mut Queue, line: &str, session_id: &str) {
    if !line.contains("\"queue-operation\"") {
        return;
    }
    let Ok(line) = serde_json::from_slice::<Line>(line.as_bytes()) else { return };
    if line.kind != "queue-operation" || line.session_id != session_id {
        return;
    }
    // The client delivers it after everything a person typed, so after this queue is empty.
    if line.content.as_deref().is_some_and(|text| text.starts_with("<task-notification>")) {
        return;
    }
    let text = line.content.as_deref().map(kept);
    let Queue { waiting: queue, obeyed, .. } = queue;
    let first = |of: &str, queue: &[String]| queue.iter().position(|text| text == of);
    let gone = match (&*line.operation, text) {
        ("enqueue", text) => {
            if queue.len() < QUEUE_MAX {
                queue.push(text.unwrap_or(OTHER).to_owned());
            }
            None
        }
        ("popAll", None) => {
            queue.clear();
            obeyed.clear();
            None
        }
        // This client does not say which text; only plain texts go into a turn.
        ("remove", None) => first(OTHER, queue),
        // An obeyed command keeps its place in the queue, without its text.
        (operation, Some(text)) => first(text, queue).or_else(|| {
            let is_it = |it: &Obeyed| operation != "dequeue" && it.command == text;
            obeyed.iter().position(is_it).map(|at| obeyed.remove(at));
            first(OTHER, queue)
        }),
        (_, None) => (!queue.is_empty()).then_some(0),
    };
    if let Some(gone) = gone {
        queue.remove(gone);
    }
}

fn kept(text: &str) -> &str {
    let text = text.trim();
    if text.len() <= COMMAND_BYTES && command(text).is_some() { text } else { OTHER }
}

/// The command that a queued text is. The pasted part of a text is not in the queue, so such a text
/// waits for its delivery.
pub fn command(text: &str) -> Option<Queued<'_>> {
    let (name, raw) = split(&ClaudeCode, text)?;
    match name {
        "pause" => Some(Queued::Pause),
        "cancel-loop" => Some(Queued::Cancel(raw)),
        "status" => Some(Queued::Status),
        "handoff" => Some(Queued::HandOff(raw)),
        _ => None,
    }
    .filter(|_| !raw.contains("[Pasted text #"))
}

#[cfg(test)]
mod tests {
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
            follow(&mut queue, line, "s-1");
        }
        queue.waiting
    }

    #[test]
    fn what_is_queued_and_not_taken_back_or_delivered_is_left() {
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
    fn only_a_line_of_its_own_of_this_session_is_an_operation() {
        let inner = op("enqueue", Some("/crew:pause"));
        let table = [
            json!({ "type": "user", "message": { "content": inner } }).to_string(),
            json!({ "type": "user", "toolUseResult": serde_json::from_str::<serde_json::Value>(&inner).unwrap() })
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
    fn a_queued_command_is_one_of_four_with_the_text_behind_it() {
        let table = [
            ("/crew:pause", Some(Queued::Pause)),
            (" /crew:pause now ", Some(Queued::Pause)),
            ("/crew:cancel-loop wrong branch", Some(Queued::Cancel("wrong branch"))),
            ("/crew:status", Some(Queued::Status)),
            ("/crew:handoff review \"done\"", Some(Queued::HandOff("review \"done\""))),
            ("/crew:loop x", None),
            ("/crew:statusx", None),
            ("/other:status", None),
            ("please /crew:pause", None),
        ];
        for (text, expected) in table {
            assert_eq!(command(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_the_reader_panic(line: String, operation: String, content: Option<String>) {
            let waiting = vec!["/crew:pause".to_owned()];
            let mut queue = Queue { waiting, ..Queue::default() };
            follow(&mut queue, &line, "s-1");
            follow(&mut queue, &op(&operation, content.as_deref()), "s-1");
        }
    }
}
