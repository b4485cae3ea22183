//! Commands that the user types while the agent works: the client keeps them until its turn ends,
//! and records them in the transcript.

use serde_json::{Value, json};

use super::usage::append;
use super::{Answer, Door, OTHER_SESSION, SESSION};

fn queue(operation: &str, content: Option<&str>) -> Value {
    let mut line =
        json!({ "type": "queue-operation", "operation": operation, "sessionId": SESSION });
    if let Some(content) = content {
        line["content"] = content.into();
    }
    line
}

/// A door with a user at the client.
fn attended() -> Door {
    let mut door = Door::new();
    door.sandbox = door.sandbox.env("CLAUDE_CODE_SESSION_ATTENDED", "1");
    append(&door.transcript(), &[queue("enqueue", Some("/crew:pause")), queue("dequeue", None)]);
    door
}

impl Door {
    fn enqueue(&self, command: &str) {
        append(&self.transcript(), &[queue("enqueue", Some(command))]);
    }

    /// Ends the client's turn, after which it delivers the oldest queued command.
    #[track_caller]
    fn deliver(&self, name: &str, arguments: &str) -> Answer {
        append(&self.transcript(), &[queue("dequeue", None)]);
        self.command(arguments).with("command_name", format!("crew:{name}")).send()
    }

    pub(super) fn type_in(&self, words: &str) -> Answer {
        self.event("UserPromptSubmit").with("prompt", words).send()
    }
}

#[test]
fn a_queued_status_is_answered_at_the_next_boundary_and_once() {
    let door = attended();
    let id = door.begin("\"Build it\" --stall 0 -n 2");
    door.enqueue("/crew:status");
    let answer = door.stop("one").assert_goes_on();
    let expected = format!("crew pause, crew cancel\nloop {id} · running, iteration 2 of 2\n");
    assert!(answer.line().contains(&expected), "{}", answer.line());
    let page = door.stop("two").assert_lets_go();
    assert!(!page.line().contains("running, "), "{}", page.line());
    let shown = door.deliver("status", "");
    assert_eq!(shown.refusal(), "/crew:status was answered already, at iteration 1");
    let again = door.deliver("status", "");
    assert!(again.refusal().contains("exhausted after 2 iterations"), "{again:#?}");
    assert_eq!(door.handoffs().len(), 1);
}

#[test]
fn a_queued_pause_takes_effect_at_the_next_boundary_and_its_delivery_does_nothing() {
    let door = attended();
    let id = door.begin("\"Build it\" --stall 0 -n 9");
    door.stop("one").assert_goes_on();
    door.enqueue("hello there");
    door.enqueue("/crew:pause");
    let held = door.stop("two").assert_lets_go();
    assert!(held.line().contains("paused after 1 iteration "), "{}", held.line());
    assert_eq!(door.status(&id)["status"], "paused");
    let shown = door.deliver("pause", "");
    assert_eq!(shown.refusal(), format!("loop {id} was paused already, at iteration 2"));
    door.command(&id).with("command_name", "crew:resume").send().assert_goes_on();
    door.stop("three").assert_goes_on();
    assert_eq!(door.status(&id)["status"], "running");
}

#[test]
fn a_queued_cancel_ends_the_loop_with_its_reason_and_runs_no_check() {
    let door = attended();
    let id = door.begin("\"Build it\" --stall 0 --gate \"touch ran\"");
    door.enqueue("/crew:cancel-loop \"wrong branch\"");
    let page = door.stop("one").assert_lets_go();
    assert!(page.line().contains("cancelled by the user: wrong branch"), "{}", page.line());
    assert!(!door.sandbox.file("ran").exists());
    let shown = door.deliver("cancel-loop", "\"wrong branch\"");
    assert_eq!(shown.refusal(), format!("loop {id} was cancelled already, at iteration 1"));
    assert_eq!(door.handoffs().len(), 1);
}

#[test]
fn a_queued_handoff_is_written_at_the_next_boundary_and_once() {
    let door = attended();
    door.begin("\"Build it\" --stall 0 -n 9");
    door.enqueue("/crew:handoff review \"the parser is done\"");
    door.enqueue("/crew:handoff");
    let answer = door.stop("one").assert_goes_on();
    assert!(answer.line().contains("handoff: ") && answer.line().contains("/review-"));
    assert!(answer.line().contains("a handoff needs a description"), "{}", answer.line());
    let page = std::fs::read_to_string(&door.handoffs()[0]).unwrap();
    assert!(page.contains("the parser is done"), "{page}");
    door.deliver("handoff", "review \"the parser is done\"");
    assert_eq!(door.handoffs().len(), 1);
}

