//! The steps of an agent and the lines that show them: `crew run -v`, the block above the live line
//! and `crew show --log` look the same. A result is joined to its call if nothing came between
//! them. Nothing here is read back or judged.

use crate::clients::FieldsByPointer;
use derive_getters::Getters;
use serde_json::Value;

use crate::parse::test_output::TestOutput;
use engine::evidence::test_run::TestRun;
use engine::text::{
    clip_line, end_bytes, is_word_of, one_line, plain_text, table_rows, text_start, words_of,
};

/// How much of a command's output is searched for tests: the end, in bytes.
const OUTPUT_BYTES: usize = 256 << 10;
/// The maximum number of characters in the description of a call.
const SUBJECT_CHARS: usize = 200;
/// The maximum number of characters in the reason for a failed call.
const WHY_CHARS: usize = 80;
/// The maximum number of characters shown of one event.
const SHOWN_CHARS: usize = 2000;
/// How much of an agent's output is kept, in bytes: the last part, which has the claim.
pub(super) const KEPT_BYTES: usize = 256 * 1024;

/// Makes text safe on a person's terminal: bounded and without control sequences.
pub(super) fn sanitize_text(text: &str) -> String {
    plain_text(text_start(text.trim_end(), SHOWN_CHARS))
}

/// The text for a closing event that reports an error.
pub(super) fn says_error(what: &str) -> String {
    format!("the agent's closing event says error: {}", sanitize_text(what))
}

/// Adds a string to a list, once, until the list is full.
pub(super) fn push_once(list: &mut Vec<String>, text: &str) {
    const LISTED: usize = 50;
    const CHARACTERS: usize = 200;
    let text = plain_text(text_start(text.trim(), CHARACTERS));
    if !text.is_empty() && list.len() < LISTED && !list.contains(&text) {
        list.push(text);
    }
}

/// A step of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// The agent said something.
    Said(String),
    /// The agent began a call of a tool.
    Called(ToolCall),
    /// A call ended. `is_next` says that nothing was reported since the call began.
    Ended { call: ToolCall, result: String, is_next: bool },
    /// Its program reported something: an error, a retry, a refusal.
    Noted(String),
    /// A line that is not an event, as it was printed.
    Printed(String),
}

/// A call of a tool.
#[derive(Getters, Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// "read", "edit", "write", "run", "search", or the tool's own name.
    verb: String,
    /// The file, the command, or the search words.
    subject: String,
    /// Lines added and removed, where the call says so.
    lines: Option<(usize, usize)>,
}

/// The verb for a command, whose result is always shown.
pub(super) const RUN: &str = "run";
/// The longest name of a tool that is shown, in characters.
const NAME_CHARS: usize = 60;

/// The verbs for tools, each with the names that the agents have for them.
const TOOLS: &str = include_str!("tools.txt");

/// The verb for a tool, or the tool's own name if no verb is known.
fn tool_verb(tool: &str) -> &str {
    let known = table_rows(TOOLS).find(|(_, names)| is_word_of(names, tool));
    known.map_or_else(|| text_start(tool, NAME_CHARS), |(verb, _)| verb)
}

/// The step of a line that is not a known event. A broken event is not text, and too long to show.
pub(super) fn parse_printed(line: &str) -> Option<Activity> {
    let text = sanitize_text(line);
    if text.is_empty() || line.trim_start().starts_with('{') {
        return None;
    }
    Some(Activity::Printed(text))
}

/// The arguments that describe what a call is about, the most useful first.
const SUBJECTS: &str = "command file_path filePath notebook_path path pattern url query description \
    prompt";
/// The arguments of an edit: the string that it replaces, and the new one.
const EDITS: [(&str, &str); 5] = [
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("", "content"),
    ("", "file_text"),
];

impl ToolCall {
    pub(super) fn new(verb: &str, subject: &str) -> Self {
        let subject = one_line(subject, SUBJECT_CHARS);
        Self { verb: verb.to_owned(), subject, lines: None }
    }

