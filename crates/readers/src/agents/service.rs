//! The model's service, as an agent uses it: where it is, how it fails, and how long an agent may
//! wait for it. A failure is what an agent's own error fields report: a status where there is one,
//! and a sentence, which is sorted by the words of the services themselves. Never use this on an
//! answer, a tool's result or a file, where the same words mean nothing. It knows the names of the
//! variables and files that contain keys, but no key.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};

use crate::clients::{FieldsByPointer, parse_object};
use crate::parse::patterns::API_STATUS;
use crate::parse::service;
use crate::parse::service::{is_believed, names_a_time, parse_reset};
use engine::boundary::facts::ApiError;
use engine::text::{one_line, table_rows, text_start};

/// The longest sentence kept, in characters.
const SENTENCE_CHARS: usize = 2000;
/// The longest kind kept, in characters.
const KIND_CHARS: usize = 200;
/// The minimum time until a reset. A nearer one is only a pause between two tries, which the agent
/// makes by itself.
const RESET_LEAST: TimeDelta = TimeDelta::seconds(60);

const AUTH: &str = "authentication_failed";
const BILLING: &str = "billing_error";
const LIMIT: &str = "rate_limit";
const MODEL: &str = "model_not_found";
const REQUEST: &str = "invalid_request";
pub(super) const UNKNOWN: &str = "unknown";

/// Phrases of the services, each with the kind of failure that it indicates.
const WORDS: &str = include_str!("failures.txt");

/// One failure of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServiceFailure {
    /// The kind, as `api_error` spells it.
    pub(super) kind: String,
    pub(super) sentence: String,
    /// How long the agent pauses before it tries again, or should, according to a separate field.
    pause: Option<Duration>,
    /// When a limit resets, according to a separate field.
    pub(super) reset: Option<DateTime<Utc>>,
    /// Whether its agent tries again by itself after a short pause, so that a near reset in its
    /// words is the end of one.
    pauses_itself: bool,
}

impl ServiceFailure {
    /// Classifies a failure by its status, if a separate field reports one, and the sentence beside
    /// it.
    pub(super) fn from_status(status: Option<u16>, sentence: &str) -> Self {
        let whole = text_start(sentence.trim(), SENTENCE_CHARS);
        let (code, words) = unwrap_sentence(whole);
        let status = status.or(code).or_else(|| status_in(&words)).or_else(|| status_in(whole));
        let kind = kind_of(status, &whole.to_lowercase());
        let sentence = one_line(&words, SENTENCE_CHARS);
        // A quota that returns at a known time is a limit.
        let is_a_limit = kind == BILLING && names_a_time(&sentence);
        let failure = Self::of_kind(if is_a_limit { LIMIT } else { kind }, "");
        Self { sentence, pauses_itself: true, ..failure }
    }

    /// Classifies a failure by the agent's own word for its kind.
    pub(super) fn of_kind(kind: &str, sentence: &str) -> Self {
        let kind = text_start(kind, KIND_CHARS).to_owned();
        let sentence = text_start(sentence, SENTENCE_CHARS).to_owned();
        Self { kind, sentence, pause: None, reset: None, pauses_itself: false }
    }

    /// Adds the pause that a separate field reports.
    pub(super) fn with_pause(self, pause: Option<Duration>) -> Self {
        let is_a_limit = pause.is_some() && self.kind == BILLING;
        let kind = if is_a_limit { LIMIT.to_owned() } else { self.kind };
        Self { kind, pause, ..self }
    }

    /// Applies a status, which identifies what the agent calls unknown.
    pub(super) fn apply_status(&mut self, status: Option<u16>) {
        if self.kind == UNKNOWN {
            by_status(status).unwrap_or(UNKNOWN).clone_into(&mut self.kind);
        }
    }

    /// Whether waiting cannot help: a person must act, or the request must change.
    pub(super) fn is_for_good(&self) -> bool {
        [AUTH, BILLING, MODEL, REQUEST].contains(&&*self.kind)
    }

