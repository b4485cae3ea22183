//! What the user does to a running loop without ending it: pause, new limits, a message to the
//! agent. Each is one change of the record under its lock; a boundary in progress decides again on
//! the new record.

use anyhow::{Result, bail};

use super::find::{owner_is_gone, owner_life, spent_ms};
use super::transcript::is_marked;
use super::{end, tree, usage};
use engine::boundary::limits::{LimitChanges, change_limits, describe_limits};
use engine::failure::Failure;
use engine::journal::NoteKind;
use engine::record::{Actor, Driver, Life, Loop, LoopId, MESSAGE_CHARS, Status};
use engine::refuse;
use readers::clients::next_step;
use world::clock;
use world::store::{self, Held, Home, LOCK_WAIT, view, wakes};

/// The maximum number of messages to the agent that may be queued.
const WORDS_MAX: usize = 5;

/// The result of a request to pause a loop.
#[derive(Debug, Clone, Copy)]
pub enum PauseResult {
    /// Immediately: nothing was running, or the running iteration is interrupted.
    Now,
    /// The running iteration ends first.
    AfterIteration,
    /// The loop's crew interrupts the running iteration or wait, and will repeat it.
    BreakingOff,
    /// It was already paused.
    Already,
    /// It has ended.
    Over,
}

/// Pauses a loop; `at_once` interrupts the iteration of a run. Returns the changed loop. The
/// request is written first. The record follows if no agent is at work, or if nothing of the
/// iteration is kept.
pub fn pause_loop(
    home: &Home,
    id: &LoopId,
    by: Actor,
    at_once: bool,
) -> Result<(Loop, PauseResult)> {
    let _lock = end::between_starts(home, id)?;
    let record = store::load(home, id)?;
    match record.state.status() {
        Status::Finished => return Ok((record, PauseResult::Over)),
        Status::Paused => return Ok((record, PauseResult::Already)),
        Status::Running | Status::Waiting => {}
    }
    let left = store::request_pause(home, id, by, at_once);
    left.map_err(|error| end::not_left(&record, error))?;
    let is_run = record.driver() == Driver::Process;
    let breaks_off = match record.driver() {
        Driver::Process => at_once || owner_is_gone(home, &record),
        // After Esc nothing runs whose end a pause could wait for.
        Driver::Session => is_marked(&record, record.state.session().transcript.as_deref()),
    };
    if record.state.wait().due().is_none() && !breaks_off {
        return Ok((record, PauseResult::AfterIteration));
    }
    match pause_now(home, id, &format!("paused by the {}", by.label())) {
        Ok(rested) => Ok((rested, PauseResult::Now)),
        Err(error) => match store::load(home, id) {
            Ok(found) if !found.is_live() => Ok((found, PauseResult::Over)),
            // Its crew process has the request, and carries it out even if the record is not
            // changed.
            Ok(found) if is_run && !owner_is_gone(home, &found) => {
                Ok((found, PauseResult::BreakingOff))
            }
            _ => Err(error),
        },
    }
}

/// Pauses a loop in the middle of an iteration: the agent was interrupted, or only a wait is
/// interrupted.
pub fn pause_now(home: &Home, id: &LoopId, what: &str) -> Result<Loop> {
    let mut was_at_work = false;
    let record = move_on(home, id, what, |record| {
        was_at_work = record.state.status() == Status::Running;
        stop_wait(home, record);
    })?;
    // A run's own process does this once its agent has ended; a wait has done it.
    if was_at_work && record.driver() == Driver::Session {
        tree::close_tree(home, &record);
    }
    Ok(record)
}

/// Pauses a loop's record.
pub fn stop_wait(home: &Home, record: &mut Loop) {
    // Nobody worked while the owner was gone.
    let worked_ms = if owner_is_gone(home, record) { 0 } else { spent_ms(record) };
    record.state.pause(clock::now(), worked_ms);
    usage::catch_up(record);
}

