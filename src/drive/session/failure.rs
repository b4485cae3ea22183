//! The model's service failed the agent. The client takes no answer to that, but this process may
//! stay alive beside the session and wake it: after a wait for an error that passes, at once for a
//! request that was refused because of its content. If nobody is at the client, nothing may sleep:
//! there the loop ends and can be resumed.

use std::time::Duration;

use anyhow::Result;

use super::companion;
use super::stop::{facts, is_ours, open_ours, ticket};
use crate::clients::Hook;
use crate::drive::boundary::{DriverNotes, Recorded};
use crate::drive::end::wind_up;
use crate::drive::{meter, tree, windows};
use crate::engine::boundary::decide::Decision;
use crate::engine::boundary::facts::{AgentOutcome, Seen};
use crate::engine::claim::Claim;
use crate::engine::record::{Ending, Loop, LoopId, Outcome, Status};
use crate::parse::service;
use crate::world::clock::{self, Deadline};
use crate::world::env;
use crate::world::files::disk;
use crate::world::process::identity;
use crate::world::store::{self, Home, read_pointer, view, wakes};

/// Records the failure, and waits if waiting helps. Returns the words to wake the agent with, or
/// `None`.
pub fn failure(home: &Home, hook: &Hook<'_>, kind: &str, message: &str) -> Result<Option<String>> {
    let Some(open) = open_ours(home, hook)? else { return Ok(None) };
    let error = service::classify(kind, message, clock::local());
    let agent = AgentOutcome { error: Some(error), ..AgentOutcome::default() };
    let jitter = u16::try_from(env::random() % 1000).unwrap_or(0);
    let seen = Seen { order: open.order(), claim: Claim::None, agent, jitter };
    let reading = meter::read(&open.before, hook, None, false);
    let Some(facts) = facts(home, &open, seen, reading.usage.as_ref())? else { return Ok(None) };
    let mut memory = open.before.state.session.clone();
    memory.transcript_bytes = hook.transcript.as_deref().map_or(0, disk::size);
    memory.last_stop = None;
    // A wake starts another turn.
    memory.prompt_id = None;
    memory.metered = reading.metered;
    let why = format!("the model's service failed ({kind}), and this session cannot wait for it");
    let veto = (!hook.may_wake()).then(|| Ending::new(Outcome::Interrupted, why));
    // A refusal does not clear the window of the account.
    let turn = windows::turn(home, &windows::account_of(&open.before), &open.before.id);
    let closing = DriverNotes { memory, veto, turn, ..DriverNotes::default() };
    let Some(recorded) = open.record(facts, closing)? else { return Ok(None) };
    let Recorded { boundary, held, lock } = recorded;
    let after = boundary.after;
    let session_id = hook.session_id.as_deref().unwrap_or_default();
    wakes::clear(home, session_id, None);
    let _ = view::write(&after);
    let rests = tree::may_rest(&boundary.decision);
    let close = || rests.then(|| tree::close(home, &after));
    match (boundary.decision, identity::myself()) {
        (Decision::Continue | Decision::Wait { .. }, Some(me)) => {
            let file = wakes::register(home, session_id, &me)?;
            wakes::hand_over(&file, &ticket(&after))?;
            drop((held, lock));
            close();
            companion::serve(home, &after.id, hook, &file)
        }
        (Decision::Finish(_), _) => {
            drop((held, lock));
            close();
            wind_up(home, after);
            Ok(None)
        }
        _ => {
            drop((held, lock));
            close();
            Ok(None)
        }
    }
}

/// How long the other handler may take to record the wait.
const RECORDED_WITHIN: Duration = Duration::from_secs(10);
/// Nanoseconds in a second.
const NANO: i128 = 1_000_000_000;

/// The loop of this session, once it waits for the model's service or is over because that refused
/// it, for a notice on the user's terminal; `None` if nobody watches, or if it is neither. The
/// client shows nothing of a hook's answer to a failed request, and lets only a hook that it waits
/// for send a notice (tried on 2.1.197 and 2.1.330): the handler beside the waiting one does that.
/// It records nothing.
pub fn notice(home: &Home, hook: &Hook<'_>) -> Result<Option<Box<Loop>>> {
    let Some(session_id) = hook.session_id.as_deref() else { return Ok(None) };
    let Some(id) = loop_of(home, session_id)? else { return Ok(None) };
    // The client waits for this process, so one that does not own the loop exits at once.
    if !hook.may_wake() || !is_ours(&store::load(home, &id)?, hook) {
        return Ok(None);
    }
    let looked = Deadline::after(RECORDED_WITHIN).poll(Duration::from_millis(20), || {
        let record = store::load(home, &id).ok()?;
        let is_recorded = record.state.status != Status::Running;
        is_recorded.then_some(record)
    });
    let rests = |record: &Loop| matches!(record.state.status, Status::Waiting | Status::Finished);
    Ok(looked.filter(|record| rests(record) && is_ours(record, hook)).map(Box::new))
}

/// The loop of a session, or the one that the other handler has just ended.
fn loop_of(home: &Home, session_id: &str) -> Result<Option<LoopId>> {
    if let Some(id) = read_pointer(&home.session_pointer(session_id))? {
        return Ok(Some(id));
    }
    let is_new = |id: &LoopId| {
        let now = i128::from(clock::now().wall.timestamp());
        let ended = disk::stamp(&home.loop_file(id, "result.json")).map(|(_, at)| at / NANO);
        ended.is_some_and(|ended| now - ended < i128::from(RECORDED_WITHIN.as_secs()))
    };
    Ok(read_pointer(&home.last_pointer(session_id))?.filter(is_new))
}
