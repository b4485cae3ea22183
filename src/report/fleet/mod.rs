//! A fleet in words: its page and its board, what a person reads before it starts, its lines while
//! it runs, and JSON. What came from a file, an agent or a remote is cleaned in this folder, before
//! its columns are measured; only in JSON it stays as it is.

pub mod before;
pub mod json;
pub mod lines;
pub mod status;

use std::sync::LazyLock;

use chrono::{DateTime, FixedOffset, Utc};
use minijinja::{Environment, Value};

use crate::engine::text::{brief, clean, clock_time, named, one_line, with_reason};
use crate::engine::words::templates::environment;

/// The most characters of foreign text in a line; a terminal cuts it further.
const TEXT_CHARS: usize = 200;

/// A wait of fewer seconds is told to the second.
const SECONDS_BELOW_S: i64 = 120;

/// How many characters of a commit are shown.
const COMMIT_CHARS: usize = 7;

/// The most tasks that a line names.
const NAMED_MAX: usize = 8;

const TEMPLATES: [(&str, &str); 6] = [
    ("counts.j2", include_str!("counts.j2")),
    ("ended.j2", include_str!("ended.j2")),
    ("forgotten.j2", include_str!("forgotten.j2")),
    ("news.j2", include_str!("news.j2")),
    ("obeyed.j2", include_str!("obeyed.j2")),
    ("told.j2", include_str!("told.j2")),
];

static OWN: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment();
    environment.add_filter("shown", |text: &str| shown(text));
    environment.add_filter("brief", brief);
    environment.add_filter("named", |names: Vec<String>| named(&names, NAMED_MAX));
    environment.set_loader(|name| {
        Ok(TEMPLATES.iter().find(|(own, _)| *own == name).map(|(_, text)| (*text).to_owned()))
    });
    environment
});

/// The text of a template with these values, without the last line break. It reports a fault of the
/// template in its place.
fn render(name: &str, values: &Value) -> String {
    let text = OWN.get_template(name).and_then(|template| template.render(values));
    text.map_or_else(|error| format!("{error:#}"), |text| text.trim_end().to_owned())
}

/// Foreign text on one line.
fn shown(text: &str) -> String {
    one_line(&clean(text), TEXT_CHARS)
}

/// "3/10", or "3" where there is no limit.
fn counted(iteration: u32, of: u32) -> String {
    if of > 0 { format!("{iteration}/{of}") } else { iteration.to_string() }
}

/// "rests until 09:10: usage limit"; with the second where it is near.
fn rests(until: Option<DateTime<Utc>>, why: &str, at: DateTime<FixedOffset>) -> String {
    let time = |until: DateTime<Utc>| {
        let is_near = (until - at.to_utc()).num_seconds().abs() < SECONDS_BELOW_S;
        let second = || until.with_timezone(at.offset()).format("%H:%M:%S").to_string();
        if is_near { second() } else { clock_time(until, at) }
    };
    let until = until.map(|until| format!(" until {}", time(until)));
    with_reason(&format!("rests{}", until.unwrap_or_default()), &shown(why))
}
