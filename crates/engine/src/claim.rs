//! What an agent claims at the end of its final message. Only one thing counts: a `<promise>` tag
//! alone on the last non-blank line, outside code fences, block quotes and HTML. Anything else that
//! looks like a claim is a near miss: it is explained to the agent and never believed. Nothing here
//! guesses at the meaning of prose, because an agent that explains the rule would then be taken at
//! its word. Invisible marks around a line are ignored: a person who writes from right to left
//! could not see the fault.

mod markdown;
pub mod promise;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::claim::markdown::{Fences, Html, Quoted, Quotes, measure_indentation, starts_with};
use crate::claim::promise::{BLOCKED, CLOSE, COLONS, OPEN, Promise, find_reserved, normalize_text};
use crate::text::{clip_text, is_unseen, plain_text, table_rows, variant_name};

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
    /// No claim.
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
            if ends_in_the_task(message, task) =>
        {
            Claim::NearMiss(NearMiss::Echo)
        }
        claim => claim,
    }
}

/// Reads the claim at the end of an agent's plain output, which may hold terminal codes and may
/// repeat the prompt or the task. An output that ends in an echo of them makes no claim.
pub fn read_output(output: &str, prompt: &str, task: &str, promise: Option<&Promise>) -> Claim {
    if ends_in_echo(output, prompt, task) {
        return Claim::None;
    }
    read(&plain_text(output), promise)
}

/// What the contents of a correctly placed tag claim.
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

    /// Why this line looks like a claim but does not count.
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

    /// Drops a near miss that does not matter: in a loop without a promise the position of a
    /// success claim is irrelevant.
    fn for_loop(&self, miss: NearMiss, promise: Option<&Promise>) -> NearMiss {
        match (promise, self.tags.said) {
            (None, Some(said)) if find_reserved(said).is_none() => NearMiss::NoPromise,
            _ => miss,
        }
    }

    /// Whether the line is what a tag would contain, perhaps in bold, in quotes or as a sentence.
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
    /// The last line contains more than the tag.
    NotAlone,
    /// The tag is on the last line but contains another text.
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

/// What was wrong and what to do, by the name of the near miss.
const EXPLANATIONS: &str = include_str!("claim/near_misses.txt");

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

/// How long an output must be to count as a piece from the middle of the prompt, in characters
/// without white space: far more than a task would have an agent repeat.
const PIECE_CHARACTERS: usize = 1000;

/// Whether the end of the output is an echo: it repeats the last line of the prompt, the whole
/// task, or the prompt from its first line up to some place; or the whole output is a long piece of
/// the prompt. Colours and white space are ignored, so an echo may be wrapped differently. A claim
/// after an echo is not part of it.
pub(super) fn ends_in_echo(output: &str, prompt: &str, task: &str) -> bool {
    let [output, prompt, task] = [output, prompt, task].map(plain_text);
    let [first, last, own] = [
        prompt.lines().find(|line| !line.trim().is_empty()),
        prompt.lines().rfind(|line| !line.trim().is_empty()),
        output.lines().rfind(|line| !line.trim().is_empty()),
    ]
    .map(|line| visible_letters(line.unwrap_or_default()));
    let [said, prompt, task] =
        [output, prompt, task].map(|render_handoff| visible_letters(&render_handoff));
    if said.is_empty() || last.is_empty() {
        return false;
    }
    // A single line may be the agent's own, even if a prompt begins with it.
    let least = first.len().max(own.len() + 1);
    said.ends_with(&last)
        || (!task.is_empty() && said.ends_with(&task))
        || said
            .char_indices()
            .any(|(at, _)| said.len() - at >= least && prompt.starts_with(&said[at..]))
        || (said.chars().count() >= PIECE_CHARACTERS && prompt.contains(&said))
}

/// Whether a message ends in the whole task. White space is ignored. A task no longer than the
/// message's last line, such as the tag alone, can be said without repeating anything.
pub(super) fn ends_in_the_task(message: &str, task: &str) -> bool {
    let last =
        message.lines().map(visible_letters).rfind(|line| !line.is_empty()).unwrap_or_default();
    let task = visible_letters(task);
    task.len() > last.len() && visible_letters(message).ends_with(&task)
}

