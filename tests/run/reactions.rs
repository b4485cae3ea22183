//! The surroundings of an iteration: the user's reactions, the delay, the limit on turns, and the
//! logs that are kept.

use std::time::{Duration, SystemTime};

use rustix::process::Signal;

use super::{CLAIM, HANG, WORK, World};
use crate::sandbox::{DEADLINE, poll_until};
use crate::spawned::Ran;

/// A world whose user reacts with these lines of settings; `NOTES` in them is the folder of notes.
fn world(steps: &[&str], on: &str) -> World {
    let world = World::new(steps);
    react(&world, "", on);
    world
}

fn react(world: &World, more: &str, on: &str) {
    let notes = world.note("").display().to_string();
    world.settings(&format!("{more}[on]\n{}\n", on.replace("NOTES", notes.trim_end_matches('/'))));
}

const NOTE_FINISH: &str = "finish = \"echo $CREW_OUTCOME $CREW_ITERATION >> 'NOTES/finish'\"";

/// How many warnings name a command.
fn warnings(ran: &Ran, command: &str) -> usize {
    let lines = ran.stdout.lines();
    lines.filter(|line| line.contains("WARNING") && line.contains(command)).count()
}

#[track_caller]
fn finishes(world: &World) -> String {
    std::fs::read_to_string(world.note("finish")).unwrap_or_default()
}

#[test]
fn a_failing_start_reaction_skips_the_iteration_a_limited_number_of_times() {
    let world = world(&[WORK], "iteration_start = \"echo not now; exit 3\"");
    let ran = world.crew(&["run", "Do it", "-n", "3"]);
    assert_eq!((ran.code(), world.calls()), (10, 0), "{ran:#?}");
    let line = "WARNING: Iteration 2/3 skipped: iteration_start `echo not now; exit 3` failed (exit 3): not now";
    assert!(ran.stdout.contains(line), "{ran:#?}");
    assert_eq!(warnings(&ran, "echo not now"), 3, "each is told once: {ran:#?}");
    let shown = world.the_loop();
    assert_eq!(shown["completed_iterations"], 3, "{shown:#}");
    assert_eq!(shown["consecutive_failures"], 0, "{shown:#}");
    let why = "iteration_start `echo not now; exit 3` failed (exit 3): not now";
    assert_eq!(
        (&shown["evidence"]["skipped"], &shown["evidence"]["status"]),
        (&why.into(), &"skipped".into())
    );
    let page = world.crew(&["show", "--only", "skipped", "--last", "1"]).success();
    assert!(page.contains(&format!("skipped: {why}")), "{page}");
    let ran = world.crew(&["run", "Do it", "-n", "0", "--stall", "4"]);
    assert_eq!((ran.code(), world.calls()), (12, 0), "{ran:#?}");
}

#[test]
fn the_finish_reaction_runs_once_for_every_kind_of_ending() {
    let table: [(&str, &[&str], i32, &str); 6] = [
        (CLAIM, &[], 0, "completed 1\n"),
        (WORK, &["-n", "2"], 10, "exhausted 2\n"),
        ("exit 1", &[], 11, "aborted 3\n"),
        ("true", &["--stall", "2"], 12, "stalled 2\n"),
        ("echo '<promise>BLOCKED: no key</promise>'", &[], 13, "blocked 1\n"),
        (WORK, &["-n", "1", "--no-promise"], 0, "completed 1\n"),
    ];
    for (step, options, exit, shown) in table {
        let world = world(&[step], NOTE_FINISH);
        let ran = world.crew(&[&["run", "Do it"], options].concat());
        assert_eq!((ran.code(), finishes(&world).as_str()), (exit, shown), "{ran:#?}");
    }
}

#[test]
fn the_finish_reaction_runs_once_for_a_cancel_and_for_ctrl_c() {
    let cancelled = world(&[HANG], NOTE_FINISH);
    let running = cancelled.hanging(&["run", "Do it"]);
    cancelled.crew(&["cancel"]).success();
    assert_eq!(running.wait(DEADLINE).code(), 14);
    assert_eq!(finishes(&cancelled), "cancelled 0\n");
    let interrupted = world(&[HANG], NOTE_FINISH);
    assert_eq!(interrupted.interrupted(&["run", "Do it"]).code(), 130);
    assert_eq!(finishes(&interrupted), "interrupted 1\n");
}

#[test]
fn a_limit_of_turns_reaches_the_agent() {
    let world = World::new(&["echo \"$*\" > \"$notes/arguments\""]);
    world.settings("loop.max_turns = 7\nagents.fake.max_turns = \"--max-turns\"\n");
    assert_eq!(world.crew(&["run", "Do it", "-n", "1"]).code(), 10);
    let arguments = std::fs::read_to_string(world.note("arguments")).unwrap();
    assert!(arguments.contains("--max-turns 7"), "{arguments}");
}

#[test]
fn a_start_removes_logs_that_are_too_old() {
    let world = World::new(&["echo said; true"]);
    assert_eq!(world.crew(&["run", "Do it", "-n", "2"]).code(), 10);
    let logs = world.sandbox.crew_home().join("loops").join(world.id()).join("iterations");
    let old = std::fs::File::options().append(true).open(logs.join("0001.log")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_hours(91 * 24)).unwrap();
    assert_eq!(world.crew(&["run", "Do it", "-n", "1"]).code(), 10);
    assert!(!logs.join("0001.log").exists() && logs.join("0002.log").exists());
    world.settings("keep.logs = \"1KiB\"\n");
    std::fs::write(logs.join("0002.log"), "x".repeat(2000)).unwrap();
    assert_eq!(world.crew(&["run", "Do it", "-n", "1"]).code(), 10);
    assert!(!logs.join("0002.log").exists());
    assert_eq!(world.loops().len(), 3, "records stay");
}

#[test]
fn a_cancel_during_a_start_reaction_starts_no_agent() {
    for (is_signal, code) in [(true, 130), (false, 14)] {
        let start = "iteration_start = \"touch 'NOTES/ready'; sleep 1\"";
        let world = world(&[HANG], start);
        let running = world.sandbox.start_crew(&["run", "Do it"]);
        poll_until("the reaction", || world.note("ready").exists());
        if is_signal {
            running.signal(Signal::INT);
        } else {
            world.crew(&["cancel"]).success();
        }
        let ran = running.wait(DEADLINE);
        assert_eq!((ran.code(), world.calls()), (code, 0), "{ran:#?}");
    }
}
