//! The terms of a loop of fresh processes in words: who works, by which recipe, what it may do
//! without asking, and what crew does with git around an iteration.

use std::borrow::Cow;

use crate::engine::record::{GitSteps, Loop, Run};

/// The task, or the procedure that replaces it.
pub fn task(subject: &Loop) -> Cow<'_, str> {
    let task = subject.contract.task.as_str();
    match subject.procedure() {
        Some(name) if task.is_empty() => Cow::Owned(format!("procedure {name}")),
        _ => Cow::Borrowed(task),
    }
}

/// The rows of a page about who works, and what crew does with git.
pub fn rows(run: &Run) -> Vec<(&'static str, String)> {
    let procedure = run.procedure.as_ref().map(|name| format!("procedure {name}"));
    // Nothing is asked of an agent that lists no permissions, such as one typed as a command.
    let permissions = (!run.agent.permissions.is_empty())
        .then(|| format!("permissions {}", run.permissions.label()));
    let turns = (run.max_turns > 0).then(|| format!("at most {} turns", run.max_turns));
    let others: Vec<&str> = run.fallback.iter().map(|agent| agent.name.as_str()).collect();
    let others = (!others.is_empty()).then(|| format!("fallback {}", others.join(", ")));
    let agent = [Some(run.agent.name.clone()), procedure, permissions, turns, others];
    let agent: Vec<String> = agent.into_iter().flatten().collect();
    let git = git(&run.git).map(|steps| ("git", steps));
    std::iter::once(("agent", agent.join(", "))).chain(git).collect()
}

/// "commit, push, rebase onto main"; `None` if crew does nothing with git.
fn git(steps: &GitSteps) -> Option<String> {
    let named = |is_on: bool, name: &str| is_on.then(|| name.to_owned());
    let rebase = steps.rebase.as_ref().map(|branch| format!("rebase onto {branch}"));
    let steps = [named(steps.commit, "commit"), named(steps.push, "push"), rebase];
    let steps: Vec<String> = steps.into_iter().flatten().collect();
    (!steps.is_empty()).then(|| steps.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixture::a_run;

    #[test]
    fn a_run_names_its_agent_its_permissions_and_its_steps_of_git() {
        let mut run = a_run(Some("build")).contract.run.unwrap();
        let agent = "claude, procedure build, permissions accept-edits".to_owned();
        assert_eq!(rows(&run), [("agent", agent.clone())]);
        run.git = GitSteps {
            commit: true,
            push: true,
            rebase: Some("main".to_owned()),
            ..GitSteps::default()
        };
        run.max_turns = 7;
        let git = "commit, push, rebase onto main".to_owned();
        assert_eq!(rows(&run), [("agent", format!("{agent}, at most 7 turns")), ("git", git)]);
    }

    #[test]
    fn only_a_missing_task_is_named_by_its_procedure() {
        let mut run = a_run(Some("build"));
        assert_eq!(task(&run), "Build the todo API");
        run.contract.task.clear();
        assert_eq!(task(&run), "procedure build");
    }
}
