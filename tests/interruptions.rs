//! Interruptions that do not end a loop, or end it so that it can be resumed: limits of the
//! service, work in the background, Esc, a compaction, the end of the session.

use serde_json::{Value, json};

use crate::faults::{CLAIM, Client, context, stands};
use crate::sandbox::{DEADLINE, Sandbox, poll_until};

fn rate_limit() -> Value {
    json!({"hook_event_name": "StopFailure", "error": "rate_limit", "prompt_id": "p-1",
           "last_assistant_message": "API Error: 429 limit reached"})
}

#[test]
fn a_rate_limit_is_waited_for_without_an_iteration_and_a_mention_of_one_is_not() {
    let client = Client::of(Sandbox::new().env("CLAUDE_CODE_SESSION_ATTENDED", "1"));
    client.begin("\"Build it\" --stall 0");
    let waiting = client.sandbox.start_hook(rate_limit());
    poll_until("the loop waits", || client.standing() == stands("waiting", 0));
    assert!(client.goes_on("rate_limit: 429, usage limit reached, resets 3am, try again later"));
    assert_eq!(client.standing(), stands("running", 1));
    assert_eq!(waiting.wait(DEADLINE).code(), 0, "whoever waited goes quietly");
}

#[test]
fn neither_a_message_nor_a_new_limit_cancels_the_wake_of_a_waiting_loop() {
    let client = Client::of(Sandbox::new().env("CLAUDE_CODE_SESSION_ATTENDED", "1"));
    client.begin("\"Build it\" --stall 0");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut limited = rate_limit();
    limited["last_assistant_message"] = json!(format!("limit reached|{}", now.as_secs() + 5));
    let waiting = client.sandbox.start_hook(limited);
    poll_until("the loop waits", || client.standing() == stands("waiting", 0));
    client.sandbox.crew(&["tell", "use the parser"]).success();
    client.sandbox.crew(&["set", "-n", "30"]).success();
    assert_eq!(client.standing(), stands("waiting", 0));
    let woken = waiting.wait(DEADLINE);
    assert_eq!(woken.code(), 2, "{woken:#?}");
    assert!(woken.stderr.contains("iteration 1 of 30"), "{woken:#?}");
    assert_eq!(client.standing(), stands("running", 0));
}

#[test]
fn a_turn_that_begins_when_a_background_task_ends_cancels_the_wake() {
    let client = Client::of(Sandbox::new().env("CLAUDE_CODE_SESSION_ATTENDED", "1"));
    client.begin("\"Build it\" --stall 0");
    let waiting = client.sandbox.start_hook(rate_limit());
    poll_until("the loop waits", || client.standing() == stands("waiting", 0));
    let ended = json!({"hook_event_name": "UserPromptSubmit",
                       "prompt": "<task-notification>make has ended</task-notification>"});
    assert_eq!(client.send(ended.clone()), Value::Null);
    assert_eq!(waiting.wait(DEADLINE).code(), 0, "nobody wakes a session in mid-turn");
    assert_eq!(client.standing(), stands("running", 0));
    assert_eq!(client.send(ended), Value::Null);
    assert!(client.goes_on("It is built."));
}

#[test]
fn counters_and_limits_survive_a_session_that_could_not_wait() {
    let client = Client::new();
    client.begin("\"Build it\" --stall 0 -n 3");
    assert!(client.goes_on("One.") && client.goes_on("Two."));
    assert!(context(&client.send(rate_limit())).is_empty());
    assert_eq!(client.standing(), stands("interrupted", 2));
    let resumed = client.command("resume", "");
    assert!(context(&resumed).contains("iteration 3 of 3"), "{resumed:#}");
    assert!(!client.goes_on("Three."));
    assert_eq!(client.standing(), stands("exhausted", 3));
    let spent = client.command("resume", "");
    assert!(spent["reason"].as_str().unwrap().contains("-n +10"), "{spent:#}");
}

#[test]
fn an_agent_that_waits_for_its_own_job_is_left_alone_and_its_claim_is_judged_at_once() {
    let client = Client::new();
    client.begin("\"Build it\" --stall 0");
    let stop = |words: &str| {
        let mut payload = Client::stopping(words);
        let job = json!({"id": "b-1", "type": "shell", "status": "running", "description": "make"});
        payload["background_tasks"] = json!([job]);
        client.send(payload)
    };
    assert!(context(&stop("I wait for the build.")).is_empty());
    assert_eq!(client.standing(), stands("running", 0));
    assert!(context(&stop(CLAIM)).is_empty());
    assert_eq!(client.standing(), stands("completed", 1));
}

#[test]
fn after_an_interruption_the_users_next_message_pauses_the_loop() {
    let client = Client::new();
    let transcript = client.transcript();
    std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    client.begin("\"Build it\" --stall 0");
    let says = |words: &str| json!({"hook_event_name": "UserPromptSubmit", "prompt": words});
    assert_eq!(client.send(says("Use the parser.")), Value::Null);
    assert_eq!(client.standing(), stands("running", 0));
    let mark = json!({"type": "user", "message": {"content": "[Request interrupted by user]"}});
    std::fs::write(&transcript, format!("{mark}\n")).unwrap();
    let shown = client.send(says("What is in the README?"));
    assert!(shown["systemMessage"].as_str().unwrap().contains("is paused"), "{shown:#}");
    assert!(!client.goes_on("It is empty."));
    assert_eq!(client.standing(), stands("paused", 0));
}

#[test]
fn the_end_of_a_session_interrupts_its_loop_and_the_next_session_learns_it_once() {
    let client = Client::new();
    client.begin("\"Build it\" --stall 0");
    client.send(json!({"hook_event_name": "SessionEnd", "reason": "other"}));
    assert_eq!(client.standing(), stands("interrupted", 0));
    let next =
        json!({"hook_event_name": "SessionStart", "source": "startup", "session_id": "next"});
    let shown = client.send(next.clone());
    assert!(shown["systemMessage"].as_str().unwrap().contains("was interrupted"), "{shown}");
    assert_eq!(client.send(next), Value::Null);
    assert!(!client.goes_on("A stop after the end."));
}

#[test]
fn the_stop_of_a_subagent_passes_and_a_compaction_only_adds_a_reminder() {
    let client = Client::new();
    client.begin("\"Build it\" --stall 0");
    for event in ["Stop", "StopFailure"] {
        let subagents = json!({"hook_event_name": event, "agent_id": "a-1", "error": "billing_error",
                               "last_assistant_message": CLAIM});
        assert_eq!(client.send(subagents), Value::Null, "{event}");
    }
    let compacted = client.send(json!({"hook_event_name": "SessionStart", "source": "compact"}));
    assert!(context(&compacted).contains("Build it"), "{compacted:#}");
    assert_eq!(client.standing(), stands("running", 0));
    assert!(client.goes_on("On it."));
}
