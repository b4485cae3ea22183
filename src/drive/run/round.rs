//! One round: an iteration, its boundary, and what follows from it. A boundary that cannot be
//! recorded is kept in memory and reported once; its limits still hold.

use std::time::Duration;

use super::Runner;
use super::attempt::IterationRun;
use crate::drive::boundary::{Boundary, DriverNotes, Open};
use crate::drive::checks::test_changes;
use crate::drive::tree::place;
use crate::drive::{end, tree};
use engine::boundary::decide::{Decision, spent_at_rest};
use engine::boundary::facts::{Facts, ProcessEnd};
use engine::boundary::judge::unfit_fallback;
use engine::events::RunEvent;
use engine::evidence::{TAIL_CHARS, Verdict};
use engine::journal::NoteKind;
use engine::record::LoopStep;
use engine::record::{EndReason, Ending, Loop, LoopMoment, Outcome, Reaction, Status};
use engine::text::{plain_text, tail_of};
use engine::usage::Usage;
use engine::words::programs::{ReactionEnd, loop_document, reaction_variables};
use world::clock::{self, RetryPolicy};
use world::process::{Call, ExitCause, Stop};
use world::store::{self, Home, view};

impl Runner<'_> {
    /// Makes one attempt, judges it, and does what was decided.
    pub(super) fn run_round(&mut self) {
        if !self.wait_delay() || self.signals.times() > 0 || self.is_asked() {
            return self.obey_request();
        }
        if let Some(gone) = place::missing_place(&self.ledger.record.place) {
            let reason = EndReason::External { cause: gone.text, hint: String::new() };
            return self.end_run(Outcome::Blocked, reason);
        }
        if let Some(ending) = spent_at_rest(&self.ledger.record) {
            return self.ledger.end_record(&ending);
        }
        if let Some(turn) = self.choose_agent() {
            return self.await_turn(&turn);
        }
        if self.is_admitted() {
            self.run_iteration();
            let ending =
                self.gate.as_mut().and_then(|gate| gate.iteration_ended(&self.ledger.record));
            if let Some(ending) = ending
                && self.ledger.record.is_live()
            {
                self.ledger.end_record(&ending);
            }
        }
    }

    /// One iteration and its boundary.
    fn run_iteration(&mut self) {
        // The wait to be admitted may have been long.
        if self.gate.is_some()
            && let Some(turn) = self.choose_agent()
        {
            return self.await_turn(&turn);
        }
        self.is_typed = false;
        let Some(attempt) = self.run_agent() else { return };
        self.is_rested = false;
        let usage = attempt.usage.clone();
        let judged =
            self.ledger.open_boundary().and_then(|open| self.judge_iteration(open, attempt));
        if let Some((boundary, facts)) = judged {
            return self.follow_decision(boundary, &facts);
        }
        // Somebody ended the loop while the agent was at work: its usage still counts.
        if let Some(usage) = usage.filter(|usage| *usage != Usage::default())
            && let Err(error) = end::count_late(self.home, &self.ledger.record.id, &usage)
        {
            self.emit_note(&format!(
                "the cost and tokens of the last iteration could not be counted: {error:#}"
            ));
        }
        self.close_at_rest();
    }

    /// A pause at once, and perhaps a cancel after it, was recorded by another process, while the
    /// agent or a check still ran here.
    fn close_at_rest(&self) {
        let Ok(found) = store::load(self.home, &self.ledger.record.id) else { return };
        let is_open = match found.state.status {
            Status::Paused => true,
            Status::Finished => !tree::is_closed(self.home, &found),
            Status::Running | Status::Waiting => false,
        };
        if is_open {
            tree::close_tree(self.home, &found);
        }
    }

    /// Judges and records. `None` when another process owns the record by now.
    fn judge_iteration(&mut self, open: Open, attempt: IterationRun) -> Option<(Boundary, Facts)> {
        let IterationRun { mut seen, usage } = attempt;
        let signalled = self.signals.times() > 0;
        // An immediate pause has said that this iteration is repeated, however it has ended since.
        if signalled || open.before.state.status == Status::Paused {
            seen.agent.process = Some(ProcessEnd::BrokenOff(self.signals.first()));
        }
        seen.agent.fallback_at = self.fallback_until(&seen.agent);
        let stop = || (self.must_stop() && !signalled) || self.is_broken_off();
        let gather = |facts, stop: Stop<'_>| {
            open.gather_checked(facts, stop, &|event| self.emit_event(event))
        };
        let mut left = open.gather_facts(seen, usage);
        let facts = gather(left.clone(), &stop).or_else(|| {
            // A signal or a request ended a check: all that is known of the iteration is what the
            // agent left, and that it was broken off.
            left.seen.agent.process = Some(ProcessEnd::BrokenOff(self.signals.first()));
            (left.seen.request, left.protected) = (open.read_request(), None);
            gather(left, &|| false)
        })?;
        let closing = DriverNotes { lost: self.place_lost(), ..DriverNotes::default() };
        let (boundary, error) = open.record_or_remember(facts.clone(), closing)?;
        if let Some(error) = error {
            self.ledger.keep_in_memory(error);
        }
        Some((boundary, facts))
    }

    /// Reports the boundary's result, and does the git steps and reactions that belong to it.
    fn follow_decision(&mut self, boundary: Boundary, facts: &Facts) {
        let Boundary { after, decision, note, .. } = boundary;
        if let Some(note) = note {
            self.emit_note(&note);
        }
        let counted = after.state.completed > self.ledger.record.state.completed;
        let began = std::mem::replace(&mut self.ledger.record, after);
        let _ = view::write_view(&self.ledger.record);
        if counted {
            self.handoff = None;
            let after = &self.ledger.record;
            let exit = match &facts.seen.agent.process {
                Some(ProcessEnd::Exit(code)) => Some(*code),
                _ => None,
            };
            self.emit_event(&match &facts.seen.agent.process {
                Some(ProcessEnd::Skipped(why)) => RunEvent::Skipped { record: &began, why },
                _ => RunEvent::IterationEnded { after, exit, ends: after.outcome() },
            });
            let git = self.run_terms().git;
            self.take_steps(git.commit, git.push);
        }
        if self.stalls_by_half(&began) {
            self.react_to(LoopMoment::Stall);
        }
        tree::close_after(self.home, &self.ledger.record, &decision);
        if let Some(why) = unfit_fallback(&began, facts) {
            self.lose_the_stand_in(&decision, &why);
        }
        if counted && matches!(decision, Decision::Continue | Decision::Wait { .. }) {
            self.hand_on_past_the_redline();
        }
        match decision {
            Decision::Wait { until, why } if facts.seen.agent.has_fallback_by(until) => {
                self.hand_to_fallback(until, why);
            }
            Decision::Wait { .. } => {
                self.react_to(LoopMoment::Wait);
            }
            Decision::Finish(_) if !self.ledger.is_behind() => {
                end::wind_up(self.home, self.ledger.record.clone());
            }
            Decision::Finish(_) | Decision::Hold(_) | Decision::Continue => {}
        }
    }

    /// Gives the next process the whole page if the context of the last one was nearly full: what
    /// it said at its end may be all that it still knew.
    fn hand_on_past_the_redline(&mut self) {
        let record = &self.ledger.record;
        let Some(percent) = record.past_redline() else { return };
        let why = format!(
            "iteration {} filled {percent}% of its context: the next prompt has the handoff page",
            record.state.completed
        );
        self.handoff = end::handoff::hand_on(self.home, record, "redline");
        let _ = store::note_in_journal(self.home, &record.id, &*why);
        self.emit_note(&why);
    }

    /// Whether this boundary is the first in a row without progress that reaches half of the limit.
    fn stalls_by_half(&self, before: &Loop) -> bool {
        let record = &self.ledger.record;
        let half = record.contract.limits.stall.div_ceil(2);
        half > 0
            && record.state.iterations_without_progress >= half
            && before.state.iterations_without_progress < half
    }

    /// Runs the user's commands for a moment, reports those that failed, and returns the first of
    /// them.
    pub(super) fn react_to(&self, on: LoopMoment) -> Option<String> {
        self.react_around(on, false)
    }

    /// The same around an iteration. `is_told` says that its line will have the first reason.
    pub(super) fn react_around(&self, on: LoopMoment, is_told: bool) -> Option<String> {
        let stop = || self.signals.times() > 1;
        let step = match on {
            LoopMoment::IterationStart => LoopStep::PreHook,
            _ => LoopStep::PostHook,
        };
        let begins = |run: &str| self.emit_event(&RunEvent::StepStarted(step, run));
        let mut first = None;
        for end in run_reactions(self.home, &self.ledger.record, on, &begins, &stop) {
            if end.has_failed() {
                let why = end.end_line();
                let is_told = is_told && first.is_none();
                self.emit_event(&RunEvent::ReactionFailed {
                    on,
                    run: &end.run,
                    why: &why,
                    is_told,
                });
                first.get_or_insert(why);
            }
        }
        first
    }

    /// Marks what crew itself did to the working tree, so that it is not the agent's progress.
    /// `left` is the snapshot from just before.
    pub(super) fn look_at_the_tree(&mut self, note: NoteKind, left: Option<&str>) {
        let (home, record) = (self.home, &self.ledger.record);
        let is_watched = record.watches_the_tree();
        let tree = if is_watched { tree::look_again(home, record, left) } else { None };
        let is_commit = matches!(note, NoteKind::Committed(_));
        self.ledger.change_record(note, |record| {
            test_changes::follow_tree(home, record, tree.clone(), false);
            record.state.git_mut().pending.commit &= !is_commit;
        });
    }

    /// Takes what a person changed while no agent was at work as the loop found it.
    pub(super) fn follow_the_person(&mut self) {
        let home = self.home;
        let Some(seen) = tree::look_after_a_rest(home, &self.ledger.record) else { return };
        self.ledger.change_record("what a person changed in between", |record| {
            test_changes::follow_tree(home, record, Some(seen.clone()), true);
        });
    }

    /// The user's messages are in the prompt of the iteration that begins: those queued, and those
    /// that the last boundary left.
    pub(super) fn mark_as_delivered(&mut self) {
        let state = &self.ledger.record.state;
        let count = state.messages.len();
        let has_words = state.evidence.as_ref().is_some_and(|last| !last.words.is_empty());
        if count != state.told || has_words {
            self.ledger
                .change_record(NoteKind::Delivered, |record| record.state.mark_in_prompt(count));
        }
    }
}

