//! The task of a fleet that a loop works on, and the commands by which a person resumes and answers
//! it. It knows nothing of how that task stands.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Loop, Outcome};
use crate::engine::fleet::TaskId;
use crate::engine::test_changes::finding::ACCEPT;

/// A task, by its fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOfFleet {
    /// The fleet's name.
    pub name: String,
    /// The folder of its tasks, below the root of its repository.
    pub folder: String,
    pub task: TaskId,
}

/// The command that starts a fleet or joins it; `folder` is below the root of its repository.
pub fn fleet_run(folder: &str) -> String {
    let folder = if folder.is_empty() { "." } else { folder };
    format!("crew fleet run {}", shell_words::quote(folder))
}

impl TaskOfFleet {
    /// The command that starts the fleet, and takes up what is not over.
    pub fn run(&self) -> String {
        fleet_run(&self.folder)
    }

    /// The same, which also tries again what ended without being completed.
    pub fn retry(&self) -> String {
        format!("{} --retry", self.run())
    }

    /// How a person lifts a limit on cost or tokens. A limit of the fleet gives each task a part.
    pub fn without_usage_limits(&self) -> String {
        format!(
            "to go on without it: max-cost: 0 and max-tokens: 0 in the task's file \
             (--max-cost 0 lifts the fleet's), then {}",
            self.retry()
        )
    }

    /// The command that sends the task's agent a message, which stands behind it.
    pub fn tell(&self) -> String {
        format!("crew tell --fleet {} --task {}", self.name, self.task)
    }

    /// The command that accepts the tests and check settings of the task as its agent left them.
    pub fn accept_test_changes(&self) -> String {
        format!("{} {ACCEPT}", self.tell())
    }
}

impl fmt::Display for TaskOfFleet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "task {} of fleet {}", self.task, self.name)
    }
}

impl Loop {
    /// The command that resumes it within its fleet; `None` if it belongs to none.
    pub fn fleet_resume(&self) -> Option<String> {
        let task = self.fleet.as_ref()?;
        let is_over = self.outcome().is_some_and(|outcome| outcome != Outcome::Interrupted);
        Some(if is_over { task.retry() } else { task.run() })
    }

    /// Why nobody resumes it alone, and the way out; `None` if it belongs to no fleet.
    pub fn refusal_of_its_fleet(&self) -> Option<String> {
        let (task, resume) = (self.fleet.as_ref()?, self.fleet_resume()?);
        let tell = task.tell();
        Some(format!(
            "loop {} is {task}\nhint: {resume} resumes it; {tell} \"...\" answers it",
            self.id
        ))
    }

    /// The command by which a person accepts its tests and check settings as they are now.
    pub fn accept_test_changes(&self) -> String {
        self.fleet
            .as_ref()
            .map_or_else(|| format!("crew resume {ACCEPT}"), TaskOfFleet::accept_test_changes)
    }
}

#[cfg(test)]
mod tests {
    use super::fleet_run;
    use crate::engine::fixture::a_run;
    use crate::engine::fleet::Fleet;
    use crate::engine::fleet::fixture::{a_fleet, id};
    use crate::engine::record::{Ending, Loop, Outcome};

    #[test]
    fn a_fleet_takes_up_what_is_not_over_and_retries_only_what_ended_undone() {
        assert_eq!(fleet_run(""), "crew fleet run .", "tasks at the root of their repository");
        let fleet = Fleet { folder: "my tasks".to_owned(), ..a_fleet() };
        let resumed = |outcome: Option<Outcome>| {
            let mut record = Loop { fleet: Some(fleet.task(&id("vat"))), ..a_run(None) };
            record.state.ending = outcome.map(|outcome| Ending::new(outcome, "w"));
            record.fleet_resume()
        };
        let run = "crew fleet run 'my tasks'";
        for outcome in [None, Some(Outcome::Interrupted)] {
            assert_eq!(resumed(outcome).as_deref(), Some(run), "{outcome:?}");
        }
        for outcome in [Outcome::Blocked, Outcome::Exhausted, Outcome::Cancelled] {
            assert_eq!(resumed(Some(outcome)), Some(format!("{run} --retry")), "{outcome:?}");
        }
        assert_eq!(a_run(None).fleet_resume(), None);
    }
}