#[test]
fn a_command_withdrawn_after_it_was_carried_out_counts_when_typed_again() {
    let (words, text) = ("review \"x\"", "/crew:handoff review \"x\"");
    for back in [queue("popAll", None), queue("popAll", Some(text)), queue("remove", Some(text))] {
        for is_seen in [true, false] {
            let door = attended();
            door.begin("\"Build it\" --stall 0 -n 9");
            door.enqueue(text);
            door.stop("one").assert_goes_on();
            append(&door.transcript(), std::slice::from_ref(&back));
            if is_seen {
                door.stop("two").assert_goes_on();
            }
            let shown = door.command(words).with("command_name", "crew:handoff").send();
            assert_eq!(door.handoffs().len(), 2, "{back} {shown:#?}");
        }
    }
}

#[test]
fn requests_typed_during_a_check_are_carried_out_at_its_boundary() {
    let door = attended();
    let line = queue("enqueue", Some("/crew:pause"));
    let gate = format!("printf '%s\\n' '{line}' >> '{}'", door.transcript().display());
    let id =
        door.begin(&format!("\"Build it\" --stall 0 --gate=\"{}\"", gate.replace('"', "\\\"")));
    door.stop("one").assert_lets_go();
    assert_eq!(door.status(&id)["status"], "paused");
}

#[test]
fn only_commands_now_in_this_sessions_queue_are_carried_out() {
    let pause = || queue("enqueue", Some("/crew:pause"));
    let table: [Vec<Value>; 6] = [
        vec![pause(), queue("popAll", Some("/crew:pause"))],
        vec![pause(), queue("remove", Some("/crew:pause"))],
        vec![pause(), queue("dequeue", None)],
        vec![json!({ "type": "user", "message": { "content": [{
            "type": "tool_result", "content": format!("{}\n", pause()) }] } })],
        vec![json!({ "type": "user", "toolUseResult": pause() })],
        vec![json!({ "type": "queue-operation", "operation": "enqueue", "content": "/crew:pause",
            "sessionId": OTHER_SESSION })],
    ];
    let door = attended();
    let id = door.begin("\"Build it\" --stall 0 -n 0");
    for (number, lines) in table.iter().enumerate() {
        append(&door.transcript(), lines);
        door.stop(&format!("words {number}")).assert_goes_on();
        assert_eq!(door.status(&id)["status"], "running", "{lines:#?}");
    }
}

#[test]
fn prompts_that_a_program_queues_keep_their_sequence() {
    let door = Door::new();
    let id = door.begin("\"Build it\" --stall 0 -n 9");
    door.enqueue("/crew:pause");
    door.stop("one").assert_goes_on();
    assert_eq!(door.status(&id)["status"], "running");
}

#[test]
fn a_request_typed_after_the_loop_has_ended_never_reaches_the_model() {
    let door = Door::new();
    for order in ["crew status", "crew pause", "crew cancel wrong branch"] {
        door.type_in(order).assert_silent();
    }
    let id = door.begin("\"Build it\" --stall 0 -n 1");
    door.stop("one").assert_lets_go();
    for order in ["crew status", "crew pause", "crew cancel", "crew pausecrew status"] {
        let expected = format!(
            "crew: loop {id} is over: exhausted after 1 iteration (Ctrl-U clears the line)"
        );
        assert_eq!(door.type_in(order).refusal(), expected);
    }
    assert_eq!(door.status(&id)["outcome"], "exhausted");
    door.type_in("crew status please").assert_silent();
    let other = door.event("UserPromptSubmit").with("session_id", OTHER_SESSION);
    other.with("prompt", "crew status").send().assert_silent();
}

#[test]
fn a_request_joined_to_one_that_was_carried_out_is_carried_out_too() {
    let door = Door::new();
    door.type_in("crew cancel/crew:cancel-loop").assert_silent();
    let id = door.begin("\"Build it\" --stall 0");
    let shown = door.type_in("crew pausecrew status");
    assert!(shown.refusal().contains("running, iteration 1 of 10"), "{shown:#?}");
    let shown = door.type_in("crew status/crew:cancel-loop wrong branch");
    assert!(shown.refusal().contains("cancelled by the user: wrong branch"), "{shown:#?}");
    assert_eq!(door.status(&id)["outcome"], "cancelled");
}

/// A live loop of another session, in another working tree.
fn another_loop(door: &Door, tree: &str) -> String {
    door.sandbox.git(&["worktree", "add", "--quiet", tree]);
    let cwd = door.sandbox.file(tree).canonicalize().unwrap().display().to_string();
    let event = door.command("\"Do that\" --stall 0").with("session_id", format!("other-{tree}"));
    let shown = event.with("cwd", &*cwd).env("CLAUDE_PROJECT_DIR", &*cwd).send();
    let line = shown.line().strip_prefix("loop ").and_then(|rest| rest.split_once(':'));
    line.unwrap_or_else(|| panic!("no start: {shown:#?}")).0.to_owned()
}

