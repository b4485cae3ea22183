//! Ctrl-C, TERM and a reader that goes away, at every moment of a run: it ends gracefully, says how
//! to resume, and leaves nothing running.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::{CLAIM, HANG, WORK, World};
use crate::door::tested::{ONE_FAILS, SOME_PASS};
use crate::sandbox::{DEADLINE, Sandbox, crew, poll_until};
use crate::spawned::{Ran, Running};

/// Starts crew, and sends it a signal when the note `ready` is there.
#[track_caller]
fn signalled(world: &World, arguments: &[&str], ready: &str, signal: Signal) -> Ran {
    let running = world.sandbox.start_crew(arguments);
    poll_until(ready, || world.note(ready).exists());
    running.signal(signal);
    running.wait(DEADLINE)
}

/// Asserts what every interrupted run leaves: the record, the result, the handoff, and a line that
/// says how to resume.
#[track_caller]
fn assert_interrupted(world: &World, ran: &Ran, completed: u64) {
    let shown = world.the_loop();
    assert_eq!(shown["outcome"], "interrupted", "{shown:#}\n{ran:#?}");
    assert_eq!(shown["completed_iterations"], completed, "{shown:#}");
    let id = world.id();
    let line = format!("Interrupted. State saved. Resume with: crew resume {id}");
    assert!(ran.stdout.contains(&line), "{ran:#?}");
    let folder = world.sandbox.crew_home().join("loops").join(&id);
    let result: Value =
        serde_json::from_slice(&std::fs::read(folder.join("result.json")).unwrap()).unwrap();
    assert_eq!(result["outcome"], "interrupted");
    let page = ran.stdout.lines().find_map(|line| line.strip_prefix("  handoff ")).unwrap();
    let handoff = std::fs::read_to_string(page).unwrap();
    assert!(handoff.contains("status: interrupted"), "{handoff}");
}

#[test]
fn the_first_ctrl_c_ends_the_agent_gracefully_and_interrupts_the_run() {
    let in_order =
        "trap 'touch \"$notes/in_order\"; exit 0' TERM; touch \"$notes/ready\"; sleep 600 & wait";
    let world = World::new(&[WORK, in_order]);
    let ran = signalled(&world, &["run", "Do it"], "ready", Signal::INT);
    assert_eq!(ran.code(), 130, "{ran:#?}");
    assert!(world.note("in_order").exists());
    assert_interrupted(&world, &ran, 2);
    let resumed = world.crew(&["resume", &world.id(), "-n", "2", "--agent-cmd", "true"]);
    assert_eq!(resumed.code(), 1, "its two iterations are spent: {resumed:#?}");
}

#[test]
fn a_second_ctrl_c_kills_at_once() {
    let deaf =
        "trap '' TERM INT; touch \"$notes/ready\"; sleep 600 & echo $! > \"$notes/child\"; wait";
    // Far beyond what this test waits for: only the second one can end it.
    let world = World::of(Sandbox::new().with_faults().env("CREW_GRACE_MS", "600000"), &[deaf]);
    let running = world.sandbox.start_crew(&["run", "Do it"]);
    poll_until("child", || std::fs::read(world.note("child")).is_ok_and(|id| !id.is_empty()));
    running.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(300));
    running.signal(Signal::INT);
    let ran = running.wait(DEADLINE);
    assert_eq!(ran.code(), 130, "{ran:#?}");
    assert_interrupted(&world, &ran, 1);
    let child: i32 = std::fs::read_to_string(world.note("child")).unwrap().trim().parse().unwrap();
    let child = rustix::process::Pid::from_raw(child).unwrap();
    assert!(rustix::process::test_kill_process(child).is_err(), "its child is left");
}

#[test]
fn sigterm_ends_the_run_like_ctrl_c_with_its_own_exit_code() {
    let world = World::new(&[HANG]);
    let ran = signalled(&world, &["run", "Do it"], "hangs", Signal::TERM);
    assert_eq!(ran.code(), 143, "{ran:#?}");
    assert_interrupted(&world, &ran, 1);
}

