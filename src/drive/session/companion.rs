//! The companion: a process the client runs beside the session, whose exit status 2 starts a turn
//! that the client's cap does not count. It never guesses: it waits until the boundary removes its
//! file or turns it into a ticket, and only a ticket that is still valid wakes the agent.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;

use super::stop::{is_ours, ticket};
use crate::clients::Hook;
use crate::drive::boundary::undelivered;
use crate::drive::windows::{self, LoopTurn};
use crate::drive::{control, end};
use crate::engine::boundary::decide::{Decision, waiting};
use crate::engine::journal::{Event, WOKEN};
use crate::engine::record::{Loop, LoopId, Status};
use crate::engine::words::prompt;
use crate::world::clock;
use crate::world::files::disk;
use crate::world::process::{identity, signals};
use crate::world::store::wakes::{self, WakeFile};
use crate::world::store::{self, Held, Home, LOCK_WAIT, StoreError, read_pointer, view};

/// The shortest and the longest step of a sleep: a boundary waits for the companion's answer, a
/// reset is hours away.
const STEP: Duration = Duration::from_millis(4);
const STEP_NEAR: Duration = Duration::from_millis(50);
const STEP_FAR: Duration = Duration::from_secs(1);
/// After how many steps a companion checks whether its loop still exists.
const LOOK_EVERY: u32 = 10;

/// Beside a stop: waits for a ticket. Returns the words to wake the agent with, or `None` to exit
/// silently.
pub fn companion(home: &Home, hook: &Hook<'_>) -> Result<Option<String>> {
    let Some((session_id, id)) = owned(home, hook)? else { return Ok(None) };
    let Some(me) = identity::myself() else { return Ok(None) };
    let file = wakes::register(home, session_id, &me)?;
    serve(home, &id, hook, &file)
}

/// The fallback for a session that has been idle for a while. If its loop is due at some time and
/// no living process has the ticket, this process takes it over.
pub fn idle_fallback(home: &Home, hook: &Hook<'_>) -> Result<Option<String>> {
    let Some((session_id, id)) = owned(home, hook)? else { return Ok(None) };
    let Some(me) = identity::myself() else { return Ok(None) };
    let held = store::hold(home, &id, LOCK_WAIT)?;
    let record = held.load()?;
    if record.state.due.is_none() || wakes::is_held(home, session_id) {
        return Ok(None);
    }
    wakes::clear(home, session_id, None);
    let file = wakes::register(home, session_id, &me)?;
    wakes::hand_over(&file, &ticket(&record))?;
    drop(held);
    serve(home, &id, hook, &file)
}

/// The session and its loop, if it owns one that continues and can be woken.
fn owned<'a>(home: &Home, hook: &'a Hook<'_>) -> Result<Option<(&'a str, LoopId)>> {
    let session_id = hook.session_id.as_deref().filter(|_| hook.abilities().wakes);
    let Some(session_id) = session_id else { return Ok(None) };
    let Some(id) = read_pointer(&home.session_pointer(session_id))? else { return Ok(None) };
    Ok(goes_on(home, &id, hook).then_some((session_id, id)))
}

fn goes_on(home: &Home, id: &LoopId, hook: &Hook<'_>) -> bool {
    store::load(home, id).is_ok_and(|record| is_live_here(&record, hook))
}

fn is_live_here(record: &Loop, hook: &Hook<'_>) -> bool {
    matches!(record.state.status, Status::Running | Status::Waiting) && is_ours(record, hook)
}

/// Waits on a companion's file until it is removed or its ticket is due.
pub fn serve(home: &Home, id: &LoopId, hook: &Hook<'_>, file: &Path) -> Result<Option<String>> {
    let ended = signals::end_requested()?;
    let (mut step, mut looks, mut is_early) = (STEP, 0_u32, false);
    loop {
        let longest = match wakes::read(file)? {
            WakeFile::Gone => return Ok(None),
            WakeFile::Waiting => STEP_NEAR,
            WakeFile::Ticket(ticket) => {
                let left = (ticket.due - clock::now().wall).to_std().unwrap_or_default();
                if left.is_zero() || is_early {
                    is_early = false;
                    match redeem(home, id, hook, file) {
                        Ok(Redeemed::Later) => STEP,
                        Err(error) if is_busy(&error) => STEP_FAR,
                        redeemed => return redeemed.map(Redeemed::words),
                    }
                } else {
                    left.min(STEP_FAR)
                }
            }
        };
        // The file is left, so that the idle fallback can take the ticket over.
        if ended.load(Ordering::Relaxed) {
            return Ok(None);
        }
        looks += 1;
        if looks.is_multiple_of(LOOK_EVERY) {
            let record = store::load(home, id).ok().filter(|record| is_live_here(record, hook));
            let Some(record) = record else {
                disk::remove(file)?;
                return Ok(None);
            };
            is_early = windows::has_moved(home, &record);
        }
        clock::sleep(step.min(longest));
        step = (step * 2).min(longest);
    }
}

