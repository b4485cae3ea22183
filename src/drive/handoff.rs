//! A handoff in the middle of a loop: the page with every fact crew has, and the words of whoever hands on.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::engine::handoff::{Since, file_name, page};
use crate::engine::looped::Loop;
use crate::world::{clock, git, view};

/// Types that need no quotes behind them.
const KINDS: [&str; 5] = ["task", "phase", "review", "session", "blocked"];

/// Writes a handoff page and gives its path. `raw` is `[type] DESCRIPTION`: a known type, or any plain word
/// in front of a quoted description; else the type is `task`.
pub fn write(record: &Loop, raw: &str) -> Result<PathBuf> {
    let raw = raw.trim();
    let (kind, told) = match raw.split_once(char::is_whitespace) {
        Some((kind, rest)) if KINDS.contains(&kind) => (kind, rest),
        Some((kind, rest)) if is_kind(kind) && rest.trim_start().starts_with('"') => (kind, rest),
        _ => ("task", raw),
    };
    let told = told.trim();
    let quoted = told.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let told = quoted.unwrap_or(told).trim().to_owned();
    if told.is_empty() {
        bail!(
            "a handoff needs a description\nhint: /crew:handoff \"the parser is done, its tests are next\""
        );
    }
    let since = record
        .place
        .head
        .as_ref()
        .map_or_else(Since::default, |head| git::since(&record.place.checkout, head));
    let now = clock::now().wall;
    let text = page(record, &Since { told, ..since }, kind, now);
    view::write_handoff(record, &file_name(kind, now), &text)
        .with_context(|| format!("cannot write into {}", record.place.branch_folder().display()))
}

/// A type is a plain short word: it becomes part of a file's name.
fn is_kind(word: &str) -> bool {
    word.len() <= 32 && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
