//! What follows a boundary: fourteen rules, numbered here; the first that matches wins. A refused
//! claim does not end the loop; it becomes a fact of the next prompt. So a success on the last
//! iteration is a success, and a third failure on it is `aborted`, not `exhausted`.

use chrono::{DateTime, TimeDelta, Utc};

use super::belief::proof_notes;
use super::facts::{ApiError, ControlRequest, Facts, ProcessEnd};
use super::judge::{Judged, crash_reason, denied_end, unfit_fallback, wait_s};
use super::limits::{
    TRANSIENT_ERRORS_MAX, lift_usage_limits, limit_as_aim, outlasted_by, reached_limit,
    time_left_ms, wait_until, waited_ms,
};
use crate::claim::Claim;
use crate::record::{CompletionBasis, EndReason, Ending, Loop, Moment, Outcome, Proof};
use crate::test_changes::WithoutWork;

/// What happens next.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Another iteration, with the next prompt.
    Continue,
    /// At `until` the same iteration runs again or, after a crash, the next one.
    Wait { until: DateTime<Utc>, why: String },
    /// The agent may stop; no iteration is counted and the status does not change.
    Hold(Hold),
    /// The loop is over.
    Finish(Ending),
}

/// Why a loop is paused at a boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    Paused,
    /// The named work runs in the background.
    Background(String),
}

/// Applies the rules. `judged` is the result of `judge_boundary` for the same `facts`.
pub fn decide_next(judged: &Judged, facts: &Facts) -> Decision {
    let subject = &judged.after;
    apply_request(judged, facts)
        .or_else(|| broken_off(facts))
        .or_else(|| beyond_the_agent(judged, facts))
        .or_else(|| service_failed(subject, facts))
        .or_else(|| said_blocked(facts))
        .or_else(|| refused_for_good(judged))
        // 7. proved → finish `completed` with its proof.
        .or_else(|| {
            let proof = judged.proved()?;
            let basis = match &facts.without_work {
                Some(WithoutWork::Proven(how)) if proof == Proof::Proven => {
                    CompletionBasis::WithoutWork(how.clone())
                }
                _ if proof == Proof::Passing && judged.is_lowered() => CompletionBasis::ChecksPass,
                _ => CompletionBasis::Proof(proof),
            };
            Some(finish_completed(judged, facts, Ending::completed(proof, basis)))
        })
        .or_else(|| too_many_failures(subject))
        .or_else(|| check_limits(judged, facts))
        .or_else(|| check_usage_reports(judged, facts))
        .or_else(|| check_stall(judged))
        .or_else(|| wait_for_background(facts))
        // 13. a pause that found an iteration at its end → hold before the next one.
        .or_else(|| {
            matches!(facts.seen.request, Some(ControlRequest::Pause))
                .then_some(Decision::Hold(Hold::Paused))
        })
        // 14. continue, after a crash with a wait before it.
        .or_else(|| wait_after_crash(subject, facts))
        .unwrap_or(Decision::Continue)
}

/// Finishes without a proof.
fn finish_unproved(outcome: Outcome, reason: EndReason) -> Decision {
    Decision::Finish(Ending::new(outcome, reason))
}

/// Finishes `completed`, with what the user should know about the checks and the proof.
fn finish_completed(judged: &Judged, facts: &Facts, mut ending: Ending) -> Decision {
    if let EndReason::Completed { remark, .. } = &mut ending.reason {
        remark.clone_from(judged.remark());
    }
    ending.proof_notes = proof_notes(facts.without_work.as_ref(), facts.baseline.as_ref());
    if facts.proves_later {
        ending.proof_notes.push("searching for a better proof in the background".to_owned());
    }
    Decision::Finish(ending)
}

