//! The procedures and templates compiled into crew, and how they are filled in. Pure: a template
//! and its values in, text out. A value is never expanded again, and what a person wrote is kept
//! byte for byte.
//!
//! A prompt is made in three steps, so that nothing costly is computed needlessly:
//! [`fragments::Parts::read_recipe`] reads and checks the fragments, [`fragments::Parts::wanted`]
//! names the values they use, [`build_prompt`] fills them in: who the process is, the phases, what
//! crew saw, how to finish. It is passed on standard input and has no length limit.
//!
//! As in a session, nothing that crew writes satisfies the grammar of a claim, and the last
//! sentence is crew's own.

pub mod fragments;
pub mod procedures;
pub mod variables;

use minijinja::context;

use self::fragments::Parts;
use self::variables::{PromptInputs, bound_text, fill_values, render_progress, user_words};
use engine::record::{Loop, Phase};
use engine::text::templates::render_template;
use engine::text::{one_line, quote_words};
use engine::view::TOLD_CHARS;
use engine::words::{PromptReader, describe_results, rule_values};

/// The maximum number of UTF-16 units for the part about crew's findings: enough for the tails of
/// all checks shown.
const SEEN_UNITS_MAX: usize = 200_000;

/// Builds the prompt of the loop's next iteration.
///
/// # Errors
/// When a template cannot be filled in; the error has its name. crew's own and checked templates
/// can.
pub fn build_prompt(
    subject: &Loop,
    parts: &Parts,
    known: &PromptInputs<'_>,
) -> Result<String, String> {
    let data = fill_values(subject, known, &parts.wanted);
    let (task, words) = (subject.contract.task.as_str(), user_words(subject));
    let mut phases = Vec::new();
    for phase in Phase::ALL {
        if phase == Phase::Act && !(parts.has_phase(phase) && subject.procedure().is_some()) {
            phases.push(("TASK".to_owned(), task.to_owned()));
        }
        phases.push((phase.label().to_uppercase(), parts.fill_phase(phase, &data)?));
    }
    let last = subject.state.seen().evidence().as_ref();
    let earlier =
        known.accounts.iter().filter(|one| last.is_some_and(|last| one.iteration < last.iteration));
    let checks = subject.state.seen().checks().iter().map(|(run, memory)| {
        context! { run, happened => memory.what_happened(), tail => memory.tail }
    });
    let handoff = known.handoff.map(|(path, page)| {
        // Somebody may have written a page without crew's facts, or before the checks ran.
        let is_whole = page.contains("\n## Checks\n") && last.is_some();
        let body = bound_text(&body_of(&without_words(page, &words)));
        context! { path => path.display().to_string(), body, is_whole }
    });
    let values = context! {
        is_ooda => [Phase::Observe, Phase::Orient, Phase::Decide].map(|phase| parts.has_phase(phase)).contains(&true),
        iteration => subject.iteration(),
        max_iterations => subject.contract.limits.max_iterations,
        procedure => subject.procedure(),
        git => subject.contract.run.as_ref().map(|run| &run.git),
        branch => subject.branch(),
        phases,
        handoff,
        past_redline => subject.past_redline(),
        seen => last.map(|last| describe_results(last, SEEN_UNITS_MAX, PromptReader::Next)),
        before_that => render_progress(earlier),
        checks_before => checks.collect::<Vec<_>>(),
        words,
        crew => if task.to_lowercase().contains("handoff") { known.crew } else { None },
        ..rule_values(subject, PromptReader::Next),
    };
    Ok(render_template("run.j2", &values))
}

/// A handoff without the user's messages that the prompt repeats, so that none of them looks
/// settled.
fn without_words(page: &str, words: &[String]) -> String {
    let rows: Vec<String> = words
        .iter()
        .map(|words| format!("- {} (", quote_words(&one_line(words, TOLD_CHARS))))
        .collect();
    let kept: Vec<&str> =
        page.lines().filter(|line| !rows.iter().any(|row| line.starts_with(row))).collect();
    kept.join("\n").replace("## From the user\n\n\n", "")
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

#[cfg(test)]
mod tests;
