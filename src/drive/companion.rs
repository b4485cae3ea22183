//! The companion: a second process the client runs beside each stop, whose exit status 2 starts a turn
//! that the client's cap does not count. It never guesses; it waits until the boundary takes its file away
//! or turns it into a ticket, and only a ticket that is still valid wakes the agent.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;

use super::stop::is_ours;
use crate::engine::looped::{Loop, LoopId, Status};
use crate::engine::prompt;
use crate::parse::payload::Payload;
use crate::world::clock;
use crate::world::home::{Home, read_pointer};
use crate::world::store::{self, LOCK_WAIT};
use crate::world::wakes::{self, Post, Ticket};
use crate::world::{disk, unix};

/// The longest step of a sleep.
const STEP_MAX: Duration = Duration::from_millis(50);
/// How often a waiting companion looks whether its loop is still there.
const LOOK_EVERY: u32 = 10;

/// Waits for a ticket. The words to wake the agent with, or `None` to go quietly.
pub fn companion(home: &Home, payload: &Payload) -> Result<Option<String>> {
    let Some(session_id) = payload.session_id.as_deref().filter(|_| payload.agent_id.is_none())
    else {
        return Ok(None);
    };
    let Some(id) = read_pointer(&home.session_pointer(session_id))? else { return Ok(None) };
    let runs = || {
        store::load(home, &id).is_ok_and(|record| goes_on(&record) && is_ours(&record, session_id))
    };
    let ended = unix::end_requested()?;
    let Some(me) = unix::myself().filter(|_| runs()) else { return Ok(None) };
    let file = wakes::register(home, session_id, &me)?;
    let mut step = Duration::from_millis(4);
    let mut looks = 0_u32;
    loop {
        match wakes::read(&file)? {
            Post::Gone => return Ok(None),
            Post::Ticket(ticket) if ticket.due <= clock::now().wall => {
                return redeem(home, &id, session_id, &file, &ticket);
            }
            Post::Ticket(_) | Post::Waiting => {}
        }
        looks += 1;
        let orphaned = looks.is_multiple_of(LOOK_EVERY) && !runs();
        if orphaned || ended.load(Ordering::Relaxed) {
            disk::remove(&file)?;
            return Ok(None);
        }
        clock::sleep(step);
        step = (step * 2).min(STEP_MAX);
    }
}

fn goes_on(record: &Loop) -> bool {
    record.state.status == Status::Running
}

/// Uses the ticket, under the loop's lock, if nothing has changed since it was written.
fn redeem(
    home: &Home,
    id: &LoopId,
    session_id: &str,
    file: &Path,
    ticket: &Ticket,
) -> Result<Option<String>> {
    let held = store::hold(home, id, LOCK_WAIT)?;
    if !matches!(wakes::read(file)?, Post::Ticket(found) if found == *ticket) {
        return Ok(None);
    }
    let record = held.load()?;
    disk::remove(file)?;
    let valid = goes_on(&record)
        && record.state.generation == ticket.generation
        && is_ours(&record, session_id)
        && store::order(home, id)?.is_none();
    if !valid {
        return Ok(None);
    }
    held.note(&record, clock::now(), format!("woken for iteration {}", ticket.iteration))?;
    Ok(Some(prompt::next(&record)))
}
