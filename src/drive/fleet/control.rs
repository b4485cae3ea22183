//! What a person orders of a fleet: the order is recorded first, then the jobs that run are told.
//! A job that an engine starts later reads the record, so no engine's memory undoes an order.

use anyhow::{Result, bail};

use super::engines::{JobState, LOCAL, engine_of};
use super::memory::Memory;
use crate::drive::error_text::error_text;
use crate::drive::{control, end};
use crate::engine::fleet::lease::{Lease, TaskEnding, TaskState};
use crate::engine::fleet::manifest::{Fleet, FleetOrder, FleetRequest};
use crate::engine::fleet::task::TaskId;
use crate::engine::record::{Actor, Ending};
use crate::world::clock;
use crate::world::store::fleets::Leases;
use crate::world::store::{self, Home};

/// The most messages that wait for a task's loop.
const MESSAGES_MAX: usize = 5;

/// What became of an order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ordered {
    /// Tasks that it has ended or that it keeps from starting.
    pub at_once: Vec<TaskId>,
    /// Tasks that obey it after the running iteration.
    pub later: Vec<TaskId>,
    /// Tasks that had ended before.
    pub over: Vec<TaskId>,
    /// Why the engine could not be told; the order stands all the same.
    pub untold: Option<String>,
}

/// Gives an order for some tasks, or for all of them. `now` also ends the running iterations.
pub fn order(
    home: &Home,
    memory: &Memory,
    fleet: &Fleet,
    tasks: &[TaskId],
    order: &FleetOrder,
    now: bool,
) -> Result<Ordered> {
    let Leases { readable: leases, unreadable } = memory.leases()?;
    if let Some(found) = unreadable.iter().find(|it| tasks.contains(&it.task)) {
        bail!("task {} obeys no order: {}", found.task, found.why);
    }
    let unknown = tasks.iter().find(|id| !leases.iter().any(|kept| kept.value.id() == *id));
    if let Some(unknown) = unknown {
        bail!("there is no task {unknown}\nhint: crew fleet status names them");
    }
    memory.change_manifest(|fleet| {
        if tasks.is_empty() {
            fleet.order = Some(order.clone());
        }
        for id in tasks {
            fleet.orders.insert(id.clone(), order.clone());
        }
    })?;
    let mut ordered = Ordered::default();
    let is_meant = |lease: &Lease| tasks.is_empty() || tasks.contains(lease.id());
    for lease in leases.into_iter().map(|kept| kept.value).filter(is_meant) {
        let lease = if order.what == FleetRequest::Cancel {
            end_waiting(memory, &lease, order)?
        } else {
            lease
        };
        let id = lease.id().clone();
        match &lease.state {
            TaskState::Ended(ending) if ending.why == words(order) => ordered.at_once.push(id),
            TaskState::Ended(_) => ordered.over.push(id),
            TaskState::Waiting => ordered.at_once.push(id),
            TaskState::Running(_) if now && stop(home, &lease, order)? => ordered.at_once.push(id),
            TaskState::Running(_) => ordered.later.push(id),
        }
    }
    if order.what == FleetRequest::Cancel && fleet.engine != LOCAL {
        ordered.untold = end_jobs(home, fleet, tasks, now).err().map(|error| error_text(&error));
    }
    Ok(ordered)
}

/// Ends the jobs of tasks that have no place yet, and with `now` those that run.
fn end_jobs(home: &Home, fleet: &Fleet, tasks: &[TaskId], now: bool) -> Result<()> {
    let mut engine = engine_of(home, fleet, &|| false)?;
    for job in engine.list()? {
        let is_meant = tasks.is_empty() || tasks.iter().any(|task| task.as_str() == job.task);
        let is_to_end = match job.state {
            JobState::Waiting(_) => true,
            JobState::Running { .. } => now,
            JobState::Ended { .. } => false,
        };
        if is_meant && is_to_end {
            engine.cancel(&job.id)?;
        }
    }
    Ok(())
}

/// How an order ends a task.
fn words(order: &FleetOrder) -> String {
    Ending::cancelled(order.by, order.reason.as_deref()).why
}

/// Ends a task that nobody works on.
fn end_waiting(memory: &Memory, lease: &Lease, order: &FleetOrder) -> Result<Lease> {
    let ending = TaskEnding::of(Ending::cancelled(order.by, order.reason.as_deref()));
    let kept = memory.change(lease.id(), |lease| {
        let waits = lease.state == TaskState::Waiting;
        if waits {
            lease.state = TaskState::Ended(ending.clone());
            lease.at = clock::now().wall;
        }
        waits
    })?;
    Ok(kept.value)
}

/// Ends the running iteration of a task's loop. False where its loop is not on this machine.
fn stop(home: &Home, lease: &Lease, order: &FleetOrder) -> Result<bool> {
    let Some(id) = &lease.loop_id else { return Ok(false) };
    if store::load(home, id).is_err() {
        return Ok(false);
    }
    match order.what {
        FleetRequest::Pause => control::pause(home, id, order.by, true).map(drop)?,
        FleetRequest::Cancel => {
            end::cancel(home, id, order.by, order.reason.as_deref()).map(drop)?;
        }
    }
    Ok(true)
}

/// Sends every task's agent that is not done a message; returns to how many.
pub fn tell(memory: &Memory, words: &str) -> Result<usize> {
    let words = control::tellable(words)?;
    let mut told = 0;
    for kept in memory.leases()?.readable {
        if kept.value.ending().is_some() {
            continue;
        }
        let kept = memory.change(kept.value.id(), |lease| {
            let has_room = lease.ending().is_none() && lease.messages.len() < MESSAGES_MAX;
            if has_room {
                lease.messages.push(words.clone());
            }
            has_room
        })?;
        told += usize::from(kept.value.messages.last() == Some(&words));
    }
    Ok(told)
}

/// An order of the person at this terminal.
pub fn by(what: FleetRequest, by: Actor, reason: Option<&str>) -> FleetOrder {
    FleetOrder { what, by, reason: reason.map(str::to_owned) }
}
