//! What became of tests, checks, files, commits and words: the rows below the iterations.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::messages::{self, TOLD_CHARS};
use super::{ChangesFrom, Fact, PageInputs};
use crate::engine::evidence::Verdict;
use crate::engine::evidence::changes::{ChangeKind, ChangedFile, Changes};
use crate::engine::evidence::commits::Commits;
use crate::engine::evidence::test_report::TestMemory;
use crate::engine::evidence::test_run::{TestRun, TestStatus};
use crate::engine::journal::story::What;
use crate::engine::journal::{BROUGHT_BACK, COUNTED_LATE};
use crate::engine::record::{CheckMemory, Loop, Outcome};
use crate::engine::test_changes::finding::ACCEPT;
use crate::engine::text::{clip, count, named, one_line, quoted, tail_of};

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
    let is_one = inputs.tests.len() == 1;
    let of = |run: &str| if is_one { String::new() } else { format!("`{}` ", clip(run, 60)) };
    let tests = |(run, memory): (&String, &TestMemory)| tests(&of(run), memory);
    let mut facts: Vec<Fact> = inputs.tests.iter().filter_map(tests).collect();
    facts.extend(failing(inputs));
    facts.extend(complained(inputs.view.record));
    facts.extend(other_checks(inputs));
    facts.extend(inputs.changes.and_then(changed));
    facts.extend(left_out(inputs));
    facts.extend(commits(inputs));
    facts.extend(lost(inputs));
    facts.extend(apart(inputs));
    facts.extend(brought_back(inputs));
    facts.extend(counted_late(inputs));
    facts.extend(Fact::of("agents", inputs.view.record.shares()));
    facts.extend(messages::told(inputs));
    facts.extend(asked(inputs));
    facts.extend(Fact::of("git", inputs.view.record.state.git.undone().map(|it| clip(&it, 500))));
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

/// The first check that does not pass, its tests by name and the end of what it printed.
fn failing(inputs: &PageInputs<'_>) -> Option<Fact> {
    let Some(evidence) = inputs.view.record.state.evidence.as_ref() else {
        return failing_as_found(inputs);
    };
    let check = evidence.failing().next()?;
    let mut text = format!("`{}` {}", clip(&check.run, 100), check.what_happened());
    let failing = check.tests.as_ref().map(|tests| &tests.failing).filter(|it| !it.is_empty());
    if let Some(failing) = failing {
        let _ = write!(text, ": {}", failing.named(NAMED));
    }
    Some(Fact { name: "fails", text, detail: lines(&check.tail) })
}

/// The first check that did not pass before the first iteration.
fn failing_as_found(inputs: &PageInputs<'_>) -> Option<Fact> {
    let (run, memory) = red_as_found(inputs.view.record)?;
    let text = format!("`{}` {} before iteration 1", clip(run, 100), memory.what_happened());
    Some(Fact { name: "fails", text, detail: lines(&memory.tail) })
}

fn red_as_found(record: &Loop) -> Option<(&String, &CheckMemory)> {
    record.state.checks.iter().find(|(_, it)| it.last != Verdict::Passed)
}

/// The end of a text, line by line.
fn lines(text: &str) -> Vec<String> {
    tail_of(text, TAIL_CHARS).lines().map(str::to_owned).collect()
}

/// The end of the agent's standard error, if its end was a failure. The reason of an abort has its
/// last line.
fn complained(record: &Loop) -> Option<Fact> {
    let detail = lines(&record.state.evidence.as_ref()?.errors);
    let known = usize::from(record.outcome() == Some(Outcome::Aborted));
    let text = "the agent's last lines on standard error".to_owned();
    (detail.len() > known).then_some(Fact { name: "stderr", text, detail })
}

/// The last result of every check that is not shown yet; a completed loop's reason covers all.
fn other_checks(inputs: &PageInputs<'_>) -> Vec<Fact> {
    let record = inputs.view.record;
    let evidence = record.state.evidence.as_ref();
    if record.outcome() == Some(Outcome::Completed) && record.contract.checks.len() <= 2 {
        return Vec::new();
    }
    let failing = match evidence {
        Some(evidence) => evidence.failing().next().map(|check| &check.run),
        None => red_as_found(record).map(|(run, _)| run),
    };
    let is_told = |run: &String| failing == Some(run);
    let others = record.contract.checks.iter().filter(|check| !is_told(&check.run));
    let word = |run: &str| record.last_of(run).unwrap_or_else(|| "never ran".to_owned());
    let ending = record.state.ending.as_ref();
    // Only a check that had failed is refused for a change of its tests.
    let is_refused = ending
        .is_some_and(|ending| ending.outcome == Outcome::Blocked && ending.why.contains(ACCEPT));
    let fixed = |run: &str| {
        let memory = record.state.checks.get(run);
        let is_fixed = memory.is_some_and(CheckMemory::ever_failed);
        match word(run) == "passed" {
            true if is_fixed && is_refused => " as it is now, which does not count",
            true if is_fixed => ", after it had failed",
            _ => "",
        }
    };
    others
        .map(|check| {
            let run = &check.run;
            let text = format!("`{}` {}{}", clip(run, 100), word(run), fixed(run));
            Fact::new(check.role.label(), text)
        })
        .collect()
}

