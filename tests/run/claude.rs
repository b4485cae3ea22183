//! Steps of an agent that prints as Claude Code does: the few events of its stream that crew reads,
//! in the shape of those recorded in tests/fixtures/claude.

use std::fmt::Display;

use super::World;
use crate::sandbox::Sandbox;

/// The price of one answer, in dollars.
pub(crate) const COST: f64 = 0.01;

impl World {
    /// A world whose agent's output is read as Claude Code's; `settings` are the user's others.
    pub(crate) fn claude(steps: &[&str], settings: &str) -> Self {
        Self::of(Sandbox::new(), steps).speaks_claude(settings)
    }

    /// Makes crew read the agent's output as Claude Code's.
    pub(crate) fn speaks_claude(self, settings: &str) -> Self {
        self.settings(&format!("agents.fake.output = \"claude\"\n{settings}"));
        self
    }
}

/// A step in which the agent says `text` and ends.
pub(crate) fn answer(text: &str) -> String {
    let model_use = format!(
        r#"{{"claude-sonnet-5-5":{{"inputTokens":100,"outputTokens":10,"costUSD":{COST},"costBasis":"list"}}}}"#
    );
    let said = format!(
        r#"{{"type":"assistant","message":{{"id":"m1","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    );
    let result = format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"result":"{text}","num_turns":1,"modelUsage":{model_use}}}"#
    );
    format!("printf '%s\\n' '{said}' '{result}'")
}

/// A step in which the agent says `text` and ends, with this much of its context filled.
pub(crate) fn filling(percent: u64, text: &str) -> String {
    let said = format!(
        r#"{{"type":"assistant","message":{{"id":"m1","role":"assistant","model":"claude-sonnet-5-5","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":{},"output_tokens":0}}}}}}"#,
        percent * 2_000
    );
    let result = format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"result":"{text}","num_turns":1,"modelUsage":{{"claude-sonnet-5-5":{{"inputTokens":100,"outputTokens":10,"costUSD":{COST},"costBasis":"list","contextWindow":200000}}}}}}"#
    );
    format!("printf '%s\\n' '{said}' '{result}'")
}

/// A step in which the model's service reports a limit that ends `seconds` from now, and the client
/// exits with 1.
pub(crate) fn limited(seconds: impl Display) -> String {
    let limit = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour","resetsAt":%s}}"#;
    format!("printf '{limit}\\n' $(($(date +%s) + {seconds})); {}", failed("rate_limit", 429))
}

/// A step in which the model's service fails with an error of this kind, and the client exits with
/// 1.
pub(crate) fn failed(kind: &str, status: u16) -> String {
    failed_with(kind, status, &format!("It did not answer ({kind})"))
}

/// A step in which the model's service fails with this message.
pub(crate) fn failed_with(kind: &str, status: u16, words: &str) -> String {
    let said = format!(
        r#"{{"type":"assistant","error":"{kind}","message":{{"id":"m1","role":"assistant","content":[{{"type":"text","text":"{words}"}}]}}}}"#
    );
    let result = format!(
        r#"{{"type":"result","subtype":"success","is_error":true,"result":"{words}","terminal_reason":"api_error","api_error_status":{status},"num_turns":1,"modelUsage":{{}}}}"#
    );
    format!("printf '%s\\n' '{said}' '{result}'; exit 1")
}
