//! Reads the sources of a loop's page: its journal, its snapshots, its commits and its remembered
//! tests. Whatever cannot be read is left out of the page.

use std::io;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::find::{owner_is_gone, owner_life, spent_ms};
use super::transcript::waiting_dialog;
use super::tree::{self, is_at_rest};
use engine::evidence::changes::{Changes, Commits};
use engine::journal::NoteKind;
use engine::journal::story::{Story, StoryEvent};
use engine::record::{Life, Loop, Outcome, Status};
use engine::view::{ChangesFrom, IterationLine, LoopView, Page, PageInputs, newest_lines};
use readers::clients::{resume_command, spell_stop};
use world::clock;
use world::files::disk::{self, Durability};
use world::git::snapshots::Snapshots;
use world::git::{self, OwnCommit};
use world::store::{self, Home, journal, read_json};

/// The status of a loop, as far as it is known without the other loops of this machine.
pub fn loop_view<'a>(home: &Home, record: &'a Loop) -> LoopView<'a> {
    let owner_is_gone = owner_is_gone(home, record);
    let (dialog, doing) = if owner_is_gone {
        (None, None)
    } else {
        (waiting_dialog(record), store::view::running_step(home, record))
    };
    LoopView {
        owner_is_gone,
        dialog,
        is_pausing: record.is_live() && store::is_pausing(home, record),
        doing,
        running_ms: spent_ms(record),
        ..LoopView::from_record(record, clock::local_time())
    }
}

/// The current page of a loop.
pub fn read_page(home: &Home, record: &Loop) -> Page {
    page_of_story(home, record, &whole_story(home, record), false)
}

/// The page of a loop whose story the caller has read. With `is_moved`, a new owner finds the tree
/// changed since the loop left it, and the page shows the current tree.
pub fn page_of_story(home: &Home, record: &Loop, story: &Story, is_moved: bool) -> Page {
    let mut record = record.clone();
    // Its own crew is about to react.
    let is_its_own = owner_life(record.state.owner()) == Life::Alive;
    record.state.git_mut().pending.reaction &= !is_its_own;
    let record = &record;
    let kept = in_snapshots(home, record, is_moved);
    let changes_from = match (&kept, is_moved) {
        (None, _) => ChangesFrom::Git,
        (Some(_), true) => ChangesFrom::Tree,
        (Some(_), false) => ChangesFrom::Snapshots,
    };
    let changes = kept.or_else(|| git::changes_since(record));
    let commits = collect_commits(home, record, changes.as_ref(), &by_crew(story));
    let page = Page::from_inputs(&PageInputs {
        view: loop_view(home, record),
        story,
        changes: changes.as_ref(),
        changes_from,
        commits: &commits,
        tests: &store::read_tests(home, &record.id),
        resume: &resume_command(record),
        stop: &spell_stop(record),
    });
    let handoff = match record.outcome() {
        None | Some(Outcome::Completed) => None,
        Some(_) => store::view::newest_handoff(record),
    };
    let is_running = record.state.status() == Status::Running;
    let awake_ms = page.awake_ms + if is_running { spent_ms(record) } else { 0 };
    Page { awake_ms, handoff: handoff.map(|(file, _)| file.display().to_string()), ..page }
}

/// The summaries of its last iterations, as far as its journal has them.
pub fn last_iterations(home: &Home, record: &Loop, most: usize) -> Vec<IterationLine> {
    newest_lines(record, &whole_story(home, record), most)
}

/// The story of a loop, as far as it can be read.
pub fn whole_story(home: &Home, record: &Loop) -> Story {
    read_story(home, record, None).unwrap_or_else(|_| Story::with_pick(None))
}

/// The whole story of a loop, with all evidence of iteration `pick`.
pub fn read_story(home: &Home, record: &Loop, pick: Option<u32>) -> io::Result<Story> {
    let mut story = Story::with_pick(pick);
    let file = home.loop_file(&record.id, "journal.jsonl");
    let extent = journal::read_entries(&file, |entry| story.add_entry(entry))?;
    (story.torn, story.cut) = (extent.torn, extent.cut);
    Ok(story)
}

