//! What happened to tests, checks, files, commits, pushes and messages: the rows below the
//! iterations, whose text is in `templates/results.j2`.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use minijinja::{Value, context};
use serde::Serialize;

use crate::evidence::changes::{Changes, Commits};
use crate::evidence::test_run::{TestMemory, TestStatus};
use crate::evidence::{
    CUT, CheckResult, ClaimResult, Evidence, IterationStatus, Verdict, describe_files,
};
use crate::journal::story::{Chapter, Iteration, Story, StoryDriver, StoryEvent};
use crate::journal::{Choice, NoteKind};
use crate::record::LoopStep;
use crate::record::{Driver, Loop, Proof};
use crate::text::templates;
use crate::text::{clip_line, one_line, tail_of, with_reason};
use crate::view::{ChangesFrom, Fact, LoopView, PageCheck, PageInputs};

/// The maximum number of names of failing tests.
const NAMED: usize = 5;
/// The maximum length of a failed check's output, in characters.
const TAIL_CHARS: usize = 600;
/// The longest path, in characters.
const PATH_CHARS: usize = 300;
/// The maximum length of a person's message, in characters.
pub const TOLD_CHARS: usize = 200;

/// The rows about the results.
pub fn result_facts(inputs: &PageInputs<'_>, checks: &[PageCheck]) -> Vec<Fact> {
    let record = inputs.view.record;
    let (state, ending) = (&record.state, record.state.end().ending().as_ref());
    let errors = state.seen().evidence().as_ref().map_or("", |seen| &seen.errors);
    let files = inputs.changes.map_or(&[][..], |changes| &changes.files);
    let [large, inside] = left_out(inputs);
    let was_fixed = |run: &str| {
        let memory = state.seen().checks().get(run);
        memory.is_some_and(|it| it.ever_failed() && it.last() == Verdict::Passed)
    };
    let checks = checks.iter().map(|check| {
        context! {
            run => check.run,
            role => check.role,
            happened => describe_last_result(&inputs.view, &check.run),
            was_fixed => was_fixed(&check.run),
        }
    });
    let values = context! {
        tests => inputs.tests.iter().map(test_values).collect::<Vec<_>>(),
        red => red_check(&inputs.view),
        errors => end_lines(errors),
        checks => checks.collect::<Vec<_>>(),
        // Only a check that had failed is refused for a change of its tests.
        is_refused =>
            ending.is_some_and(|ending| ending.reason.is_of_test_changes()),
        changed => inputs.changes.and_then(Changes::change_words),
        files => files.iter().map(|file| {
            context! { kind => file.kind.kind_word(), name => file.short_name(PATH_CHARS), yours => file.yours }
        }).collect::<Vec<_>>(),
        all_files => inputs.changes.map_or(0, Changes::file_count),
        large,
        inside,
        most => Commits::MOST,
        own_branch => record.branch(),
        ignored => inputs.commits.ignored.values().sum::<u64>(),
        notes => list_notes(inputs),
        agents => record.describe_shares(),
        messages => list_messages(inputs.story),
        ..Value::from_serialize(inputs.commits),
    };
    let view = Value::from_serialize(&inputs.view);
    templates::template_rows("results.j2", &context! { ..values, ..view })
}

/// What happened to the tests of a check, by name.
fn test_values((run, memory): (&String, &TestMemory)) -> Value {
    let TestMemory { first, last, .. } = memory;
    let became = |from: TestStatus, to: TestStatus| {
        let was = |name: &&str| first.tests.get(*name) == Some(&from);
        last.names_with(to).filter(was).collect::<Vec<_>>()
    };
    let is_whole = first.names_all() && last.names_all();
    let new = last.tests.keys().filter(|name| is_whole && !first.tests.contains_key(*name));
    let gone = first.tests.keys().filter(|name| is_whole && !last.tests.contains_key(*name));
    context! {
        run,
        before => first.total(),
        now => last.total(),
        new => new.collect::<Vec<_>>(),
        fixed => became(TestStatus::Failed, TestStatus::Passed),
        broken => became(TestStatus::Passed, TestStatus::Failed),
        gone => gone.collect::<Vec<_>>(),
        skipped => became(TestStatus::Passed, TestStatus::Skipped),
    }
}

/// The first check that does not pass, with its tests by name and the end of what it printed.
fn red_check(view: &LoopView<'_>) -> Option<Value> {
    let state = &view.record.state;
    let (run, tail, names) = if let Some(seen) = state.seen().evidence() {
        let check = seen.failing().next()?;
        let failing = check.tests.as_ref().map(|tests| tests.failing().join_names(NAMED));
        (&check.run, &check.tail, failing)
    } else {
        let (run, memory) =
            state.seen().checks().iter().find(|(_, it)| it.last() != Verdict::Passed)?;
        (run, &memory.tail, None)
    };
    Some(
        context! { run, names, happened => describe_last_result(view, run), tail => end_lines(tail) },
    )
}

