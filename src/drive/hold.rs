//! Which background work a boundary waits for, and how long at most. A hold ends with its task; a task that
//! never ends must not hang a loop, so each hold is bounded, and work that the agent went on beside (a dev
//! server) is not waited for at all.

use std::time::Duration;

use crate::engine::owner::SessionMemory;
use crate::parse::payload::Task;

/// For agents of the client's own, which end by themselves.
const AGENTS_WITHIN: Duration = Duration::from_secs(60 * 60);
/// For commands: this long, then twice, four times and eight times as long.
const COMMANDS_WITHIN: Duration = Duration::from_secs(5 * 60);
/// The doublings of `COMMANDS_WITHIN`.
const DOUBLINGS_MAX: u32 = 3;

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// For people.
    pub work: String,
    pub within: Duration,
}

/// Brings the memory of background tasks up to date, and says what is waited for, if anything.
pub fn awaited(tasks: &[Task], used_a_tool: bool, memory: &mut SessionMemory) -> Option<Awaited> {
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
    memory.tasks = tasks.iter().map(|task| task.id.clone()).collect();
    let left: Vec<&Task> =
        tasks.iter().filter(|task| !memory.unawaited.contains(&task.id)).collect();
    let first = left.first()?;
    let is_agent = |task: &&&Task| matches!(&*task.kind, "subagent" | "workflow" | "teammate");
    let within = if left.iter().any(|task| is_agent(&task)) {
        AGENTS_WITHIN
    } else {
        COMMANDS_WITHIN * (1 << memory.holds.min(DOUBLINGS_MAX))
    };
    let description: String = first.description.chars().take(60).collect();
    Some(Awaited { work: format!("{} {description}", first.kind).trim_end().to_owned(), within })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, kind: &str) -> Task {
        Task { id: id.to_owned(), kind: kind.to_owned(), description: "npm run dev".to_owned() }
    }

    fn minutes(tasks: &[Task], used_a_tool: bool, memory: &mut SessionMemory) -> Option<u64> {
        let awaited = awaited(tasks, used_a_tool, memory)?;
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