    /// Whether a limit of the account was met.
    pub(super) fn is_limit(&self) -> bool {
        self.kind == LIMIT
    }

    /// How long the agent will do nothing, according to its field or its message.
    pub(super) fn pause(&self, now: DateTime<FixedOffset>) -> Option<Duration> {
        if let Some(pause) = self.pause
            && let Ok(delta) = TimeDelta::from_std(pause)
            && let Some(end) = now.to_utc().checked_add_signed(delta)
            && is_believed(end, now)
        {
            return Some(pause);
        }
        (parse_reset(&self.sentence, now)? - now.to_utc()).to_std().ok()
    }

    /// The error for the boundary. The service's own reset time is preferred to the pause that the
    /// agent derives from it. The end of a pause between two tries is not a reset: whoever starts
    /// again then meets the same limit.
    pub(super) fn to_api_error(&self, now: DateTime<FixedOffset>) -> ApiError {
        let pause = self.pause(now).and_then(|pause| TimeDelta::from_std(pause).ok());
        match service::classify_error(&self.kind, &self.sentence, now) {
            ApiError::Transient { message, is_limit, reset } => {
                let exact = self.reset.filter(|at| is_limit && is_believed(*at, now));
                let now = now.to_utc();
                let reset =
                    reset.filter(|at| !self.pauses_itself || *at <= now || is_far(*at, now));
                let paused = pause.and_then(|pause| now.checked_add_signed(pause));
                let paused = paused.filter(|at| is_far(*at, now));
                ApiError::Transient { message, reset: exact.or(reset).or(paused), is_limit }
            }
            other => other,
        }
    }
}

/// Whether a reset is too far away to be the end of a pause between two tries.
fn is_far(at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    at - now >= RESET_LEAST
}

/// A sentence without the text that its agent adds around it, and the status in that text.
fn unwrap_sentence(text: &str) -> (Option<u16>, String) {
    let inner = text.strip_prefix("[API Error: ").and_then(|rest| rest.rsplit_once(']'));
    let inner = inner.map_or(text, |(inner, _)| inner).trim();
    let json = inner.find('{').map_or(inner, |at| &inner[at..]);
    if let Ok(body) = parse_object(json.as_bytes())
        && let Some(words) = body.first(&["/error/message", "/message", "/detail"])
    {
        let status = body.status("/error/code").or(body.status("/status"));
        return (status.filter(|status| is_status(*status)), words.to_owned());
    }
    let quoted = serde_json::from_slice::<String>(inner.as_bytes());
    (None, quoted.unwrap_or_else(|_| inner.to_owned()))
}

/// The status that a sentence names: "unexpected status 401", "429 Rate limit reached".
fn status_in(sentence: &str) -> Option<u16> {
    let found = API_STATUS.captures(sentence)?.get(1)?.as_str().parse().ok();
    found.filter(|status| is_status(*status))
}

fn is_status(status: u16) -> bool {
    (400..600).contains(&status)
}

/// The kind of a failure with this status and these words, in lower case.
fn kind_of(status: Option<u16>, words: &str) -> &'static str {
    let (exact, vague) = WORDS.split_once("***").unwrap_or_default();
    let found = find_kind(exact, words).or(by_status(status));
    found.or_else(|| find_kind(vague, words)).unwrap_or(UNKNOWN)
}

fn find_kind(table: &'static str, words: &str) -> Option<&'static str> {
    table_rows(table).find(|(phrase, _)| words.contains(phrase)).map(|(_, kind)| kind)
}

fn by_status(status: Option<u16>) -> Option<&'static str> {
    Some(match status? {
        401 | 403 => AUTH,
        402 => BILLING,
        404 => MODEL,
        429 => LIMIT,
        400 | 413 | 422 => REQUEST,
        _ => UNKNOWN,
    })
}