/// "`npm test` failed (exit 1)": the last result of a check.
fn describe_last_result(view: &LoopView<'_>, run: &str) -> String {
    let doing = view.doing.as_ref().filter(|doing| doing.step == LoopStep::Check);
    let what = match view.record.last_of(run) {
        _ if doing.is_some_and(|doing| doing.run == run) => "is running".to_owned(),
        Some(last) => last,
        None if view.record.is_live() => "has not run yet".to_owned(),
        None => "never ran".to_owned(),
    };
    format!("`{}` {what}", clip_line(run, 100))
}

/// The last lines of a string.
fn end_lines(text: &str) -> Vec<String> {
    tail_of(text, TAIL_CHARS).lines().map(str::to_owned).collect()
}

/// The large files and the repositories inside that changed in an iteration, or may have.
fn left_out(inputs: &PageInputs<'_>) -> [Vec<String>; 2] {
    let known = inputs.view.record.state.seen().trees().repositories();
    let [mut large, mut inside] = [BTreeSet::new(), BTreeSet::new()];
    for changes in inputs.story.iterations().filter_map(|it| it.evidence.changes.as_ref()) {
        large.extend(changes.left_out.iter().map(|path| one_line(path, PATH_CHARS)));
        inside.extend(changes.repositories.iter().map(|path| {
            let is_left = known.get(path).is_some_and(|it| it.uncommitted.is_some());
            let left = if is_left { " (not committed there)" } else { "" };
            one_line(path, PATH_CHARS) + left
        }));
    }
    [large, inside].map(|paths| paths.into_iter().collect())
}

/// What the journal says about the tree since the last iteration: that the files above are not what
/// is there, or that a person's changes may be among them.
fn list_notes(inputs: &PageInputs<'_>) -> Vec<String> {
    let rest = inputs.story.chapters().iter().rev().map(Chapter::what);
    let rest = rest.take_while(|what| !matches!(what, StoryEvent::Iteration(_)));
    let notes = rest.filter_map(|what| match what {
        StoryEvent::Noted { about, .. } => about.of_the_tree(),
        _ => None,
    });
    let mut notes: Vec<String> = notes.collect();
    if notes.is_empty() && inputs.changes_from == ChangesFrom::Tree {
        notes.push("the tree changed since the loop left it".to_owned());
    }
    notes
}

// The messages that a person sent to the agent, and the prompt that each of them was in.

#[derive(Serialize)]
struct Message<'a> {
    words: &'a str,
    /// The first iteration that had the message in its prompt.
    prompt: Option<u32>,
}

fn list_messages(story: &Story) -> Vec<Message<'_>> {
    let mut messages: Vec<Message<'_>> = Vec::new();
    let first = story.drivers().iter().next();
    let (mut driver, mut iteration) = (first.map(StoryDriver::driver), 1);
    for chapter in story.chapters().iter() {
        match chapter.what() {
            StoryEvent::Message { words } => messages.push(Message { words, prompt: None }),
            StoryEvent::Changed { about, by, .. } => {
                driver = by.as_ref().map(StoryDriver::driver).or(driver);
                if let NoteKind::Delivered | NoteKind::ResumedInSession | NoteKind::Woken(_) = about
                {
                    mark_delivered(&mut messages, iteration);
                }
            }
            StoryEvent::Iteration(it) => {
                // They wait in line, so those that an iteration left are the last. It had the
                // others.
                let left = it.evidence.words.len();
                let left = messages.len() - left.min(messages.len());
                let (had, left) = messages.split_at_mut(left);
                mark_delivered(had, it.number);
                for message in left.iter_mut() {
                    message.prompt = None;
                }
                iteration = it.number + 1;
                // A session gets the next prompt as the answer to its stop.
                if driver == Some(Driver::Session) && it.decision == Choice::Continue {
                    mark_delivered(left, iteration);
                }
            }
            _ => {}
        }
    }
    messages
}

fn mark_delivered(messages: &mut [Message<'_>], iteration: u32) {
    for message in messages {
        message.prompt.get_or_insert(iteration);
    }
}

/// The maximum number of lines on a page; the newest are kept.
pub const LINES_MAX: usize = 12;
/// The longest words of an agent in a line, in characters.
const SAID_CHARS: usize = 200;

/// One iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IterationLine {
    pub number: u32,
    pub status: IterationStatus,
    pub started_at: Option<DateTime<Utc>>,
    pub elapsed_ms: u64,
    /// The agent's exit status; `None` if it did not exit by itself.
    pub exit: Option<i32>,
    /// Why it did not run or did not finish; not written if it finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Who worked; not written in a loop with one agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// How full the agent's context was at most; not written where the agent does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_percent: Option<u8>,
    /// The changed files: "4 files, 1 new", "src/tax.rs", "nothing".
    pub files: String,
    /// The results of the checks: "2 of 215 fail", "passes"; empty where no check ran.
    pub checks: String,
    pub said: LastWords,
}

