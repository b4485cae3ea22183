//! What an agent claims at the end of its final message. Only one thing counts: a `<promise>` tag
//! alone on the last non-blank line, outside code fences, block quotes and HTML. Anything else that
//! looks like a claim is a near miss: it is explained to the agent and never believed. Nothing here
//! guesses at the meaning of prose, because an agent that explains the rule would then be taken at
//! its word. Invisible marks around a line are ignored: a person who writes from right to left
//! could not see the fault.

use std::fmt;

use serde::{Deserialize, Serialize};

use self::markdown::{Fences, Html, Quoted, Quotes, measure_indentation, starts_with};
use self::promise::{BLOCKED, CLOSE, COLONS, OPEN, Promise, find_reserved, normalize_text};
use super::text::{clip_text, is_unseen, plain_text, table_rows, variant_name};

mod echo;
mod markdown;
pub mod promise;
#[cfg(test)]
mod tests;

/// The longest reason kept from a claim, in characters.
pub const REASON_CHARS: usize = 500;
/// The longest wrong text kept from a claim, in characters.
const SAID_CHARS: usize = 100;

/// What ends a line for a reader, beside `\r\n`.
const LINE_ENDS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// What an agent's final message claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Nothing.
    #[default]
    None,
    /// The job is done.
    Success,
    /// This try failed. The reason is one line in the agent's words, of at most
    /// `REASON_CHARS`.
    Failure { reason: Option<String> },
    /// The agent cannot continue without a person, for a reason of the same form.
    Blocked { reason: Option<String> },
    /// Something that looks like a claim and does not count.
    NearMiss(NearMiss),
}

/// Reads the claim at the end of an agent's final message. Without a promise (`--no-promise`)
/// FAILURE and BLOCKED still count, but success does not. Takes time in proportion to the message.
pub fn read(message: &str, promise: Option<&Promise>) -> Claim {
    let (mut fences, mut quotes, mut html) =
        (Fences::default(), Quotes::default(), Html::default());
    let mut is_open = false;
    let mut earlier = None;
    let mut last = None;
    let message = message.replace("\r\n", "\n");
    for text in message.split(LINE_ENDS).map(|line| line.trim_matches(is_invisible)) {
        let is_blank = bare(text).is_empty();
        let is_fenced = !is_blank && fences.cover_line(text);
        let is_html = !is_blank && !is_fenced && html.cover_line(text);
        let quoted = quotes.cover_line(if is_blank { "" } else { text }, is_fenced);
        if is_blank {
            continue;
        }
        if let Some(line) = last.replace(Line::read(text, is_fenced, is_html, quoted)) {
            earlier = line.miss(false, is_open, promise).or(earlier);
            is_open = line.tags.ends_open.unwrap_or(is_open);
        }
    }
    let Some(line) = last else { return Claim::None };
    if let Some(said) = line.claim() {
        return judge(said, line.tags.is_exact, promise);
    }
    let miss = line.miss(true, is_open, promise).or(earlier);
    miss.map_or(Claim::None, Claim::NearMiss)
}

/// Reads the claim of an agent whose final message is reported separately. A message that ends in
/// the whole task, even wrapped differently, repeats it and is not a claim. A claim below the
/// agent's own words counts, even if the task ends in that very tag; so does a tag that is the
/// whole task.
pub fn read_message(message: &str, task: &str, promise: Option<&Promise>) -> Claim {
    match read(message, promise) {
        Claim::Success | Claim::Failure { .. } | Claim::Blocked { .. }
            if echo::ends_in_the_task(message, task) =>
        {
            Claim::NearMiss(NearMiss::Echo)
        }
        claim => claim,
    }
}

/// Reads the claim at the end of an agent's plain output, which may hold terminal codes and may
/// repeat the prompt or the task. An output that ends in an echo of them makes no claim.
pub fn read_output(output: &str, prompt: &str, task: &str, promise: Option<&Promise>) -> Claim {
    if echo::ends_in_echo(output, prompt, task) {
        return Claim::None;
    }
    read(&plain_text(output), promise)
}

