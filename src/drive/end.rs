//! The work that is done once when a loop ends, whoever ended it: the page, the result, the view,
//! the pointers and the companions. The record is already final, so each of these steps is best
//! effort and reports its failure. If the process that ended the loop is killed before all this,
//! the next process that reads the loop does it.

pub mod clean;
pub mod handoff;
pub mod prove;

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Error, Result};

use super::find::{agent_works, is_ours, needs_hooks, owner_life, spent_ms};
use super::{page, tree, usage};
use engine::failure::Failure;
use engine::journal::NoteKind;
use engine::record::{
    Actor, Driver, EndReason, Ending, Life, Loop, LoopId, Outcome, Pending, Status,
};
use engine::usage::Usage;
use engine::view::Page;
use engine::words::programs::ViewState;
use world::files::disk::{self, Durability};
use world::git::steps::put_back_in;
use world::process::{descendants, groups};
use world::store::{self, Home, LOCK_WAIT, StoreError, read_pointer, view, wakes, windows};
use world::{clock, host};

/// The reason of a loop that the user switched off in its view.
pub const SWITCHED_OFF: &str = "\"active\": false in state.json";

/// The mark of a loop that was cancelled while a session had it, which the session does not know
/// yet.
pub const UNREPORTED: &str = "unreported";

/// The longest wait for a start or a resume in a working tree.
const START_WAIT: Duration = Duration::from_secs(5);

/// The longest wait for a crew whose loop has ended or is paused, and the polling interval. Its
/// agent has 5 s to exit cleanly.
const CREW_WAIT: Duration = Duration::from_secs(8);
const CREW_STEP: Duration = Duration::from_millis(50);

/// A loop that has ended, with what its page reports.
#[derive(Debug)]
pub struct EndedLoop {
    pub record: Loop,
    pub page: Page,
    /// Whether the agent of a live session was in an iteration: its client continues the turn.
    pub turn_continues: bool,
}

/// Does the once-only work of an ending, except for parts that another process has done or is
/// doing.
pub fn wind_up(home: &Home, record: Loop) -> EndedLoop {
    let lock = disk::take_lock(&home.loop_file(&record.id, "ending.lock"), LOCK_WAIT);
    if matches!(lock, Ok(None)) || page::read_result(home, &record).is_some() {
        return EndedLoop { page: page::read_page(home, &record), record, turn_continues: false };
    }
    let outcome = record.outcome().unwrap_or(Outcome::Error);
    let now = clock::now().wall;
    // Before anything that reads much: nothing of the loop may outlive it.
    if !is_left_to_its_crew(&record) {
        end_groups(home, &record);
    }
    // No boundary has seen the work of an iteration that was broken off. A loop at rest is closed:
    // what changes in the tree is then the user's.
    if !tree::is_closed(home, &record) {
        tree::close_tree(home, &record);
    }
    let mut page = page::read_page(home, &record);
    page.handoff = None;
    if outcome != Outcome::Completed
        && let Ok((file, _)) = handoff::put_page(&record, &page, "", outcome.label(), now)
    {
        page.handoff = Some(file.display().to_string());
    }
    page::write_result(home, &record, &page.commits, now);
    let _ = view::write_view(&record);
    store::give_up_room(home, &record.id);
    let _ = windows::free_turns(home, &record.id, now);
    if let Some(session_id) = &record.state.owner().session_id {
        release_session(home, session_id, &record.id);
    }
    EndedLoop { record, page, turn_continues: false }
}

/// Whether another crew process will end what it started: TERM, 5 s, KILL. Processes on another
/// machine cannot be ended from here.
fn is_left_to_its_crew(record: &Loop) -> bool {
    let owner = record.state.owner();
    match owner_life(owner) {
        Life::Gone => false,
        Life::Alive => record.driver() == Driver::Process && !is_ours(record),
        Life::Elsewhere => true,
    }
}

/// Adds the usage of an iteration during which another process ended the loop. The ending itself
/// does not change.
pub fn count_late(home: &Home, id: &LoopId, usage: &Usage) -> Result<()> {
    amend_record(home, id, "counted what was used", |record| {
        record.count_use(0, Some(usage));
        usage::mark_usage_counted(home, record);
    })
}

/// Changes a record that may have ended, without changing how it ended.
pub fn amend_record(
    home: &Home,
    id: &LoopId,
    what: &str,
    change: impl FnOnce(&mut Loop),
) -> Result<()> {
    // First the current generation gets its result: whoever ended the loop then does not wind it up
    // again.
    complete_end(home, &store::load(home, id)?);
    let held = store::hold_loop(home, id, LOCK_WAIT)?;
    let record = held.load()?;
    if record.is_live() {
        held.change(&record, what, change)?;
        return Ok(());
    }
    let commits = page::collect_commits(home, &record, None, &[]);
    let record = held.change(&record, what, change)?;
    page::write_result(home, &record, &commits, clock::now().wall);
    Ok(())
}

