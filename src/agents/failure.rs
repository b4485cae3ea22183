//! A failure of the model's service, as an agent's own error fields report it: a status where there
//! is one, and a sentence. The sentence is sorted by the words of the services themselves. Never
//! read an answer, a tool's result or a file with this: there the same words are only words.

use std::time::Duration;

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};

use super::json::JsonObject;
use super::words::start;
use crate::engine::boundary::facts::ApiError;
use crate::engine::text::one_line;
use crate::parse::api_error;
use crate::parse::patterns::API_STATUS;
use crate::parse::reset::{is_believed, names_a_time, reset};

/// The longest sentence kept, in characters.
const SENTENCE_CHARS: usize = 2000;
/// A reset that is nearer is a pause between two tries, which the agent makes by itself.
const RESET_LEAST: TimeDelta = TimeDelta::seconds(60);

const AUTH: &str = "authentication_failed";
const BILLING: &str = "billing_error";
const LIMIT: &str = "rate_limit";
const MODEL: &str = "model_not_found";
const REQUEST: &str = "invalid_request";
const UNKNOWN: &str = "unknown";

/// Words that tell more than any status beside them, lower-case. The first that is found counts.
const EXACT: [(&str, &str); 16] = [
    ("insufficient_quota", BILLING),
    ("check your plan and billing", BILLING),
    ("credit balance is too low", BILLING),
    ("payment required", BILLING),
    ("model_not_found", MODEL),
    ("model not found", MODEL),
    ("model is not supported", MODEL),
    ("does not exist or you do not have access to it", MODEL),
    ("context_length_exceeded", REQUEST),
    ("context window", REQUEST),
    ("maximum context length", REQUEST),
    ("please log out and sign in again", AUTH),
    ("api key not valid", AUTH),
    ("incorrect api key", AUTH),
    ("no auth type is selected", AUTH),
    ("usage limit", LIMIT),
];
/// Words that count where no status was reported.
const VAGUE: [(&str, &str); 9] = [
    ("unauthenticated", AUTH),
    ("unauthorized", AUTH),
    ("invalid request", REQUEST),
    ("invalid_request", REQUEST),
    ("rate limit", LIMIT),
    ("too many requests", LIMIT),
    ("resource_exhausted", LIMIT),
    ("exhausted your", LIMIT),
    ("quota exceeded", LIMIT),
];

/// One failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServiceFailure {
    /// As `api_error` spells it.
    kind: &'static str,
    pub(super) sentence: String,
    /// How long the agent pauses before it tries again, or should, as a field of its own says.
    pause: Option<Duration>,
}

impl ServiceFailure {
    /// From a status, where a field of its own reports one, and the sentence beside it.
    pub(super) fn of(status: Option<u16>, sentence: &str) -> Self {
        let whole = start(sentence.trim(), SENTENCE_CHARS);
        let (code, words) = unwrapped(whole);
        let status = status.or(code).or_else(|| status_in(&words)).or_else(|| status_in(whole));
        let kind = kind_of(status, &whole.to_lowercase());
        let sentence = one_line(&words, SENTENCE_CHARS);
        let is_timed = names_a_time(&sentence);
        let failure = Self { kind, sentence, pause: None };
        if is_timed { failure.timed() } else { failure }
    }

    /// The same, with the pause that a field of its own reports.
    pub(super) fn pausing(self, pause: Option<Duration>) -> Self {
        let pause = pause.or(self.pause);
        let failure = Self { pause, ..self };
        if pause.is_some() { failure.timed() } else { failure }
    }

    /// A quota that is there again at some time is a limit.
    fn timed(self) -> Self {
        Self { kind: if self.kind == BILLING { LIMIT } else { self.kind }, ..self }
    }

    /// Whether nothing that time brings can end it: a person must, or the request must change.
    pub(super) fn is_for_good(&self) -> bool {
        [AUTH, BILLING, MODEL, REQUEST].contains(&self.kind)
    }

    /// Whether a limit of the account was met.
    pub(super) fn is_limit(&self) -> bool {
        self.kind == LIMIT
    }

    /// How long the agent will do nothing, as its field or its words say.
    pub(super) fn pause(&self, now: DateTime<FixedOffset>) -> Option<Duration> {
        let end = |pause| now.to_utc().checked_add_signed(TimeDelta::from_std(pause).ok()?);
        let is_near = |pause: &Duration| end(*pause).is_some_and(|at| is_believed(at, now));
        let in_words = || (reset(&self.sentence, now)? - now.to_utc()).to_std().ok();
        self.pause.filter(is_near).or_else(in_words)
    }