/// What the text of a correctly placed tag claims.
fn judge(said: &str, is_exact: bool, promise: Option<&Promise>) -> Claim {
    let said = normalize_text(said);
    let is_promise = promise.is_some_and(|promise| promise.as_str() == said);
    if is_exact && is_promise {
        return Claim::Success;
    }
    if is_exact && let Some(word) = find_reserved(&said) {
        let reason = said[word.len()..].trim_start().trim_start_matches(COLONS).trim();
        let reason = clip_text(&plain_text(reason), REASON_CHARS);
        let reason = if reason.is_empty() { None } else { Some(reason) };
        return if word == BLOCKED { Claim::Blocked { reason } } else { Claim::Failure { reason } };
    }
    let is_almost = is_promise
        || find_reserved(&said.to_uppercase()).is_some()
        || promise.is_some_and(|promise| promise.as_str().to_lowercase() == said.to_lowercase());
    Claim::NearMiss(match promise {
        _ if is_almost => NearMiss::WrongCase,
        None => NearMiss::NoPromise,
        Some(_) => NearMiss::WrongText { said: clip_text(&plain_text(&said), SAID_CHARS) },
    })
}

/// A non-blank line of a message.
struct Line<'message> {
    /// The line without surrounding white space.
    text: &'message str,
    tags: Tags<'message>,
    /// What prevents the line from being read as text.
    cover: Option<NearMiss>,
}

impl<'message> Line<'message> {
    fn read(line: &'message str, is_fenced: bool, is_html: bool, quoted: Quoted) -> Self {
        let text = bare(line);
        let tags = Tags::read(text);
        let is_indented = measure_indentation(line, 0).0 >= 4;
        let cover = match quoted {
            _ if is_fenced => Some(NearMiss::InFence),
            _ if is_html => Some(NearMiss::InHtml),
            Quoted::Marked => Some(NearMiss::Quoted),
            _ if is_indented && tags.is_alone => Some(NearMiss::Indented),
            Quoted::Lazily if tags.is_alone => Some(NearMiss::LazilyQuoted),
            _ => None,
        };
        Self { text, tags, cover }
    }

    /// The tag's text, if this line counts as a claim when it is the last.
    fn claim(&self) -> Option<&'message str> {
        if self.tags.is_alone && self.cover.is_none() { self.tags.said } else { None }
    }

    /// Why this line looks like a claim but is not one.
    fn miss(&self, is_last: bool, is_open: bool, promise: Option<&Promise>) -> Option<NearMiss> {
        let is_half = starts_with(self.text, OPEN) || ends_with(self.text, CLOSE);
        let shared = if is_last { NearMiss::NotAlone } else { NearMiss::NotLastLine };
        let miss = match &self.tags {
            tags if tags.said.is_some() => self.cover.clone().unwrap_or(shared),
            tags if tags.begins_closed && is_open => NearMiss::SplitOverLines,
            _ if !is_last => return None,
            _ if is_half => self.cover.clone().unwrap_or(NearMiss::Malformed),
            _ if self.is_bare_claim(promise) => NearMiss::Untagged,
            _ => return None,
        };
        Some(self.for_loop(miss, promise))
    }

    /// In a loop without a promise the position of a success claim does not matter.
    fn for_loop(&self, miss: NearMiss, promise: Option<&Promise>) -> NearMiss {
        match (promise, self.tags.said) {
            (None, Some(said)) if find_reserved(said).is_none() => NearMiss::NoPromise,
            _ => miss,
        }
    }

    /// Whether the line is the text a tag would hold, perhaps in bold, in quotes or as a sentence.
    fn is_bare_claim(&self, promise: Option<&Promise>) -> bool {
        let bare = self.text.trim_matches(|c: char| c.is_whitespace() || "*_`\"'.!".contains(c));
        let texts = [self.text, bare].map(normalize_text);
        promise.is_some_and(|promise| texts.iter().any(|text| text == promise.as_str()))
            || find_reserved(bare).is_some()
    }
}

