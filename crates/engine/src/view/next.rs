//! The command to type after reading a page: first one that shows something, then one that acts.
//! The commands and what they are for are in `templates/next.j2`.

use minijinja::{Value, context};
use serde::Serialize;

use super::ending::asked_for_help;
use super::{ChangesFrom, PageInputs};
use crate::evidence::Evidence;
use crate::journal::story::{Regression, find_regressions};
use crate::record::{
    CheckMemory, EndReason, IncurableRefusal, Outcome, Proof, Role, Status, TaskOfFleet,
};
use crate::templates;
use crate::test_changes::finding::ACCEPT;

/// A command and what it is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NextStep {
    pub command: String,
    /// A few words; empty where the command says it all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub what: String,
}

/// The next command, and the one after it. The command that sends a message to the agent of a loop
/// that is over resumes the loop; that of a fleet's loop only leaves it for the next attempt.
pub fn next_steps(inputs: &PageInputs<'_>) -> (NextStep, Option<NextStep>) {
    let record = inputs.view.record;
    let fleet = record.fleet.as_ref();
    let mut failing = record.state.evidence.iter().flat_map(Evidence::failing);
    let gate = failing.find(|it| it.roles.contains(&Role::Gate)).map(|it| &it.run);
    let values = context! {
        resume => inputs.resume,
        is_at_rest => record.is_live() && is_at_rest(inputs),
        can_resume => can_resume(inputs),
        needs => asked_for_help(record),
        tell => fleet.map(TaskOfFleet::tell_command),
        accept => accept_command(inputs),
        own_branch => record.branch(),
        gate,
        changed_something => changed_something(inputs),
        regression => shown_regression(inputs),
    };
    let view = Value::from_serialize(&inputs.view);
    let rows = templates::template_rows("next.j2", &context! { ..values, ..view });
    let mut steps =
        rows.into_iter().map(|row| NextStep { command: row.text, what: row.detail.concat() });
    (steps.next().unwrap_or_default(), steps.next())
}

/// The command that accepts the changed tests for which claims were refused.
fn accept_command(inputs: &PageInputs<'_>) -> Option<String> {
    let record = inputs.view.record;
    if !record.state.ending.as_ref()?.reason.is_of_test_changes() {
        return None;
    }
    let own = || format!("{} {ACCEPT}", inputs.resume);
    Some(record.fleet.as_ref().map_or_else(own, TaskOfFleet::accept_test_changes))
}

/// Whether resuming the loop leads anywhere.
pub fn can_resume(inputs: &PageInputs<'_>) -> bool {
    match inputs.view.record.outcome() {
        // Not to continue it, but to do what is pending.
        Some(Outcome::Completed) => {
            inputs.view.record.fleet.is_none()
                && !inputs.view.record.state.git.pending_steps().is_empty()
        }
        // Only a new loop can require less.
        Some(Outcome::Blocked) => {
            asked_for_help(inputs.view.record).is_some() || !never_failed(inputs)
        }
        _ => true,
    }
}

/// Whether the proof falls short because no check has ever failed, which nobody can remedy. A person
/// can remedy the rest: a changed check, or what a run in the scratch folder needs.
fn never_failed(inputs: &PageInputs<'_>) -> bool {
    let record = inputs.view.record;
    let reason = record.state.ending.as_ref().map(|ending| &ending.reason);
    let is_too_weak = matches!(reason, Some(EndReason::Refused(IncurableRefusal::ProofTooWeak(_))));
    is_too_weak
        && record.contract.require == Some(Proof::Checked)
        && (record.state.checked_as_found || record.contract.before_the_first().next().is_none())
        && !record.state.checks.values().any(CheckMemory::ever_failed)
}

/// Whether `crew diff` and `crew back` have something to show.
fn changed_something(inputs: &PageInputs<'_>) -> bool {
    inputs.changes_from != ChangesFrom::Git && inputs.changes.is_some_and(|it| it.file_count() > 0)
}

/// The first check that turned red, if the difference that did it can be shown.
fn shown_regression(inputs: &PageInputs<'_>) -> Option<Regression> {
    let is_completed = inputs.view.record.outcome() == Some(Outcome::Completed);
    let is_there = changed_something(inputs) && !is_completed;
    let first = find_regressions(inputs.story).into_iter().next().filter(|_| is_there)?;
    (!first.files.is_empty()).then_some(first)
}

fn is_at_rest(inputs: &PageInputs<'_>) -> bool {
    inputs.view.owner_is_gone || inputs.view.record.state.status == Status::Paused
}

/// How a running loop is stopped; `None` for one that is over or at rest.
pub fn stop_command(inputs: &PageInputs<'_>) -> Option<String> {
    let is_running = inputs.view.record.is_live() && !is_at_rest(inputs);
    is_running.then(|| inputs.stop.to_owned())
}
