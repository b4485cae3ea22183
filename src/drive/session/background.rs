//! Which background work a boundary waits for, and for how long at most. A hold ends with its task.
//! Each hold is bounded, so that a task that never ends cannot hang a loop. Work that the agent
//! continued beside (a dev server) is not waited for at all. An agent that works and leaves a new
//! job behind at every stop must not postpone its iterations for ever: after a few such turns the
//! next one counts, whatever is pending.

use std::time::Duration;

use crate::clients::Task;
use crate::engine::record::SessionMemory;
use crate::engine::text::start;

/// For the client's own agents, which end by themselves.
const AGENTS_WITHIN: Duration = Duration::from_secs(60 * 60);
/// For commands: the first hold; the next ones are twice, four times and eight times as long.
const COMMANDS_WITHIN: Duration = Duration::from_secs(5 * 60);
/// How many turns since the last iteration may use tools, end in a hold and still not count.
const WORKED_HOLDS_MAX: u32 = 3;
/// The doublings of `COMMANDS_WITHIN`.
const DOUBLINGS_MAX: u32 = 3;

/// The work that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundWait {
    /// The description for people.
    pub work: String,
    pub within: Duration,
    /// Whether the turn that ends now did more than wait.
    pub has_worked: bool,
}

/// Updates the memory of background tasks and returns what is waited for, if anything.
pub fn background_wait(
    tasks: &[Task],
    used_a_tool: bool,
    memory: &mut SessionMemory,
) -> Option<BackgroundWait> {
    let running = |id: &String| tasks.iter().any(|task| task.id == *id);
    memory.unawaited.retain(running);
    if used_a_tool {
        memory.holds = 0;
        for id in &memory.tasks {
            if running(id) && !memory.unawaited.contains(id) {
                memory.unawaited.push(id.clone());
            }
        }
    }
    let before =
        std::mem::replace(&mut memory.tasks, tasks.iter().map(|task| task.id.clone()).collect());
    let left: Vec<&Task> =
        tasks.iter().filter(|task| !memory.unawaited.contains(&task.id)).collect();
    let first = left.first()?;
    // Only a tool begins a job, even if the transcript does not show it yet.
    let has_worked = used_a_tool || left.iter().any(|task| !before.contains(&task.id));
    if has_worked && memory.worked_holds >= WORKED_HOLDS_MAX {
        return None;
    }
    let is_agent = |task: &&&Task| matches!(&*task.kind, "subagent" | "workflow" | "teammate");
    let within = if left.iter().any(|task| is_agent(&task)) {
        AGENTS_WITHIN
    } else {
        COMMANDS_WITHIN * (1 << memory.holds.min(DOUBLINGS_MAX))
    };
    let description = start(&first.description, 60);
    let work = format!("{} {description}", first.kind).trim_end().to_owned();
    Some(BackgroundWait { work, within, has_worked })
}

/// Counts a stop that ended in this hold, if it did.
pub fn remember(memory: &mut SessionMemory, held: Option<&BackgroundWait>) {
    memory.holds += u32::from(held.is_some());
    memory.worked_holds += u32::from(held.is_some_and(|held| held.has_worked));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, kind: &str) -> Task {
        Task { id: id.to_owned(), kind: kind.to_owned(), description: "npm run dev".to_owned() }
    }

    fn minutes(tasks: &[Task], used_a_tool: bool, memory: &mut SessionMemory) -> Option<u64> {
        let awaited = background_wait(tasks, used_a_tool, memory)?;
        memory.holds += 1;
        Some(awaited.within.as_secs() / 60)
    }

    #[test]
    fn a_command_is_waited_for_longer_each_time_and_an_agent_for_an_hour() {
        let mut memory = SessionMemory::default();
        let server = [task("1", "shell")];
        let held: Vec<_> = (0..5).map(|_| minutes(&server, false, &mut memory)).collect();
        assert_eq!(held, [Some(5), Some(10), Some(20), Some(40), Some(40)]);
        let agent = [task("1", "shell"), task("2", "subagent")];
        assert_eq!(minutes(&agent, false, &mut memory), Some(60));
        assert_eq!(minutes(&[], false, &mut memory), None);
    }

    #[test]
    fn of_turns_that_work_and_leave_a_job_behind_every_fourth_is_an_iteration() {
        let mut memory = SessionMemory::default();
        let mut held = |id: u32, used_a_tool: bool| {
            let awaited =
                background_wait(&[task(&id.to_string(), "shell")], used_a_tool, &mut memory);
            remember(&mut memory, awaited.as_ref());
            if awaited.is_none() {
                memory.worked_holds = 0;
            }
            awaited.is_some()
        };
        for used_a_tool in [true, false] {
            let row: Vec<bool> = (0..8).map(|id| held(id, used_a_tool)).collect();
            assert_eq!(row, [true, true, true, false, true, true, true, false]);
        }
        // A turn that only waits for the earlier job neither counts nor restarts the row.
        let row: Vec<bool> = (0..8).map(|turn| held(8 + turn / 2, false)).collect();
        assert_eq!(row, [true, true, true, true, true, true, false, true]);
    }

    #[test]
    fn a_task_the_agent_worked_beside_is_never_waited_for_again() {
        let mut memory = SessionMemory::default();
        let server = [task("1", "shell")];
        assert_eq!(minutes(&server, true, &mut memory), Some(5));
        assert_eq!(minutes(&server, true, &mut memory), None);
        assert_eq!(minutes(&server, false, &mut memory), None);
        let another = [task("1", "shell"), task("2", "shell")];
        assert_eq!(minutes(&another, false, &mut memory), Some(5));
    }
}
