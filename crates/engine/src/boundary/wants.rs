//! Decides which checks are worth running at this boundary, given what is known so far. Its caller
//! asks again after each batch until there are none left. It runs nothing itself.

use super::belief::{find_cause, list_lasting_doubts};
use super::decide::{Decision, decide_next};
use super::facts::{AgentFacts, Facts};
use super::judge::judge_boundary;
use crate::claim::Claim;
use crate::evidence::NoProofCause;
use crate::record::{Check, Contract, Driver, Loop, Outcome, Proof, Role};

/// The longest that all checks of a session's end may have taken for it to wait for more runs of
/// them, in milliseconds.
pub const AT_ONCE_MS: u64 = 60_000;

/// The checks to run next, in this order, each command once a boundary: every `gate`; every
/// `verify` if there is a success claim, or a limit ends the loop here; every `until`; and, if all
/// of those pass, every `verify` that has not run. None if the iteration does not count.
pub fn wanted_checks(subject: &Loop, known: &Facts) -> Vec<Check> {
    let contract = &subject.contract;
    if !known.seen.needed_looks(contract).checks() {
        return Vec::new();
    }
    let claimed = *known.seen.effective_claim() == Claim::Success;
    let roles: &[Role] = if claimed { &[Role::Gate, Role::Verify] } else { &[Role::Gate] };
    let next = checks_left(contract, known, roles);
    if !next.is_empty() {
        return next;
    }
    let verify = checks_left(contract, known, &[Role::Verify]);
    if !verify.is_empty() && ends_at_a_limit(subject, known) {
        return verify;
    }
    let until = checks_left(contract, known, &[Role::Until]);
    let is_reached = contract.has_until() && known.all_pass(contract, Role::Until);
    if until.is_empty() && is_reached { verify } else { until }
}

/// The checks of these roles that have not run at this boundary.
fn checks_left(contract: &Contract, known: &Facts, roles: &[Role]) -> Vec<Check> {
    let checks = contract.commands_of(roles);
    checks.filter(|check| known.verdict_of(&check.run).is_none()).cloned().collect()
}

/// Whether the loop may end `completed` here, before any check has run.
pub fn may_complete(subject: &Loop, seen: &AgentFacts) -> bool {
    let contract = &subject.contract;
    let may_end = *seen.effective_claim() == Claim::Success
        || contract.has_until()
        || contract.promise.is_none();
    subject.state.seen().baseline().is_some() && may_end && seen.needed_looks(contract).checks()
}

/// Whether to search for changed tests: the loop would end `completed` on its checks if their proof
/// sufficed.
pub fn wants_test_changes(subject: &Loop, known: &Facts) -> bool {
    subject.state.seen().baseline().is_some() && proof_so_far(subject, known).is_some()
}

/// Whether the checks are worth a run on the tree as the loop found it: all that keeps it from an
/// end `checked` is that none was seen to fail, and they did not run there.
pub fn wants_baseline(subject: &Loop, known: &Facts) -> bool {
    let is_known = subject.state.seen().checked_as_found() || known.baseline.is_some();
    let is_moot = matches!(
        find_cause(subject, known),
        Ok(()) | Err(Some(NoProofCause::NothingChanged | NoProofCause::AsManyPass))
    );
    if !subject.contract.looks_back() || is_known || is_moot || known.proves_later {
        return false;
    }
    proof_so_far(subject, known) == Some(Proof::Passing)
        && list_lasting_doubts(subject, known).is_empty()
}

/// Whether a run without the work is worthwhile: the loop asks for one and would end `completed`
/// here, and no other finding lowers the proof anyway.
pub fn wants_run_without_work(subject: &Loop, known: &Facts) -> bool {
    subject.contract.runs_without_work()
        && !known.proves_later
        && proof_so_far(subject, known).is_some()
        && list_lasting_doubts(subject, known).is_empty()
}

/// Whether runs could raise the proof of a session's end that does not depend on them.
pub fn may_prove_later(subject: &Loop, known: &Facts) -> bool {
    let may_wait = subject.driver() == Driver::Session && subject.contract.require.is_none();
    may_wait && (wants_run_without_work(subject, known) || wants_baseline(subject, known))
}

/// Whether the checks took too long for the user to wait while they run again.
pub fn takes_long(known: &Facts) -> bool {
    known.checks.iter().map(|check| check.elapsed_ms).sum::<u64>() > AT_ONCE_MS
}

/// The proof with which the loop ends `completed` here, if it requires none; `None` if it does not
/// end so.
fn proof_so_far(subject: &Loop, known: &Facts) -> Option<Proof> {
    let mut subject = subject.clone();
    subject.contract.require = None;
    match decide_next(&judge_boundary(&subject, known), known) {
        Decision::Finish(ending) if ending.outcome == Outcome::Completed => ending.proof,
        _ => None,
    }
}

