//! What crew saw at the last boundary, for the agent that made it or for the next one: each fact
//! once, what must be acted on first. What an agent said is quoted and called unchecked.

use std::fmt::Write as _;

use super::PromptReader;
use crate::engine::evidence::test_report::TestReport;
use crate::engine::evidence::{CheckResult, ClaimResult, Evidence, Verdict};
use crate::engine::record::{Loop, Role};
use crate::engine::text::{clip, count, named, one_line, tail_of, units};

/// A command longer than this many characters is shown cut.
const COMMAND_CHARS_MAX: usize = 160;
/// How many characters of an agent's standard error the next one reads.
const ERRORS_CHARS: usize = 1000;
/// How many failing checks are shown with their output.
const FAILING_SHOWN: usize = 8;
/// How many failing tests are named, each on a line.
const TESTS_NAMED: usize = 10;
/// How many characters of a test's name or of a line about tests are shown.
const TESTS_CHARS: usize = 300;
/// How many changed files are named.
const FILES_NAMED: usize = 6;
/// How many checks that passed are named.
const PASSED_NAMED: usize = 2;

/// The result of the last iteration, in one sentence; `None` if there is nothing to act on.
pub fn verdict(last: &Evidence, reader: PromptReader) -> Option<String> {
    let [your, you] = match reader {
        PromptReader::Maker => ["Your", "You"],
        PromptReader::Next => ["Its", "It"],
    };
    let gate = last.failing().find(|check| check.roles.contains(&Role::Gate));
    Some(match &last.claim {
        ClaimResult::Refused(_) => format!("{your} claim was not accepted."),
        ClaimResult::NearMiss(_) => "No claim was heard.".to_owned(),
        ClaimResult::Failure(why) => format!("{you} said FAILURE: {}.", clip(why, 500)),
        ClaimResult::Blocked(why) => format!("{you} said BLOCKED: {}.", clip(why, 500)),
        ClaimResult::None | ClaimResult::Accepted => {
            format!("A gate failed: `{}`.", clip(&gate?.run, COMMAND_CHARS_MAX))
        }
    })
}

/// What crew saw, in at most `room` UTF-16 units: whole lines.
pub fn seen(last: &Evidence, room: usize, reader: PromptReader) -> String {
    let mut text = reasons(last);
    let who = if reader == PromptReader::Maker { "You" } else { "It" };
    let is_asked = reader == PromptReader::Next || last.checks.is_empty();
    if let Some(changed) = changed(last).filter(|_| is_asked) {
        let _ = writeln!(text, "{who} {changed}.");
    }
    if last.checks.is_empty() && last.claim == ClaimResult::None && last.failure.is_none() {
        let _ = writeln!(text, "{who} made no claim.");
    }
    for news in last.test_news().take(FAILING_SHOWN) {
        let _ = writeln!(text, "{}.", clip(&news, TESTS_CHARS));
    }
    let failing = failing(last, room.saturating_sub(units(&text)));
    text.push_str(&failing);
    text.push_str(&passed(last));
    text
}

/// "left 1 new file, +1 −0: src/a.rs", "changed nothing"; `None` where nobody looked.
fn changed(last: &Evidence) -> Option<String> {
    let Some(changes) = &last.changes else {
        let changed = last.progress.worded(["changed files or commits", "changed nothing", ""]);
        return Some(changed.to_owned()).filter(|changed| !changed.is_empty());
    };
    let Some(words) = changes.words() else { return Some("changed nothing".to_owned()) };
    let paths: Vec<String> = changes.files.iter().map(|file| file.path.clone()).collect();
    let paths = one_line(&named(&paths, FILES_NAMED), TESTS_CHARS);
    Some(if paths.is_empty() { format!("left {words}") } else { format!("left {words}: {paths}") })
}

/// Why a claim was refused or an iteration failed, where no failing check shows it.
fn reasons(last: &Evidence) -> String {
    let mut text = String::new();
    let is_shown = last.failing().next().is_some();
    match &last.claim {
        ClaimResult::Refused(why) if why.is_empty() => {
            text.push_str("Its checks could not be run to their end. That is not your fault.\n");
        }
        ClaimResult::Refused(why) if !is_shown && last.failure.is_none() => {
            let _ = writeln!(text, "{}.", clip(why, 600));
        }
        ClaimResult::NearMiss(miss) => {
            let _ = writeln!(text, "{}.", clip(miss, 600));
        }
        _ => {}
    }
    if last.cut {
        text.push_str("The answer was cut by the token limit; what it changed is there. Carry on from there.\n");
    }
    if let Some(how) = &last.ended {
        let _ = writeln!(text, "It was not run to its end: {how}. What it changed is there.");
    }
    let is_told = matches!(last.claim, ClaimResult::Failure(_));
    if let Some(failure) = last.other_failure().filter(|_| !is_told) {
        let _ = writeln!(text, "The iteration counts as a failure: {}.", clip(failure, 500));
        let errors = tail_of(&last.errors, ERRORS_CHARS);
        if !errors.is_empty() {
            text.push_str("  Its last lines on standard error:\n");
            errors.lines().for_each(|line| text.extend(["    ", line, "\n"]));
        }
    }
    text
}

