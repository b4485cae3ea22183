//! Recorded output of the real agents, and what their readers make of it; none of it is written by
//! hand.

use super::tests::summary;
use super::*;

/// The recordings of one agent: its name, and the output of each scenario.
pub(super) struct Recorded {
    pub(super) agent: &'static str,
    pub(super) streams: &'static [(&'static str, &'static str)],
}

/// The recordings of an agent, which has a folder in tests/fixtures/agents.
macro_rules! recorded {
    ($agent:literal, $version:literal) => {
        recorded!(
            $agent, $version:
            "plain" "tool" "claim" "false-claim" "cut" "empty" "broken-stream" "401" "quota"
            "429-short" "429-an-hour" "limit-in-words" "500" "denied" "ended-by-TERM" "ended-by-KILL"
        )
    };
    ($agent:literal, $version:literal: $($name:literal)*) => {
        Recorded {
            agent: $agent,
            streams: &[$(($name, include_str!(concat!(
                "../../../../tests/fixtures/agents/", $agent, "-", $version, "/", $name, ".jsonl"
            )))),*],
        }
    };
}

/// The recordings of all agents.
pub(super) const RECORDED: [Recorded; 6] = [
    recorded!("claude", "2.1.330"),
    recorded!("codex", "0.169.0"),
    recorded!("copilot", "1.0.102"),
    recorded!("gemini", "0.61.0"),
    recorded!("opencode", "1.18.33"),
    recorded!("qwen", "0.24.4"),
];

/// Gives a reader a line of a recording, which holds both outputs: only events begin with a brace.
pub(super) fn pass(reader: &mut OutputReader, line: &str, is_event: bool) {
    if is_event {
        reader.take_line(line);
    } else {
        reader.read_error(line);
    }
}

/// The reader of an agent that has read a recording.
fn read(agent: &str, stream: &str) -> OutputReader {
    let mut reader = create_reader(&find_agent(agent).unwrap());
    stream.lines().for_each(|line| pass(&mut reader, line, line.starts_with('{')));
    reader
}

