//! Builds the whole prompt of one fresh process: who it is, the phases, what crew saw, how to
//! finish. A prompt is passed on standard input and has no length limit: it contains what a person
//! wrote, byte for byte.
//!
//! As in a session, nothing that crew writes satisfies the grammar of a claim, and the last
//! sentence is crew's own.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use handlebars::{Handlebars, no_escape};
use serde_json::Value;

use super::parts::{Parts, PromptPiece};
use super::values::{self, PromptInputs, values};
use crate::engine::record::{Loop, Phase};
use crate::engine::text::{clean, clip};
use crate::engine::words::prompt::{PromptReader, ahead, rules, seen};

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
    if let Some(page) = known.handoff {
        let body = values::bounded(page.text.trim_end());
        let path = page.path.display();
        let intro = "This loop was handed over to you, with this page of whoever had it before:";
        section(&mut text, "HANDOFF", &format!("{intro} {path}\n\n{body}"));
    }
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
            body.push_str(&fill(piece, &data)?);
        }
        section(&mut text, &phase.label().to_uppercase(), &body);
    }
    section(&mut text, "EVIDENCE", &evidence(subject, known));
    section(&mut text, "HOW TO FINISH", &rules(subject, PromptReader::Next));
    let _ = write!(text, "Now begin iteration {}.", subject.iteration());
    Ok(text)
}

fn fill(piece: &PromptPiece, data: &BTreeMap<&'static str, Value>) -> Result<String, String> {
    let (origin, template) = match piece {
        PromptPiece::Literal(text) => return Ok(text.clone()),
        PromptPiece::Template { origin, template } => (origin, template),
    };
    let mut filling = Handlebars::new();
    filling.set_strict_mode(true);
    filling.register_escape_fn(no_escape);
    filling.register_template("fragment", template.clone());
    let filled = filling.render("fragment", data);
    filled.map(|text| text.trim_end().to_owned()).map_err(|error| {
        let line = error.line_no.map_or_else(String::new, |line| format!(":{line}"));
        format!("{origin}{line}: {}", error.reason())
    })
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
         This is iteration {}{of}{procedure}. crew starts a fresh process for each: you know nothing of the \
         iterations before, and the next will know nothing of yours but what is in files and commits. Nobody \
         answers questions while you work.\n\n{}",
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

fn evidence(subject: &Loop, known: &PromptInputs<'_>) -> String {
    let mut text = match &subject.state.evidence {
        Some(last) => seen(last, SEEN_UNITS_MAX, PromptReader::Next),
        None => before_the_first(subject),
    };
    let progress = values::progress(known.accounts);
    if !progress.is_empty() {
        separate(&mut text);
        let _ = writeln!(text, "What the last iterations came to:\n{progress}");
    }
    for words in values::words(subject) {
        separate(&mut text);
        let _ = writeln!(text, "The user says:\n{words}");
    }
    let ahead = ahead(subject);
    if !ahead.is_empty() {
        separate(&mut text);
        let _ = writeln!(text, "{}", ahead.trim_end());
    }
    text
}

/// The results of the checks before the first iteration; empty if none ran.
fn before_the_first(subject: &Loop) -> String {
    let mut text = String::from("What crew saw before iteration 1:\n");
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
