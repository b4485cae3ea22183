//! A session and a run that share an account: a limit that the run reaches applies to the session,
//! too.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::Value;

use super::{Door, SESSION};
use crate::sandbox::{DEADLINE, Sandbox, poll_until};
use crate::spawned::Running;

/// A door with a user at its client, so that a loop may wait.
fn attended(sandbox: Sandbox) -> Door {
    Door::of(sandbox.env("CLAUDE_CODE_SESSION_ATTENDED", "1"))
}

/// A run of an agent whose program is `claude`, as the session's account. It reaches a limit of
/// this many seconds in its first call.
fn limited_run(door: &Door, seconds: u32) -> Running {
    let folder = door.sandbox.root().join("run");
    std::fs::create_dir_all(&folder).unwrap();
    let words = format!("429 Too Many Requests: rate limit exceeded, try again in {seconds}s");
    let script = format!("test -e met && exit; touch met; echo '{words}' >&2; exit 1");
    door.sandbox.program("claude", &script);
    let mut command = door.sandbox.command(door.sandbox.build().path());
    command.args(["run", "Do it", "-n", "1", "--agent-cmd", "claude"]).current_dir(folder);
    let running = Running::start(command, None);
    poll_until("the run waits", || running.stdout().contains("Waiting until"));
    running
}

/// Asserts that the session waits until the end of the limit that a run reached. Returns its wait.
#[track_caller]
fn assert_waits_for_the_run(door: &Door, id: &str) -> Value {
    let shown = door.status(id);
    assert_eq!(
        (&shown["status"], &shown["outcome"]),
        (&"waiting".into(), &Value::Null),
        "{shown:#}"
    );
    assert_eq!(shown["wait"]["account"]["name"], "claude");
    let why = shown["wait"]["why"].as_str().unwrap();
    assert!(why.starts_with("limit met by loop ") && why.contains(": 429 Too Many"), "{why}");
    shown["wait"].clone()
}