/// What the reader makes of each recording of an agent.
fn table(agent: &str) -> String {
    let now = DateTime::parse_from_rfc3339("2026-11-25T01:00:00Z").unwrap();
    let recorded = RECORDED.iter().find(|recorded| recorded.agent == agent).unwrap();
    let rows = recorded
        .streams
        .iter()
        .map(|(name, stream)| format!("{name}: {}", summary(&mut read(agent, stream), now)));
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_recordings_of_claude_are_understood() {
    insta::assert_snapshot!(table("claude"), @"
    plain: no claim, 1861 tokens
    tool: no claim, 3722 tokens
    claim: claims success, 3722 tokens
    false-claim: claims success, 1861 tokens
    cut: no claim, cut, 7444 tokens
    empty: no claim, 3722 tokens
    broken-stream: no claim, an outage, 0 tokens
    401: no claim, blocked: log in again, or fix the API key, 0 tokens
    quota: no claim, blocked: fix the account's billing, 0 tokens
    429-short: claims success, 3722 tokens
    429-an-hour: no claim, a limit, 0 tokens
    limit-in-words: no claim, a limit until 02:44, 0 tokens
    500: no claim, an outage, 0 tokens
    denied: no claim, denied Bash, 3722 tokens
    ended-by-TERM: no claim, not closed, at least 0 tokens
    ended-by-KILL: no claim, not closed, at least 0 tokens
    ");
}

#[test]
fn the_recordings_of_codex_are_understood() {
    insta::assert_snapshot!(table("codex"), @"
    plain: no claim, 1861 tokens
    tool: no claim, 3722 tokens
    claim: claims success, 3722 tokens
    false-claim: claims success, 1861 tokens
    cut: no claim, cut, at least 0 tokens
    empty: no claim, 1861 tokens
    broken-stream: no claim, an outage, at least 0 tokens
    401: no claim, blocked: log in again, or fix the API key, at least 0 tokens
    quota: no claim, blocked: fix the account's billing, at least 0 tokens
    429-short: claims success, 3722 tokens
    429-an-hour: no claim, not closed, a limit, waits, at least 0 tokens
    limit-in-words: no claim, a limit until 02:44, at least 0 tokens
    500: no claim, an outage, at least 0 tokens
    denied: no claim, 3722 tokens
    ended-by-TERM: no claim, not closed, at least 0 tokens
    ended-by-KILL: no claim, not closed, at least 0 tokens
    ");
}

#[test]
fn the_recordings_of_copilot_are_understood() {
    insta::assert_snapshot!(table("copilot"), @"
    plain: no claim, at least 0 tokens
    tool: no claim, at least 0 tokens
    claim: claims success, at least 0 tokens
    false-claim: claims success, at least 0 tokens
    cut: no claim, cut, at least 0 tokens
    empty: no claim, an outage, at least 0 tokens
    broken-stream: no claim, an outage, at least 0 tokens
    401: no claim, blocked: log in again, or fix the API key, at least 0 tokens
    quota: no claim, blocked: fix the account's billing, at least 0 tokens
    429-short: claims success, at least 0 tokens
    429-an-hour: no claim, a limit until 02:00, at least 0 tokens
    limit-in-words: no claim, a limit until 02:45, at least 0 tokens
    500: no claim, an outage, at least 0 tokens
    denied: no claim, denied run touch denied.txt, at least 0 tokens
    ended-by-TERM: no claim, not closed, at least 0 tokens
    ended-by-KILL: no claim, not closed, at least 0 tokens
    ");
}

#[test]
fn the_recordings_of_gemini_are_understood() {
    insta::assert_snapshot!(table("gemini"), @"
    plain: no claim, 1861 tokens
    tool: no claim, 3722 tokens
    claim: claims success, 3722 tokens
    false-claim: claims success, 1861 tokens
    cut: claims success, 1861 tokens
    empty: no claim, an outage, 7444 tokens
    broken-stream: no claim, an outage, 0 tokens
    401: no claim, blocked: log in again, or fix the API key, 0 tokens
    quota: no claim, not closed, blocked: fix the account's billing, tries in vain, at least 0 tokens
    429-short: claims success, 3722 tokens
    429-an-hour: no claim, a limit until 02:00, 0 tokens
    limit-in-words: no claim, not closed, a limit until 02:09, pauses for 4261 s, at least 0 tokens
    500: no claim, not closed, an outage, pauses for 30 s, at least 0 tokens
    denied: no claim, 3722 tokens
    ended-by-TERM: no claim, not closed, at least 0 tokens
    ended-by-KILL: no claim, not closed, at least 0 tokens
    ");
}

#[test]
fn the_recordings_of_opencode_are_understood() {
    insta::assert_snapshot!(table("opencode"), @"
    plain: no claim, 1861 tokens
    tool: no claim, 3722 tokens
    claim: claims success, 3722 tokens
    false-claim: claims success, 1861 tokens
    cut: no claim, cut, 1861 tokens
    empty: no claim, 1861 tokens
    broken-stream: no claim, an outage, at least 0 tokens
    401: no claim, blocked: log in again, or fix the API key, at least 0 tokens
    quota: no claim, not closed, blocked: fix the account's billing, tries in vain, at least 0 tokens
    429-short: claims success, 3722 tokens
    429-an-hour: no claim, not closed, a limit until 02:00, pauses for 3600 s, at least 0 tokens
    limit-in-words: no claim, not closed, a limit until 05:44, pauses for 17040 s, at least 0 tokens
    500: no claim, an outage, at least 0 tokens
    denied: no claim, 3722 tokens
    ended-by-TERM: no claim, not closed, at least 0 tokens
    ended-by-KILL: no claim, not closed, at least 0 tokens
    ");
}

#[test]
fn the_recordings_of_qwen_are_understood() {
    insta::assert_snapshot!(table("qwen"), @"
    plain: no claim, 1971 tokens
    tool: no claim, 3722 tokens
    claim: claims success, 3722 tokens
    false-claim: claims success, 1971 tokens
    cut: no claim, cut, 9415 tokens
    empty: no claim, an outage, 9305 tokens
    broken-stream: no claim, an outage, 0 tokens
    401: no claim, blocked: log in again, or fix the API key, 0 tokens
    quota: no claim, not closed, a limit until 01:01, pauses for 60 s, at least 0 tokens
    429-short: claims success, 3722 tokens
    429-an-hour: no claim, not closed, a limit until 01:59, pauses for 3570 s, at least 0 tokens
    limit-in-words: no claim, not closed, a limit until 01:01, pauses for 84 s, at least 0 tokens
    500: no claim, an outage, 0 tokens
    denied: no claim, 3722 tokens
    ended-by-TERM: no claim, not closed, at least 0 tokens
    ended-by-KILL: no claim, not closed, at least 0 tokens
    ");
}

#[test]
fn a_retry_read_after_the_closing_event_keeps_the_claim() {
    let late = [
        ("gemini", "Attempt 1 failed: Rate limit reached. Retrying after 5681ms..."),
        (
            "opencode",
            r#"level=ERROR message="stream error" small=false error.error="AI_APICallError: Sorry.""#,
        ),
        ("qwen", "[qwen-code] Waiting for API capacity... attempt 1, retry in 18s"),
    ];
    let now = DateTime::parse_from_rfc3339("2026-11-25T01:00:00Z").unwrap();
    let rows = late.map(|(agent, line)| {
        let [closed, open] = ["claim", "ended-by-TERM"].map(|name| {
            let recorded = RECORDED.iter().find(|recorded| recorded.agent == agent).unwrap();
            let (_, stream) = recorded.streams.iter().find(|(known, _)| *known == name).unwrap();
            let mut reader = read(agent, stream);
            reader.read_error(line);
            summary(&mut reader, now)
        });
        format!("{agent}: {closed}\n{agent}, ended: {open}")
    });
    insta::assert_snapshot!(rows.join("\n"), @"
    gemini: claims success, 3722 tokens
    gemini, ended: no claim, not closed, a limit, pauses for 5 s, at least 0 tokens
    opencode: claims success, 3722 tokens
    opencode, ended: no claim, not closed, an outage, waits, at least 0 tokens
    qwen: claims success, 3722 tokens
    qwen, ended: no claim, not closed, a limit, pauses for 18 s, at least 0 tokens
    ");
}
