//! What follows a boundary of a run that has a fallback.

use super::*;
use crate::boundary::judge::judge_boundary;
use crate::fixture::{SetState, a_run, at, facts};
use crate::record::{Agent, FallbackAgent};

/// A run whose limits bound a wait to an hour.
fn with_a_fallback() -> Loop {
    let mut subject = a_run(None);
    let fallback = Agent { name: "second".to_owned(), ..Agent::default() };
    subject.contract.run.as_mut().unwrap().fallback = vec![fallback];
    subject.contract.limits.max_wait_s = 3600;
    subject
}

fn stands_in(mut subject: Loop) -> Loop {
    let until = at(7200).wall;
    subject
        .state
        .set("agents.active_fallback", Some(FallbackAgent { agent: "second".to_owned(), until }));
    subject
}

/// A limit that ends after these seconds, while another agent may work after those.
fn limit(ends: u32, relief: Option<u32>) -> Facts {
    let mut facts = facts(Claim::None);
    let message = "rate limit".to_owned();
    let reset = Some(at(ends).wall);
    facts.seen.agent.error = Some(ApiError::Transient { message, reset, is_limit: true });
    facts.seen.agent.fallback_at = relief.map(|seconds| at(seconds).wall);
    facts
}

fn decided(subject: &Loop, facts: &Facts) -> String {
    let judged = judge_boundary(subject, facts);
    match decide_next(&judged, facts) {
        Decision::Wait { until, .. } => format!("wait {}", (until - at(0).wall).num_seconds()),
        Decision::Finish(ending) => ending.outcome.label().to_owned(),
        Decision::Continue => {
            format!("continue, {} counted", judged.after.state.counts().completed())
        }
        Decision::Hold(hold) => format!("{hold:?}"),
    }
}

#[test]
fn a_limit_does_not_end_a_loop_that_another_agent_can_continue() {
    // The facts are of second 60.
    let table = [
        (limit(660, None), 0, "wait 660"),
        // A reset that is past is tried at once; if the service refuses still, it says nothing.
        (limit(30, None), 0, "wait 60"),
        (limit(30, Some(60)), 0, "wait 60"),
        (limit(30, None), 1, "wait 180"),
        (limit(9999, None), 0, "interrupted"),
        (limit(9999, Some(60)), 0, "wait 9999"),
        (limit(9999, Some(5000)), 0, "wait 9999"),
        (limit(9999, Some(10_000)), 0, "interrupted"),
        (limit(660, None), 11, "blocked"),
        (limit(660, Some(60)), 11, "wait 660"),
        (limit(660, Some(61)), 11, "blocked"),
    ];
    for (facts, errors, expected) in table {
        let mut subject = with_a_fallback();
        subject.state.set("transient_errors", errors);
        assert_eq!(decided(&subject, &facts), expected, "{facts:?}");
    }
}

#[test]
fn a_failing_fallback_is_retried_until_the_first_agent_is_back() {
    let outage = || {
        let mut facts = limit(30, None);
        let message = "503".to_owned();
        let error = ApiError::Transient { message, reset: None, is_limit: false };
        facts.seen.agent.error = Some(error);
        facts
    };
    let mut crash = facts(Claim::None);
    crash.seen.agent.process = Some(ProcessEnd::Signal(9));
    let table = [
        (outage(), 7200, 0, "wait 120"),
        (outage(), 7200, 11, "wait 1860"),
        (outage(), 90, 11, "wait 90"),
        (crash.clone(), 7200, 0, "wait 65"),
        (crash, 62, 0, "wait 62"),
        // How long the limit of its own account lasts is a fact for other loops.
        (limit(660, Some(60)), 90, 0, "wait 660"),
    ];
    for (facts, back, errors, expected) in table {
        let mut subject = stands_in(with_a_fallback());
        subject.state.set("agents.active_fallback.until", at(back).wall);
        subject.state.set("transient_errors", errors);
        assert_eq!(decided(&subject, &facts), expected, "{facts:?}");
    }
    let mut alone = with_a_fallback();
    alone.state.set("transient_errors", 11);
    assert_eq!(decided(&alone, &outage()), "blocked");
}

#[test]
fn a_fallback_that_only_a_person_can_fix_neither_ends_the_loop_nor_counts_an_iteration() {
    let mut fatal = facts(Claim::None);
    let error = ApiError::Fatal { cause: "no token".to_owned(), hint: "log in".to_owned() };
    fatal.seen.agent.error = Some(error);
    assert_eq!(decided(&with_a_fallback(), &fatal), "blocked");
    assert_eq!(decided(&stands_in(with_a_fallback()), &fatal), "continue, 0 counted");

    let mut missing = facts(Claim::None);
    missing.seen.agent.process = Some(ProcessEnd::NotStarted("no such file".to_owned()));
    assert_eq!(decided(&with_a_fallback(), &missing), "wait 65");
    assert_eq!(decided(&stands_in(with_a_fallback()), &missing), "continue, 0 counted");

    // Whatever it then says of it; where it changed something, its iteration counts.
    let reason = Some("I may not write".to_owned());
    for (claim, worked) in
        [(Claim::None, "continue, 1 counted"), (Claim::Blocked { reason }, "blocked")]
    {
        let mut denied = facts(claim);
        denied.seen.agent.process = Some(ProcessEnd::Exit(0));
        denied.seen.agent.denied = vec!["Write".to_owned()];
        assert_eq!(decided(&stands_in(with_a_fallback()), &denied), worked);
        let as_before = |mut subject: Loop| {
            subject.state.remember_tree(denied.tree.clone());
            subject
        };
        assert_eq!(decided(&as_before(with_a_fallback()), &denied), "blocked");
        let stands_in = as_before(stands_in(with_a_fallback()));
        assert_eq!(decided(&stands_in, &denied), "continue, 0 counted");
    }

    let mut out = stands_in(with_a_fallback());
    out.state.set("agents.out", vec!["second".to_owned()]);
    assert_eq!(decided(&out, &fatal), "blocked");
}
