//! Sorts the client's reasons why the model's service did not answer by what can be done about
//! them. It reads only the client's own error field, never the text of a file or an answer: a page
//! that mentions a rate limit is not a rate limit.

use chrono::{DateTime, FixedOffset};

use super::reset::reset;
use crate::engine::boundary::facts::ApiError;
use crate::engine::text::{plain, start};

/// The most characters of the service's message that are kept.
const MESSAGE_CHARS: usize = 300;

/// Sorts an error. An unknown kind counts as temporary. `now` is on the user's clock, because the
/// service's message names a reset on it.
pub fn classify(kind: &str, message: &str, now: DateTime<FixedOffset>) -> ApiError {
    let message = start(plain(message).trim(), MESSAGE_CHARS).to_owned();
    let message = if message.is_empty() { plain(kind) } else { message };
    let fatal = |cure: &str| ApiError::Fatal { cause: message.clone(), cure: cure.to_owned() };
    match kind {
        "authentication_failed" => fatal("log in again, or fix the API key"),
        "oauth_org_not_allowed" => fatal("log in with an organisation that may use this client"),
        "billing_error" => fatal("fix the account's billing"),
        "model_not_found" => fatal("choose a model this account has"),
        "invalid_request" | "max_output_tokens" => ApiError::Request { message },
        _ => ApiError::Transient {
            reset: reset(&message, now),
            is_limit: kind == "rate_limit",
            message,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify(kind: &str, message: &str) -> ApiError {
        super::classify(
            kind,
            message,
            DateTime::parse_from_rfc3339("2026-11-21T22:15:00Z").unwrap(),
        )
    }

    #[test]
    fn errors_are_sorted_by_what_can_be_done() {
        let sort = |kind: &str| match classify(kind, "API Error: text") {
            ApiError::Transient { .. } => "transient",
            ApiError::Fatal { .. } => "fatal",
            ApiError::Request { .. } => "request",
        };
        let table = [
            ("rate_limit", "transient"),
            ("overloaded", "transient"),
            ("server_error", "transient"),
            ("unknown", "transient"),
            ("a kind of tomorrow", "transient"),
            ("authentication_failed", "fatal"),
            ("oauth_org_not_allowed", "fatal"),
            ("billing_error", "fatal"),
            ("model_not_found", "fatal"),
            ("invalid_request", "request"),
            ("max_output_tokens", "request"),
        ];
        for (kind, expected) in table {
            assert_eq!(sort(kind), expected, "{kind}");
        }
    }

    #[test]
    fn a_message_is_bounded_and_an_empty_one_is_the_kind() {
        let ApiError::Transient { message, .. } = classify("rate_limit", " ") else { panic!() };
        assert_eq!(message, "rate_limit");
        let ApiError::Transient { message, .. } = classify("unknown", "\x1b[2J\x1b]0;t\x07no")
        else {
            panic!()
        };
        assert_eq!(message, "no", "nothing in it steers a terminal");
        let long = "x".repeat(5000);
        let ApiError::Request { message } = classify("invalid_request", &long) else { panic!() };
        assert_eq!(message.len(), MESSAGE_CHARS);
    }
}
