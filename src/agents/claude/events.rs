//! What the fields of the stream's events mean.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::agents::activity::ToolCall;
use crate::agents::json::JsonObject;
use crate::agents::words::{says_error, shown};

/// The result's subtype when the client's own limit on turns ended it.
pub(super) const OUT_OF_TURNS: &str = "error_max_turns";

/// The result of a call, a text or the texts of a list of parts; `None` where it is not worth
/// showing.
pub(super) fn result(block: JsonObject<'_>, call: &ToolCall) -> Option<String> {
    let parts = || block.list("content").into_iter().filter_map(|part| part.text("text"));
    let output = block.text("content").unwrap_or_else(|| parts().collect::<Vec<_>>().join("\n"));
    let is_failure = block.flag("is_error") == Some(true);
    let exit = output.strip_prefix("Exit code ").and_then(|rest| rest.lines().next());
    let exit = exit.and_then(|exit| exit.trim().parse().ok());
    call.came_to(&output, exit.filter(|_| is_failure), is_failure)
}

/// How long the client pauses before the next try.
pub(super) fn pause(retry: JsonObject<'_>) -> Option<Duration> {
    retry.number("retry_delay_ms").map(|_| Duration::from_millis(retry.count("retry_delay_ms")))
}

/// "the service did not answer (overloaded, 529): retry 1 of 2".
pub(super) fn retry_line(retry: JsonObject<'_>) -> String {
    let error = retry.text("error").unwrap_or("unknown".to_owned());
    let status = retry.number("error_status").map(|status| format!(", {status}"));
    let status = status.unwrap_or_default();
    let [attempt, most] =
        ["attempt", "max_retries"].map(|name| retry.number(name).unwrap_or_default());
    shown(&format!("the service did not answer ({error}{status}): retry {attempt} of {most}"))
}

/// When a limit resets.
pub(super) fn resets_at(limit: JsonObject<'_>) -> Option<DateTime<Utc>> {
    limit.number("resetsAt")?;
    DateTime::from_timestamp(i64::try_from(limit.count("resetsAt")).ok()?, 0)
}

/// The error that a result reports; `None` if there is none or it is the client's own limit on
/// turns.
pub(super) fn failed(result: JsonObject<'_>) -> Option<String> {
    let (kind, words) = (result.word("subtype"), result.word("result"));
    let is_error = result.flag("is_error") == Some(true) || kind.starts_with("error");
    let reason = if words.trim().is_empty() { &kind } else { words.trim() };
    (is_error && kind != OUT_OF_TURNS).then(|| says_error(reason))
}
