use super::*;
use chrono::DateTime;

use crate::agents::create_reader;
use crate::agents::find_agent;
use crate::agents::tests::render_report;

const NAME: &str = "copilot";

#[test]
fn the_events_of_a_turn_are_understood() {
    let retry = r#"{"type":"model.call_failure","data":{"statusCode":429,"errorMessage":"{\"message\":\"Slow down\"}"}}"#;
    let asks = r#"{"type":"assistant.turn_retry","data":{"reason":"rate_limit"}}
{"type":"model.call_start","data":{"model":"m-1"}}"#;
    let said = r#"{"type":"assistant.message","data":{"model":"m-1","content":"Done.\n<promise>COMPLETE</promise>","toolRequests":[]}}"#;
    let ended = r#"{"type":"result","exitCode":0,"usage":{"premiumRequests":1}}"#;
    let failed = r#"{"type":"result","exitCode":1}"#;
    let error = |kind: &str, rest: &str| {
        format!(
            r#"{{"type":"session.error","data":{{"errorType":"{kind}","message":"No."{rest}}}}}"#
        )
    };
    let unanswered = r#"{"type":"assistant.turn_start"}
{"type":"assistant.turn_end"}"#;
    let quota = retry.replace("Slow down", "insufficient_quota");
    let streams = [
        ("a claim", format!("{said}\n{ended}")),
        ("no closing event", said.to_owned()),
        ("a cut answer", format!("{unanswered}\n{unanswered}\n{said}\n{ended}")),
        ("an answer cut once", format!("{unanswered}\n{said}\n{ended}")),
        ("a failed end", format!("{said}\n{failed}")),
        ("a limit that was outlasted", format!("{retry}\n{asks}\n{said}\n{ended}")),
        ("a limit", retry.to_owned()),
        ("a try after a limit", format!("{retry}\n{asks}")),
        ("a limit in the end", format!("{said}\n{}\n{failed}", error("rate_limit", ""))),
        ("a quota again and again", [quota.as_str(); 3].join("\n")),
        ("a used up plan", format!("{}\n{failed}", error("quota", ""))),
        ("a wrong key", format!("{}\n{failed}", error("authentication", ""))),
        ("an outage", format!("{}\n{failed}", error("query", r#","statusCode":503"#))),
        ("too many requests", format!("{}\n{failed}", error("rate_limit", r#","statusCode":403"#))),
        ("a plan at its end", format!("{}\n{failed}", error("quota", r#","statusCode":429"#))),
        (
            "a call after the words",
            format!(
                "{said}\n{}",
                r#"{"type":"tool.execution_start","data":{"toolCallId":"c","toolName":"bash","arguments":{"command":"ls"}}}"#
            ),
        ),
    ];
    let reports: Vec<String> =
        streams.iter().map(|(name, stream)| render_report(NAME, name, "", stream)).collect();
    insta::assert_snapshot!(reports.join("\n"), @"
    a claim: claims success, at least 0 tokens
    no closing event: no claim, not closed, at least 0 tokens
    a cut answer: no claim, cut, at least 0 tokens
    an answer cut once: claims success, at least 0 tokens
    a failed end: no claim, the agent's closing event says error: exit code 1, at least 0 tokens
    a limit that was outlasted: claims success, at least 0 tokens
    a limit: no claim, not closed, a limit, waits, at least 0 tokens
    a try after a limit: no claim, not closed, a limit, pauses for 0 s, at least 0 tokens
    a limit in the end: no claim, a limit, at least 0 tokens
    a quota again and again: no claim, not closed, blocked: fix the account's billing, tries in vain, at least 0 tokens
    a used up plan: no claim, blocked: fix the account's billing, at least 0 tokens
    a wrong key: no claim, blocked: log in again, or fix the API key, at least 0 tokens
    an outage: no claim, an outage, at least 0 tokens
    too many requests: no claim, a limit, at least 0 tokens
    a plan at its end: no claim, blocked: fix the account's billing, at least 0 tokens
    a call after the words: no claim, not closed, at least 0 tokens
    ");
}

#[test]
fn messages_and_turns_of_a_subagent_do_not_count_as_the_agents() {
    let said = r#"{"type":"assistant.message","data":{"content":"<promise>COMPLETE</promise>"}}"#;
    let [begins, finishes] =
        ["start", "end"].map(|what| format!(r#"{{"type":"assistant.turn_{what}","data":{{}}}}"#));
    let ended = r#"{"type":"result","exitCode":0}"#;
    let of_subagent = |line: &str| line.replace("{\"type", "{\"agentId\":\"a\",\"type");
    let in_call = said.replace("\"content\"", "\"parentToolCallId\":\"c\",\"content\"");
    let turn = of_subagent(&format!("{begins}\n{finishes}"));
    let fails = r#"{"type":"model.call_failure","data":{"source":"top_level","statusCode":404}}"#;
    let of_tools = fails.replace("top_level", "mcp_sampling");
    let error = r#"{"type":"session.error","data":{"errorType":"authentication"}}"#;
    let in_vain = |line: &str| format!("{}\n{said}\n{ended}", [line; 3].join("\n"));
    let streams = [
        ("words in a call", format!("{in_call}\n{ended}")),
        ("words of a subagent", format!("{}\n{ended}", of_subagent(said))),
        ("words behind the agent's own", format!("{said}\n{}\n{ended}", of_subagent(said))),
        ("turns without words", format!("{begins}\n{turn}\n{turn}\n{turn}\n{said}\n{ended}")),
        ("a model that the agent does not have", in_vain(fails)),
        ("a model that a subagent does not have", in_vain(&of_subagent(fails))),
        ("a model that a tool does not have", in_vain(&of_tools)),
        ("an error of a subagent", format!("{said}\n{}\n{ended}", of_subagent(error))),
    ];
    let reports: Vec<String> =
        streams.iter().map(|(name, stream)| render_report(NAME, name, "", stream)).collect();
    insta::assert_snapshot!(reports.join("\n"), @"
    words in a call: no claim, at least 0 tokens
    words of a subagent: no claim, at least 0 tokens
    words behind the agent's own: claims success, at least 0 tokens
    turns without words: claims success, at least 0 tokens
    a model that the agent does not have: no claim, blocked: choose a model this account has, at least 0 tokens
    a model that a subagent does not have: claims success, at least 0 tokens
    a model that a tool does not have: claims success, at least 0 tokens
    an error of a subagent: claims success, at least 0 tokens
    ");
}

#[test]
fn denied_calls_are_named_and_calls_are_shown_with_their_results() {
    let stream = r#"{"type":"tool.execution_start","data":{"toolCallId":"1","toolName":"bash","arguments":{"command":"touch x"}}}
{"type":"tool.execution_complete","data":{"toolCallId":"1","success":false,"error":{"code":"denied","message":"No."}}}
{"type":"tool.execution_start","data":{"toolCallId":"2","toolName":"create","arguments":{"path":"a.rs","file_text":"1\n2\n"}}}
{"type":"tool.execution_complete","data":{"toolCallId":"2","success":false,"error":{"message":"It is there."}}}
{"type":"tool.execution_start","data":{"toolCallId":"3","toolName":"bash","arguments":{"command":"make"}}}
{"type":"tool.execution_complete","data":{"toolCallId":"3","success":true,"shellExecution":{"exitCode":2},"result":{"content":"oops"}}}
{"type":"tool.execution_start","data":{"toolCallId":"4","toolName":"bash","arguments":{"command":"kill"}}}
{"type":"tool.execution_complete","data":{"toolCallId":"4","success":true,"shellExecution":{"exitCode":-1},"result":{"content":""}}}"#;
    let mut reader = create_reader(&find_agent(NAME).unwrap());
    let seen: Vec<String> = stream.lines().filter_map(|line| reader.render_line(line)).collect();
    insta::assert_snapshot!(seen.join("\n"), @"
    run    touch x
    denied: run touch x
    write  a.rs  +2
           → failed: It is there.
    run    make
           → exit 2
    run    kill
           → exit -1
    ");
    let now = DateTime::UNIX_EPOCH.fixed_offset();
    assert_eq!(reader.report(now).agent.denied, ["run touch x"]);
}

#[test]
fn usage_is_read_from_the_usage_file() {
    let file = r#"{"totalPremiumRequestCost":1,"modelMetrics":{
        "m-1":{"requests":{"count":2},"usage":{"inputTokens":2000,"outputTokens":100,"cacheReadTokens":1600,"cacheWriteTokens":40}},
        "m-2":{"usage":{"inputTokens":10,"outputTokens":"many"}}}}"#;
    let sum = parse_usage(file).unwrap();
    assert_eq!(sum.usage_text(false).as_deref(), Some("2k tokens of m-1, m-2, of unknown price"));
    let tokens =
        (sum.tokens.input, sum.tokens.cache_read, sum.tokens.cache_write, sum.tokens.output);
    assert_eq!((tokens, sum.lost), ((370, 1600, 40, 100), false));
    for junk in ["", "[]", "{}", r#"{"modelMetrics":[]}"#, "{\"modelMetrics\":{"] {
        assert_eq!(parse_usage(junk), None, "{junk}");
    }
}
