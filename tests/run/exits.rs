//! The exit codes that scripts may rely on, one kind of end after another.

use insta::assert_snapshot;
use rustix::process::Signal;

use super::{CLAIM, HANG, WORK, World};
use crate::sandbox::DEADLINE;

/// A step that does nothing.
const IDLE: &str = "echo Thinking.";

#[test]
fn a_proved_run_exits_0_and_its_page_says_what_the_proof_is() {
    let world = World::new(&[CLAIM, "touch done; echo '<promise>COMPLETE</promise>'"]);
    let ran = world.crew(&["run", "make the file", "--verify", "test -e done"]);
    assert_eq!((ran.code(), world.calls()), (0, 2));
    assert_eq!(ran.stderr, "");
    assert_snapshot!(world.same(&ran.stdout), @r#"
    [10:00:00] Starting: "make the file" (max 10 iterations)
    [10:00:00] Check failed: `test -e done` (exit 1) in 1.0s
    [10:00:00] Iteration 1/10 starting...
    [10:00:00] Check failed: `test -e done` (exit 1) in 1.0s
    [10:00:00] Claim refused: `test -e done` failed (exit 1)
    [10:00:00] Iteration 1/10 completed in 1.0s
    [10:00:00] Iteration 2/10 starting...
    [10:00:00] Check passed: `test -e done` in 1.0s
    [10:00:00] Iteration 2/10 completed in 1.0s
    [10:00:00] Completed, checked: a check that had failed now passes (2 iterations completed, total: 1.0s)

    loop ID · completed after 2 iterations · proof: checked

      make the file

      why     `test -e done` passes; it had failed before
      time    1.0s, from 10:00 to 10:00

      1  1.0s  nothing  fails   claimed, refused
      2  1.0s  done     passes  claimed, checked

      files   1 new file
              new: done
      commits none; the file is uncommitted

      next    crew diff ID
    "#);
}

#[test]
fn a_run_completed_by_a_claim_alone_exits_0_and_says_so_on_stderr() {
    let world = World::new(&[CLAIM]);
    let ran = world.crew(&["run", "make the file"]);
    assert_eq!(ran.code(), 0);
    assert_snapshot!(ran.stderr, @"
    crew: nothing is checked: a claim is the agent's word, and without one it runs 10 times and ends exhausted
    crew: completed on the agent's word alone: nothing was checked
    ");
}

#[test]
fn a_run_that_cannot_be_started_exits_1_with_a_hint() {
    let world = World::new(&[WORK]);
    for (arguments, expected) in [
        (&["run", "make it", "--agent-cmd", "no-such-agent"][..], "no program `no-such-agent`"),
        (&["resume"], "there is no loop here"),
        (&["resume", "build"], "none runs a procedure of that name"),
    ] {
        let ran = world.crew(arguments);
        assert_eq!((ran.code(), world.calls()), (1, 0), "{ran:#?}");
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        assert!(world.loops().is_empty());
    }
}

#[test]
fn a_usage_error_exits_2_and_starts_nothing() {
    let world = World::new(&[WORK]);
    for (arguments, expected) in [
        (&["run", "make it", "--max-iteration", "5"][..], "did you mean --max-iterations?"),
        (&["run", "make it", "-n", "many"], "many"),
        (&["run", "make it", "--agent", "clade"], "did you mean claude?"),
        (&["run", "biuld"], "did you mean build?"),
        (&["run", "make it", "--completion-promise", "FAILURE"], "FAILURE"),
        (&["run"], ""),
        (&["resume", "--max-iteration", "5"], "--max-iteration"),
    ] {
        let ran = world.crew(arguments);
        assert_eq!((ran.code(), world.calls()), (2, 0), "{ran:#?}");
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        assert!(world.loops().is_empty());
    }
}

#[test]
fn a_run_that_reaches_its_limit_exits_10() {
    let world = World::new(&[WORK]);
    let ran = world.crew(&["run", "make it", "-n", "2"]);
    assert_eq!((ran.code(), world.calls()), (10, 2));
    assert_eq!(world.the_loop()["outcome"], "exhausted");
}

#[test]
fn a_run_that_only_its_limit_can_end_exits_0() {
    let world = World::new(&[WORK]);
    world.settings("[procedures.sweep]\nact = \"Sweep.\"\ncompletion_promise = false\n");
    let ran = world.crew(&["run", "sweep", "-n", "2"]);
    assert_eq!((ran.code(), world.calls()), (0, 2), "{ran:#?}");
    assert_eq!(world.the_loop()["outcome"], "completed");
    assert!(!world.prompt(1).contains("COMPLETE"), "{}", world.prompt(1));
}

#[test]
fn a_run_with_too_many_failures_in_a_row_exits_11() {
    let world = World::new(&["exit 3"]);
    let ran = world.crew(&["run", "make it", "--failure-threshold", "2"]);
    assert_eq!((ran.code(), world.calls()), (11, 2));
    assert_eq!(world.the_loop()["outcome"], "aborted");
}

#[test]
fn a_run_without_progress_exits_12() {
    let world = World::new(&[IDLE]);
    let ran = world.crew(&["run", "make it", "--stall", "3"]);
    assert_eq!((ran.code(), world.calls()), (12, 3));
    assert_eq!(world.the_loop()["outcome"], "stalled");
}

#[test]
fn a_blocked_run_exits_13_with_its_reason() {
    let world = World::new(&[WORK, "echo '<promise>BLOCKED: no key for the tracker</promise>'"]);
    let ran = world.crew(&["run", "make it"]);
    assert_eq!((ran.code(), world.calls()), (13, 2));
    assert!(ran.stdout.contains("Blocked: the agent said BLOCKED: no key for the tracker"));
}

#[test]
fn a_cancel_ends_the_agent_at_once_and_exits_14() {
    let world = World::new(&[HANG]);
    let running = world.hanging(&["run", "make it"]);
    let reported = world.crew(&["cancel", "--reason", "wrong branch"]).success();
    assert!(reported.contains("cancelled by the user: wrong branch"), "{reported}");
    let ran = running.wait(DEADLINE);
    assert_eq!((ran.code(), world.calls()), (14, 1), "{ran:#?}");
    assert!(ran.stdout.contains("Cancelled: cancelled by the user: wrong branch"), "{ran:#?}");
    assert_eq!(world.the_loop()["completed_iterations"], 0);
}

#[test]
fn ctrl_c_exits_130_and_a_signal_to_end_143_and_both_name_the_resume_line() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let world = World::new(&[HANG]);
        let running = world.hanging(&["run", "build"]);
        running.signal(signal);
        let ran = running.wait(DEADLINE);
        assert_eq!(ran.code(), code, "{ran:#?}");
        let expected = "Interrupted. State saved. Resume with: crew resume build";
        assert!(ran.stdout.contains(expected), "{ran:#?}");
        assert_eq!(world.the_loop()["outcome"], "interrupted");
    }
}