/// A lock that is held a little longer than usual must not cost a wake.
fn is_busy(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(StoreError::Busy(_)))
}

/// What became of a ticket.
enum Redeemed {
    /// The words to wake the agent with.
    Used(String),
    Void,
    /// Its loop waits longer: its turn after a limit has not come.
    Later,
}

impl Redeemed {
    fn words(self) -> Option<String> {
        if let Self::Used(words) = self { Some(words) } else { None }
    }
}

/// Uses the ticket, under the loop's lock, if it is still valid and the loop's turn has come.
fn redeem(home: &Home, id: &LoopId, hook: &Hook<'_>, file: &Path) -> Result<Redeemed> {
    let held = store::hold(home, id, LOCK_WAIT)?;
    let WakeFile::Ticket(ticket) = wakes::read(file)? else { return Ok(Redeemed::Void) };
    let mut record = held.load()?;
    // The ticket is left for the boundary, which sees from it that nobody was woken.
    if store::order(home, id).is_some() {
        return Ok(Redeemed::Void);
    }
    // Messages to the agent and new limits change the record, but not what is waited for.
    let valid = is_live_here(&record, hook)
        && record.state.boundaries == ticket.boundaries
        && record.state.due.is_none_or(|due| due == ticket.due);
    if valid && record.state.due.is_some() {
        let turn = windows::turn(home, &windows::account_of(&record), id);
        if let Some(turn) = turn {
            if turn.is_awaited_by(&record) {
                return Ok(Redeemed::Later);
            }
            return wait_longer(home, held, record, turn, file);
        }
    }
    disk::remove(file)?;
    if !valid {
        return Ok(Redeemed::Void);
    }
    let what = format!("{WOKEN}{}", ticket.iteration);
    if record.state.due.is_none() {
        held.note(&record, clock::now(), what)?;
        return Ok(Redeemed::Used(prompt::next(&record)));
    }
    // A hold is also due, while its loop runs.
    let waited = (clock::now().wall - record.state.began.wall).to_std().unwrap_or_default();
    let is_refused = record.state.transient_errors > 0;
    control::begun(&mut record);
    undelivered::take_back(home, &mut record)?;
    // Messages sent during the wait go with this prompt, which replaces the boundary's.
    let state = &mut record.state;
    match &mut state.evidence {
        Some(evidence) if state.messages.len() > state.told => {
            let told = std::mem::take(&mut state.told);
            evidence.words = std::mem::take(&mut state.messages).split_off(told);
        }
        Some(_) => {}
        None => state.told = state.messages.len(),
    }
    undelivered::mark(home, &record)?;
    let record = held.record(record, |next| Event::changed(what, next))?;
    let _ = view::write(&record);
    let words = if is_refused { prompt::woken(&record, waited) } else { prompt::next(&record) };
    Ok(Redeemed::Used(words))
}

/// The ticket of a loop whose turn after a limit is later, or the end of one that may not wait so
/// long.
fn wait_longer(
    home: &Home,
    held: Held,
    mut record: Loop,
    turn: LoopTurn,
    file: &Path,
) -> Result<Redeemed> {
    let decision = waiting(&record, clock::now(), turn.at, &turn.why);
    if let Decision::Finish(ending) = decision {
        drop(held);
        disk::remove(file)?;
        end::end(home, &record.id, ending, LOCK_WAIT)?;
        return Ok(Redeemed::Void);
    }
    let what = format!("waits for its turn: {}", turn.why);
    windows::held_back(&mut record, turn.at, turn.why, turn.account);
    let record = held.record(record, |next| Event::changed(what, next))?;
    let _ = view::write(&record);
    wakes::hand_over(file, &ticket(&record))?;
    Ok(Redeemed::Later)
}
