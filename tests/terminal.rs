//! What a person types in a terminal: what is near enough is understood, what cannot be done says what can.

use serde_json::{Value, json};

use crate::child::Ran;
use crate::sandbox::Sandbox;

fn begin(sandbox: &Sandbox) -> String {
    let start = json!({
        "hook_event_name": "UserPromptExpansion", "command_name": "crew:loop",
        "command_args": "\"Build it\" --stall 0", "prompt_id": "p",
    });
    sandbox.hook(start).success();
    let told: Value = serde_json::from_str(&sandbox.crew(&["status", "--json"]).success()).unwrap();
    told["loops"][0]["id"].as_str().unwrap().to_owned()
}

/// What was printed, with the id of the loop as ID.
fn shown(ran: &Ran, id: &str) -> String {
    format!("exit {}\n{}{}", ran.code(), ran.stdout, ran.stderr).replace(id, "ID")
}

#[test]
fn a_loop_typed_in_a_terminal_is_told_where_to_go() {
    let sandbox = Sandbox::new();
    let ran = sandbox.crew(&["loop", "build the todo API", "-n", "5", "--verify", "cargo test"]);
    insta::assert_snapshot!(shown(&ran, "k3v9abcd"), @r#"
    exit 1
    crew: a terminal has no session to loop in
    hint: crew run 'build the todo API' -n 5 --verify 'cargo test'; or, in Claude Code: /crew:loop "build the todo API" -n 5 --verify "cargo test"
    "#);
    insta::assert_snapshot!(shown(&sandbox.crew(&["loop"]), "k3v9abcd"), @r#"
    exit 1
    crew: a terminal has no session to loop in
    hint: crew run "task"; or, in Claude Code: /crew:loop "task"
    "#);
    assert!(!sandbox.crew(&["--help"]).success().contains("\n  loop"));
}

#[test]
fn words_for_the_agent_need_no_quotes() {
    let sandbox = Sandbox::new();
    let id = begin(&sandbox);
    let told = sandbox.crew(&["tell", "use", "the", "parser", "--loop", &id]);
    insta::assert_snapshot!(shown(&told, &id), @"
    exit 0
    loop ID: told with the next prompt
    ");
    let stop = json!({
        "hook_event_name": "Stop", "prompt_id": "p", "last_assistant_message": "On it.",
    });
    assert!(sandbox.hook(stop).success().contains("The user says: use the parser"));
    assert_eq!(sandbox.crew(&["tell"]).code(), 2);
}

#[test]
fn an_order_that_comes_too_late_says_how_things_stand() {
    let sandbox = Sandbox::new();
    let id = begin(&sandbox);
    sandbox.crew(&["cancel", &id]).success();
    insta::assert_snapshot!(shown(&sandbox.crew(&["cancel", &id]), &id), @"
    exit 0
    loop ID is over already: cancelled after 0 iterations
    ");
    insta::assert_snapshot!(shown(&sandbox.crew(&["pause", &id]), &id), @"
    exit 0
    loop ID is over already: cancelled after 0 iterations
    ");
}
