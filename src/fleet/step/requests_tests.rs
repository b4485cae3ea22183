//! The effects of requests by users and agents, and when they reach a loop.

use super::table_tests::{effect, state};
use super::tests::{ask_resume, notes_of};
use super::*;
use crate::fleet::fixture::{Bench, a_report, a_running_task, a_task, an_ended_task, id};
use crate::fleet::record::TaskInput;

#[test]
fn messages_and_requests_reach_a_loop_as_soon_as_it_exists() {
    let shown = TaskRecord {
        asked: TaskInput { messages: vec!["old".to_owned()], ..a_task().asked },
        ..a_task()
    };
    let mut bench = Bench::new(LandingMode::No, vec![("a", shown)]);
    bench.step(FleetEvent::Tick);
    assert_eq!(bench.task("a").asked.given, 1);
    let tell = |words: &str| FleetRequest::Tell { words: words.to_owned(), by_agent: true };
    bench.step(FleetEvent::Requested(None, tell("new")));
    let pause = FleetRequest::Task(TaskRequest::Pause { now: false });
    bench.step(FleetEvent::Requested(None, pause));
    let mut report = a_report(1, 0, None);
    report.phase = AttemptPhase::Preparing;
    assert_eq!(bench.step(FleetEvent::Reported(id("a"), report)).len(), 1, "no loop yet");
    let effects = bench.step(FleetEvent::Reported(id("a"), a_report(1, 0, None)));
    let shown: Vec<String> = effects.iter().map(effect).collect();
    assert_eq!(shown, ["save", "pass \"(an agent says, unchecked) new\"", "pass pause"]);
    assert!(bench.task("a").asked.messages.is_empty());
    let effects = bench.step(FleetEvent::Requested(Some(id("a")), tell("now")));
    assert_eq!(effects.len(), 1, "{effects:?}");
    let mut bench = Bench::new(LandingMode::No, vec![("a", an_ended_task(Outcome::Blocked))]);
    for _ in 0..6 {
        bench.step(FleetEvent::Requested(None, tell("again")));
    }
    let shown = notes_of(&bench.step(FleetEvent::Requested(None, tell("again"))));
    assert_eq!(shown, ["a did not get the message: 5 messages wait for it"]);
}

#[test]
fn a_request_to_end_a_job_is_repeated_until_it_is_accepted_lifted_or_the_job_is_gone() {
    let pause = || FleetRequest::Task(TaskRequest::Pause { now: true });
    let ended = |effects: Vec<Effect>| effects.contains(&Effect::End { task: id("a") });
    let asked =
        |why: Option<&str>| FleetEvent::EndAsked { task: id("a"), why: why.map(str::to_owned) };
    let gone = || FleetEvent::Gone { task: id("a"), number: 1, why: String::new() };
    for (over, is_again) in [
        (FleetEvent::Tick, true),
        (asked(None), false),
        (ask_resume("a"), false),
        (gone(), false),
        (FleetEvent::Signal { times: 2, is_hangup: false }, true),
    ] {
        let name = format!("{over:?}");
        let mut bench = Bench::new(LandingMode::No, vec![("a", a_running_task())]);
        bench.record.terms.executor = "slurm".to_owned();
        assert!(ended(bench.step(FleetEvent::Requested(Some(id("a")), pause()))), "{name}");
        let said = notes_of(&bench.step(asked(Some("away"))));
        assert_eq!(said, ["a could not be ended, and that is tried again: away"], "{name}");
        assert!(!ended(bench.step(FleetEvent::Tick)), "{name}: too early");
        bench.second += 5;
        assert!(ended(bench.step(FleetEvent::Tick)), "{name}: once it is time");
        assert_eq!(notes_of(&bench.step(asked(Some("away")))), [""; 0], "{name}");
        bench.step(over);
        bench.second += 10;
        assert_eq!(ended(bench.step(FleetEvent::Tick)), is_again, "{name}");
    }
}

#[test]
fn a_pause_that_was_lifted_before_it_is_reported_is_lifted() {
    let paused = || FleetEvent::Reported(id("a"), a_report(1, 1, Some(AttemptEnd::Paused)));
    let pause = || {
        FleetEvent::Requested(Some(id("a")), FleetRequest::Task(TaskRequest::Pause { now: false }))
    };
    let bench = || Bench::new(LandingMode::No, vec![("a", a_running_task())]);
    // By a person, and again once that person has paused it anew.
    for (requests, expected) in [
        (vec![pause(), ask_resume("a"), paused()], "runs 1"),
        (vec![pause(), ask_resume("a"), pause(), paused()], "waits, to pause"),
        (vec![ask_resume("a"), paused(), paused()], "waits, to pause"),
    ] {
        let mut bench = bench();
        for event in requests {
            bench.step(event);
        }
        assert_eq!(state(bench.task("a")), expected);
    }
    // One that comes iterations later is another pause, of the loop alone.
    for (done, expected) in [(2, "runs 1"), (3, "waits, to pause")] {
        let mut bench = bench();
        bench.step(FleetEvent::Reported(id("a"), a_report(1, 1, None)));
        bench.step(ask_resume("a"));
        let report = a_report(1, done, Some(AttemptEnd::Paused));
        bench.step(FleetEvent::Reported(id("a"), report));
        assert_eq!(state(bench.task("a")), expected, "after {done}");
    }
    // By a start, which finds the report before or after it has read the folder.
    for is_known_before in [true, false] {
        let mut bench = bench();
        let described = std::mem::take(&mut bench.coordination.described);
        bench.coordination.has_begun = false;
        if is_known_before {
            bench.step(paused());
        }
        bench.step(FleetEvent::Described(described));
        if !is_known_before {
            bench.step(paused());
        }
        assert_eq!(state(bench.task("a")), "runs 1", "{is_known_before}");
    }
}

#[test]
fn one_task_is_resumed_while_its_fleet_stays_paused() {
    let mut bench = Bench::new(LandingMode::No, vec![("a", a_task()), ("b", a_task())]);
    let pause = FleetRequest::Task(TaskRequest::Pause { now: false });
    bench.step(FleetEvent::Requested(None, pause));
    bench.step(ask_resume("a"));
    assert_eq!(["a", "b"].map(|name| state(bench.task(name))), ["runs 1", "waits, to pause"]);
}
