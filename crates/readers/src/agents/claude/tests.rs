use super::*;
use chrono::FixedOffset;

use crate::agents::activity::KEPT_BYTES;
use crate::agents::find_agent;
use crate::agents::{Report, create_reader};
use engine::boundary::facts::ApiError;
use engine::claim::Claim;
use engine::claim::promise::Promise;
use engine::usage::{Money, Tokens, Usage};

/// Recordings from both clients.
macro_rules! both {
    ($name:literal) => {
        [
            include_str!(concat!("../../../../../tests/fixtures/claude/2.1.330/", $name, ".jsonl")),
            include_str!(concat!("../../../../../tests/fixtures/claude/2.1.197/", $name, ".jsonl")),
        ]
    };
}

pub(super) fn read(stream: &str) -> (Report, Vec<String>) {
    let mut reader = create_reader(&find_agent("claude").unwrap());
    let seen = stream.lines().filter_map(|line| reader.render_line(line)).collect();
    (reader.report(now()), seen)
}

fn now() -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-11-22T01:40:00Z").unwrap()
}

pub(super) fn claim(report: &Report) -> Claim {
    report.claim("Go.", "Go.", Some(&Promise::default()))
}

#[test]
fn the_result_is_the_final_message_and_its_sum_what_was_used() {
    let cost = [4_464_000_000, 5_580_000_000];
    for (stream, cost) in both!("plain").into_iter().zip(cost) {
        let (report, seen) = read(stream);
        let message = "All is well.\n\n<promise>COMPLETE</promise>";
        assert_eq!(report.final_message.as_deref(), Some(message));
        assert_eq!(seen, [format!("\"{}\"", message.replace("\n<", "\n <"))]);
        assert_eq!(claim(&report), Claim::Success);
        let tokens = Tokens { input: 1001, output: 23, ..Tokens::default() };
        let usage = Usage { tokens, cost: Money(cost), ..Usage::default() };
        assert_eq!((report.usage, report.turns, report.agent.error), (Some(usage), Some(1), None));
        assert!(report.model.unwrap().starts_with("claude-opus-"));
        assert!(!report.agent.cut && !report.agent.out_of_turns && report.agent.denied.is_empty());
    }
}

#[test]
fn tokens_are_counted_once_a_message_although_each_block_reports_them() {
    let cost = [23_526_000_000, 46_907_500_000];
    for (stream, cost) in both!("tools").into_iter().zip(cost) {
        let (report, seen) = read(stream);
        let call = "run    echo line >> work.txt";
        assert_eq!(
            seen,
            ["\"I will write.\"", call, "       → ok", "\"First part.\"", "\"Second part.\""]
        );
        assert_eq!(report.final_message.as_deref(), Some("Second part."));
        let tokens = Tokens {
            input: 1004,
            cache_write: 30,
            cache_write_hour: 100,
            cache_read: 70_000,
            output: 228,
        };
        assert_eq!(report.usage, Some(Usage { tokens, cost: Money(cost), ..Usage::default() }));
    }
}

#[test]
fn usage_without_a_final_sum_is_a_lower_bound() {
    for stream in both!("tools") {
        let lines: Vec<&str> =
            stream.lines().filter(|line| !line.contains("\"result\":")).collect();
        let usage = read(&lines.join("\n")).0.usage.unwrap();
        assert!(usage.lost);
        let tokens = usage.tokens;
        assert_eq!((tokens.input, tokens.cache_read, tokens.cache_write_hour), (1004, 70_000, 100));
        assert_eq!(tokens.output, 3, "each message's first event says less than its last");
        assert!(usage.cost > Money(19_000_000_000), "{usage:?}");
    }
}

