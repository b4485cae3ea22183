//! The prompts of a session: at the start, after each boundary, after a wait, and where the task is
//! no longer in the context. News comes first, the rule of the claim last. They are made only from
//! the loop. They stay short, because the client prints them whole, and under 9,000 UTF-16 units,
//! because the client replaces longer context by a stub.
//!
//! Nothing written here satisfies the grammar of a claim: the tag only ever appears inside a
//! sentence, and every prompt ends with one of crew's own sentences.

use std::path::Path;
use std::time::Duration;

use super::PromptReader;
use super::news::{first_step, seen, verdict};
use super::rules::{ahead, reminder, rules};
use crate::engine::doctor::shell_word;
use crate::engine::journal::account::Account;
use crate::engine::record::{Loop, MESSAGE_CHARS};
use crate::engine::text::{clip, clip_at_word, period, units};

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
/// Room for the line above what crew saw, with a claim's reason.
const HEADING_UNITS: usize = 1_100;
/// How many of the user's messages are shown: those that may wait, with one that comes with a
/// resume, and as many that the last prompt had.
const TOLD: usize = 12;
/// What they usually take; where they take more, the task takes less.
const TOLD_UNITS: usize = 2_100;

/// Waits of a minute or more are shown in minutes.
const MINUTE: Duration = Duration::from_secs(60);

/// The last sentences of prompts.
const START: &str = "Start now.";
const CONTINUE: &str = "Continue now.";

/// How the first line of every prompt of a session begins; it finds the prompt again in a
/// transcript. It leaves out the maximum of iterations, because the user may have changed that
/// since.
pub fn marker(subject: &Loop) -> String {
    format!("crew loop {}: iteration {}", subject.id, subject.iteration())
}

fn first_line(subject: &Loop) -> String {
    let max = subject.contract.limits.max_iterations;
    let of = if max > 0 { format!(" of {max}") } else { String::new() };
    format!("{}{of}.", marker(subject))
}

/// How the agent leaves a page, because a session's own commands are for the person who types.
/// `crew` is the program's path, which may not be on the agent's search path.
fn hand_off(crew: &Path) -> String {
    let crew = shell_word(&crew.display().to_string());
    format!("- A page for whoever continues: {crew} handoff task \"what is done, what is left\".\n")
}

/// The text added to the task when a loop starts.
pub fn start(subject: &Loop, crew: &Path) -> String {
    let file = subject.place.task_file();
    format!(
        "{}\n\nWork on the task you were just given until all of it is done; its exact words are in {}. Treat this as \
         unattended: decide what is yours to decide, and say in your message what you assumed. Each time you stop, \
         crew looks at what you did.\n\n{}{}{}{}",
        first_line(subject),
        file.display(),
        ahead(subject),
        rules(subject, PromptReader::Maker),
        hand_off(crew),
        START
    )
}

/// The prompt after a wait for the model's service. The client labels it as a hook's error, and the
/// task and the rules are in the context.
pub fn woken(subject: &Loop, waited: Duration) -> String {
    let seconds = waited.as_secs();
    let waited = period(if waited < MINUTE { seconds } else { seconds / 60 * 60 });
    format!(
        "{} Once more.\n\nThis is not an error and not your doing. The model's service refused a request, and crew \
         waited {waited}. Your last edit may be half done: look at `git status` and at the file you were in, then \
         continue where you were. Counters and limits are as before; commands you left running may have ended.\n{}\n\
         {}\n{CONTINUE}",
        first_line(subject),
        told(subject),
        reminder(subject)
    )
}

/// The prompt after a boundary that continues.
pub fn next(subject: &Loop) -> String {
    let last = subject.state.evidence.as_ref();
    let verdict = last.and_then(|last| verdict(last, PromptReader::Maker));
    let head = match verdict {
        Some(verdict) => format!("{} {verdict}\n\n", first_line(subject)),
        None => format!("{}\n\n", first_line(subject)),
    };
    let mut step = last.map_or_else(String::new, |last| first_step(subject, last));
    if !step.is_empty() {
        step.push('\n');
    }
    let task = task(subject, TASK_UNITS_SHORT);
    let tail =
        format!("{}{step}The task:\n{task}\n{}\n{CONTINUE}", ahead(subject), reminder(subject));
    let told = told(subject);
    let room = PROMPT_UNITS_MAX.saturating_sub(units(&head) + units(&tail) + units(&told));
    let seen = last.map_or_else(String::new, |it| seen(it, room, PromptReader::Maker));
    head + &seen + &told + "\n" + &tail
}

/// The prompt if the task is no longer in the agent's context: after a compaction, or in the
/// session that takes the loop over. `handoff` is the page of its previous owner, `accounts` are
/// the last iterations.
pub fn again(subject: &Loop, handoff: Option<&Path>, accounts: &[Account], crew: &Path) -> String {
    let handoff = handoff.map_or_else(String::new, |page| {
        format!("What was done before you came is in {}; read it first.\n", page.display())
    });
    let told = told(subject);
    let more = units(&told).saturating_sub(TOLD_UNITS);
    let task = task(subject, TASK_UNITS_WHOLE.saturating_sub(more));
    let head = format!("{}\n{handoff}\nThe task:\n{task}\n", first_line(subject));
    let rules = rules(subject, PromptReader::Maker);
    let hand_off = hand_off(crew);
    let tail = format!("{}How to finish:\n{rules}{hand_off}{CONTINUE}", ahead(subject));
    let last = subject.state.evidence.as_ref();
    let room = PROMPT_UNITS_MAX.saturating_sub(units(&head) + units(&tail) + units(&told));
    let earlier = earlier(accounts, room.min(EARLIER_UNITS_MAX));
    let room = room.saturating_sub(units(&earlier) + HEADING_UNITS);
    let mut news = last.map_or_else(String::new, |it| {
        let verdict = verdict(it, PromptReader::Maker).map(|it| format!(" {it}"));
        let (iteration, verdict) = (it.iteration, verdict.unwrap_or_default());
        let seen = seen(it, room, PromptReader::Maker);
        format!("After iteration {iteration}:{verdict}\n{seen}")
    }) + &told;
    if !news.is_empty() {
        news.push('\n');
    }
    head + &news + &earlier + &tail
}

/// What the user said, for the agent.
fn told(subject: &Loop) -> String {
    let state = &subject.state;
    let last = state.evidence.iter().flat_map(|last| &last.words);
    let words = last.chain(state.messages.iter().take(state.told)).take(TOLD);
    words.fold(String::new(), |text, words| {
        text + "The user says: " + &clip(words, MESSAGE_CHARS) + "\n"
    })
}

/// The last iterations, a line each, as many of the newest as fit.
fn earlier(accounts: &[Account], room: usize) -> String {
    let mut text = "What the last iterations came to:\n\n".to_owned();
    let (heading, mut lines) = (text.len() - 1, String::new());
    for account in accounts.iter().rev() {
        let line = format!("- Iteration {}: {}.\n", account.iteration, account.words);
        if units(&text) + units(&lines) + units(&line) > room {
            break;
        }
        lines.insert_str(0, &line);
    }
    text.insert_str(heading, &lines);
    if lines.is_empty() { lines } else { text }
}

fn task(subject: &Loop, most: usize) -> String {
    let task = &subject.contract.task;
    if units(task) <= most {
        return format!("{task}\n");
    }
    let beginning = clip_at_word(task, most.min(TASK_BEGINNING));
    format!("{beginning}\n(The whole task is in {}.)\n", subject.place.task_file().display())
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