    /// The error for the boundary. The service's own word for the reset is better than the pause
    /// that an agent makes of it. The end of a pause between two tries is no reset: who starts
    /// again then meets the same limit.
    pub(super) fn error(&self, now: DateTime<FixedOffset>) -> ApiError {
        let pause = self.pause(now).and_then(|pause| TimeDelta::from_std(pause).ok());
        match api_error::classify(self.kind, &self.sentence, now) {
            ApiError::Transient { message, is_limit, reset } => {
                let now = now.with_timezone(&Utc);
                let paused = pause.and_then(|pause| now.checked_add_signed(pause));
                let is_far = |at: &DateTime<Utc>| *at - now >= RESET_LEAST;
                let reset = reset.filter(|at| *at <= now || is_far(at));
                let reset = reset.or_else(|| paused.filter(is_far));
                ApiError::Transient { message, reset, is_limit }
            }
            other => other,
        }
    }
}

/// A sentence without what its agent puts around it, and the status that stood there.
fn unwrapped(text: &str) -> (Option<u16>, String) {
    let inner = text.strip_prefix("[API Error: ").and_then(|it| it.rsplit_once(']'));
    let inner = inner.map_or(text, |(inner, _)| inner).trim();
    let json = inner.find('{').map_or(inner, |at| &inner[at..]);
    if let Some(body) = JsonObject::of(json) {
        let words = ["error.message", "message", "detail"];
        if let Some(words) = words.into_iter().find_map(|path| body.text(path)) {
            let status = body.status("error.code").or(body.status("status"));
            return (status.filter(|it| is_status(*it)), words);
        }
    }
    let quoted = serde_json::from_slice::<String>(inner.as_bytes());
    (None, quoted.unwrap_or_else(|_| inner.to_owned()))
}

/// The status that a sentence names: "unexpected status 401", "429 Rate limit reached".
fn status_in(sentence: &str) -> Option<u16> {
    let found = API_STATUS.captures(sentence)?.get(1)?.as_str().parse().ok();
    found.filter(|it| is_status(*it))
}

fn is_status(status: u16) -> bool {
    (400..600).contains(&status)
}