#[test]
fn a_request_that_names_another_loop_affects_only_that_loop() {
    let door = Door::new();
    let [other, third] = ["b", "c"].map(|tree| another_loop(&door, tree));
    let shown = |words: &str| {
        let refusal = door.type_in(words).refusal().to_owned();
        assert!(refusal.chars().count() <= 100, "{refusal}");
        refusal.strip_suffix(" (Ctrl-U clears the line)").unwrap_or_default().to_owned()
    };
    // Also where the session never had a loop.
    let expected = format!("crew: loop {other}: running, iteration 1 of 10");
    assert_eq!(shown(&format!("crew status {other}")), expected);
    let own = door.begin("\"Build it\" --stall 0");
    let expected = format!("crew: loop {other} pauses when its turn ends; iteration 1 runs again");
    assert_eq!(shown(&format!("crew pause {other}")), expected);
    let cancel = format!("crew cancel {other} wrong branch");
    let expected = format!("crew: loop {other}: cancelled after 0 iterations");
    assert_eq!(shown(&cancel), expected);
    let ending = &door.record(&other)["state"]["ending"];
    assert_eq!(ending["why"], "cancelled by the user: wrong branch");
    let expected = format!("crew: loop {other} is over: cancelled after 0 iterations");
    assert_eq!(shown(&cancel), expected);
    // The client has put that into its input line.
    let glued = format!("{cancel}crew status {third}").replace(" wrong branch", "");
    assert_eq!(shown(&glued), format!("crew: loop {third}: running, iteration 1 of 10"));
    for id in [&own, &third] {
        assert_eq!(door.status(id)["status"], "running");
        assert!(!door.file(id, "pause").exists());
    }
}

#[test]
fn a_request_that_names_its_own_loop_acts_like_one_without_a_name() {
    let door = Door::new();
    let id = door.begin("\"Build it\" --stall 0");
    let shown = door.type_in(&format!("crew status {id}"));
    let expected = format!("crew: loop {id}: running, iteration 1 of 10 (Ctrl-U clears the line)");
    assert_eq!(shown.refusal(), expected);
    let shown = door.type_in(&format!("crew pause {id}"));
    let expected = format!(
        "crew: loop {id} pauses when its turn ends; iteration 1 runs again (Ctrl-U clears the line)"
    );
    assert_eq!(shown.refusal(), expected);
    assert_eq!(door.type_in("crew pause").refusal(), expected);
    let shown = door.type_in(&format!("crew cancel {id} wrong branch"));
    let expected =
        format!("crew: loop {id}: cancelled after 0 iterations (Ctrl-U clears the line)");
    assert_eq!(shown.refusal(), expected);
    let ending = &door.record(&id)["state"]["ending"];
    assert_eq!(ending["why"], "cancelled by the user: wrong branch");
}

#[test]
fn a_word_that_is_not_the_id_of_a_loop_is_a_reason_or_goes_to_the_agent() {
    let door = Door::new();
    door.type_in("crew cancel tomorrow").assert_silent();
    let id = door.begin("\"Build it\" --stall 0");
    for words in ["crew pause tomorrow", "crew status aaaaaaaa"] {
        door.type_in(words).assert_silent();
    }
    assert!(!door.file(&id, "pause").exists());
    let shown = door.type_in("crew cancel tomorrow is better");
    let expected = format!(
        "crew: loop {id}: cancelled after 0 iterations; Esc ends a turn (Ctrl-U clears the line)"
    );
    assert_eq!(shown.refusal(), expected);
    let ending = &door.record(&id)["state"]["ending"];
    assert_eq!(ending["why"], "cancelled by the user: tomorrow is better");
}

#[test]
fn a_failed_request_for_another_loop_is_referred_to_a_terminal_and_not_to_the_agent() {
    let door = Door::new();
    let own = door.begin("\"Build it\" --stall 0");
    let broken = door.file("k3v9abcd", "loop.json");
    std::fs::create_dir_all(broken.parent().unwrap()).unwrap();
    std::fs::write(broken, "{").unwrap();
    let shown = door.type_in("crew cancel k3v9abcd");
    let expected =
        "crew: that failed; type this in a terminal: crew cancel k3v9abcd (Ctrl-U clears the line)";
    assert_eq!(shown.refusal(), expected);
    assert_eq!(door.status(&own)["status"], "running");
}
