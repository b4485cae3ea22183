//! The client's transcript, one JSON object a line, read only from its end. The format is the
//! client's own and changes: a line that cannot be read is skipped, and what is not found is
//! absent.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;

use crate::clients::{FieldsByPointer, PendingCall};

/// Whether the agent used a tool in the turn that ends now. The turn begins with the last line that
/// holds `marker`, the beginning of crew's first line of the prompt up to its number, or with the
/// user's last prompt. If neither is in `tail`, every line counts if `cut` says that the tail
/// begins in the middle of this iteration; otherwise none does, because a tool call that cannot be
/// placed must not hide a reply without one from the client's cap. `None` if only earlier text can
/// decide.
pub fn used_a_tool(tail: &str, marker: &str, cut: bool) -> Option<bool> {
    let lines: Vec<&str> = tail.lines().collect();
    // The standard library searches for a short text many bytes at a time, for a long one byte by
    // byte.
    let short = marker.get(..SHORT).unwrap_or(marker);
    let is_marked = |line: &str| line.contains(short) && names(line, marker);
    let begin = lines.iter().rposition(|line| is_marked(line) || is_a_prompt(line));
    let turn = match begin {
        Some(begin) => &lines[begin + 1..],
        None if cut => &lines[..],
        None => return Some(false),
    };
    let used = turn.iter().filter_map(|line| of_assistant(line)).any(|content| content.used_a_tool);
    (used || begin.is_some()).then_some(used)
}

/// Whether the line holds the number that `marker` ends with, and not only as the start of a longer
/// number.
fn names(line: &str, marker: &str) -> bool {
    let mut rest = line.split(marker).skip(1);
    rest.any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// How much of a marker is searched for first, in bytes.
const SHORT: usize = 16;

/// A line of the user's that does not answer a tool.
fn is_a_prompt(line: &str) -> bool {
    // Inside a text the quotes would be escaped. Tool output is most of a transcript and not worth
    // parsing for this.
    if !line.contains("\"user\"") || line.contains("\"tool_result\"") {
        return false;
    }
    line_of("user", line)
        .is_some_and(|line| line.is_sidechain != Some(true) && !line.message.content.answers_a_tool)
}

/// The agent's final text: the last text block after the last line from the user's side. `None`
/// while that text has not been written.
pub fn final_text(tail: &str) -> Option<String> {
    let mut text = None;
    for line in tail.lines() {
        if let Some(content) = of_assistant(line) {
            text = content.last_text.or(text);
        } else if line.contains("\"type\":\"user\"") {
            text = None;
        }
    }
    text
}

/// Whether a file beside a session's transcript is the transcript of one of its subagents.
pub fn is_an_agents(name: &str) -> bool {
    name.starts_with("agent-") && Path::new(name).extension().is_some_and(|end| end == "jsonl")
}

/// Whether the user interrupted the agent (Esc), and it has not worked since: the client's own
/// mark, as a user's line that holds nothing else. The same words in a file or a tool's output do
/// not count, nor does an answer that the client makes up.
pub fn interrupted(tail: &str) -> bool {
    tail.lines().fold(false, |is_marked, line| {
        let has_worked = || !line.contains(MADE_UP) && of_assistant(line).is_some();
        is_mark(line) || (is_marked && !has_worked())
    })
}

fn is_mark(line: &str) -> bool {
    if !line.contains(INTERRUPTED) {
        return false;
    }
    let Some(line) = line_of("user", line) else { return false };
    let content = line.message.content;
    let only = content.last_text.filter(|_| content.blocks == 1).or(content.plain);
    only.is_some_and(|text| text.trim().starts_with(INTERRUPTED))
}

fn line_of<'line>(kind: &str, line: &'line str) -> Option<Line<'line>> {
    serde_json::from_slice(line.as_bytes()).ok().filter(|line: &Line<'_>| line.kind == kind)
}

/// The calls of tools that have no result yet, in their order.
pub fn pending_calls(tail: &str) -> Vec<PendingCall> {
    let mut pending: Vec<PendingCall> = Vec::new();
    // Inside a text the quotes would be escaped.
    let is_of_a_tool = |line: &&str| line.contains("\"tool_use") || line.contains("\"tool_result");
    for line in tail.lines().filter(is_of_a_tool) {
        let Ok(line) = serde_json::from_slice::<Value>(line.as_bytes()) else { continue };
        for block in line.list("/message/content") {
            match (block.word("/type"), block.owned("/name")) {
                ("tool_use", Some(tool)) => {
                    pending.push(PendingCall { id: block.word("/id").to_owned(), tool });
                }
                ("tool_result", _) => pending.retain(|it| !block.is("/tool_use_id", &it.id)),
                _ => {}
            }
        }
    }
    pending
}

/// Whether the text holds the result of the call with that id.
pub fn has_result(text: &str, call: &str) -> bool {
    text.contains(&format!("\"tool_use_id\":\"{call}\""))
}

/// How the client's mark of an interruption begins; "]" or " for tool use]" follows.
const INTERRUPTED: &str = "[Request interrupted by user";
/// How the client names the model of an answer that it made up.
const MADE_UP: &str = r#""model":"<synthetic>""#;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(rename = "isSidechain")]
    is_sidechain: Option<bool>,
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Content,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    text: Option<String>,
}

