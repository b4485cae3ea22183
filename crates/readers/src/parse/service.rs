//! Reads why the model's service did not answer, and until when, from the client's own error field,
//! or from the end of the standard error of a program without events. It never reads the contents
//! of a file or an answer: a page that mentions a rate limit is not a rate limit. A reset is a time
//! on the user's clock, often without a date or a year, a wait, or seconds since 1970; a time that
//! cannot be parsed is refused.

use std::str::FromStr;
use std::time::Duration;

use chrono::{
    DateTime, Datelike, Days, FixedOffset, Month, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta,
    Utc, Weekday,
};
use regex::{Captures, Match};

use super::amounts::all_digits;
use super::patterns::{
    RESET_CLOCK, RESET_SECONDS, RESET_STAMP, RESET_WAIT, SERVICE_LIMIT, TIME_PART,
};
use engine::boundary::facts::ApiError;
use engine::text::{plain_text, text_start};

/// The maximum number of characters kept of the service's message.
const MESSAGE_CHARS: usize = 300;

/// Sorts an error. An unknown kind counts as temporary. `now` is on the user's clock, because the
/// service's message names a reset on it.
pub fn classify_error(kind: &str, message: &str, now: DateTime<FixedOffset>) -> ApiError {
    let message = text_start(plain_text(message).trim(), MESSAGE_CHARS).to_owned();
    let message = if message.is_empty() { plain_text(kind) } else { message };
    let hint = match kind {
        "authentication_failed" => "log in again, or fix the API key",
        "oauth_org_not_allowed" => "log in with an organisation that may use this client",
        "billing_error" => "fix the account's billing",
        "model_not_found" => "choose a model this account has",
        "invalid_request" | "max_output_tokens" => return ApiError::Request { message },
        _ => {
            let (reset, is_limit) = (parse_reset(&message, now), kind == "rate_limit");
            return ApiError::Transient { reset, is_limit, message };
        }
    };
    ApiError::Fatal { cause: message, hint: hint.to_owned() }
}

/// How many lines at the end of standard error are read.
const LINES: usize = 5;

/// The service's failure reported at the end of `errors`. `now` is on the user's clock, because the
/// report names a reset on it.
pub fn find_limit(errors: &str, now: DateTime<FixedOffset>) -> Option<ApiError> {
    let lines: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let at = last.iter().rposition(|line| SERVICE_LIMIT.is_match(line) && !is_of_code(line))?;
    // The reset may be on a separate line after the limit.
    Some(classify_error("rate_limit", &last[at..].join(" "), now))
}

/// Whether a line is a message of a compiler or a test: `src/a.cc:3:7: …`, `FAILED …`.
fn is_of_code(line: &str) -> bool {
    let place = line.split_whitespace().next().and_then(|word| word.split(':').nth(1));
    place.is_some_and(|number| all_digits(number).is_some()) || line.contains("FAILED")
}

/// The furthest plausible reset: a weekly limit ends within eight days.
const DAYS_MAX: u64 = 8;
/// How far in the past a reported time may be: a clock without seconds names a minute that has
/// begun.
const JUST_PAST: TimeDelta = TimeDelta::minutes(5);

/// Reads "resets 3:45pm", "resets Feb 16, 11am", "try again tomorrow at 15:00", "retry after 30 s",
/// "reset at 2026-02-16T11:00:00Z" or "…|1795000000". `now` is on the user's clock. A time that is
/// now or past is returned unchanged.
pub fn parse_reset(message: &str, now: DateTime<FixedOffset>) -> Option<DateTime<Utc>> {
    parse_named_time(message, now).filter(|at| is_believed(*at, now))
}

/// Whether the text names a time, past or not.
pub fn names_a_time(message: &str) -> bool {
    parse_named_time(message, DateTime::UNIX_EPOCH.fixed_offset()).is_some()
}

fn parse_named_time(message: &str, now: DateTime<FixedOffset>) -> Option<DateTime<Utc>> {
    since_1970(message)
        .or_else(|| as_a_stamp(message, now))
        .or_else(|| by_the_calendar(message, now))
        .or_else(|| after_a_wait(message, now))
}

