//! The limits of a run: what is spent, what is added, and what happens when one is reached.

use super::{HANG, WORK, World};
use crate::sandbox::{DEADLINE, Sandbox};

#[test]
fn added_iterations_of_an_unlimited_run_count_from_the_completed_ones() {
    let world = World::new(&[WORK, HANG, WORK]);
    world.interrupted(&["run", "Build the app", "-n", "0", "--stall", "0"]);
    assert_eq!(world.the_loop()["completed_iterations"], 2);
    let ran = world.crew(&["resume", "-n", "+2", "--max-duration", "20s"]);
    assert_eq!((ran.code(), world.calls()), (10, 4), "{ran:?}");
    assert!(ran.stdout.contains("from iteration 2 (max 4)"), "{ran:?}");
}

#[test]
fn a_resume_stays_below_the_ceiling_of_the_cost() {
    let mut world = World::new(&[WORK]);
    world.crew(&["run", "Build the app", "-n", "1"]);
    world.sandbox = world.sandbox.env("CREW_MAX_COST", "2.50");
    let ran = world.crew(&["resume", "-n", "+1", "--max-cost", "0"]);
    assert_eq!(world.record()["contract"]["limits"]["max_cost_micros"], 2_500_000);
    assert!(ran.stderr.contains("CREW_MAX_COST lowers --max-cost to $2.50"), "{ran:?}");
}

#[test]
fn an_increase_sets_a_limit_on_a_run_without_one() {
    let world = World::new(&[HANG]);
    let running = world.hanging(&["run", "Build the app", "-n", "0", "--max-duration", "0"]);
    let set = world.crew(&["set", "-n", "+3", "--max-cost", "+5"]).success();
    assert_eq!(set.trim(), format!("loop {}: up to 3 iterations, $5.00", world.id()));
    world.crew(&["cancel"]).success();
    running.wait(DEADLINE);
}

#[test]
fn a_check_that_exceeds_the_time_limit_by_a_tenth_is_ended_and_not_failed() {
    let world = World::new(&[WORK]);
    let ran = world.crew(&["run", "Build the app", "--max-duration", "3s", "--gate", "sleep 300"]);
    assert_eq!((ran.code(), world.calls()), (10, 1), "{ran:?}");
    assert!(ran.stdout.contains("Check did not finish: `sleep 300`"), "{ran:?}");
    let shown = world.the_loop();
    assert_eq!(shown["why"], "the time limit of 3s is reached");
    let evidence = &world.record()["state"]["evidence"];
    assert_eq!(
        (&evidence["failure"], &evidence["checks"][0]["verdict"]),
        (&None::<u8>.into(), &"unknown".into())
    );
    let tail = evidence["checks"][0]["tail"].as_str().unwrap();
    assert_eq!(tail, "was cut: it exceeded the loop's time limit of 3s");
}

#[test]
fn the_checks_before_the_first_iteration_count_toward_the_time_limit() {
    let world = World::new(&[WORK]);
    let ran =
        world.crew(&["run", "Build the app", "--max-duration", "3s", "--verify", "sleep 300"]);
    assert_eq!((ran.code(), world.calls()), (10, 0), "{ran:?}");
    let shown = world.the_loop();
    assert_eq!(shown["why"], "the time limit of 3s is reached");
    assert!(shown["awake_ms"].as_u64().unwrap() >= 3_000, "{shown:#}");
}

#[test]
fn an_iteration_that_made_changes_before_its_timeout_has_not_failed() {
    let changes = format!("{WORK}; sleep 300");
    for (step, git, terms, failures) in [
        (changes.as_str(), true, ["--timeout", "2s", "--stall", "5"], 0),
        (&changes, true, ["--timeout", "2s", "--stall", "0"], 0),
        (&changes, true, ["--idle-timeout", "2s", "--stall", "0"], 0),
        (HANG, true, ["--timeout", "2s", "--stall", "0"], 1),
        (HANG, true, ["--timeout", "2s", "--stall", "5"], 1),
    ] {
        let sandbox = if git { Sandbox::new() } else { Sandbox::without_git() };
        let world = World::of(sandbox, &[step]);
        let ran = world.crew(&[&["run", "Build the app", "-n", "1"], &terms[..]].concat());
        let shown = world.the_loop();
        assert_eq!(shown["consecutive_failures"], failures, "{terms:?} {step} {ran:?}");
    }
}