/// Does the work of an ending whose process was killed before it could.
pub fn complete_end(home: &Home, record: &Loop) {
    if !record.is_live() && page::read_result(home, record).is_none() {
        wind_up(home, record.clone());
    }
}

/// Removes a session's pointer and wakes if they belong to this loop: the session may own another
/// by now. The loop it had is remembered.
pub fn release_session(home: &Home, session_id: &str, id: &LoopId) {
    let pointer = home.session_pointer(session_id);
    if read_pointer(&pointer).is_ok_and(|found| found.as_ref() == Some(id)) {
        wakes::clear_companions(home, session_id, None);
        let _ = disk::rename(&pointer, &home.last_pointer(session_id));
    }
}

/// Keeps a start or a resume out of the loop's working tree for a moment, because it removes
/// requests until it is recorded. A start that takes longer is not waited for.
pub fn between_starts(home: &Home, id: &LoopId) -> Result<Option<disk::Lock>> {
    Ok(between_starts_in(home, &store::load(home, id)?.place.checkout))
}

/// Takes the lock that keeps other starts out of this working tree.
pub fn between_starts_in(home: &Home, checkout: &Path) -> Option<disk::Lock> {
    let pointer = home.checkout_pointer(checkout);
    disk::take_lock(&pointer.with_extension("lock"), START_WAIT).ok().flatten()
}

/// The result of an attempt to end a loop from outside a boundary.
#[derive(Debug)]
pub enum EndAttempt {
    Ended(Box<EndedLoop>),
    /// It had already ended.
    Over(Box<Loop>),
    /// A boundary is being recorded; it carries out the request.
    LeftToTheBoundary,
}

/// Cancels a loop: the request first, so that nothing in flight can continue, then the record. The
/// agent's turn continues to its stop. A hook at `PostToolBatch` could end it at its next tool call
/// (tried on 2.1.197 and 2.1.330), but would start a process at every tool call of every session,
/// with a loop or without.
pub fn cancel_loop(
    home: &Home,
    id: &LoopId,
    by: Actor,
    reason: Option<&str>,
) -> Result<EndAttempt> {
    let _lock = between_starts(home, id)?;
    cancel_locked(home, id, by, reason)
}

/// Cancels a loop for a caller that already keeps other starts out of the working tree.
pub fn cancel_locked(
    home: &Home,
    id: &LoopId,
    by: Actor,
    reason: Option<&str>,
) -> Result<EndAttempt> {
    let record = store::load(home, id)?;
    if !record.is_live() {
        return Ok(EndAttempt::Over(Box::new(record)));
    }
    store::request_cancel(home, id, by, reason).map_err(|error| not_left(&record, error))?;
    match end_loop(home, id, Ending::cancelled(by, reason), LOCK_WAIT) {
        // A boundary was faster: it carried out this request.
        Ok(EndAttempt::Over(record)) if record.outcome() == Some(Outcome::Cancelled) => {
            Ok(EndAttempt::Ended(Box::new(wind_up(home, *record))))
        }
        // The request is in force even where nothing can be recorded.
        Err(_) if owner_life(record.state.owner()) == Life::Alive => {
            Ok(EndAttempt::LeftToTheBoundary)
        }
        attempt => attempt,
    }
}

/// The error for a request that could not be written, with a hint that needs no disk.
pub fn not_left(record: &Loop, error: io::Error) -> Error {
    let owner = record.state.owner();
    if record.driver() == Driver::Session || owner_life(owner) != Life::Alive {
        return error.into();
    }
    let pid = owner.process.pid;
    Failure::new(
        error.to_string(),
        format!("free some space on its disk, or end its crew process cleanly: kill -INT {pid}"),
    )
    .into()
}

/// Ends a paused loop that was switched off in its view, because no boundary will read that. `None`
/// for any other loop.
pub fn apply_view(home: &Home, record: &Loop) -> Result<Option<EndAttempt>> {
    let is_paused = record.state.status() == Status::Paused;
    if !is_paused || view::compare_view(record) != ViewState::Deactivated {
        return Ok(None);
    }
    end_loop(home, &record.id, Ending::cancelled(Actor::User, Some(SWITCHED_OFF)), LOCK_WAIT)
        .map(Some)
}

/// Ends what a dead crew left running: the process groups it noted, and processes that left those
/// groups. An unfinished git step is undone.
pub fn end_leftovers(home: &Home, record: &Loop) {
    end_groups(home, record);
    descendants::end_marked(&record.id);
    let _ = put_back_in(&record.place);
}

