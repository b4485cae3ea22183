//! Waits, delays, limits, crashes and the user's commands of a run in memory.

use super::twins::{MemoryLoopStore, Stage, claim, ends, limited, locked_out, outage, work};
use crate::drive::run::ports::{Admission, IterationGate};
use engine::boundary::facts::{ControlRequest, ProcessEnd};
use engine::record::{Ending, Loop, LoopMoment, Outcome, Status};

#[test]
fn a_limit_with_a_reset_is_waited_for_and_the_same_iteration_is_repeated() {
    let stage = Stage::new(&[work(), limited(3600), claim()]);
    let ran = stage.run();
    assert_eq!(ran.end().0, Some(Outcome::Completed));
    assert_eq!(
        ran.lines_with("iteration"),
        ["0 iteration 1", "60 iteration 2", "3720 iteration 2"]
    );
    assert_eq!(
        (ran.record.state.counts().completed(), ran.record.state.counts().consecutive_failures()),
        (2, 0)
    );
}

#[test]
fn a_cancel_from_another_terminal_ends_a_wait() {
    let stage = Stage::new(&[limited(3600)]);
    stage.plan(100, MemoryLoopStore::cancel);
    let ran = stage.run();
    assert_eq!(ran.end(), (Some(Outcome::Cancelled), "cancelled by the user".to_owned(), 0));
    assert_eq!((ran.calls.len(), stage.clock_seconds()), (1, 100));
}

#[test]
fn a_pause_ends_a_wait_and_the_next_run_tries_again_at_once() {
    let stage = Stage::new(&[limited(3600), claim()]);
    stage.plan(100, |store| *store.request.borrow_mut() = Some(ControlRequest::Pause));
    let paused = stage.run();
    assert_eq!((paused.record.state.status(), paused.calls.len()), (Status::Paused, 1));
    assert_eq!(paused.lines.last().unwrap(), "100 paused");
    *stage.store.request.borrow_mut() = None;
    stage.set_record(|record| record.state.end_wait());
    let ran = stage.run();
    assert_eq!((ran.end().0, ran.calls[1].1), (Some(Outcome::Completed), 100));
}

#[test]
fn a_wait_past_the_loops_time_ends_it_and_names_the_reset() {
    let stage = Stage::new(&[limited(7200)]);
    stage.set_record(|record| record.contract.limits.max_duration_s = 3600);
    let (outcome, why, completed) = stage.run().end();
    assert_eq!((outcome, completed), (Some(Outcome::Interrupted), 0));
    assert!(why.starts_with("usage limit reached; a wait of 2h would outlast"), "{why}");
}

#[test]
fn the_twelfth_failure_of_the_service_in_a_row_needs_a_person() {
    let ran = Stage::new(&[outage()]).run();
    let why = "the model's service failed 12 times in a row: the service is away".to_owned();
    assert_eq!(ran.end(), (Some(Outcome::Blocked), why, 0));
    assert_eq!(ran.calls.len(), 12);
}

#[test]
fn an_error_that_only_a_person_can_fix_ends_the_loop_at_once() {
    let ran = Stage::new(&[locked_out()]).run();
    assert_eq!(ran.end(), (Some(Outcome::Blocked), "unauthorized; log in again".to_owned(), 0));
    assert_eq!(ran.calls.len(), 1);
}

#[test]
fn the_loops_time_ends_a_delay_and_no_iteration_begins_after_it() {
    let stage = Stage::new(&[work()]);
    stage.set_record(|record| record.contract.limits.max_duration_s = 300);
    stage.set_terms(|run| run.pace.delay_s = 1200);
    let ran = stage.run();
    let why = "the time limit of 5m is reached".to_owned();
    assert_eq!(ran.end(), (Some(Outcome::Exhausted), why, 1));
    assert_eq!(ran.lines_with("delay"), ["60 delay until 300"]);
    assert_eq!(ran.record.state.time().awake_ms(), 300_000);
}