/// The promise tags of a line, in any letter case.
#[derive(Default)]
struct Tags<'message> {
    /// The text between the last opening tag that is closed and its closing tag.
    said: Option<&'message str>,
    /// Whether the line is one tag and nothing else.
    is_alone: bool,
    /// Whether every tag has the right letter case.
    is_exact: bool,
    /// Whether the first tag is a closing one.
    begins_closed: bool,
    /// Whether the last tag is an opening one; `None` without tags.
    ends_open: Option<bool>,
}

impl<'message> Tags<'message> {
    fn read(text: &'message str) -> Self {
        let mut tags = Self { is_exact: true, ..Self::default() };
        let mut count = 0;
        let mut opened = None;
        for (offset, _) in text.match_indices('<') {
            let rest = &text[offset..];
            let is_opening = starts_with(rest, OPEN);
            if !is_opening && !starts_with(rest, CLOSE) {
                continue;
            }
            count += 1;
            tags.is_exact &= rest.starts_with(OPEN) || rest.starts_with(CLOSE);
            tags.begins_closed |= count == 1 && !is_opening;
            tags.ends_open = Some(is_opening);
            if is_opening {
                opened = Some(offset + OPEN.len());
            } else if let Some(start) = opened.take() {
                tags.said = Some(&text[start..offset]);
                let end = offset + CLOSE.len();
                tags.is_alone = count == 2 && start == OPEN.len() && end == text.len();
            }
        }
        tags.is_alone &= count == 2;
        tags
    }
}

/// A line without white space and invisible marks around it.
fn bare(line: &str) -> &str {
    line.trim_matches(|character: char| character.is_whitespace() || is_invisible(character))
}

fn is_invisible(character: char) -> bool {
    is_unseen(character) && !character.is_control()
}

fn ends_with(text: &str, tag: &str) -> bool {
    let start = text.len().checked_sub(tag.len());
    start.and_then(|start| text.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(tag))
}

// Text in a message that looks like a claim and is not one, with its explanation. Each explanation
// says what was wrong and what to do; repeating one never makes a claim.

/// Why something that looks like a claim does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NearMiss {
    /// A tag is somewhere before the last line.
    NotLastLine,
    /// The last line holds more than the tag.
    NotAlone,
    /// The tag is on the last line but has another text.
    WrongText {
        /// Its text, shortened.
        said: String,
    },
    /// Only the letter case of the tag or its text is wrong.
    WrongCase,
    /// The tag is in a fenced code block.
    InFence,
    /// The tag is in an HTML element that shows text as it is, or in a comment.
    InHtml,
    /// The tag is in a block quote.
    Quoted,
    /// The tag continues a quoted paragraph that no blank line ends.
    LazilyQuoted,
    /// The message ends in the words of the task.
    Echo,
    /// Four or more columns of white space before the tag make it code.
    Indented,
    /// The last line is the promise or a reserved word without the tag.
    Untagged,
    /// The tag opens on one line and closes on another.
    SplitOverLines,
    /// The last line has one half of the tag, or a closing tag that does not close.
    Malformed,
    /// The loop accepts no success claim.
    NoPromise,
}

/// What was wrong and what to do, each by the word of its kind.
const EXPLANATIONS: &str = include_str!("near_misses.txt");

impl fmt::Display for NearMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, said) = match self {
            Self::WrongText { said } if said.is_empty() => ("empty_text", ""),
            Self::WrongText { said } => (variant_name(self), said.as_str()),
            _ => (variant_name(self), ""),
        };
        let found = table_rows(EXPLANATIONS).find(|(of, _)| *of == kind);
        f.write_str(&found.map_or("", |(_, text)| text).replace("{said}", said))
    }
}
