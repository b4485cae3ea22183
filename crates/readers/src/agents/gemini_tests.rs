use chrono::DateTime;

use crate::agents::create_reader;
use crate::agents::find_agent;
use crate::agents::recordings_tests::pass;
use crate::agents::tests::render_report;

const NAME: &str = "gemini";

#[test]
fn the_events_of_a_turn_are_understood() {
    let part = |text: &str| {
        format!(r#"{{"type":"message","role":"assistant","delta":true,"content":"{text}"}}"#)
    };
    let said = format!("{}\n{}", part("Done.\\n<promise>COM"), part("PLETE</promise>"));
    let stats = r#""stats":{"input_tokens":1000,"output_tokens":50,"cached":800}"#;
    let ended = format!(r#"{{"type":"result","status":"success",{stats}}}"#);
    let failed = |words: &str| {
        format!(r#"{{"type":"result","status":"error","error":{{"message":"{words}"}},{stats}}}"#)
    };
    let fatal = |kind: &str| {
        let error = format!(r#""error":{{"type":"{kind}","message":"No."}}"#);
        format!("{said}\n{{\"type\":\"result\",\"status\":\"error\",{error},{stats}}}")
    };
    let broken = r#"{"type":"error","severity":"error","message":"The stream ended."}
{"type":"result","status":"error"}"#;
    let call = r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{"command":"make"}}"#;
    let denied = r#"{"type":"tool_result","tool_id":"1","status":"error","error":{"type":"policy_violation","message":"Denied."}}"#;
    let streams = [
        ("a claim in two parts", format!("{said}\n{ended}")),
        ("no closing event", said.clone()),
        ("the prompt is not an answer", format!("{}\n{ended}", said.replace("assistant", "user"))),
        ("a broken stream", format!("{said}\n{broken}")),
        ("a call after the words", format!("{said}\n{call}")),
        ("a denied call", format!("{call}\n{denied}\n{said}\n{ended}")),
        (
            "a wrong key",
            failed(r#"[API Error: {\"error\":{\"code\":401,\"message\":\"Wrong key\"}}]"#),
        ),
        (
            "a limit of an hour",
            failed(r"[API Error: Rate limit reached.\nSuggested retry after 3600s.]\nPlease wait."),
        ),
        ("its own limit on turns", fatal("FatalTurnLimitedError")),
        ("a broken tool", fatal("FatalToolExecutionError")),
        ("a cancellation", fatal("FatalCancellationError")),
        ("no login", fatal("FatalAuthenticationError")),
        ("wrong settings", fatal("FatalConfigError")),
        ("another error of the service", fatal("unknown")),
        (
            "thoughts",
            format!("{said}\n{}", ended.replace("{\"inp", "{\"total_tokens\":2050,\"inp")),
        ),
    ];
    let reports: Vec<String> =
        streams.iter().map(|(name, stream)| render_report(NAME, name, "", stream)).collect();
    insta::assert_snapshot!(reports.join("\n"), @"
    a claim in two parts: claims success, 1050 tokens
    no closing event: no claim, not closed, at least 0 tokens
    the prompt is not an answer: no claim, 1050 tokens
    a broken stream: no claim, an outage, at least 0 tokens
    a call after the words: no claim, not closed, at least 0 tokens
    a denied call: claims success, denied run make, 1050 tokens
    a wrong key: no claim, blocked: log in again, or fix the API key, 1050 tokens
    a limit of an hour: no claim, a limit until 02:00, 1050 tokens
    its own limit on turns: no claim, out of turns, 1050 tokens
    a broken tool: no claim, the agent's closing event says error: No., 1050 tokens
    a cancellation: no claim, the agent's closing event says error: No., 1050 tokens
    no login: no claim, blocked: log in again, or fix the API key, 1050 tokens
    wrong settings: no claim, the agent's closing event says error: No., 1050 tokens
    another error of the service: no claim, an outage, 1050 tokens
    thoughts: claims success, 2050 tokens
    ");
}

#[test]
fn a_wait_is_read_from_standard_error_and_ends_with_the_next_event() {
    let ended = r#"{"type":"message","role":"assistant","delta":true,"content":"Done."}
{"type":"result","status":"success"}"#;
    let streams = [
        (
            "it pauses",
            "Attempt 1 failed: Rate limit reached\nSuggested retry after 5s.. Retrying after 5681ms...",
            String::new(),
        ),
        (
            "it pauses for an hour",
            "Attempt 1 failed: You have exhausted your capacity. Retrying after 3900000ms...",
            String::new(),
        ),
        (
            "an outage",
            "Attempt 1 failed with status 500. Retrying with backoff... _ApiError: {\"error\":{\"code\":500,\"message\":\"Sorry.\"}}",
            String::new(),
        ),
        (
            "an outage that was outlasted",
            "Attempt 1 failed with status 500. Retrying with backoff...",
            ended.to_owned(),
        ),
        ("other words of its tools", "Attempt it again\nRetrying after 5681ms...", String::new()),
    ];
    let reports: Vec<String> = streams
        .iter()
        .map(|(name, errors, stream)| render_report(NAME, name, errors, stream))
        .collect();
    insta::assert_snapshot!(reports.join("\n"), @"
    it pauses: no claim, not closed, a limit, pauses for 5 s, at least 0 tokens
    it pauses for an hour: no claim, not closed, a limit until 02:05, pauses for 3900 s, at least 0 tokens
    an outage: no claim, not closed, an outage, pauses for 30 s, at least 0 tokens
    an outage that was outlasted: no claim, at least 0 tokens
    other words of its tools: no claim, not closed, at least 0 tokens
    ");
}

#[test]
fn the_message_of_a_retry_is_cleared_by_the_next_event() {
    let (failed, retrying) = ("Attempt 1 failed: No.", "Retrying after 5681ms...");
    let event = r#"{"type":"init"}"#;
    let streams = [
        ("on two lines", vec![failed, "and more", retrying]),
        ("with an event between", vec![failed, event, retrying]),
    ];
    let waits = streams.map(|(name, lines)| {
        let mut reader = create_reader(&find_agent(NAME).unwrap());
        for line in lines {
            pass(&mut reader, line, line == event);
        }
        format!("{name}: {:?}", reader.service_wait(DateTime::UNIX_EPOCH.fixed_offset()))
    });
    insta::assert_snapshot!(waits.join("\n"), @"
    on two lines: Some(ServiceWait { tries: 1, pause: Some(5.681s), is_hopeless: false })
    with an event between: None
    ");
}