#[test]
fn usage_is_lost_where_a_client_ends_early_and_absent_where_it_never_reports() {
    let lost = || Some(Usage { lost: true, ..Usage::default() });
    let table = [
        ("", lost()),
        ("Segmentation fault", lost()),
        (r#"{"type":"system","subtype":"init","model":"m"}"#, lost()),
        (r#"{"type":"result","is_error":true,"modelUsage":{}}"#, Some(Usage::default())),
        (r#"{"type":"result","is_error":false,"result":"Done."}"#, None),
    ];
    for (stream, expected) in table {
        assert_eq!(read(stream).0.usage, expected, "{stream}");
    }
}

#[test]
fn the_tokens_of_subagents_count_and_their_words_do_not() {
    let expected = [(31_037, 123, "Heard of it, 3."), (31_032, 122, "Heard of it, 2.")];
    for (stream, (input, output, message)) in both!("subagent").into_iter().zip(expected) {
        let (report, seen) = read(stream);
        assert_eq!(report.final_message.as_deref(), Some(message));
        assert!(!seen.iter().any(|line| line.contains("The part is done")), "{seen:?}");
        assert_eq!(claim(&report), Claim::None);
        let tokens = report.usage.unwrap().tokens;
        assert_eq!((tokens.input, tokens.output), (input, output));
    }
}

#[test]
fn tools_are_open_until_their_results_and_background_work_until_it_ends() {
    for (name, streams) in [("subagent", both!("subagent")), ("background", both!("background"))] {
        for stream in streams {
            let mut reader = create_reader(&find_agent("claude").unwrap());
            let mut open = Vec::new();
            for line in stream.lines() {
                reader.render_line(line);
                open.push(reader.tool_is_open());
            }
            let changes = open.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert_eq!((open[0], changes), (false, 2), "{name}: {open:?}");
        }
    }
}

#[test]
fn denied_tools_are_named_once() {
    for stream in both!("denied").into_iter().chain(both!("auto")) {
        let report = read(stream).0;
        assert_eq!(report.agent.denied, ["Bash"]);
        assert_eq!(
            (report.agent.error, report.final_message.as_deref()),
            (None, Some("I may not."))
        );
    }
}

#[test]
fn errors_are_classified_by_the_clients_own_kind() {
    let table = [
        ("limit", both!("limit"), "transient"),
        ("overloaded", both!("overloaded"), "transient"),
        ("server", both!("server"), "transient"),
        ("dropped", both!("dropped"), "transient"),
        ("auth", both!("auth"), "fatal"),
        ("forbidden", both!("forbidden"), "fatal"),
        ("billing", both!("billing"), "fatal"),
        ("no-model", both!("no-model"), "fatal"),
        ("too-long", both!("too-long"), "request"),
        ("invalid", both!("invalid"), "request"),
        ("refusal", both!("refusal"), "request"),
    ];
    for (name, streams, expected) in table {
        for stream in streams {
            let report = read(stream).0;
            let found = match report.agent.error.as_ref().unwrap_or_else(|| panic!("{name}")) {
                ApiError::Transient { .. } => "transient",
                ApiError::Fatal { .. } => "fatal",
                ApiError::Request { .. } => "request",
            };
            assert_eq!((found, &report.final_message), (expected, &None), "{name}");
            assert!(!report.agent.cut, "{name}");
        }
    }
}

#[test]
fn the_reset_of_a_limit_is_the_number_that_the_client_reports() {
    for stream in both!("limit-unified") {
        let Some(ApiError::Transient { message, reset, is_limit: true }) =
            read(stream).0.agent.error
        else {
            panic!()
        };
        assert_eq!(message, "You've hit your limit · resets 3:46am (UTC)");
        assert_eq!(reset.unwrap().to_rfc3339(), "2026-11-22T03:45:00+00:00");
        let words: Vec<&str> = stream.lines().filter(|line| !line.contains("_event\"")).collect();
        let Some(ApiError::Transient { reset, .. }) = read(&words.join("\n")).0.agent.error else {
            panic!()
        };
        assert_eq!(reset.unwrap().to_rfc3339(), "2026-11-22T03:46:00+00:00");
    }
}

#[test]
fn an_answer_ends_a_failure_of_the_service() {
    for stream in both!("recovered") {
        let (report, seen) = read(stream);
        assert_eq!(
            (report.agent.error, report.final_message.as_deref()),
            (None, Some("Here again."))
        );
        assert_eq!(seen[0], "the service did not answer (overloaded, 529): retry 1 of 4");
    }
}

#[test]
fn a_client_that_ends_during_a_retry_counts_as_a_failure_of_the_service() {
    for stream in both!("overloaded") {
        let lines: Vec<&str> = stream.lines().filter(|line| !line.contains("synthetic")).collect();
        let tried: Vec<&str> =
            lines.into_iter().filter(|line| !line.contains("\"result\"")).collect();
        let Some(ApiError::Transient { message, .. }) = read(&tried.join("\n")).0.agent.error
        else {
            panic!("{tried:?}")
        };
        assert_eq!(message, "the service did not answer (overloaded, 529): retry 2 of 2");
    }
}

#[test]
fn an_answer_to_a_subagent_ends_a_retry() {
    let retry = r#"{"type":"system","subtype":"api_retry","error":"overloaded","attempt":1}"#;
    let own = r#"{"type":"assistant","message":{"content":[]}}"#;
    let side = r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[]}}"#;
    let side_fails = r#"{"type":"assistant","parent_tool_use_id":"t","error":"overloaded"}"#;
    let fails = r#"{"type":"assistant","error":"overloaded","message":{"content":[]}}"#;
    let table = [
        (vec![retry], true),
        (vec![retry, own], false),
        (vec![retry, side], false),
        (vec![retry, side_fails], true),
        (vec![retry, side, retry], true),
        // The client gave up, so an answer to a subagent does not clear the error.
        (vec![retry, fails, side], true),
    ];
    for (lines, expected) in table {
        assert_eq!(read(&lines.join("\n")).0.agent.error.is_some(), expected, "{lines:?}");
    }
}

#[test]
fn a_tool_whose_result_was_lost_is_closed_by_the_next_message() {
    let mut reader = create_reader(&find_agent("claude").unwrap());
    let call = |message: &str, id: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{message}","content":[{{"type":"tool_use","id":"{id}"}}]}}}}"#
        )
    };
    reader.render_line(&call("m1", "one"));
    reader.render_line(&call("m1", "two"));
    reader.render_line(r#"{"type":"user","message":{"content":[{"tool_use_id":"two"}]}}"#);
    assert!(reader.tool_is_open());
    reader.render_line(r#"{"type":"assistant","message":{"id":"m2","content":[]}}"#);
    assert!(!reader.tool_is_open());
}

#[test]
fn an_answer_truncated_by_the_token_limit_is_neither_an_error_nor_a_claim() {
    for stream in both!("cut") {
        let report = read(stream).0;
        assert_eq!(
            (report.agent.cut, report.agent.error.clone(), claim(&report)),
            (true, None, Claim::None)
        );
        assert_eq!(report.last_words.as_deref(), Some("A part 4"));
    }
    for stream in both!("cut-once") {
        let report = read(stream).0;
        assert_eq!((report.agent.cut, report.final_message.as_deref()), (false, Some("the end.")));
    }
}

#[test]
fn a_limit_on_turns_is_not_an_error_and_leaves_no_claim() {
    for stream in both!("max-turns") {
        let stream = stream.replace("More.", "<promise>COMPLETE</promise>");
        let report = read(&stream).0;
        assert!(report.agent.out_of_turns && !report.agent.cut);
        assert_eq!((report.agent.error.clone(), claim(&report)), (None, Claim::None));
        assert_eq!(report.last_words.as_deref(), Some("<promise>COMPLETE</promise>"));
        assert_eq!(report.turns, Some(3));
    }
}

#[test]
fn a_mention_of_an_error_is_not_an_error() {
    for stream in both!("mention") {
        let report = read(stream).0;
        assert_eq!(report.agent.error, None);
        let message = "It is about API Error: 429 rate_limit_error, resets 3pm.";
        assert_eq!(report.final_message.as_deref(), Some(message));
    }
}

#[test]
fn text_before_a_tool_call_is_not_the_final_message_when_the_stream_ends() {
    let text = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}"#;
    let tool = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}}"#;
    let result =
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}"#;
    let side = r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}"#;
    let empty = r#"{"type":"result","subtype":"success","is_error":false,"result":""}"#;
    let table = [
        (vec![text, empty], true),
        (vec![text], false),
        (vec![tool, result, text], false),
        (vec![tool, result, text, empty], true),
        (vec![text, tool, empty], false),
        (vec![tool, side, empty], false),
        (vec![text, tool], false),
        (vec![text, tool, result], false),
        (vec![tool, side], false),
        (vec![tool, side, result], false),
    ];
    for (lines, expected) in table {
        let report = read(&lines.join("\n")).0;
        assert_eq!(claim(&report) == Claim::Success, expected, "{lines:?}");
    }
}

