//! The rules of a boundary through the built binary: what ends a loop, what never does, and what
//! remains afterwards.

use std::os::unix::process::ExitStatusExt;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::{Answer, Door, assert_gone};
use crate::sandbox::{DEADLINE, Sandbox, poll_until, write_executable};

const CLAIM: &str = "All is well.\n\n<promise>COMPLETE</promise>";

/// Asserts how a loop ended and what it left: the result, and a handoff unless it is completed.
#[track_caller]
fn assert_ended(door: &Door, id: &str, outcome: &str, iterations: u64) -> Value {
    let state = door.record(id)["state"].clone();
    assert_eq!(state["ending"]["outcome"], outcome, "{state:#}");
    assert_eq!(state["completed"], iterations, "{state:#}");
    let result = std::fs::read(door.file(id, "result.json")).unwrap();
    let result: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(result["schema"], 1);
    assert_eq!(result["outcome"], outcome);
    assert_eq!(result["iterations"], iterations);
    let pages: Vec<String> = door
        .handoffs()
        .iter()
        .map(|page| std::fs::read_to_string(page).unwrap())
        .filter(|page| page.contains(&format!("loop: {id}\n")))
        .collect();
    assert_eq!(pages.len(), usize::from(outcome != "completed"), "{outcome}");
    assert!(pages.iter().all(|page| page.contains(&format!("status: {outcome}"))), "{pages:#?}");
    let status = door.status(id);
    assert_eq!((&status["status"], &status["outcome"]), (&"finished".into(), &outcome.into()));
    door.stop("a stop after the end").assert_silent();
    state["ending"].clone()
}

#[test]
fn an_agent_that_always_claims_falsely_ends_exhausted_at_its_limit() {
    let door = Door::new();
    let id = door.begin("\"go on\" --max-iterations 7 --verify 'echo 3 failed; false' --stall 0");
    for turn in 1..7 {
        let answer = door.stop(&format!("{turn}\n{CLAIM}")).assert_goes_on();
        assert!(answer.context().contains("Your claim was not accepted."), "{answer:#?}");
        assert!(answer.context().contains("3 failed"), "{answer:#?}");
    }
    door.stop(CLAIM).assert_lets_go();
    let ending = assert_ended(&door, &id, "exhausted", 7);
    assert_eq!(ending["proof"], Value::Null);
}

#[test]
fn a_passing_verify_beside_a_failing_gate_proves_nothing() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 2 --verify true --gate false --stall 0");
    let answer = door.stop(&format!("first\n{CLAIM}")).assert_goes_on();
    assert!(answer.context().contains("`false` failed (exit 1)."), "{answer:#?}");
    door.stop(CLAIM).assert_lets_go();
    assert_ended(&door, &id, "exhausted", 2);
}

#[test]
fn a_true_claim_on_the_last_iteration_completes() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 2 --verify 'test -e done' --stall 0");
    door.stop(&format!("too early\n{CLAIM}")).assert_goes_on();
    door.sandbox.write("done", "");
    let answer = door.stop(CLAIM).assert_lets_go();
    assert!(answer.line().contains("completed after 2 iterations · proof: checked"), "{answer:#?}");
    assert_eq!(assert_ended(&door, &id, "completed", 2)["proof"], "checked");
}

#[test]
fn a_claim_without_checks_is_called_the_agents_word() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 2 --stall 0");
    let answer = door.stop(CLAIM).assert_lets_go();
    assert!(answer.line().contains("this is the agent's word"), "{answer:#?}");
    assert_eq!(assert_ended(&door, &id, "completed", 1)["proof"], "claimed");
}

#[test]
fn a_third_failure_on_the_last_iteration_aborts() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 3 --gate false --failure-threshold 3 --stall 0");
    door.stop("one").assert_goes_on();
    door.stop("two\n<promise>FAILURE: no luck</promise>").assert_goes_on();
    door.stop("three").assert_lets_go();
    assert_ended(&door, &id, "aborted", 3);
}

#[test]
fn an_agent_that_is_blocked_or_makes_no_progress_ends_the_loop() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 3");
    door.stop("<promise>BLOCKED: the key is missing</promise>").assert_lets_go();
    let ending = assert_ended(&door, &id, "blocked", 1);
    assert!(ending["why"].as_str().unwrap().contains("the key is missing"), "{ending}");
    let id = door.begin("\"go on\" -n 9 --stall 3");
    door.stop("one").assert_goes_on();
    let nudge = door.stop("two").assert_goes_on();
    assert!(nudge.context().contains("write down two causes"), "{nudge:#?}");
    door.stop("three").assert_lets_go();
    assert_ended(&door, &id, "stalled", 3);
}

