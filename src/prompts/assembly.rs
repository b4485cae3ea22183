//! Builds the whole prompt of one fresh process: who it is, the phases, what crew saw, how to
//! finish. A prompt is passed on standard input and has no length limit: it contains what a person
//! wrote, byte for byte.
//!
//! As in a session, nothing that crew writes satisfies the grammar of a claim, and the last
//! sentence is crew's own.

use std::fmt::Write as _;

use super::parts::Parts;
use super::values::{self, PromptInputs, values};
use crate::engine::journal::account::Account;
use crate::engine::record::{Loop, Phase};
use crate::engine::text::{clean, clip, one_line, quoted};
use crate::engine::view::TOLD_CHARS;
use crate::engine::words::PromptReader;
use crate::engine::words::news::{seen, verdict};
use crate::engine::words::rules::{ahead, rules};

/// The most UTF-16 units of what crew saw: enough for the tails of all checks shown.
const SEEN_UNITS_MAX: usize = 200_000;
/// A check's command is cut after this many characters.
const COMMAND_CHARS_MAX: usize = 160;

/// Builds the prompt of the loop's next iteration.
///
/// # Errors
/// When a template cannot be filled in; the error has its name. crew's own and checked ones can be.
pub fn prompt(subject: &Loop, parts: &Parts, known: &PromptInputs<'_>) -> Result<String, String> {
    let data = values(subject, known, parts.wanted());
    let mut text = preamble(subject, parts);
    let task = subject.contract.task.as_str();
    let acts = !parts.of(Phase::Act).is_empty();
    let is_procedure = subject.procedure().is_some();
    for phase in Phase::ALL {
        if phase == Phase::Act && !(acts && is_procedure) && !task.is_empty() {
            section(&mut text, "TASK", task);
        }
        let mut body = String::new();
        for piece in parts.of(phase) {
            separate(&mut body);
            body.push_str(&parts.fill(piece, &data)?);
        }
        section(&mut text, &phase.label().to_uppercase(), &body);
    }
    section(&mut text, "WHERE IT STANDS (crew's own record)", &standing(subject, known));
    let said = subject.state.evidence.as_ref().and_then(|last| last.said.as_ref());
    let said = said.filter(|_| known.handoff.is_none());
    let said = said.map_or_else(String::new, |said| format!("\"{}\"\n", clean(said)));
    section(&mut text, "WHAT THE LAST WORKER SAID (not checked)", &said);
    section(&mut text, "THE USER SAYS", &values::words(subject).join("\n"));
    let ahead = ahead(subject);
    let rules = rules(subject, PromptReader::Next);
    section(&mut text, "HOW TO FINISH", &format!("{ahead}{rules}"));
    let _ = write!(text, "Now begin iteration {}.", subject.iteration());
    Ok(text)
}

/// Adds an empty line unless the text is empty.
fn separate(text: &mut String) {
    if !text.is_empty() {
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
}

fn section(text: &mut String, heading: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(text, "## {heading}\n\n{body}");
        separate(text);
    }
}

fn preamble(subject: &Loop, parts: &Parts) -> String {
    let ooda = [Phase::Observe, Phase::Orient, Phase::Decide];
    let ooda = if ooda.iter().any(|phase| !parts.of(*phase).is_empty()) { "OODA " } else { "" };
    let max = subject.contract.limits.max_iterations;
    let of = if max > 0 { format!(" of {max}") } else { String::new() };
    let procedure = subject.procedure();
    let procedure = procedure.map_or_else(String::new, |name| format!(" of procedure `{name}`"));
    format!(
        "# {ooda}Loop Iteration\n\n\
         This is iteration {}{of}{procedure}. crew runs this task in fresh processes: you see this prompt and the \
         working tree, nothing else, and the next one sees the tree and your last message. Nobody answers \
         questions: decide, and say what you assumed.\n\n{}",
        subject.iteration(),
        branch(subject),
    )
}