#[test]
fn text_or_work_after_the_result_withdraws_the_claim() {
    let done = r#"{"type":"result","is_error":false,"result":"<promise>COMPLETE</promise>"}"#;
    let text = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}"#;
    let back = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I take that back."},{"type":"tool_use","id":"t","name":"Bash"}]}}"#;
    let failed = r#"{"type":"assistant","error":"server_error","message":{"content":[{"type":"text","text":"API Error"}]}}"#;
    let turn = r#"{"type":"system","subtype":"init","model":"m"}"#;
    let empty = r#"{"type":"result","is_error":false,"result":""}"#;
    let side = r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"text","text":"Hm."}]}}"#;
    let table = [
        (vec![text, done], true),
        (vec![text, done, side], true),
        (vec![text, done, back], false),
        (vec![text, done, turn], false),
        (vec![text, done, failed], false),
        (vec![text, done, turn, back, done], true),
        (vec![text, done, turn, text, empty], true),
        (vec![text, done, turn, text], false),
    ];
    for (lines, expected) in table {
        let report = read(&lines.join("\n")).0;
        assert_eq!(claim(&report) == Claim::Success, expected, "{lines:?}");
    }
}

#[test]
fn junk_is_skipped_and_the_rest_counts() {
    let plain = both!("plain")[0];
    let junk = "\u{fffd}\u{fffd}\n{\"type\":\"assistant\",\"mess\n\n[1,2]\n\"text\"\n{\"type\":7}\n\
                {\"type\":\"an event of tomorrow\"}\n{\"type\":\"system\",\"subtype\":\"new\",\"message\":{}}\n\
                {\"type\":\"assistant\",\"message\":{\"content\":\"words\"}}\n\
                {\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":3}}";
    let deep = format!("{{\"type\":\"user\",\"message\":{}", "[".repeat(100_000));
    let (report, seen) = read(&format!("{junk}\n{deep}\n{plain}\n{junk}"));
    assert_eq!((&report.usage, &report.turns), (&read(plain).0.usage, &Some(1)));
    assert_eq!(report.final_message, read(plain).0.final_message);
    assert!(seen.iter().all(|line| line.len() < 100), "{seen:?}");
}

