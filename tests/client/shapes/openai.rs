//! The common parts of the Responses and chat completions APIs: the format of an error, and most
//! messages.

use serde_json::{Value, json};

use crate::client::refusal::{Fault, Refusal};

pub(super) fn refuse(refusal: Refusal) -> Fault {
    let (status, kind, code, message) = match refusal {
        Refusal::Key => (
            401,
            "invalid_request_error",
            "invalid_api_key",
            "Incorrect API key provided: fake-key.".to_owned(),
        ),
        Refusal::Credit => (
            429,
            "insufficient_quota",
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details."
                .to_owned(),
        ),
        Refusal::Busy { seconds } => (
            429,
            "rate_limit_error",
            "rate_limit_exceeded",
            format!("Rate limit reached for requests. Please try again in {seconds}s."),
        ),
        Refusal::Limit { reset } => {
            let words = reset.format("You've hit your usage limit. Try again at %-I:%M %p.");
            (429, "rate_limit_error", "rate_limit_exceeded", words.to_string())
        }
        Refusal::Outage => {
            let words = "The server had an error while processing your request.";
            (500, "server_error", "server_error", words.to_owned())
        }
    };
    error(status, &json!({"message": message, "type": kind, "param": null, "code": code}))
        .retry_after(refusal)
}

pub(super) fn error(status: u16, error: &Value) -> Fault {
    Fault::new(status, json!({"error": error}))
}