/// 1. cancelled → finish `cancelled`; paused → hold.
///
/// A pause that finds the iteration at its end does not prevent another decision.
fn apply_request(judged: &Judged, facts: &Facts) -> Option<Decision> {
    Some(match facts.seen.request.as_ref()? {
        ControlRequest::Cancel { by, reason } => {
            Decision::Finish(Ending::cancelled(*by, reason.as_deref()))
        }
        ControlRequest::Pause if judged.counted() => return None,
        ControlRequest::Pause => Decision::Hold(Hold::Paused),
    })
}

/// 2. ended by the user at its keyboard → finish `interrupted`, whatever else happened; by a
///    pause that was lifted since → the same iteration again.
fn broken_off(facts: &Facts) -> Option<Decision> {
    let (Some(ProcessEnd::BrokenOff(how)), None) = (&facts.seen.agent.process, &facts.seen.request)
    else {
        return None;
    };
    Some(match how {
        Some(signal) => finish_unproved(Outcome::Interrupted, EndReason::Signalled(signal.clone())),
        None => Decision::Continue,
    })
}

/// 3. auth, billing, unknown model, or tool calls denied with nothing changed (process) →
///    `blocked`; what takes a fallback out of the loop → continue without it.
fn beyond_the_agent(judged: &Judged, facts: &Facts) -> Option<Decision> {
    let agent = &facts.seen.agent;
    if judged.after.working_fallback().is_some() {
        let is_out = !judged.counted() && unfit_fallback(&judged.after, facts).is_some();
        return is_out.then_some(Decision::Continue);
    }
    let reason = match &agent.error {
        Some(ApiError::Fatal { cause, hint }) => {
            Some(EndReason::External { cause: cause.clone(), hint: hint.clone() })
        }
        _ => denied_end(&judged.after, facts, judged.progress()),
    };
    reason.map(|reason| finish_unproved(Outcome::Blocked, reason))
}

/// 4. transient API error → wait; past a limit the loop finishes now; the 12th in a row →
///    `blocked`, but not of a fallback. Where another agent takes over, the wait ends before it
///    begins.
fn service_failed(subject: &Loop, facts: &Facts) -> Option<Decision> {
    let Some(ApiError::Transient { message, reset, is_limit }) = &facts.seen.agent.error else {
        return None;
    };
    let (agent, now) = (&facts.seen.agent, facts.now.wall);
    let attempt = subject.state.counts().transient_errors();
    let has_fallback = agent.has_fallback_by(now) || subject.working_fallback().is_some();
    if attempt >= TRANSIENT_ERRORS_MAX && !has_fallback {
        let reason = EndReason::ServiceFailing { times: attempt, message: message.clone() };
        return Some(finish_unproved(Outcome::Blocked, reason));
    }
    let until = wait_until(now, *reset, attempt, facts.seen.jitter);
    let until = if *is_limit { until } else { before_it_is_back(subject, until) };
    if agent.has_fallback_by(until) {
        return Some(Decision::Wait { until, why: message.clone() });
    }
    Some(wait_or_end(subject, facts.now, until, message))
}

/// Lets the wait after a failure end when the agent that a fallback replaces is available again.
fn before_it_is_back(subject: &Loop, until: DateTime<Utc>) -> DateTime<Utc> {
    subject.working_fallback().map_or(until, |fallback| until.min(fallback.until))
}

/// Begins or extends a wait; past a limit the loop finishes immediately.
pub fn wait_or_end(subject: &Loop, now: Moment, until: DateTime<Utc>, why: &str) -> Decision {
    let Some(limit) = outlasted_by(subject, now, until) else {
        return Decision::Wait { until, why: why.to_owned() };
    };
    let left = (until - now.wall).num_milliseconds().unsigned_abs();
    let wait_ms = waited_ms(subject, now).saturating_add(left);
    finish_unproved(
        Outcome::Interrupted,
        EndReason::WaitTooLong { why: why.to_owned(), wait_ms, limit },
    )
}

/// 5. claim BLOCKED → finish `blocked`.
fn said_blocked(facts: &Facts) -> Option<Decision> {
    let Claim::Blocked { reason } = facts.seen.effective_claim() else { return None };
    let needs = reason.clone().unwrap_or_default();
    Some(finish_unproved(Outcome::Blocked, EndReason::AgentBlocked(needs)))
}