/// Whether a limit can plausibly end then.
pub fn is_believed(at: DateTime<Utc>, now: DateTime<FixedOffset>) -> bool {
    let now = now.with_timezone(&Utc);
    now.checked_add_days(Days::new(DAYS_MAX)).is_some_and(|latest| at <= latest)
}

fn since_1970(message: &str) -> Option<DateTime<Utc>> {
    let seconds = RESET_SECONDS.captures(message)?.get(1)?.as_str().parse().ok()?;
    DateTime::from_timestamp(seconds, 0)
}

/// Parses a full date: "2026-02-16T11:00:00Z", "2026-02-16 11:00 UTC", "2026-02-16 11:00" on the
/// user's clock.
fn as_a_stamp(message: &str, now: DateTime<FixedOffset>) -> Option<DateTime<Utc>> {
    let words = RESET_STAMP.captures(message)?;
    let seconds = words.get(3).map_or(":00", |seconds| seconds.as_str());
    let at = format!("{}T{}{seconds}", &words[1], &words[2]).parse::<NaiveDateTime>().ok()?;
    Some(at.and_local_timezone(zone_offset(words.get(4), now)).single()?.to_utc())
}

/// The offset of a named time zone; the user's own for an unknown name.
fn zone_offset(zone: Option<Match<'_>>, now: DateTime<FixedOffset>) -> FixedOffset {
    let zone = zone.map_or("", |zone| zone.as_str());
    let is_utc = ["Z", "UTC", "GMT"].iter().any(|name| zone.eq_ignore_ascii_case(name));
    let zone = if is_utc { "+00:00" } else { zone };
    zone.parse().unwrap_or(*now.offset())
}

