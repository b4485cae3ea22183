//! Whether an attempt may have a task: one that another attempt works on is left to it, one whose
//! attempt is gone is taken, and one that a person ended is not begun.

use std::time::Duration;

use anyhow::Result;

use super::memory::Memory;
use super::seat::{self, Stillness};
use super::{commands, control};
use crate::engine::fleet::{Attempt, FleetOrder, JobPhase, Lease, TaskEnding, TaskId, TaskState};
use crate::engine::record::Ending;
use crate::world::process::identity::my_id;
use crate::world::process::signals::Signals;
use crate::world::store::Home;
use crate::world::{clock, env, host};

/// Between two looks at the lease of an attempt that may be gone.
const LOOK: Duration = Duration::from_secs(5);
/// Whether another machine's attempt at the task is alive: it is waited for until its lease moves,
/// or has stood still for too long.
pub(super) fn is_alive_elsewhere(
    memory: &Memory,
    lease: &Lease,
    signals: &Signals,
) -> Result<bool> {
    let Some(attempt) = lease.attempt().filter(|attempt| !memory.is_here(attempt)) else {
        return Ok(false);
    };
    // The engine started its own job again: it says that the first start is over.
    let is_restarted = env::text("SLURM_RESTART_COUNT").is_some_and(|count| count != "0");
    if is_restarted && attempt.job.is_some() && attempt.job == env::text("SLURM_JOB_ID") {
        return Ok(false);
    }
    let mut still = Stillness::default();
    loop {
        let kept = memory.lease(lease.id())?;
        let is_same = kept.value.is_of(&attempt.id);
        if !is_same || signals.times() > 0 {
            return Ok(kept.value.attempt().is_some());
        }
        if still.is_stale(&kept.id) {
            return Ok(false);
        }
        if still.has_moved() {
            return Ok(true);
        }
        clock::sleep(LOOK);
    }
}

/// Takes a task that nobody works on, or whose attempt is the one that is gone. Another machine may
/// have taken it meanwhile.
pub(super) fn take(home: &Home, lease: &mut Lease, gone: Option<&String>, attempt: &str) -> bool {
    if !is_free(lease, gone) {
        return false;
    }
    let now = clock::now().wall;
    lease.attempts += 1;
    lease.at = now;
    lease.state = TaskState::Running(Attempt {
        id: attempt.to_owned(),
        host: host::host().map(|host| host.name).unwrap_or_default(),
        seat: seat::seat(home),
        pid: my_id(),
        job: env::text("SLURM_JOB_ID"),
        began_at: now,
        phase: JobPhase::Prepares,
    });
    true
}

/// Frees a task of an attempt that is gone.
pub(super) fn free(memory: &Memory, task: &TaskId, gone: Option<&String>) -> Result<()> {
    memory.change(task, |lease| {
        let is_gone = lease.attempt().is_some_and(|attempt| Some(&attempt.id) == gone);
        if is_gone {
            lease.state = TaskState::Waiting;
        }
        is_gone
    })?;
    Ok(())
}

/// Ends a task that a person cancelled and nobody works on, or whose attempt is gone, with what
/// that attempt left running here. An attempt that lives obeys by itself. The task must be held.
pub(super) fn end_cancelled(
    home: &Home,
    memory: &Memory,
    lease: &Lease,
    order: &FleetOrder,
) -> Result<Lease> {
    if lease.attempt().is_some() {
        commands::end_leftovers(home, &memory.fleet, lease.id());
        control::stop(home, lease, order)?;
    }
    let gone = lease.attempt().map(|attempt| &attempt.id);
    let ending = TaskEnding::of(Ending::cancelled(order.by, order.reason.as_deref()));
    let kept = memory.change(lease.id(), |lease| {
        let is_free = is_free(lease, gone);
        if is_free {
            lease.state = TaskState::Ended(ending.clone());
            lease.at = clock::now().wall;
        }
        is_free
    })?;
    Ok(kept.value)
}

/// Whether nobody works on a task, or only the attempt that is gone.
fn is_free(lease: &Lease, gone: Option<&String>) -> bool {
    match &lease.state {
        TaskState::Waiting => true,
        TaskState::Running(found) => Some(&found.id) == gone,
        TaskState::Ended(_) => false,
    }
}