/// The visible characters of a string, without white space.
fn visible_letters(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace() && !is_unseen(*letter)).collect()
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod echo_tests {
    use proptest::prelude::*;

    use crate::claim::promise::Promise;
    use crate::claim::{Claim, NearMiss, read_message, read_output};
    use crate::text::plain_text;

    const TAG: &str = "<promise>DONE</promise>";

    fn promise() -> Promise {
        Promise::new("DONE").unwrap()
    }

    fn claims(output: &str, prompt: &str) -> bool {
        read_output(output, prompt, "", Some(&promise())) == Claim::Success
    }

    fn prompt() -> String {
        format!(
            "Iteration 2 of 10.\n\nBuild the API.\nWhen it is built, output:\n{TAG}\n\n\
             Say so only when it is true; crew checks it."
        )
    }

    #[test]
    fn an_echo_of_the_prompt_claims_nothing() {
        let prompt = prompt();
        let task = format!("Build it.\nOutput: {TAG} or\n{TAG}");
        let cut_off = prompt.split("\n\nSay so").next().unwrap();
        let coloured = prompt.replace('\n', "\x1b[0m\r\n\x1b[36m");
        let wrapped =
            cut_off.replace(" the API.\n", " the\nAPI.   ").replace("Iteration", "Itera\ntion");
        let table = [
            (task.clone(), &task),
            (format!("> user\n{task}\n\n"), &task),
            (format!("working…\n{coloured}"), &prompt),
            (cut_off.to_owned(), &prompt),
            (format!("prompt was:\n{cut_off}\n"), &prompt),
            (wrapped, &prompt),
            (format!("{TAG}\n{task}"), &task),
            (format!("{task}{task}"), &task),
        ];
        for (output, prompt) in table {
            assert!(!claims(&output, prompt), "{output}");
        }
    }

    #[test]
    fn an_output_that_ends_in_the_whole_task_is_an_echo_of_it() {
        let task = format!("Build the API.\nWhen it is built, output:\n{TAG}\n");
        let prompt = format!("Iteration 2.\n\nTASK\n{task}\nSay so only when it is true.");
        let claims =
            |output: &str| read_output(output, &prompt, &task, Some(&promise())) == Claim::Success;
        let echoes = [
            task.clone(),
            format!("Working on: Build the API.\n\n{task}"),
            format!(
                "Working on:\n{}\n\n",
                task.replace('\n', "\x1b[0m\r\n").replace(" it ", "\nit  ")
            ),
        ];
        for output in echoes {
            assert!(!claims(&output), "{output}");
        }
        for output in [format!("{task}\nDone.\n{TAG}"), format!("{task}{TAG}"), TAG.to_owned()] {
            assert!(claims(&output), "{output}");
        }
    }

    #[test]
    fn a_message_that_ends_in_the_whole_task_repeats_it_and_claims_nothing() {
        let task = format!("Build it. When finished, output:\n{TAG}");
        let read = |message: &str, task: &str| read_message(message, task, Some(&promise()));
        for message in [
            task.clone(),
            format!("The task I was given is:\n\n{task}\n"),
            format!("The task:\n\nBuild it.\nWhen finished,\n output:\n\n{TAG}"),
        ] {
            assert_eq!(read(&message, &task), Claim::NearMiss(NearMiss::Echo), "{message}");
        }
        for message in [
            TAG.to_owned(),
            format!("{task}\n\nDone.\n\n{TAG}"),
            format!("You asked me to finish with\n{TAG}"),
        ] {
            assert_eq!(read(&message, &task), Claim::Success, "{message}");
        }
        let one_line = format!("Build it. When finished output {TAG}");
        let marked = format!("{one_line}\u{200b}");
        for task in [&one_line, &marked] {
            let repeated = format!("Build it. When finished output\n{TAG}");
            assert_eq!(read(&repeated, task), Claim::NearMiss(NearMiss::Echo), "{task:?}");
        }
        assert_eq!(read(TAG, TAG), Claim::Success);
        assert_eq!(read(TAG, ""), Claim::Success);
        assert_eq!(read(&task, &format!("{task}\nNot yet.")), Claim::Success);
    }

    #[test]
    fn a_claim_of_the_agents_own_counts_before_and_after_an_echo() {
        let prompt = prompt();
        let table = [
            TAG.to_owned(),
            format!("All done.\n{TAG}"),
            format!("{prompt}\n{TAG}"),
            format!("{prompt}\n\nAll done.\n\n{TAG}\n"),
            format!("{prompt}\n\x1b[32m{TAG}\x1b[0m\r\n"),
            // Text that the task asks the agent to say is not an echo of the task.
            format!("When it is built, output:\n{TAG}"),
        ];
        for output in table {
            assert!(claims(&output, &prompt), "{output}");
        }
    }

    #[test]
    fn the_end_of_a_long_echo_is_recognized_without_its_beginning() {
        let context: String = (0..300)
            .flat_map(|line| ["A line of context, ".to_owned(), format!("{line}.\n")])
            .collect();
        let prompt = format!("Iteration 1.\n{context}{TAG}\nSay so only when it is true.");
        let cut_off = prompt.split("\nSay so").next().unwrap();
        assert!(!claims(&cut_off[2000..], &prompt));
        assert!(claims(&format!("I read line 299.\n{TAG}"), &prompt));
    }

    fn any_text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just(TAG.to_owned()),
            Just("\n".to_owned()),
            Just("\r\n".to_owned()),
            Just(" \t".to_owned()),
            Just("\x1b[1m".to_owned()),
            Just("```\n".to_owned()),
            Just("<prom".to_owned()),
            Just("ise>DONE</promise>".to_owned()),
            "[a-c ]{0,6}",
            "\\PC{0,3}",
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_prompt_is_a_claim_when_it_is_repeated(before in any_text(), prompt in any_text()) {
            // An empty prompt is repeated by everything.
            prop_assume!(!plain_text(&prompt).trim().is_empty());
            let echo = format!("{before}{prompt}");
            prop_assert!(!claims(&echo, &prompt), "{:?}", echo);
            let coloured = format!("{before}\x1b[3m{}\x1b[0m\n", prompt.replace('\n', "\r\n"));
            prop_assert!(!claims(&coloured, &prompt), "{:?}", coloured);
        }

        #[test]
        fn a_claim_after_one_of_crews_prompts_counts(before in any_text(), task in any_text()) {
            // An open fence covers the claim, too.
            prop_assume!(!format!("{before}{task}").contains(['`', '~']));
            let prompt = format!("Iteration 1 of 2.\n{task}\n\nIt must be true, says crew.");
            let output = format!("{before}\n{prompt}\nAll is done.\n{TAG}\n");
            prop_assert!(claims(&output, &prompt), "{:?}", output);
        }
    }
}
