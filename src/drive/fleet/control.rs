//! What a person orders of a fleet: the order is recorded first, then the jobs that run are told.
//! A job that an engine starts later reads the record, so no engine's memory undoes an order.

use std::cell::Cell;

use anyhow::{Result, bail};

use super::engines::{JobState, LOCAL, engine_of};
use super::memory::Memory;
use crate::drive::control::PauseResult;
use crate::drive::end::EndAttempt;
use crate::drive::error_text::error_text;
use crate::drive::{control, end};
use crate::engine::fleet::{
    Fleet, FleetOrder, FleetRequest, Landed, Lease, TaskEnding, TaskId, TaskState,
};
use crate::engine::record::{Actor, Ending, Outcome};
use crate::world::clock;
use crate::world::store::fleets;
use crate::world::store::{self, Home, Kept, Leases};

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

/// What became of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Tasks whose agents read it with their next prompt.
    pub open: Vec<TaskId>,
    /// Tasks that ended, and how: their agents read it once they are tried again.
    pub ended: Vec<(TaskId, Outcome)>,
    /// Tasks that do not get it, because too many messages wait for them.
    pub full: Vec<TaskId>,
}

/// Gives an order for some tasks, or for all of them. `now` also ends the running iterations.
pub fn order(
    home: &Home,
    memory: &Memory,
    tasks: &[TaskId],
    order: &FleetOrder,
    now: bool,
) -> Result<Ordered> {
    // This machine's own copy has the orders of its last start.
    let fleet = &memory.manifest_here()?;
    let leases = leases(home, memory, tasks)?;
    if tasks.is_empty() && leases.iter().all(|kept| kept.value.ending().is_some()) {
        let what = if order.what == FleetRequest::Pause { "pause" } else { "cancel" };
        bail!(
            "there is nothing to {what}: every task of the fleet {} has ended\n\
             hint: crew fleet status says how",
            fleet.name
        );
    }
    let is_cancelled = match tasks {
        [] => outranks(fleet.order.as_ref(), order),
        tasks => tasks.iter().all(|id| outranks(fleet.orders.get(id), order)),
    };
    if is_cancelled {
        bail!("that is cancelled already\nhint: crew fleet status says what still ends");
    }
    memory.change_manifest(|fleet| {
        if tasks.is_empty() && !outranks(fleet.order.as_ref(), order) {
            fleet.order = Some(order.clone());
        }
        for id in tasks {
            if !outranks(fleet.orders.get(id), order) {
                fleet.orders.insert(id.clone(), order.clone());
            }
        }
    })?;
    let mut ordered = Ordered::default();
    let is_meant = |lease: &Lease| tasks.is_empty() || tasks.contains(lease.id());
    for lease in leases.into_iter().map(|kept| kept.value).filter(is_meant) {
        let lease = if order.what == FleetRequest::Cancel {
            end_waiting(memory, &lease, order, !tasks.is_empty())?
        } else {
            lease
        };
        let id = lease.id().clone();
        match &lease.state {
            TaskState::Ended(ending) if ending.why == words(order) => {
                // A loop that was paused would else stay on this machine for ever.
                stop(home, &lease, order)?;
                ordered.at_once.push(id);
            }
            TaskState::Ended(_) => ordered.over.push(id),
            _ if outranks(fleet.order_of(&id), order) => ordered.over.push(id),
            TaskState::Waiting => ordered.at_once.push(id),
            TaskState::Running(attempt)
                if (now || attempt.rests()) && stop(home, &lease, order)? =>
            {
                ordered.at_once.push(id);
            }
            TaskState::Running(_) => ordered.later.push(id),
        }
    }
    let is_cancel = order.what == FleetRequest::Cancel;
    if (is_cancel || now) && fleet.engine != LOCAL {
        let ended = end_jobs(home, fleet, tasks, is_cancel, now);
        ordered.untold = ended.err().map(|error| error_text(&error));
    }
    Ok(ordered)
}

/// Whether an order stands that another one does not undo: what is cancelled stays so.
fn outranks(standing: Option<&FleetOrder>, order: &FleetOrder) -> bool {
    let is_cancelled = standing.is_some_and(|it| it.what == FleetRequest::Cancel);
    is_cancelled && order.what == FleetRequest::Pause
}

