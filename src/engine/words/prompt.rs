//! The prompts an agent gets: in a session at the start and after each boundary, and the parts that
//! fresh processes get, too. They are made only from the loop. A session's prompts stay short,
//! because the client prints them whole, and under 9,000 UTF-16 units, because the client replaces
//! longer context by a stub.
//!
//! Nothing written here satisfies the grammar of a claim: the tag only ever appears inside a
//! sentence, and every prompt ends with one of crew's own sentences.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::engine::boundary::limits;
use crate::engine::evidence::{CheckResult, ClaimResult, Evidence};
use crate::engine::journal::account::Account;
use crate::engine::record::{Loop, Role};
use crate::engine::text::{clip, clip_at_word, count, distinct, period, tail_of, units};

/// The most UTF-16 units a prompt may have.
pub const PROMPT_UNITS_MAX: usize = 8_900;
/// A task longer than this many UTF-16 units is replaced by its beginning and its file's name.
const TASK_UNITS_MAX: usize = 1_000;
/// The same limit if the task is not in the context; it leaves room for the rest.
const TASK_UNITS_WHOLE: usize = 5_000;
/// The most of it that earlier iterations take.
const EARLIER_UNITS_MAX: usize = 2_000;
/// How many characters of an agent's standard error the next one reads.
const ERRORS_CHARS: usize = 1000;
/// A command longer than this many characters is shown cut.
const COMMAND_CHARS_MAX: usize = 160;
/// How many characters of a line about tests are shown.
const TESTS_CHARS: usize = 600;
/// How many failing checks are shown with their output.
const FAILING_SHOWN: usize = 8;

/// Waits of a minute or more are shown in minutes.
const MINUTE: Duration = Duration::from_secs(60);

/// The heading of the claim's rules.
const HOW: &str = "How to finish:\n";
/// The last sentence of every prompt of a session.
const GO_ON: &str = "Now go on with the task.";

/// Who reads about an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptReader {
    /// The session that ran it.
    Maker,
    /// A fresh process that knows nothing of it.
    Next,
}

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

/// The text added to the task when a loop starts. `typed` is the command that started it.
pub fn start(subject: &Loop, typed: &str) -> String {
    let mut text = first_line(subject);
    let file = subject.place.task_file();
    let _ = write!(
        text,
        "\nThe task is the text given to {typed} without its options; its exact words are in {}.\n\
         When you stop, crew looks at what you did and gives you the task again, until it is done.\n",
        file.display()
    );
    text + &closing(subject)
}

/// The end of every prompt of a session.
fn closing(subject: &Loop) -> String {
    [&ahead(subject), HOW, &rules(subject, PromptReader::Maker), GO_ON].concat()
}

/// The prompt after a wait for the model's service. The client labels it as a hook's error.
pub fn woken(subject: &Loop, waited: Duration) -> String {
    let seconds = waited.as_secs();
    let waited = period(if waited < MINUTE { seconds } else { seconds / 60 * 60 });
    let why = format!(
        "This is no error of yours. The model's service refused a request and crew waited {waited}. This is \
         iteration {} again; look at what is already in the tree, then continue.\n",
        subject.iteration()
    );
    compose(subject, &why, TASK_UNITS_MAX, &[])
}

/// The prompt after a boundary that continues.
pub fn next(subject: &Loop) -> String {
    compose(subject, "", TASK_UNITS_MAX, &[])
}

/// The prompt if the task is no longer in the agent's context: after a compaction, or in the
/// session that takes the loop over. `handoff` is the page of its previous owner, `accounts` are
/// the last iterations.
pub fn again(subject: &Loop, handoff: Option<&Path>, accounts: &[Account]) -> String {
    let handoff = handoff.map_or_else(String::new, |page| {
        format!("What was done before you came is in {}; read it first.\n", page.display())
    });
    compose(subject, &handoff, TASK_UNITS_WHOLE, accounts)
}

fn compose(subject: &Loop, before: &str, task_units: usize, accounts: &[Account]) -> String {
    let task = task(subject, task_units);
    let head = format!("{}\n{before}\nThe task:\n{task}\n", first_line(subject));
    let tail = closing(subject);
    let room = PROMPT_UNITS_MAX.saturating_sub(units(&head) + units(&tail));
    let earlier = earlier(accounts, room.min(EARLIER_UNITS_MAX));
    let room = room.saturating_sub(units(&earlier));
    let last = subject.state.evidence.as_ref();
    let seen = last.map_or_else(String::new, |it| seen(it, room, PromptReader::Maker) + "\n");
    head + &seen + &earlier + &tail
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
    let beginning = clip_at_word(task, TASK_UNITS_MAX);
    format!("{beginning}\n(The whole task is in {}.)\n", subject.place.task_file().display())
}

