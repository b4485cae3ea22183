//! The client's transcript, one JSON object a line, read from its end only. Its format is the client's
//! own and changes: a line that is not understood is passed over, and what cannot be found is absent.

use serde_json::Value;

/// Whether the agent used a tool after the line that holds `marker`, crew's own first line of the prompt
/// now being answered. Where the marker is not in `tail`, every line counts if `cut` says that the tail
/// begins in the middle of this iteration, and none does otherwise: a tool call that cannot be placed
/// must not hide a reply without one from the client's cap.
pub fn used_a_tool(tail: &str, marker: &str, cut: bool) -> bool {
    let after = match tail.rfind(marker).map(|place| tail[place..].split_once('\n')) {
        Some(Some((_, after))) => after,
        None if cut => tail,
        _ => return false,
    };
    after.lines().filter_map(assistant_content).any(|content| {
        content.iter().any(|block| block.get("type").and_then(Value::as_str) == Some("tool_use"))
    })
}

/// The text the agent ended with: the last text block after the last line that came from the other
/// side. `None` while that line has not been written.
pub fn final_text(tail: &str) -> Option<String> {
    let mut text = None;
    for line in tail.lines() {
        if let Some(content) = assistant_content(line) {
            let said = content.iter().rev().find_map(|block| block.get("text")?.as_str());
            text = said.map(str::to_owned).or(text);
        } else if line.contains("\"type\":\"user\"") {
            text = None;
        }
    }
    text
}

/// Whether the user interrupted the agent (Esc): the client's own mark, as a user's line that holds
/// nothing else. The same words in a file or a tool's output are not one.
pub fn interrupted(tail: &str) -> bool {
    tail.lines().filter(|line| line.contains(INTERRUPTED)).any(|line| {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return false };
        let content = &value["message"]["content"];
        let text = match content.as_array().map(Vec::as_slice) {
            Some([only]) => only["text"].as_str(),
            _ => content.as_str(),
        };
        value["type"] == "user" && text.is_some_and(|text| text.trim().starts_with(INTERRUPTED))
    })
}

/// How the client's mark of an interruption begins; it goes on with "]" or " for tool use]".
const INTERRUPTED: &str = "[Request interrupted by user";

fn assistant_content(line: &str) -> Option<Vec<Value>> {
    if !line.contains("\"assistant\"") {
        return None;
    }
    let mut value: Value = serde_json::from_str(line).ok()?;
    let own = value.get("type")?.as_str()? == "assistant"
        && value.get("isSidechain").and_then(Value::as_bool) != Some(true);
    let content = value.get_mut("message")?.get_mut("content")?.take();
    match content {
        Value::Array(blocks) if own => Some(blocks),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str =
        r#"{"type":"attachment","content":"crew loop k3v9abcd: iteration 2 of 5.\nGo"}"#;
    const TOOL: &str =
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash"}]}}"#;
    const TEXT: &str =
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hm"}]}}"#;
    const RESULT: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result"}]}}"#;
    const SIDE: &str =
        r#"{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"tool_use"}]}}"#;

    #[test]
    fn only_a_tool_used_after_this_iterations_prompt_counts() {
        let marker = "crew loop k3v9abcd: iteration 2 of 5.";
        let table = [
            (vec![PROMPT, TOOL, RESULT, TEXT], false, true),
            (vec![TOOL, RESULT, PROMPT, TEXT], false, false),
            (vec![PROMPT, SIDE, TEXT], false, false),
            (vec![TOOL, RESULT, TEXT], false, false),
            (vec![TOOL, RESULT, TEXT], true, true),
            (vec!["junk", "{\"type\":\"assistant\"}"], true, false),
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
        assert!(interrupted(mark) && interrupted(in_tool));
        assert!(!interrupted(result) && !interrupted(told) && !interrupted(TEXT));
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