/// 6. the second refusal in a row that no agent can change → finish `blocked`.
fn refused_for_good(judged: &Judged) -> Option<Decision> {
    let refusal = judged.incurable().clone()?;
    Some(finish_unproved(Outcome::Blocked, EndReason::Refused(refusal)))
}

/// 8. consecutive failures ≥ threshold → finish `aborted`.
fn too_many_failures(subject: &Loop) -> Option<Decision> {
    let threshold = subject.contract.limits.failure_threshold;
    let failures = subject.state.counts().consecutive_failures();
    if threshold == 0 || failures < threshold {
        return None;
    }
    let last =
        subject.state.seen().evidence().as_ref().and_then(|evidence| evidence.failure.clone());
    let last = last.unwrap_or_default();
    Some(finish_unproved(Outcome::Aborted, EndReason::TooManyFailures { count: failures, last }))
}

/// 9. a limit reached → finish `exhausted`.
///
/// A loop that nothing else can complete is `completed` here if all its checks pass at this
/// boundary.
fn check_limits(judged: &Judged, facts: &Facts) -> Option<Decision> {
    let ending = at_its_limit(&judged.after, judged.sound())?;
    Some(match ending.proof {
        Some(_) => finish_completed(judged, facts, ending),
        None => Decision::Finish(ending),
    })
}

/// The end of a loop that reaches a limit between two iterations, where no checks run.
pub fn spent_at_rest(subject: &Loop) -> Option<Ending> {
    let last = subject.state.seen().evidence().as_ref();
    let is_sound = last.is_some_and(|last| last.failure.is_none() && last.skipped.is_none());
    let is_proved = is_sound && subject.contract.checks.is_empty();
    at_its_limit(subject, is_proved.then_some(Proof::Claimed))
}

/// `sound` is the proof that completes a loop which only its limit ends.
fn at_its_limit(subject: &Loop, sound: Option<Proof>) -> Option<Ending> {
    let limit = reached_limit(subject)?;
    let contract = &subject.contract;
    match sound {
        Some(proof) if !contract.can_complete() => {
            let (ran, is_checked) = (limit_as_aim(subject)?, !contract.checks.is_empty());
            Some(Ending::completed(proof, CompletionBasis::Limit { ran, is_checked }))
        }
        _ => Some(Ending::new(Outcome::Exhausted, EndReason::LimitReached(limit))),
    }
}

/// 10. a limit on cost or tokens and no report of use → `blocked`: it must not be passed unseen.
fn check_usage_reports(judged: &Judged, facts: &Facts) -> Option<Decision> {
    let limited = judged.after.contract.limits.bound_usage();
    if !limited || !judged.counted() || facts.usage.is_some() {
        return None;
    }
    let way_out = match &judged.after.fleet {
        Some(task) => task.without_usage_limits(),
        None => format!(
            "{} continues without it",
            lift_usage_limits(&judged.after.contract.limits).trim_start()
        ),
    };
    let driver = judged.after.driver();
    Some(finish_unproved(Outcome::Blocked, EndReason::Unmeasured { driver, way_out }))
}

/// 11. no progress for `stall` iterations → finish `stalled`.
fn check_stall(judged: &Judged) -> Option<Decision> {
    let stall = judged.after.contract.limits.stall;
    let iterations = judged.after.state.counts().iterations_without_progress();
    if stall == 0 || iterations < stall {
        return None;
    }
    let evidence = judged.after.state.seen().evidence().as_ref();
    let last = evidence.map(|evidence| evidence.progress_why.clone()).unwrap_or_default();
    Some(finish_unproved(Outcome::Stalled, EndReason::NoProgress { iterations, last }))
}

/// 12. the client has background work pending, and no claim was made → hold.
fn wait_for_background(facts: &Facts) -> Option<Decision> {
    facts.seen.waits_for().map(|work| Decision::Hold(Hold::Background(work.to_owned())))
}