/// Where crew commits or pushes, the agent must not switch branches.
fn branch(subject: &Loop) -> String {
    let steps = subject.contract.run.as_ref().map(|run| &run.git);
    let Some(steps) = steps.filter(|it| it.commit || it.push || it.rebase.is_some()) else {
        return String::new();
    };
    let commits =
        if steps.commit { " crew commits what you change, after the iteration." } else { "" };
    match subject.branch() {
        Some(branch) => format!("Stay on the branch `{}`.{commits}\n\n", clean(branch)),
        None if steps.commit => format!("Stay where you are in git.{commits}\n\n"),
        None => String::new(),
    }
}

/// The page of the former owner, or else what the last iteration came to, and those before it.
fn standing(subject: &Loop, known: &PromptInputs<'_>) -> String {
    if let Some(page) = known.handoff {
        let path = page.path.display();
        let body = values::bounded(&body_of(&without_words(page.text, &values::words(subject))));
        // Somebody may have written a page without crew's facts, or before the checks ran.
        let is_whole = page.text.contains("\n## Checks\n") && subject.state.evidence.is_some();
        let seen = if is_whole { String::new() } else { last_seen(subject, known) };
        let why = subject.past_redline().map_or_else(String::new, |percent| {
            format!(
                "The last iteration used {percent}% of its context, so here is the whole page. "
            )
        });
        return format!("{why}From {path}:\n\n{body}\n\n{seen}");
    }
    last_seen(subject, known)
}

/// A handoff without the user's words that the prompt gives itself, so that none looks settled.
fn without_words(page: &str, words: &[String]) -> String {
    let rows: Vec<String> =
        words.iter().map(|words| format!("- {} (", quoted(&one_line(words, TOLD_CHARS)))).collect();
    let is_given = |line: &&str| rows.iter().any(|row| line.starts_with(row));
    let kept: Vec<&str> = page.lines().filter(|line| !is_given(line)).collect();
    kept.join("\n").replace("## From the user\n\n\n", "")
}

/// What the last iteration came to, and those before it.
fn last_seen(subject: &Loop, known: &PromptInputs<'_>) -> String {
    let Some(last) = &subject.state.evidence else {
        return before_the_first(subject, known.handoff.is_some());
    };
    let verdict = verdict(last, PromptReader::Next).map(|it| format!(" {it}")).unwrap_or_default();
    let seen = seen(last, SEEN_UNITS_MAX, PromptReader::Next);
    let mut text = format!("After iteration {}:{verdict}\n{seen}", last.iteration);
    let before: Vec<Account> =
        known.accounts.iter().filter(|it| it.iteration < last.iteration).cloned().collect();
    if !before.is_empty() {
        separate(&mut text);
        let _ = writeln!(text, "Before that:\n{}", values::progress(&before));
    }
    text
}

/// A handoff as a part of a prompt: without its front matter, its title and what the prompt says
/// itself, and one level below the prompt's own headings.
fn body_of(page: &str) -> String {
    let page = page.trim_start();
    let behind = page.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    let body = behind.map_or(page, |(_, body)| body);
    let body = body.split("\n## Context for resume\n").next().unwrap_or(body).trim_start();
    let body = match body.split_once('\n') {
        Some((title, rest)) if title.starts_with("# ") => rest,
        _ => body,
    };
    body.trim().replace("\n## ", "\n### ")
}

/// The results of the checks before the first iteration; empty if none ran. `is_begun` says that an
/// attempt at it was cut off.
fn before_the_first(subject: &Loop, is_begun: bool) -> String {
    let begun = if is_begun { "" } else { "Nothing was done yet. " };
    let mut text = format!("{begun}Before iteration 1:\n");
    for (run, memory) in &subject.state.checks {
        let happened = memory.what_happened();
        let _ = writeln!(text, "- `{}` {happened}.", clip(run, COMMAND_CHARS_MAX));
        if !memory.tail.is_empty() {
            text.push_str("  Its last lines:\n");
            memory.tail.lines().for_each(|line| text.extend(["    ", line, "\n"]));
        }
    }
    if subject.state.checks.is_empty() { String::new() } else { text }
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
mod tests;