/// "7 changed, 2 new, +214 −31", with the names of what is new and gone.
fn changed(changes: &Changes) -> Option<Fact> {
    let text = changes.words()?;
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
    ];
    let rows = rows.into_iter().filter(|(_, names)| !names.is_empty());
    // Only the first files of many are known by name.
    let unnamed = changes.total().saturating_sub(changes.files.len() as u64);
    let detail = rows.map(|(what, names)| format!("{what}: {}", named(&names, NAMED)));
    let rest = (unnamed > 0).then(|| format!("and {unnamed} that are not named here"));
    Some(Fact { name: "files", text, detail: detail.chain(rest).collect() })
}

/// What changed, or may have, and is in no snapshot.
fn left_out(inputs: &PageInputs<'_>) -> Option<Fact> {
    let all = |of: fn(&Changes) -> &Vec<String>| {
        let changes = inputs.story.iterations().filter_map(|it| it.evidence.changes.as_ref());
        let paths: BTreeSet<&String> = changes.flat_map(of).collect();
        paths.into_iter().map(|path| one_line(path, PATH_CHARS)).collect::<Vec<_>>()
    };
    let known = &inputs.view.record.state.trees.repositories;
    let is_left = |path: &String| known.get(path).is_some_and(|it| it.uncommitted.is_some());
    let inside = all(|changes| &changes.repositories)
        .into_iter()
        .map(|path| if is_left(&path) { format!("{path} (not committed there)") } else { path });
    let inside: Vec<String> = inside.collect();
    let rows = [
        (all(|changes| &changes.left_out), "too large for snapshots"),
        (inside, "a repository inside, in no snapshot"),
    ];
    let rows = rows.into_iter().filter(|(paths, _)| !paths.is_empty());
    let rows: Vec<String> =
        rows.map(|(paths, why)| format!("{}: {why}", named(&paths, NAMED))).collect();
    Fact::of("beside", (!rows.is_empty()).then(|| rows.join("; ")))
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

/// The commits from before the loop that its branch no longer has.
fn lost(inputs: &PageInputs<'_>) -> Option<Fact> {
    let lost = &inputs.commits.lost;
    let branch = inputs.view.record.place.branch.as_deref().unwrap_or("HEAD");
    let detail: Vec<String> = lost.iter().take(COMMITS).cloned().collect();
    let text = format!(
        "{} from before the loop, no longer on {branch}",
        count(lost.len() as u64, "commit")
    );
    (!lost.is_empty()).then_some(Fact { name: "lost", text, detail })
}

/// The commits that crew made where the agent had led it, and that are not checked out.
fn apart(inputs: &PageInputs<'_>) -> Option<Fact> {
    let apart = &inputs.commits.apart;
    let detail: Vec<String> = apart.iter().take(COMMITS).cloned().collect();
    let text = format!(
        "{} made by crew, not in the history that is checked out",
        count(apart.len() as u64, "commit")
    );
    (!apart.is_empty()).then_some(Fact { name: "apart", text, detail })
}

/// Where a person has brought the tree back to since the last iteration: the files above are then
/// not what is there.
fn brought_back(inputs: &PageInputs<'_>) -> Option<Fact> {
    let mut last = None;
    for chapter in inputs.story.chapters.iter() {
        match &chapter.what {
            What::Noted { what } => last = what.strip_prefix(BROUGHT_BACK).or(last),
            What::Iteration(_) => last = None,
            _ => {}
        }
    }
    let moved = || {
        (inputs.changes_from == ChangesFrom::Tree)
            .then(|| "changed since the loop left it".to_owned())
    };
    let back = last.map(|to| format!("brought back since to {to}"));
    Fact::of("tree", back.or_else(moved))
}

/// That nobody saw when the agent's work ended, so that a person's may be among it.
fn counted_late<'a>(inputs: &PageInputs<'a>) -> Option<Fact> {
    let late = |what: &'a What| match what {
        What::Noted { what } => what.strip_prefix(COUNTED_LATE),
        _ => None,
    };
    let rest = inputs.story.chapters.iter().rev().map(|chapter| &chapter.what);
    let mut rest = rest.take_while(|what| !matches!(what, What::Iteration(_)));
    // Earlier crews did not write who was gone.
    let gone = rest.find_map(late)?.strip_prefix(": ").unwrap_or("nobody drove it");
    let text = format!("{gone}, so all that changed until that was noticed is counted");
    Some(Fact::new("note", text))
}

/// Each question that the agent had to decide itself.
fn asked(inputs: &PageInputs<'_>) -> impl Iterator<Item = Fact> {
    inputs.view.record.state.asked.iter().map(|it| {
        let question = quoted(&clip(&it.text, TOLD_CHARS));
        Fact::new("asked", format!("{question} (iteration {}, told to decide)", it.iteration))
    })
}
