//! Every regular expression for foreign text. Character classes are ASCII (`-u`): the Unicode
//! tables would be built in memory at the start of every hook. A pattern that does not compile is
//! an error in this list and ends the program: nobody would notice it as "no match".
//! `tests/words.rs` matches each.

use std::ops::Deref;
use std::sync::OnceLock;

use regex::Regex;

/// A pattern, compiled when it is first used.
#[derive(Debug)]
pub struct Pattern(&'static str, OnceLock<Regex>);

impl Pattern {
    const fn new(pattern: &'static str) -> Self {
        Self(pattern, OnceLock::new())
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.1.get_or_init(|| Regex::new(self.0).expect("a constant pattern"))
    }
}

/// Seconds or milliseconds since 1970, as in `…|1795000000` and `"resets_at": 1795000000`.
pub static RESET_SECONDS: Pattern =
    Pattern::new(r#"(?i-u)(?:\||\bresets?(?:[_ -]?at)?["']?[ :=]+["']?)(\d{10})(?:\d{3})?\b"#);

/// "resets 3:45pm", "resets Mon 12:00am", "resets Feb 16, 11am (UTC)", "try again tomorrow at
/// 15:00". A clock written for a person's language has a narrow space before the half of the day.
pub static RESET_CLOCK: Pattern = Pattern::new(
    r"(?i-u)\b(?:resets?|try again|available again|renews?):?\s+(?:at\s+|on\s+)?(?:(?P<relative>today|tomorrow),?\s+)?(?:(?P<weekday>mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?(?:(?:(?P<month>(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?|(?P<day_first>\d{1,2})(?:st|nd|rd|th)?\.?\s+(?P<month_last>(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))[a-z]*\.?)(?:,?\s+(?P<year>\d{4}))?,?\s+)?(?:at\s+)?(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::\d{2})?(?:\s|(?u-i:[\x{a0}\x{202f}]))*(?P<half>[ap]\.?m)?\b\.?(?:\s*\(?(?P<zone>utc|gmt|z)\b)?",
);

/// "reset after 2026-02-16T11:00:00Z", "resets at 2026-02-16 11:00 UTC": date, time, seconds, zone.
pub static RESET_STAMP: Pattern = Pattern::new(
    r#"(?i-u)\b(?:resets?|try again|available again|retry)(?:[_ -]?(?:at|after|on))?["']?:?\s+["']?(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2})?(?:\.\d+)?\s*\(?(z|utc|gmt|[+-]\d{2}:?\d{2})?"#,
);

/// "try again in 20s", "Retry-After: 30", "reset after 3h20m": what comes before the time.
pub static RESET_WAIT: Pattern = Pattern::new(
    r"(?i-u)\b(?:(?:re)?try(?:ing)?(?: again)?(?:[ -]after| in)|(?:resets?|renews?|available again) (?:in|after)|please wait(?: for)?):?\s*(?:about |approximately |~)?",
);

/// The next part of "17h24m15.31s" or of "3 days, 4 hours and 5 min": amount, unit, and what shows
/// that it is part of a date or of a time of day.
pub static TIME_PART: Pattern =
    Pattern::new(r"(?i-u)^(?:[ ,]|\band\b)*(\d+(?:\.\d+)?)[ \t]*([a-z]*)([-:]\d)?");

/// The status in a sentence about a failure: "unexpected status 401", "HTTP 503", "429 Slow down".
pub static API_STATUS: Pattern =
    Pattern::new(r"(?i-u)(?:^|\b(?:status|http|code)(?: code)?[ :]{1,2})([45]\d\d)\b");

/// How a program without events reports a limit or an overload of the model's service.
pub static SERVICE_LIMIT: Pattern = Pattern::new(
    r"(?i-u)\brate[ _-]limit(?:s|ed|ing)?[ _-](?:exceeded|reached|hit|error)|\b(?:hit|reached|exceeded) (?:\w+ ){0,4}rate[ -]limits?\b|\brate[ -]limited\b|\btoo many requests\b|\b(?:http|status|error|code)(?:[ _]?code)?(?u-i:[^A-Za-z0-9_]){0,3}(?:429|529)\b|\busage limit\b|\byou(?:(?u-i:[^A-Za-z0-9_])ve| have) (?:hit|reached) your (?:\w+ ){0,2}limit\b|\binsufficient_quota\b|\b(?:api|request|token|daily|your|current|requests|tokens) quota\b|^(?u-i:[^A-Za-z0-9_])*quota exceeded|\bresource[ _]exhausted\b|\boverloaded_error\b|\b(?:api|servers?|services?|models?)(?: \w+){0,3} overloaded\b|\b(?:error|529)(?u-i:[^A-Za-z0-9_]){1,3}overloaded\b",
);

/// How shells and runners say that they found no program: dash, bash, npx, uv, cargo, node, python,
/// and those that pass a shell's status on, such as make, pnpm and just.
pub static MISSING_PROGRAM: Pattern = Pattern::new(
    r"(?im-u)command not found|(?:sh: |(?:^|: )\d+: )(?:(?u-i:[^\n])*: )?not found\s*$|could not determine executable to run|(?:failed to spawn|no such command): `|cannot find module '/(?u-i:[^\n])*/node_modules/|python(?u-i:[^\n])*: no module named |\b(?:error|code|status):?\s(?u-i:[^A-Za-z0-9_\n])*12[67](?u-i:[^A-Za-z0-9_\n])*$",
);

/// The name of a program in a shell's message that it found none.
pub static NOT_FOUND: Pattern = Pattern::new(
    r"(?m-u)(?:^|: )\s*((?u:[^ \t\n:])+): (?:command )?not found\s*$|command not found: ((?u:[^ \t\n])+)\s*$",
);

/// A test of Rust by its attribute, on a line of its own.
pub static RUST_TEST: Pattern = Pattern::new(r"(?m-u)^\s*#\s*\[\s*test\s*\]");

/// An outermost test module of Rust, from its attribute to the line that closes it.
pub static RUST_TEST_MODULE: Pattern = Pattern::new(
    r"(?m-u)^#\s*\[\s*cfg\s*\(\s*test\s*\)\s*\]\s*(?:#\[(?u:[^\n])*\n\s*)*(?:pub(?:\([a-z]+\))?\s+)?mod\s+\w+\s*\{\s*$(?su:.*?)\n\}[ \t]*\r?(?:\n|\z)",
);

/// A condition of Rust's compiler that asks for tests: `cfg(test)`, `cfg!(any(test, unix))`.
pub static RUST_TEST_CONDITION: Pattern =
    Pattern::new(r"(?-u)\bcfg(?:!|_attr)?\s*\((?:(?u:[^\]\{;])*[(,\s])?\s*test\s*[,)]");

/// Text in a paste that looks like the client's own element, with the backslash that the client
/// adds (2.1.330).
pub static PASTED_ELEMENT: Pattern = Pattern::new(r"(?i-u)<\\(\s*/?\s*pasted_content)");

/// An escape of JSON for half of a UTF-16 pair on its own, as the only group; a whole pair
/// and an escaped backslash match, too, so that neither is taken for one.
pub static HALF_CHARACTER: Pattern = Pattern::new(
    r"(?-u)\\\\|\\u[dD][89abAB][[:xdigit:]]{2}\\u[dD][c-fC-F][[:xdigit:]]{2}|(\\u[dD][89a-fA-F][[:xdigit:]]{2})",
);

/// A justfile's recipe `test`. A recipe whose parameters have no default cannot run without
/// arguments.
pub static JUST_TEST: Pattern = Pattern::new(
    r#"(?m-u)^@?test(\s+[*$]*\w+=("(?u:[^"\n])*"|'(?u:[^'\n])*'|\w+)|\s+\*\$?\w+)*\s*:((?u:[^=])|$)"#,
);

/// A rule of a makefile: its targets.
pub static MAKE_RULE: Pattern =
    Pattern::new(r"(?m-u)^([\w.-]+(?: +[\w.-]+)*)\s*::?(?:(?u:[^=:])|$)");

/// The table of a Cargo workspace.
pub static CARGO_WORKSPACE: Pattern = Pattern::new(r"(?m)^\[workspace[\].]");

/// `pytest` as a separate word.
pub static PYTEST: Pattern = Pattern::new(r"(?-u)\bpytest\b");

/// The task `test` of a Rakefile, at the start of a line.
pub static RAKE_TEST: Pattern = Pattern::new(r#"(?m-u)^task[ (]+[:"']*test(?::?[\s"',)]|$)"#);

/// A tag of a template, and the file of one that includes it; between tags, comments and raw text.
/// What is not closed reaches to the end.
pub static TEMPLATE_TAG: Pattern = Pattern::new(
    r"(?s)\{#.*?(?:#\}|\z)|\{%[-+]?(?-u:\s)*raw(?-u:\b).*?(?:endraw|\z)|(?P<tag>\{%(?:[-+]?(?-u:\s)*include(?-u:\b)(?P<include>.*?)[-+]?%\}|.*?(?:%\}|\z))|\{\{.*?(?:\}\}|\z))",
);
