//! Esc before the agent has answered anything: the client withdraws its prompt and leaves no mark,
//! so only the turn of the next prompt shows it.

use serde_json::json;

use super::usage::append;
use super::{Answer, Door};
use crate::sandbox::{DEADLINE, poll_until};

impl Door {
    /// A message of the user in a turn.
    fn says(&self, words: &str, turn: &str) -> Answer {
        self.event("UserPromptSubmit").with("prompt", words).with("prompt_id", turn).send()
    }

    /// Types `/crew:loop` in a turn.
    fn types(&self, arguments: &str, turn: &str) -> Answer {
        self.command(arguments).with("prompt_id", turn).send()
    }

    /// Adds the line of an answer to the transcript.
    fn answered(&self) {
        let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
        let message = json!({ "id": "m-1", "model": "m", "usage": usage,
                              "content": [{ "type": "text", "text": "I will look." }] });
        append(&self.transcript(), &[json!({ "type": "assistant", "message": message })]);
    }
}

#[test]
fn after_a_withdrawn_prompt_the_users_next_message_pauses_the_loop() {
    let door = Door::new();
    let id = door.begin("\"Build it\" --stall 0");
    let shown = door.says("what is in the README?", "p-1");
    let expected = format!(
        "crew: loop {id} is paused at iteration 1, because you interrupted it · /crew:resume resumes it"
    );
    assert_eq!(shown.line(), expected);
    door.stop("It is empty.").assert_silent();
    assert_eq!(door.status(&id)["status"], "paused");
    door.says("and in the other one?", "p-2").assert_silent();
    let resume = || door.command("").with("command_name", "crew:resume").with("prompt_id", "p-3");
    resume().send().assert_goes_on();
    door.says("use the parser", "p-3").assert_silent();
    assert_eq!(door.status(&id)["status"], "running");
    assert_eq!(door.says("wait, what?", "p-4").line(), expected);
}

#[test]
fn messages_during_or_after_the_first_answer_do_not_affect_the_loop() {
    let door = Door::new();
    let id = door.begin("\"Build it\" --stall 0");
    door.says("use the parser", "p-0").assert_silent();
    door.event("UserPromptSubmit").with("prompt", "no turn is named").send().assert_silent();
    door.says("<task-notification> a task has ended", "p-5").assert_silent();
    door.stop("Half of it.").assert_goes_on();
    door.says("use the parser", "a woken turn").assert_silent();
    assert_eq!(door.status(&id)["status"], "running");
}

#[test]
fn a_message_after_a_failure_of_the_service_continues_the_loop() {
    let mut door = Door::new();
    door.sandbox = door.sandbox.env("CLAUDE_CODE_SESSION_ATTENDED", "1");
    let id = door.begin("\"Build it\" --stall 0");
    let failed = door.event("StopFailure").with("error", "rate_limit").with("prompt_id", "p-0");
    let waiting = failed.start();
    poll_until("the loop waits", || door.status(&id)["status"] == "waiting");
    door.says("go on", "p-1").assert_silent();
    assert_eq!(door.status(&id)["status"], "running");
    waiting.wait(DEADLINE);
}

#[test]
fn a_withdrawn_and_corrected_command_replaces_a_loop_that_has_done_nothing() {
    let door = Door::new();
    append(
        &door.transcript(),
        &[json!({ "type": "user", "message": { "content": "/crew:loop" } })],
    );
    let first = door.begin("\"Build it\" --stall 0");
    let shown = door.types("\"Build it all\" --stall 0", "p-1");
    let note = format!("loop {first} is now cancelled after 0 iterations");
    assert!(shown.goes_on() && shown.line().contains(&note), "{shown:#?}");
    assert_eq!(door.status(&first)["outcome"], "cancelled");
    door.types("\"Build it all\" --stall 0", "p-2").assert_goes_on();
}

#[test]
fn a_loop_that_has_begun_to_work_is_not_replaced_without_a_request() {
    let begun: [fn(&Door); 3] = [
        |door| door.answered(),
        |door| drop(door.stop("Half of it.")),
        |door| std::fs::remove_file(door.transcript()).unwrap(),
    ];
    for begin in begun {
        let door = Door::new();
        append(&door.transcript(), &[json!({ "type": "user", "message": { "content": "hi" } })]);
        let id = door.begin("\"Build it\" --stall 0");
        begin(&door);
        let shown = door.types("\"Build it all\" --stall 0", "p-9");
        let refused = format!("crew: loop {id} is running here at iteration ");
        let way_out = "use another git worktree, or start with --replace";
        let words = shown.refusal();
        assert!(words.starts_with(&refused) && words.ends_with(way_out), "{shown:#?}");
        assert_eq!(door.status(&id)["status"], "running");
        door.types("\"Build it all\" --stall 0 --replace", "p-10").assert_goes_on();
    }
}

#[test]
fn a_pause_after_esc_takes_effect_at_once() {
    let mark = json!({ "type": "user", "message": {
        "content": [{ "type": "text", "text": "[Request interrupted by user]" }] } });
    for typed in ["/crew:pause", "crew pause", "in a terminal"] {
        let door = Door::new();
        let id = door.begin("\"Build it\" --stall 0 -n 9");
        door.answered();
        door.stop("one").assert_goes_on();
        append(&door.transcript(), std::slice::from_ref(&mark));
        match typed {
            "/crew:pause" => drop(door.command("").with("command_name", "crew:pause").send()),
            "crew pause" => drop(door.says("crew pause", "p-7")),
            _ => drop(door.sandbox.crew(&["pause", &id]).success()),
        }
        assert_eq!(door.status(&id)["status"], "paused", "{typed}");
    }
}

#[test]
fn a_pause_after_a_withdrawn_prompt_takes_effect_at_once() {
    for typed in ["/crew:pause", "crew pause"] {
        let door = Door::new();
        let id = door.begin("\"Build it\" --stall 0");
        // A word in the agent's turn waits for its end.
        door.says("crew pause", "p-0");
        assert_eq!(door.status(&id)["status"], "running", "{typed}");
        let shown = match typed {
            "crew pause" => door.says("crew pause", "p-1"),
            _ => {
                door.command("").with("command_name", "crew:pause").with("prompt_id", "p-1").send()
            }
        };
        let expected = format!("loop {id}");
        assert!(shown.refusal().contains(&expected), "{shown:#?}");
        assert_eq!(door.status(&id)["status"], "paused", "{typed}");
    }
}
