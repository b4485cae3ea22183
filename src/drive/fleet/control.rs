//! What a person asks of a fleet: which one is meant, a pause or an end, a message, and that this
//! machine forgets it. A request is recorded first, then the jobs that run are told: a job that an
//! executor starts later reads the record. Nothing here touches a branch, a person's working tree
//! or the remote.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use super::executors::{JobState, executor_of};
use super::memory::{self, HELD_WAIT, Memory};
use super::worktree::end_leftovers as end_leftovers_of;
use crate::drive::control::{self, PauseResult};
use crate::drive::end::{self, EndAttempt};
use crate::drive::error_text::error_text;
use crate::engine::fleet::{Fleet, FleetOrder, FleetRequest, Lease, TaskEnding, TaskId, TaskState};
use crate::engine::record::Outcome;
use crate::engine::text::Shown;
use crate::parse::arguments::UsageError;
use crate::world::clock;
use crate::world::files::disk::{self, Lock};
use crate::world::git::{head, land};
use crate::world::store::{self, Home, Leases, fleets};

/// The most messages that wait for a task's loop.
const MESSAGES_MAX: usize = 5;

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
/// Returns the tasks that it has ended or that it keeps from starting, those that obey it after the
/// running iteration, and those that had ended before; then why the engine could not be told, and
/// the order holds all the same.
pub fn order(
    home: &Home,
    memory: &Memory,
    tasks: &[TaskId],
    order: &FleetOrder,
    now: bool,
) -> Result<([Vec<TaskId>; 3], Option<String>)> {
    // This machine's own copy has the orders of its last start.
    let fleet = &memory.manifest_here()?;
    let leases = leases(home, memory, tasks)?;
    if tasks.is_empty() && leases.iter().all(|lease| lease.ending().is_some()) {
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
    let [mut at_once, mut later, mut over] = <[Vec<TaskId>; 3]>::default();
    let is_meant = |lease: &Lease| tasks.is_empty() || tasks.contains(lease.id());
    for lease in leases.into_iter().filter(is_meant) {
        let lease = if order.what == FleetRequest::Cancel {
            end_waiting(memory, &lease, order, !tasks.is_empty())?
        } else {
            lease
        };
        let id = lease.id().clone();
        match &lease.state {
            TaskState::Ended(ending) if ending.why == order.ending().why => {
                // A loop that was paused would else stay on this machine for ever.
                stop(home, &lease, order)?;
                at_once.push(id);
            }
            TaskState::Ended(_) => over.push(id),
            _ if outranks(fleet.order_of(&id), order) => over.push(id),
            TaskState::Waiting => at_once.push(id),
            TaskState::Running(attempt)
                if (now || attempt.rests()) && stop(home, &lease, order)? =>
            {
                at_once.push(id);
            }
            TaskState::Running(_) => later.push(id),
        }
    }
    let is_cancel = order.what == FleetRequest::Cancel;
    let ended = if (is_cancel || now) && !fleet.is_local() {
        end_jobs(home, fleet, tasks, is_cancel, now)
    } else {
        Ok(())
    };
    Ok(([at_once, later, over], ended.err().map(|error| error_text(&error))))
}

/// Whether an order stands that another one does not undo: what is cancelled stays so.
fn outranks(standing: Option<&FleetOrder>, order: &FleetOrder) -> bool {
    let is_cancelled = standing.is_some_and(|it| it.what == FleetRequest::Cancel);
    is_cancelled && order.what == FleetRequest::Pause
}

/// The leases of a fleet that can be read, these tasks' among them.
fn leases(home: &Home, memory: &Memory, tasks: &[TaskId]) -> Result<Vec<Lease>> {
    let Leases { readable: leases, unreadable } = memory.leases()?;
    if let Some(found) = unreadable.iter().find(|it| tasks.contains(&it.task)) {
        bail!("task {} obeys no order: {}", found.task, found.why);
    }
    let unknown = tasks.iter().find(|id| !leases.iter().any(|lease| lease.id() == *id));
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
    let mut engine = executor_of(home, fleet, &|| false)?;
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

/// Ends a task that nobody works on. One that is named also ends if it needs a person, or if it is
/// completed and has not landed: a person turns its work down.
fn end_waiting(
    memory: &Memory,
    lease: &Lease,
    order: &FleetOrder,
    is_named: bool,
) -> Result<Lease> {
    memory.end(lease.id(), order.ending(), |lease| match &lease.state {
        TaskState::Waiting => true,
        TaskState::Running(_) => false,
        TaskState::Ended(ending) => {
            is_named && !lease.is_on_main() && ending.outcome != Outcome::Cancelled
        }
    })
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
    for lease in leases(home, memory, task.map_or(&[], std::slice::from_ref))? {
        let id = lease.id();
        if task.is_some_and(|task| task != id) {
            continue;
        }
        if let (Some(_), Some(refused)) = (task, refusal(fleet, &lease)) {
            bail!(refused);
        }
        let has_room = |lease: &Lease| lease.messages.len() < MESSAGES_MAX;
        let mut has_it = false;
        let kept = memory.change(id, |lease| {
            has_it = reads(lease, task.is_some()) && has_room(lease);
            lease.messages.push(words.clone());
            has_it
        })?;
        let (id, lease) = (id.clone(), &kept.value);
        match lease.ending() {
            _ if !reads(lease, task.is_some()) => {}
            _ if !has_it => delivery.full.push(id),
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
            let folder = &fleet.folder;
            return Some(format!(
                "task {task} has used up its {limit}\n\
                 hint: raise {limit} in {folder}/{task}.md, type {run}, then accept"
            ));
        }
        // The order would end the task again.
        if fleet.cancel_of(task).is_some() {
            return Some(format!("the fleet is cancelled\nhint: type {run}, then accept"));
        }
        (words.is_some() && lease.messages.len() >= MESSAGES_MAX).then(|| full(task))
    };
    leases(home, memory, std::slice::from_ref(task))?;
    let mut refused = None;
    memory.change(task, |lease| {
        refused = unfit(lease);
        lease.accept_test_changes();
        lease.messages.extend(words.clone());
        lease.at = clock::now().wall;
        refused.is_none()
    })?;
    refused.map_or(Ok(()), |refused| bail!(refused))
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

/// A fleet that this machine has forgotten.
#[derive(Debug)]
pub struct Forgotten {
    /// Its terms, which name the repository and the remote where its work is; `None` where they
    /// cannot be read.
    pub terms: Option<Fleet>,
    /// Whether that repository is still there, which a clone of crew's own is not.
    pub stays_here: bool,
    /// Why some of what is forgotten is still on disk. The next removal or start tries again.
    pub left: Option<io::Error>,
}

/// Forgets the fleet of that name.
///
/// # Errors
/// If there is none, if somebody works on it here, or if crew has a clone of its repository here:
/// nobody knows whether all of that was pushed. The fleet is then as it was.
pub fn forget(home: &Home, name: &str) -> Result<Forgotten> {
    fleets::remove_taken(home)?;
    if !fleets::is_kept(home, name) {
        let hint = memory::names(home)?;
        bail!("there is no fleet {} on this machine\nhint: {hint}", Shown(name));
    }
    let _door = fleets::hold_door(home, name)?;
    let _held = end_leftovers(home, name)?;
    let Some(_run) = fleets::hold_fleet(home, name)? else {
        bail!("a crew runs the fleet {name}\nhint: crew fleet pause --fleet {name} ends it");
    };
    let Some(_clone) = fleets::hold_clone(home, name, Duration::ZERO, &|| true)? else {
        bail!("a job clones the repository of the fleet {name}\nhint: wait for it");
    };
    let folder = home.fleet(name);
    let clone = folder.join("clone");
    if disk::exists(&clone) {
        bail!(
            "{0} may hold work that was not pushed\n\
             hint: look at it with git -C {0} worktree list, remove {0} and {0}.worktrees, and forget the fleet then",
            clone.display()
        );
    }
    let terms = fleets::manifest(home, name).ok().flatten().map(|kept| kept.value);
    land::discard(&folder.join("land"))?;
    fleets::take_out(home, name)?;
    let left = fleets::remove_taken(home).err();
    let stays_here = terms.as_ref().is_some_and(|terms| disk::exists(&terms.repository));
    Ok(Forgotten { terms, stays_here, left })
}

/// Ends what attempts that are gone have left on this machine, and keeps new ones away. Fails if
/// one is at work.
fn end_leftovers(home: &Home, name: &str) -> Result<Vec<Lock>> {
    let mut held = Vec::new();
    for task in fleets::taken_once(home, name)? {
        let Some(lock) = fleets::hold_behind_the_door(home, name, &task, HELD_WAIT)? else {
            bail!(
                "task {task} of the fleet {name} runs here\n\
                 hint: wait for it, or crew fleet pause --fleet {name} --now ends its iteration"
            );
        };
        end_leftovers_of(home, name, &task);
        held.push(lock);
    }
    Ok(held)
}

/// The fleet of that name. Without one, the newest of the repository that holds `folder`, whichever
/// of its working trees started it; outside a repository the only one of this machine.
///
/// # Errors
/// If there is none, with those that there are, or if there is more than one. `tell` hears of one
/// that cannot be read and is not meant.
pub fn find(
    home: &Home,
    name: Option<&str>,
    folder: &Path,
    tell: impl FnMut(io::Error),
) -> Result<Fleet> {
    let known = known(home, name, tell)?;
    if known.is_empty() {
        bail!("there is no fleet on this machine\nhint: crew fleet run FOLDER starts one");
    }
    if let Some(name) = name {
        let Some(found) = known.iter().find(|fleet| fleet.name == name) else {
            bail!("there is no fleet {}\nhint: name one of these: {}", Shown(name), listed(&known));
        };
        return Ok(found.clone());
    }
    let trees = head::roots(folder);
    match (newest(&known, &trees), &known[..]) {
        (Some(found), _) => Ok(found.clone()),
        (None, [only]) if trees.is_empty() => Ok(only.clone()),
        (None, _) if trees.is_empty() => bail!(UsageError::new(
            "there is more than one fleet on this machine",
            format!("name one of these: {}", listed(&known))
        )),
        (None, _) => bail!(
            "there is no fleet of this repository\n\
             hint: crew fleet status NAME, or --fleet NAME with any other command, means one of these: {}",
            listed(&known)
        ),
    }
}

/// The newest fleet of the repository that holds `folder`. What cannot be read is left out.
pub fn newest_here(home: &Home, folder: &Path) -> Option<Fleet> {
    let known = known(home, None, drop).ok().filter(|known| !known.is_empty())?;
    newest(&known, &head::roots(folder)).cloned()
}

fn known(
    home: &Home,
    name: Option<&str>,
    mut tell: impl FnMut(io::Error),
) -> io::Result<Vec<Fleet>> {
    let mut known = Vec::new();
    for found in fleets::names(home)? {
        match fleets::manifest(home, &found) {
            Ok(fleet) => known.extend(fleet.map(|kept| kept.value)),
            Err(error) if name == Some(&*found) => return Err(error),
            Err(error) if name.is_none() => tell(error),
            Err(_) => {}
        }
    }
    Ok(known)
}

fn newest<'a>(known: &'a [Fleet], trees: &[PathBuf]) -> Option<&'a Fleet> {
    let ours = known.iter().filter(|fleet| trees.contains(&fleet.repository));
    ours.max_by_key(|fleet| fleet.started_at)
}

/// "shop (/home/me/shop), billing (/home/me/billing)".
fn listed(known: &[Fleet]) -> String {
    let one =
        |fleet: &Fleet| format!("{} ({})", fleet.name, Shown(&fleet.repository.to_string_lossy()));
    known.iter().map(one).collect::<Vec<_>>().join(", ")
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
