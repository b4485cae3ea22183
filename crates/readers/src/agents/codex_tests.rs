use chrono::{DateTime, FixedOffset};

use crate::agents::Report;
use crate::agents::create_reader;
use crate::agents::find_agent;
use engine::boundary::facts::{AgentClosing, AgentOutcome, ApiError};
use engine::claim::Claim;
use engine::claim::promise::Promise;
use engine::usage::{Tokens, Usage};

const NAME: &str = "codex";

/// The sample from its documentation, with a final message that claims success.
const SAMPLE: &str = include_str!("../../../../tests/fixtures/codex/sample.jsonl");

fn read(lines: &str) -> (Report, Vec<String>) {
    let mut reader = create_reader(&find_agent(NAME).unwrap());
    let seen = lines.lines().filter_map(|line| reader.render_line(line)).collect();
    (reader.report(now()), seen)
}

fn now() -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap()
}

#[test]
fn the_sample_is_read_to_its_final_message_and_its_tokens() {
    let (report, seen) = read(SAMPLE);
    assert_eq!(
        report.final_message.as_deref(),
        Some("The README is there.\n\n<promise>COMPLETE</promise>")
    );
    assert_eq!(report.claim("Go.", "Go.", Some(&Promise::default())), Claim::Success);
    let tokens = Tokens { input: 315, cache_read: 24_448, output: 122, ..Tokens::default() };
    let usage = Usage {
        tokens,
        unpriced: tokens,
        unpriced_models: vec!["codex".to_owned()],
        ..Usage::default()
    };
    assert_eq!(report.usage, Some(usage));
    assert_eq!((report.agent.error, report.turns), (None, Some(1)));
    assert_eq!(
        seen,
        [
            "run    ls",
            "       → ok",
            "edit   README.md",
            "\"The README is there.\n\n <promise>COMPLETE</promise>\""
        ]
    );
}

#[test]
fn a_tool_is_open_from_its_beginning_to_its_end() {
    let mut reader = create_reader(&find_agent(NAME).unwrap());
    let mut open = Vec::new();
    for line in SAMPLE.lines() {
        reader.render_line(line);
        open.push(reader.tool_is_open());
    }
    // One after the other: thread, turn, list, thought; command started; command ended, change,
    // message, list ended, turn ended.
    assert_eq!(open, [false, false, false, false, true, false, false, false, false, false]);
}

#[test]
fn text_before_more_work_is_not_the_final_message() {
    let lines = r#"{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"<promise>COMPLETE</promise>"}}
{"type":"item.started","item":{"id":"2","type":"command_execution","command":"ls","status":"in_progress"}}"#;
    let (report, _) = read(lines);
    assert_eq!(report.final_message, None);
    assert_eq!(report.last_words.as_deref(), Some("<promise>COMPLETE</promise>"));
    assert_eq!(report.claim("Go.", "Go.", Some(&Promise::default())), Claim::None);
}

#[test]
fn a_failed_turn_is_classified_by_its_message() {
    let sort = |message: &str| {
        let line = serde_json::json!({"type": "turn.failed", "error": {"message": message}});
        match read(&line.to_string()).0.agent.error.unwrap() {
            ApiError::Transient { .. } => "transient",
            ApiError::Fatal { .. } => "fatal",
            ApiError::Request { .. } => "request",
        }
    };
    let table = [
        ("exceeded retry limit, last status: 429 Too Many Requests, request id: x", "transient"),
        ("You've hit your usage limit. Upgrade to Pro or try again at 3:28 PM.", "transient"),
        ("stream disconnected before completion: error sending request", "transient"),
        ("unexpected status 503 Service Unavailable: overloaded", "transient"),
        ("a sentence of tomorrow", "transient"),
        ("exceeded retry limit, last status: 401 Unauthorized, request id: x", "fatal"),
        ("unexpected status 401 Unauthorized: Missing bearer authentication", "fatal"),
        ("unexpected status 403 Forbidden: x", "fatal"),
        ("exceeded retry limit, last status: 403 Forbidden, request id: x", "fatal"),
        ("Quota exceeded. Check your plan and billing details.", "fatal"),
        ("unexpected status 404 Not Found: {\"code\":\"model_not_found\"}", "fatal"),
        ("Codex ran out of room in the model's context window. Start a new thread.", "request"),
        ("unexpected status 400 Bad Request: invalid", "request"),
    ];
    for (message, expected) in table {
        assert_eq!(sort(message), expected, "{message}");
    }
}

