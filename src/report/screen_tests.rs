use insta::assert_snapshot;

use super::*;
use crate::engine::boundary::judge::judge;
use crate::engine::claim::Claim;
use crate::engine::evidence::test_run::TestRun;
use crate::engine::fixture::{a_loop_with, a_run, at, facts, result};
use crate::engine::record::Role;

#[test]
fn a_run_on_a_terminal_begins_with_its_terms_and_leaves_a_line_for_each_iteration() {
    let mut record = a_run(None);
    record.contract.checks = a_loop_with(&[("cargo test", Role::Verify)]).contract.checks;
    let failing = CheckResult {
        test_run: Some(TestRun { passed: 209, failed: 3, ..TestRun::default() }),
        ..result("cargo test", Verdict::Failed)
    };
    let mut facts = facts(Claim::Success);
    facts.checks = vec![failing.clone()];
    let refused = judge(&record, &facts).after;
    facts.checks = vec![result("cargo test", Verdict::Passed)];
    let accepted = judge(&refused, &facts).after;
    let mut told = ScreenLines::default();
    let mut text = String::new();
    for event in [
        RunEvent::Started(&record),
        RunEvent::CheckEnded(&failing),
        RunEvent::IterationStarted(&record),
        RunEvent::CheckEnded(&failing),
        RunEvent::IterationEnded { after: &refused, exit: Some(0), ends: None },
        RunEvent::IterationEnded { after: &accepted, exit: Some(0), ends: None },
        RunEvent::Resumed(&refused),
    ] {
        for line in told.lines(&event, at(0).wall.fixed_offset()) {
            text.push_str(&line.text);
            text.push('\n');
        }
    }
    assert_snapshot!(text, @"
    loop haaaaaaa · claude · /repo on main · up to 10 iterations, 12h
      done    the agent says COMPLETE and `cargo test` passes
      stop    Ctrl-C, or anywhere: crew pause haaaaaaa, crew cancel haaaaaaa
      now     `cargo test` fails: 3 of 212 tests, in 1s
    [11:06:40] 1  1m  claim refused: cargo test 3 of 212 fail
    [11:06:40] 2  0s  1 check fixed  claim accepted
    loop haaaaaaa · claude · /repo on main · up to 10 iterations, 12h
      done    the agent says COMPLETE and `cargo test` passes
      stop    Ctrl-C, or anywhere: crew pause haaaaaaa, crew cancel haaaaaaa
      so far  1 iteration in 1m
    ");
}

#[test]
fn a_start_that_nothing_checks_says_so() {
    assert_snapshot!(start(&a_run(None)), @"
    loop haaaaaaa · claude · /repo on main · up to 10 iterations, 12h
      done    the agent says COMPLETE; nothing checks it
      stop    Ctrl-C, or anywhere: crew pause haaaaaaa, crew cancel haaaaaaa
    ");
}
