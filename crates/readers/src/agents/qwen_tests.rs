use crate::agents::tests::render_report;

const NAME: &str = "qwen";

const USAGE: &str =
    r#""usage":{"input_tokens":1000,"output_tokens":50,"cache_read_input_tokens":800}"#;
const CLAIM: &str = r"Done.\n<promise>COMPLETE</promise>";

fn said(text: &str) -> String {
    format!(
        r#"{{"type":"assistant","parent_tool_use_id":null,"message":{{"id":"1","content":[{{"type":"text","text":"{text}"}}],{USAGE}}}}}"#
    )
}

fn unpaid(text: &str) -> String {
    said(text).replace(USAGE, r#""usage":{"input_tokens":0,"output_tokens":0}"#)
}

fn ended(text: &str) -> String {
    format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"{text}",{USAGE}}}"#
    )
}

fn failed(words: &str) -> String {
    format!(
        r#"{{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":1,{USAGE},"error":{{"message":"{words}"}}}}"#
    )
}

fn retry(keeps: bool) -> String {
    format!(r#"{{"type":"system","subtype":"retry","data":{{"preserveText":{keeps}}}}}"#)
}

#[test]
fn the_events_of_a_turn_are_understood() {
    let whole = format!("{}\n{}", said(CLAIM), ended(CLAIM));
    let error = "[API Error: 401 Wrong key]";
    let used_up = "Reached max session turns for this session.";
    let waits = "[qwen-code] Waiting for API capacity... attempt 1, retry in";
    let streams = [
        ("a claim", "", whole.clone()),
        ("a message without tokens after the sum", "", format!("{whole}\n{}", unpaid(CLAIM))),
        ("no closing event", "", said(CLAIM)),
        ("words about an error are words", "", format!("{}\n{}", said(error), ended(error))),
        ("a wrong key", "", format!("{}\n{}", said(error), failed(error))),
        (
            "an error after a claim",
            "",
            format!("{}\n{}", said(CLAIM), failed("[API Error: 503 Sorry]")),
        ),
        ("a stream that broke once", "", format!("{}\n{whole}", retry(false))),
        ("a cut answer, finished", "", format!("{}\n{whole}", retry(true))),
        ("a cut answer", "", format!("{}\n{whole}", [retry(true).as_str(); 3].join("\n"))),
        (
            "a cut answer, then a whole one",
            "",
            format!("{}\n{}\n{whole}", [retry(true).as_str(); 3].join("\n"), ended("Cut")),
        ),
        (
            "parts of two answers",
            "",
            format!("{0}\n{whole}\n{0}\n{whole}", [retry(true).as_str(); 2].join("\n")),
        ),
        (
            "parts, then another try",
            "",
            format!("{0}\n{1}\n{0}\n{whole}", [retry(true).as_str(); 2].join("\n"), retry(false)),
        ),
        ("its turns are used up", used_up, said("Again.")),
        ("its turns are used up after a claim", used_up, said(CLAIM)),
        ("it waits", &format!("{waits} 18s"), String::new()),
        ("it waits for an hour", &format!("{waits} 3570s"), String::new()),
        ("a wait that is over", &format!("{waits} 18s"), whole),
    ];
    let reports: Vec<String> = streams
        .iter()
        .map(|(name, errors, stream)| render_report(NAME, name, errors, stream))
        .collect();
    insta::assert_snapshot!(reports.join("\n"), @"
    a claim: claims success, 1050 tokens
    a message without tokens after the sum: no claim, not closed, 1050 tokens
    no closing event: no claim, not closed, at least 1050 tokens
    words about an error are words: no claim, 1050 tokens
    a wrong key: no claim, blocked: log in again, or fix the API key, 1050 tokens
    an error after a claim: no claim, an outage, 1050 tokens
    a stream that broke once: claims success, 1050 tokens
    a cut answer, finished: claims success, 1050 tokens
    a cut answer: no claim, cut, 1050 tokens
    a cut answer, then a whole one: claims success, 1050 tokens
    parts of two answers: claims success, 1050 tokens
    parts, then another try: claims success, 1050 tokens
    its turns are used up: no claim, out of turns, at least 1050 tokens
    its turns are used up after a claim: no claim, out of turns, at least 1050 tokens
    it waits: no claim, not closed, a limit, pauses for 18 s, at least 0 tokens
    it waits for an hour: no claim, not closed, a limit until 01:59, pauses for 3570 s, at least 0 tokens
    a wait that is over: claims success, 1050 tokens
    ");
}