/// Names processes that a dead crew may have left but that cannot be attributed to the loop; `None`
/// if there are none.
pub fn unproved_note(record: &Loop) -> Option<String> {
    if record.driver() != Driver::Process
        || !record.state.owner().is_of_this_start(host::this_host().as_ref())
    {
        return None;
    }
    let found = descendants::find_unproved(&record.place.checkout, &record.state.owner().process);
    if found.is_empty() {
        return None;
    }
    Some(format!(
        "still running in this working tree, perhaps left by loop {}: {}; kill ID ends one",
        record.id,
        found.join(", ")
    ))
}

/// Ends the groups that a loop's crew noted, if their ids still mean the same processes.
pub fn end_groups(home: &Home, record: &Loop) {
    let is_of_this_start = record.state.owner().is_of_this_start(host::this_host().as_ref());
    groups::end_leftovers(&home.groups_folder(&record.id), is_of_this_start);
}

/// Ends a loop whose owner is gone.
pub fn interrupt_run(
    home: &Home,
    id: &LoopId,
    reason: EndReason,
    wait: Duration,
) -> Result<EndAttempt> {
    let ending = Ending::new(Outcome::Interrupted, reason);
    let attempt = end_loop(home, id, ending, wait)?;
    if let EndAttempt::Ended(ended) = &attempt
        && ended.record.driver() == Driver::Process
    {
        end_leftovers(home, &ended.record);
    }
    Ok(attempt)
}

/// Ends a loop from outside a boundary.
pub fn end_loop(home: &Home, id: &LoopId, ending: Ending, wait: Duration) -> Result<EndAttempt> {
    let held = match store::hold_loop(home, id, wait) {
        Ok(held) => held,
        Err(StoreError::Busy(_)) => return Ok(EndAttempt::LeftToTheBoundary),
        Err(error) => return Err(error.into()),
    };
    let record = held.load()?;
    if !record.is_live() {
        return Ok(EndAttempt::Over(Box::new(record)));
    }
    let what = ending.reason.to_string();
    let breaks_off = record.state.status() == Status::Running;
    let was_at_work = agent_works(home, &record);
    let turn_continues = was_at_work && needs_hooks(home, &record);
    let mut late = None;
    let record = held.change(&record, what, |record| {
        record_ending(home, record, ending);
        if breaks_off && !was_at_work {
            late = Some(left_uncounted(home, record));
        }
    })?;
    if let Some(late) = late {
        let _ = held.note(&record, clock::now(), late);
    }
    drop(held);
    if record.driver() == Driver::Session && record.outcome() == Some(Outcome::Cancelled) {
        // It only informs; the loop is over in any case.
        let _ = disk::write(&home.loop_file(id, UNREPORTED), b"", Durability::Process);
    }
    Ok(EndAttempt::Ended(Box::new(EndedLoop { turn_continues, ..wind_up(home, record) })))
}

/// Counts what the iteration of a loop that lost its owner had used, as far as its agent reported
/// it; the transcript of a session is counted elsewhere. Returns the note about it.
pub fn left_uncounted(home: &Home, record: &mut Loop) -> NoteKind {
    if record.driver() == Driver::Process {
        usage::add_late_usage(home, record);
    }
    NoteKind::CountedLate(record.driver())
}

/// Waits for the crew of a run that has ended or is paused, which is recorded before crew commits
/// and pushes. Fails if the crew does not exit.
pub fn let_end(record: &Loop) -> Result<()> {
    let owner = record.state.owner();
    let is_driven = matches!(record.state.status(), Status::Running | Status::Waiting);
    if is_driven || record.driver() == Driver::Session || is_ours(record) {
        return Ok(());
    }
    let gone = clock::Deadline::after(CREW_WAIT)
        .poll(CREW_STEP, || (owner_life(owner) != Life::Alive).then_some(()));
    if gone.is_some() {
        return Ok(());
    }
    let (id, pid) = (&record.id, owner.process.pid);
    Err(Failure::new(
        format!(
            "loop {id} is {}, but its crew run, process {pid}, still works in this working tree",
            record.status_word()
        ),
        format!("try again once it has ended, or end it: kill -INT {pid}"),
    )
    .into())
}

/// Ends a loop in its record.
pub fn record_ending(home: &Home, record: &mut Loop, ending: Ending) {
    // Nobody worked while the owner was gone, however late that is noticed.
    let worked_ms = if agent_works(home, record) { spent_ms(record) } else { 0 };
    usage::catch_up(record);
    record.state.finish(ending, worked_ms);
    // A crew that is gone reacts to nothing.
    if owner_life(record.state.owner()) == Life::Alive {
        record.state.git_mut().pending = Pending::after_boundary(record, false);
    }
}
