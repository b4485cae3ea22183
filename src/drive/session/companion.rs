//! The companion: a process the client runs beside the session, whose exit status 2 starts a turn
//! that the client's cap does not count. It never guesses: it waits until the boundary removes its
//! file or turns it into a ticket, and only a ticket that is still valid wakes the agent.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use chrono::TimeDelta;

use super::stop::{gather_facts, hand_over, is_ours, open_ours, wake_ticket};
use super::{EventResult, owned_or_last, session_loop};
use crate::drive::boundary::{self, DriverNotes, Recorded};
use crate::drive::end::{self, wind_up};
use crate::drive::transcript::is_at_work;
use crate::drive::windows::{self, LoopTurn};
use crate::drive::{control, usage};
use engine::boundary::decide::{Decision, wait_or_end};
use engine::boundary::facts::{AgentFacts, AgentOutcome};
use engine::journal::{Event, NoteKind};
use engine::record::{EndReason, Ending, Loop, LoopId, Outcome, Status};
use engine::words;
use readers::clients::Hook;
use readers::parse::service;
use world::clock::{self, Deadline};
use world::files::disk;
use world::process::signals;
use world::store::wakes::{self, WakeFile};
use world::store::{self, Held, Home, LOCK_WAIT, StoreError, view};

/// The shortest and the longest step of a sleep: a boundary waits for the companion's answer, while
/// a reset is hours away.
const STEP: Duration = Duration::from_millis(4);
const STEP_NEAR: Duration = Duration::from_millis(50);
const STEP_FAR: Duration = Duration::from_secs(1);
/// The number of steps after which a companion checks whether its loop still exists.
const LOOK_EVERY: u32 = 10;

/// Runs beside a stop: waits for a ticket, to wake the agent.
pub fn run_companion(home: &Home, hook: &Hook<'_>) -> Result<EventResult> {
    let Some((session_id, id)) = wakeable_loop(home, hook) else { return Ok(EventResult::Silent) };
    serve_ticket(home, &id, hook, &wakes::register_companion(home, session_id)?)
}

/// The fallback for a session that has been idle for a while. If its loop is due at a known time
/// and no running process has the ticket, this process takes it over.
pub fn idle_fallback(home: &Home, hook: &Hook<'_>) -> Result<EventResult> {
    let Some((session_id, id)) = wakeable_loop(home, hook) else { return Ok(EventResult::Silent) };
    let held = store::hold_loop(home, &id, LOCK_WAIT)?;
    let record = held.load()?;
    if record.state.wait().due().is_none() || wakes::is_held(home, session_id) {
        return Ok(EventResult::Silent);
    }
    wakes::clear_companions(home, session_id, None);
    let file = wakes::register_companion(home, session_id)?;
    wakes::hand_over(&file, &wake_ticket(&record))?;
    drop(held);
    serve_ticket(home, &id, hook, &file)
}

/// The session's loop, if the session owns one that continues and can be woken.
fn wakeable_loop<'a>(home: &Home, hook: &'a Hook<'_>) -> Option<(&'a str, LoopId)> {
    if !*hook.client.turns().wakes() {
        return None;
    }
    let session_id = hook.session_id().as_deref()?;
    // A record that cannot be read causes no wake; the stop itself reports it.
    let record = session_loop(home, hook).ok().flatten().filter(is_at_work)?;
    Some((session_id, record.id))
}

/// Waits on a companion's file until it is removed or its ticket is due.
fn serve_ticket(home: &Home, id: &LoopId, hook: &Hook<'_>, file: &Path) -> Result<EventResult> {
    let ended = signals::end_requested()?;
    let (mut step, mut looks, mut is_early) = (STEP, 0_u32, false);
    loop {
        let longest = match wakes::read_wake_file(file)? {
            WakeFile::Gone => return Ok(EventResult::Silent),
            WakeFile::Waiting => STEP_NEAR,
            WakeFile::Ticket(ticket) => {
                let left = (ticket.due - clock::now().wall).to_std().unwrap_or_default();
                if left.is_zero() || is_early {
                    is_early = false;
                    match redeem_ticket(home, id, hook, file) {
                        Ok(None) => STEP,
                        Ok(Some(result)) => return Ok(result),
                        Err(error) if is_busy(&error) => STEP_FAR,
                        Err(error) => return Err(error),
                    }
                } else {
                    left.min(STEP_FAR)
                }
            }
        };
        // The file is left, so that the idle fallback can take the ticket over.
        if ended.load(Ordering::Relaxed) {
            return Ok(EventResult::Silent);
        }
        looks += 1;
        if looks.is_multiple_of(LOOK_EVERY) {
            let record = store::load(home, id).ok().filter(is_at_work);
            let Some(record) = record.filter(|record| is_ours(record, hook)) else {
                disk::remove(file)?;
                return Ok(EventResult::Silent);
            };
            is_early = windows::has_moved(home, &record);
        }
        clock::sleep(step.min(longest));
        step = (step * 2).min(longest);
    }
}

