//! Splits the raw text after the command into options, quoted strings and plain words. White space
//! is any Unicode white space; an apostrophe in plain words is an apostrophe. Values are not
//! parsed.

use std::collections::HashMap;

use clap::Command;

use super::commands::{
    RUN, behind_typographic_dash, find_option, first_word, is_typographic_dash, takes_value,
};
use super::{OPTIONS_HINT, in_a_session};
use crate::parse::spelling::shorten_text;
use engine::failure::Failure;

/// The name of the command these arguments follow.
const COMMAND: &str = "/crew:loop";

/// Whether the text begins with an option, not with text of the task.
pub(super) fn is_option(text: &str) -> bool {
    if let Some(name) = text.strip_prefix('-') {
        let name = name.strip_prefix('-').unwrap_or(name);
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return true;
        }
    } else if !text.starts_with(is_typographic_dash) {
        return false;
    }
    behind_typographic_dash(first_word(text)).is_some()
}

/// Reads a task, without its quotes, or plain words up to the next option; and what follows.
pub(super) fn take_task(text: &str) -> Result<(String, &str), Failure> {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => take_quoted(text, quote),
        _ => take_plain_words(text),
    }
}

fn take_quoted(text: &str, quote: char) -> Result<(String, &str), Failure> {
    let (mut escaped, mut partners, mut last) = (0, 0, 0);
    for (offset, _) in text.match_indices(quote).skip(1) {
        last = offset;
        if text[..offset].ends_with('\\') {
            escaped += 1;
            continue;
        }
        if ends_task(&text[offset + 1..]) {
            return end_quoted(text, quote, offset);
        }
        partners += 1;
    }
    // A task may end in a backslash (a Windows path): the only other quote then closes it.
    if partners == 0 && escaped == 1 && ends_task(&text[last + 1..]) {
        return end_quoted(text, quote, last);
    }
    if quote == '"' && partners == 0 {
        return Err(Failure::usage(
            "the quote that opens the task is never closed",
            "add a double quote where the task ends, or remove the first one",
        ));
    }
    take_plain_words(text)
}

/// The quoted task whose closing quote is at `end`, and what follows.
fn end_quoted(text: &str, quote: char, end: usize) -> Result<(String, &str), Failure> {
    refuse_swallowed_option(&text[1..end], quote)?;
    Ok((unescape_quotes(&text[1..end], quote), &text[end + 1..]))
}

/// Refuses a task that seems to have swallowed an option because its quote was not closed: it
/// contains the option as a word, and a quote that opens there is never closed.
pub(super) fn refuse_swallowed_option(task: &str, quote: char) -> Result<(), Failure> {
    let mut open = 0_usize;
    for (offset, _) in task.match_indices(quote) {
        let before = task[..offset].chars().next_back();
        let after = task[offset + 1..].chars().next();
        if before == Some('\\') {
            continue;
        }
        let opens = before.is_none_or(|c| c.is_whitespace() || c == '=')
            && after.is_some_and(|c| !c.is_whitespace());
        open = if opens { open + 1 } else { open.saturating_sub(1) };
    }
    let mut words = task.split_whitespace().filter(|word| open > 0 && word.starts_with("--"));
    match words.find(|word| find_option(&RUN, word).is_some()) {
        Some(word) => {
            let option = word.split('=').next().unwrap_or(word);
            Err(Failure::usage(
                format!("{option} is inside the task, whose quotes do not balance"),
                format!("close the quote before {option}, or give the task with --prompt-file"),
            ))
        }
        None => Ok(()),
    }
}

/// The error for text outside the task.
pub(super) fn apart_from_task(text: &str) -> Failure {
    Failure::usage(
        format!("`{}` is outside the task", shorten_text(text)),
        "put the whole task in double quotes, and values of several words too",
    )
}

/// Whether a quoted task can end before this text: it is empty, or an option follows.
fn ends_task(after: &str) -> bool {
    let next = after.trim_start();
    next.is_empty() || (next.len() < after.len() && is_option(next))
}

fn take_plain_words(text: &str) -> Result<(String, &str), Failure> {
    let (task, rest) = text.split_at(words_end(text));
    if first_word(task) == COMMAND {
        return Err(Failure::usage(
            format!("the task begins with `{COMMAND}`"),
            "remove the second one, or put the task in double quotes",
        ));
    }
    Ok((task.trim_end().to_owned(), rest))
}

/// The offset at which the first option outside quotes and code begins, or the end of the text.
fn words_end(text: &str) -> usize {
    let last_runs: HashMap<usize, usize> =
        backtick_runs(text).map(|(offset, length)| (length, offset)).collect();
    let mut protected = 0;
    let mut previous = ' ';
    for (offset, character) in text.char_indices() {
        if offset >= protected {
            if previous.is_whitespace() && is_option(&text[offset..]) {
                return offset;
            }
            // After a letter or a digit it is an inch mark, a plural or an accent, not a quote.
            if !previous.is_alphanumeric() {
                protected = match character {
                    '"' => quote_end(&text[offset..]),
                    '`' if previous != '`' => code_end(&text[offset..], offset, &last_runs),
                    _ => None,
                }
                .map_or(protected, |length| offset + length);
            }
        }
        previous = character;
    }
    text.len()
}