#[test]
fn a_retry_that_succeeded_is_not_an_error() {
    let lines = r#"{"type":"turn.started"}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"item.completed","item":{"id":"0","type":"command_execution","command":"cat x","aggregated_output":"{\"type\":\"turn.failed\"}\nexceeded retry limit, last status: 429 Too Many Requests","status":"completed","exit_code":0}}
{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"exceeded retry limit, last status: 429"}}
{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":1}}"#;
    let (report, _) = read(lines);
    assert_eq!(report.agent.error, None);
    assert_eq!(report.final_message.as_deref(), Some("exceeded retry limit, last status: 429"));
}

#[test]
fn an_unfinished_turn_may_have_used_more_than_is_known() {
    let (report, _) = read(r#"{"type":"turn.started"}"#);
    assert_eq!(report.usage.map(|usage| (usage.lost, usage.tokens.total())), Some((true, 0)));
    let lost = Usage { lost: true, ..Usage::default() };
    assert_eq!(read("").0.usage, Some(lost));
}

#[test]
fn a_declined_command_is_a_denial() {
    let line = r#"{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"rm -r x","status":"declined"}}"#;
    let (report, seen) = read(&format!("{line}\n{line}"));
    assert_eq!(report.agent.denied, ["run rm -r x"]);
    assert_eq!(seen[0], "denied: run rm -r x");
}

#[test]
fn no_event_is_dropped_because_of_one_bad_field() {
    let failed = r#"{"type":"turn.failed","error":"words","item":[],"usage":7}"#;
    assert!(read(failed).0.agent.error.is_some());
}

#[test]
fn junk_is_skipped() {
    let (report, seen) =
        read("Reading prompt from stdin...\n{\"type\":\"item.com\n[]\n{}\n\u{fffd}\n");
    assert_eq!(seen, ["Reading prompt from stdin...", "[]", "\u{fffd}"]);
    let lost = Usage { lost: true, ..Usage::default() };
    assert_eq!(
        report,
        Report {
            usage: Some(lost),
            agent: AgentOutcome { closing: AgentClosing::Missing, ..AgentOutcome::default() },
            ..Report::default()
        }
    );
}

#[test]
fn a_thought_or_a_todo_list_shows_that_the_service_answered_and_a_warning_does_not() {
    let item = |kind: &str| {
        let retry = r#"{"type":"error","message":"Reconnecting... 1/5 (unexpected status 429: slow down)"}"#;
        format!(
            "{retry}\n{{\"type\":\"item.completed\",\"item\":{{\"id\":\"1\",\"type\":\"{kind}\"}}}}"
        )
    };
    let streams = ["reasoning", "todo_list", "agent_message", "error"];
    let reports: Vec<String> = streams
        .iter()
        .map(|kind| crate::agents::tests::render_report(NAME, kind, "", &item(kind)))
        .collect();
    insta::assert_snapshot!(reports.join("\n"), @"
    reasoning: no claim, not closed, at least 0 tokens
    todo_list: no claim, not closed, at least 0 tokens
    agent_message: no claim, not closed, at least 0 tokens
    error: no claim, not closed, a limit, waits, at least 0 tokens
    ");
}

#[test]
fn only_failures_that_waiting_cannot_end_make_an_agent_hopeless() {
    let retry = |number: u32, why: &str| {
        format!(r#"{{"type":"error","message":"Reconnecting... {number}/5 ({why})"}}"#)
    };
    let (broken, refused) = ("stream disconnected", "unexpected status 400 Bad Request: no");
    let streams = [
        ("one refusal", vec![broken, broken, refused]),
        ("three refusals", vec![broken, refused, refused, refused]),
        ("refusals with a break between", vec![refused, refused, broken, refused]),
    ];
    let reports = streams.map(|(name, tries)| {
        let lines: Vec<String> = (1..).zip(tries).map(|(number, why)| retry(number, why)).collect();
        crate::agents::tests::render_report(NAME, name, "", &lines.join("\n"))
    });
    insta::assert_snapshot!(reports.join("\n"), @"
    one refusal: no claim, not closed, a refused request: unexpected status 400 Bad Request: no, pauses for 0 s, at least 0 tokens
    three refusals: no claim, not closed, a refused request: unexpected status 400 Bad Request: no, tries in vain, at least 0 tokens
    refusals with a break between: no claim, not closed, a refused request: unexpected status 400 Bad Request: no, pauses for 0 s, at least 0 tokens
    ");
}