/// Whether an error means that a lock is held a little longer than usual, which must not cost a
/// wake.
fn is_busy(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(StoreError::Busy(_)))
}

/// The result of a companion with a void ticket.
const VOID: Option<EventResult> = Some(EventResult::Silent);

/// Uses the ticket, under the loop's lock, if it is still valid and the loop's turn has come.
/// `None` if its turn after a limit comes later: the companion waits for it.
fn redeem_ticket(
    home: &Home,
    id: &LoopId,
    hook: &Hook<'_>,
    file: &Path,
) -> Result<Option<EventResult>> {
    let held = store::hold_loop(home, id, LOCK_WAIT)?;
    let WakeFile::Ticket(ticket) = wakes::read_wake_file(file)? else { return Ok(VOID) };
    let mut record = held.load()?;
    // The ticket is left for the boundary, which sees from it that there was no wake.
    if store::pending_request(home, id).is_some() {
        return Ok(VOID);
    }
    // Messages to the agent and new limits change the record, but not the reason for the wait.
    let valid = is_at_work(&record)
        && is_ours(&record, hook)
        && record.state.counts().boundaries() == ticket.boundaries
        && record.state.wait().due().is_none_or(|due| due == ticket.due);
    if valid
        && record.state.wait().due().is_some()
        && let Some(turn) = windows::turn_after_window(home, &windows::account_of(&record), id)
    {
        let is_its_wait = turn.is_awaited_by(&record);
        return if is_its_wait { Ok(None) } else { wait_longer(home, held, &record, &turn, file) };
    }
    disk::remove(file)?;
    if !valid {
        return Ok(VOID);
    }
    let woken = NoteKind::Woken(ticket.iteration);
    if record.state.wait().due().is_none() {
        held.note(&record, clock::now(), woken)?;
        return Ok(Some(EventResult::Wake(words::next_prompt(&record))));
    }
    // A hold is also due, while its loop runs.
    let waited =
        (clock::now().wall - record.state.time().began().wall).to_std().unwrap_or_default();
    let is_refused = record.state.counts().transient_errors() > 0;
    let before = record.clone();
    control::start_iteration(&mut record);
    boundary::take_back(home, &mut record)?;
    // Messages sent during the wait go with this prompt, which replaces the boundary's.
    record.state.put_messages_in_prompt();
    boundary::mark_undelivered(home, &record)?;
    let record = held.record(record, |next| Event::from_change(woken, &before, next))?;
    let _ = view::write_view(&record);
    let words =
        if is_refused { words::woken_prompt(&record, waited) } else { words::next_prompt(&record) };
    Ok(Some(EventResult::Wake(words)))
}

/// The ticket of a loop whose turn after a limit comes later, or the end of a loop that may not
/// wait so long.
fn wait_longer(
    home: &Home,
    held: Held,
    record: &Loop,
    turn: &LoopTurn,
    file: &Path,
) -> Result<Option<EventResult>> {
    let decision = wait_or_end(record, clock::now(), turn.at, &turn.why);
    if let Decision::Finish(ending) = decision {
        drop(held);
        disk::remove(file)?;
        end::end_loop(home, &record.id, ending, LOCK_WAIT)?;
        return Ok(VOID);
    }
    let what = format!("waits for its turn: {}", turn.why);
    let record = held.change(record, what, |record| turn.hold_back(record))?;
    let _ = view::write_view(&record);
    wakes::hand_over(file, &wake_ticket(&record))?;
    Ok(None)
}