/// The text about an iteration's end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "by", content = "words")]
pub enum LastWords {
    /// crew's text: "claimed, refused".
    Crew(String),
    /// The agent's own words, unchecked.
    Agent(String),
    #[default]
    Nothing,
}

/// The newest lines of a story.
pub fn newest_lines(record: &Loop, story: &Story, most: usize) -> Vec<IterationLine> {
    let proof = record.state.end().ending().as_ref().and_then(|ending| ending.proof);
    let mut lines: Vec<_> =
        story.iterations().map(|it| IterationLine::from_iteration(it, proof)).collect();
    lines.drain(..lines.len().saturating_sub(most));
    lines
}

impl IterationLine {
    /// The line of an iteration; `proof` is the loop's proof, for the iteration that ended it.
    pub fn from_iteration(iteration: &Iteration, proof: Option<Proof>) -> Self {
        let evidence = &iteration.evidence;
        Self {
            number: iteration.number,
            status: evidence.status,
            started_at: evidence.started_at,
            elapsed_ms: iteration.elapsed_ms,
            exit: evidence.exit,
            skipped: evidence.skipped.clone(),
            agent: evidence.agent.clone(),
            cost: evidence.cost(),
            context_percent: evidence.context_percent,
            files: evidence
                .changes
                .as_ref()
                .map_or_else(|| describe_progress(evidence), describe_files),
            checks: describe_checks(evidence),
            said: last_words(iteration, proof),
        }
    }
}

/// Whether anything changed, for where it is not known what.
fn describe_progress(evidence: &Evidence) -> String {
    evidence.progress.worded(["something", "nothing", ""]).to_owned()
}

/// What the checks reported, in a few words; empty if none ran.
fn describe_checks(evidence: &Evidence) -> String {
    let failing: Vec<&CheckResult> = evidence.failing().collect();
    match (&failing[..], evidence.checks.len()) {
        ([], 0) => String::new(),
        ([], _) => {
            let ran = evidence.checks.iter().filter_map(|check| check.tests.as_ref());
            match ran.map(|tests| u64::from(tests.passed())).sum::<u64>() {
                0 => "passes".to_owned(),
                1 => "1 test passes".to_owned(),
                passed => format!("{passed} tests pass"),
            }
        }
        ([check, ..], _) => describe_failure(check),
    }
}

/// How a check failed: "2 of 215 fail", "lint fails".
fn describe_failure(check: &CheckResult) -> String {
    if let Some(tests) = check.tests.as_ref().filter(|tests| tests.failed() > 0) {
        return format!("{} of {} {}", tests.failed(), tests.total(), tests.verb());
    }
    match check.verdict {
        Verdict::TimedOut => "timed out".to_owned(),
        Verdict::Unknown => "did not finish".to_owned(),
        Verdict::Failed | Verdict::Passed => "fails".to_owned(),
    }
}

