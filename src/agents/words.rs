//! Pieces of what an agent said, cut to the length that is kept or shown.

use crate::engine::text::plain;
pub(super) use crate::engine::text::{end_bytes as end, start};

/// The longest text shown of one event, in characters.
const SHOWN_CHARS: usize = 2000;
/// How much of what an agent said is kept, in bytes: the end, which holds the claim.
pub(super) const KEPT_BYTES: usize = 256 * 1024;

/// Text that is safe on a person's terminal: bounded and without control sequences.
pub(super) fn shown(text: &str) -> String {
    plain(start(text.trim_end(), SHOWN_CHARS))
}

/// How an agent's closing event reports an error.
pub(super) fn says_error(what: &str) -> String {
    format!("the agent's closing event says error: {}", shown(what))
}

/// Adds a text to a list, once, until the list is full.
pub(super) fn note(list: &mut Vec<String>, text: &str) {
    const LISTED: usize = 50;
    const CHARACTERS: usize = 200;
    let text = plain(start(text.trim(), CHARACTERS));
    if !text.is_empty() && list.len() < LISTED && !list.contains(&text) {
        list.push(text);
    }
}
