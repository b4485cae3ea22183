//! The slots of a machine under many jobs, some of which die: no more work at once than there are
//! slots, and nobody waits for the dead.

use rustix::process::Signal;
use serde_json::Value;

use super::{FleetWorld, LONG, ONE};
use crate::child::Running;

const SLOTS: usize = 4;
const JOBS: usize = 50;
/// Each slot is one agent's at a time. The first agents stay until the note `go`.
const AGENT: &str = "exec 9> $NOTES/slot.$CREW_SLOT; flock -n 9 || echo $task >> $NOTES/shared
echo $iteration >> work-$task; wait_for go; [ $iteration -lt 2 ] || claim";

#[test]
fn fifty_jobs_share_four_slots_though_eight_of_them_are_killed() {
    let names: Vec<String> = (10..10 + JOBS).map(|number| format!("t{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = FleetWorld::new(AGENT).tasks(&names, "").terms("slots = 4").ready();
    // It records the tasks and starts the first ones; the others are started by hand.
    let first = world.start(&[]);
    world.until("four work", |world| world.noted("log").lines().count() == SLOTS);
    first.signal(Signal::KILL);
    first.wait(LONG);
    let (working, waiting) = names.split_at(SLOTS);
    let jobs: Vec<_> = waiting.iter().map(|task| world.on("home").job(task)).collect();
    world.until("all others are in line", |world| {
        waiting.iter().all(|task| world.phase(task) == "lines")
    });
    assert_eq!(world.noted("log").lines().count(), SLOTS);

    let typed = world.crew(&["run", "Say hello", "-n", "1", "--agent-cmd", "true"]);
    assert_eq!(typed.code(), 10, "a run that a person types waits for no slot: {typed:#?}");

    // Agents of a killed holder may go on for a moment, so none is waited for in a slot of theirs.
    let killed = [&working[..2], &waiting[..3], &waiting[JOBS - SLOTS - 3..]].concat();
    for task in &killed {
        world.kill_job(task);
    }
    world.allow("go");
    let again: Vec<_> = killed.iter().map(|task| world.on("home").job(task)).collect();
    for (task, job) in waiting.iter().zip(jobs) {
        let ran = job.wait(LONG);
        let expected = if killed.contains(task) { None } else { Some(0) };
        assert_eq!((task, ran.status.code()), (task, expected), "{ran:#?}");
    }
    for (task, job) in killed.iter().zip(again) {
        let ran = job.wait(LONG);
        assert_eq!((task, ran.code()), (task, 0), "{ran:#?}");
    }
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    for task in names {
        let begun = world.begun(task);
        let is_right = begun == [1, 2] || (killed.contains(&task) && [1, 1, 2] == *begun);
        assert!(is_right, "{task}: {begun:?}");
    }
    assert_eq!(world.noted("shared"), "", "two agents had one slot");
    let line = std::fs::read_dir(world.sandbox.crew_home().join("slots/line")).unwrap();
    assert_eq!(line.count(), 0, "the line is empty");
}

#[test]
fn the_checks_before_the_first_iteration_hold_a_slot_too() {
    let check =
        "verify = [\"echo ${CREW_SLOT-none} >> $NOTES/slots; test -e work-$(basename $PWD)\"]";
    let world = FleetWorld::new(ONE).tasks(&["a", "b"], check).terms("slots = 1").ready();
    assert_eq!(world.run(&[]).code(), 0);
    assert_eq!(world.noted("slots"), "0\n0\n0\n0\n");
}

/// One task has the only slot until the note `go`; the job of the other waits for it with the check
/// that comes before its first iteration.
fn in_line() -> (FleetWorld, Running, Running) {
    let agent = format!("[ $task = b ] || wait_for go; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "");
    let world = world.tasks(&["b"], "verify = [\"test -e work-b\"]").terms("slots = 1").ready();
    let first = world.start(&[]);
    world.until("a works", |world| world.begun("a") == [1]);
    let second = world.on("home").job("b");
    world.until("b is in line", |world| world.phase("b") == "lines");
    (world, first, second)
}

#[test]
fn a_job_that_is_stopped_in_the_line_for_its_first_slot_does_its_work_later() {
    let (world, first, second) = in_line();
    second.signal(Signal::TERM);
    second.wait(LONG);
    world.allow("go");
    let ran = first.wait(LONG);
    assert_eq!((ran.code(), world.begun("b")), (0, vec![1]), "{ran:#?}");
    assert_eq!(world.work("b", "work-b"), "1\n");
}

#[test]
fn a_job_in_the_line_for_its_first_slot_obeys_an_order() {
    let (world, first, second) = in_line();
    world.crew(&["fleet", "cancel", "b"]).success();
    let ended = second.wait(LONG);
    assert_eq!((world.state("b"), world.begun("b")), ("cancelled".into(), vec![]), "{ended:#?}");
    assert_eq!(world.state("a"), "running", "it still has its slot");
    world.allow("go");
    assert_eq!((first.wait(LONG).code(), world.state("a")), (10, "completed".into()));
}

#[test]
fn a_number_of_slots_that_is_typed_while_loops_run_holds_from_their_next_iteration_on() {
    let agent = "[ $iteration -gt 1 ] || wait_for go
sleep 0.2; echo $iteration >> work-$task; [ $iteration -lt 3 ] || claim";
    let world = FleetWorld::new(agent).tasks(&["a", "b"], "").ready();
    let running = world.start(&["--slots", "2"]);
    world.until("both work", |world| world.noted("log").lines().count() == 2);
    let joined = world.start(&["--slots", "1"]);
    let fleet = world.sandbox.crew_home().join("fleets/repo/fleet.json");
    world.until("it is recorded", |_| {
        let fleet: Value = serde_json::from_slice(&std::fs::read(&fleet).unwrap()).unwrap();
        fleet["slots"] == 1
    });
    world.allow("go");
    assert_eq!((running.wait(LONG).code(), joined.wait(LONG).code()), (0, 0));
    let log = world.noted("log");
    let later = log.lines().filter(|line| line.split(' ').nth(2) != Some("1"));
    let words: Vec<&str> = later.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(words, ["begin", "end"].repeat(4), "{log}");
}
