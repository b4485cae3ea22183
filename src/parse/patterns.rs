//! Every regular expression for foreign text. Character classes are ASCII (`-u`): the Unicode
//! tables would be built in memory at the start of every hook. A pattern that does not compile is
//! an error in this list and ends the program: nobody would notice it as "no match".
//! `tests/words.rs` matches each.

use std::sync::LazyLock;

use regex::Regex;

type Pattern = LazyLock<Regex>;

/// Seconds since 1970, as in `…|1795000000`.
pub static RESET_SECONDS: Pattern = LazyLock::new(|| constant(r"(?-u)\|(\d{10})\b"));

/// "resets 3:45pm", "resets Mon 12:00am", "resets at 15:00": weekday, hour, minute, half of the
/// day. A clock written for a person's language has a narrow space before that half.
pub static RESET_CLOCK: Pattern = LazyLock::new(|| {
    constant(
        r"(?i-u)\b(?:resets?|try again at)\s+(?:at\s+)?(?:(mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+(?:at\s+)?)?(\d{1,2})(?::(\d{2}))?(?:\s|(?u-i:[\x{a0}\x{202f}]))*([ap]m)?\b",
    )
});

/// "try again in 20s", "Retry-After: 30", "reset after 3h20m": what comes before the time.
pub static RESET_WAIT: Pattern = LazyLock::new(|| {
    constant(
        r"(?i-u)\b(?:(?:re)?try(?:ing)?(?: again)?(?:[ -]after| in)|resets? (?:in|after)):?\s*",
    )
});

/// The next part of "17h24m15.31s" or of "3 days, 4 hours and 5 min": amount, unit, and what shows
/// that it is part of a date or of a time of day.
pub static TIME_PART: Pattern =
    LazyLock::new(|| constant(r"(?i-u)^(?:[ ,]|\band\b)*(\d+(?:\.\d+)?)[ \t]*([a-z]*)([-:]\d)?"));

/// "try again at Nov 25th, 2026 7:03 AM": month, day, year, hour, minute, half of the day.
pub static RESET_DATE: Pattern = LazyLock::new(|| {
    constant(
        r"(?i-u)\btry again at (jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* (\d{1,2})(?:st|nd|rd|th)?,? (\d{4}),? (?:at )?(\d{1,2}):(\d{2})(?:\s|(?u-i:[\x{a0}\x{202f}]))*([ap]m)\b",
    )
});

/// The status in a sentence about a failure: "unexpected status 401", "HTTP 503", "429 Slow down".
pub static API_STATUS: Pattern = LazyLock::new(|| {
    constant(r"(?i-u)(?:^|\b(?:status|http|code)(?: code)?[ :]{1,2})([45]\d\d)\b")
});

/// How a program without events reports a limit or an overload of the model's service.
pub static SERVICE_LIMIT: Pattern = LazyLock::new(|| {
    constant(
        r"(?i-u)\brate[ _-]limit(?:s|ed|ing)?[ _-](?:exceeded|reached|hit|error)|\b(?:hit|reached|exceeded) (?:\w+ ){0,4}rate[ -]limits?\b|\brate[ -]limited\b|\btoo many requests\b|\b(?:http|status|error|code)(?:[ _]?code)?(?u-i:[^A-Za-z0-9_]){0,3}(?:429|529)\b|\busage limit\b|\binsufficient_quota\b|\b(?:api|request|token|daily|your|current|requests|tokens) quota\b|^(?u-i:[^A-Za-z0-9_])*quota exceeded|\bresource[ _]exhausted\b|\boverloaded_error\b|\b(?:api|servers?|services?|models?)(?: \w+){0,3} overloaded\b|\b(?:error|529)(?u-i:[^A-Za-z0-9_]){1,3}overloaded\b",
    )
});

/// Text in a paste that looks like the client's own element, with the backslash that the client
/// adds (2.1.330).
pub static PASTED_ELEMENT: Pattern =
    LazyLock::new(|| constant(r"(?i-u)<\\(\s*/?\s*pasted_content)"));

/// A justfile's recipe `test`. A recipe whose parameters have no default cannot run without
/// arguments.
pub static JUST_TEST: Pattern = LazyLock::new(|| {
    constant(
        r#"(?m-u)^@?test(\s+[*$]*\w+=("(?u:[^"\n])*"|'(?u:[^'\n])*'|\w+)|\s+\*\$?\w+)*\s*:((?u:[^=])|$)"#,
    )
});

/// A rule of a makefile: its targets.
pub static MAKE_RULE: Pattern =
    LazyLock::new(|| constant(r"(?m-u)^([\w.-]+(?: +[\w.-]+)*)\s*::?(?:(?u:[^=:])|$)"));

/// The table of a Cargo workspace.
pub static CARGO_WORKSPACE: Pattern = LazyLock::new(|| constant(r"(?m)^\[workspace[\].]"));

/// `pytest` as a separate word.
pub static PYTEST: Pattern = LazyLock::new(|| constant(r"(?-u)\bpytest\b"));

fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}
