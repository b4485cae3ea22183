//! The prompts of a session: at the start, after each boundary, after a wait, and where the task is
//! no longer in the context. They are made only from the loop. They stay short, because the client
//! prints them whole, and under 9,000 UTF-16 units, because the client replaces longer context by a
//! stub.
//!
//! Nothing written here satisfies the grammar of a claim: the tag only ever appears inside a
//! sentence, and every prompt ends with one of crew's own sentences.

use std::path::Path;
use std::time::Duration;

use minijinja::{Value, context};

use super::PromptReader;
use super::news::describe_results;
use crate::boundary::limits;
use crate::doctor::shell_word;
use crate::evidence::Evidence;
use crate::journal::story::IterationSummary;
use crate::record::{Check, Loop, MESSAGE_CHARS, Role};
use crate::templates::render_template;
use crate::text::{clip_at_word, clip_line, distinct_texts, format_period, utf16_units};

/// The reason with which a question of the agent is refused; no text of the question is repeated.
pub const DECIDE_YOURSELF: &str = "Nobody is here to answer; crew keeps the question for the user. \
    Decide yourself what fits the task best, continue, and say in your final message what you \
    assumed. Only if no choice is safe without a person, end with BLOCKED and the reason, as crew's \
    rules say. An answer that comes later is in crew's next prompt.";

/// The most UTF-16 units a prompt may have.
pub const PROMPT_UNITS_MAX: usize = 8_900;
/// A task longer than this many UTF-16 units is replaced by its beginning and its file's name: two
/// lines, because the client prints the prompt and the task is in the context.
const TASK_UNITS_SHORT: usize = 200;
/// The same limit if the task is not in the context; it leaves room for the rest.
const TASK_UNITS_WHOLE: usize = 5_000;
/// How much of a task is shown that is too long for the context.
const TASK_BEGINNING: usize = 1_000;
/// The most of it that earlier iterations take.
const EARLIER_UNITS_MAX: usize = 2_000;
/// How many of the user's messages are shown: those that may wait, with one that comes with a
/// resume, and as many that the last prompt had.
const TOLD: usize = 12;
/// What they usually take; where they take more, the task takes less.
const TOLD_UNITS: usize = 2_100;
/// A command or a glob longer than this many characters is shown cut.
const COMMAND_CHARS_MAX: usize = 120;
/// Waits of a minute or more are shown in minutes.
const MINUTE: Duration = Duration::from_secs(60);

/// How the first line of every prompt of a session begins; it finds the prompt again in a
/// transcript. It leaves out the maximum of iterations, because the user may have changed that
/// since.
pub fn session_marker(subject: &Loop) -> String {
    format!("crew loop {}: iteration {}", subject.id, subject.iteration())
}

/// The text added to the task when a loop starts. `crew` is the program's path, which may not be on
/// the agent's search path: a session's own commands are for the person who types.
pub fn start_prompt(subject: &Loop, crew: &Path) -> String {
    let task_file = subject.place.task_file().display().to_string();
    render_prompt(subject, "start", &[], context! { task_file, crew => shell_command(crew) })
}

/// The prompt after a wait for the model's service. The client labels it as a hook's error, and the
/// task and the rules are in the context.
pub fn woken_prompt(subject: &Loop, waited: Duration) -> String {
    let seconds = waited.as_secs();
    let waited = format_period(if waited < MINUTE { seconds } else { seconds / 60 * 60 });
    render_prompt(subject, "woken", &[], context! { waited })
}

/// The prompt after a boundary that continues.
pub fn next_prompt(subject: &Loop) -> String {
    let failing = subject.state.evidence.iter().flat_map(Evidence::failing).next();
    let more = context! {
        task => clip_task(subject, TASK_UNITS_SHORT),
        folder => subject.place.folder.display().to_string(),
        failing => failing.map(|check| &check.run),
        failing_is_gate => failing.is_some_and(|check| check.roles.contains(&Role::Gate)),
    };
    render_prompt(subject, "next", &[], more)
}

/// The prompt if the task is no longer in the agent's context: after a compaction, or in the
/// session that takes the loop over. `handoff` is the page of its previous owner, `accounts` are
/// the last iterations.
pub fn full_prompt(
    subject: &Loop,
    handoff: Option<&Path>,
    accounts: &[IterationSummary],
    crew: &Path,
) -> String {
    let more = utf16_units(&user_says(subject)).saturating_sub(TOLD_UNITS);
    let more = context! {
        task => clip_task(subject, TASK_UNITS_WHOLE.saturating_sub(more)),
        handoff => handoff.map(|page| page.display().to_string()),
        crew => shell_command(crew),
    };
    render_prompt(subject, "again", accounts, more)
}

