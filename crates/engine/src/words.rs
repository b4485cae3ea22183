//! The texts made from a record for the next worker: prompts, handoffs, commit messages, the view
//! for other tools. What people read at a terminal is in `report`.

pub mod programs;

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use minijinja::{Value, context};

use crate::boundary::limits;
use crate::doctor::shell_word;
use crate::evidence::changes::Changes;
use crate::evidence::test_run::TestReport;
use crate::evidence::{CheckResult, Evidence, Verdict};
use crate::journal::story::IterationSummary;
use crate::record::{Check, Loop, MESSAGE_CHARS, Role};
use crate::text::templates::render_template;
use crate::text::{
    self, clean_text, clip_at_word, clip_line, count, distinct_texts, format_period,
    join_first_names, one_line, tail_of, utf16_units, with_reason,
};
use crate::view::Page;

/// Who reads about an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptReader {
    /// The session that ran it.
    Maker,
    /// A fresh process that knows nothing of it.
    Next,
}

/// The reason with which a question of the agent is refused; no text of the question is repeated.
pub const DECIDE_YOURSELF: &str = "Nobody is here to answer; crew keeps the question for the user. \
    Decide yourself what fits the task best, continue, and say in your final message what you \
    assumed. Only if no choice is safe without a person, end with BLOCKED and the reason, as crew's \
    rules say. An answer that comes later is in crew's next prompt.";

/// The maximum number of UTF-16 units in a prompt.
pub const PROMPT_UNITS_MAX: usize = 8_900;
/// A task longer than this many UTF-16 units is replaced by its beginning and its file's name: two
/// lines, because the client prints the prompt and the task is in the context.
const TASK_UNITS_SHORT: usize = 200;
/// The limit for the task where it is not in the context, in UTF-16 units; it leaves room for the
/// rest.
const TASK_UNITS_WHOLE: usize = 5_000;
/// How much of a task is shown that is too long for the context.
const TASK_BEGINNING: usize = 1_000;
/// The maximum number of units for earlier iterations.
const EARLIER_UNITS_MAX: usize = 2_000;
/// How many of the user's messages are shown: those that may wait, with one that comes with a
/// resume, and as many that the last prompt had.
const TOLD: usize = 12;
/// What they usually take; where they take more, the task takes less.
const TOLD_UNITS: usize = 2_100;
/// A longer command or glob is truncated to this many characters.
const COMMAND_CHARS_MAX: usize = 120;
/// Waits of a minute or more are shown in minutes.
const MINUTE: Duration = Duration::from_secs(60);

/// The beginning of the first line of every prompt in a session, by which the prompt is found again
/// in a transcript. It leaves out the maximum number of iterations, because the user may have
/// changed that since.
pub fn session_marker(subject: &Loop) -> String {
    format!("crew loop {}: iteration {}", subject.id, subject.iteration())
}

/// The text added to the task when a loop starts. `crew` is the program's path, which may not be on
/// the agent's search path: a session's own commands are for the user who types.
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
    let failing = subject.state.seen().evidence().iter().flat_map(Evidence::failing).next();
    let more = context! {
        task => clip_task(subject, TASK_UNITS_SHORT),
        folder => subject.place.folder.display().to_string(),
        failing => failing.map(|check| &check.run),
        failing_is_gate => failing.is_some_and(|check| check.roles.contains(&Role::Gate)),
    };
    render_prompt(subject, "next", &[], more)
}

/// The prompt for an agent whose context no longer has the task: after a compaction, or in the
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
    let last = subject.state.seen().evidence().as_ref();
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

/// As many of the last iterations as fit in `room` UTF-16 units, one a line.
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
    let (limits, last) = (&contract.limits, state.seen().evidence().as_ref());
    let gates = last.iter().flat_map(|seen| seen.failing());
    let still = state.counts().iterations_without_progress();
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
        failures => if limits.failure_threshold > 0 { state.counts().consecutive_failures() } else { 0 },
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
    let last = state.seen().evidence().iter().flat_map(|last| &last.words);
    let words = last
        .chain(state.exchange().messages().iter().take(state.exchange().in_prompt()))
        .take(TOLD);
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

/// A longer command is truncated to this many characters.
const NEWS_COMMAND_CHARS: usize = 160;
/// How many characters of an agent's standard error the next one reads.
const ERRORS_CHARS: usize = 1000;
/// How many failing checks are shown with their output.
const FAILING_SHOWN: usize = 8;
/// How many failing tests are named, each on a line.
const TESTS_NAMED: usize = 10;
/// How many characters of the names of changed files are shown.
const FILES_CHARS: usize = 300;
/// How many changed files are named.
const FILES_NAMED: usize = 6;