fn after_a_wait(message: &str, now: DateTime<FixedOffset>) -> Option<DateTime<Utc>> {
    let mut rest = &message[RESET_WAIT.find(message)?.end()..];
    let mut seconds = None;
    while let Some(words) = TIME_PART.captures(rest) {
        // The first number of a date or of a time of day is not a wait.
        if words.get(3).is_some() {
            return None;
        }
        let amount: f64 = words[1].parse().ok()?;
        let unit = match words[2].to_ascii_lowercase().as_str() {
            "" if seconds.is_none() => 1.0,
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        seconds = Some(seconds.unwrap_or(0.0) + amount * unit);
        rest = &rest[words[0].len()..];
    }
    let wait = TimeDelta::from_std(Duration::try_from_secs_f64(seconds?).ok()?).ok()?;
    now.with_timezone(&Utc).checked_add_signed(wait)
}

/// Parses a time of day or a date without a year: "3:45pm", "Mon 12:00am", "Feb 16, 11am", "16 Feb
/// 2026 at 15:00", "tomorrow at 9am".
fn by_the_calendar(message: &str, now: DateTime<FixedOffset>) -> Option<DateTime<Utc>> {
    let words = &RESET_CLOCK.captures(message)?;
    let minute: Option<u32> = parse_part(words, "minute");
    let half = words.name("half").map(|half| half.as_str().starts_with(['p', 'P']));
    let hour = match (parse_part(words, "hour")?, half) {
        (hour @ 1..=12, Some(is_pm)) => hour % 12 + if is_pm { 12 } else { 0 },
        (hour @ 0..=23, None) if minute.is_some() => hour,
        _ => return None,
    };
    let time = NaiveTime::from_hms_opt(hour, minute.unwrap_or(0), 0)?;
    let zone = zone_offset(words.name("zone"), now);
    let now = now.with_timezone(&zone);
    let today = now.date_naive();
    if let Some(month) = words.name("month").or_else(|| words.name("month_last")) {
        let month = month.as_str().parse::<Month>().ok()?.number_from_month();
        let day = parse_part(words, "day").or_else(|| parse_part(words, "day_first"))?;
        let years = match parse_part(words, "year") {
            Some(year) => year..=year,
            None => today.year() - 1..=today.year() + 1,
        };
        // A date without a year is the nearest one.
        let dates = years.filter_map(|year| {
            in_zone(NaiveDate::from_ymd_opt(year, month, day)?.and_time(time), zone)
        });
        return dates.min_by_key(|at| (*at - now).abs()).map(|at| at.to_utc());
    }
    if let Some(day) = words.name("relative") {
        let days = u64::from(day.as_str().eq_ignore_ascii_case("tomorrow"));
        let date = today.checked_add_days(Days::new(days))?;
        return Some(in_zone(date.and_time(time), zone)?.to_utc());
    }
    let weekday: Option<Weekday> = parse_part(words, "weekday");
    for days in 0..=8 {
        let date = today.pred_opt()?.checked_add_days(Days::new(days))?;
        let at = in_zone(date.and_time(time), zone)?;
        if weekday.is_none_or(|weekday| date.weekday() == weekday) && at + JUST_PAST > now {
            return Some(at.to_utc());
        }
    }
    None
}

/// The value of a named part of a match.
fn parse_part<T: FromStr>(words: &Captures<'_>, name: &str) -> Option<T> {
    words.name(name)?.as_str().parse().ok()
}

fn in_zone(time: NaiveDateTime, zone: FixedOffset) -> Option<DateTime<FixedOffset>> {
    time.and_local_timezone(zone).single()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify(kind: &str, message: &str) -> ApiError {
        classify_error(kind, message, DateTime::parse_from_rfc3339("2026-11-21T22:15:00Z").unwrap())
    }

    #[test]
    fn errors_are_classified_by_what_can_be_done() {
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
    fn a_message_is_truncated_and_an_empty_one_is_replaced_by_its_kind() {
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

    #[test]
    fn only_words_about_the_service_at_the_end_of_the_output_are_a_limit() {
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
            let found = find_limit(errors, now).map(|error| match error {
                ApiError::Transient { reset, .. } => reset.map(|at| at.format("%T").to_string()),
                other => panic!("{other:?}"),
            });
            let expected = expected.map(|at: Option<&str>| at.map(str::to_owned));
            assert_eq!(found, expected, "{errors:?}");
        }
    }

    #[test]
    fn a_minute_that_has_just_begun_is_now_and_not_tomorrow() {
        for (now, message) in [
            ("2026-11-22T07:03:20Z", "or try again at 7:03 AM."),
            ("2026-11-22T00:01:00Z", "resets 11:59pm"),
            ("2026-11-21T22:02:00Z", "resets Sat 10pm"),
            ("2026-01-01T00:00:30Z", "resets Jan 1, 12am"),
            ("2026-01-01T00:00:30Z", "resets Dec 31 at 23:59"),
        ] {
            let now = DateTime::parse_from_rfc3339(now).unwrap();
            let at = parse_reset(message, now).unwrap();
            assert!(at <= now && at + JUST_PAST > now, "{message}: {at}");
        }
    }

    #[test]
    fn a_reset_is_the_next_such_time_on_the_users_clock() {
        // A Saturday, 22:15, one hour east of Greenwich.
        let now = DateTime::parse_from_rfc3339("2026-11-21T22:15:00+01:00").unwrap();
        let table = [
            ("You've hit your session limit · resets 11:45pm", Some("2026-11-21T22:45:00Z")),
            ("You've hit your session limit · resets 3pm", Some("2026-11-22T14:00:00Z")),
            ("weekly limit · resets Mon 12:00am", Some("2026-11-22T23:00:00Z")),
            ("limit · resets Sat 10pm (Europe/Berlin)", Some("2026-11-28T21:00:00Z")),
            ("resets at 23:30", Some("2026-11-21T22:30:00Z")),
            ("Claude AI usage limit reached|1795300000", Some("2026-11-21T22:26:40Z")),
            ("429 Too Many Requests; try again in 20s", Some("2026-11-21T21:15:20Z")),
            ("Retry-After: 90", Some("2026-11-21T21:16:30Z")),
            ("Please retry after 5 minutes.", Some("2026-11-21T21:20:00Z")),
            ("usage limit: try again at 11:45 PM", Some("2026-11-21T22:45:00Z")),
            ("or try again at 7:03 AM.", Some("2026-11-22T06:03:00Z")),
            ("or try again at 10:14 PM.", Some("2026-11-21T21:14:00Z")),
            ("or try again at 10:09 PM.", Some("2026-11-22T21:09:00Z")),
            ("or try again at Nov 25th, 2026 7:03 AM.", Some("2026-11-25T06:03:00Z")),
            ("try again at Dec 25th, 2026 7:03 AM.", None),
            ("API Error: 529 Overloaded. Try again.", None),
            ("retry 3 of 5", None),
            ("Please retry in 17h24m15.31s.", Some("2026-11-22T14:39:15Z")),
            ("Please try again in 7m12s. Visit us.", Some("2026-11-21T21:22:12Z")),
            ("try again in 3 days 4 hours", Some("2026-11-25T01:15:00Z")),
            ("try again in 1 day, 2 hours and 5 min.", Some("2026-11-22T23:20:00Z")),
            ("quota will reset after 3h20m", Some("2026-11-22T00:35:00Z")),
            ("retry in 1.5 hours", Some("2026-11-21T22:45:00Z")),
            ("Suggested retry after 5.. 2 left", Some("2026-11-21T21:15:05Z")),
            ("Retrying after 5681ms...", Some("2026-11-21T21:15:05Z")),
            ("Please try again in 3600000ms.", Some("2026-11-21T22:15:00Z")),
            ("Please retry after 1795000000", None),
            ("will reset after 2026-11-25T07:03:00Z.", Some("2026-11-25T07:03:00Z")),
            ("will reset after 2026-11-25 07:03", Some("2026-11-25T06:03:00Z")),
            ("will reset in 07:03:00", None),
            ("Retry-After: 0", Some("2026-11-21T21:15:00Z")),
            ("limit · resets Nov 24, 11am (Europe/Berlin)", Some("2026-11-24T10:00:00Z")),
            ("resets Nov 24 at 11:30am", Some("2026-11-24T10:30:00Z")),
            ("resets on November 24th at 15:00", Some("2026-11-24T14:00:00Z")),
            ("Your limit resets 24 Nov, 15:00 (UTC)", Some("2026-11-24T15:00:00Z")),
            ("resets at 11pm UTC", Some("2026-11-21T23:00:00Z")),
            ("resets Feb 16, 11am (Europe/Berlin)", None),
            ("resets tomorrow at 9am", Some("2026-11-22T08:00:00Z")),
            ("try again tomorrow at 09:30.", Some("2026-11-22T08:30:00Z")),
            ("resets today at 11:30 p.m.", Some("2026-11-21T22:30:00Z")),
            ("resets on Tuesday at 9:00 AM", Some("2026-11-24T08:00:00Z")),
            ("try again on Tue, 24 Nov 2026 09:00 GMT", Some("2026-11-24T09:00:00Z")),
            ("reset at 2026-11-25T07:03:00+02:00", Some("2026-11-25T05:03:00Z")),
            ("resets: 2026-11-25 07:03:10 UTC", Some("2026-11-25T07:03:10Z")),
            ("x-ratelimit-reset: 1795300000", Some("2026-11-21T22:26:40Z")),
            ("\"resets_at\": 1795300000000,", Some("2026-11-21T22:26:40Z")),
            ("resets in 3h 20m", Some("2026-11-22T00:35:00Z")),
            ("available again in about 2 hours", Some("2026-11-21T23:15:00Z")),
            ("please wait 20 minutes", Some("2026-11-21T21:35:00Z")),
            ("retry after 3 attempts", None),
            ("resets 25:00", None),
            ("resets 7", None),
            ("limit reached|9999999999", None),
        ];
        for (message, expected) in table {
            let found = parse_reset(message, now)
                .map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
            assert_eq!(found.as_deref(), expected, "{message}");
        }
    }
}
