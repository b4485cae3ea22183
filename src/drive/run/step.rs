//! One step of a run: what follows from an event, as values. It is pure; `driver.rs` carries out
//! the effects, and the answer to the question at their end is the next event. The steps of an
//! iteration are, in turn: the record is read, a delay or a wait ends, the loop is looked at, an
//! agent is chosen, the gate admits it, the iteration runs and is judged, and what was decided
//! follows.

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};

use super::ports::Admission;
use super::ports::RecordChange;
use crate::drive::boundary::Boundary;
use crate::drive::windows::{self, LoopTurn};
use engine::boundary::decide::{Decision, Hold, spent_at_rest, wait_or_end};
use engine::boundary::facts::{ControlRequest, Facts, ProcessEnd};
use engine::boundary::judge::unfit_fallback;
use engine::boundary::limits::time_left_ms;
use engine::record::{
    EndReason, EndSignal, Ending, FallbackAgent, GitSteps, Loop, LoopMoment, Moment, Outcome,
    Status,
};
use engine::text::clock_time;

/// What a run remembers besides the loop's record.
#[derive(Debug)]
pub struct RunMemory {
    /// Whether the next iteration skips the delay: the first one here, and one right after a wait.
    pub is_rested: bool,
    /// Whether the user requested the next iteration: it tries regardless of the rate window.
    pub is_typed: bool,
    /// Whether a gate admits each iteration.
    pub has_gate: bool,
    /// The last limit of each account that this run reached.
    pub met: Vec<LoopTurn>,
}

/// The point at which an agent is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoicePoint {
    AfterWait,
    BeforeGate,
    /// After the wait to be admitted, which may have been long.
    AfterGate,
    /// After a limit that another agent may not have reached.
    AfterLimit,
}

/// The answer to a question.
pub enum DriveEvent {
    /// The record as it is now.
    Loaded,
    /// A delay or a wait has ended, or the user cut it short with Enter.
    Rested {
        is_typed: bool,
    },
    /// A request arrived instead, or another process has changed the record.
    Asked(Option<EndSignal>, Option<ControlRequest>),
    /// No request has arrived; with the reason why the loop's folder is missing, if it is.
    Looked(Option<String>),
    /// The turns of the agents that are limited, up to the first unlimited one, at a local time.
    Chosen(ChoicePoint, Vec<LoopTurn>, Option<String>, DateTime<FixedOffset>),
    /// The gate's answer.
    Admitted(Admission),
    /// The iteration ended without a boundary; with whether any of it ran.
    CalledOff(bool),
    Judged(Box<(Boundary, Facts)>),
}