/// How long an agent may wait by itself. After that crew ends it and waits without a process, which
/// costs nothing, takes no memory and lasts through a night. A short wait within the agent must
/// cost nothing.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an agent that does not report the length of its pause may be silent: a model may be at
/// work.
const SILENCE: Duration = Duration::from_secs(3 * 60);
/// How long a try that fails immediately takes: within this time after a retry, the agent is not
/// working.
const MOMENT: Duration = Duration::from_secs(1);

/// An agent's report that it waits for the service, and does nothing else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServiceWait {
    /// How many times in a row it reported this.
    pub tries: u32,
    /// How long it pauses before the next try; `None` where that is not reported. Then it either
    /// pauses or asks.
    pub pause: Option<Duration>,
    /// Whether further tries cannot succeed.
    pub is_hopeless: bool,
}

impl ServiceWait {
    /// Whether it has waited long enough. `since` is the time since the first of the tries in a
    /// row, `last` that since the last one. After a pause that was reported the agent is at work
    /// again, however silently: a model may think for minutes.
    pub fn is_enough(self, since: Duration, last: Duration) -> bool {
        let pauses = last <= self.pause.unwrap_or_default().max(MOMENT);
        let is_silent = self.pause.is_none() && last >= SILENCE;
        let is_over = is_silent || (since >= PATIENCE && pauses);
        self.is_hopeless || self.pause.is_some_and(|pause| pause > PATIENCE) || is_over
    }
}

/// Resolves a variable to an absolute path.
pub type PathVariable<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

/// The service that an agent talks to.
#[derive(Debug)]
pub struct Service {
    /// The variable that sets another address, and the usual address.
    pub set_by: &'static str,
    pub usual: &'static str,
    /// If one of these is set, the agent talks to another service, which crew does not know.
    pub elsewhere: &'static [&'static str],
    /// Variables that contain a key.
    pub keys: &'static [&'static str],
    /// The file that a login leaves.
    pub login: fn(PathVariable<'_>) -> Option<PathBuf>,
}

