//! A notice on the user's terminal that the loop waits for the model's service, or that it ended
//! because the service refused it. The client shows nothing of a hook's answer to a failed request,
//! and lets only a hook that it waits for send a notice to the terminal (tried on 2.1.197 and
//! 2.1.330). So the handler beside the waiting one does that. It records nothing.

use std::time::Duration;

use anyhow::Result;

use super::stop::is_ours;
use crate::clients::Hook;
use crate::engine::record::{Loop, LoopId, Status};
use crate::world::clock::{self, Deadline};
use crate::world::files::disk;
use crate::world::store;
use crate::world::store::Home;
use crate::world::store::home::read_pointer;

/// How long the other handler may take to record the wait.
const RECORDED_WITHIN: Duration = Duration::from_secs(10);
/// Nanoseconds in a second.
const NANO: i128 = 1_000_000_000;

/// The loop of this session, once it waits or is over; `None` if nobody watches, or if it is
/// neither.
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