/// Starts the iteration in a loop's record: the time it waited counts as the loop's.
pub fn start_iteration(record: &mut Loop) {
    record.state.begin_iteration(clock::now());
}

/// Cuts short the wait in which a run's owner sleeps, after changing the limits and sending the
/// agent a message. Does nothing and returns `None` if its owner does not sleep.
pub fn wake_loop(
    home: &Home,
    id: &LoopId,
    changes: &LimitChanges,
    words: Option<&str>,
) -> Result<Option<Loop>> {
    let record = store::load(home, id)?;
    let waits = record.state.status() == Status::Waiting && record.driver() == Driver::Process;
    if !waits || owner_life(record.state.owner()) != Life::Alive {
        return Ok(None);
    }
    if !changes.is_empty() {
        set_limits(home, id, changes, Actor::User)?;
    }
    if let Some(words) = words {
        add_message(home, id, words)?;
    }
    move_on(home, id, "the wait was ended by the user", start_iteration).map(Some)
}

/// Changes the limits of a live loop.
pub fn set_limits(home: &Home, id: &LoopId, changes: &LimitChanges, by: Actor) -> Result<Loop> {
    let (held, record) = hold_live(home, id)?;
    let is_running = record.state.status() == Status::Running;
    let spent_ms = if is_running { spent_ms(&record) } else { 0 };
    let limits = change_limits(changes, &record, spent_ms);
    if by == Actor::Agent && !limits.are_within(&record.contract.limits) {
        refuse!(
            "an agent cannot raise a limit of loop {id}",
            "a person can, in their own terminal"
        );
    }
    if limits.max_iterations > 0 && limits.max_iterations < record.iteration() {
        let at = record.iteration();
        refuse!("loop {id} is in iteration {at} already", "crew cancel {id} ends it now");
    }
    let what = format!("limits set by the {}: {}", by.label(), describe_limits(&limits));
    let record = held.change(&record, what, |record| record.contract.limits = limits)?;
    let _ = view::write_view(&record);
    Ok(record)
}

/// Checks a message to an agent, and joins it to one line.
pub fn check_message(words: &str) -> Result<String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let words = words.join(" ");
    if words.is_empty() {
        bail!(Failure::usage("the message is empty", "crew tell \"use the existing parser\""));
    }
    if words.chars().count() > MESSAGE_CHARS {
        refuse!(
            "the message is longer than {MESSAGE_CHARS} characters",
            "write it to a file and send the file's name"
        );
    }
    Ok(words)
}

/// Queues a message for the agent, delivered with its next prompt.
pub fn add_message(home: &Home, id: &LoopId, words: &str) -> Result<Loop> {
    let words = check_message(words)?;
    let (held, record) = hold_live(home, id)?;
    if record.state.exchange().messages().len().saturating_sub(record.state.exchange().in_prompt())
        >= WORDS_MAX
    {
        refuse!(
            "{WORDS_MAX} messages are already waiting",
            "the agent gets them with its next prompt"
        );
    }
    Ok(held.change(&record, NoteKind::Message, |record| record.state.add_messages([words]))?)
}

/// Takes the lock of a loop and reads the loop. Fails if it has ended.
fn hold_live(home: &Home, id: &LoopId) -> Result<(Held, Loop)> {
    let held = store::hold_loop(home, id, LOCK_WAIT)?;
    let record = held.load()?;
    if !record.is_live() {
        refuse!(format!("loop {id} is {}", record.status_word()), next_step(&record));
    }
    Ok((held, record))
}

/// Moves a live loop between work, wait and pause, and revokes its wakes.
pub fn move_on(
    home: &Home,
    id: &LoopId,
    what: &str,
    change: impl FnOnce(&mut Loop),
) -> Result<Loop> {
    let (held, record) = hold_live(home, id)?;
    let record = held.change(&record, what, change)?;
    if let Some(session_id) = &record.state.owner().session_id {
        wakes::clear_companions(home, session_id, None);
    }
    let _ = view::write_view(&record);
    Ok(record)
}
