//! A fleet in words: its page and its board, what a person reads before it starts, its lines while
//! it runs, and JSON. What came from a file, an agent or a remote is cleaned in this folder, before
//! its columns are measured; only in JSON it stays as it is.

pub mod before;
pub mod events;
pub mod json;
pub mod orders;
pub mod status;

use chrono::{DateTime, FixedOffset, Utc};

use crate::engine::text::{clean, clock_time, one_line, with_reason};

/// The most characters of foreign text in a line; a terminal cuts it further.
const TEXT_CHARS: usize = 200;

/// How many characters of a commit are shown.
const COMMIT_CHARS: usize = 7;

/// Foreign text on one line.
fn shown(text: &str) -> String {
    one_line(&clean(text), TEXT_CHARS)
}

/// "3/10", or "3" where there is no limit.
fn counted(iteration: u32, of: u32) -> String {
    if of > 0 { format!("{iteration}/{of}") } else { iteration.to_string() }
}

/// "rests until 09:10: usage limit".
fn rests(until: Option<DateTime<Utc>>, why: &str, at: DateTime<FixedOffset>) -> String {
    let until = until.map(|until| format!(" until {}", clock_time(until, at)));
    with_reason(&format!("rests{}", until.unwrap_or_default()), &shown(why))
}
