//! The command to type after reading a page: first one that shows something, then one that acts.

use serde::Serialize;

use super::ending::asked_for_help;
use super::{ChangesFrom, PageInputs};
use crate::engine::evidence::ClaimResult;
use crate::engine::journal::story::{Regression, regressions};
use crate::engine::record::{
    CheckMemory, Driver, FALLS_SHORT, Outcome, Proof, Role, Status, TaskOfFleet,
};
use crate::engine::test_changes::finding::ACCEPT;
use crate::engine::text::clip;

/// The longest command of a check, in characters.
const RUN_CHARS: usize = 40;

/// A command and what it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    pub command: String,
    /// A few words; empty where the command says it all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub what: String,
}

impl Step {
    fn new(command: impl Into<String>, what: &str) -> Self {
        Self { command: command.into(), what: what.to_owned() }
    }
}

/// The next command, and the one after it.
pub fn steps(inputs: &PageInputs<'_>) -> (Step, Option<Step>) {
    let record = inputs.view.record;
    let resume = |what: &str| Step::new(inputs.resume, what);
    let is_run = record.driver() == Driver::Process;
    match record.outcome() {
        Some(Outcome::Completed) if can_resume(inputs) => {
            (resume("does what is pending"), Some(look(inputs)))
        }
        None if is_at_rest(inputs) => (resume(""), None),
        None if is_run => (Step::new(format!("crew show {} --log -f", record.id), ""), None),
        None | Some(Outcome::Completed) => (look(inputs), None),
        Some(Outcome::Blocked) if asked_for_help(record).is_some() => {
            let kept = if is_run { "its log keeps it" } else { "the transcript keeps it" };
            let answer = Step::new(
                telling(inputs, "your answer"),
                &format!("no secrets in it: the agent reads it, and {kept}"),
            );
            (answer, record.fleet.is_some().then(|| resume("tries it again with your answer")))
        }
        Some(Outcome::Blocked) if has_reason(inputs, ACCEPT) => {
            let own = || format!("{} {ACCEPT}", inputs.resume);
            let accept = record.fleet.as_ref().map_or_else(own, TaskOfFleet::accept_test_changes);
            (look(inputs), Some(Step::new(accept, "if you accept that change")))
        }
        Some(Outcome::Blocked) if !can_resume(inputs) => (look(inputs), None),
        Some(Outcome::Blocked) => (look(inputs), Some(resume("once you have dealt with that"))),
        Some(outcome) => (look(inputs), Some(after(inputs, outcome))),
    }
}

/// Whether resuming the loop leads anywhere.
pub fn can_resume(inputs: &PageInputs<'_>) -> bool {
    match inputs.view.record.outcome() {
        // Not to continue it, but to do what is pending.
        Some(Outcome::Completed) => {
            inputs.view.record.fleet.is_none() && !inputs.view.record.state.git.left().is_empty()
        }
        // Only a new loop can require less.
        Some(Outcome::Blocked) => {
            asked_for_help(inputs.view.record).is_some() || !never_failed(inputs)
        }
        _ => true,
    }
}

/// What a person may do once they have looked at a loop that ended before its task was done.
fn after(inputs: &PageInputs<'_>, outcome: Outcome) -> Step {
    let (record, resume) = (inputs.view.record, inputs.resume);
    let is_run = record.driver() == Driver::Process;
    match outcome {
        Outcome::Cancelled => {
            let on = record.branch().map(|branch| format!("continues on {branch}"));
            let undo = changed_something(inputs)
                .then(|| format!("crew back {} 0 undoes what the loop changed", record.id));
            let what: Vec<String> = on.into_iter().chain(undo).collect();
            Step::new(resume, &what.join("; "))
        }
        Outcome::Aborted => after_failures(inputs, is_run),
        Outcome::Stalled if is_run => instead(inputs),
        Outcome::Exhausted => match shown_regression(inputs) {
            Some(Regression { green_after, .. }) => Step::new(
                format!("crew back {} {green_after}", record.id),
                &format!("brings back what passed, and can be undone; {resume} continues"),
            ),
            None => Step::new(resume, &once_more(inputs, is_run)),
        },
        _ => Step::new(resume, ""),
    }
}

/// The command that sends the agent of a loop that is over a message. That of a fleet's loop only
/// leaves it for the next attempt; any other resumes the loop.
fn telling(inputs: &PageInputs<'_>, words: &str) -> String {
    match &inputs.view.record.fleet {
        Some(task) => format!("{} \"{words}\"", task.tell()),
        None => format!("{} --tell \"{words}\"", inputs.resume),
    }
}

/// What a resume of a loop that met a limit does.
fn once_more(inputs: &PageInputs<'_>, is_run: bool) -> String {
    match &inputs.view.record.fleet {
        Some(task) => {
            format!("continues once its limit is raised; {} \"...\" advises the agent", task.tell())
        }
        None if is_run => "continues; --tell \"...\" answers or advises the agent".to_owned(),
        None => String::new(),
    }
}

