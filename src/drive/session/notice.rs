//! A notice on the user's terminal that the loop waits for the model's service. The client shows
//! nothing of a hook's answer to a failed request, and lets only a hook that it waits for send a
//! notice to the terminal (tried on 2.1.197 and 2.1.330). So the handler beside the waiting one
//! does that. It records nothing.

use std::time::Duration;

use anyhow::Result;

use super::stop::is_ours;
use crate::clients::Hook;
use crate::engine::record::{Loop, Status};
use crate::world::clock::Deadline;
use crate::world::store;
use crate::world::store::Home;
use crate::world::store::home::read_pointer;

/// How long the other handler may take to record the wait.
const RECORDED_WITHIN: Duration = Duration::from_secs(10);

/// The loop of this session, once it waits; `None` if nobody watches, or the loop does not wait.
pub fn notice(home: &Home, hook: &Hook<'_>) -> Result<Option<Box<Loop>>> {
    let Some(session_id) = hook.session_id.as_deref() else { return Ok(None) };
    let Some(id) = read_pointer(&home.session_pointer(session_id))? else { return Ok(None) };
    // The client waits for this process, so one that does not own the loop exits at once.
    if !hook.may_wake() || !is_ours(&store::load(home, &id)?, hook) {
        return Ok(None);
    }
    let looked = Deadline::after(RECORDED_WITHIN).poll(Duration::from_millis(20), || {
        let record = store::load(home, &id).ok()?;
        let is_recorded = record.state.status != Status::Running;
        is_recorded.then_some(record)
    });
    let waits = |record: &Loop| record.state.status == Status::Waiting && is_ours(record, hook);
    Ok(looked.filter(waits).map(Box::new))
}
