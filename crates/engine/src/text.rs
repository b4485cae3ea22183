//! Decides which parts of untrusted text may reach a person. A terminal carries out the control
//! codes in a string, and characters that change the writing direction deceive a reader; an agent's
//! words, a file name or a commit can contain both. The rules are defined here once and applied at
//! the outputs, not where a message is made: `cmd/print.rs`, which alone prints; a client's
//! `reply.rs` for what that client prints; `world/store/view.rs` for handoffs;
//! `report/show/html.rs`; commit messages. Records, `task.md` and logs keep every byte. Truncating
//! text and counting things in words is also defined only here.

pub mod templates;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::str::Chars;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, Utc};
use serde::Serialize;
use serde_json::Value;

/// A variant's name on disk, which people also read.
pub fn variant_name(variant: &impl Serialize) -> &'static str {
    serde_variant::to_variant_name(variant).unwrap_or_default()
}

/// A number of seconds as text: "1h 30m".
pub fn format_period(seconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}

/// A duration as text: "450ms", "45s", "4m 12s", "11h 58m".
pub fn format_duration(ms: u64) -> String {
    match ms / 1000 {
        0 => format!("{ms}ms"),
        seconds @ 3600.. => format_period(seconds / 60 * 60),
        seconds => format_period(seconds),
    }
}

/// "41s", "9m", "2h 10m", "3d 4h": a duration in at most two parts, for pages.
pub fn format_briefly(ms: u64) -> String {
    let minutes = ms / 60_000;
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => format!("{}s", (ms / 1000).max(ms.min(1))),
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, 0) => format!("{hours}h"),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, 0, _) => format!("{days}d"),
        (days, hours, _) => format!("{days}d {hours}h"),
    }
}

/// How long ago something ended, as one unit: "5h ago".
pub fn format_age(ms: i64) -> String {
    let spoken = format_briefly(u64::try_from(ms).unwrap_or_default());
    format!("{} ago", spoken.split(' ').next().unwrap_or_default())
}

/// "640 B", "12 KB", "3.4 MB", "1.2 GB": bytes, in steps of a thousand.
pub fn format_size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} KB", bytes / 1000),
        1_000_000..1_000_000_000 => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10),
    }
}

/// "03:10", or with the date if that is not within 20 hours: a time as the user's clock shows it,
/// seen at `now`.
pub fn clock_time(time: DateTime<Utc>, now: DateTime<FixedOffset>) -> String {
    let is_near = (now.to_utc() - time).num_hours().abs() < 20;
    let form = if is_near { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    time.with_timezone(now.offset()).format(form).to_string()
}

/// The words in double quotation marks; those inside become single ones.
pub fn quote_words(words: &str) -> String {
    format!("\"{}\"", words.replace('"', "'"))
}

/// A number with its noun: "1 iteration", "3 iterations".
pub fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The beginning of a string, at most `characters` long.
pub fn text_start(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

/// The beginning of a string, at most `bytes` long.
pub fn start_bytes(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// The end of a string, at most `bytes` long.
pub fn end_bytes(text: &str, bytes: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes)..text.len();
    &text[from.find(|from| text.is_char_boundary(*from)).unwrap_or(text.len())..]
}

/// At most `limit` characters of a string, truncated between two words if it has several, with an
/// ellipsis.
pub fn clip_at_word(text: &str, limit: usize) -> String {
    let kept = text_start(text, limit);
    if kept.len() == text.len() {
        return text.to_owned();
    }
    let is_between = text[kept.len()..].starts_with(char::is_whitespace);
    let end = if is_between { None } else { kept.rfind(char::is_whitespace) };
    format!("{}…", kept[..end.unwrap_or(kept.len())].trim_end())
}

/// At most `limit` characters of the first line, truncated between two words, with an ellipsis.
pub fn clip_line_at_word(text: &str, limit: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let kept = clip_at_word(line, limit);
    let ellipsis = if kept == line && line.len() < text.trim_end().len() { "…" } else { "" };
    kept + ellipsis
}

/// At most `limit` characters of the first line of `text`, with an ellipsis if it was truncated.
pub fn clip_line(text: &str, limit: usize) -> String {
    let line = text_start(text.lines().next().unwrap_or_default(), limit);
    let ellipsis = if line.len() < text.trim_end().len() { "…" } else { "" };
    format!("{line}{ellipsis}")
}

/// The last `limit` characters of `text`, from the start of a line if possible.
pub fn tail_of(text: &str, limit: usize) -> String {
    let text = text.trim_end();
    let skip = text.chars().count().saturating_sub(limit);
    if skip == 0 {
        return text.to_owned();
    }
    let cut = &text[text_start(text, skip).len()..];
    match cut.split_once('\n') {
        Some((_, rest)) if !rest.is_empty() => rest.to_owned(),
        _ => cut.to_owned(),
    }
}

/// A string truncated to `characters`, the last of them an ellipsis.
pub fn clip_text(text: &str, characters: usize) -> String {
    if text_start(text, characters).len() == text.len() {
        return text.to_owned();
    }
    format!("{}…", text_start(text, characters.saturating_sub(1)).trim_end())
}

/// A string truncated to `characters`, with every run of white space replaced by one blank.
pub fn one_line(text: &str, characters: usize) -> String {
    clip_text(&text.split_whitespace().collect::<Vec<_>>().join(" "), characters)
}

/// An event with its reason, as "what: reason", or the event alone if the reason is empty.
pub fn with_reason(what: &str, reason: &str) -> String {
    if reason.is_empty() { what.to_owned() } else { format!("{what}: {reason}") }
}

/// The first few of some names, and the number of the others.
pub fn join_first_names(names: &[String], most: usize) -> String {
    let named = names[..names.len().min(most)].join(", ");
    match names.len().saturating_sub(most) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Each string once, in the order of first occurrence.
pub fn distinct_texts(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    texts.filter(|text| seen.insert(text.clone())).collect()
}

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';
/// The distance of an 8-bit code from the letter that replaces it after an escape.
const EIGHT_BIT: u32 = 0x40;

/// A text for a terminal or a page: without terminal codes, other control characters, invisible
/// characters, marks for colour, and those that turn the direction of writing. Line feeds and tabs
/// stay, and so do the two joiners, which some scripts and emoji need.
pub fn clean_text(text: &str) -> String {
    let mut text = clean_around_marks(text);
    text.retain(|letter| !is_mark(letter));
    text
}

/// Removes control codes from one of crew's own pages, except the marks that stand for colours
/// (`report/colour.rs`).
pub fn clean_around_marks(text: &str) -> String {
    let mut text = plain_text(text);
    text.retain(|letter| match letter {
        '\n' | '\t' | '\u{200c}' | '\u{200d}' => true,
        letter => is_mark(letter) || !is_unseen(letter),
    });
    text
}

/// Whether a character is one of those that no text in any language has, and that crew marks what
/// has a colour with.
pub fn is_mark(character: char) -> bool {
    matches!(character, '\u{fdd0}'..='\u{fdef}')
}

/// Removes control codes from a prompt, except in the user's own task, which stays exactly as
/// typed.
pub fn clean_around(task: &str, prompt: &str) -> String {
    if task.is_empty() {
        return clean_text(prompt);
    }
    prompt.split(task).map(clean_text).collect::<Vec<_>>().join(task)
}

/// A program's output as text: without terminal codes and other control characters. A carriage
/// return, alone or before a line feed, is a line break.
pub fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            ESCAPE | '\u{80}'..='\u{9f}' => rest = behind_code(character, rest),
            '\r' => {
                plain.push('\n');
                rest = rest.as_str().strip_prefix('\n').map_or(rest, str::chars);
            }
            '\n' | '\t' => plain.push(character),
            _ if character.is_control() => {}
            _ => plain.push(character),
        }
    }
    plain
}

