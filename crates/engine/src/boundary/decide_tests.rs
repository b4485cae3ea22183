use proptest::prelude::*;

use super::*;
use crate::boundary::facts::ProcessEnd;
use crate::boundary::judge::judge_boundary;
use crate::evidence::Verdict;
use crate::evidence::changes::Changes;
use crate::fixture::{SetState, a_loop, a_loop_with, at, facts, result};
use crate::record::{Actor, Driver, EndSignal, Role, Status};
use crate::usage::{Money, Tokens, Usage};

fn way_out(subject: &Loop, facts: &Facts) -> Decision {
    decide_next(&judge_boundary(subject, facts), facts)
}

fn outcome(decision: &Decision) -> Option<Outcome> {
    match decision {
        Decision::Finish(ending) => Some(ending.outcome),
        _ => None,
    }
}

fn why(decision: Decision) -> String {
    match decision {
        Decision::Finish(ending) => ending.full_reason(),
        other => panic!("no ending: {other:?}"),
    }
}

fn idle() -> Facts {
    let mut idle = facts(Claim::None);
    idle.tree = Some("tree at the start".into());
    idle
}

fn transient(reset: Option<DateTime<Utc>>) -> Facts {
    let mut facts = facts(Claim::None);
    facts.seen.agent.error =
        Some(ApiError::Transient { message: "rate limit".to_owned(), reset, is_limit: true });
    facts
}

#[test]
fn rule_1_a_cancel_beats_a_true_claim_and_so_does_a_pause() {
    let mut facts = facts(Claim::Success);
    facts.seen.request =
        Some(ControlRequest::Cancel { by: Actor::User, reason: Some("wrong branch".to_owned()) });
    assert_eq!(why(way_out(&a_loop(), &facts)), "cancelled by the user: wrong branch");
    facts.seen.request = Some(ControlRequest::Pause);
    assert_eq!(way_out(&a_loop(), &facts), Decision::Hold(Hold::Paused));
}

#[test]
fn rule_3_what_only_a_person_can_fix_is_blocked_with_its_cause_and_a_hint() {
    let mut facts = facts(Claim::None);
    facts.seen.agent.error = Some(ApiError::Fatal {
        cause: "the API key was refused".to_owned(),
        hint: "log in again".to_owned(),
    });
    assert_eq!(why(way_out(&a_loop(), &facts)), "the API key was refused; log in again");
}

#[test]
fn rule_3_denied_tools_with_nothing_changed_block_the_process_driver_only() {
    let mut denied = idle();
    denied.seen.agent.denied = vec!["Bash".to_owned()];
    assert_eq!(way_out(&a_loop(), &denied), Decision::Continue);
    let mut subject = a_loop();
    subject.state.set("owner.driver", Driver::Process);
    let expected = "denied: Bash, and nothing changed; allow them with --permissions";
    assert_eq!(why(way_out(&subject, &denied)), expected);
    denied.tree = Some("moved".into());
    assert_eq!(way_out(&subject, &denied), Decision::Continue);
}

#[test]
fn rule_4_a_transient_error_waits_and_repeats_the_same_iteration() {
    let reset = Some(at(660).wall);
    let judged = judge_boundary(&a_loop(), &transient(reset));
    let decision = decide_next(&judged, &transient(reset));
    assert_eq!(decision, Decision::Wait { until: at(660).wall, why: "rate limit".to_owned() });
    let settled = apply_decision(judged, &decision);
    assert_eq!((settled.iteration(), settled.state.status()), (1, Status::Waiting));
}

#[test]
fn rule_4_a_wait_that_would_outlast_a_limit_finishes_now() {
    let reset = Some(at(13 * 3600).wall);
    let decision = way_out(&a_loop(), &transient(reset));
    assert_eq!(outcome(&decision), Some(Outcome::Interrupted));
    assert!(why(decision).ends_with("would outlast the longest wait allowed"));
}

#[test]
fn rule_4_the_twelfth_transient_error_in_a_row_is_blocked() {
    let mut subject = a_loop();
    subject.state.set("transient_errors", 10);
    assert!(matches!(way_out(&subject, &transient(None)), Decision::Wait { .. }));
    subject.state.set("transient_errors", 11);
    assert_eq!(outcome(&way_out(&subject, &transient(None))), Some(Outcome::Blocked));
}

#[test]
fn rule_5_a_blocked_claim_ends_the_loop_with_its_reason() {
    let claim = Claim::Blocked { reason: Some("no database".to_owned()) };
    let expected = "the agent said BLOCKED: no database";
    assert_eq!(why(way_out(&a_loop(), &facts(claim))), expected);
}