#[test]
fn a_cancelled_loop_says_who_cancelled_it_and_why() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0");
    door.sandbox.crew(&["cancel", "--reason", "wrong branch"]).success();
    let shown = door.stop("told").assert_lets_go();
    assert!(shown.line().contains(": cancelled by the user: wrong branch · "), "{shown:#?}");
    let ending = assert_ended(&door, &id, "cancelled", 0);
    assert_eq!(ending["why"], "cancelled by the user: wrong branch");
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let mut command = door.sandbox.command(crate::sandbox::crew());
    command.args(["cancel", &id]).env("CLAUDECODE", "1");
    crate::spawned::Running::start(command, None).wait(DEADLINE).success();
    let shown = door.stop("told").assert_lets_go();
    assert!(shown.line().contains(": cancelled by the agent · "), "{shown:#?}");
    assert_eq!(assert_ended(&door, &id, "cancelled", 0)["why"], "cancelled by the agent");
}

#[test]
fn a_check_that_leaves_a_process_behind_is_cleaned_up() {
    let door = Door::of(Sandbox::without_git());
    let check = "sleep 300 & echo $! > pids; (sleep 300; true) & echo $! >> pids";
    door.begin(&format!("\"go on\" -n 9 --gate '{check}' --stall 0"));
    door.stop("one").assert_goes_on();
    assert_gone(&std::fs::read_to_string(door.sandbox.file("pids")).unwrap());
}

/// A loop whose gate writes the ids of its processes and then runs for very long.
fn with_a_long_check() -> (Door, String) {
    let door = Door::of(Sandbox::without_git());
    let check = "sleep 300 & echo $$ $! > started; mv started pids; wait";
    let id = door.begin(&format!("\"go on\" -n 9 --gate '{check}' --stall 0"));
    (door, id)
}

#[track_caller]
fn pids(door: &Door) -> String {
    poll_until("the check at work", || door.sandbox.file("pids").exists());
    std::fs::read_to_string(door.sandbox.file("pids")).unwrap()
}

#[test]
fn a_hook_that_is_terminated_during_a_check_ends_the_check_and_records_nothing() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (door, id) = with_a_long_check();
        let before = door.record(&id);
        let hook = door.stopping("one").start();
        let pids = pids(&door);
        hook.signal(signal);
        let answer = Answer::of(hook.wait(DEADLINE));
        answer.assert_silent();
        assert_gone(&pids);
        assert_eq!(door.record(&id), before, "{signal:?}");
        assert_eq!(door.journal(&id).len(), 1, "{signal:?}");
    }
}

#[test]
fn a_cancel_during_a_check_ends_the_loop_at_once() {
    let (door, id) = with_a_long_check();
    let hook = door.stopping("one").start();
    let pids = pids(&door);
    door.sandbox.crew(&["cancel", &id]).success();
    // No wait of a test is as long as the check.
    let in_flight = Answer::of(hook.wait(DEADLINE)).assert_lets_go();
    // Where the machine is busy, the boundary in flight records the end.
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "cancelled");
    assert_gone(&pids);
    assert_eq!(door.record(&id)["state"]["completed"], 0);
    let next = door.stop("the next stop").assert_lets_go();
    let shown = [in_flight.line(), next.line()].concat();
    assert_eq!(shown.matches("cancelled after 0 iterations").count(), 1, "{shown}");
    door.stop("the one after it").assert_silent();
}

#[test]
fn the_status_can_be_read_while_a_check_runs() {
    let (door, id) = with_a_long_check();
    let hook = door.stopping("one").start();
    let pids = pids(&door);
    assert_eq!(door.status(&id)["iteration"], 1);
    door.event("UserPromptExpansion").with("command_name", "crew:status").send();
    // A second stop meanwhile is not a boundary, and waits for nothing.
    door.stop("meanwhile").assert_silent();
    assert!(!hook.stdout().contains('{'));
    drop(hook);
    door.sandbox.crew(&["cancel", &id]).success();
    assert_gone(&pids);
}

#[test]
fn a_check_killed_by_a_foreign_signal_is_unknown_and_not_a_failure() {
    let door = Door::of(Sandbox::without_git());
    let check = "echo $$ > started; mv started pids; while :; do sleep 0.05; done";
    let id =
        door.begin(&format!("\"go on\" -n 9 --gate '{check}' --failure-threshold 1 --stall 0"));
    let hook = door.stopping(CLAIM).start();
    let pid = pids(&door).trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let answer = Answer::of(hook.wait(DEADLINE)).assert_goes_on();
    assert!(answer.context().contains("unknown"), "{answer:#?}");
    let state = &door.record(&id)["state"];
    assert_eq!(state["consecutive_failures"], 0);
    assert_eq!(state["ending"], Value::Null);
    assert!(answer.ran.status.signal().is_none());
}