/// How to resume a loop whose agent needs another idea.
fn instead(inputs: &PageInputs<'_>) -> Step {
    let what = match inputs.view.record.fleet {
        Some(_) => format!("kept; {} tries it again with this", inputs.resume),
        None => String::new(),
    };
    Step::new(telling(inputs, "what to try instead"), &what)
}

/// How to resume a loop that failed too often, by what failed last.
fn after_failures(inputs: &PageInputs<'_>, is_run: bool) -> Step {
    let evidence = inputs.view.record.state.evidence.as_ref();
    let said_so = evidence.is_some_and(|it| matches!(it.claim, ClaimResult::Failure(_)));
    let gate = evidence.and_then(|it| it.failing().find(|it| it.roles.contains(&Role::Gate)));
    let resume = inputs.resume;
    match gate.map(|gate| clip(&gate.run, RUN_CHARS)) {
        _ if said_so && is_run => instead(inputs),
        Some(gate) => Step::new(resume, &format!("once `{gate}` can pass")),
        None => Step::new(resume, "once the cause is dealt with"),
    }
}

/// Whether the proof falls short because no check has ever failed, which nobody can cure. A person
/// can cure the rest: a changed check, or what a run in the scratch folder needs.
fn never_failed(inputs: &PageInputs<'_>) -> bool {
    let record = inputs.view.record;
    has_reason(inputs, FALLS_SHORT)
        && record.contract.require == Some(Proof::Checked)
        && (record.state.checked_as_found || record.contract.before_the_first().next().is_none())
        && !record.state.checks.values().any(CheckMemory::ever_failed)
}

/// Whether `crew diff` and `crew back` have something to show.
fn changed_something(inputs: &PageInputs<'_>) -> bool {
    inputs.changes_from != ChangesFrom::Git && inputs.changes.is_some_and(|it| it.total() > 0)
}

/// The first check that turned red, if the difference that did it can be shown.
fn shown_regression(inputs: &PageInputs<'_>) -> Option<Regression> {
    let is_completed = inputs.view.record.outcome() == Some(Outcome::Completed);
    let is_there = changed_something(inputs) && !is_completed;
    let first = regressions(inputs.story).into_iter().next().filter(|_| is_there)?;
    (!first.files.is_empty()).then_some(first)
}

fn has_reason(inputs: &PageInputs<'_>, part: &str) -> bool {
    let ending = inputs.view.record.state.ending.as_ref();
    ending.is_some_and(|ending| ending.why.contains(part))
}

fn is_at_rest(inputs: &PageInputs<'_>) -> bool {
    inputs.view.owner_is_gone || inputs.view.record.state.status == Status::Paused
}

/// How a running loop is stopped; `None` for one that is over or at rest.
pub fn stop(inputs: &PageInputs<'_>) -> Option<String> {
    let is_running = inputs.view.record.is_live() && !is_at_rest(inputs);
    is_running.then(|| inputs.stop.to_owned())
}

/// The command that shows what the loop did.
fn look(inputs: &PageInputs<'_>) -> Step {
    let id = &inputs.view.record.id;
    if let Some(Regression { run, green_after, red_since, .. }) = shown_regression(inputs) {
        let command = format!("crew diff {id} {green_after}..{red_since}");
        return Step::new(command, &format!("what turned `{}` red", clip(&run, RUN_CHARS)));
    }
    let command = if changed_something(inputs) { "crew diff" } else { "crew show" };
    Step::new(format!("{command} {id}"), "")
}

#[cfg(test)]
mod tests {
    use crate::engine::fleet::fixture::{a_fleet, id};
    use crate::engine::view::tests::told_ends;

    #[test]
    fn the_loop_of_a_task_is_answered_and_resumed_by_its_fleet() {
        let ends = told_ends(Some(&a_fleet().task(&id("vat"))));
        let steps: Vec<&str> =
            ends.lines().filter(|line| line.is_empty() || line.starts_with('$')).collect();
        insta::assert_snapshot!(steps.join("\n"), @r#"
        $ crew diff haaaaaaa

        $ crew diff haaaaaaa 1..2 what turned `npm test` red
        $ crew back haaaaaaa 1 brings back what passed, and can be undone; crew fleet run tasks --retry continues

        $ crew diff haaaaaaa
        $ crew fleet run tasks --retry continues once its limit is raised; crew tell --fleet billing-cleanup --task vat "..." advises the agent

        $ crew tell --fleet billing-cleanup --task vat "your answer" no secrets in it: the agent reads it, and its log keeps it
        $ crew fleet run tasks --retry tries it again with your answer

        $ crew show haaaaaaa
        $ crew tell --fleet billing-cleanup --task vat "what to try instead" kept; crew fleet run tasks --retry tries it again with this

        $ crew show haaaaaaa
        $ crew fleet run tasks --retry continues on main

        $ crew diff haaaaaaa
        $ crew tell --fleet billing-cleanup --task vat "what to try instead" kept; crew fleet run tasks --retry tries it again with this

        $ crew show haaaaaaa
        $ crew fleet run tasks --retry once the cause is dealt with
        "#);
    }
}