#[test]
fn rule_7_a_proved_claim_completes_with_its_proof() {
    let Decision::Finish(ending) = way_out(&a_loop(), &facts(Claim::Success)) else {
        panic!("a proved claim goes on");
    };
    assert_eq!((ending.outcome, ending.proof), (Outcome::Completed, Some(Proof::Claimed)));
}

#[test]
fn rule_7_a_success_on_the_last_iteration_is_a_success() {
    let mut subject = a_loop();
    subject.state.set("completed", 9);
    let decision = way_out(&subject, &facts(Claim::Success));
    assert_eq!(outcome(&decision), Some(Outcome::Completed));
}

#[test]
fn rule_8_a_third_failure_on_the_last_iteration_is_aborted_not_exhausted() {
    let mut subject = a_loop();
    subject.state.set("completed", 9);
    subject.state.set("consecutive_failures", 2);
    let failure = facts(Claim::Failure { reason: Some("no disk".to_owned()) });
    let expected = "3 failures in a row, the last: the agent said FAILURE: no disk";
    assert_eq!(why(way_out(&subject, &failure)), expected);
    subject.contract.limits.failure_threshold = 0;
    assert_eq!(outcome(&way_out(&subject, &failure)), Some(Outcome::Exhausted));
}

#[test]
fn rule_9_a_limit_ends_the_loop_even_after_a_refused_claim() {
    let mut subject = a_loop_with(&[("cargo test", Role::Verify)]);
    subject.state.set("completed", 9);
    let mut refused = facts(Claim::Success);
    refused.checks = vec![result("cargo test", Verdict::Failed)];
    assert_eq!(why(way_out(&subject, &refused)), "the limit of 10 iterations is reached");
}

#[test]
fn rule_9_a_loop_that_only_a_limit_ends_is_completed_there_if_every_check_passes() {
    use Verdict::{Failed, Passed, Unknown};
    let checks = [("test", Role::Verify), ("lint", Role::Gate)];
    let at_the_limit = |checks: &[(&str, Role)], test, lint| {
        let mut subject = a_loop_with(checks);
        subject.contract.promise = None;
        subject.state.set("completed", 9);
        let results = vec![result("test", test), result("lint", lint)];
        let Decision::Finish(ending) =
            way_out(&subject, &Facts { checks: results, ..facts(Claim::None) })
        else {
            panic!("a limit lets it go on");
        };
        (ending.outcome, ending.proof, ending.full_reason())
    };
    let reached = || "the limit of 10 iterations is reached".to_owned();
    let exhausted = || (Outcome::Exhausted, None, reached());
    let unchecked = "ran its 10 iterations; nothing was checked".to_owned();
    let none = at_the_limit(&[], Failed, Failed);
    assert_eq!(none, (Outcome::Completed, Some(Proof::Claimed), unchecked));
    let passing = "ran its 10 iterations, and every check passes".to_owned();
    let all = at_the_limit(&checks, Passed, Passed);
    assert_eq!(all, (Outcome::Completed, Some(Proof::Passing), passing));
    assert_eq!(at_the_limit(&checks, Failed, Passed), exhausted());
    assert_eq!(at_the_limit(&checks, Unknown, Passed), exhausted());
    assert_eq!(at_the_limit(&checks, Passed, Failed), exhausted());
}

#[test]
fn rule_9_an_iteration_that_failed_or_was_not_run_completes_nothing() {
    let mut subject = a_loop();
    subject.contract.promise = None;
    subject.state.set("completed", 9);
    for end in [
        ProcessEnd::Exit(1),
        ProcessEnd::NotStarted("no such program".to_owned()),
        ProcessEnd::Skipped("a reaction failed".to_owned()),
    ] {
        let mut facts = facts(Claim::None);
        facts.seen.agent.process = Some(end);
        assert_eq!(outcome(&way_out(&subject, &facts)), Some(Outcome::Exhausted), "{facts:?}");
    }
    subject.contract.limits.max_duration_s = 60;
    let mut held = facts(Claim::None);
    held.seen.agent.background = Some("a subagent".to_owned());
    assert_eq!(outcome(&way_out(&subject, &held)), Some(Outcome::Exhausted));
}