/// What crew saw, in at most `room` UTF-16 units: as many failing checks as fit, with as much of
/// their output.
pub fn describe_results(last: &Evidence, room: usize, reader: PromptReader) -> String {
    let failing: Vec<&CheckResult> = last.failing().collect();
    let passed = last.checks.iter().filter(|check| check.verdict == Verdict::Passed);
    let passed = passed.map(|check| format!("`{}`", clip_line(&check.run, NEWS_COMMAND_CHARS)));
    let values = context! {
        last,
        reader,
        who => if reader == PromptReader::Maker { "You" } else { "It" },
        other_failure => last.other_failure(),
        errors => tail_of(&last.errors, ERRORS_CHARS),
        changed => describe_changes(last),
        test_news => last.test_news().take(FAILING_SHOWN).collect::<Vec<_>>(),
        passed => passed.collect::<Vec<_>>(),
    };
    let text = |shown: usize, characters: usize| {
        let checks = failing[..shown].iter().map(|check| failed_values(check, characters));
        let (checks, hidden) = (checks.collect::<Vec<_>>(), failing.len() - shown);
        render_template("seen.j2", &context! { failing => checks, hidden, ..values.clone() })
    };
    let mut shown = failing.len().min(FAILING_SHOWN);
    let mut brief = text(shown, 0);
    while shown > 0 && utf16_units(&brief) > room {
        shown -= 1;
        brief = text(shown, 0);
    }
    // A character takes at most two units, and each line is indented by four.
    let mut characters = room.saturating_sub(utf16_units(&brief)) / (3 * shown.max(1));
    while shown > 0 && characters > 0 {
        let longer = text(shown, characters);
        if utf16_units(&longer) <= room {
            return longer;
        }
        characters /= 2;
    }
    brief
}

/// What an iteration changed, such as "left 1 new file, +1 −0: src/a.rs" or "changed nothing";
/// empty if it was not examined.
fn describe_changes(last: &Evidence) -> String {
    let Some(changes) = &last.changes else {
        return last
            .progress
            .worded(["changed files or commits", "changed nothing", ""])
            .to_owned();
    };
    let Some(words) = changes.change_words() else { return "changed nothing".to_owned() };
    let paths: Vec<String> = changes.files.iter().map(|file| file.path.clone()).collect();
    with_reason(
        &format!("left {words}"),
        &one_line(&join_first_names(&paths, FILES_NAMED), FILES_CHARS),
    )
}

/// A check that did not pass: "2 of 215 tests fail, the same in the last 3 runs", which, and the
/// end of what it printed.
fn failed_values(check: &CheckResult, characters: usize) -> Value {
    let tests = check.tests.as_ref().filter(|tests| tests.failed() > 0);
    let counted = tests.map(|tests| {
        let (of, verb) = (count(tests.total(), "test"), tests.verb());
        let same = match tests.same_failures() {
            0 | 1 => String::new(),
            runs => format!(", the same in the last {runs} runs"),
        };
        format!("{} of {of} {verb}{same}", tests.failed())
    });
    let names = tests.map(TestReport::failing);
    context! {
        run => check.run,
        happened => check.what_happened(),
        tests => counted,
        names => names.iter().flat_map(|it| it.first().iter().take(TESTS_NAMED)).collect::<Vec<_>>(),
        more => names.map_or(0, |it| (it.count() as usize).saturating_sub(TESTS_NAMED)),
        stuck => tests.and_then(TestReport::stuck_hint),
        tail => tail_of(&check.tail, characters),
    }
}

/// The message of the commit after the iteration that the loop's evidence is about.
pub fn commit_message(subject: &Loop) -> String {
    let last = subject.state.seen().evidence().as_ref();
    let checks = last.iter().flat_map(|last| &last.checks);
    let text = render_template(
        "commit.j2",
        &context! {
            id => subject.id,
            iteration => last.map_or(subject.state.counts().completed(), |last| last.iteration),
            task => subject.contract.task.trim_start(),
            procedure => subject.procedure(),
            last,
            checks => checks.map(|it| (&it.run, it.what_happened())).collect::<Vec<_>>(),
            test_news => last.iter().flat_map(|last| last.test_news()).collect::<Vec<_>>(),
        },
    );
    // `git log` prints it as it is, and an agent's reason may hold what no argument can.
    format!("{}\n", clean_text(&text).trim_end())
}