/// 14. a crash → wait before the next iteration.
fn wait_after_crash(subject: &Loop, facts: &Facts) -> Option<Decision> {
    let why = crash_reason(&facts.seen.agent)?;
    let left = time_left_ms(subject, facts.now.awake_ms).unwrap_or(u64::MAX);
    let wait = wait_s(subject).saturating_mul(1000).min(left);
    let wait = TimeDelta::milliseconds(i64::try_from(wait).unwrap_or(i64::MAX / 2));
    let until = before_it_is_back(subject, facts.now.wall.checked_add_signed(wait)?);
    Some(Decision::Wait { until, why })
}

/// The record after the decision; the store sets its generation.
pub fn apply_decision(judged: Judged, decision: &Decision) -> Loop {
    let mut subject = judged.after;
    let state = &mut subject.state;
    match decision {
        Decision::Continue | Decision::Hold(Hold::Background(_)) => state.hold(None),
        Decision::Hold(Hold::Paused) => state.pause(state.time().began(), 0),
        Decision::Wait { until, why } => state.begin_wait(*until, why.clone(), None),
        Decision::Finish(ending) => state.finish(ending.clone(), 0),
    }
    subject
}

#[cfg(test)]
#[path = "decide_fallback_tests.rs"]
mod fallback_tests;

// After the rules: merges the record that a driver continued in memory with the changes that others
// made to it on disk since. Counters come from memory; what a person asked for comes from disk.

/// The record to write. `known` is the last common version, `memory` is the driver's, `found` is
/// the one on disk now.
pub fn reconcile_records(known: &Loop, memory: &Loop, found: &Loop) -> Loop {
    let mut next = memory.clone();
    if found.state.generation() <= known.state.generation() {
        return next;
    }
    next.contract.limits = found.contract.limits.clone();
    next.state.merge(&known.state, &found.state);
    next
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;

#[cfg(test)]
mod recovery_tests {
    use super::*;
    use crate::fixture::{SetState, a_loop};
    use crate::record::{Actor, Ending, Status};

    /// The common version, and the memory two iterations later.
    fn apart() -> (Loop, Loop) {
        let mut known = a_loop();
        known.state.set("generation", 4);
        known.state.set("words", vec!["be brief".to_owned()]);
        let mut memory = known.clone();
        memory.state.set("generation", 6);
        memory.state.set("completed", 2);
        memory.state.set("words", Vec::<String>::new());
        (known, memory)
    }

    #[test]
    fn an_unchanged_record_on_disk_is_replaced_by_the_one_in_memory() {
        let (known, memory) = apart();
        assert_eq!(reconcile_records(&known, &memory, &known), memory);
    }

    #[test]
    fn requests_on_disk_and_counts_in_memory_are_both_kept() {
        let (known, memory) = apart();
        let mut found = known.clone();
        found.state.set("generation", 7);
        found.contract.limits.max_iterations = 3;
        found.state.add_messages(["use tabs".to_owned()]);
        let next = reconcile_records(&known, &memory, &found);
        assert_eq!(next.contract.limits.max_iterations, 3);
        assert_eq!(*next.state.exchange().messages(), ["use tabs"]);
        assert_eq!((next.state.generation(), next.state.counts().completed()), (7, 2));
        assert_eq!(next.state.status(), Status::Running);
    }

    #[test]
    fn a_loop_that_was_ended_or_paused_on_disk_stays_ended_or_paused() {
        let (known, memory) = apart();
        for status in [Status::Paused, Status::Finished] {
            let mut found = known.clone();
            found.state.set("generation", 5);
            found.state.set("status", status);
            let ending = Ending::cancelled(Actor::User, None);
            found.state.set("ending", (status == Status::Finished).then_some(ending));
            let next = reconcile_records(&known, &memory, &found);
            assert_eq!(
                (next.state.status(), next.state.end().ending()),
                (status, found.state.end().ending())
            );
            assert_eq!(next.state.counts().completed(), 2);
        }
    }
}
