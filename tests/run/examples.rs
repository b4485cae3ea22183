//! Well-known examples of runs: what they show is what happens. Times of day and durations are
//! normalised; a run without end is ended by Ctrl-C in its fourth iteration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;

use super::{HANG, WORK, World};

const FAIL: &str = "echo 'cannot reach the tracker' >&2; exit 1";

#[test]
fn a_limited_run_reports_each_iteration_and_that_it_reached_its_limit() {
    let world = World::new(&[WORK]);
    let ran = world.crew(&["run", "build", "--max-iterations", "3"]);
    assert_snapshot!(world.lines(&ran), @"
    [10:00:00] Starting procedure: build (max 3 iterations)
    [10:00:00] Iteration 1/3 starting...
    [10:00:00] Iteration 1/3 completed in 1.0s
    [10:00:00] Iteration 2/3 starting...
    [10:00:00] Iteration 2/3 completed in 1.0s
    [10:00:00] Iteration 3/3 starting...
    [10:00:00] Iteration 3/3 completed in 1.0s
    [10:00:00] Reached max iterations: 3 (total: 1.0s)
    ");
    assert_eq!(world.calls(), 3);
}

#[test]
fn three_failures_in_a_row_abort_a_run_long_before_its_limit() {
    let world = World::new(&[WORK, WORK, WORK, FAIL]);
    let ran = world.crew(&["run", "build", "--max-iterations", "10"]);
    assert_snapshot!(world.lines(&ran), @"
    [10:00:00] Starting procedure: build (max 10 iterations)
    [10:00:00] Iteration 1/10 starting...
    [10:00:00] Iteration 1/10 completed in 1.0s
    [10:00:00] Iteration 2/10 starting...
    [10:00:00] Iteration 2/10 completed in 1.0s
    [10:00:00] Iteration 3/10 starting...
    [10:00:00] Iteration 3/10 completed in 1.0s
    [10:00:00] Iteration 4/10 starting...
    [10:00:00] WARNING: AI CLI failed (exit 1), consecutive failures: 1/3
    [10:00:00] Iteration 4/10 completed in 1.0s
    [10:00:00] Waiting until 10:00:05 (the agent exited with status 1 within 2 s of its start), then iteration 5
    [10:00:00] Iteration 5/10 starting...
    [10:00:00] WARNING: AI CLI failed (exit 1), consecutive failures: 2/3
    [10:00:00] Iteration 5/10 completed in 1.0s
    [10:00:00] Waiting until 10:00:05 (the agent exited with status 1 within 2 s of its start), then iteration 6
    [10:00:00] Iteration 6/10 starting...
    [10:00:00] WARNING: AI CLI failed (exit 1), consecutive failures: 3/3
    [10:00:00] ERROR: Aborting after 3 consecutive failures (6 iterations completed, total: 1.0s)
    ");
    assert_eq!((ran.code(), world.calls()), (11, 6));
}

#[test]
fn a_run_interrupted_in_its_fifth_iteration_continues_with_its_sixth() {
    let world = World::new(&[WORK, WORK, WORK, WORK, HANG]);
    let ran = world.interrupted(&["run", "build", "--max-iterations", "10"]);
    assert_snapshot!(world.lines(&ran), @"
    [10:00:00] Starting procedure: build (max 10 iterations)
    [10:00:00] Iteration 1/10 starting...
    [10:00:00] Iteration 1/10 completed in 1.0s
    [10:00:00] Iteration 2/10 starting...
    [10:00:00] Iteration 2/10 completed in 1.0s
    [10:00:00] Iteration 3/10 starting...
    [10:00:00] Iteration 3/10 completed in 1.0s
    [10:00:00] Iteration 4/10 starting...
    [10:00:00] Iteration 4/10 completed in 1.0s
    [10:00:00] Iteration 5/10 starting...
    [10:00:00] Interrupted. State saved. Resume with: crew resume build
    ");
    assert_eq!(ran.code(), 130);
    world.steps(&[HANG]);
    let ran = world.interrupted(&["resume", "build"]);
    assert_snapshot!(world.lines(&ran), @"
    [10:00:00] Resuming procedure: build from iteration 5 (max 10)
    [10:00:00] Previous session: 5 iterations completed in 1.0s
    [10:00:00] Iteration 6/10 starting...
    [10:00:00] Interrupted. State saved. Resume with: crew resume build
    ");
}

#[test]
fn a_dry_run_shows_what_would_be_sent_to_whom_and_writes_nothing() {
    let world = World::new(&[WORK]);
    let before = files(world.sandbox.root());
    let ran = world.crew(&["run", "build", "--dry-run"]);
    assert_eq!(files(world.sandbox.root()), before);
    assert_eq!((ran.code(), world.calls()), (0, 0));
    let (head, prompt) = ran.stdout.split_once("\n\n").unwrap();
    assert_snapshot!(head, @"
    [DRY RUN] Procedure: build
    [DRY RUN] Would execute with: agent
    [DRY RUN] Token count: 978 / 100,000 budget
    ");
    let headings: Vec<&str> = prompt.lines().filter(|line| line.starts_with('#')).collect();
    assert_snapshot!(headings.join("\n"), @"
    # OODA Loop Iteration
    ## OBSERVE
    ## ORIENT
    ## DECIDE
    ## ACT
    ## HOW TO FINISH
    ");
    world.crew(&["run", "build"]);
    assert_eq!(world.prompt(1) + "\n", prompt);
}

#[test]
fn a_run_without_a_limit_continues_after_a_failure() {
    let world = World::new(&[WORK, WORK, FAIL, WORK, HANG]);
    world.settings("[procedures.build]\nmax_iterations = 0\n");
    let ran = world.interrupted(&["run", "build"]);
    assert_snapshot!(world.lines(&ran), @"
    [10:00:00] Starting procedure: build (unlimited iterations, up to 12h, 3 failures in a row abort, 5 iterations without progress stall)
    [10:00:00] Iteration 1 starting...
    [10:00:00] Iteration 1 completed in 1.0s
    [10:00:00] Iteration 2 starting...
    [10:00:00] Iteration 2 completed in 1.0s
    [10:00:00] Iteration 3 starting...
    [10:00:00] WARNING: AI CLI failed (exit 1), consecutive failures: 1/3
    [10:00:00] Iteration 3 completed in 1.0s
    [10:00:00] Waiting until 10:00:05 (the agent exited with status 1 within 2 s of its start), then iteration 4
    [10:00:00] Iteration 4 starting...
    [10:00:00] Iteration 4 completed in 1.0s
    [10:00:00] Iteration 5 starting...
    [10:00:00] Interrupted. State saved. Resume with: crew resume build
    ");
    let record = world.record();
    assert_eq!(record["state"]["consecutive_failures"], 0);
}

#[test]
fn a_typed_limit_overrides_the_procedures_limit() {
    let world = World::new(&[WORK]);
    let ran = world.crew(&["run", "bootstrap", "--max-iterations", "3"]);
    assert_snapshot!(world.lines(&ran), @"
    [10:00:00] Starting procedure: bootstrap (max 3 iterations)
    [10:00:00] Iteration 1/3 starting...
    [10:00:00] Iteration 1/3 completed in 1.0s
    [10:00:00] Iteration 2/3 starting...
    [10:00:00] Iteration 2/3 completed in 1.0s
    [10:00:00] Iteration 3/3 starting...
    [10:00:00] Iteration 3/3 completed in 1.0s
    [10:00:00] Reached max iterations: 3 (total: 1.0s)
    ");
}

#[test]
fn a_run_without_a_limit_lasts_until_ctrl_c() {
    let world = World::new(&[WORK, WORK, WORK, HANG]);
    let ran = world.interrupted(&["run", "bootstrap", "--max-iterations", "0"]);
    assert_snapshot!(world.lines(&ran), @"
    [10:00:00] Starting procedure: bootstrap (unlimited iterations, up to 12h, 3 failures in a row abort, 5 iterations without progress stall)
    [10:00:00] Iteration 1 starting...
    [10:00:00] Iteration 1 completed in 1.0s
    [10:00:00] Iteration 2 starting...
    [10:00:00] Iteration 2 completed in 1.0s
    [10:00:00] Iteration 3 starting...
    [10:00:00] Iteration 3 completed in 1.0s
    [10:00:00] Iteration 4 starting...
    [10:00:00] Interrupted. State saved. Resume with: crew resume bootstrap
    ");
}

#[test]
fn a_loop_without_any_limit_is_refused_unless_failures_or_a_stall_can_end_it() {
    let world = World::new(&[WORK]);
    let unlimited = ["run", "bootstrap", "--dry-run", "-n", "0", "--max-duration", "0"];
    for (failures, stall, exit) in [("3", "0", 0), ("0", "3", 0), ("0", "0", 1)] {
        let bounds = ["--failure-threshold", failures, "--stall", stall];
        let ran = world.crew(&[&unlimited[..], &bounds].concat());
        assert_eq!(ran.code(), exit, "{failures} {stall}: {ran:#?}");
        assert_eq!(ran.stderr.contains("nothing would ever end"), exit == 1, "{ran:#?}");
    }
}

#[test]
fn build_has_five_iterations_and_bootstrap_one_unless_another_number_is_given() {
    let world = World::new(&[WORK]);
    let ran = world.crew(&["run", "build"]);
    assert_snapshot!(world.lines(&ran), @"
    [10:00:00] Starting procedure: build (max 5 iterations)
    [10:00:00] Iteration 1/5 starting...
    [10:00:00] Iteration 1/5 completed in 1.0s
    [10:00:00] Iteration 2/5 starting...
    [10:00:00] Iteration 2/5 completed in 1.0s
    [10:00:00] Iteration 3/5 starting...
    [10:00:00] Iteration 3/5 completed in 1.0s
    [10:00:00] Iteration 4/5 starting...
    [10:00:00] Iteration 4/5 completed in 1.0s
    [10:00:00] Iteration 5/5 starting...
    [10:00:00] Iteration 5/5 completed in 1.0s
    [10:00:00] Reached max iterations: 5 (total: 1.0s)
    ");
    let ran = world.crew(&["run", "bootstrap"]);
    assert_snapshot!(world.lines(&ran), @"
    [10:00:00] Starting procedure: bootstrap (max 1 iteration)
    [10:00:00] Iteration 1/1 starting...
    [10:00:00] Iteration 1/1 completed in 1.0s
    [10:00:00] Reached max iterations: 1 (total: 1.0s)
    ");
    assert_eq!(ran.code(), 0);
}

/// Every path below a folder with its content; a folder has none.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        found.insert(folder.clone(), Vec::new());
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.insert(path.clone(), std::fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}