/// What crew saw at a boundary, in at most `room` UTF-16 units: a list under its own heading.
pub fn seen(last: &Evidence, room: usize, reader: PromptReader) -> String {
    let mut text = format!("What crew saw after iteration {}:\n", last.iteration);
    text.push_str(&claim(last, reader));
    if last.cut {
        text.push_str(
            "- The answer was cut by the token limit; what it changed is there. Carry on from there.\n",
        );
    }
    if let Some(how) = &last.ended {
        let _ = writeln!(text, "- It was not run to its end: {how}. Carry on from what is there.");
    }
    if let Some(failure) = &last.failure {
        let _ = writeln!(text, "- The iteration counts as a failure: {}.", clip(failure, 500));
        let errors = tail_of(&last.errors, ERRORS_CHARS);
        if !errors.is_empty() {
            text.push_str("  Its last lines on standard error:\n");
            errors.lines().for_each(|line| text.extend(["    ", line, "\n"]));
        }
    }
    if last.checks.is_empty() && last.claim == ClaimResult::None && last.failure.is_none() {
        let changed = ["Files or commits changed; ", "No file and no commit changed; ", ""];
        let changed = last.progress.worded(changed);
        let [who, at_the_start, _] = reader.named();
        let who = if changed.is_empty() { at_the_start } else { who };
        let _ = writeln!(text, "- {changed}{who} made no claim.");
    }
    if reader == PromptReader::Maker {
        for words in last.words.iter().take(5) {
            let _ = writeln!(text, "- The user says: {}", clip(words, 400));
        }
    }
    let passed = last.checks.len() - last.failing().count();
    if passed > 0 {
        let _ = writeln!(text, "- {passed} of {} checks passed.", last.checks.len());
    }
    for news in last.test_news().take(FAILING_SHOWN) {
        let _ = writeln!(text, "- {}.", clip(&news, TESTS_CHARS));
    }
    let room = room.saturating_sub(units(&text));
    text.push_str(&failing(last, room));
    text
}

fn claim(last: &Evidence, reader: PromptReader) -> String {
    let [_, who, whose] = reader.named();
    match &last.claim {
        ClaimResult::None => String::new(),
        ClaimResult::Accepted => format!("- {whose} claim was heard.\n"),
        ClaimResult::Refused(because) if because.is_empty() => {
            format!("- {whose} claim was refused: its checks could not be run to their end.\n")
        }
        // No failed check and no failure shows the reason.
        ClaimResult::Refused(because)
            if last.failing().next().is_none() && last.failure.is_none() =>
        {
            format!("- {whose} claim was refused: {}.\n", clip(because, 500))
        }
        ClaimResult::Refused(_) => format!("- {whose} claim was refused.\n"),
        ClaimResult::Failure(because) => format!("- {who} said FAILURE: {}\n", clip(because, 500)),
        ClaimResult::Blocked(because) => format!("- {who} said BLOCKED: {}\n", clip(because, 500)),
        ClaimResult::NearMiss(miss) => format!("- No claim was heard: {}.\n", clip(miss, 600)),
    }
}

impl PromptReader {
    /// Within a sentence, at its start, and as a possessive.
    fn named(self) -> [&'static str; 3] {
        if self == Self::Maker { ["you", "You", "Your"] } else { ["it", "It", "Its"] }
    }
}

fn failing(last: &Evidence, room: usize) -> String {
    let shown: Vec<&CheckResult> = last.failing().take(FAILING_SHOWN).collect();
    let mut heads = Vec::new();
    for check in &shown {
        let roles: Vec<&str> = check.roles.iter().map(|role| role.label()).collect();
        let run = clip(&check.run, COMMAND_CHARS_MAX);
        let mut head = format!("- `{run}` ({}) {}.\n", roles.join(", "), check.what_happened());
        let tests = check.tests.iter().flat_map(|tests| [tests.still_failing(), tests.stuck()]);
        for line in tests.flatten() {
            let _ = writeln!(head, "  {}.", clip(&line, TESTS_CHARS));
        }
        heads.push(head);
    }
    let spent: usize = heads.iter().map(|head| units(head) + 40).sum();
    // A character takes at most two units, and each line is indented by four.
    let each = room.saturating_sub(spent) / (3 * shown.len().max(1));
    let mut text = String::new();
    for (check, head) in shown.iter().zip(heads) {
        text.push_str(&head);
        let tail = tail_of(&check.tail, each);
        if !tail.is_empty() {
            text.push_str("  Its last lines:\n");
            let mut left = each * 3;
            for line in tail.lines() {
                let line = format!("    {line}\n");
                left = left.saturating_sub(units(&line));
                if left == 0 {
                    break;
                }
                text.push_str(&line);
            }
        }
    }
    let hidden = last.failing().count() - shown.len();
    if hidden > 0 {
        let _ = writeln!(text, "- {hidden} more did not pass.");
    }
    text
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
    (row > 0 && most > 0)
        .then(|| format!("Failed iterations in a row: {row}; {most} end the loop as aborted."))
}