// Runs the user's commands at a moment of a loop. They come from the contract, so nothing that the
// agent writes can add one. Reports how each ended; the caller decides what that means.

/// Runs every reaction to a moment, one after the other, even if one failed. `begins` has
/// the command of each; `stop` ends the running one and skips the rest.
fn run_reactions(
    home: &Home,
    subject: &Loop,
    on: LoopMoment,
    begins: &dyn Fn(&str),
    stop: Stop<'_>,
) -> Vec<ReactionEnd> {
    let reactions = subject.contract.run.iter().flat_map(|run| &run.reactions);
    let mut ends = Vec::new();
    for reaction in reactions.filter(|reaction| reaction.on == on) {
        if stop() {
            break;
        }
        begins(&reaction.run);
        ends.push(run_reaction(home, subject, reaction, stop));
    }
    ends
}

fn run_reaction(home: &Home, subject: &Loop, reaction: &Reaction, stop: Stop<'_>) -> ReactionEnd {
    let on = reaction.on;
    let mut variables = reaction_variables(subject, on);
    variables.extend(subject.state.owner.search_path.clone().map(|path| ("PATH", path)));
    let input = loop_document(subject, on, clock::local_time()).to_string() + "\n";
    let ended = Call::shell(&reaction.run, &subject.place.folder)
        .envs(variables)
        .input(input.as_bytes())
        .within(Duration::from_secs(reaction.timeout_s))
        .noted(home.groups_folder(&subject.id))
        .run(stop);
    let (verdict, exit) = match ended.as_ref().map(|ended| ended.cause) {
        Ok(ExitCause::Exit(0)) => (Verdict::Passed, Some(0)),
        Ok(ExitCause::Exit(code)) => (Verdict::Failed, Some(code)),
        Ok(ExitCause::TimedOut) => (Verdict::TimedOut, None),
        Ok(_) => (Verdict::Unknown, None),
        Err(_) => (Verdict::Failed, None),
    };
    let elapsed_ms = ended.as_ref().map_or(0, |ended| ended.elapsed_ms);
    let output = ended.map_or_else(|error| error.to_string(), |ended| plain_text(&ended.text()));
    let tail = tail_of(&output, TAIL_CHARS);
    ReactionEnd { on, run: reaction.run.clone(), verdict, exit, elapsed_ms, tail }
}