/// The leases of a fleet that can be read, these tasks' among them.
fn leases(home: &Home, memory: &Memory, tasks: &[TaskId]) -> Result<Vec<Kept<Lease>>> {
    let Leases { readable: leases, unreadable } = memory.leases()?;
    if let Some(found) = unreadable.iter().find(|it| tasks.contains(&it.task)) {
        bail!("task {} obeys no order: {}", found.task, found.why);
    }
    let unknown = tasks.iter().find(|id| !leases.iter().any(|kept| kept.value.id() == *id));
    if let Some(unknown) = unknown {
        if fleets::is_kept(home, unknown.as_str()) {
            bail!(
                "there is no task {unknown}: that is a fleet\n\
                 hint: --fleet {unknown} instead means all of its tasks"
            );
        }
        bail!("there is no task {unknown}\nhint: crew fleet status names them");
    }
    Ok(leases)
}

/// With `queued` ends the jobs of tasks that have no place yet, and with `now` those that run.
fn end_jobs(home: &Home, fleet: &Fleet, tasks: &[TaskId], queued: bool, now: bool) -> Result<()> {
    let mut engine = engine_of(home, fleet, &|| false)?;
    for job in engine.list()? {
        let is_meant = tasks.is_empty() || tasks.iter().any(|task| task.as_str() == job.task);
        let is_to_end = match job.state {
            JobState::Waiting(_) => queued,
            JobState::Running => now,
            JobState::Ended(_) => false,
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

/// Ends a task that nobody works on. One that is named also ends if it needs a person, or if it is
/// completed and has not landed: a person turns its work down.
fn end_waiting(
    memory: &Memory,
    lease: &Lease,
    order: &FleetOrder,
    is_named: bool,
) -> Result<Lease> {
    let ending = TaskEnding::of(Ending::cancelled(order.by, order.reason.as_deref()));
    let kept = memory.change(lease.id(), |lease| {
        let waits = match &lease.state {
            TaskState::Waiting => true,
            TaskState::Running(_) => false,
            TaskState::Ended(ending) => {
                let has_landed = matches!(ending.landed, Some(Landed::Main(_)));
                is_named && !has_landed && ending.outcome != Outcome::Cancelled
            }
        };
        if waits {
            lease.state = TaskState::Ended(ending.clone());
            lease.at = clock::now().wall;
        }
        waits
    })?;
    Ok(kept.value)
}

/// Ends the running iteration of a task's loop. False where its loop is over, or not on this
/// machine.
pub(super) fn stop(home: &Home, lease: &Lease, order: &FleetOrder) -> Result<bool> {
    let Some(id) = &lease.loop_id else { return Ok(false) };
    if store::load(home, id).is_err() {
        return Ok(false);
    }
    // One that is over already may be about to land.
    Ok(match order.what {
        FleetRequest::Pause => {
            let paused = control::pause(home, id, order.by, true)?;
            !matches!(paused.how, PauseResult::Over)
        }
        FleetRequest::Cancel => {
            let ended = end::cancel(home, id, order.by, order.reason.as_deref())?;
            !matches!(ended, EndAttempt::Over(_))
        }
    })
}

/// Sends a message to the agents of all tasks that are not over or that are blocked, or of `task`
/// alone, however that ended. Fails where nobody would read it, or where `task` takes no more.
pub fn tell(
    home: &Home,
    memory: &Memory,
    fleet: &Fleet,
    task: Option<&TaskId>,
    words: &str,
) -> Result<Delivery> {
    let words = control::tellable(words)?;
    let mut delivery = Delivery::default();
    for kept in leases(home, memory, task.map_or(&[], std::slice::from_ref))? {
        let id = kept.value.id();
        if task.is_some_and(|task| task != id) {
            continue;
        }
        if let (Some(_), Some(refused)) = (task, refusal(fleet, &kept.value)) {
            bail!(refused);
        }
        let has_room = |lease: &Lease| lease.messages.len() < MESSAGES_MAX;
        let has_it = Cell::new(false);
        let kept = memory.change(id, |lease| {
            has_it.set(reads(lease, task.is_some()) && has_room(lease));
            if has_it.get() {
                lease.messages.push(words.clone());
            }
            has_it.get()
        })?;
        let (id, lease) = (id.clone(), &kept.value);
        match lease.ending() {
            _ if !reads(lease, task.is_some()) => {}
            _ if !has_it.get() => delivery.full.push(id),
            None => delivery.open.push(id),
            Some(ending) => delivery.ended.push((id, ending.outcome)),
        }
    }
    if let (Some(task), [_]) = (task, &delivery.full[..]) {
        bail!(full(task));
    }
    if delivery == Delivery::default() {
        bail!(
            "no task of fleet {} is open, so none reads it\n\
             hint: --task TASK reaches one that ended, unless it is completed or cancelled",
            fleet.name
        );
    }
    Ok(delivery)
}

/// Frees a task that a change of its tests or check settings has blocked: a person accepts
/// that as the task ended with it. `words` are a message to its agent, if not empty.
///
/// # Errors
/// If the task ended otherwise or not at all, if one of its limits is used up, if the fleet is
/// cancelled, or if the task takes no more messages.
pub fn accept_test_changes(home: &Home, memory: &Memory, task: &TaskId, words: &str) -> Result<()> {
    let fleet = memory.manifest()?.value;
    let run = fleet.task(task).run();
    let words = (!words.is_empty()).then(|| control::tellable(words)).transpose()?;
    let unfit = |lease: &Lease| {
        let is_meant = lease.ending().is_some_and(TaskEnding::is_blocked_by_test_changes);
        if !is_meant {
            return Some(format!(
                "task {task} is not blocked by a change of its tests\n\
                 hint: crew fleet show {task} says how it stands"
            ));
        }
        if let Some(limit) = lease.spent_limit() {
            let (limit, folder) = (limit.row().name.replace('_', "-"), &fleet.folder);
            return Some(format!(
                "task {task} has used up its {limit}\n\
                 hint: raise {limit} in {folder}/{task}.md, type {run}, then accept"
            ));
        }
        // The order would end the task again.
        if fleet.order_of(task).is_some_and(|order| order.what == FleetRequest::Cancel) {
            return Some(format!("the fleet is cancelled\nhint: type {run}, then accept"));
        }
        (words.is_some() && lease.messages.len() >= MESSAGES_MAX).then(|| full(task))
    };
    leases(home, memory, std::slice::from_ref(task))?;
    let refused = Cell::new(None);
    memory.change(task, |lease| {
        let why = unfit(lease);
        let fits = why.is_none();
        refused.set(why);
        if fits {
            lease.accept_test_changes();
            lease.messages.extend(words.clone());
            lease.at = clock::now().wall;
        }
        fits
    })?;
    refused.into_inner().map_or(Ok(()), |refused| bail!(refused))
}

fn full(task: &TaskId) -> String {
    format!(
        "{MESSAGES_MAX} messages already wait for task {task}\n\
         hint: its agent gets them with its next prompt"
    )
}

/// Whether a message is meant for the agent of a task. One that ended otherwise than with a
/// question gets only what is meant for it alone.
fn reads(lease: &Lease, is_alone: bool) -> bool {
    match lease.ending().map(|ending| ending.outcome) {
        None | Some(Outcome::Blocked) => true,
        Some(Outcome::Completed | Outcome::Cancelled) => false,
        Some(_) => is_alone,
    }
}

/// Why nobody would read a message to a task, and the way out.
fn refusal(fleet: &Fleet, lease: &Lease) -> Option<String> {
    let outcome = lease.ending()?.outcome;
    let way_out = match outcome {
        Outcome::Completed => "what is still to do is a task of its own".to_owned(),
        Outcome::Cancelled => {
            format!("{} resumes it, and it takes messages again", fleet.task(lease.id()).retry())
        }
        _ => return None,
    };
    Some(format!("task {} is {}\nhint: {way_out}", lease.id(), outcome.label()))
}

/// An order of the person at this terminal.
pub fn by(what: FleetRequest, by: Actor, reason: Option<&str>) -> FleetOrder {
    FleetOrder { what, by, reason: reason.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fleet::fixture::{a_fleet, a_lease, ended};

    #[test]
    fn a_task_that_ended_undone_reads_what_is_meant_for_it_and_a_blocked_one_also_what_all_read() {
        let open = [("open", a_lease("a"))];
        let over = Outcome::ALL.map(|outcome| (outcome.label(), ended("a", outcome, "w", 1)));
        let rows = open.into_iter().chain(over).map(|(word, lease)| {
            let refused = refusal(&a_fleet(), &lease).map_or("", |_| " refused");
            format!("{word}: {} {}{refused}", reads(&lease, false), reads(&lease, true))
        });
        insta::assert_snapshot!(rows.collect::<Vec<_>>().join("\n"), @"
        open: true true
        completed: false false refused
        exhausted: false true
        aborted: false true
        stalled: false true
        blocked: true true
        cancelled: false false refused
        interrupted: false true
        error: false true
        ");
    }
}
