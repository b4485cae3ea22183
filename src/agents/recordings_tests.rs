use super::tests::summary;
use super::*;

/// What an agent printed: its name, and a text for each scenario.
pub(super) struct Recorded {
    pub(super) agent: &'static str,
    pub(super) streams: &'static [(&'static str, &'static str)],
}

/// The recordings of these scenarios in a folder of tests/fixtures/agents.
macro_rules! recorded {
    ($agent:literal, $folder:literal, $($name:literal)*) => {
        Recorded {
            agent: $agent,
            streams: &[$(($name, include_str!(concat!(
                "../../tests/fixtures/agents/", $folder, "/", $name, ".jsonl"
            )))),*],
        }
    };
    ($agent:literal, $folder:literal) => {
        recorded!(
            $agent, $folder,
            "plain" "tool" "claim" "false-claim" "cut" "empty" "broken-stream" "401" "quota"
            "429-short" "429-an-hour" "limit-in-words" "500" "denied" "ended-by-TERM" "ended-by-KILL"
        )
    };
}

/// All of them.
pub(super) const RECORDED: [Recorded; 6] = [
    recorded!("claude", "claude-2.1.330"),
    recorded!("codex", "codex-0.169.0"),
    recorded!("copilot", "copilot-1.0.102"),
    recorded!("gemini", "gemini-0.61.0"),
    recorded!("opencode", "opencode-1.18.33"),
    recorded!(
        "qwen", "qwen-0.24.4",
        "plain" "tool" "claim" "false-claim" "cut" "empty" "broken-stream" "401" "quota" "429-short"
    ),
];

/// Gives a reader a line of a recording, which holds both outputs: only events begin with a brace.
pub(super) fn pass(reader: &mut dyn OutputReader, line: &str, is_event: bool) {
    if is_event {
        reader.read(line);
    } else {
        reader.read_error(line);
    }
}