/// What is needed of a message's content. Its blocks are not kept: a line may hold very many
/// values, and in memory each is many times as large as its text.
#[derive(Default)]
struct Content {
    /// The content itself, where it is one text.
    plain: Option<String>,
    blocks: usize,
    used_a_tool: bool,
    answers_a_tool: bool,
    last_text: Option<String>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Self::default())
    }
}

impl<'de> Visitor<'de> for Content {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a text or the blocks of a message")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self, E> {
        Ok(Self { plain: Some(text.to_owned()), ..self })
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut source: A) -> Result<Self, A::Error> {
        while let Some(block) = source.next_element::<Block<'_>>()? {
            self.blocks += 1;
            self.used_a_tool |= block.kind == "tool_use";
            self.answers_a_tool |= block.kind == "tool_result";
            self.last_text = block.text.or(self.last_text);
        }
        Ok(self)
    }
}

fn of_assistant(line: &str) -> Option<Content> {
    if !line.contains("\"assistant\"") {
        return None;
    }
    let own = line_of("assistant", line).filter(|line| line.is_sidechain != Some(true));
    own.map(|line| line.message.content)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str =
        r#"{"type":"attachment","content":"crew loop k3v9abcd: iteration 2 of 5.\nGo"}"#;
    const LATER: &str =
        r#"{"type":"attachment","content":"crew loop k3v9abcd: iteration 20 of 50.\nGo"}"#;
    const TOOL: &str =
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash"}]}}"#;
    const TEXT: &str =
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hm"}]}}"#;
    const ASKED: &str = r#"{"type":"user","message":{"content":"how far are you?"}}"#;
    const QUOTING: &str = r#"{"type":"user","message":{"content":"what is a \"tool_result\"?"}}"#;
    const RESULT: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result"}]}}"#;
    const SIDE: &str =
        r#"{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"tool_use"}]}}"#;

    #[test]
    fn only_a_tool_used_after_this_iterations_prompt_counts() {
        let marker = "crew loop k3v9abcd: iteration 2";
        let table = [
            (vec![PROMPT, TOOL, RESULT, TEXT], false, Some(true)),
            (vec![TOOL, RESULT, PROMPT, TEXT], false, Some(false)),
            (vec![LATER, TOOL, RESULT, TEXT], false, Some(false)),
            (vec![PROMPT, SIDE, TEXT], false, Some(false)),
            (vec![TOOL, RESULT, TEXT], false, Some(false)),
            (vec![TOOL, RESULT, TEXT], true, Some(true)),
            (vec![TOOL, RESULT, ASKED, TEXT], true, Some(false)),
            (vec![TOOL, RESULT, QUOTING, TEXT], true, Some(false)),
            (vec![PROMPT, TEXT, ASKED, TOOL, RESULT, TEXT], false, Some(true)),
            (vec!["junk", "{\"type\":\"assistant\"}"], true, None),
        ];
        for (lines, cut, expected) in table {
            assert_eq!(used_a_tool(&lines.join("\n"), marker, cut), expected, "{lines:?}");
        }
    }

    #[test]
    fn only_the_clients_own_mark_is_an_interruption() {
        let mark = r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
        let in_tool =
            r#"{"type":"user","message":{"content":"[Request interrupted by user for tool use]"}}"#;
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"[Request interrupted by user]"}]}}"#;
        let told = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
        let made_up = TEXT.replace("\"content\"", "\"model\":\"<synthetic>\",\"content\"");
        assert!(interrupted(mark) && interrupted(in_tool));
        assert!(interrupted(&format!("{TEXT}\n{mark}\n{ASKED}\n{made_up}\n{SIDE}")));
        assert!(!interrupted(&format!("{mark}\n{ASKED}\n{TEXT}")));
        assert!(!interrupted(result) && !interrupted(told) && !interrupted(TEXT));
    }

    #[test]
    fn the_call_that_waits_is_the_newest_without_a_result() {
        let call = |id: &str, name: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"{name}"}}]}}}}"#
            )
        };
        let result = |id: &str| {
            format!(
                r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}"}}]}}}}"#
            )
        };
        let text = TEXT.to_owned();
        let table = [
            (vec![call("1", "Read"), result("1"), call("2", "Bash"), text.clone()], vec!["Bash"]),
            (vec![call("1", "Read"), call("2", "Bash"), result("2")], vec!["Read"]),
            (vec![call("1", "Edit"), call("2", "Bash")], vec!["Edit", "Bash"]),
            (vec![call("1", "Read"), result("1"), text], vec![]),
            (vec!["{\"tool_use".to_owned()], vec![]),
        ];
        for (lines, expected) in table {
            let pending = pending_calls(&lines.join("\n"));
            let tools: Vec<&str> = pending.iter().map(|it| it.tool.as_str()).collect();
            assert_eq!(tools, expected, "{lines:?}");
        }
        assert!(has_result(&result("toolu_1"), "toolu_1"));
        assert!(!has_result(&result("toolu_11"), "toolu_1") && !has_result(TEXT, ""));
    }

    #[test]
    fn the_final_text_is_never_an_older_turns() {
        let table = [
            (vec![PROMPT, TOOL, RESULT, TEXT], Some("hm")),
            (vec![TEXT, RESULT], None),
            (vec![TEXT, RESULT, TOOL], None),
            (vec!["{", TEXT, "{\"type\":\"system\"}"], Some("hm")),
        ];
        for (lines, expected) in table {
            assert_eq!(final_text(&lines.join("\n")).as_deref(), expected, "{lines:?}");
        }
    }
}