/// "`cargo clippy` passed."
fn passed(last: &Evidence) -> String {
    let passed = last.checks.iter().filter(|check| check.verdict == Verdict::Passed);
    let names: Vec<String> =
        passed.map(|check| format!("`{}`", clip(&check.run, COMMAND_CHARS_MAX))).collect();
    match names.len() {
        0 => String::new(),
        all if all > PASSED_NAMED => format!("{} passed.\n", count(all as u64, "check")),
        _ => format!("{} passed.\n", names.join(" and ")),
    }
}

fn failing(last: &Evidence, room: usize) -> String {
    let shown: Vec<&CheckResult> = last.failing().take(FAILING_SHOWN).collect();
    let heads: Vec<String> = shown.iter().map(|check| head(check)).collect();
    let spent: usize = heads.iter().map(|head| units(head) + 40).sum();
    // A character takes at most two units, and each line is indented by four.
    let each = room.saturating_sub(spent) / (3 * shown.len().max(1));
    let mut text = String::new();
    let mut hidden = last.failing().count();
    for (check, head) in shown.iter().zip(heads) {
        if units(&text) + units(&head) + 40 > room {
            break;
        }
        hidden -= 1;
        text.push_str(&head);
        text.push_str(&tail(check, each));
    }
    if hidden > 0 {
        let _ = writeln!(text, "{hidden} more did not pass.");
    }
    text
}

/// "`cargo test` failed (exit 101): 2 of 215 tests fail, the same in the last 3 runs", and which.
fn head(check: &CheckResult) -> String {
    let mut text = format!("`{}` {}", clip(&check.run, COMMAND_CHARS_MAX), check.what_happened());
    let tests = check.tests.as_ref().filter(|tests| tests.failed > 0);
    if let Some(tests) = tests {
        let of = count(tests.total(), "test");
        let _ = write!(text, ": {} of {of} {}", tests.failed, tests.verb());
        if tests.same_failures > 1 {
            let _ = write!(text, ", the same in the last {} runs", tests.same_failures);
        }
    }
    text.push_str(".\n");
    for name in tests.iter().flat_map(|tests| tests.failing.first.iter().take(TESTS_NAMED)) {
        let _ = writeln!(text, "    {}", clip(name, TESTS_CHARS));
    }
    if let Some(more) =
        tests.map(|tests| tests.failing.count as usize).filter(|it| *it > TESTS_NAMED)
    {
        let _ = writeln!(text, "    and {} more", more - TESTS_NAMED);
    }
    if let Some(line) = tests.and_then(TestReport::stuck) {
        let _ = writeln!(text, "  {}.", clip(&line, TESTS_CHARS));
    }
    text
}

/// The end of what a check printed, in at most three units for each of `characters`.
fn tail(check: &CheckResult, characters: usize) -> String {
    let tail = tail_of(&check.tail, characters);
    if tail.is_empty() {
        return tail;
    }
    let mut text = "  Its last lines:\n".to_owned();
    let mut left = characters * 3;
    for line in tail.lines() {
        let line = format!("    {line}\n");
        left = left.saturating_sub(units(&line));
        if left == 0 {
            break;
        }
        text.push_str(&line);
    }
    text
}

/// What to do before anything else.
pub fn first_step(subject: &Loop, last: &Evidence) -> String {
    let Some(check) = last.failing().next() else { return String::new() };
    let run = clip(&check.run, COMMAND_CHARS_MAX);
    if matches!(last.claim, ClaimResult::Refused(_)) {
        return format!(
            "Fix the cause of this first, and run `{run}` before you claim again. If it passes when you run it, \
             find what differs: crew runs it as `sh -c` in {} with no input.\n",
            subject.place.folder.display()
        );
    }
    if check.roles.contains(&Role::Gate) {
        return format!(
            "Fix this before anything else: run `{run}` until it passes, and turn no warning off to get there. A \
             claim is heard only when every gate passes.\n"
        );
    }
    format!("Start with `{run}`.\n")
}