/// Whether a limit or a stall ends the loop here, as far as is known. The final report then shows
/// every check's last result, which is not useful after a cancel, too many failures or an error.
fn ends_at_a_limit(subject: &Loop, known: &Facts) -> bool {
    match decide_next(&judge_boundary(subject, known), known) {
        Decision::Finish(ending) => matches!(ending.outcome, Outcome::Exhausted | Outcome::Stalled),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::facts::{ApiError, ControlRequest};
    use crate::evidence::Verdict;
    use crate::fixture::{SetState, a_loop_with, facts, result};
    use crate::test_changes::{Baseline, BaselineResult};

    const ALL: [(&str, Role); 3] =
        [("test", Role::Verify), ("lint", Role::Gate), ("deploy", Role::Until)];

    fn wanted_of(subject: &Loop, facts: &Facts, done: &[(&str, Verdict)]) -> Vec<String> {
        let checks = done.iter().map(|(run, verdict)| result(run, *verdict)).collect();
        let known = Facts { checks, ..facts.clone() };
        wanted_checks(subject, &known).into_iter().map(|check| check.run).collect()
    }

    fn wanted(checks: &[(&str, Role)], claim: Claim, done: &[(&str, Verdict)]) -> Vec<String> {
        wanted_of(&a_loop_with(checks), &facts(claim), done)
    }

    #[test]
    fn gates_always_run_verify_runs_on_a_claim_and_until_runs_either_way() {
        use Verdict::{Failed, Passed};
        assert_eq!(wanted(&ALL, Claim::None, &[]), ["lint"]);
        assert_eq!(wanted(&ALL, Claim::None, &[("lint", Passed)]), ["deploy"]);
        assert_eq!(wanted(&ALL, Claim::None, &[("lint", Passed), ("deploy", Failed)]), [""; 0]);
        assert_eq!(wanted(&ALL, Claim::None, &[("lint", Passed), ("deploy", Passed)]), ["test"]);
        assert_eq!(wanted(&ALL, Claim::Success, &[]), ["lint", "test"]);
        assert_eq!(wanted(&ALL, Claim::Success, &[("lint", Passed), ("test", Passed)]), ["deploy"]);
        assert_eq!(wanted(&ALL, Claim::Success, &[("lint", Failed), ("test", Passed)]), ["deploy"]);
    }

    #[test]
    fn verify_runs_without_a_claim_only_when_a_limit_or_a_stall_ends_the_loop() {
        use Verdict::{Failed, Passed};
        let mut last = a_loop_with(&ALL);
        last.state.set("completed", 9);
        let none = facts(Claim::None);
        assert_eq!(wanted_of(&last, &none, &[]), ["lint"]);
        assert_eq!(wanted_of(&last, &none, &[("lint", Passed)]), ["test"]);
        assert_eq!(wanted_of(&last, &none, &[("lint", Passed), ("test", Failed)]), ["deploy"]);
        let mut still = a_loop_with(&ALL);
        still.state.set("still", 4);
        let idle = Facts {
            tree: still.state.seen().tree().as_deref().map(Into::into),
            ..facts(Claim::None)
        };
        assert_eq!(wanted_of(&still, &idle, &[("lint", Passed)]), ["test"]);
        assert_eq!(wanted_of(&still, &none, &[("lint", Passed)]), ["deploy"]);
        let mut failing = last.clone();
        failing.state.set("consecutive_failures", 2);
        assert_eq!(wanted_of(&failing, &none, &[("lint", Failed)]), ["deploy"]);
        let blocked = facts(Claim::Blocked { reason: None });
        assert_eq!(wanted_of(&last, &blocked, &[("lint", Passed)]), ["deploy"]);
    }

    #[test]
    fn the_baseline_is_checked_once_where_only_a_failed_check_is_missing() {
        let table = [
            (Some(Proof::Checked), Claim::Success, Verdict::Passed, true),
            (Some(Proof::Checked), Claim::Success, Verdict::Failed, false),
            (Some(Proof::Checked), Claim::None, Verdict::Passed, false),
            (Some(Proof::Proven), Claim::Success, Verdict::Passed, false),
            (None, Claim::Success, Verdict::Passed, true),
        ];
        for (require, claim, verdict, expected) in table {
            let mut subject = a_loop_with(&[("test", Role::Verify)]);
            subject.contract.require = require;
            let is_claimed = claim == Claim::Success && verdict == Verdict::Passed;
            let mut known = Facts { checks: vec![result("test", verdict)], ..facts(claim) };
            assert_eq!(wants_baseline(&subject, &known), expected, "{require:?}");
            subject.state.set("baseline", Some(Baseline::default()));
            assert_eq!(wants_test_changes(&subject, &known), is_claimed, "{require:?}");
            for (found, proved, is_known) in [
                (BaselineResult::Failed("test".to_owned()), Some(Proof::Checked), true),
                (BaselineResult::Passed, None, true),
                (BaselineResult::Unknown("`test` is flaky".to_owned()), None, false),
            ] {
                known.baseline = Some(found);
                assert!(!wants_baseline(&subject, &known), "once a boundary");
                if expected {
                    let judged = judge_boundary(&subject, &known);
                    let proved = proved.or(require.is_none().then_some(Proof::Passing));
                    assert_eq!(judged.proved(), proved);
                    let again = Facts { baseline: None, ..known.clone() };
                    assert_eq!(wants_baseline(&judged.after, &again), !is_known);
                    assert_eq!(
                        judge_boundary(&judged.after, &again).proved(),
                        proved,
                        "it is remembered"
                    );
                }
            }
        }
    }

    #[test]
    fn the_same_command_runs_once_per_boundary() {
        let twice = [("test", Role::Gate), ("test", Role::Verify), ("test", Role::Gate)];
        assert_eq!(wanted(&twice, Claim::Success, &[]), ["test"]);
        assert_eq!(wanted(&twice, Claim::Success, &[("test", Verdict::Failed)]), [""; 0]);
    }

    #[test]
    fn no_check_runs_when_the_loop_is_cancelled_or_the_service_failed() {
        let subject = a_loop_with(&ALL);
        let mut cancelled = facts(Claim::Success);
        cancelled.seen.request = Some(ControlRequest::Pause);
        assert_eq!(wanted_checks(&subject, &cancelled), []);
        let mut failed = facts(Claim::None);
        failed.seen.agent.error = Some(ApiError::Transient {
            message: "overloaded".to_owned(),
            reset: None,
            is_limit: false,
        });
        assert_eq!(wanted_checks(&subject, &failed), []);
    }
}