#[test]
fn rule_6_the_second_refusal_in_a_row_that_no_agent_can_change_is_blocked() {
    let refused = |before: &Loop, why: Option<&str>, claim: Claim| {
        let mut facts = facts(claim);
        facts.checks = vec![result("test", Verdict::Failed)];
        facts.checks[0].incurable = why.map(str::to_owned);
        let judged = judge_boundary(before, &facts);
        let decision = decide_next(&judged, &facts);
        (apply_decision(judged, &decision), decision)
    };
    let missing = Some("finds no program `x` (exit 127); install it");
    let other = Some("was killed by a signal");
    let begun = a_loop_with(&[("test", Role::Verify)]);
    let (once, decision) = refused(&begun, missing, Claim::Success);
    assert_eq!(decision, Decision::Continue);
    let (_, again) = refused(&once, missing, Claim::Success);
    assert_eq!(
        why(again),
        "refused for a reason that only a person can change: `test` finds no program `x` (exit 127); install it"
    );
    let (silent, decision) = refused(&once, missing, Claim::None);
    assert_eq!(decision, Decision::Continue, "nobody asked for the end");
    assert_eq!(outcome(&refused(&silent, missing, Claim::Success).1), Some(Outcome::Blocked));
    for between in [other, None] {
        let (changed, decision) = refused(&once, between, Claim::Success);
        assert_eq!(decision, Decision::Continue, "{between:?}");
        assert_eq!(refused(&changed, missing, Claim::Success).1, Decision::Continue);
    }
}

#[test]
fn rule_11_no_progress_for_stall_iterations_is_stalled_and_zero_is_never() {
    let mut subject = a_loop();
    subject.state.set("still", 3);
    assert_eq!(way_out(&subject, &idle()), Decision::Continue);
    subject.state.set("still", 4);
    let stalled = way_out(&subject, &idle());
    assert_eq!(outcome(&stalled), Some(Outcome::Stalled));
    assert_eq!(why(stalled), "no progress in the last 5 iterations (the last: nothing changed)");
    let mut spaces = idle();
    spaces.tree.as_mut().unwrap().identity = "spaces".to_owned();
    spaces.changes = Some(Changes { white_space: true, ..Changes::default() });
    subject.contract.limits.stall = 1;
    subject.state.set("still", 0);
    assert_eq!(
        why(way_out(&subject, &spaces)),
        "no progress in the last iteration (only white space changed)"
    );
    subject.contract.limits.stall = 0;
    assert_eq!(way_out(&subject, &idle()), Decision::Continue);
}

#[test]
fn rule_12_background_work_is_waited_for_unless_a_claim_was_made() {
    let mut held = facts(Claim::None);
    held.seen.agent.background = Some("a subagent".to_owned());
    let expected = Decision::Hold(Hold::Background("a subagent".to_owned()));
    assert_eq!(way_out(&a_loop(), &held), expected);
    held.seen.claim = Claim::Success;
    assert_eq!(outcome(&way_out(&a_loop(), &held)), Some(Outcome::Completed));
}

#[test]
fn rule_14_anything_else_continues() {
    assert_eq!(way_out(&a_loop(), &facts(Claim::None)), Decision::Continue);
}

prop_compose! {
    fn any_facts()(
        claim in prop_oneof![
            Just(Claim::None),
            Just(Claim::Success),
            Just(Claim::Failure { reason: None }),
            Just(Claim::Blocked { reason: None }),
        ],
        verify in prop_oneof![Just(Verdict::Passed), Just(Verdict::Failed), Just(Verdict::Unknown)],
        gate in prop_oneof![Just(Verdict::Passed), Just(Verdict::Failed), Just(Verdict::TimedOut)],
        tree in prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))],
        error in prop_oneof![3 => Just(0), 1 => Just(1), 1 => Just(2)],
        ordered in 0..20_u8,
    ) -> Facts {
        let mut facts = facts(claim);
        facts.checks = vec![result("verify", verify), result("gate", gate)];
        facts.tree = tree.map(Into::into);
        facts.seen.agent.error = match error {
            1 => Some(ApiError::Transient { message: "busy".to_owned(), reset: None, is_limit: false }),
            2 => Some(ApiError::Request { message: "too long".to_owned() }),
            _ => None,
        };
        facts.seen.request = (ordered == 0).then_some(ControlRequest::Pause);
        facts
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_record_stays_valid_and_no_limit_is_exceeded(
        story in prop::collection::vec(any_facts(), 1..60),
        max in 1..8_u32,
    ) {
        let mut subject = a_loop_with(&[("verify", Role::Verify), ("gate", Role::Gate)]);
        subject.contract.limits.max_iterations = max;
        for facts in story {
            let judged = judge_boundary(&subject, &facts);
            let counted = judged.counted();
            let proved = judged.proved();
            let decision = decide_next(&judged, &facts);
            let next = apply_decision(judged, &decision);
            prop_assert_eq!(next.check_rules(), Ok(()));
            prop_assert_eq!(next.state.counts().completed(), subject.state.counts().completed() + u32::from(counted));
            if decision == Decision::Continue {
                prop_assert!(next.state.counts().completed() < max);
                prop_assert!(next.state.counts().consecutive_failures() < 3 && next.state.counts().iterations_without_progress() < 5);
            }
            if outcome(&decision) == Some(Outcome::Completed) {
                prop_assert!(proved.is_some());
                prop_assert!(facts.checks.iter().all(|check| check.verdict == Verdict::Passed));
            }
            if !next.is_live() {
                break;
            }
            subject = next;
        }
    }
}