fn last_words(iteration: &Iteration, proof: Option<Proof>) -> LastWords {
    let evidence = &iteration.evidence;
    let is_end = iteration.decision == Choice::Finish;
    // A failed gate stands in the column of the checks.
    let whole = if evidence.said.is_none() { evidence.failure.as_deref() } else { None };
    let failure = evidence.other_failure().or(whole);
    let summary = match (&evidence.claim, failure) {
        (ClaimResult::Accepted, _) => {
            let proof = match proof {
                Some(Proof::Claimed) if is_end => "unchecked",
                Some(proof) if is_end => proof.label(),
                _ => "accepted",
            };
            Some(format!("claimed, {proof}"))
        }
        (ClaimResult::Refused(_), _) => Some("claimed, refused".to_owned()),
        (ClaimResult::NearMiss(_), _) => Some("claim not recognized".to_owned()),
        (ClaimResult::Blocked(_), _) => Some("blocked".to_owned()),
        (ClaimResult::Failure(why), _) => Some(with_reason("reported a failure", why)),
        (ClaimResult::None, Some(failure)) => Some(failure.to_owned()),
        (ClaimResult::None, None) if evidence.cut => Some(CUT.to_owned()),
        (ClaimResult::None, None) => evidence.unended(),
    };
    match (summary, &evidence.said) {
        (Some(summary), _) => LastWords::Crew(one_line(&summary, SAID_CHARS)),
        (None, Some(said)) => LastWords::Agent(one_line(said, SAID_CHARS)),
        (None, None) => LastWords::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::evidence::changes::Changes;
    use crate::evidence::test_run::TestMemories;
    use crate::fixture::{SetState, a_run, at};
    use crate::journal::{Event, JournalEntry, SCHEMA};
    use crate::record::{Loop, State, Status};
    use crate::view::tests::page;

    /// What a page tells of the messages of a loop in words: `tell x`, `begin` an iteration of a
    /// fresh process, and how it ends. `session` hands it to a session.
    fn rows(script: &str) -> Vec<String> {
        let (mut record, mut story) = (a_run(None), Story::with_pick(None));
        let add = |record: &Loop, story: &mut Story, event| {
            let (at, generation) = (at(60).wall, record.state.generation());
            story.add_entry(JournalEntry { schema: SCHEMA, at, generation, event });
        };
        add(&record, &mut story, Event::Started { record: Box::new(record.clone()) });
        for word in script.split(", ") {
            let state = &mut record.state;
            state.set("generation", state.generation() + 1);
            let boundary = |state: &mut State, status, decision| {
                state.set("status", status);
                state.set("completed", state.counts().completed() + 1);
                let words = state.take_messages(true);
                state.set("evidence", Some(Evidence { words, ..Evidence::default() }));
                let state = Box::new(state.clone());
                Event::Boundary { decision, why: None, elapsed_ms: Some(1), state }
            };
            let event = match word {
                "begin" => {
                    let has_words =
                        state.seen().evidence().as_ref().is_some_and(|it| !it.words.is_empty());
                    if state.exchange().in_prompt() == state.exchange().messages().len()
                        && !has_words
                    {
                        continue;
                    }
                    state.end_wait();
                    state.mark_in_prompt(state.exchange().messages().len());
                    Event::from_change(NoteKind::Delivered, &record, &record)
                }
                "session" => {
                    state.set("owner.driver", Driver::Session);
                    state.mark_in_prompt(state.exchange().messages().len());
                    Event::from_change(NoteKind::ResumedInSession, &record, &record)
                }
                "wake" => Event::from_change(NoteKind::Woken(2), &record, &record),
                "continue" => boundary(state, Status::Running, Choice::Continue),
                "pause" => boundary(state, Status::Paused, Choice::Hold),
                "finish" => boundary(state, Status::Finished, Choice::Finish),
                "wait" => {
                    state.set("status", Status::Waiting);
                    let state = Box::new(state.clone());
                    Event::Boundary { decision: Choice::Wait, why: None, elapsed_ms: None, state }
                }
                "cancel" => {
                    state.set("status", Status::Finished);
                    Event::from_change("cancelled", &record, &record)
                }
                shown => {
                    state.add_messages([shown.trim_start_matches("tell ").to_owned()]);
                    Event::from_change(NoteKind::Message, &record, &record)
                }
            };
            add(&record, &mut story, event);
        }
        let page = page(&record, &story, &Changes::default(), &TestMemories::new());
        let shown = page.results.into_iter().filter(|fact| fact.name == "message");
        shown.map(|fact| fact.text).collect()
    }

    #[test]
    fn a_message_names_the_iteration_whose_prompt_included_it() {
        const WAITS: &str = "\"a\" (waits for the next prompt)";
        const NEVER: &str = "\"a\" (it reached no prompt before the end)";
        const IN_1: &str = "\"a\" (in the prompt of iteration 1)";
        const IN_2: &str = "\"a\" (in the prompt of iteration 2)";
        let table: [(&str, &[&str]); 16] = [
            ("tell a", &[WAITS]),
            ("tell a, begin", &[IN_1]),
            ("begin, tell a", &[WAITS]),
            ("begin, tell a, continue", &[WAITS]),
            ("begin, tell a, continue, begin", &[IN_2]),
            ("begin, tell a, wait", &[WAITS]),
            ("begin, tell a, continue, begin, cancel", &[IN_2]),
            ("begin, tell a, continue, cancel", &[NEVER]),
            ("begin, tell a, cancel", &[NEVER]),
            ("begin, tell a, wait, cancel", &[NEVER]),
            ("begin, tell a, pause, begin, cancel", &[IN_2]),
            ("begin, tell a, finish, begin, cancel", &[IN_2]),
            ("begin, tell a, pause, session, cancel", &[IN_2]),
            ("session, tell a, wait, wake, cancel", &[IN_1]),
            ("tell a, begin, tell a, continue, begin, finish", &[IN_1, IN_2]),
            (
                "session, tell a, continue, tell b, cancel",
                &[IN_2, "\"b\" (it reached no prompt before the end)"],
            ),
        ];
        for (script, expected) in table {
            assert_eq!(rows(script), expected, "{script}");
        }
    }
}
