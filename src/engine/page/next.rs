//! The command to type after reading a page: first one that shows something, then one that acts.

use serde::Serialize;

use super::PageInputs;
use super::ending::asked_for_help;
use crate::engine::exam::finding::ACCEPT;
use crate::engine::journal::regression::{Regression, regressions};
use crate::engine::record::{Driver, Outcome, Status};
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
    let record = inputs.record;
    let resume = |what: &str| Step::new(inputs.resume, what);
    let is_run = record.driver() == Driver::Process;
    match record.outcome() {
        None if is_at_rest(inputs) => (resume(""), None),
        None if is_run => (Step::new(format!("crew show {} --log -f", record.id), ""), None),
        None | Some(Outcome::Completed) => (look(inputs), None),
        Some(Outcome::Blocked) if asked_for_help(record).is_some() && is_run => {
            (Step::new(format!("{} --tell \"your answer\"", inputs.resume), ""), None)
        }
        Some(Outcome::Blocked) if wants_acceptance(inputs) => {
            let accept = format!("{} --accept-exam", inputs.resume);
            (look(inputs), Some(Step::new(accept, "if you accept that change")))
        }
        Some(Outcome::Blocked) => (look(inputs), Some(resume("once you have dealt with that"))),
        Some(_) => (look(inputs), Some(resume(""))),
    }
}

/// Whether only a person can let the loop go on with the checks as they are now.
fn wants_acceptance(inputs: &PageInputs<'_>) -> bool {
    let ending = inputs.record.state.ending.as_ref();
    ending.is_some_and(|ending| ending.why.contains(ACCEPT))
}

fn is_at_rest(inputs: &PageInputs<'_>) -> bool {
    inputs.owner_is_gone || inputs.record.state.status == Status::Paused
}

/// How a running loop is stopped; `None` for one that is over or at rest.
pub fn stop(inputs: &PageInputs<'_>) -> Option<&'static str> {
    let is_running = inputs.record.is_live() && !is_at_rest(inputs);
    is_running.then_some("crew pause, crew cancel")
}

/// The command that shows what the loop did.
fn look(inputs: &PageInputs<'_>) -> Step {
    let id = &inputs.record.id;
    let is_there = inputs.has_snapshots && inputs.changes.is_some_and(|it| it.total() > 0);
    if let Some(Regression { run, green_after, red_since, files }) =
        regressions(inputs.story).first()
        && is_there
        && !files.is_empty()
    {
        let command = format!("crew diff {id} {green_after}..{red_since}");
        return Step::new(command, &format!("what turned `{}` red", clip(run, RUN_CHARS)));
    }
    if is_there {
        return Step::new(format!("crew diff {id}"), "");
    }
    Step::new(format!("crew show {id}"), "")
}