#[test]
fn every_fatal_signal_is_named_in_the_record() {
    for (signal, name) in [
        (Signal::HUP, "SIGHUP"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::VTALARM, "SIGVTALRM"),
        (Signal::PROF, "SIGPROF"),
        (Signal::IO, "SIGIO"),
        (Signal::XCPU, "SIGXCPU"),
    ] {
        let world = World::new(&["echo $$ > \"$notes/agent\"; touch \"$notes/hangs\"; sleep 600"]);
        let ran = signalled(&world, &["run", "Do it"], "hangs", signal);
        assert_eq!(ran.code(), 128 + signal.as_raw(), "{name}: {ran:#?}");
        assert_interrupted(&world, &ran, 1);
        let why = format!("asked to end by {name}");
        assert_eq!(world.record()["state"]["ending"]["why"], why, "{name}");
        let agent = std::fs::read_to_string(world.note("agent")).unwrap().trim().parse().unwrap();
        let agent = rustix::process::Pid::from_raw(agent).unwrap();
        assert!(rustix::process::test_kill_process(agent).is_err(), "{name}: its agent is left");
    }
}

#[test]
fn a_file_size_limit_acts_like_a_full_disk_and_does_not_end_the_run() {
    let world = World::new(&["echo '<promise>COMPLETE</promise>'"]);
    world.sandbox.program("agent", "cat > /dev/null");
    let mut command = world.sandbox.command("sh");
    let run = "run 'Do it' -n 20 --stall 0 --quiet";
    // In blocks of 512 bytes, as the standard says: 20 KiB.
    command.args(["-c", &format!("ulimit -f 40; exec '{}' {run}", crew().display())]);
    let ran = Running::start(command, None).wait(DEADLINE);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(ran.stderr.contains("journal.jsonl: File too large"), "{ran:#?}");
}

#[test]
fn ctrl_c_during_a_check_ends_the_check_and_the_run() {
    let world = World::new(&[WORK]);
    let passes = "test -e work.txt || exit 0";
    let check = format!("{passes}; touch '{}'; sleep 600", world.note("ready").display());
    let ran = signalled(&world, &["run", "Do it", "--gate", &check], "ready", Signal::INT);
    assert_eq!((ran.code(), world.calls()), (130, 1), "{ran:#?}");
    assert_interrupted(&world, &ran, 1);
}

#[test]
fn ctrl_c_during_the_baseline_starts_no_agent() {
    let world = World::new(&[WORK]);
    let check = format!("touch '{}'; sleep 600", world.note("ready").display());
    let ran = signalled(&world, &["run", "Do it", "--verify", &check], "ready", Signal::INT);
    assert_eq!((ran.code(), world.calls()), (130, 0), "{ran:#?}");
    assert_interrupted(&world, &ran, 0);
}

#[test]
fn baseline_results_before_ctrl_c_are_kept_and_a_resume_runs_the_rest() {
    let world = World::new(&["echo '<promise>BLOCKED: a key</promise>'"]);
    let (ran_once, ready) = (world.note("once"), world.note("ready"));
    let first = format!("echo x >> '{}'; exit 3", ran_once.display());
    let second = format!("test -e '{0}' && exit 4; touch '{0}'; sleep 600", ready.display());
    let arguments = ["run", "Do it", "--verify", &first, "--verify", &second];
    let ran = signalled(&world, &arguments, "ready", Signal::INT);
    assert_eq!((ran.code(), world.calls()), (130, 0), "{ran:#?}");
    let ran = world.crew(&["resume"]);
    assert_eq!((ran.code(), world.calls()), (13, 1), "{ran:#?}");
    assert_eq!(std::fs::read_to_string(&ran_once).unwrap(), "x\n");
    for exit in [3, 4] {
        let shown = format!("failed (exit {exit})");
        assert!(world.prompt(1).contains(&shown), "{}", world.prompt(1));
    }
}

#[test]
fn a_resume_compares_with_the_baseline_tests_from_before_ctrl_c() {
    let world = World::new(&[CLAIM]);
    world.sandbox.write("out", ONE_FAILS);
    world.sandbox.write("fine", SOME_PASS);
    let ready = world.note("ready").display().to_string();
    let slow = format!("test -e '{ready}' || {{ touch '{ready}'; sleep 600; }}; cat fine");
    let tests = "cat out; ! grep -q FAILED out";
    let run = ["run", "Do it", "--no-worse", tests, "--verify", &slow];
    let ran = signalled(&world, &run, "ready", Signal::INT);
    assert_eq!((ran.code(), world.calls()), (130, 0), "{ran:#?}");
    let ran = world.crew(&["resume", "-n", "1"]);
    assert_eq!((ran.code(), world.calls()), (0, 1), "{ran:#?}");
}