const AUTHOR: &str = "What the author of this page says (not checked)";
const NEEDS: &str = "Needs a person";
const NEXT: &str = "Next steps";
const CONTEXT: &str = "Context for resume";
/// A handoff's file name: `<type>-<UTC time>.md`.
pub fn file_name(kind: &str, at: DateTime<Utc>) -> String {
    format!("{kind}-{}.md", file_time(at))
}

/// A time as part of a file's name: `20261118T110640Z`.
pub fn file_time(at: DateTime<Utc>) -> String {
    at.format("%Y%m%dT%H%M%SZ").to_string()
}

/// Whether a page is one of this loop.
pub fn is_of(subject: &Loop, page: &str) -> bool {
    page.lines().any(|line| line == format!("loop: {}", subject.id))
}

/// Whether crew wrote a page, with all its facts.
pub fn is_whole(page: &str) -> bool {
    page.contains(&format!("\n## {CONTEXT}\n"))
}

/// The words of its author in a page.
pub fn authors_words(page: &str) -> Option<&str> {
    let (_, words) = page.split_once(&format!("\n## {AUTHOR}\n\n"))?;
    // They may have headings of their own, but none of these.
    let ends = [NEEDS, NEXT].map(|title| words.find(&format!("\n## {title}\n")));
    let end = ends.into_iter().flatten().min().unwrap_or(words.len());
    Some(words[..end].trim())
}

/// The page for a loop that ended or is handed over. `report` is its author's own text.
pub fn render_handoff(page: &Page, report: &str, kind: &str, at: DateTime<Utc>) -> String {
    let changes = page.changes.as_ref();
    let files = changes.iter().flat_map(|changes| &changes.files).map(|file| {
        context! { kind => file.kind.kind_word(), path => file.path, yours => file.yours }
    });
    let resume = page.resume.as_ref().map(|resume| {
        let mut steps = std::iter::once(&page.next).chain(&page.then).map(|step| &step.command);
        steps.find(|step| step.starts_with(resume)).unwrap_or(resume)
    });
    let values = context! {
        page,
        kind,
        timestamp => at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        // A branch may be named `@` or `true`, which mean something else in YAML.
        branch => page.branch.as_deref().map(|name| text::safe_json(&name.into())),
        took => text::format_duration(page.awake_ms.max(1000) / 1000 * 1000),
        titles => context! { author => AUTHOR, needs => NEEDS, next => NEXT, context => CONTEXT },
        report => lower_headings(report),
        changed => changes.and_then(Changes::change_words),
        files => files.collect::<Vec<_>>(),
        all_files => changes.map_or(0, Changes::file_count),
        resume,
    };
    render_template("handoff.j2", &values) + "\n"
}

/// Somebody's own words, with each heading that would pass for one of crew's a level below them.
fn lower_headings(report: &str) -> String {
    let crews = [NEEDS, NEXT, CONTEXT].map(|title| format!("## {title}"));
    let is_crews = |line: &str| crews.iter().any(|heading| heading == line.trim_end());
    let line = |line: &str| format!("{}{line}", if is_crews(line) { "#" } else { "" });
    report.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod prompt_tests;

#[cfg(test)]
mod news_tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::boundary::judge::judge_boundary;
    use crate::claim::Claim;
    use crate::fixture::{a_loop, a_loop_with, facts, result};
    use crate::record::Role;

    #[test]
    fn the_message_says_which_iteration_of_which_task_and_what_was_seen() {
        let mut subject = a_loop_with(&[("cargo test", Role::Gate), ("cargo fmt", Role::Verify)]);
        subject.contract.task = "\nBuild the todo API\n\nwith a list endpoint".to_owned();
        let mut ended = facts(Claim::Success);
        ended.checks =
            vec![result("cargo test", Verdict::Failed), result("cargo fmt", Verdict::Passed)];
        let subject = judge_boundary(&subject, &ended).after;
        assert_snapshot!(commit_message(&subject), @"
        crew: iteration 1 of loop haaaaaaa

        Build the todo API…

        - `cargo test` failed (exit 1)
        - `cargo fmt` passed
        - claim refused: `cargo test` failed (exit 1)
        - failed: gate `cargo test` failed
        ");
    }

    #[test]
    fn a_loop_without_evidence_has_a_commit_message_too() {
        assert_snapshot!(commit_message(&a_loop()), @"
        crew: iteration 0 of loop haaaaaaa

        Build the todo API
        ");
    }
}

#[cfg(test)]
mod handoff_tests;
