//! Random histories of the transitions of a loop's state: each keeps the rules of
//! `Loop::check_rules`.

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::*;
use crate::fixture::{a_loop, at};
use crate::usage::Tokens;

/// A transition, as a driver, a person or a boundary makes it.
#[derive(Debug, Clone, Copy)]
enum Step {
    Iterate {
        failures: Row,
        without_progress: Row,
        crashes: Row,
    },
    Boundary(Row),
    Begin,
    Wait,
    Hold,
    Pause,
    Finish(Outcome),
    Reopen(Driver),
    Refuse {
        for_tests: bool,
    },
    Tell,
    Deliver(usize),
    TakeMessages {
        was_started: bool,
    },
    TakeBack,
    HandToAgent(bool),
    Use(u64),
    Write,
    /// A change that another process wrote: a pause, an end, or a message alone.
    Merge(u8),
    /// Another loop takes over the task.
    Carry,
}

fn any_row() -> impl Strategy<Value = Row> {
    prop_oneof![Just(Row::Extends), Just(Row::Keeps), Just(Row::Begins), Just(Row::Ends)]
}

fn any_step() -> impl Strategy<Value = Step> {
    let driver = prop_oneof![Just(Driver::Session), Just(Driver::Process)];
    prop_oneof![
        6 => (any_row(), any_row(), any_row()).prop_map(|(failures, without_progress, crashes)| {
            Step::Iterate { failures, without_progress, crashes }
        }),
        2 => any_row().prop_map(Step::Boundary),
        1 => Just(Step::Begin),
        1 => Just(Step::Wait),
        1 => Just(Step::Hold),
        1 => Just(Step::Pause),
        1 => prop::sample::select(Outcome::ALL.to_vec()).prop_map(Step::Finish),
        2 => driver.prop_map(Step::Reopen),
        1 => any::<bool>().prop_map(|for_tests| Step::Refuse { for_tests }),
        1 => Just(Step::Tell),
        1 => (0..4_usize).prop_map(Step::Deliver),
        1 => any::<bool>().prop_map(|was_started| Step::TakeMessages { was_started }),
        1 => Just(Step::TakeBack),
        1 => any::<bool>().prop_map(Step::HandToAgent),
        1 => (0..1000_u64).prop_map(Step::Use),
        2 => Just(Step::Write),
        1 => (0..3_u8).prop_map(Step::Merge),
        1 => Just(Step::Carry),
    ]
}

/// Takes a step, if the rules of a boundary allow it: a loop at its limit or over iterates no more.
fn take(step: Step, record: &mut Loop, now: Moment) {
    let limit = record.contract.limits.max_iterations;
    let is_live = record.is_live();
    let is_below = is_live && record.state.counts().completed() < limit;
    let state = &mut record.state;
    match step {
        Step::Iterate { failures, without_progress, crashes } if is_below => {
            let evidence = Evidence { words: state.take_messages(true), ..Evidence::default() };
            state.count_boundary(now, 1000);
            let (at, spent_ms) = (now.wall, 1000);
            let end = IterationEnd { at, spent_ms, evidence, failures, without_progress, crashes };
            record.end_iteration(end);
            record.state.hold(None);
        }
        Step::Boundary(row) if is_live => {
            record.state.count_boundary(now, 10);
            record.state.count_transient_errors(row);
            record.state.hold(None);
        }
        Step::Begin if is_live => record.state.begin_iteration(now),
        Step::Wait if is_live => {
            record.state.begin_wait(now.wall + TimeDelta::minutes(5), "busy".to_owned(), None);
        }
        Step::Hold if is_live => record.state.hold(Some(now.wall)),
        Step::Pause if is_live => record.state.pause(now, 5),
        Step::Finish(outcome) => state.finish(Ending::new(outcome, "so"), 5),
        Step::Reopen(driver) => state.reopen(driver),
        Step::Refuse { for_tests } => state.refuse_end(None, for_tests),
        Step::Tell => state.add_messages(["be brief".to_owned()]),
        Step::Deliver(count) => state.mark_in_prompt(count),
        Step::TakeMessages { was_started } => {
            let left = state.take_messages(was_started);
            state.add_messages(left);
        }
        Step::TakeBack => {
            state.put_messages_in_prompt();
            state.take_back_prompt();
        }
        Step::HandToAgent(is_another) => {
            let next = FallbackAgent { agent: "codex".to_owned(), until: now.wall };
            state.hand_to_agent(is_another.then_some(next));
        }
        Step::Use(input) => {
            let tokens = Tokens { input, ..Tokens::default() };
            record.count_use(1, Some(&Usage { tokens, ..Usage::default() }));
        }
        Step::Write => state.count_write(now.wall),
        Step::Merge(what) if is_live => {
            let known = state.clone();
            let mut found = known.clone();
            found.count_write(now.wall);
            match what {
                0 => found.pause(now, 0),
                1 => found.finish(Ending::cancelled(Actor::User, None), 0),
                _ => found.add_messages(["use tabs".to_owned()]),
            }
            state.merge(&known, &found);
        }
        Step::Carry => {
            let carried = Carried::from_record(record);
            *record = a_loop();
            carried.give_to(record);
        }
        _ => {}
    }
}

/// Whether a record keeps its rules, those that no reader of a file can check included.
fn keeps_its_rules(record: &Loop) -> Result<(), TestCaseError> {
    prop_assert_eq!(record.check_rules(), Ok(()));
    let state = &record.state;
    prop_assert!(state.exchange().in_prompt() <= state.exchange().messages().len());
    prop_assert!(
        state.wait().due().is_none() || matches!(state.status(), Status::Running | Status::Waiting)
    );
    prop_assert!(state.status() != Status::Waiting || state.wait().due().is_some());
    Ok(())
}

fn run_histories(cases: u32) {
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let histories = prop::collection::vec(any_step(), 1..50);
    let outcome = runner.run(&histories, |history| {
        let mut record = a_loop();
        for (seconds, step) in (1..).zip(history) {
            take(step, &mut record, at(seconds));
            keeps_its_rules(&record)?;
        }
        Ok(())
    });
    if let Err(broken) = outcome {
        panic!("{broken}");
    }
}

#[test]
fn no_history_of_transitions_breaks_the_rules_of_a_record() {
    run_histories(2_000);
}

#[test]
#[ignore = "long"]
fn no_long_history_of_transitions_breaks_the_rules_of_a_record() {
    run_histories(100_000);
}