    /// The call that an event reports, given pointers to the tool's name and its arguments. Files
    /// below `folder` are shown relative to it.
    pub(super) fn from_event(event: &Value, tool: &str, arguments: &str, folder: &str) -> Self {
        let tool = event.text(tool).unwrap_or("a tool");
        let arguments = event.pointer(arguments).unwrap_or(&Value::Null);
        let subject = words_of(SUBJECTS).find_map(|name| arguments[name].as_str());
        let subject = text_start(subject.unwrap_or_default(), SUBJECT_CHARS);
        let below = match subject.strip_prefix(folder) {
            Some(rest) if !folder.is_empty() => rest.strip_prefix('/'),
            _ => None,
        };
        Self { lines: lines_of(arguments), ..Self::new(tool_verb(tool), below.unwrap_or(subject)) }
    }

    /// The result of this call, if it is worth showing.
    pub(super) fn render_result(
        &self,
        output: &str,
        exit: Option<i64>,
        is_failure: bool,
    ) -> Option<String> {
        if self.verb == RUN {
            return Some(render_command_result(output, exit, is_failure));
        }
        if is_failure { Some(render_failure(output)) } else { None }
    }

    fn render_line(&self) -> String {
        let lines = self.lines.map(|(added, removed)| match (added, removed) {
            (added, 0) => format!("  +{added}"),
            (added, removed) => format!("  +{added} -{removed}"),
        });
        format!("{:<6} {}{}", self.verb, self.subject, lines.unwrap_or_default())
    }
}

/// The lines for consecutive steps, without the last line break; `None` without steps.
pub fn render_steps(steps: &[Activity]) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for step in steps {
        let line = match (step, lines.pop()) {
            (Activity::Ended { result, is_next: true, .. }, Some(call)) => {
                format!("{call}  → {result}")
            }
            (step, before) => {
                lines.extend(before);
                step.render_line()
            }
        };
        lines.push(line);
    }
    if lines.is_empty() { None } else { Some(lines.join("\n")) }
}

impl Activity {
    fn render_line(&self) -> String {
        match self {
            Self::Said(words) => quote_words(words),
            Self::Called(call) => call.render_line(),
            Self::Ended { result, is_next: true, .. } => format!("{:<6} → {result}", ""),
            Self::Ended { call, result, .. } => format!("{}  → {result}", call.render_line()),
            Self::Noted(text) | Self::Printed(text) => text.clone(),
        }
    }
}

/// An agent's words, in quotation marks and aligned behind the first.
fn quote_words(words: &str) -> String {
    let words = sanitize_text(words.trim());
    let lines: Vec<&str> = words.lines().collect();
    format!("\"{}\"", lines.join("\n ")).replace("\n \n", "\n\n")
}

/// The lines that a call with these arguments adds and removes; `None` where it changes none.
fn lines_of(arguments: &Value) -> Option<(usize, usize)> {
    let edits = arguments.list("/edits").iter().filter_map(|edit| lines_of_edit(edit, EDITS[0]));
    let sum = edits.reduce(|one, other| (one.0 + other.0, one.1 + other.1));
    sum.or_else(|| EDITS.into_iter().find_map(|names| lines_of_edit(arguments, names)))
}

/// The lines of one edit, whose two strings have these names.
fn lines_of_edit(edit: &Value, (old, new): (&str, &str)) -> Option<(usize, usize)> {
    Some(count_changed_lines(edit[old].as_str().unwrap_or_default(), edit[new].as_str()?))
}

/// How many lines an edit adds and removes, without the lines that it keeps at both ends.
fn count_changed_lines(old: &str, new: &str) -> (usize, usize) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[same..], &new[same..]);
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    (new.len() - same, old.len() - same)
}

/// The result of a command: its tests, its exit status, or why it failed; "ok" otherwise.
fn render_command_result(output: &str, exit: Option<i64>, is_failure: bool) -> String {
    let mut tests = TestOutput::default();
    for line in end_bytes(output, OUTPUT_BYTES).lines() {
        tests.take_line(line);
    }
    match (tests.report().filter(|run| run.ran_any() || run.has_failed()), exit) {
        (Some(run), _) if run.has_failed() => render_test_run(&run),
        (Some(run), _) if !is_failure && run.passed > 0 => format!("{} passed", run.passed),
        (_, Some(0) | None) if !is_failure => "ok".to_owned(),
        (_, Some(exit)) => format!("exit {exit}"),
        (_, None) => render_failure(output),
    }
}

fn render_test_run(run: &TestRun) -> String {
    match (run.failed, run.passed) {
        (0, _) => "not all tests could be run".to_owned(),
        (failed, 0) => format!("{failed} failed"),
        (failed, passed) => format!("{failed} failed, {passed} passed"),
    }
}