// The gate before each iteration of a fleet's run, and what becomes of the work after it. A run
// that a person typed has none. Waiting at the gate counts to no limit.

/// Between two requests to be admitted: many runs may wait in a queue.
const ASKS: RetryPolicy =
    RetryPolicy::growing(Duration::from_millis(10), Duration::from_millis(200));

/// What the gate answers before an iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    Granted,
    /// Not yet; what the run waits for.
    Later(String),
    /// The loop pauses.
    Paused,
    /// The loop ends here.
    Ends(Ending),
}

/// The gate that admits each iteration of a run.
pub trait IterationGate {
    /// Whether an iteration may begin; is called again until the answer is another than `Later`.
    fn admit(&mut self, record: &Loop) -> Admission;
    /// The commit of the main branch that the loop's branch was on, before it is rebased again.
    fn stood_on(&self) -> Option<String>;
    /// The loop waits until what is due, and needs no slot until then.
    fn wait_began(&mut self, record: &Loop);
    /// An iteration is over and its work is kept. Returns the end of a loop that may not continue.
    fn iteration_ended(&mut self, record: &Loop) -> Option<Ending>;
    /// What a person should know since this was asked last.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }
}

impl Runner<'_> {
    /// Waits at the gate. False where the loop was paused or ended instead, or a person asked for
    /// something.
    pub(super) fn is_admitted(&mut self) -> bool {
        let Some(mut gate) = self.gate.take() else { return true };
        let answer = self.ask_to_begin(&mut *gate);
        for note in gate.take_notes() {
            self.emit_note(&note);
        }
        self.gate = Some(gate);
        match answer {
            // The fleet may have left messages for the agent.
            Some(Admission::Granted) => {
                return self.ledger.reload() && self.ledger.record.is_live();
            }
            Some(Admission::Paused) => self.ledger.pause_record(),
            Some(Admission::Ends(ending)) => self.ledger.end_record(&ending),
            Some(Admission::Later(_)) | None => self.obey_request(),
        }
        false
    }

    /// The answer, or `None` where a person asked for something else.
    fn ask_to_begin(&mut self, gate: &mut dyn IterationGate) -> Option<Admission> {
        let mut reported = None;
        let answered = clock::retry(
            ASKS,
            || false,
            || match gate.admit(&self.ledger.record) {
                Admission::Later(why) => {
                    if reported.is_none() {
                        self.emit_note(&format!("waits for {why}"));
                        reported = Some(why);
                    }
                    if self.must_stop() || self.is_asked() { Ok(None) } else { Err(()) }
                }
                answer => Ok(Some(answer)),
            },
        );
        let answer = answered.ok().flatten();
        if let (Some(Admission::Granted), Some(why)) = (&answer, reported) {
            self.ledger.begin_iteration(&format!("the wait for {why} is over"));
        }
        answer
    }
}

#[cfg(test)]
#[path = "reactions_tests.rs"]
mod reactions_tests;
