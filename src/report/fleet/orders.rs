//! The answer to an order or a message: which tasks obey or read it, and when.

use crate::engine::fleet::{Fleet, FleetRequest, TaskId};
use crate::engine::record::Outcome;
use crate::engine::text::{count, named};

/// The most tasks that a line names.
const NAMED_MAX: usize = 8;

/// One line for each group of tasks: those that obey at once, after their running iteration, and
/// those that had ended before.
pub fn page(fleet: &str, what: FleetRequest, groups: [&[TaskId]; 3]) -> String {
    let [at_once, later, over] = groups;
    let (done, still) = match what {
        FleetRequest::Pause => ("paused", "paused after the running iteration"),
        FleetRequest::Cancel => ("cancelled", "cancelled after the running iteration"),
    };
    let lines =
        [(done, at_once), (still, later), ("had ended or was cancelled already", over)].into_iter();
    let lines = lines.filter(|(_, tasks)| !tasks.is_empty());
    let mut lines: Vec<String> =
        lines.map(|(what, tasks)| format!("fleet {fleet}: {what}: {}", listed(tasks))).collect();
    if lines.is_empty() {
        lines.push(format!("fleet {fleet}: nothing is {done}: it has no task"));
    }
    if what == FleetRequest::Pause && !(at_once.is_empty() && later.is_empty()) {
        lines.push("the next crew fleet run resumes what is paused".to_owned());
    }
    lines.join("\n")
}

/// Who reads a message: tasks that are open, those that ended, and those for which too many wait.
pub fn told(
    fleet: &Fleet,
    open: &[TaskId],
    ended: &[(TaskId, Outcome)],
    full: &[TaskId],
) -> String {
    let mut lines = Vec::new();
    if !open.is_empty() {
        let tasks = count(open.len() as u64, "task");
        lines.push(format!("fleet {}: {tasks} will read it with the next prompt", fleet.name));
    }
    lines.extend(ended.iter().map(|(id, outcome)| {
        let retry = fleet.task(id).retry();
        format!("{id} is {}: {retry} tries it again with this", outcome.label())
    }));
    if !full.is_empty() {
        lines.push(format!("too many messages already wait for {}", listed(full)));
    }
    lines.join("\n")
}

/// What follows from accepting the changed checks of a task.
pub fn accepted(fleet: &Fleet, task: &TaskId) -> String {
    let run = fleet.task(task).run();
    format!(
        "{task}: its tests and check settings count as it ended with them; {run} tries it again"
    )
}

fn listed(tasks: &[TaskId]) -> String {
    let names: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    named(&names, NAMED_MAX)
}