/// `words` in lower case.
fn kind_of(status: Option<u16>, words: &str) -> &'static str {
    let found = |phrases: &[(&str, &'static str)]| {
        phrases.iter().find(|(phrase, _)| words.contains(phrase)).map(|(_, kind)| *kind)
    };
    let by_status = status.map(|status| match status {
        401 | 403 => AUTH,
        402 => BILLING,
        404 => MODEL,
        429 => LIMIT,
        400 | 413 | 422 => REQUEST,
        _ => UNKNOWN,
    });
    found(&EXACT).or(by_status).or_else(|| found(&VAGUE)).unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<FixedOffset> {
        DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap()
    }

    /// "limit until 02:00:00", "blocked: …", "request: …", "outage".
    fn told(failure: &ServiceFailure) -> String {
        match failure.error(now()) {
            ApiError::Transient { reset, is_limit, message } => {
                let what = if is_limit { "limit" } else { "outage" };
                let until =
                    reset.map_or_else(String::new, |at| format!(" until {}", at.format("%T")));
                format!("{what}{until}: {message}")
            }
            ApiError::Fatal { cause, cure } => format!("blocked: {cause}; {cure}"),
            ApiError::Request { message } => format!("request: {message}"),
        }
    }

    fn sorted(rows: &[(Option<u16>, &str)]) -> String {
        let told = rows.iter().map(|(status, words)| told(&ServiceFailure::of(*status, words)));
        told.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_quota_or_a_key_is_known_by_its_words_whatever_the_status() {
        let timed = "billing, or try again at Nov 25th, 2026 7:03 AM.";
        let key = r#"[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#;
        let rows = [
            (Some(400), "Your credit balance is too low to access the Anthropic API."),
            (None, key),
            (Some(429), "Check your plan and billing details. Resets 12:00 AM."),
            (None, &format!("Check your plan and {timed}")),
        ];
        insta::assert_snapshot!(sorted(&rows), @"
        blocked: Your credit balance is too low to access the Anthropic API.; fix the account's billing
        blocked: API key not valid. Please pass a valid API key.; log in again, or fix the API key
        limit until 00:00:00: Check your plan and billing details. Resets 12:00 AM.
        limit until 07:03:00: Check your plan and billing, or try again at Nov 25th, 2026 7:03 AM.
        ");
    }

    #[test]
    fn a_failure_is_sorted_by_its_words_its_status_and_then_its_vague_words() {
        let quota = "You exceeded your current quota, please check your plan and billing details.";
        let quota_in_json = format!(r#"{{"message":"{quota}","code":"insufficient_quota"}}"#);
        let rows: Vec<(Option<u16>, &str)> = vec![
            (Some(401), "Wrong key"),
            (None, "unexpected status 403 Forbidden: no"),
            (None, "[API Error: 401 Wrong key]"),
            (
                None,
                r#"[API Error: {"error":{"code":401,"message":"Wrong key","status":"UNAUTHENTICATED"}}]"#,
            ),
            (Some(429), &quota_in_json),
            (Some(429), quota),
            (
                Some(429),
                "You exceeded your current quota, check your plan and billing. Please retry in 90s.",
            ),
            (
                None,
                "[API Error: Rate limit reached. Try again in 1h.\nSuggested retry after 3600s.]\nPlease wait",
            ),
            (None, "Rate limit reached. Suggested retry after 5s."),
            (Some(404), "The model `m` does not exist or you do not have access to it."),
            (None, "unexpected status 404 Not Found"),
            (None, "Codex ran out of room in the model's context window."),
            (
                None,
                r#"{"type":"error","status":400,"error":{"type":"invalid_request_error","message":"The 'x' model is not supported when using Codex with a ChatGPT account."}}"#,
            ),
            (None, r#"{"status":400,"error":{"message":"No such field."}}"#),
            (None, r#"{"error":{"type":"invalid_request_error","message":"No."}}"#),
            (None, r#"unexpected status 401 Unauthorized: {"detail":"Wrong key"}"#),
            (None, "Model not found: p/m."),
            (Some(400), "This model's maximum context length is 10 tokens."),
            (Some(500), "The server had an error"),
            (None, "We’re currently experiencing high demand."),
            (None, "\"stream closed\""),
            (None, "read 401 files, then error"),
        ];
        insta::assert_snapshot!(sorted(&rows), @r#"
        blocked: Wrong key; log in again, or fix the API key
        blocked: unexpected status 403 Forbidden: no; log in again, or fix the API key
        blocked: 401 Wrong key; log in again, or fix the API key
        blocked: Wrong key; log in again, or fix the API key
        blocked: You exceeded your current quota, please check your plan and billing details.; fix the account's billing
        blocked: You exceeded your current quota, please check your plan and billing details.; fix the account's billing
        limit until 01:01:30: You exceeded your current quota, check your plan and billing. Please retry in 90s.
        limit until 02:00:00: Rate limit reached. Try again in 1h. Suggested retry after 3600s.
        limit: Rate limit reached. Suggested retry after 5s.
        blocked: The model `m` does not exist or you do not have access to it.; choose a model this account has
        blocked: unexpected status 404 Not Found; choose a model this account has
        request: Codex ran out of room in the model's context window.
        blocked: The 'x' model is not supported when using Codex with a ChatGPT account.; choose a model this account has
        request: No such field.
        request: No.
        blocked: Wrong key; log in again, or fix the API key
        blocked: Model not found: p/m.; choose a model this account has
        request: This model's maximum context length is 10 tokens.
        outage: The server had an error
        outage: We’re currently experiencing high demand.
        outage: stream closed
        outage: read 401 files, then error
        "#);
    }

    #[test]
    fn a_told_pause_is_a_reset_unless_it_is_one_between_two_tries() {
        let failure = ServiceFailure::of(Some(429), "slow down");
        for (seconds, expected) in [
            (5, "limit: slow down"),
            (3900, "limit until 02:05:00: slow down"),
            (1_795_000_000, "limit: slow down"),
            (u64::MAX, "limit: slow down"),
        ] {
            let failure = failure.clone().pausing(Some(Duration::from_secs(seconds)));
            assert_eq!(told(&failure), expected);
        }
        let words = "Your quota will reset after 3600s. Suggested retry after 3600s.";
        let failure = ServiceFailure::of(Some(429), words).pausing(Some(Duration::from_secs(3900)));
        assert_eq!(told(&failure), format!("limit until 02:00:00: {words}"));
    }
}