#[test]
fn a_run_that_only_its_time_limit_can_end_completes_when_the_limit_passes_during_a_delay() {
    let stage = Stage::new(&[work()]);
    stage.set_record(|record| {
        record.contract.limits.max_duration_s = 300;
        record.contract.promise = None;
    });
    stage.set_terms(|run| run.pace.delay_s = 1200);
    let ran = stage.run();
    assert_eq!((ran.end().0, ran.calls.len()), (Some(Outcome::Completed), 1));
}

#[test]
fn a_delay_comes_between_iterations_and_counts_only_as_time_of_the_loop() {
    let stage = Stage::new(&[work()]);
    stage.set_record(|record| record.contract.limits.max_iterations = 3);
    stage.set_terms(|run| run.pace.delay_s = 30);
    let ran = stage.run();
    assert_eq!(ran.lines_with("delay"), ["60 delay until 90", "150 delay until 180"]);
    assert_eq!(
        (ran.record.elapsed_ms.clone(), ran.record.state.time().awake_ms()),
        (vec![60_000; 3], 240_000)
    );
}

#[test]
fn the_wait_after_a_crash_does_not_count_as_time_of_an_iteration() {
    let ran = Stage::new(&[ends(ProcessEnd::Signal(9)), claim()]).run();
    assert_eq!((ran.end().0, ran.end().2), (Some(Outcome::Completed), 2));
    assert_eq!(ran.lines_with("wait"), ["60 wait until 65: the agent was killed by signal 9"]);
    assert_eq!(
        (ran.record.elapsed_ms.clone(), ran.record.state.time().awake_ms()),
        (vec![60_000; 2], 125_000)
    );
}

#[test]
fn crew_waits_after_a_failure_within_two_seconds_and_not_after_a_later_one() {
    let stage =
        Stage::new(&[ends(ProcessEnd::Exit(3)).taking(1), ends(ProcessEnd::Exit(3)), claim()]);
    let ran = stage.run();
    assert_eq!((ran.end().0, ran.calls.len()), (Some(Outcome::Completed), 3));
    let why = "the agent exited with status 3 within 2 s of its start";
    assert_eq!(ran.lines_with("wait"), [format!("1 wait until 6: {why}")]);
}

#[test]
fn crew_waits_after_a_timeout_whether_or_not_something_changed() {
    let mut changed = work();
    changed.facts.agent.process = Some(ProcessEnd::TimedOut(60));
    let stage = Stage::new(&[ends(ProcessEnd::TimedOut(60)), changed, claim()]);
    let ran = stage.run();
    assert_eq!((ran.end().0, ran.calls.len()), (Some(Outcome::Completed), 3));
    let why = "the iteration ran into its timeout of 1m";
    let waits = [format!("60 wait until 65: {why}"), format!("125 wait until 140: {why}")];
    assert_eq!(ran.lines_with("wait"), waits);
    assert_eq!(ran.record.state.counts().consecutive_failures(), 0);
}

#[test]
fn a_wait_after_a_crash_ends_with_the_loops_time() {
    let stage = Stage::new(&[ends(ProcessEnd::Signal(9))]);
    stage.set_record(|record| record.contract.limits.max_duration_s = 63);
    stage.set_terms(|run| run.pace.delay_s = 600);
    let ran = stage.run();
    let why = "the time limit of 1m 3s is reached".to_owned();
    assert_eq!(ran.end(), (Some(Outcome::Exhausted), why, 1));
}

#[test]
fn a_cancel_and_a_pause_end_a_wait_after_a_crash() {
    for (request, ended) in [
        (
            ControlRequest::Cancel { by: engine::record::Actor::User, reason: None },
            Status::Finished,
        ),
        (ControlRequest::Pause, Status::Paused),
    ] {
        let stage = Stage::new(&[ends(ProcessEnd::Signal(9))]);
        stage.plan(62, move |store| *store.request.borrow_mut() = Some(request.clone()));
        let ran = stage.run();
        assert_eq!((ran.record.state.status(), ran.calls.len()), (ended, 1));
    }
}