#[test]
fn a_loop_that_spent_its_money_is_exhausted_unless_its_work_is_proved() {
    let spend = |claim, limited: bool| {
        let mut subject = a_loop();
        subject.contract.limits.max_cost_micros = if limited { 1_000_000 } else { 0 };
        subject.state.set("usage.cost", Money::from_micros(900_000));
        let tokens = Tokens { input: 100_000, ..Tokens::default() };
        let cost = Money::from_micros(100_000);
        let usage = Some(Usage { tokens, cost, ..Usage::default() });
        way_out(&subject, &Facts { usage, ..facts(claim) })
    };
    assert_eq!(spend(Claim::None, false), Decision::Continue);
    let spent = spend(Claim::None, true);
    assert_eq!(outcome(&spent), Some(Outcome::Exhausted));
    assert_eq!(why(spent), "the cost limit of $1.00 is reached: $1.00");
    assert_eq!(outcome(&spend(Claim::Success, true)), Some(Outcome::Completed));
}

#[test]
fn a_limit_on_usage_that_is_not_reported_blocks_the_loop() {
    let mut subject = a_loop();
    assert_eq!(way_out(&subject, &facts(Claim::None)), Decision::Continue);
    subject.contract.limits.max_tokens = 1_000;
    let unkept = way_out(&subject, &facts(Claim::None));
    assert_eq!(outcome(&unkept), Some(Outcome::Blocked));
    assert!(why(unkept).contains("cannot be kept"));
    let counted = Facts { usage: Some(Usage::default()), ..facts(Claim::None) };
    assert_eq!(way_out(&subject, &counted), Decision::Continue);
    assert!(matches!(way_out(&subject, &transient(None)), Decision::Wait { .. }));
}

#[test]
fn a_pause_takes_effect_after_an_ended_process_is_judged() {
    let paused = |claim, end: Option<ProcessEnd>| {
        let mut facts = facts(claim);
        facts.seen.request = Some(ControlRequest::Pause);
        facts.seen.agent.process = end;
        let judged = judge_boundary(&a_loop(), &facts);
        (judged.counted(), decide_next(&judged, &facts))
    };
    let hold = || Decision::Hold(Hold::Paused);
    assert_eq!(paused(Claim::None, Some(ProcessEnd::Exit(0))), (true, hold()));
    assert_eq!(paused(Claim::None, Some(ProcessEnd::TimedOut(60))), (true, hold()));
    assert_eq!(
        paused(Claim::None, Some(ProcessEnd::BrokenOff(Some(EndSignal::Keyboard)))),
        (false, hold())
    );
    assert_eq!(paused(Claim::Success, None), (false, hold()));
    let (counted, done) = paused(Claim::Success, Some(ProcessEnd::Exit(0)));
    assert!(counted);
    assert_eq!(outcome(&done), Some(Outcome::Completed));
}

#[test]
fn an_iteration_interrupted_by_a_pause_is_repeated_after_the_pause() {
    let mut facts = facts(Claim::Success);
    facts.seen.agent.process = Some(ProcessEnd::BrokenOff(None));
    let judged = judge_boundary(&a_loop(), &facts);
    assert!(!judged.counted());
    assert_eq!(decide_next(&judged, &facts), Decision::Continue);
}

#[test]
fn an_iteration_interrupted_by_a_person_counts_and_ends_the_loop_interrupted() {
    let broken_off = |change: fn(&mut Loop, &mut Facts)| {
        let mut subject = a_loop();
        subject.state.set("completed", 2);
        subject.elapsed_ms = vec![1, 1];
        subject.state.set("consecutive_failures", 2);
        let mut facts = facts(Claim::None);
        facts.seen.agent.process = Some(ProcessEnd::BrokenOff(Some(EndSignal::Keyboard)));
        change(&mut subject, &mut facts);
        let judged = judge_boundary(&subject, &facts);
        assert_eq!(judged.after.state.counts().completed(), 3);
        assert_eq!(judged.after.state.counts().consecutive_failures(), 2);
        let decision = decide_next(&judged, &facts);
        assert_eq!(outcome(&decision), Some(Outcome::Interrupted));
        assert_eq!(why(decision), "interrupted at the keyboard");
    };
    broken_off(|_, _| ());
    broken_off(|subject, _| subject.contract.limits.max_iterations = 3);
    broken_off(|subject, _| {
        subject.contract.limits.max_iterations = 3;
        subject.contract.promise = None;
    });
    broken_off(|subject, _| subject.contract.limits.max_tokens = 1_000);
    broken_off(|_, facts| facts.seen.claim = Claim::Success);
}