#[test]
fn what_each_agent_printed_is_read_to_what_happened() {
    let now = DateTime::parse_from_rfc3339("2026-11-25T01:00:00Z").unwrap();
    let mut table = Vec::new();
    for Recorded { agent, streams } in RECORDED {
        for (name, stream) in streams {
            let mut reader = reader(&catalogue::find(agent).unwrap());
            stream.lines().for_each(|line| pass(&mut *reader, line, line.starts_with('{')));
            table.push(format!("{agent}, {name}: {}", summary(&mut *reader, now)));
        }
    }
    insta::assert_snapshot!(table.join("\n"), @"
    claude, plain: no claim, 1861 tokens
    claude, tool: no claim, 3722 tokens
    claude, claim: claims success, 3722 tokens
    claude, false-claim: claims success, 1861 tokens
    claude, cut: no claim, cut, 7444 tokens
    claude, empty: no claim, 3722 tokens
    claude, broken-stream: no claim, an outage, 0 tokens
    claude, 401: no claim, blocked: log in again, or fix the API key, 0 tokens
    claude, quota: no claim, blocked: fix the account's billing, 0 tokens
    claude, 429-short: claims success, 3722 tokens
    claude, 429-an-hour: no claim, a limit, 0 tokens
    claude, limit-in-words: no claim, a limit until 02:44, 0 tokens
    claude, 500: no claim, an outage, 0 tokens
    claude, denied: no claim, denied Bash, 3722 tokens
    claude, ended-by-TERM: no claim, not closed, at least 0 tokens
    claude, ended-by-KILL: no claim, not closed, at least 0 tokens
    codex, plain: no claim, 1861 tokens
    codex, tool: no claim, 3722 tokens
    codex, claim: claims success, 3722 tokens
    codex, false-claim: claims success, 1861 tokens
    codex, cut: no claim, cut, at least 0 tokens
    codex, empty: no claim, 1861 tokens
    codex, broken-stream: no claim, an outage, at least 0 tokens
    codex, 401: no claim, blocked: log in again, or fix the API key, at least 0 tokens
    codex, quota: no claim, blocked: fix the account's billing, at least 0 tokens
    codex, 429-short: claims success, 3722 tokens
    codex, 429-an-hour: no claim, not closed, a limit, waits, at least 0 tokens
    codex, limit-in-words: no claim, a limit until 02:44, at least 0 tokens
    codex, 500: no claim, an outage, at least 0 tokens
    codex, denied: no claim, 3722 tokens
    codex, ended-by-TERM: no claim, not closed, at least 0 tokens
    codex, ended-by-KILL: no claim, not closed, at least 0 tokens
    copilot, plain: no claim, at least 0 tokens
    copilot, tool: no claim, at least 0 tokens
    copilot, claim: claims success, at least 0 tokens
    copilot, false-claim: claims success, at least 0 tokens
    copilot, cut: no claim, cut, at least 0 tokens
    copilot, empty: no claim, an outage, at least 0 tokens
    copilot, broken-stream: no claim, an outage, at least 0 tokens
    copilot, 401: no claim, blocked: log in again, or fix the API key, at least 0 tokens
    copilot, quota: no claim, blocked: fix the account's billing, at least 0 tokens
    copilot, 429-short: claims success, at least 0 tokens
    copilot, 429-an-hour: no claim, a limit until 02:00, at least 0 tokens
    copilot, limit-in-words: no claim, a limit until 02:45, at least 0 tokens
    copilot, 500: no claim, an outage, at least 0 tokens
    copilot, denied: no claim, denied run touch denied.txt, at least 0 tokens
    copilot, ended-by-TERM: no claim, not closed, at least 0 tokens
    copilot, ended-by-KILL: no claim, not closed, at least 0 tokens
    gemini, plain: no claim, 1861 tokens
    gemini, tool: no claim, 3722 tokens
    gemini, claim: claims success, 3722 tokens
    gemini, false-claim: claims success, 1861 tokens
    gemini, cut: claims success, 1861 tokens
    gemini, empty: no claim, an outage, 7444 tokens
    gemini, broken-stream: no claim, an outage, 0 tokens
    gemini, 401: no claim, blocked: log in again, or fix the API key, 0 tokens
    gemini, quota: no claim, not closed, blocked: fix the account's billing, tries in vain, at least 0 tokens
    gemini, 429-short: claims success, 3722 tokens
    gemini, 429-an-hour: no claim, a limit until 02:00, 0 tokens
    gemini, limit-in-words: no claim, not closed, a limit until 02:11, pauses for 4261 s, at least 0 tokens
    gemini, 500: no claim, not closed, an outage, pauses for 30 s, at least 0 tokens
    gemini, denied: no claim, 3722 tokens
    gemini, ended-by-TERM: no claim, not closed, at least 0 tokens
    gemini, ended-by-KILL: no claim, not closed, at least 0 tokens
    opencode, plain: no claim, 1861 tokens
    opencode, tool: no claim, 3722 tokens
    opencode, claim: claims success, 3722 tokens
    opencode, false-claim: claims success, 1861 tokens
    opencode, cut: no claim, cut, 1861 tokens
    opencode, empty: no claim, 1861 tokens
    opencode, broken-stream: no claim, an outage, at least 0 tokens
    opencode, 401: no claim, blocked: log in again, or fix the API key, at least 0 tokens
    opencode, quota: no claim, not closed, at least 0 tokens
    opencode, 429-short: claims success, 3722 tokens
    opencode, 429-an-hour: no claim, not closed, at least 0 tokens
    opencode, limit-in-words: no claim, not closed, at least 0 tokens
    opencode, 500: no claim, not closed, at least 0 tokens
    opencode, denied: no claim, 3722 tokens
    opencode, ended-by-TERM: no claim, not closed, at least 0 tokens
    opencode, ended-by-KILL: no claim, not closed, at least 0 tokens
    qwen, plain: no claim, 1971 tokens
    qwen, tool: no claim, 3722 tokens
    qwen, claim: claims success, 3722 tokens
    qwen, false-claim: claims success, 1971 tokens
    qwen, cut: no claim, cut, 9415 tokens
    qwen, empty: no claim, an outage, 9305 tokens
    qwen, broken-stream: no claim, an outage, 0 tokens
    qwen, 401: no claim, blocked: log in again, or fix the API key, 0 tokens
    qwen, quota: no claim, not closed, at least 0 tokens
    qwen, 429-short: claims success, 3722 tokens
    ");
}