#[test]
fn ctrl_c_during_the_baseline_detaches_no_run() {
    let world = World::new(&[WORK]);
    let check = format!("touch '{}'; sleep 600", world.note("ready").display());
    let arguments = ["run", "Do it", "--detach", "--verify", &check];
    let ran = signalled(&world, &arguments, "ready", Signal::INT);
    assert_eq!((ran.code(), world.calls()), (130, 0), "{ran:#?}");
    assert_interrupted(&world, &ran, 0);
}

#[test]
fn an_ignored_hangup_does_not_end_the_run() {
    let world = World::new(&["touch \"$notes/ready\"; \
        until test -e \"$notes/go\"; do sleep 0.02; done; echo '<promise>COMPLETE</promise>'"]);
    let mut command: Command = world.sandbox.command("sh");
    let line = format!("trap '' HUP; exec '{}' run 'Do it'", crew().display());
    command.args(["-c", &line]);
    let running = Running::start(command, None);
    poll_until("the agent", || world.note("ready").exists());
    running.signal(Signal::HUP);
    std::fs::write(world.note("go"), "").unwrap();
    let ran = running.wait(DEADLINE);
    assert_eq!(ran.code(), 0, "{ran:#?}");
}

#[test]
fn the_third_signal_ends_crew_when_its_output_is_not_read() {
    let flood = "touch \"$notes/ready\"; yes | head -c 4000000; sleep 600";
    let world = World::new(&[flood]);
    let mut command = world.sandbox.command(crew());
    command.args(["run", "Do it", "-v"]).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    poll_until("the agent", || world.note("ready").exists());
    std::thread::sleep(Duration::from_millis(500));
    let pid = rustix::process::Pid::from_child(&child);
    for signal in [Signal::INT, Signal::INT, Signal::TERM] {
        rustix::process::kill_process(pid, signal).unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    let end = Instant::now() + DEADLINE;
    let mut status = child.try_wait().unwrap();
    while status.is_none() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
        status = child.try_wait().unwrap();
    }
    child.kill().ok();
    child.wait().unwrap();
    assert_eq!(status.and_then(|status| status.code()), Some(130));
}

#[test]
fn ctrl_c_during_the_delay_ends_the_run_between_two_iterations() {
    let work = format!("{WORK}; touch \"$notes/ready\"");
    let world = World::new(&[&work]);
    let running = world.sandbox.start_crew(&["run", "Do it", "--delay", "10m"]);
    poll_until("the delay", || running.stdout().contains("Iteration 2 starts at"));
    running.signal(Signal::INT);
    let ran = running.wait(DEADLINE);
    assert_eq!((ran.code(), world.calls()), (130, 1), "{ran:#?}");
    assert_interrupted(&world, &ran, 1);
}

#[test]
fn ctrl_c_during_a_wait_ends_the_run() {
    let world = World::claude(&[&super::claude::limited(600)], "");
    let running = world.sandbox.start_crew(&["run", "Do it"]);
    poll_until("the wait", || running.stdout().contains("Waiting until"));
    running.signal(Signal::INT);
    let ran = running.wait(DEADLINE);
    assert_eq!((ran.code(), world.calls()), (130, 1), "{ran:#?}");
    assert_interrupted(&world, &ran, 0);
}

#[test]
fn a_run_continues_when_the_reader_of_its_output_is_gone() {
    let world = World::new(&[WORK]);
    let mut command: Command = world.sandbox.command("sh");
    let line = format!("'{}' run 'Do it' -n 3 | head -1; exit 0", crew().display());
    command.args(["-c", &line]);
    let ran = Running::start(command, None).wait(DEADLINE);
    assert_eq!(world.same(&ran.stdout), "[10:00:00] Starting: \"Do it\" (max 3 iterations)\n");
    poll_until("the end of the run", || world.the_loop()["outcome"] == "exhausted");
    assert_eq!(world.calls(), 3);
}