#[track_caller]
fn interrupt(running: Running) {
    running.signal(Signal::INT);
    assert_eq!(running.wait(DEADLINE).code(), 130);
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
#[ignore = "long"]
fn a_session_waits_for_its_turn_after_a_limit_that_a_run_met() {
    let door = attended(Sandbox::new());
    let id = door.begin("\"Build it\" --stall 0");
    let running = limited_run(&door, 8);
    let met = now();
    let companion = door.stopping("one").companion();
    let stopped = door.stop("one").assert_lets_go();
    let wait = assert_waits_for_the_run(&door, &id);
    let line = stopped.line().to_owned();
    let (begin, rest) = line.split_once("until ").unwrap();
    assert_eq!(begin, format!("crew {id}: waiting "), "{line}");
    let by = wait["why"].as_str().unwrap().split_once(':').unwrap().0;
    let expected = format!(" ({by}: 429 Too Many Requests: rate limi…), then iteration 2 of 10");
    assert_eq!(&rest[5..], expected, "{line}");
    let shown = door.status(&id);
    let counted = (&shown["completed_iterations"], &shown["consecutive_failures"]);
    assert_eq!(counted, (&1.into(), &0.into()), "{shown:#}");

    // The run goes first, and the session 20 s after it.
    assert_eq!(running.wait(DEADLINE).code(), 10);
    assert!(!companion.has_ended());
    let woken = companion.wait(DEADLINE);
    assert_eq!(woken.code(), 2, "{woken:#?}");
    assert!(now() - met >= 28, "woken after {} s", now() - met);
    assert!(woken.stderr.contains("iteration 2 of 10"), "{}", woken.stderr);
    assert!(!woken.stderr.contains("refused a request"), "{}", woken.stderr);
    door.stop("two").assert_goes_on();
    assert_eq!(door.status(&id)["completed_iterations"], 2);
}

#[test]
#[ignore = "long"]
fn a_session_that_is_answered_after_the_limit_clears_it_for_others() {
    let door = attended(Sandbox::new());
    let running = limited_run(&door, 600);
    let id = door.begin("\"Build it\" --stall 0");
    door.stop("one").assert_goes_on();
    assert!(
        door.remarks(&id).contains("the service answers again: no loop waits"),
        "{}",
        door.remarks(&id)
    );
    assert_eq!(running.wait(DEADLINE).code(), 10);
}

#[test]
#[ignore = "long"]
fn a_session_whose_request_was_refused_is_not_woken_while_its_account_is_at_a_limit() {
    let door = attended(Sandbox::new());
    let id = door.begin("\"Build it\" --stall 0");
    let running = limited_run(&door, 600);
    let failed = door.event("StopFailure").with("error", "invalid_request");
    let waiter = failed.with("last_assistant_message", "API Error: 400 prompt is bad").start();
    poll_until("the session waits", || door.status(&id)["status"] == "waiting");
    assert_waits_for_the_run(&door, &id);
    assert!(!waiter.has_ended());
    door.event("UserPromptSubmit").with("prompt", "try again").with("prompt_id", "p-2").send();
    door.stop("two").assert_goes_on();
    assert_eq!(waiter.wait(DEADLINE).code(), 0);
    assert_eq!(running.wait(DEADLINE).code(), 10);
}

#[test]
#[ignore = "long"]
fn a_session_whose_companion_is_late_still_waits_and_is_woken_by_the_idle_fallback() {
    let door = attended(Sandbox::new().with_faults());
    let id = door.begin("\"Build it\" --stall 0");
    let running = limited_run(&door, 600);
    door.stop("one").assert_lets_go();
    let due = || door.status(&id)["wait"]["until"].as_str().unwrap().to_owned();
    assert_waits_for_the_run(&door, &id);
    let before = due();
    let idle = || door.event("Notification").with("notification_type", "idle_prompt");
    let fallback = idle().start();
    let tickets = door.sandbox.crew_home().join("wakes").join(SESSION);
    poll_until("it has the ticket", || {
        let files = std::fs::read_dir(&tickets).into_iter().flatten().flatten();
        let texts = files.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
        texts.into_iter().any(|text| text.contains("\"due\""))
    });
    // A second one leaves it alone.
    idle().send().assert_silent();
    assert!(!fallback.has_ended());

    // The session's turn is the one after the run's. The run ends, and it is the run's.
    interrupt(running);
    poll_until("it moves up to the run's turn", || due() < before);
    fallback.signal(Signal::TERM);
    assert_eq!(fallback.wait(DEADLINE).code(), 0);
    let woken = idle().env("CREW_CLOCK_OFFSET_MS", "3600000").start().wait(DEADLINE);
    assert_eq!(woken.code(), 2, "{woken:#?}");
    assert!(woken.stderr.contains("iteration 2 of 10"), "{}", woken.stderr);
    assert_eq!(door.status(&id)["status"], "running");
}

#[test]
fn a_session_that_cannot_wait_for_a_limit_ends_and_says_so() {
    let door = Door::new();
    let id = door.begin("\"Build it\" --stall 0");
    let running = limited_run(&door, 600);
    door.stop("one").assert_lets_go();
    let shown = door.status(&id);
    assert_eq!(shown["outcome"], "interrupted", "{shown:#}");
    let why = shown["why"].as_str().unwrap();
    assert!(why.ends_with("; this session cannot wait for it"), "{why}");
    interrupt(running);
}

#[test]
#[ignore = "long"]
fn a_run_waits_for_a_limit_that_a_session_met_until_the_session_is_answered() {
    let door = attended(Sandbox::new());
    let id = door.begin("\"Build it\" --stall 0");
    door.stop("one").assert_goes_on();
    let folder = door.sandbox.root().join("run");
    std::fs::create_dir_all(&folder).unwrap();
    door.sandbox.program("claude", "echo x >> calls; while ! [ -e go ]; do sleep 0.05; done");
    let mut command = door.sandbox.command(door.sandbox.build().path());
    command.args(["run", "Do it", "-n", "2", "--agent-cmd", "claude"]).current_dir(&folder);
    let running = Running::start(command, None);
    poll_until("the agent works", || folder.join("calls").exists());
    let refused = format!("API Error: usage limit reached|{}", now() + 600);
    let failed = door.event("StopFailure").with("error", "rate_limit");
    let waiter = failed.with("last_assistant_message", refused).start();
    poll_until("the session waits", || door.status(&id)["status"] == "waiting");
    std::fs::write(folder.join("go"), "").unwrap();
    poll_until("the run waits", || running.stdout().contains("Waiting until"));
    let account: Value = door.status(&id)["wait"]["account"]["name"].clone();
    assert_eq!(account, "claude");
    // The person tries, and the service answers.
    door.event("UserPromptSubmit").with("prompt", "try again").with("prompt_id", "p-2").send();
    door.stop("two").assert_goes_on();
    assert_eq!(waiter.wait(DEADLINE).code(), 0);
    assert_eq!(running.wait(DEADLINE).code(), 10);
    assert_eq!(std::fs::read_to_string(folder.join("calls")).unwrap(), "x\nx\n");
}
