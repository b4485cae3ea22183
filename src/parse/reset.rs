//! When a limit of the model's service ends, from the words that the client shows: they name a time
//! on the user's clock without a date, or seconds since 1970. It refuses a time that cannot be
//! read.

use std::time::Duration;

use chrono::{
    DateTime, Datelike, Days, FixedOffset, Month, NaiveDate, NaiveTime, TimeDelta, Utc, Weekday,
};

use super::patterns::{RESET_CLOCK, RESET_DATE, RESET_SECONDS, RESET_WAIT, TIME_PART};

/// The furthest reset that is believed: a weekly limit ends within eight days.
const DAYS_MAX: u64 = 8;
/// How far past a named time may be: a clock that shows no seconds names a minute that has begun.
const JUST_PAST: TimeDelta = TimeDelta::minutes(5);

/// Reads "resets 3:45pm", "try again at 15:00", "retry after 30 s" or "…|1795000000". `now` is on
/// the user's clock.
pub fn reset(message: &str, now: DateTime<FixedOffset>) -> Option<DateTime<Utc>> {
    named(message, now).filter(|at| *at > now && is_believed(*at, now))
}

/// Whether the words name a time, past or not.
pub fn names_a_time(message: &str) -> bool {
    named(message, DateTime::UNIX_EPOCH.fixed_offset()).is_some()
}

fn named(message: &str, now: DateTime<FixedOffset>) -> Option<DateTime<Utc>> {
    since_1970(message)
        .or_else(|| by_the_calendar(message, now))
        .or_else(|| by_the_clock(message, now))
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

fn after_a_wait(message: &str, now: DateTime<FixedOffset>) -> Option<DateTime<Utc>> {
    let mut rest = &message[RESET_WAIT.find(message)?.end()..];
    let stamp = rest.split([' ', ',', ';', ')', '"']).next().unwrap_or_default();
    if let Ok(at) = DateTime::parse_from_rfc3339(stamp.trim_end_matches('.')) {
        return Some(at.to_utc());
    }
    let mut seconds = None;
    while let Some(words) = TIME_PART.captures(rest) {
        // The first number of a date or of a time of day is no wait.
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

fn by_the_calendar(message: &str, now: DateTime<FixedOffset>) -> Option<DateTime<Utc>> {
    let words = RESET_DATE.captures(message)?;
    let word = |index: usize| words.get(index).map_or("", |it| it.as_str());
    let month: Month = word(1).parse().ok()?;
    let year = word(3).parse().ok()?;
    let date = NaiveDate::from_ymd_opt(year, month.number_from_month(), word(2).parse().ok()?)?;
    let hour = word(4).parse::<u32>().ok().filter(|hour| (1..=12).contains(hour))?;
    let noon = if word(6).eq_ignore_ascii_case("pm") { 12 } else { 0 };
    let at = date.and_hms_opt(hour % 12 + noon, word(5).parse().ok()?, 0)?;
    Some(at.and_local_timezone(*now.offset()).single()?.with_timezone(&Utc))
}

fn by_the_clock(message: &str, now: DateTime<FixedOffset>) -> Option<DateTime<Utc>> {
    let words = RESET_CLOCK.captures(message)?;
    let number = |index: usize| words.get(index).and_then(|it| it.as_str().parse::<u32>().ok());
    let minute = number(3);
    let half = words.get(4).map(|it| it.as_str().to_ascii_lowercase());
    let hour = match (number(2)?, half.as_deref()) {
        (hour @ 1..=12, Some("am")) => hour % 12,
        (hour @ 1..=12, Some("pm")) => hour % 12 + 12,
        (hour @ 0..=23, None) if minute.is_some() => hour,
        _ => return None,
    };
    let time = NaiveTime::from_hms_opt(hour, minute.unwrap_or(0), 0)?;
    let weekday: Option<Weekday> = words.get(1).and_then(|it| it.as_str().parse().ok());
    let yesterday = now.date_naive().pred_opt()?;
    (0..=8).find_map(|days| {
        let date = yesterday.checked_add_days(Days::new(days))?;
        let at = date.and_time(time).and_local_timezone(*now.offset()).single()?;
        let fits = weekday.is_none_or(|weekday| date.weekday() == weekday);
        (fits && at + JUST_PAST > now).then(|| at.to_utc())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_that_has_just_begun_is_now_and_not_tomorrow() {
        for (now, message) in [
            ("2026-11-22T07:03:20Z", "or try again at 7:03 AM."),
            ("2026-11-22T00:01:00Z", "resets 11:59pm"),
            ("2026-11-21T22:02:00Z", "resets Sat 10pm"),
        ] {
            let now = DateTime::parse_from_rfc3339(now).unwrap();
            assert_eq!(reset(message, now), None, "{message}");
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
            ("or try again at 10:14 PM.", None),
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
            ("will reset after 2026-11-25 07:03", None),
            ("will reset in 07:03:00", None),
            ("Retry-After: 0", None),
            ("retry after 3 attempts", None),
            ("resets 25:00", None),
            ("resets 7", None),
            ("limit reached|9999999999", None),
        ];
        for (message, expected) in table {
            let found =
                reset(message, now).map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
            assert_eq!(found.as_deref(), expected, "{message}");
        }
    }
}
