//! Every regular expression that foreign text is read with. Classes are those of ASCII (`-u`): the tables of Unicode
//! would be set up in memory at the start of every hook. One that does not compile is a fault of this list and
//! ends the program: read as "no match" it would be noticed by nobody. `tests/words.rs` matches each.

use std::sync::LazyLock;

use regex::Regex;

type Pattern = LazyLock<Regex>;

/// Seconds since 1970, as in `…|1795000000`.
pub static RESET_SECONDS: Pattern = LazyLock::new(|| constant(r"(?-u)\|(\d{10})\b"));

/// "resets 3:45pm", "resets Mon 12:00am", "resets at 15:00": weekday, hour, minute, half of the day. A clock written
/// for a person's language has a narrow space of its own before that half.
pub static RESET_CLOCK: Pattern = LazyLock::new(|| {
    constant(
        r"(?i-u)\bresets?\s+(?:at\s+)?(?:(mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+(?:at\s+)?)?(\d{1,2})(?::(\d{2}))?(?:\s|(?u-i:[\x{a0}\x{202f}]))*([ap]m)?\b",
    )
});

/// What looks like the client's own element inside a paste, with the backslash it puts there (2.1.330).
pub static PASTED_ELEMENT: Pattern =
    LazyLock::new(|| constant(r"(?i-u)<\\(\s*/?\s*pasted_content)"));

/// A justfile's recipe `test`. One whose parameters have no default cannot be run without arguments.
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

/// pytest, named as a word of its own.
pub static PYTEST: Pattern = LazyLock::new(|| constant(r"(?-u)\bpytest\b"));

fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}
