use super::*;
use chrono::DateTime;

use crate::agents::create_reader;
use crate::agents::find_agent;
use crate::agents::tests::render_report;

const NAME: &str = "opencode";

fn step(reason: &str) -> String {
    format!(
        r#"{{"type":"step_finish","part":{{"reason":"{reason}","cost":0.25,"tokens":{{"total":1050,"input":200,"output":40,"reasoning":10,"cache":{{"read":700,"write":100}}}}}}}}"#
    )
}

#[test]
fn the_events_of_a_turn_are_understood() {
    let start = r#"{"type":"step_start","part":{}}"#;
    let said = r#"{"type":"text","part":{"text":"Done.\n<promise>COMPLETE</promise>"}}"#;
    let synthetic = said.replace("\"text\":", "\"synthetic\":true,\"text\":");
    let error = |name: &str, rest: &str| {
        format!(
            r#"{{"type":"error","error":{{"name":"{name}","data":{{"message":"No."{rest}}}}}}}"#
        )
    };
    let log = |words: &str, small: bool| {
        format!(
            r#"level=ERROR message="stream error" small={small} error.error="AI_APICallError: {words}""#
        )
    };
    let rejected = r#"{"type":"tool_use","part":{"tool":"bash","callID":"1","state":{"status":"error","input":{"command":"touch x"},"error":"The user rejected permission to use this specific tool call."}}}"#;
    let (stop, length, unknown) = (step("stop"), step("length"), step("unknown"));
    let whole = format!("{start}\n{said}\n{stop}");
    let compacted = format!("{}\n{whole}\n{synthetic}", error("ContextOverflowError", ""));
    let broken = format!("{start}\n{said}\n{unknown}");
    let headers = r#","statusCode":429,"responseHeaders":{"retry-after":"3600"}"#;
    let streams = [
        ("a claim", String::new(), whole.clone()),
        ("no closing event", String::new(), format!("{start}\n{said}")),
        ("a cut answer", String::new(), format!("{start}\n{said}\n{length}")),
        ("another step after the words", String::new(), format!("{whole}\n{start}")),
        ("words of the program itself", String::new(), format!("{start}\n{synthetic}\n{stop}")),
        (
            "a filtered answer",
            String::new(),
            format!("{start}\n{said}\n{}", step("content-filter")),
        ),
        ("a broken stream", String::new(), broken.clone()),
        ("a broken stream that was outlasted", String::new(), format!("{broken}\n{whole}")),
        ("a stream that breaks for ever", String::new(), [broken.as_str(); 3].join("\n")),
        ("a context that is full for ever", String::new(), [compacted.as_str(); 3].join("\n")),
        ("a wrong key", String::new(), error("APIError", r#","statusCode":401"#)),
        ("a limit of an hour", String::new(), error("APIError", headers)),
        ("a refusal", String::new(), format!("{start}\n{said}\n{rejected}")),
        ("it waits in silence", log("Rate limit reached. Try again in 1h.", false), String::new()),
        ("an outage", log("The server had an error", false), String::new()),
        ("the title fails", log("The server had an error", true), String::new()),
        ("an outage that was outlasted", log("Sorry.", false), whole),
        ("a step after an outage, then silence", log("Sorry.", false), start.to_owned()),
    ];
    let reports: Vec<String> = streams
        .iter()
        .map(|(name, errors, stream)| render_report(NAME, name, errors, stream))
        .collect();
    insta::assert_snapshot!(reports.join("\n"), @"
    a claim: claims success, 1050 tokens
    no closing event: no claim, not closed, at least 0 tokens
    a cut answer: no claim, cut, 1050 tokens
    another step after the words: no claim, not closed, at least 1050 tokens
    words of the program itself: no claim, 1050 tokens
    a filtered answer: no claim, the agent's closing event says error: content-filter, 1050 tokens
    a broken stream: no claim, not closed, an outage, pauses for 0 s, 1050 tokens
    a broken stream that was outlasted: claims success, 2100 tokens
    a stream that breaks for ever: no claim, not closed, an outage, tries in vain, 3150 tokens
    a context that is full for ever: no claim, not closed, a refused request: No., tries in vain, 3150 tokens
    a wrong key: no claim, blocked: log in again, or fix the API key, at least 0 tokens
    a limit of an hour: no claim, a limit until 02:00, at least 0 tokens
    a refusal: no claim, denied run touch x, at least 0 tokens
    it waits in silence: no claim, not closed, a limit until 02:00, pauses for 3600 s, at least 0 tokens
    an outage: no claim, not closed, an outage, waits, at least 0 tokens
    the title fails: no claim, not closed, at least 0 tokens
    an outage that was outlasted: claims success, 1050 tokens
    a step after an outage, then silence: no claim, not closed, an outage, pauses for 0 s, at least 0 tokens
    ");
}

#[test]
fn failures_and_usage_in_the_log_and_in_calls_count() {
    let whole = format!("{}\n{}", r#"{"type":"step_start","part":{}}"#, step("stop"));
    let broken = step("unknown");
    let error = r#"{"type":"error","error":{"name":"UnknownError","data":{"message":"No."}}}"#;
    let no_model =
        r#"level=ERROR message=failed error="ProviderModelNotFoundError: Model not found: p/m.""#;
    let used = |tool: &str| {
        let state = r#""state":{"status":"completed","output":"x"}"#;
        format!(r#"{{"type":"tool_use","part":{{"tool":"{tool}","callID":"1",{state}}}}}"#)
    };
    let untold = r#"{"type":"step_finish","part":{"reason":"tool-calls"}}"#;
    let between = [broken.as_str(), &broken, &used("bash"), &broken].join("\n");
    let streams = [
        ("an unknown model", no_model, error.to_owned()),
        ("an unknown model for something else", no_model, whole.clone()),
        ("an unknown error", "", error.to_owned()),
        ("a step after an unknown error", no_model, format!("{error}\n{whole}")),
        ("a stream that breaks between calls", "", between),
        ("a subagent", "", format!("{}\n{whole}", used("task"))),
        ("a step without its use", "", format!("{untold}\n{whole}")),
        ("a reason with an escape in it", "", step(r"\u001b[2Jodd")),
    ];
    let reports: Vec<String> = streams
        .iter()
        .map(|(name, errors, stream)| render_report(NAME, name, errors, stream))
        .collect();
    insta::assert_snapshot!(reports.join("\n"), @"
    an unknown model: no claim, blocked: choose a model this account has, at least 0 tokens
    an unknown model for something else: no claim, 1050 tokens
    an unknown error: no claim, an outage, at least 0 tokens
    a step after an unknown error: no claim, an outage, 1050 tokens
    a stream that breaks between calls: no claim, not closed, an outage, pauses for 0 s, 3150 tokens
    a subagent: no claim, at least 1050 tokens
    a step without its use: no claim, at least 1050 tokens
    a reason with an escape in it: no claim, the agent's closing event says error: odd, 1050 tokens
    ");
}

#[test]
fn tokens_and_cost_are_summed_over_the_steps_and_unpriced_models_are_not_free() {
    let mut reader = create_reader(&find_agent(NAME).unwrap());
    let free = step("stop").replace("0.25", "0");
    for line in [step("tool-calls"), step("stop"), free] {
        reader.render_line(&line);
    }
    let used = reader.report(DateTime::UNIX_EPOCH.fixed_offset()).usage.unwrap();
    let one =
        Tokens { input: 200, cache_read: 700, cache_write: 100, output: 50, ..Tokens::default() };
    assert_eq!(
        (used.cost, used.unpriced, used.tokens.total()),
        (Money(500_000_000_000), one, 3150)
    );
}
