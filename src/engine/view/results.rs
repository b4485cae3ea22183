//! What became of tests, checks, files, commits, pushes and words: the rows below the iterations.

use super::{ChangesFrom, Fact, LoopView, PageInputs};
use crate::engine::doing::LoopStep;
use crate::engine::evidence::Verdict;
use crate::engine::evidence::changes::Commits;
use crate::engine::evidence::changes::{ChangeKind, ChangedFile, Changes};
use crate::engine::evidence::test_report::TestMemory;
use crate::engine::evidence::test_run::{TestRun, TestStatus};
use crate::engine::journal::story::{Story, What};
use crate::engine::journal::{
    BROUGHT_BACK, COUNTED_LATE, Choice, DELIVERED, RESUMED_IN_A_SESSION, WOKEN,
};
use crate::engine::record::{Driver, Outcome};
use crate::engine::test_changes::finding::ACCEPT;
use crate::engine::text::{clip, count, named, one_line, quoted, tail_of};
use std::collections::BTreeSet;

/// The most names in a row.
const NAMED: usize = 5;
/// The most of a failed check's output, in characters.
const TAIL_CHARS: usize = 600;
/// The most commits by name.
const COMMITS: usize = 5;
/// The longest path, in characters.
const PATH_CHARS: usize = 300;

/// The rows.
pub fn facts(inputs: &PageInputs<'_>) -> Vec<Fact> {
    let record = inputs.view.record;
    let is_one = inputs.tests.len() == 1;
    let of = |run: &str| if is_one { String::new() } else { format!("`{}` ", clip(run, 60)) };
    let tests = |(run, memory): (&String, &TestMemory)| tests(&of(run), memory);
    let mut facts: Vec<Fact> = inputs.tests.iter().filter_map(tests).collect();
    facts.extend(checks(&inputs.view));
    facts.extend(inputs.changes.and_then(|changes| changed(inputs, changes)));
    facts.extend(commits(inputs));
    facts.extend(lost_and_apart(inputs));
    facts.extend(notes(inputs));
    facts.extend(Fact::of("agents", record.shares()));
    facts.extend(told(inputs));
    // What the agent had to decide itself.
    facts.extend(record.state.asked.iter().map(|it| {
        let question = quoted(&clip(&it.text, TOLD_CHARS));
        Fact::new("asked", format!("{question} (iteration {}, told to decide)", it.iteration))
    }));
    facts.extend(Fact::of("git", record.state.git.undone().map(|it| clip(&it, 500))));
    facts
}

/// "212 → 215: 3 new, 3 fixed", after `of`, their check; `None` where nothing happened to them.
fn tests(of: &str, memory: &TestMemory) -> Option<Fact> {
    let (first, last) = (&memory.first, &memory.last);
    let became = |from: TestStatus, to: TestStatus| {
        let was = |name: &&str| first.tests.get(*name) == Some(&from);
        last.named(to).filter(was).map(str::to_owned).collect::<Vec<_>>()
    };
    let is_whole = first.names_all() && last.names_all();
    let absent = |run: &TestRun, of: &TestRun| {
        let missing = of.tests.keys().filter(|name| !run.tests.contains_key(*name));
        if is_whole { missing.cloned().collect() } else { Vec::new() }
    };
    let counted = [
        (absent(first, last), "new", false),
        (became(TestStatus::Failed, TestStatus::Passed), "fixed", false),
        (became(TestStatus::Passed, TestStatus::Failed), "broken", true),
        (absent(last, first), "gone", true),
        (became(TestStatus::Passed, TestStatus::Skipped), "skipped now", true),
    ];
    let words: Vec<String> = counted
        .iter()
        .filter(|(names, ..)| !names.is_empty())
        .map(|(names, what, is_named)| {
            let list =
                if *is_named { format!(" ({})", named(names, NAMED)) } else { String::new() };
            format!("{} {what}{list}", names.len())
        })
        .collect();
    let totals = match (first.total(), last.total()) {
        (before, now) if before == now => now.to_string(),
        (before, now) => format!("{before} → {now}"),
    };
    let is_news = !words.is_empty() || first.total() != last.total();
    is_news.then(|| {
        let what = if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) };
        Fact::new("tests", format!("{of}{totals}{what}"))
    })
}