/// The text after a code, by the rules of ECMA-48: `[…` ends with a letter or the like, `]…`
/// and similar ones with a bell or a terminator, others are one character. A code holds only ASCII.
fn behind_code(first: char, rest: Chars<'_>) -> Chars<'_> {
    let mut behind = rest.clone();
    let kind = match first {
        ESCAPE => behind.next(),
        _ => char::from_u32(u32::from(first) - EIGHT_BIT),
    };
    let behind = behind.as_str();
    let text = match kind {
        Some('[') => {
            let text = behind.trim_start_matches(|letter| matches!(letter, '0'..='?'));
            let last = text.trim_start_matches(|letter| matches!(letter, ' '..='/'));
            last.strip_prefix(|letter| matches!(letter, '@'..='~')).unwrap_or(text)
        }
        Some(']' | 'P' | 'X' | '^' | '_') => behind_string(behind).unwrap_or(behind),
        Some(' '..='/') => {
            behind.strip_prefix(|letter| matches!(letter, '0'..='~')).unwrap_or(behind)
        }
        Some('0'..='~') => behind,
        _ => return rest,
    };
    text.chars()
}

/// The text after the string of a code. An unterminated string counts as text: a terminal would
/// wait for its end, and what crew prints after it would be lost.
fn behind_string(text: &str) -> Option<&str> {
    let end = &text[text.find(char::is_control)?..];
    end.strip_prefix([BELL, '\u{9c}']).or_else(|| end.strip_prefix("\u{1b}\\"))
}

/// Control characters, invisible characters, and those that turn the direction of writing.
pub(super) fn is_unseen(character: char) -> bool {
    character.is_control()
        || is_mark(character)
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// A text on one line in which nothing is hidden, for a person who must judge it: what `clean`
/// removes, and line breaks, are written as escapes.
#[derive(Debug)]
pub struct EscapedLine<'a>(pub &'a str);

impl fmt::Display for EscapedLine<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\n' => out.write_str("\\n")?,
                '\t' => out.write_str("\\t")?,
                character if is_unseen(character) => write!(out, "{}", character.escape_unicode())?,
                character => write!(out, "{character}")?,
            }
        }
        Ok(())
    }
}

/// JSON on one line with the value unchanged: whatever a terminal would carry out is escaped. A
/// string in it is also valid YAML.
pub fn safe_json(value: &Value) -> String {
    let written = value.to_string();
    let mut text = String::with_capacity(written.len());
    for character in written.chars() {
        if is_unseen(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(character);
        }
    }
    text
}

/// The length in UTF-16 units, in which the client measures context.
pub fn utf16_units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// The rows `name: text` of a table stored as one string.
pub fn table_rows(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.lines().filter_map(|row| row.split_once(": "))
}

/// The words of a list stored as one string.
pub fn words_of(list: &str) -> impl Iterator<Item = &str> {
    list.split_whitespace()
}

/// Whether a word is in a list stored as one string.
pub fn is_word_of(list: &str, word: &str) -> bool {
    words_of(list).any(|one| one == word)
}

/// A line as text, without its break; bytes that are not UTF-8 are replaced. The text has at most
/// `most` bytes, although a replacement takes three bytes.
pub fn decode_line(line: &[u8], most: usize) -> Cow<'_, str> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Ok(text) = std::str::from_utf8(line) {
        return Cow::Borrowed(text);
    }
    let text = String::from_utf8_lossy(&line[..line.len().min(most)]);
    Cow::Owned(start_bytes(&text, most).to_owned())
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
