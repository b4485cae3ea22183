//! Reads a loop's snapshots for the user, and brings one back into the working tree. This is
//! refused while a loop works there: the user and an agent would undo each other's work.

use anyhow::{Context, Error, Result, anyhow};

use super::{is_at_rest, place};
use crate::drive::find::{agent_works, named_by};
use engine::failure::Failure;
use engine::journal::NoteKind;
use engine::record::{Loop, Status};
use engine::refuse;
use readers::parse::requests::Iterations;
use world::git::snapshots::{Restored, Snapshots};
use world::store::{self, Home, LOCK_WAIT};

/// The difference that a loop, or some of its iterations, made; `None` is the whole loop. `stat` is
/// the number of columns of a summary.
pub fn diff_of_iteration(
    home: &Home,
    record: &Loop,
    of: Option<Iterations>,
    stat: Option<u16>,
) -> Result<String> {
    let snapshots = Snapshots::of(home, record);
    let sides = match of {
        Some(Iterations::One(0)) => {
            refuse!(
                "iteration 0 is the state before the first",
                format!("crew diff {} 1", record.id)
            )
        }
        Some(Iterations::One(iteration)) => {
            require_ended(record, iteration)?;
            snapshots.of_iteration(&record.id, iteration)
        }
        Some(Iterations::Between(from, to)) => {
            require_ended(record, from.max(to))?;
            end_of(&snapshots, record, from).zip(end_of(&snapshots, record, to))
        }
        // What a rebase brought is not the loop's.
        None => {
            let last = snapshots.final_state(&record.id, is_at_rest(record));
            snapshots.as_found(&record.id).zip(last)
        }
    };
    let (from, to) = sides.with_context(|| no_snapshots_text(record))?;
    snapshots.text(&from, &to, stat).map_err(|why| anyhow!(why))
}

/// What the difference of the whole loop leaves out while its agent works; `None` otherwise.
pub fn unseen_changes_note(home: &Home, record: &Loop) -> Option<String> {
    if !agent_works(home, record) {
        return None;
    }
    let iteration = record.state.counts().completed() + 1;
    Some(format!("iteration {iteration} is still running: its changes show when it ends"))
}

/// Whether a word names a state to go back to: the end of an iteration, such as `3`, where 0 is the
/// state before the first, or the state before an earlier return, by its name: `back-1`.
pub fn is_target(word: &str) -> bool {
    word.strip_prefix("back-").unwrap_or(word).parse::<u32>().is_ok()
}

/// Returns the working tree to this state.
pub fn restore_iteration(home: &Home, record: &Loop, target: &str) -> Result<Restored> {
    let here = named_by(home, &home.checkout_pointer(&record.place.checkout))?;
    for other in std::iter::once(record).chain(&here) {
        if other.is_live() && other.state.status() != Status::Paused {
            let id = &other.id;
            refuse!(format!("loop {id} is {} here", other.status_word()), "crew pause {id} first");
        }
    }
    if let Some(gone) = place::missing_place(&record.place) {
        return Err(Error::new(gone).context(format!("loop {} cannot go back", record.id)));
    }
    let lock = store::boundary_lock(home, &record.id, LOCK_WAIT)?;
    let _lock = lock.with_context(|| {
        Failure::new(format!("loop {} is judging an iteration", record.id), "try again in a moment")
    })?;
    let snapshots = Snapshots::of(home, record);
    let (commit, to) = if let Ok(iteration) = target.parse() {
        require_ended(record, iteration)?;
        let end = end_of(&snapshots, record, iteration);
        let commit = end.with_context(|| no_snapshots_text(record))?;
        (commit, format!("the end of iteration {iteration}"))
    } else {
        let kept = snapshots.named(&record.id, target).with_context(|| {
            let hint = "each crew back prints the name that undoes it";
            Failure::new(format!("loop {} has no {target}", record.id), hint)
        });
        (kept?, target.to_owned())
    };
    let restored = snapshots.restore(&record.id, &commit).map_err(|why| anyhow!(why))?;
    let (id, kept_as) = (&record.id, &restored.kept_as);
    // The tree is back, and that is what counts.
    let undo = format!("crew back {id} {kept_as}");
    let _ = store::note_in_journal(home, id, NoteKind::BroughtBack { to, undo });
    Ok(restored)
}

/// Fails for an iteration that has not ended.
fn require_ended(record: &Loop, iteration: u32) -> Result<()> {
    let (id, ended) = (&record.id, record.state.counts().completed());
    if iteration > ended {
        refuse!("loop {id} has no iteration {iteration}: {ended} ended", "crew show {id}");
    }
    Ok(())
}

fn end_of(snapshots: &Snapshots, record: &Loop, iteration: u32) -> Option<String> {
    snapshots.at_the_end_of(&record.id, iteration).map(|(_, commit)| commit)
}

fn no_snapshots_text(record: &Loop) -> String {
    format!("loop {} has no such snapshot", record.id)
}