/// The host and port to connect to for a URL: its own, or the ones of a proxy that variables set.
/// `None` for what is not a URL of http or https.
pub fn resolve_route(
    url: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<(String, u16)> {
    let (scheme, host, port) = parse_endpoint(url)?;
    let excepted = in_either_case("no_proxy", variable).unwrap_or_default();
    let is_excepted = excepted.split(',').map(str::trim).any(|name| {
        let above = name.trim_start_matches(['*', '.']);
        name == "*" || host == above || (!above.is_empty() && host.ends_with(&format!(".{above}")))
    });
    match in_either_case(&format!("{scheme}_proxy"), variable) {
        Some(proxy) if !is_excepted => {
            let proxy = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
            parse_endpoint(&proxy).map(|(_, host, port)| (host, port))
        }
        _ => Some((host, port)),
    }
}

/// The value of a variable that programs spell in lower or in upper case.
fn in_either_case(name: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    variable(name).or_else(|| variable(&name.to_uppercase()))
}

fn parse_endpoint(url: &str) -> Option<(&str, String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    // The colons of an IPv6 address are in brackets.
    let (host, port) = match place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (place, usual),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() { None } else { Some((scheme, host.to_owned(), port)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<FixedOffset> {
        DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap()
    }

    /// A failure in a few words: "limit until 02:00:00", "blocked: …", "request: …", "outage".
    fn render(failure: &ServiceFailure) -> String {
        match failure.to_api_error(now()) {
            ApiError::Transient { reset, is_limit, message } => {
                let what = if is_limit { "limit" } else { "outage" };
                let until =
                    reset.map_or_else(String::new, |at| format!(" until {}", at.format("%T")));
                format!("{what}{until}: {message}")
            }
            ApiError::Fatal { cause, hint } => format!("blocked: {cause}; {hint}"),
            ApiError::Request { message } => format!("request: {message}"),
        }
    }

    fn sorted(rows: &[(Option<u16>, &str)]) -> String {
        let rows =
            rows.iter().map(|(status, words)| render(&ServiceFailure::from_status(*status, words)));
        rows.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_quota_or_key_failure_is_recognized_by_its_words_whatever_the_status() {
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
    fn a_failure_is_classified_by_its_words_then_its_status_and_then_its_vague_words() {
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
    fn a_reported_pause_is_a_reset_unless_it_lies_between_two_tries() {
        let failure = ServiceFailure::from_status(Some(429), "slow down");
        for (seconds, expected) in [
            (5, "limit: slow down"),
            (3900, "limit until 02:05:00: slow down"),
            (1_795_000_000, "limit: slow down"),
            (u64::MAX, "limit: slow down"),
        ] {
            let failure = failure.clone().with_pause(Some(Duration::from_secs(seconds)));
            assert_eq!(render(&failure), expected);
        }
        let words = "Your quota will reset after 3600s. Suggested retry after 3600s.";
        let failure = ServiceFailure::from_status(Some(429), words)
            .with_pause(Some(Duration::from_secs(3900)));
        assert_eq!(render(&failure), format!("limit until 02:00:00: {words}"));
    }

    #[test]
    fn an_agent_may_wait_a_minute_and_is_ended_for_a_longer_pause() {
        let unknown = ServiceWait { tries: 1, ..ServiceWait::default() };
        let pause = |seconds| ServiceWait { pause: Some(Duration::from_secs(seconds)), ..unknown };
        let table = [
            ("it pauses for five seconds", pause(5), 0, 0, false),
            ("it has paused for five seconds again and again", pause(5), 61, 3, true),
            ("it asked again half a minute ago, and the model may think", pause(5), 90, 30, false),
            ("it pauses for an hour", pause(3600), 0, 0, true),
            ("it does not say for how long, and the model may think", unknown, 179, 179, false),
            ("it does not say for how long, and says nothing else", unknown, 180, 180, true),
            ("it does not say for how long, and reports one more try", unknown, 61, 0, true),
            ("each try is reported when it is made", pause(0), 61, 0, true),
            ("a try was made some time ago", pause(0), 61, 2, false),
            ("no try can help", ServiceWait { is_hopeless: true, ..unknown }, 0, 0, true),
        ];
        for (what, wait, since, last, expected) in table {
            let [since, last] = [since, last].map(Duration::from_secs);
            assert_eq!(wait.is_enough(since, last), expected, "{what}");
        }
    }

    /// A test case: a URL, the variables that are set, and the expected host and port.
    type Route =
        (&'static str, &'static [(&'static str, &'static str)], Option<(&'static str, u16)>);

    #[test]
    fn the_route_to_a_service_is_its_own_address_or_a_proxys() {
        let proxy: &[(&str, &str)] = &[("HTTPS_PROXY", "http://me:secret@proxy.site:3128/")];
        let excepting: &[(&str, &str)] =
            &[("https_proxy", "proxy.site:3128"), ("NO_PROXY", "localhost, .example.org")];
        let table: [Route; 12] = [
            ("https://api.example.com", &[], Some(("api.example.com", 443))),
            ("http://api.example.com/v1?x=1", &[], Some(("api.example.com", 80))),
            ("https://user:word@api.example.com:8443/", &[], Some(("api.example.com", 8443))),
            ("http://[::1]:4000/v1", &[], Some(("::1", 4000))),
            ("http://[::1]", &[], Some(("::1", 80))),
            ("https://api.example.com", proxy, Some(("proxy.site", 3128))),
            ("http://api.example.com", proxy, Some(("api.example.com", 80))),
            ("https://api.example.com", excepting, Some(("proxy.site", 3128))),
            ("https://api.example.org", excepting, Some(("api.example.org", 443))),
            ("https://", &[], None),
            ("https://api.example.com:many", &[], None),
            ("api.example.com", &[], None),
        ];
        for (url, set, expected) in table {
            let variable = |name: &str| {
                set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
            };
            let found = resolve_route(url, &variable);
            let found = found.as_ref().map(|(host, port)| (host.as_str(), *port));
            assert_eq!(found, expected, "{url} {set:?}");
        }
    }
}