#[test]
fn ending_a_wait_from_elsewhere_starts_the_iteration_at_once() {
    let stage = Stage::new(&[work(), ends(ProcessEnd::Signal(9)), claim()]);
    stage.set_terms(|run| run.pace.delay_s = 5);
    stage.plan(127, |store| store.record.borrow_mut().state.end_wait());
    let ran = stage.run();
    assert_eq!((ran.end().0, ran.calls.len()), (Some(Outcome::Completed), 3));
    assert_eq!(ran.lines_with("iteration 3"), ["127 iteration 3"]);
}

#[test]
fn a_failing_iteration_end_reaction_makes_the_iteration_a_failure() {
    let stage = Stage::new(&[work()]);
    stage.react(&[(LoopMoment::IterationEnd, "look")]);
    stage.checks.failing.borrow_mut().push("look".to_owned());
    let ran = stage.run();
    let why = "3 failures in a row, the last: iteration_end `look` failed (exit 1)".to_owned();
    assert_eq!(ran.end(), (Some(Outcome::Aborted), why, 3));
}

#[test]
fn the_users_commands_run_at_their_moments() {
    let stage = Stage::new(&[ends(ProcessEnd::Exit(0))]);
    stage.set_record(|record| record.contract.limits.stall = 4);
    stage.react(&[(LoopMoment::Stall, "stall"), (LoopMoment::Finish, "finish")]);
    assert_eq!(stage.run().end().0, Some(Outcome::Stalled));
    assert_eq!(*stage.checks.reacted.borrow(), ["stall 2", "finish 4"]);

    let stage = Stage::new(&[limited(3600)]);
    stage.react(&[(LoopMoment::Wait, "wait")]);
    stage.plan(100, MemoryLoopStore::cancel);
    stage.run();
    assert_eq!(*stage.checks.reacted.borrow(), ["wait 0"]);
}

#[test]
fn a_failed_write_is_reported_once_and_the_limits_still_apply() {
    let stage = Stage::new(&[work()]);
    stage.set_record(|record| record.contract.limits.max_iterations = 3);
    stage.store.fails.set(u32::MAX);
    let ran = stage.run();
    assert_eq!((ran.end().0, ran.end().2), (Some(Outcome::Exhausted), 3));
    assert_eq!(
        ran.lines_with("unsaved"),
        ["60 unsaved: the disk is full", "180 finished, unsaved"]
    );

    let stage = Stage::new(&[work()]);
    stage.set_record(|record| record.contract.limits.max_iterations = 3);
    stage.store.fails.set(1);
    let ran = stage.run();
    assert_eq!(ran.lines.last().unwrap(), "180 finished");
    assert_eq!(stage.store.record.borrow().state.counts().completed(), 3);
}

/// A gate that admits each iteration at the second request, and ends the loop after one.
struct Gate(u32);

impl IterationGate for Gate {
    fn admit(&mut self, _: &Loop) -> Admission {
        self.0 += 1;
        if self.0 % 2 == 1 { Admission::Later("a slot".to_owned()) } else { Admission::Granted }
    }

    fn stood_on(&self) -> Option<String> {
        None
    }

    fn wait_began(&mut self, _: &Loop) {}

    fn iteration_ended(&mut self, _: &Loop) -> Option<Ending> {
        Some(Ending::new(Outcome::Blocked, "the node is needed"))
    }
}

#[test]
fn a_gate_is_polled_until_it_admits_the_iteration_and_may_end_the_loop_after_it() {
    let ran = Stage::new(&[work()]).run_at(Some(Box::new(Gate(0))));
    assert_eq!(ran.end(), (Some(Outcome::Blocked), "the node is needed".to_owned(), 1));
    assert_eq!(ran.lines, ["0 note: waits for a slot", "0 iteration 1", "60 finished"]);
}