#[test]
fn a_second_ctrl_c_kills_an_agent_that_ignores_the_first() {
    let world = World::new(&["trap '' TERM; touch \"$notes/hangs\"; while :; do sleep 1; done"]);
    let running = world.hanging(&["run", "make it"]);
    running.signal(Signal::INT);
    running.signal(Signal::INT);
    assert_eq!(running.wait(DEADLINE).code(), 130);
}

#[test]
fn a_paused_run_exits_130_and_shows_how_to_resume_it() {
    let wait = "touch \"$notes/hangs\"; until test -e \"$notes/go\"; do sleep 0.02; done";
    let world = World::new(&[wait, WORK]);
    let running = world.hanging(&["run", "build"]);
    world.crew(&["pause"]).success();
    std::fs::write(world.note("go"), "").unwrap();
    let ran = running.wait(DEADLINE);
    assert_eq!((ran.code(), world.calls()), (130, 1));
    let expected = "Paused before iteration 2/5. Resume with: crew resume build\n";
    assert!(ran.stdout.ends_with(expected), "{ran:#?}");
    let found = world.the_loop();
    assert_eq!((&found["status"], &found["completed_iterations"]), (&"paused".into(), &1.into()));
}

#[test]
fn output_of_an_agent_or_a_check_sends_no_codes_to_the_terminal() {
    const STEER: &str = r"\033[2J\033]0;title\007\033[1A";
    let step = format!("printf '{STEER}complains\\n' >&2; echo x >> work.txt; exit 1");
    let world = World::new(&[&step]);
    let check = format!("printf '{STEER}not yet\\n'; false");
    let ran = world.crew(&["run", "make it", "-n", "2", "--verify", &check, "--gate", &check]);
    let status = world.crew(&["status", "--all"]).success();
    let story = world.crew(&["show"]).success();
    assert!(ran.stdout.contains("not yet"), "{}", ran.stdout);
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains("complains"), "{ran:?}");
    for shown in [&ran.stdout, &ran.stderr, &status, &story] {
        assert!(!shown.contains(['\x1b', '\x07']), "{shown:?}");
    }
}
