//! Runs the user's commands at a moment of a loop. They come from the contract, so nothing that the
//! agent writes can add one. Reports how each ended; the caller decides what that means.

use std::time::Duration;

use super::ledger::Ledger;
use super::ports::{Checks, Tell};
use engine::events::RunEvent;
use engine::evidence::{TAIL_CHARS, Verdict};
use engine::record::LoopStep;
use engine::record::{Loop, LoopMoment, Reaction};
use engine::text::{plain_text, tail_of};
use engine::words::programs::{ReactionEnd, loop_document, reaction_variables};
use world::clock;
use world::process::{Call, ExitCause, FinishedProcess, Stop};
use world::store::Home;

/// Runs the user's commands for a moment, reports those that failed, and returns the first of them.
/// `is_told` says that the iteration's own line will have the first reason.
pub(super) fn react(
    checks: &dyn Checks,
    ledger: &Ledger<'_>,
    on: LoopMoment,
    is_told: bool,
) -> Option<String> {
    let stop = || ledger.signals.times() > 1;
    let mut first = None;
    for end in checks.react(&ledger.record, on, &|event| ledger.emit(event), &stop) {
        if end.has_failed() {
            let (failure, is_told) = (end.end_line(), is_told && first.is_none());
            let (run, why) = (&*end.run, &*failure);
            ledger.emit(&RunEvent::ReactionFailed { on, run, why, is_told });
            first.get_or_insert(failure);
        }
    }
    first
}

/// Runs the user's commands for the end, and crosses them out unless a signal ended them.
pub(super) fn react_to_the_end(checks: &dyn Checks, ledger: &Ledger<'_>) {
    react(checks, ledger, LoopMoment::Finish, false);
    if ledger.signals.times() <= 1 && !ledger.is_behind() {
        ledger.store.end_reaction(&ledger.record.id);
    }
}

/// Runs every reaction to a moment, one after the other, even if one failed, and reports each as it
/// begins. `stop` ends the running one and skips the rest.
pub fn run_reactions(
    home: &Home,
    subject: &Loop,
    on: LoopMoment,
    tell: Tell<'_>,
    stop: Stop<'_>,
) -> Vec<ReactionEnd> {
    let reactions = subject.contract.run.iter().flat_map(|run| &run.reactions);
    let step = match on {
        LoopMoment::IterationStart => LoopStep::PreHook,
        _ => LoopStep::PostHook,
    };
    let mut ends = Vec::new();
    for reaction in reactions.filter(|reaction| reaction.on == on) {
        if stop() {
            break;
        }
        tell(&RunEvent::StepStarted(step, &reaction.run));
        ends.push(run_reaction(home, subject, reaction, stop));
    }
    ends
}

fn run_reaction(home: &Home, subject: &Loop, reaction: &Reaction, stop: Stop<'_>) -> ReactionEnd {
    let on = reaction.on;
    let mut variables = reaction_variables(subject, on);
    variables.extend(subject.state.owner().search_path.clone().map(|path| ("PATH", path)));
    let input = loop_document(subject, on, clock::local_time()).to_string() + "\n";
    let ended = Call::shell(&reaction.run, &subject.place.folder)
        .envs(variables)
        .input(input.as_bytes())
        .within(Duration::from_secs(reaction.timeout_s))
        .noted(home.groups_folder(&subject.id))
        .run(stop);
    let (verdict, exit) = match ended.as_ref().map(FinishedProcess::cause) {
        Ok(ExitCause::Exit(0)) => (Verdict::Passed, Some(0)),
        Ok(ExitCause::Exit(code)) => (Verdict::Failed, Some(code)),
        Ok(ExitCause::TimedOut) => (Verdict::TimedOut, None),
        Ok(_) => (Verdict::Unknown, None),
        Err(_) => (Verdict::Failed, None),
    };
    let elapsed_ms = ended.as_ref().map_or(0, FinishedProcess::elapsed_ms);
    let output = ended.map_or_else(|error| error.to_string(), |ended| plain_text(&ended.text()));
    let tail = tail_of(&output, TAIL_CHARS);
    ReactionEnd { on, run: reaction.run.clone(), verdict, exit, elapsed_ms, tail }
}

#[cfg(test)]
#[path = "reactions_tests.rs"]
mod tests;