/// The last result of each check: first of one that does not pass, with its tests by name, the end
/// of what it printed and of what the agent complained of. A completed loop's reason covers few.
fn checks(view: &LoopView<'_>) -> Vec<Fact> {
    let record = view.record;
    let evidence = record.state.evidence.as_ref();
    let red = if let Some(seen) = evidence {
        seen.failing().next().map(|check| {
            let failing = check.tests.as_ref().map(|tests| &tests.failing);
            let failing = failing.filter(|it| !it.is_empty());
            let names = failing.map(|it| format!(": {}", it.named(NAMED)));
            (&check.run, &check.tail, names.unwrap_or_default())
        })
    } else {
        let mut found = record.state.checks.iter();
        let red = found.find(|(_, it)| it.last != Verdict::Passed);
        red.map(|(run, memory)| (run, &memory.tail, String::new()))
    };
    let runs = view.doing.as_ref().filter(|doing| doing.step == LoopStep::Check);
    let last = |run: &str| {
        if runs.is_some_and(|doing| doing.run == run) {
            return format!("`{}` is running", clip(run, 100));
        }
        let never = if record.is_live() { "has not run yet" } else { "never ran" };
        let last = record.last_of(run).unwrap_or_else(|| never.to_owned());
        format!("`{}` {last}", clip(run, 100))
    };
    let mut facts = Vec::new();
    if let Some((run, tail, names)) = &red {
        facts.push(Fact { name: "fails", text: last(run) + names, detail: lines(tail) });
    }
    let errors = lines(evidence.map_or("", |seen| &seen.errors));
    if !errors.is_empty() {
        let text = "the agent's last lines on standard error".to_owned();
        facts.push(Fact { name: "stderr", text, detail: errors });
    }
    if record.outcome() == Some(Outcome::Completed) && record.contract.checks.len() <= 2 {
        return facts;
    }
    let ending = record.state.ending.as_ref();
    // Only a check that had failed is refused for a change of its tests.
    let is_refused =
        ending.is_some_and(|it| it.outcome == Outcome::Blocked && it.why.contains(ACCEPT));
    for check in &record.contract.checks {
        if red.as_ref().is_some_and(|(run, ..)| **run == check.run) {
            continue;
        }
        let memory = record.state.checks.get(&check.run);
        let fixed = match memory {
            Some(it) if !it.ever_failed() || it.last != Verdict::Passed => "",
            Some(_) if is_refused => " as it is now, which does not count",
            Some(_) => ", after it had failed",
            None => "",
        };
        facts.push(Fact::new(check.role.label(), last(&check.run) + fixed));
    }
    facts
}

/// The end of a text, line by line.
fn lines(text: &str) -> Vec<String> {
    tail_of(text, TAIL_CHARS).lines().map(str::to_owned).collect()
}

/// "7 changed, 2 new, +214 −31", with the names of what is new and gone, and of what is in no
/// snapshot.
fn changed(inputs: &PageInputs<'_>, changes: &Changes) -> Option<Fact> {
    let [large, inside] = left_out(inputs);
    let left_out = large.len() + inside.len();
    let text = changes
        .words()
        .or_else(|| (left_out > 0).then(|| "only what no snapshot holds".to_owned()))?;
    let of = |wanted: fn(&ChangedFile) -> bool| -> Vec<String> {
        let path = |file: &ChangedFile| match &file.kind {
            ChangeKind::Renamed { from } => {
                [from, &file.path].map(|path| one_line(path, PATH_CHARS)).join(" → ")
            }
            _ => one_line(&file.path, PATH_CHARS),
        };
        changes.files.iter().filter(|file| wanted(file)).map(path).collect()
    };
    let rows = [
        ("changed", of(|file| file.kind == ChangeKind::Modified)),
        ("new", of(|file| file.kind == ChangeKind::Created)),
        ("gone", of(|file| file.kind == ChangeKind::Deleted)),
        ("renamed", of(|file| matches!(file.kind, ChangeKind::Renamed { .. }))),
        ("had uncommitted changes before the loop", of(|file| file.yours)),
        ("too large for snapshots", large),
        ("a repository inside, in no snapshot", inside),
    ];
    let rows = rows.into_iter().filter(|(_, names)| !names.is_empty());
    // Only the first files of many are known by name.
    let unnamed = changes.total().saturating_sub(changes.files.len() as u64);
    let detail = rows.map(|(what, names)| format!("{what}: {}", named(&names, NAMED)));
    let rest = (unnamed > 0).then(|| format!("and {unnamed} that are not named here"));
    Some(Fact { name: "files", text, detail: detail.chain(rest).collect() })
}