/// "failed: the first line of what was said about it".
fn render_failure(output: &str) -> String {
    let line = output.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.is_empty() {
        "failed".to_owned()
    } else {
        format!("failed: {}", clip_line(line, WHY_CHARS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_aligned_lines_with_each_result_beside_its_call() {
        let edit = ToolCall { lines: Some((14, 3)), ..ToolCall::new("edit", "src/reset/token.rs") };
        let write = ToolCall { lines: Some((9, 0)), ..ToolCall::new("write", "src/new.rs") };
        let test = ToolCall::new(RUN, "cargo test reset::");
        let ended = |is_next| Activity::Ended {
            call: test.clone(),
            result: "1 failed".to_owned(),
            is_next,
        };
        let steps = [
            Activity::Called(ToolCall::new("read", "src/reset/token.rs")),
            Activity::Called(edit),
            Activity::Called(write),
            Activity::Called(test.clone()),
            ended(true),
            Activity::Noted("the service did not answer: retry 1 of 2".to_owned()),
            ended(false),
            Activity::Said("Expiry compared local time with UTC.\nFixing it.".to_owned()),
        ];
        insta::assert_snapshot!(render_steps(&steps).unwrap(), @r#"
        read   src/reset/token.rs
        edit   src/reset/token.rs  +14 -3
        write  src/new.rs  +9
        run    cargo test reset::  → 1 failed
        the service did not answer: retry 1 of 2
        run    cargo test reset::  → 1 failed
        "Expiry compared local time with UTC.
         Fixing it."
        "#);
        assert_eq!(render_steps(&[ended(true)]).unwrap(), "       → 1 failed");
        assert_eq!(render_steps(&[]), None);
    }

    #[test]
    fn a_call_is_shown_by_its_most_useful_argument() {
        let long = format!(r#"{{"command":"{}"}}"#, "é".repeat(9000));
        let table = [
            (r#"{"description":"why","command":"ls","x":1}"#, "ls", None),
            (r#"{"command":{},"file_path":"/a/b.rs","content":"1\n2"}"#, "b.rs", Some((2, 0))),
            (r#"{"path":"/ab.rs","old_str":"1","new_str":""}"#, "/ab.rs", Some((0, 1))),
            (r#"{"todos":[]}"#, "", None),
            (&long, &"é".repeat(SUBJECT_CHARS), None),
        ];
        for (arguments, subject, lines) in table {
            let event = format!(r#"{{"tool":"Bash","with":{arguments}}}"#);
            let call = ToolCall::from_event(
                &serde_json::from_str(&event).unwrap(),
                "/tool",
                "/with",
                "/a",
            );
            assert_eq!(call.verb, RUN);
            assert_eq!((&*call.subject, call.lines), (subject, lines), "{arguments:.99}");
        }
        assert_eq!(ToolCall::from_event(&Value::Null, "/tool", "/with", "").verb, "a tool");
        let edits = r#"{"edits":[{"old_string":"1","new_string":"2\n3"},7,{"new_string":"4"}]}"#;
        assert_eq!(lines_of(&serde_json::from_str(edits).unwrap()), Some((3, 1)));
    }

    #[test]
    fn an_edit_counts_the_lines_that_it_changes() {
        for (old, new, expected) in [
            ("a\nb\nc", "a\nx\ny\nc", (2, 1)),
            ("a\nb", "a\nb\nc", (1, 0)),
            ("a\nb\nb", "a\nb", (0, 1)),
            ("", "a\nb", (2, 0)),
            ("a", "a", (0, 0)),
        ] {
            assert_eq!(count_changed_lines(old, new), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn a_command_is_shown_by_its_tests_its_status_or_its_first_words() {
        let cargo = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        let passed = "test result: ok. 215 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        for (output, exit, is_failure, expected) in [
            (cargo, Some(101), true, "1 failed, 1 passed"),
            (passed, Some(0), false, "215 passed"),
            (passed, Some(1), true, "exit 1"),
            ("", Some(0), false, "ok"),
            ("warning: x", None, false, "ok"),
            ("no such file", Some(2), true, "exit 2"),
            (
                "\n  The user doesn't want this.\nmore",
                None,
                true,
                "failed: The user doesn't want this.",
            ),
            ("", None, true, "failed"),
        ] {
            assert_eq!(render_command_result(output, exit, is_failure), expected, "{output:?}");
        }
    }
}
