//! The result of a loop, written once when it ends: what programs read, and what its page says of
//! commits, which git cannot tell apart later.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use engine::evidence::changes::{Changes, Commits};
use engine::record::{Loop, Outcome};
use world::files::disk::{self, Durability};
use world::git::{self, OwnCommit};
use world::store::{Home, read_json};

/// The largest result that is read.
const RESULT_BYTES: u64 = 8 << 20;

/// Writes the result. It is best effort: the record is final already.
pub fn write_result(home: &Home, record: &Loop, commits: &Commits, now: DateTime<Utc>) {
    let mut result = json!({
        "schema": 1,
        "id": record.id,
        "generation": record.state.generation,
        "outcome": record.outcome(),
        "ending": record.state.ending,
        "iterations": record.state.completed,
        "awake_ms": record.state.awake_ms,
        "usage": record.state.usage,
        "ended_at": record.state.ended_at.unwrap_or(now),
        "proved_at": record.state.proved_at,
    });
    if let (Some(result), Ok(Value::Object(commits))) =
        (result.as_object_mut(), serde_json::to_value(commits))
    {
        result.extend(commits);
    }
    let file = home.loop_file(&record.id, "result.json");
    let _ = disk::write(&file, result.to_string().as_bytes(), Durability::Machine);
}

/// The commits since a loop started, of one that is over those up to its end. `changes` are the
/// files of which some may be uncommitted, `by_crew` crew's own commits.
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
    (generation >= Some(record.state.generation)).then_some(result)
}