/// An action that has no answer.
pub enum DriveEffect {
    Change(RecordChange<'static>),
    Note(String),
    /// Adds a line to the journal.
    Journal(String),
    /// Reports that the user requested the end.
    ReportStop,
    ReportDelay(DateTime<Utc>),
    ReportWait,
    /// Treats changes that a person made while no agent was at work as part of the tree that the
    /// loop found.
    FollowPerson,
    /// Names the state of the tree in which the loop rests.
    CloseTree,
    /// Writes the page for the next process.
    HandOn(&'static str),
    React(LoopMoment),
    /// Continues with the record after a boundary; reports an iteration that counts.
    TakeOver {
        after: Box<Loop>,
        counted: bool,
        process: Option<ProcessEnd>,
    },
    KeepWork(GitSteps),
    WindUp,
    /// Reports to the gate that an admitted iteration has ended.
    LeaveGate,
}

/// What has to be found out, or done, before the next step.
pub enum DriveQuestion {
    Load,
    /// Sleep until then. Enter and the rate window cut a wait short, but not a delay.
    Sleep {
        until: DateTime<Utc>,
        is_wait: bool,
    },
    LookAround,
    Choose(ChoicePoint),
    AskGate,
    /// Run the iteration and judge it.
    Work,
    /// Nothing: the loop has ended or is paused, and so does this run.
    End,
}

/// Effects, to be carried out in turn, and then the question.
pub struct Step {
    pub effects: Vec<DriveEffect>,
    pub then: DriveQuestion,
}

impl From<DriveQuestion> for Step {
    fn from(then: DriveQuestion) -> Self {
        Self { effects: Vec::new(), then }
    }
}

impl From<RecordChange<'static>> for Step {
    fn from(change: RecordChange<'static>) -> Self {
        Self { effects: vec![DriveEffect::Change(change)], then: DriveQuestion::Load }
    }
}

/// Returns what follows from an event at `now` in a loop.
pub fn step_run(memory: &mut RunMemory, record: &Loop, event: DriveEvent, now: Moment) -> Step {
    match event {
        DriveEvent::Loaded => match record.state.status() {
            Status::Finished | Status::Paused => DriveQuestion::End.into(),
            Status::Waiting => {
                memory.is_rested = true;
                let until = record.state.wait().due().unwrap_or(now.wall);
                let then = DriveQuestion::Sleep { until, is_wait: true };
                Step { effects: vec![DriveEffect::ReportWait], then }
            }
            Status::Running => begin_delay(memory, record, now),
        },
        DriveEvent::Rested { is_typed } if record.state.status() == Status::Waiting => {
            memory.is_typed = is_typed;
            DriveQuestion::Choose(ChoicePoint::AfterWait).into()
        }
        DriveEvent::Rested { .. } => {
            let effects = begin_after("the delay is over");
            Step { effects, then: DriveQuestion::LookAround }
        }
        DriveEvent::Asked(signal, request) => {
            // Whoever ends a wait wants the iteration now.
            memory.is_typed |= record.state.status() == Status::Waiting;
            follow_request(record, signal, request)
        }
        DriveEvent::Looked(Some(cause)) => {
            let reason = EndReason::External { cause, hint: String::new() };
            RecordChange::End(Ending::new(Outcome::Blocked, reason)).into()
        }
        DriveEvent::Looked(None) => match spent_at_rest(record) {
            Some(ending) => RecordChange::End(ending).into(),
            None => DriveQuestion::Choose(ChoicePoint::BeforeGate).into(),
        },
        DriveEvent::Chosen(at, limited, None, _) if !limited.is_empty() => {
            await_turn(record, at, limited, now)
        }
        DriveEvent::Chosen(at, limited, free, local) => {
            give_turn(memory, record, at, hand_over(record, &limited, free, local))
        }
        // The wait may have been long.
        DriveEvent::Admitted(Admission::Granted) => {
            DriveQuestion::Choose(ChoicePoint::AfterGate).into()
        }
        DriveEvent::Admitted(Admission::Paused) => RecordChange::Pause.into(),
        DriveEvent::Admitted(Admission::Ends(ending)) => RecordChange::End(ending).into(),
        DriveEvent::Admitted(Admission::Later(_)) => DriveQuestion::AskGate.into(),
        DriveEvent::CalledOff(has_run) => {
            memory.is_rested &= !has_run;
            Step { effects: vec![DriveEffect::LeaveGate], then: DriveQuestion::Load }
        }
        DriveEvent::Judged(judged) => {
            memory.is_rested = false;
            follow_decision(memory, record, *judged)
        }
    }
}

fn git_steps(record: &Loop) -> GitSteps {
    record.contract.run.as_ref().map(|run| run.git.clone()).unwrap_or_default()
}

/// Begins the delay between two iterations, as long as the loop has time.
fn begin_delay(memory: &RunMemory, record: &Loop, now: Moment) -> Step {
    let run = record.contract.run.as_ref();
    let delay_ms = run.map_or(0, |run| run.pace.delay_s.saturating_mul(1000));
    if memory.is_rested {
        return DriveQuestion::LookAround.into();
    }
    if delay_ms == 0 {
        let GitSteps { commit, push, .. } = git_steps(record);
        let what = "the last iteration's work is kept".to_owned();
        let begin = DriveEffect::Change(RecordChange::Begin(what));
        let effects = if commit || push { vec![begin] } else { Vec::new() };
        return Step { effects, then: DriveQuestion::LookAround };
    }
    let left_ms = time_left_ms(record, now.awake_ms).unwrap_or(u64::MAX);
    let most = i64::MAX / 1_000_000;
    let rest = i64::try_from(delay_ms.min(left_ms)).unwrap_or(most).min(most);
    let until = now.wall + TimeDelta::milliseconds(rest);
    let then = DriveQuestion::Sleep { until, is_wait: false };
    Step { effects: vec![DriveEffect::ReportDelay(until)], then }
}

/// Starts the iteration after a rest.
fn begin_after(what: &str) -> Vec<DriveEffect> {
    vec![DriveEffect::Change(RecordChange::Begin(what.to_owned())), DriveEffect::FollowPerson]
}

/// Follows a request between two iterations: a signal interrupts, a cancel ends, a pause pauses.
fn follow_request(
    record: &Loop,
    signal: Option<EndSignal>,
    request: Option<ControlRequest>,
) -> Step {
    if let Some(signal) = signal {
        let ending = Ending::new(Outcome::Interrupted, EndReason::Signalled(signal));
        let end = DriveEffect::Change(RecordChange::End(ending));
        return Step { effects: vec![DriveEffect::ReportStop, end], then: DriveQuestion::Load };
    }
    match request {
        Some(ControlRequest::Cancel { by, reason }) => {
            RecordChange::End(Ending::cancelled(by, reason.as_deref())).into()
        }
        Some(ControlRequest::Pause) if record.state.status() != Status::Paused => {
            RecordChange::Pause.into()
        }
        Some(ControlRequest::Pause) | None => DriveQuestion::Load.into(),
    }
}

/// Waits for the first of these turns, which does not count as an iteration.
fn await_turn(record: &Loop, at: ChoicePoint, limited: Vec<LoopTurn>, now: Moment) -> Step {
    let Some(turn) = limited.into_iter().min_by_key(|turn| turn.at) else {
        return DriveQuestion::Load.into();
    };
    if at == ChoicePoint::AfterWait && turn.is_awaited_by(record) {
        return DriveQuestion::Sleep { until: turn.at, is_wait: true }.into();
    }
    let mut effects = match wait_or_end(record, now, turn.at, &turn.why) {
        Decision::Finish(ending) => vec![DriveEffect::Change(RecordChange::End(ending))],
        _ => vec![
            DriveEffect::Change(RecordChange::HoldBack(turn)),
            DriveEffect::CloseTree,
            DriveEffect::React(LoopMoment::Wait),
        ],
    };
    if matches!(at, ChoicePoint::AfterGate | ChoicePoint::AfterLimit) {
        effects.push(DriveEffect::LeaveGate);
    }
    Step { effects, then: DriveQuestion::Load }
}

/// Gives the next iteration to the first agent whose turn it is, if that is a change. A change is
/// reported and journalled, and the next agent gets the loop's current page. It costs no iteration.
fn hand_over(
    record: &Loop,
    limited: &[LoopTurn],
    free: Option<String>,
    local: DateTime<FixedOffset>,
) -> Vec<DriveEffect> {
    let Some(agent) = free else { return Vec::new() };
    let next = limited.first().map(|turn| FallbackAgent { agent, until: turn.at });
    let before = record.state.work().agents().active_fallback.as_ref();
    if before == next.as_ref() {
        return Vec::new();
    }
    let own = record.contract.run.as_ref().map_or("", |run| run.agent.name.as_str());
    let what = match &next {
        Some(FallbackAgent { agent, until }) => {
            let until = clock_time(*until, local);
            format!("{agent} takes over: {own} is limited until {until}")
        }
        None => format!("{own} is back"),
    };
    let is_another = before.map(|before| &before.agent) != next.as_ref().map(|next| &next.agent);
    let mut effects = Vec::new();
    if is_another {
        effects.extend([DriveEffect::HandOn("takeover"), DriveEffect::Note(what.clone())]);
    }
    effects.push(DriveEffect::Change(RecordChange::HandTo { next, what }));
    effects
}

/// Continues with the agent whose turn it is.
fn give_turn(
    memory: &mut RunMemory,
    record: &Loop,
    at: ChoicePoint,
    mut effects: Vec<DriveEffect>,
) -> Step {
    let then = match at {
        ChoicePoint::AfterWait => {
            // Another agent has begun.
            if effects.is_empty() && record.state.status() == Status::Waiting {
                effects = begin_after("the wait is over");
            }
            DriveQuestion::Load
        }
        ChoicePoint::BeforeGate if memory.has_gate => DriveQuestion::AskGate,
        ChoicePoint::BeforeGate | ChoicePoint::AfterGate => {
            memory.is_typed = false;
            DriveQuestion::Work
        }
        ChoicePoint::AfterLimit => {
            effects.push(DriveEffect::LeaveGate);
            DriveQuestion::Load
        }
    };
    Step { effects, then }
}

/// What follows from a boundary: its report, the git steps and reactions that belong to it, and
/// what was decided. `began` is the record before it.
fn follow_decision(memory: &mut RunMemory, began: &Loop, judged: (Boundary, Facts)) -> Step {
    let (Boundary { after, decision, note, .. }, facts) = judged;
    let counted = after.state.counts().completed() > began.state.counts().completed();
    let mut effects: Vec<DriveEffect> = note.map(DriveEffect::Note).into_iter().collect();
    let process = facts.seen.agent.process.clone();
    effects.push(DriveEffect::TakeOver { after: Box::new(after.clone()), counted, process });
    if counted {
        effects.push(DriveEffect::KeepWork(git_steps(&after)));
    }
    if stalls_by_half(began, &after) {
        effects.push(DriveEffect::React(LoopMoment::Stall));
    }
    if !matches!(decision, Decision::Continue | Decision::Hold(Hold::Background(_))) {
        effects.push(DriveEffect::CloseTree);
    }
    // Only a person can help a fallback like this; the loop continues without it.
    if let (Some(why), Some(fallback)) = (unfit_fallback(began, &facts), after.working_fallback())
        && !matches!(decision, Decision::Finish(_))
    {
        let agent = fallback.agent.clone();
        let what = format!("{agent} is out of this loop: {why}");
        effects.push(DriveEffect::Note(what.clone()));
        effects.push(DriveEffect::Change(RecordChange::Lose { agent, what }));
        memory.is_rested = true;
    }
    // What the agent said at the end of a context that was nearly full may be all that it knew.
    if counted
        && matches!(decision, Decision::Continue | Decision::Wait { .. })
        && let Some(percent) = after.past_redline()
    {
        let why = format!(
            "iteration {} filled {percent}% of its context: the next prompt has the handoff page",
            after.state.counts().completed()
        );
        effects.push(DriveEffect::HandOn("redline"));
        effects.extend([DriveEffect::Journal(why.clone()), DriveEffect::Note(why)]);
    }
    match decision {
        // Another agent makes the wait needless, or its limit is over before.
        Decision::Wait { until, why } if facts.seen.agent.has_fallback_by(until) => {
            memory.is_rested = true;
            let account = windows::account_of(&after);
            memory.met.retain(|met| met.account != account);
            memory.met.push(LoopTurn { account, at: until, why });
            return Step { effects, then: DriveQuestion::Choose(ChoicePoint::AfterLimit) };
        }
        Decision::Wait { .. } => effects.push(DriveEffect::React(LoopMoment::Wait)),
        Decision::Finish(_) => effects.push(DriveEffect::WindUp),
        Decision::Hold(_) | Decision::Continue => {}
    }
    effects.push(DriveEffect::LeaveGate);
    Step { effects, then: DriveQuestion::Load }
}

/// Whether this boundary is the first in a row without progress that reaches half of the limit.
fn stalls_by_half(before: &Loop, after: &Loop) -> bool {
    let half = after.contract.limits.stall.div_ceil(2);
    half > 0
        && after.state.counts().iterations_without_progress() >= half
        && before.state.counts().iterations_without_progress() < half
}