/// The commits that crew made, the oldest first.
fn by_crew(story: &Story) -> Vec<OwnCommit> {
    let mut commits: Vec<OwnCommit> = Vec::new();
    for chapter in story.chapters().iter() {
        let StoryEvent::Changed { about, .. } = chapter.what() else { continue };
        match about {
            NoteKind::Rebased(_) => {
                for commit in &mut commits {
                    commit.may_have_copy = true;
                }
            }
            NoteKind::Committed(id) => {
                commits.push(OwnCommit { id: id.clone(), may_have_copy: false });
            }
            _ => {}
        }
    }
    commits
}

/// The changes of the loop up to its last snapshot, so that later work in the tree is not counted
/// as its own; `is_moved` requests all differences to the current tree. `None` without snapshots.
fn in_snapshots(home: &Home, record: &Loop, is_moved: bool) -> Option<Changes> {
    let snapshots = Snapshots::of(home, record);
    let from = snapshots.as_found(&record.id)?;
    let is_final = is_at_rest(record) || owner_is_gone(home, record);
    let now = if is_moved { tree::look_at_tree(home, record) } else { None };
    let now = now.and_then(|seen| seen.snapshot);
    let to = now.or_else(|| snapshots.final_state(&record.id, is_final))?;
    let mut changes = snapshots.compare(&from, &to).ok()?;
    changes.mark_yours(&snapshots.yours(&record.id));
    Some(changes)
}

// The result of a loop, written once when it ends: what programs read, and what its page says of
// commits, which git cannot tell apart later.

/// The largest result that is read.
const RESULT_BYTES: u64 = 8 << 20;

/// Writes the result. This is best effort, because the record is already final.
pub fn write_result(home: &Home, record: &Loop, commits: &Commits, now: DateTime<Utc>) {
    let mut result = json!({
        "schema": 1,
        "id": record.id,
        "generation": record.state.generation(),
        "outcome": record.outcome(),
        "ending": record.state.end().ending(),
        "iterations": record.state.counts().completed(),
        "awake_ms": record.state.time().awake_ms(),
        "usage": record.state.work().usage(),
        "ended_at": record.state.end().ended_at().unwrap_or(now),
        "proved_at": record.state.end().proved_at(),
    });
    if let (Some(result), Ok(Value::Object(commits))) =
        (result.as_object_mut(), serde_json::to_value(commits))
    {
        result.extend(commits);
    }
    let file = home.loop_file(&record.id, "result.json");
    let _ = disk::write(&file, result.to_string().as_bytes(), Durability::Machine);
}

/// The commits since a loop started, up to its end if it is over. `changes` are the files of which
/// some may be uncommitted, `by_crew` crew's own commits.
pub fn collect_commits(
    home: &Home,
    record: &Loop,
    changes: Option<&Changes>,
    by_crew: &[OwnCommit],
) -> Commits {
    if !record.is_live()
        && let Some(result) = read_result(home, record)
        && result.get("commits").is_some()
    {
        return serde_json::from_value(result).unwrap_or_default();
    }
    let Some(mut commits) = git::commits_since(record, by_crew) else { return Commits::default() };
    if let Some(changes) = changes.filter(|changes| changes.file_count() > 0 && !record.is_live()) {
        commits.uncommitted = git::count_uncommitted(record, changes);
    }
    let commits_all = record.contract.run.as_ref().is_some_and(|run| run.git.commit);
    if commits_all && record.outcome() == Some(Outcome::Completed) {
        commits.ignored = git::ignored_since(record);
    }
    commits
}

/// The result of this ending, which is written after the handoff, or a later one with late usage. A
/// resumed loop still has the result of its earlier end.
pub fn read_result(home: &Home, record: &Loop) -> Option<Value> {
    let result: Value = read_json(&home.loop_file(&record.id, "result.json"), RESULT_BYTES)?;
    let generation = result.get("generation").and_then(Value::as_u64);
    (generation >= Some(record.state.generation())).then_some(result)
}