// The model's service failed the agent. The client ignores an answer to that, but this process may
// continue beside the session and wake it: after a wait for a temporary error, at once for a
// request that was refused because of its content. If nobody is at the client, no process may wait:
// there the loop ends and can be resumed.

/// Records the failure, and waits if waiting helps, to wake the agent.
pub fn handle_failure(
    home: &Home,
    hook: &Hook<'_>,
    kind: &str,
    message: &str,
) -> Result<EventResult> {
    let Some(open) = open_ours(home, hook)? else { return Ok(EventResult::Silent) };
    let error = service::classify_error(kind, message, clock::local_time());
    let agent = AgentOutcome { error: Some(error), ..AgentOutcome::default() };
    let seen = AgentFacts { agent, ..AgentFacts::default() };
    let reading = usage::read_meter(&open.before, hook, None, false);
    let Some(facts) = gather_facts(home, &open, seen, reading.usage.as_ref())? else {
        return Ok(EventResult::Silent);
    };
    let mut memory = open.before.state.session().clone();
    memory.transcript_bytes = hook.transcript().as_deref().map_or(0, disk::size);
    memory.last_stop = None;
    // A wake starts another turn.
    memory.prompt_id = None;
    memory.metered = reading.metered;
    let veto = if hook.may_wake() {
        None
    } else {
        Some(Ending::new(Outcome::Interrupted, EndReason::CannotAwaitService(kind.to_owned())))
    };
    // A refusal does not clear the window of the account.
    let turn =
        windows::turn_after_window(home, &windows::account_of(&open.before), &open.before.id);
    let closing = DriverNotes { memory, veto, turn, ..DriverNotes::default() };
    let Some(recorded) = open.record_boundary(facts, closing)? else {
        return Ok(EventResult::Silent);
    };
    let Recorded { boundary, held, lock } = recorded;
    let continues = matches!(boundary.decision, Decision::Continue | Decision::Wait { .. });
    let session_id = hook.session_id().as_deref().unwrap_or_default();
    let file =
        if continues { wakes::register_companion(home, session_id).map(Some) } else { Ok(None) };
    let own = file.as_ref().ok().and_then(Option::as_deref);
    let handed_over = hand_over(home, hook, &boundary, held, own);
    drop(lock);
    if let Some(file) = file? {
        handed_over?;
        return serve_ticket(home, &boundary.after.id, hook, &file);
    }
    if matches!(boundary.decision, Decision::Finish(_)) {
        wind_up(home, boundary.after);
    }
    Ok(EventResult::Silent)
}

/// How long the other handler may take to record the wait.
const RECORDED_WITHIN: Duration = Duration::from_secs(10);

/// The loop of this session, once it waits for the model's service or ended because the service
/// refused a request, for a notice on the user's terminal; `None` if no user is there, or in any
/// other state. The client shows nothing of a hook's answer to a failed request, and lets only a
/// hook that it waits for send a notice (tried on 2.1.197 and 2.1.330): the handler beside the
/// waiting one does that. It records nothing.
pub fn handle_notice(home: &Home, hook: &Hook<'_>) -> Result<EventResult> {
    let Some(record) = owned_or_last(home, hook)? else { return Ok(EventResult::Silent) };
    // The other handler may have just ended it.
    let within = TimeDelta::from_std(RECORDED_WITHIN).unwrap_or_default();
    let is_recent = record.state.end().ended_at().is_none_or(|at| clock::now().wall - at < within);
    // The client waits for this process, so one that does not own the loop exits at once.
    if !is_recent || !hook.may_wake() || !is_ours(&record, hook) {
        return Ok(EventResult::Silent);
    }
    let looked = Deadline::after(RECORDED_WITHIN).poll(Duration::from_millis(20), || {
        let record = store::load(home, &record.id).ok()?;
        let is_recorded = record.state.status() != Status::Running;
        is_recorded.then_some(record)
    });
    Ok(match looked {
        Some(record)
            if matches!(record.state.status(), Status::Waiting | Status::Finished)
                && is_ours(&record, hook) =>
        {
            EventResult::ServiceNotice(Box::new(record))
        }
        _ => EventResult::Silent,
    })
}
