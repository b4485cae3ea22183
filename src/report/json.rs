//! Loops as JSON for programs. Every object has a `schema`; it is raised when the meaning of a key
//! changes.

use serde_json::{Value, json};

use crate::engine::record::{Ending, Loop, Status};
use crate::engine::usage::Usage;

/// The version of what `--json` prints.
pub const SCHEMA: u32 = 2;

/// The output of `crew status --json`.
pub fn status(loops: &[(Loop, bool)]) -> Value {
    let loops: Vec<Value> =
        loops.iter().map(|(subject, owner_is_gone)| one(subject, *owner_is_gone)).collect();
    json!({ "schema": SCHEMA, "loops": loops })
}

/// The current state of one loop.
pub fn one(subject: &Loop, owner_is_gone: bool) -> Value {
    let state = &subject.state;
    let run = subject.contract.run.as_ref();
    json!({
        "id": subject.id,
        "status": state.status,
        "outcome": subject.outcome(),
        "proof": state.ending.as_ref().and_then(|ending| ending.proof),
        "proved_at": state.proved_at,
        "why": state.ending.as_ref().map(Ending::reason),
        "iteration": subject.iteration(),
        "completed_iterations": state.completed,
        "limits": subject.contract.limits,
        "consecutive_failures": state.consecutive_failures,
        "iterations_without_progress": state.iterations_without_progress,
        "awake_ms": state.awake_ms,
        "wait": wait(subject),
        "started_at": subject.started_at,
        "last_iteration_at": state.last_iteration_at,
        "driver": subject.driver(),
        "agent": run.map(|run| &run.agent.name),
        "fallback": run.map(|run| run.fallback.iter().map(|it| &it.name).collect::<Vec<_>>()),
        "stand_in": subject.stand_in_at_work(),
        "shares": subject.state.agents.shares,
        "model": run.and_then(|run| run.model.as_ref()),
        "agent_words": run.map(|run| &run.words),
        "permissions": run.map(|run| run.permissions),
        "git": run.map(|run| &run.git),
        "pending": state.git.left().names(),
        "git_undone": state.git.undone(),
        "procedure": run.and_then(|run| run.procedure.as_ref()),
        "task": subject.contract.task,
        "require": subject.contract.require,
        "promise": subject.contract.promise,
        "checks": subject.contract.checks,
        "usage": usage(&state.usage),
        "iterations_ms": subject.elapsed_ms,
        "asked": state.asked,
        "evidence": state.evidence,
        "owner": state.owner,
        "owner_is_gone": owner_is_gone,
        "checkout": subject.place.checkout,
        "branch": subject.place.branch,
    })
}

/// What a waiting loop waits for: an account where it is the end of a limit that its loops share.
fn wait(subject: &Loop) -> Option<Value> {
    let state = &subject.state;
    (state.status == Status::Waiting)
        .then(|| json!({ "until": state.due, "why": state.wait_reason, "account": state.window }))
}

/// What was used: tokens and cost.
pub fn usage(usage: &Usage) -> Value {
    json!({
        "tokens": usage.tokens,
        "total_tokens": usage.tokens.total(),
        "cost_usd": usage.cost.dollars(),
        "cost_usd_at_most": usage.cost_at_most().dollars(),
        "unpriced_models": usage.unpriced_models,
        "is_lower_bound": usage.is_lower_bound(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixture::a_loop;

    #[test]
    fn every_object_names_its_schema() {
        let value = status(&[(a_loop(), false)]);
        assert_eq!(value["schema"], 2);
        assert_eq!(value["loops"][0]["iteration"], 1);
        assert_eq!(value["loops"][0]["limits"]["max_iterations"], 10);
        assert_eq!(value["loops"][0]["usage"]["total_tokens"], 0);
    }
}