/// The large files and the repositories inside that changed in an iteration, or may have.
fn left_out(inputs: &PageInputs<'_>) -> [Vec<String>; 2] {
    let known = &inputs.view.record.state.trees.repositories;
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

fn commits(inputs: &PageInputs<'_>) -> Option<Fact> {
    let Commits { switched_to, uncommitted, .. } = inputs.commits;
    let made = inputs.commits.made();
    let branch = inputs.view.record.branch();
    let on = match (switched_to, branch) {
        (Some(now), Some(branch)) => format!(" on {now} (the loop's branch is {branch})"),
        (Some(branch), None) => format!(" on {branch}"),
        (None, branch) => branch.map(|branch| format!(" on {branch}")).unwrap_or_default(),
    };
    let detail: Vec<String> = made.iter().take(COMMITS).cloned().collect();
    let files = inputs.changes.map_or(0, Changes::total);
    let ignored = &inputs.commits.ignored;
    let ignored = match ignored.values().sum() {
        0 => String::new(),
        files => {
            let roots: Vec<String> = ignored.keys().cloned().collect();
            let files = count(files, "changed file");
            format!("; {files} in no commit, ignored: {}", named(&roots, NAMED))
        }
    };
    let left = match uncommitted.unwrap_or_default() {
        0 => String::new(),
        1 if files == 1 && made.is_empty() => "; the file is uncommitted".to_owned(),
        left if left == files && made.is_empty() => "; the files are uncommitted".to_owned(),
        left => format!("; {} uncommitted", count(left, "file")),
    } + &ignored;
    // That nothing was committed is news where there is something to commit.
    let text = match made.len() {
        0 if left.is_empty() && switched_to.is_none() => return None,
        0 if switched_to.is_none() => format!("none{left}"),
        0 => format!("none{on}{left}"),
        Commits::MOST.. => format!("{} or more{on}{left}", Commits::MOST),
        some => format!("{some}{on}{left}"),
    };
    Some(Fact { name: "commits", text, detail })
}

/// The commits from before the loop that its branch no longer has, and those that crew made where
/// the agent had led it and that are not checked out.
fn lost_and_apart(inputs: &PageInputs<'_>) -> impl Iterator<Item = Fact> {
    let branch = inputs.view.record.place.branch.as_deref().unwrap_or("HEAD");
    let lost = format!("from before the loop, no longer on {branch}");
    let apart = "made by crew, not in the history that is checked out".to_owned();
    let rows = [("lost", &inputs.commits.lost, lost), ("apart", &inputs.commits.apart, apart)];
    rows.into_iter().filter(|(_, commits, _)| !commits.is_empty()).map(|(name, commits, what)| {
        let text = format!("{} {what}", count(commits.len() as u64, "commit"));
        Fact { name, text, detail: commits.iter().take(COMMITS).cloned().collect() }
    })
}

/// What the journal noted of the tree since the last iteration: that the files above are not what
/// is there, or that a person's may be among them.
fn notes(inputs: &PageInputs<'_>) -> Vec<Fact> {
    let rest = inputs.story.chapters.iter().rev().map(|chapter| &chapter.what);
    let rest = rest.take_while(|what| !matches!(what, What::Iteration(_)));
    let notes = rest.filter_map(|what| match what {
        What::Noted { what }
            if what.starts_with(BROUGHT_BACK) || what.starts_with(COUNTED_LATE) =>
        {
            Some(Fact::new("note", what.split("; undo: ").next().unwrap_or_default()))
        }
        _ => None,
    });
    let mut notes: Vec<Fact> = notes.collect();
    if notes.is_empty() && inputs.changes_from == ChangesFrom::Tree {
        notes.push(Fact::new("note", "the tree changed since the loop left it"));
    }
    notes
}

// The messages that a person sent to the agent, and the prompt that each of them was in.

/// The longest words of a person, in characters.
pub const TOLD_CHARS: usize = 200;

/// A row for each message.
pub fn told(inputs: &PageInputs<'_>) -> Vec<Fact> {
    let row = |message: Message<'_>| {
        let when = match message.prompt {
            Some(iteration) => format!("in the prompt of iteration {iteration}"),
            None if inputs.view.record.is_live() => "waits for the next prompt".to_owned(),
            None => "it reached no prompt before the end".to_owned(),
        };
        Fact::new("told", format!("{} ({when})", quoted(&one_line(message.words, TOLD_CHARS))))
    };
    messages(inputs.story).into_iter().map(row).collect()
}

struct Message<'a> {
    words: &'a str,
    /// The first iteration that had it in its prompt.
    prompt: Option<u32>,
}

