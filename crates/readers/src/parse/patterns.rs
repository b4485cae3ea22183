//! Every regular expression for untrusted text, by its name in `patterns.txt`. Character classes
//! are ASCII (`-u`), because the Unicode tables would be built in memory at the start of every
//! hook. A pattern that does not compile is an error in that list and ends the program, because
//! otherwise it would pass as "no match". `tests/words.rs` matches each.

use std::ops::Deref;
use std::sync::OnceLock;

use regex::Regex;

const PATTERNS: &str = include_str!("patterns.txt");

/// A pattern, compiled when it is first used.
#[derive(Debug)]
pub struct Pattern(&'static str, OnceLock<Regex>);

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.1.get_or_init(|| {
            let mut rows = PATTERNS.lines().filter_map(|row| row.split_once(" = "));
            let row = rows.find(|(name, _)| *name == self.0);
            Regex::new(row.unwrap_or_default().1).expect("a constant pattern")
        })
    }
}

macro_rules! patterns {
    ($($name:ident)+) => {
        $(
            #[doc = concat!("The pattern `", stringify!($name), "`.")]
            pub static $name: Pattern = Pattern(stringify!($name), OnceLock::new());
        )+
    };
}

patterns! {
    RESET_SECONDS RESET_CLOCK RESET_STAMP RESET_WAIT TIME_PART API_STATUS SERVICE_LIMIT
    MISSING_PROGRAM NOT_FOUND RUST_TEST RUST_TEST_MODULE RUST_TEST_CONDITION PASTED_ELEMENT
    HALF_CHARACTER JUST_TEST MAKE_RULE CARGO_WORKSPACE PYTEST RAKE_TEST TEMPLATE_TAG
}