#[test]
fn a_check_finds_its_programs_where_they_were_at_the_start() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 9 --stall 0 --verify \"ls nothing-there\"");
    // The project's settings can set the hook's environment, and the agent can write them.
    for name in ["sh", "ls"] {
        write_executable(&door.sandbox.file("planted").join(name), "#!/bin/sh\nexit 0\n");
    }
    let path = format!("{}:/usr/bin:/bin", door.sandbox.file("planted").display());
    let claim = door.stopping("<promise>COMPLETE</promise>").env("PATH", &path).send();
    claim.assert_goes_on();
    assert_eq!(door.record(&id)["state"]["completed"], 1);
}

#[test]
fn a_claim_made_beside_background_work_is_judged_at_once() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 9 --stall 0 --verify false");
    let job = json!([{"id": "1", "type": "shell", "status": "running", "description": "a build"}]);
    let stop = |words: &str| door.stopping(words).with("background_tasks", job.clone()).send();
    let holds = || door.record(&id)["state"]["session"]["holds"].clone();
    stop("<promise>COMPLETE</promise>").assert_goes_on();
    assert_eq!(holds(), 0);
    stop("waiting for it").assert_lets_go();
    assert_eq!(holds(), 1);
}

#[test]
fn a_limit_changed_during_a_turn_hides_no_tool_call() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let first_line = door.stop("one").assert_goes_on().context().lines().next().unwrap().to_owned();
    assert!(first_line.ends_with("iteration 2 of 9."), "{first_line}");
    let transcript = door.sandbox.home().join(".claude/projects/repo/session.jsonl");
    std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    let prompt = json!({"type": "attachment", "content": first_line});
    let call = json!({"type": "tool_use", "name": "Bash"});
    let call = json!({"type": "assistant", "message": {"content": [call]}});
    std::fs::write(transcript, format!("{prompt}\n{call}\n")).unwrap();
    door.sandbox.crew(&["set", &id, "-n", "20"]).success();
    door.stop("two").assert_goes_on();
    assert_eq!(door.record(&id)["state"]["session"]["without_tools"], 1);
}

#[test]
fn crew_runs_the_git_found_at_the_start_of_the_loop_and_not_a_planted_one() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 2 --stall 2");
    let planted = "#!/bin/sh\ntouch planted-git-ran\necho \"? $$\"\n";
    write_executable(&door.sandbox.file("planted/git"), planted);
    let path = format!("{}:/usr/bin:/bin", door.sandbox.file("planted").display());
    let stop = |words: &str| door.stopping(words).env("PATH", &path).send();
    stop("one").assert_goes_on();
    stop("two").assert_lets_go();
    assert_eq!(door.record(&id)["state"]["completed"], 2);
    assert!(!door.sandbox.file("planted-git-ran").exists());
}

#[test]
fn a_check_cannot_read_the_payload_or_see_a_nested_session() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --gate 'cat > stdin; env > seen' --stall 0");
    door.stop("one").assert_goes_on();
    assert_eq!(std::fs::read_to_string(door.sandbox.file("stdin")).unwrap(), "");
    let seen = std::fs::read_to_string(door.sandbox.file("seen")).unwrap();
    assert!(seen.contains(&format!("CREW_LOOP={id}\n")) && seen.contains("CREW_ITERATION=1\n"));
    for name in ["CLAUDECODE", "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"] {
        assert!(!seen.contains(&format!("{name}=")), "{seen}");
    }
}

#[test]
fn a_check_that_prints_without_end_fills_neither_memory_nor_disk() {
    let door = Door::of(Sandbox::without_git());
    let check = "head -c 20000000 /dev/zero | tr \"\\\\0\" \"x\"; echo; echo the last line; false";
    let id = door.begin(&format!("\"go on\" -n 9 --gate '{check}' --stall 0"));
    let answer = door.stop("one").assert_goes_on();
    assert!(answer.context().contains("the last line"), "{answer:#?}");
    assert!(answer.context().encode_utf16().count() < 9_000);
    let size = |name: &str| std::fs::metadata(door.file(&id, name)).unwrap().len();
    assert!(size("loop.json") < 100_000 && size("journal.jsonl") < 200_000);
}
