//! The rules of a claim as a prompt tells them, and what lies ahead of the iteration that begins.
//! Two ends are taught: a claim, and BLOCKED. `FAILURE` is understood, and is not taught: agents
//! take it for a polite way to say "not finished".
//!
//! A tag only ever stands inside a sentence, so that no rule is a claim.

use std::fmt::Write as _;

use super::PromptReader;
use crate::engine::boundary::limits;
use crate::engine::record::{Check, Loop, Role};
use crate::engine::text::{clip, count, distinct};

/// A command or a glob longer than this many characters is shown cut.
const COMMAND_CHARS_MAX: usize = 120;
/// How many commands or globs a rule names.
const NAMED: usize = 4;

const BLOCKED: &str = "<promise>BLOCKED: what you need</promise>";

/// The rules in full: whole lines.
pub fn rules(subject: &Loop, reader: PromptReader) -> String {
    let mut text = until(subject);
    text.push_str(&claim(subject, reader));
    text.push_str(&leave(subject));
    let _ = writeln!(
        text,
        "- If you need something that only a person can give, end with {BLOCKED} instead. That is a good ending."
    );
    text.push_str(match reader {
        PromptReader::Maker => {
            "- If work is left and nothing blocks you, keep working; do not stop to report.\n"
        }
        PromptReader::Next if limits::last(subject).is_some() => "",
        PromptReader::Next => {
            "- If work is left, make one coherent step, check it, and end with two or three sentences for the \
             next iteration: done, left, not to be tried again.\n"
        }
    });
    text
}

/// The rules for an agent that was told them in full: one sentence, without a line break.
pub fn reminder(subject: &Loop) -> String {
    let until = until(subject);
    match &subject.contract.promise {
        _ if !until.is_empty() => {
            let until = until.trim_start_matches("- ").trim_end();
            format!("{until} If only a person can help, end with {BLOCKED}.")
        }
        Some(promise) => format!(
            "A claim is <promise>{promise}</promise> on the last line, alone; if only a person can help it is \
             {BLOCKED} instead."
        ),
        None => format!("No claim ends this loop; if only a person can help, end with {BLOCKED}."),
    }
}

fn until(subject: &Loop) -> String {
    let runs = named(subject.contract.of_role(Role::Until));
    let verb = if runs.len() == 1 { "passes" } else { "pass" };
    match (runs.is_empty(), &subject.contract.promise) {
        (true, _) => String::new(),
        (_, None) => format!(
            "- The loop ends by itself when {} {verb}. No words of yours end it.\n",
            listed(&runs)
        ),
        (_, Some(_)) => format!(
            "- The loop ends by itself when {} {verb}; until then no claim ends it.\n",
            listed(&runs)
        ),
    }
}

fn claim(subject: &Loop, reader: PromptReader) -> String {
    let contract = &subject.contract;
    let Some(promise) = &contract.promise else {
        return match (contract.has_until(), reader) {
            (true, _) => "",
            (_, PromptReader::Maker) => {
                "- No claim of yours ends this loop; continue until it stops asking.\n"
            }
            (_, PromptReader::Next) => {
                "- No claim of yours ends this loop; do this iteration's part.\n"
            }
        }
        .to_owned();
    };
    let tag = format!("<promise>{promise}</promise>");
    let checks = named(contract.checks.iter().filter(|check| check.role != Role::Until));
    if checks.is_empty() {
        return format!(
            "- Nobody checks this work but you. When the whole task is done, end with {tag} on a line of its \
             own, outside code blocks, and list in that message the commands you ran and what they printed.\n"
        );
    }
    let (runs, them) = (listed(&checks), if checks.len() == 1 { "it" } else { "all of them" });
    let mut text = format!(
        "- Claim only when the whole task is done and you have run {runs} yourself, after your last edit, and \
         seen {them} pass. Then end with {tag} on a line of its own, outside code blocks. crew runs {them} too, \
         and believes only that.\n"
    );
    let no_worse = named(contract.checks.iter().filter(|check| check.no_worse));
    if !no_worse.is_empty() {
        let runs = listed(&no_worse);
        let _ = writeln!(text, "- Tests of {runs} that failed before the loop may still fail.");
    }
    text
}

/// What must stay as it is, by name where the user named it.
fn leave(subject: &Loop) -> String {
    let contract = &subject.contract;
    let globs = contract.protect.iter().map(|glob| clip(glob, COMMAND_CHARS_MAX));
    let globs: Vec<String> = distinct(globs);
    let held = match (globs.is_empty(), contract.checks.is_empty()) {
        (true, true) => return String::new(),
        (true, false) => "what the checks run".to_owned(),
        (false, _) => listed(&globs),
    };
    format!(
        "- Leave {held} as it is, and delete, skip or loosen no test: crew compares. If a check is wrong, say \
         why and leave it.\n"
    )
}

fn named<'a>(checks: impl Iterator<Item = &'a Check>) -> Vec<String> {
    distinct(checks.map(|check| format!("`{}`", clip(&check.run, COMMAND_CHARS_MAX))))
}

/// "a", "a and b", "a, b, c, d and 3 more".
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] if names.len() <= NAMED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED),
    }
}

/// Warnings for the iteration that begins, for either driver: failures in a row, a stall, the last
/// iteration. Whole lines and an empty one; empty if there is none.
pub fn ahead(subject: &Loop) -> String {
    let lines = [failures(subject), nudge(subject), last(subject)];
    let lines: Vec<String> = lines.into_iter().flatten().collect();
    if lines.is_empty() { String::new() } else { lines.join("\n") + "\n\n" }
}

fn failures(subject: &Loop) -> Option<String> {
    let (row, most) =
        (subject.state.consecutive_failures, subject.contract.limits.failure_threshold);
    (row > 0 && most > 0).then(|| match row {
        1 => format!("The last iteration failed; {most} in a row end the loop."),
        _ => format!("{row} iterations in a row have failed; {most} end the loop."),
    })
}

/// From half of the stall limit on: asks for another approach, or BLOCKED. `None` before.
fn nudge(subject: &Loop) -> Option<String> {
    let stall = subject.contract.limits.stall;
    let still = subject.state.iterations_without_progress;
    (stall > 0 && still > 0 && still * 2 >= stall).then(|| {
        format!(
            "Nothing that counts has changed for {}; {stall} end the loop. Before any edit write down two causes \
             you have not tested, and test the cheaper one. If it is a person's decision, say BLOCKED.",
            count(still, "iteration")
        )
    })
}

fn last(subject: &Loop) -> Option<String> {
    let what = limits::last(subject)?;
    let checks = named(subject.contract.checks.iter());
    let seen = match (&subject.contract.promise, checks.is_empty()) {
        (None, _) => String::new(),
        (Some(_), true) => " If the whole task is done, claim it as always.".to_owned(),
        (Some(_), false) => format!(
            " If the whole task is done and you have seen {} pass, claim it as always.",
            listed(&checks)
        ),
    };
    let no_claim = if seen.is_empty() { "" } else { " Make no claim then." };
    Some(format!(
        "{what} Begin nothing that you cannot finish now.{seen} If it is not done, leave the tree so that it builds \
         and end with three short paragraphs: what works, what is left, and what you tried that failed and would \
         not try again. They head the page for whoever continues.{no_claim}"
    ))
}