/// The length of the quoted string at the beginning of the text.
fn quote_end(text: &str) -> Option<usize> {
    let inner = &text[1..];
    let length = inner.find('"')?;
    let is_closed = !inner[length + 1..].starts_with(char::is_alphanumeric);
    if is_closed && quotes_touch(&inner[..length]) { Some(length + 2) } else { None }
}

/// The length of the inline code that begins at this offset: up to the next run of as many
/// backticks.
fn code_end(text: &str, offset: usize, last_runs: &HashMap<usize, usize>) -> Option<usize> {
    let mut runs = backtick_runs(text);
    let (_, opening) = runs.next()?;
    // Without this check, a text of unmatched runs would be scanned to its end for each of them.
    last_runs.get(&opening).filter(|last| **last > offset)?;
    let (start, length) = runs.find(|(_, length)| *length == opening)?;
    if opening > 1 || quotes_touch(&text[1..start]) { Some(start + length) } else { None }
}

/// Whether quotes would touch what they enclose. A stray one must not pair with the opening quote
/// of a later option's value and so turn the option into text.
fn quotes_touch(inner: &str) -> bool {
    !inner.starts_with(char::is_whitespace) && !inner.ends_with(char::is_whitespace)
}

/// The offset and length of each run of backticks.
fn backtick_runs(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find('`')?;
        let length = text[start..].bytes().take_while(|byte| *byte == b'`').count();
        from = start + length;
        Some((start, length))
    })
}

/// Adds the option that begins here, with its value, to the words for clap, and returns the rest.
/// clap reports an option that the command does not have.
pub(super) fn take_option<'text>(
    command: &'static Command,
    text: &'text str,
    words: &mut Vec<String>,
) -> Result<&'text str, Failure> {
    let token = first_word(text);
    refuse_typographic_dash(token)?;
    let after = text[token.len()..].trim_start();
    let (arg, value) = match find_option(command, token) {
        Some((arg, Some(start))) => (arg, &text[start..]),
        Some((arg, None)) if takes_value(arg) => (arg, after),
        Some(_) => {
            words.push(token.to_owned());
            return Ok(after);
        }
        None if !token.starts_with("--") && token.chars().count() > 2 => {
            let hint = match find_option(command, &format!("-{token}")) {
                Some(_) => format!("did you mean -{token}?"),
                None => OPTIONS_HINT.to_owned(),
            };
            let fault = format!("unknown option `{}`", shorten_text(token));
            return Err(Failure::usage(fault, hint));
        }
        None => {
            let refused = command.clone().try_get_matches_from([token]);
            refused.map_err(|error| in_a_session(&error))?;
            return Err(apart_from_task(token));
        }
    };
    let name = format!("--{}", arg.get_long().unwrap_or_default());
    let is_attached = value.len() > after.len();
    if let Some(quote @ ('"' | '\'')) = value.chars().next() {
        let end = closing_quote(value, quote).ok_or_else(|| {
            Failure::usage(
                format!("the quote that opens the value of {name} is never closed"),
                format!("add {quote} where the value ends"),
            )
        })?;
        words.push(format!("{name}={}", unescape_quotes(&value[1..end], quote)));
        return Ok(value[end + 1..].trim_start());
    }
    let word = first_word(value);
    if !is_attached && (is_option(word) || ["", "--"].contains(&word)) {
        // clap says that its value is missing.
        words.push(name);
        return Ok(after);
    }
    words.push(format!("{name}={word}"));
    Ok(value[word.len()..].trim_start())
}

fn closing_quote(text: &str, quote: char) -> Option<usize> {
    text.match_indices(quote).map(|(offset, _)| offset).skip(1).find(|offset| {
        let after = &text[offset + 1..];
        !text[..*offset].ends_with('\\')
            && (after.is_empty() || after.starts_with(char::is_whitespace))
    })
}

/// Removes the escapes from a quoted string. A backslash is literal, except before the enclosing
/// quote.
fn unescape_quotes(text: &str, quote: char) -> String {
    text.replace(&format!("\\{quote}"), quote.encode_utf8(&mut [0; 4]))
}

/// Refuses a typographic dash before the name of an option, because clap would treat it as plain
/// text.
pub(super) fn refuse_typographic_dash(word: &str) -> Result<(), Failure> {
    let Some(option) = behind_typographic_dash(first_word(word)) else { return Ok(()) };
    let name = shorten_text(word.split('=').next().unwrap_or(word));
    let hyphens = if option.starts_with("--") { "two hyphens" } else { "a hyphen" };
    Err(Failure::usage(
        format!("`{name}` begins with a typographic dash"),
        format!("type {hyphens} instead, `{option}`"),
    ))
}
