//! The closing event, the work its client still waits for, and its cost.

use super::tests::{claim, read};
use crate::agents::create_reader;
use crate::agents::find_agent;
use engine::boundary::facts::AgentClosing;
use engine::claim::Claim;
use engine::usage::{Money, Tokens, Usage};

const CLAIM: &str = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}"#;
const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":""}"#;

#[test]
fn a_closing_event_that_is_missing_or_reports_an_error_is_a_failure_without_a_claim() {
    let error = |subtype: &str, is_error: bool| {
        format!(
            r#"{{"type":"result","subtype":"{subtype}","is_error":{is_error},"result":"Oh no."}}"#
        )
    };
    let failed = || AgentClosing::Failed("the agent's closing event says error: Oh no.".to_owned());
    let table = [
        (CLAIM.to_owned(), AgentClosing::Missing, false),
        (format!("{CLAIM}\n{DONE}"), AgentClosing::Plain, true),
        (format!("{CLAIM}\n{}", error("success", true)), failed(), false),
        (format!("{CLAIM}\n{}", error("error_during_execution", false)), failed(), false),
        (format!("{CLAIM}\n{}", error("error_max_budget_usd", true)), failed(), false),
        (format!("{CLAIM}\n{}", error("error_max_turns", true)), AgentClosing::Plain, false),
        (format!("{}\n{CLAIM}\n{DONE}", error("success", true)), AgentClosing::Plain, true),
    ];
    for (stream, closing, is_claim) in table {
        let report = read(&stream).0;
        assert_eq!(report.agent.closing, closing, "{stream}");
        assert_eq!(claim(&report) == Claim::Success, is_claim, "{stream}");
    }
}

#[test]
fn a_client_is_closed_once_no_work_is_left_to_return_for() {
    const CALL: &str = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash"}]}}"#;
    const TURN: &str = r#"{"type":"system","subtype":"init","model":"m"}"#;
    const TASK: &str = r#"{"type":"system","subtype":"task_started","task_id":"b"}"#;
    const TOLD: &str = r#"{"type":"system","subtype":"task_notification","task_id":"b"}"#;
    const HOOK: &str = r#"{"type":"system","subtype":"hook_started","hook_id":"h"}"#;
    const HEARD: &str = r#"{"type":"system","subtype":"hook_response","hook_id":"h"}"#;
    const QUEUED: &str = r#"{"type":"result","result":"","queued_turn_count":1}"#;
    // What the client printed, whether it is closed, and whether its silence counts as work.
    let table: [(&[&str], bool, bool); 11] = [
        (&[CLAIM], false, false),
        (&[CALL], false, true),
        (&[TASK], false, true),
        (&[HOOK], false, false),
        (&[CLAIM, DONE], true, false),
        (&[TASK, CLAIM, DONE], false, false),
        (&[TASK, CLAIM, DONE, TOLD], true, false),
        (&[TASK, CLAIM, DONE, TOLD, TURN], false, false),
        (&[HOOK, CLAIM, DONE], false, false),
        (&[HOOK, CLAIM, DONE, HEARD], true, false),
        (&[CLAIM, QUEUED], false, false),
    ];
    for (lines, is_closed, is_work) in table {
        let mut reader = create_reader(&find_agent("claude").unwrap());
        for line in lines {
            reader.render_line(line);
        }
        assert_eq!((reader.is_closed(), reader.tool_is_open()), (is_closed, is_work), "{lines:?}");
    }
    for stream in both!("background") {
        let mut reader = create_reader(&find_agent("claude").unwrap());
        let mut results = stream.lines().filter_map(|line| {
            reader.render_line(line);
            if line.contains(r#""type":"result""#) { Some(reader.is_closed()) } else { None }
        });
        assert_eq!((results.next(), results.last()), (Some(false), Some(true)));
    }
}

#[test]
fn an_unreadable_cost_never_counts_as_zero() {
    const SAID: &str = r#"{"type":"assistant","message":{"id":"m","model":"claude-opus-5-5","usage":{"input_tokens":7,"output_tokens":1}}}"#;
    let of = |cost: &str| {
        format!(
            r#"{{"type":"result","modelUsage":{{"m":{{"inputTokens":7,"outputTokens":3,"costUSD":{cost},"costBasis":"list"}}}}}}"#
        )
    };
    let tokens = Tokens { input: 7, output: 3, ..Tokens::default() };
    let cost = |dollars: u64| Some(Usage { tokens, cost: Money(dollars), ..Usage::default() });
    let table = [
        (of("0.5"), cost(500_000_000_000)),
        (of("\"0.5\""), cost(500_000_000_000)),
        (of("\"$0.5\""), cost(500_000_000_000)),
        (of("0"), cost(0)),
        (of("-0.5"), None),
        (of("\"much\""), None),
        (of("null"), None),
        (of("\"NaN\""), None),
    ];
    for (stream, expected) in table {
        assert_eq!(read(&stream).0.usage, expected, "{stream}");
    }
    let sum = r#"{"type":"result","total_cost_usd":0.25}"#;
    let usage = read(&format!("{SAID}\n{sum}")).0.usage.unwrap();
    let reported = (usage.cost, usage.tokens.input, usage.tokens.output, usage.lost);
    assert_eq!(reported, (Money(250_000_000_000), 7, 1, false));
}

#[test]
fn a_price_that_the_client_guessed_does_not_count() {
    for stream in both!("strange-model") {
        let usage = read(stream).0.usage.unwrap();
        assert_eq!(usage.unpriced_models, ["claude-strange-9"]);
        assert_eq!((usage.cost, usage.unpriced), (Money(0), usage.tokens));
        assert_eq!(usage.tokens.total(), 1024);
    }
}

#[test]
fn the_fullest_message_of_the_agent_is_measured_against_the_window_of_its_model() {
    let says = |model: &str, parent: &str, cached: u64| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"id":"m{cached}","model":"{model}","content":[],"usage":{{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":{cached},"output_tokens":70}}}}}}"#
        )
    };
    let ends = |windows: &str| format!(r#"{{"type":"result","modelUsage":{{{windows}}}}}"#);
    let opus = r#""opus":{"contextWindow":1000}"#;
    let (full, fuller) = (says("opus", "null", 700), says("opus", "null", 770));
    let table = [
        (vec![full.clone(), ends(opus)], Some(80)),
        (vec![fuller.clone(), full.clone(), ends(opus)], Some(87)),
        (vec![full.clone(), ends(opus), fuller.clone(), ends(opus)], Some(87)),
        (vec![full.clone(), says("opus", r#""t""#, 900), ends(opus)], Some(80)),
        (vec![says("opus", "null", 9_000), ends(opus)], Some(100)),
        // Another model's window is not its own, unless there is only one.
        (
            vec![
                full.clone(),
                ends(r#""opus[1m]":{"contextWindow":8000},"haiku":{"contextWindow":9}"#),
            ],
            Some(10),
        ),
        (vec![full.clone(), ends(r#""sonnet":{"contextWindow":1600}"#)], Some(50)),
        (vec![full.clone(), ends(r#""a":{"contextWindow":9},"b":{"contextWindow":9}"#)], None),
        // Nothing is said of it.
        (vec![full.clone(), ends(r#""opus":{}"#)], None),
        (vec![full.clone(), ends(r#""opus":{"contextWindow":0}"#)], None),
        (vec![full], None),
        (vec![ends(opus)], None),
    ];
    for (lines, expected) in table {
        let found = read(&lines.join("\n")).0.agent.context_percent;
        assert_eq!(found, expected, "{lines:#?}");
    }
}