/// A prompt of that kind, with as much of the last iterations and of what crew saw as there is room
/// for.
fn render_prompt(subject: &Loop, kind: &str, accounts: &[IterationSummary], more: Value) -> String {
    let last = subject.state.evidence.as_ref();
    let values = context! {
        kind,
        marker => session_marker(subject),
        max_iterations => subject.contract.limits.max_iterations,
        user_says => user_says(subject),
        ..context! { ..more, ..rule_values(subject, PromptReader::Maker) },
    };
    let with = |room: usize| {
        let earlier = earlier_iterations(accounts, room.min(EARLIER_UNITS_MAX));
        let left = room.saturating_sub(utf16_units(&earlier));
        let seen =
            last.map_or_else(String::new, |last| describe_results(last, left, PromptReader::Maker));
        let text = render_template("prompt.j2", &context! { earlier, seen, ..values.clone() });
        (text, utf16_units(&earlier) + utf16_units(&seen))
    };
    // Nearly every prompt fits at once. A longer one leaves this room beside the rest of it.
    let (text, taken) = with(PROMPT_UNITS_MAX);
    let surplus = utf16_units(&text).saturating_sub(PROMPT_UNITS_MAX);
    if surplus == 0 { text } else { with(taken.saturating_sub(surplus)).0 }
}

/// As many of the last iterations as fit in `room` UTF-16 units, each on a line.
fn earlier_iterations(accounts: &[IterationSummary], room: usize) -> String {
    let mut earlier = String::new();
    for account in accounts.iter().rev() {
        let longer = format!("- Iteration {}: {}.\n{earlier}", account.iteration, account.words);
        if utf16_units(&longer) > room {
            break;
        }
        earlier = longer;
    }
    earlier
}

/// The values for the rules of a claim, for what lies ahead of the iteration that begins, and for
/// the result of the last one.
pub fn rule_values(subject: &Loop, reader: PromptReader) -> Value {
    let (contract, state) = (&subject.contract, &subject.state);
    let (limits, last) = (&contract.limits, state.evidence.as_ref());
    let gates = last.iter().flat_map(|seen| seen.failing());
    let still = state.iterations_without_progress;
    // From half of the limit on.
    let is_still = limits.stall > 0 && still * 2 >= limits.stall;
    context! {
        reader,
        last,
        gate => gates.filter(|check| check.roles.contains(&Role::Gate)).map(|it| &it.run).next(),
        promise => contract.promise.as_ref().map(ToString::to_string),
        until => quote_checks(contract.of_role(Role::Until)),
        checks => quote_checks(contract.checks.iter().filter(|check| check.role != Role::Until)),
        every_check => quote_checks(contract.checks.iter()),
        no_worse => quote_checks(contract.checks.iter().filter(|check| check.no_worse)),
        protect => distinct_texts(contract.protect.iter().map(|glob| clip_line(glob, COMMAND_CHARS_MAX))),
        failures => if limits.failure_threshold > 0 { state.consecutive_failures } else { 0 },
        failure_threshold => limits.failure_threshold,
        still => if is_still { still } else { 0 },
        stall => limits.stall,
        last_of_all => limits::last_iteration_note(subject),
    }
}

fn quote_checks<'a>(checks: impl Iterator<Item = &'a Check>) -> Vec<String> {
    distinct_texts(checks.map(|check| format!("`{}`", clip_line(&check.run, COMMAND_CHARS_MAX))))
}

fn shell_command(crew: &Path) -> String {
    shell_word(&crew.display().to_string())
}

/// What the user said, for the agent.
fn user_says(subject: &Loop) -> String {
    let state = &subject.state;
    let last = state.evidence.iter().flat_map(|last| &last.words);
    let words = last.chain(state.messages.iter().take(state.told)).take(TOLD);
    let lines = words.map(|words| format!("The user says: {}\n", clip_line(words, MESSAGE_CHARS)));
    lines.collect::<Vec<_>>().concat()
}

fn clip_task(subject: &Loop, most: usize) -> String {
    let task = &subject.contract.task;
    if utf16_units(task) <= most {
        return task.clone();
    }
    let beginning = clip_at_word(task, most.min(TASK_BEGINNING));
    format!("{beginning}\n(The whole task is in {}.)", subject.place.task_file().display())
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
