//! Splits the raw text after the command into options, quoted texts and plain words. White space is
//! any Unicode white space; an apostrophe in plain words is an apostrophe. Values are not read.

use clap::Command;

use super::options::{RESUME, RUN, find_option, first_word, takes_value};
use super::{OPTIONS_HINT, in_a_session};
use crate::parse::spelling::shorten_text;
use engine::failure::Failure;

/// The name of the command these arguments follow.
const COMMAND: &str = "/crew:loop";

/// Whether a token begins here that is not text of the task.
pub(super) fn is_option(text: &str) -> bool {
    let name = text.strip_prefix('-').map(|name| name.strip_prefix('-').unwrap_or(name));
    name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        || is_misspelt_option(text)
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
            "add a double quote where the task ends, or take the first one away",
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

/// Where the first option begins, or the end.
fn words_end(text: &str) -> usize {
    let blanks = text.match_indices(char::is_whitespace);
    let mut starts = blanks.map(|(at, blank)| at + blank.len());
    starts.find(|start| is_option(&text[*start..])).unwrap_or(text.len())
}

/// Adds the option that begins here, with its value, to the words for clap, and returns what
/// follows. clap says what is wrong with an option that the command does not have.
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

/// A quoted text without its escapes. A backslash is literal, except before the enclosing quote.
fn unescape_quotes(text: &str, quote: char) -> String {
    text.replace(&format!("\\{quote}"), quote.encode_utf8(&mut [0; 4]))
}

/// Refuses a typographic dash, which editors and chat clients substitute for hyphens, before the
/// name of an option: clap would take it for text.
pub(super) fn refuse_typographic_dash(word: &str) -> Result<(), Failure> {
    if !is_misspelt_option(word) {
        return Ok(());
    }
    let name = shorten_text(word.split('=').next().unwrap_or(word));
    let fault = format!("`{name}` begins with a typographic dash");
    Err(Failure::usage(fault, "type hyphens instead"))
}

/// Whether a text begins with a token that would name an option if its typographic dashes were
/// hyphens.
fn is_misspelt_option(text: &str) -> bool {
    const DASHES: &str = "\u{2010}\u{2011}\u{2012}\u{2013}\u{2014}\u{2015}\u{2212}";
    let name = text.trim_start_matches(|c| c == '-' || DASHES.contains(c));
    if !text[..text.len() - name.len()].contains(|c| DASHES.contains(c)) {
        return false;
    }
    let hyphened = ["--", "-"].map(|hyphens| format!("{hyphens}{}", first_word(name)));
    let mut commands = [&RUN, &RESUME].into_iter();
    commands.any(|command| hyphened.iter().any(|token| find_option(command, token).is_some()))
}