fn last(subject: &Loop) -> Option<String> {
    let what = limits::last(subject)?;
    let then = match subject.contract.promise {
        Some(_) => "If work is left, make no claim; write down where it stands.",
        None => "Write down where the work stands.",
    };
    Some(format!("{what} {then}"))
}

/// From half of the stall limit on: asks for another approach, or BLOCKED. `None` before.
fn nudge(subject: &Loop) -> Option<String> {
    let stall = subject.contract.limits.stall;
    let still = subject.state.iterations_without_progress;
    (stall > 0 && still > 0 && still * 2 >= stall).then(|| {
        format!(
            "Nothing changed in the last {}; after {stall} the loop ends as stalled. \
             Try another approach, or say what blocks you.",
            count(still, "iteration")
        )
    })
}

/// The rules of the claim, and how to report a block honestly: whole lines.
pub fn rules(subject: &Loop, reader: PromptReader) -> String {
    let mut text = String::new();
    let line = if let Some(promise) = &subject.contract.promise {
        let _ = writeln!(
            text,
            "- When the whole task is done, and only then, let the last line of your final message be \
             <promise>{promise}</promise> alone, outside code blocks and quotes.{}",
            proof_rule(subject)
        );
        "that line"
    } else {
        text.push_str(match reader {
            PromptReader::Maker => {
                "- No claim of yours ends this loop; go on until it stops asking.\n"
            }
            PromptReader::Next => "- No claim of yours ends this loop; do this iteration's part.\n",
        });
        "the last line of your final message"
    };
    let goes_on = subject.contract.promise.is_some() && limits::last(subject).is_none();
    if reader == PromptReader::Next && goes_on {
        text.push_str(
            "- If work is left after this iteration's part, make no claim: the next iteration goes on.\n",
        );
    }
    text.push_str(&until_rule(subject));
    let _ = writeln!(
        text,
        "- If only a person can help, let {line} be <promise>BLOCKED: the reason</promise>; if this \
         iteration failed, <promise>FAILURE: the reason</promise>. Both are honest; an untrue claim is not."
    );
    text
}

fn until_rule(subject: &Loop) -> String {
    let until = subject.contract.of_role(Role::Until).take(4);
    let runs: Vec<String> =
        until.map(|check| format!("`{}`", clip(&check.run, COMMAND_CHARS_MAX))).collect();
    let verb = if runs.len() == 1 { "passes" } else { "pass" };
    match (runs.is_empty(), &subject.contract.promise) {
        (true, _) => String::new(),
        (_, None) => format!("- The loop ends by itself when {} {verb}.\n", runs.join(" and ")),
        (_, Some(_)) => format!(
            "- The loop ends by itself when {} {verb}; until then no claim ends it.\n",
            runs.join(" and ")
        ),
    }
}

fn proof_rule(subject: &Loop) -> String {
    let checks = subject.contract.checks.iter().filter(|check| check.role != Role::Until);
    let mut commands = distinct(checks.map(|it| format!("`{}`", clip(&it.run, COMMAND_CHARS_MAX))));
    let hidden = commands.len().saturating_sub(6);
    commands.truncate(6);
    let text = match (commands.is_empty(), hidden) {
        (true, _) => String::new(),
        (_, 0) => format!(" crew then runs {} itself and believes only that.", commands.join(", ")),
        _ => format!(" crew then runs {} and {hidden} more itself.", commands.join(", ")),
    };
    let no_worse = subject.contract.checks.iter().filter(|check| check.no_worse);
    let no_worse: Vec<String> =
        no_worse.map(|it| format!("`{}`", clip(&it.run, COMMAND_CHARS_MAX))).collect();
    if no_worse.is_empty() {
        return text;
    }
    format!("{text} Tests of {} that failed before the loop may still fail.", no_worse.join(", "))
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
