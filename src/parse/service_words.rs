//! What a program without events reports about the model's service. Only the end of its standard
//! error is read, and only when it failed. Standard output is ignored, because it is the program's
//! work.

use chrono::{DateTime, FixedOffset};

use super::amounts::digits;
use super::api_error::classify;
use super::patterns::SERVICE_LIMIT;
use crate::engine::boundary::facts::ApiError;

/// How many lines at the end of standard error are read.
const LINES: usize = 5;

/// The service's failure reported at the end of `errors`. `now` is on the user's clock, because the
/// report names a reset on it.
pub fn limit(errors: &str, now: DateTime<FixedOffset>) -> Option<ApiError> {
    let lines: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let told = last.iter().rposition(|line| SERVICE_LIMIT.is_match(line) && !is_of_code(line))?;
    // The reset may be on a separate line after the limit.
    Some(classify("rate_limit", &last[told..].join(" "), now))
}

/// Whether a line is a message of a compiler or a test: `src/a.cc:3:7: …`, `FAILED …`.
fn is_of_code(line: &str) -> bool {
    let place = line.split_whitespace().next().and_then(|word| word.split(':').nth(1));
    place.is_some_and(|it| digits(it).is_some()) || line.contains("FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_about_the_service_at_the_end_are_a_limit() {
        let now = DateTime::parse_from_rfc3339("2026-11-21T22:15:00Z").unwrap();
        let long = format!("Error: rate limit exceeded\n{}", "at line\n".repeat(LINES));
        let table = [
            ("Error: rate limit exceeded", Some(None)),
            ("rate_limit_error: slow down", Some(None)),
            ("You have reached your rate limit.", Some(None)),
            ("You are being rate limited", Some(None)),
            ("HTTP 429 Too Many Requests\nretry after 30 seconds", Some(Some("22:15:30"))),
            ("request failed with status code 429", Some(None)),
            ("error: 529", Some(None)),
            ("You've hit your usage limit. Try again at 11:45 PM.", Some(Some("23:45:00"))),
            ("Quota exceeded for requests per minute", Some(None)),
            ("You exceeded your current quota", Some(None)),
            ("code: RESOURCE_EXHAUSTED", Some(None)),
            ("overloaded_error: Overloaded\n\nresets 11pm\n", Some(Some("23:00:00"))),
            ("npm warn deprecated express-rate-limit@5.1.0", None),
            ("Compiling ratelimit v1.0.0", None),
            ("thread panicked in src/rate_limit.rs:3", None),
            ("You've hit your limit · resets 11:59pm", Some(Some("23:59:00"))),
            ("You’ve reached your weekly limit", Some(None)),
            ("the users hit your limit of five", None),
            ("item 429 failed", None),
            ("error in line 429", None),
            ("write: Disk quota exceeded", None),
            ("the operator + is overloading", None),
            ("error: call of overloaded 'f(unsigned int)' is ambiguous", None),
            ("src/a.cc:3:7: error: overloaded functions differ", None),
            ("FAILED: test_retry, 'too many requests'", None),
            ("API Error: the server is overloaded", Some(None)),
            ("529 Overloaded", Some(None)),
            (&long, None),
            ("", None),
        ];
        for (errors, expected) in table {
            let found = limit(errors, now).map(|error| match error {
                ApiError::Transient { reset, .. } => reset.map(|at| at.format("%T").to_string()),
                other => panic!("{other:?}"),
            });
            let expected = expected.map(|at: Option<&str>| at.map(str::to_owned));
            assert_eq!(found, expected, "{errors:?}");
        }
    }
}
