//! Agents that replace each other in a run in memory.

use super::twins::{Stage, claim, ends, limited, locked_out, outage, work};
use engine::boundary::facts::ProcessEnd;
use engine::record::Outcome;

#[test]
fn the_first_agent_is_back_after_its_limit() {
    let stage = Stage::with_fallback(&[limited(150), claim()], &[work()]);
    let ran = stage.run();
    assert_eq!(
        (ran.end().0, ran.record.state.counts().consecutive_failures()),
        (Some(Outcome::Completed), 0)
    );
    let notes = ran.lines_with("note");
    assert!(
        notes[0].starts_with("60 note: second takes over: claude is limited until "),
        "{notes:?}"
    );
    assert!(notes[1].ends_with("claude is back") && notes.len() == 2, "{notes:?}");
    assert_eq!(ran.agents().first(), Some(&"claude"));
    assert_eq!(ran.agents().last(), Some(&"claude"));
    assert_eq!(ran.lines_with("wait"), [""; 0]);
    // Who comes gets the page of where the loop is, once.
    let pages = stage.agents.pages.borrow();
    assert_eq!(pages[1].as_deref(), Some("takeover"));
    assert_eq!((&pages[2], pages.last().unwrap().as_deref()), (&None, Some("takeover")));
}

#[test]
fn when_every_agent_is_limited_the_loop_waits_for_the_first_one_available() {
    let ran = Stage::with_fallback(&[limited(600), claim()], &[limited(7200)]).run();
    assert_eq!((ran.end().0, ran.end().2), (Some(Outcome::Completed), 1));
    assert_eq!(ran.agents(), ["claude", "second", "claude"]);
    assert_eq!(ran.lines_with("wait").len(), 1, "{:?}", ran.lines);
}

#[test]
fn an_agent_whose_limit_ends_first_works_at_once() {
    let stage = Stage::with_fallback(&[limited(3600)], &[limited(7200), claim()]);
    stage.plan(300, |store| store.open_window("second"));
    let ran = stage.run();
    assert_eq!(
        (ran.end().0, ran.agents()),
        (Some(Outcome::Completed), vec!["claude", "second", "second"])
    );
    assert!(ran.calls[2].1 < 600, "{:?}", ran.calls);
}

#[test]
fn an_outage_of_a_fallback_is_waited_for_until_the_first_agent_is_back() {
    let ran = Stage::with_fallback(&[limited(100), claim()], &[outage()]).run();
    assert_eq!((ran.end().0, ran.end().2), (Some(Outcome::Completed), 1));
    assert_eq!(ran.agents(), ["claude", "second", "claude"]);
    assert_eq!(ran.record.state.counts().consecutive_failures(), 0);
}

#[test]
fn a_fallback_takes_over_even_if_the_limit_cannot_be_shared() {
    for (second, outcome) in [(claim(), Outcome::Completed), (limited(7200), Outcome::Interrupted)]
    {
        let stage = Stage::with_fallback(&[limited(3600)], &[second]);
        stage.set_record(|record| record.contract.limits.max_duration_s = 1800);
        stage.store.shares_windows.set(false);
        let ran = stage.run();
        assert_eq!((ran.end().0, ran.agents()), (Some(outcome), vec!["claude", "second"]));
    }
}

#[test]
fn a_fallback_that_needs_a_person_is_excluded_and_the_loop_waits_for_the_first_agent() {
    let stage = Stage::with_fallback(&[limited(600), limited(600), claim()], &[locked_out()]);
    let ran = stage.run();
    assert_eq!((ran.end().0, ran.end().2), (Some(Outcome::Completed), 1));
    assert_eq!(ran.agents(), ["claude", "second", "claude", "claude"]);
    assert_eq!(ran.lines_with("second is out of this loop: ").len(), 1, "{:?}", ran.lines);
    assert_eq!(ran.record.state.work().agents().out, ["second"]);
}

#[test]
fn a_fallback_that_can_no_longer_be_started_is_excluded_without_counting_a_failure() {
    let gone = ends(ProcessEnd::NotStarted("second: no such file".to_owned()));
    let stage = Stage::with_fallback(&[limited(600), claim()], &[gone]);
    stage.set_record(|record| record.contract.limits.failure_threshold = 1);
    let ran = stage.run();
    assert_eq!((ran.end().0, ran.end().2), (Some(Outcome::Completed), 1));
    let out = "second is out of this loop: it could not be started: ";
    assert_eq!(ran.lines_with(out).len(), 1, "{:?}", ran.lines);
}

#[test]
fn an_error_of_the_first_agent_that_only_a_person_can_fix_still_ends_the_loop() {
    let ran = Stage::with_fallback(&[locked_out()], &[claim()]).run();
    assert_eq!((ran.end().0, ran.agents()), (Some(Outcome::Blocked), vec!["claude"]));
}

#[test]
fn the_process_after_a_full_context_gets_the_page_once() {
    let filled = |percent: u8| {
        let mut step = work();
        step.facts.agent.context_percent = Some(percent);
        step
    };
    for (redline, pages) in [
        (80, [None, None, Some("redline".to_owned()), None]),
        (87, [None, None, None, None]),
        (0, [None, None, None, None]),
    ] {
        let stage = Stage::new(&[filled(40), filled(86), work()]);
        stage.set_record(|record| record.contract.limits.max_iterations = 4);
        stage.set_terms(|run| run.redline = redline);
        let ran = stage.run();
        assert_eq!(*stage.agents.pages.borrow(), pages, "{redline}");
        let note =
            "note: iteration 2 filled 86% of its context: the next prompt has the handoff page";
        assert_eq!(ran.lines_with(note).len(), usize::from(redline == 80));
    }
}
