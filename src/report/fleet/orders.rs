//! The answer to an order: which tasks obey it, and when.

use crate::engine::fleet::manifest::FleetRequest;
use crate::engine::fleet::task::TaskId;

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
    let lines = [(done, at_once), (still, later), ("over before", over)].into_iter();
    let lines = lines.filter(|(_, tasks)| !tasks.is_empty());
    let mut lines: Vec<String> =
        lines.map(|(what, tasks)| format!("fleet {fleet}: {what}: {}", named(tasks))).collect();
    if lines.is_empty() {
        lines.push(format!("fleet {fleet}: nothing is {done}: it has no task"));
    }
    if what == FleetRequest::Pause && !(at_once.is_empty() && later.is_empty()) {
        lines.push("the next crew fleet run resumes what is paused".to_owned());
    }
    lines.join("\n")
}

fn named(tasks: &[TaskId]) -> String {
    let mut names: Vec<String> = tasks.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    if tasks.len() > NAMED_MAX {
        names.push(format!("… {} more", tasks.len() - NAMED_MAX));
    }
    names.join(", ")
}