#[test]
fn no_event_is_dropped_because_of_one_bad_field() {
    let result = |field: &str| format!(r#"{{"type":"result","result":"Done.",{field}}}"#);
    for field in [r#""is_error":"no""#, r#""modelUsage":[]"#, r#""modelUsage":{"m":7}"#] {
        let report = read(&result(field)).0;
        assert_eq!(report.final_message.as_deref(), Some("Done."), "{field}");
    }
    let fails = r#"{"type":"assistant","error":"overloaded","message":"words"}"#;
    assert!(read(fails).0.agent.error.is_some());
    let mixed = r#"{"type":"assistant","message":{"content":[7,{"type":"text","text":"Hi."}]}}"#;
    assert_eq!(read(mixed).0.final_message.as_deref(), Some("Hi."));
}

#[test]
fn the_memory_of_the_reader_is_bounded() {
    let mut reader = create_reader(&find_agent("claude").unwrap());
    for number in 0..20_000 {
        let line = format!(
            r#"{{"type":"assistant","message":{{"id":"m{number}","model":"x","usage":{{"input_tokens":1}},"content":[{{"type":"tool_use","id":"t{number}","name":"T{number}"}}]}}}}"#
        );
        reader.render_line(&line);
        let denied =
            format!(r#"{{"type":"system","subtype":"permission_denied","tool_name":"T{number}"}}"#);
        reader.render_line(&denied);
    }
    let long = "é".repeat(KEPT_BYTES);
    let line = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{long}\n<promise>COMPLETE</promise>"}}]}}}}"#
    );
    assert!(reader.render_line(&line).unwrap().len() < 10_000);
    reader.render_line(r#"{"type":"result","result":""}"#);
    let report = reader.report(now());
    assert_eq!(report.agent.denied.len(), 50);
    assert!(report.final_message.as_ref().unwrap().len() <= KEPT_BYTES);
    assert_eq!(claim(&report), Claim::Success);
    assert_eq!(report.usage.unwrap().tokens.input, 20_000);
}

#[test]
fn a_failure_without_a_kind_is_classified_by_its_status() {
    let result = |rest: &str| {
        format!(r#"{{"type":"result","is_error":true,"result":"API Error: x",{rest}}}"#)
    };
    let table = [
        (result(r#""api_error_status":429"#), Some("transient")),
        (result(r#""api_error_status":401"#), Some("fatal")),
        (result(r#""api_error_status":413"#), Some("request")),
        (result(r#""api_error_status":null,"terminal_reason":"api_error""#), Some("transient")),
        (result(r#""subtype":"error_during_execution""#), None),
        (result(r#""subtype":"error_max_turns""#), None),
    ];
    for (line, expected) in table {
        let found = read(&line).0.agent.error.map(|error| match error {
            ApiError::Transient { .. } => "transient",
            ApiError::Fatal { .. } => "fatal",
            ApiError::Request { .. } => "request",
        });
        assert_eq!(found, expected, "{line}");
    }
}