fn messages(story: &Story) -> Vec<Message<'_>> {
    let mut messages: Vec<Message<'_>> = Vec::new();
    let first = story.drivers.iter().next();
    let (mut driver, mut iteration) = (first.map(|who| who.driver), 1);
    for chapter in story.chapters.iter() {
        match &chapter.what {
            What::Told { words } => messages.push(Message { words, prompt: None }),
            What::Changed { what, by, .. } => {
                driver = by.as_ref().map(|by| by.driver).or(driver);
                if what == DELIVERED || what == RESUMED_IN_A_SESSION || what.starts_with(WOKEN) {
                    deliver(&mut messages, iteration);
                }
            }
            What::Iteration(it) => {
                // They wait in line, so those that an iteration left are the last. It had the
                // others.
                let left = it.evidence.words.len();
                let left = messages.len() - left.min(messages.len());
                let (had, left) = messages.split_at_mut(left);
                deliver(had, it.number);
                for message in left.iter_mut() {
                    message.prompt = None;
                }
                iteration = it.number + 1;
                // A session gets the next prompt as the answer to its stop.
                if driver == Some(Driver::Session) && it.decision == Choice::Continue {
                    deliver(left, iteration);
                }
            }
            _ => {}
        }
    }
    messages
}

fn deliver(messages: &mut [Message<'_>], iteration: u32) {
    for message in messages {
        message.prompt.get_or_insert(iteration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::evidence::Evidence;
    use crate::engine::evidence::changes::Changes;
    use crate::engine::evidence::test_report::TestMemories;
    use crate::engine::fixture::{a_run, at};
    use crate::engine::journal::{Event, JournalEntry, SCHEMA, TOLD};
    use crate::engine::record::{Loop, State, Status};
    use crate::engine::view::tests::page;

    /// What a page tells of the messages of a loop in words: `tell x`, `begin` an iteration of a
    /// fresh process, and how it ends. `session` hands it to a session.
    fn rows(script: &str) -> Vec<String> {
        let (mut record, mut story) = (a_run(None), Story::picking(None));
        let add = |record: &Loop, story: &mut Story, event| {
            let (at, generation) = (at(60).wall, record.state.generation);
            story.add(JournalEntry { schema: SCHEMA, at, generation, event });
        };
        add(&record, &mut story, Event::Started { record: Box::new(record.clone()) });
        for word in script.split(", ") {
            let state = &mut record.state;
            state.generation += 1;
            let boundary = |state: &mut State, status, decision| {
                state.status = status;
                state.completed += 1;
                let words = std::mem::take(&mut state.messages);
                let words = words.into_iter().skip(std::mem::take(&mut state.told)).collect();
                state.evidence = Some(Evidence { words, ..Evidence::default() });
                let state = Box::new(state.clone());
                Event::Boundary { decision, why: None, elapsed_ms: Some(1), state }
            };
            let event = match word {
                "begin" => {
                    let has_words = state.evidence.as_ref().is_some_and(|it| !it.words.is_empty());
                    if state.told == state.messages.len() && !has_words {
                        continue;
                    }
                    (state.status, state.told) = (Status::Running, state.messages.len());
                    Event::changed(DELIVERED, &record)
                }
                "session" => {
                    (state.owner.driver, state.told) = (Driver::Session, state.messages.len());
                    Event::changed(RESUMED_IN_A_SESSION, &record)
                }
                "wake" => Event::changed("woken for iteration 2", &record),
                "continue" => boundary(state, Status::Running, Choice::Continue),
                "pause" => boundary(state, Status::Paused, Choice::Hold),
                "finish" => boundary(state, Status::Finished, Choice::Finish),
                "wait" => {
                    state.status = Status::Waiting;
                    let state = Box::new(state.clone());
                    Event::Boundary { decision: Choice::Wait, why: None, elapsed_ms: None, state }
                }
                "cancel" => {
                    state.status = Status::Finished;
                    Event::changed("cancelled", &record)
                }
                told => {
                    state.messages.push(told.trim_start_matches("tell ").to_owned());
                    Event::changed(TOLD, &record)
                }
            };
            add(&record, &mut story, event);
        }
        let page = page(&record, &story, &Changes::default(), &TestMemories::new());
        let told = page.results.into_iter().filter(|fact| fact.name == "told");
        told.map(|fact| fact.text).collect()
    }

    #[test]
    fn a_message_names_the_iteration_whose_prompt_it_was_in() {
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
