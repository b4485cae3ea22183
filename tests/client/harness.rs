//! Tests of the harness with the real client: the script reaches the client, and the output of the
//! client and of a plugin's hooks reaches the test.

use std::time::Duration;

use rustix::process::{Signal, test_kill_process};
use serde_json::json;

use super::probe::Probe;
use super::run::transcript;
use super::{Api, Client, Installed, Kind, OVERRUN, Reply, on_both_clients, on_both_terminals};
use crate::sandbox::{Sandbox, poll_until};

on_both_clients!(
    the_text_of_a_stop_hook_reaches_the_model,
    a_tool_call_reaches_the_client_and_its_result_the_model,
    a_fault_of_the_scripted_api_fails_the_test_immediately,
    sessions_that_share_a_server_are_distinguished,
    the_options_of_a_test_reach_the_client,
    a_client_in_the_background_ends_at_a_signal,
);
on_both_terminals!(a_terminal_takes_typing_pasting_and_escape);

fn the_text_of_a_stop_hook_reaches_the_model(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted([Reply::text("first"), Reply::text("second")]);
    let script = r#"grep -q '"stop_hook_active":true' && exit 0
        echo '{"systemMessage": "told the user", "hookSpecificOutput":
            {"hookEventName": "Stop", "additionalContext": "go on"}}'"#;
    let plugin = Probe::new(&sandbox).hook("Stop", script, &json!({})).lay_down();
    let session = Client::new(installed, &sandbox, &api).plugin(&plugin).prompt("begin").run();

    assert_eq!(session.status.code(), Some(0), "{session:#?}");
    assert!(session.plugins().contains(&"probe"));
    assert!(session.plugin_errors().is_empty());
    assert_eq!(session.result(), "second");
    // The older client keeps a hook's message from its stream.
    let shown = session.informational().iter().any(|text| text.contains("told the user"));
    assert_eq!(shown, installed.version == "2.1.330");
    let requests = api.main_requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].newest().contains("begin"));
    assert!(requests[1].newest().contains("go on") && !requests[1].newest().contains("begin"));
    assert!(requests[1].conversation().contains("begin"));
}

fn a_tool_call_reaches_the_client_and_its_result_the_model(installed: &Installed) {
    let sandbox = Sandbox::new();
    let turn = Reply::thinking("a thought")
        .and_text("I will look.")
        .and_bash("cat README; echo from the shell > made")
        .then(Reply::text("I have").and_text("looked.").stop_reason("max_tokens"));
    let api = Api::scripted([turn, Reply::text("Done.").usage(7000, 42)]);
    let session = Client::new(installed, &sandbox, &api).prompt("look").run();

    assert_eq!(session.result(), "Done.", "{session:#?}");
    assert_eq!(std::fs::read_to_string(sandbox.file("made")).unwrap(), "from the shell\n");
    let requests = api.main_requests();
    assert_eq!(requests.len(), 3, "the client goes on by itself after a cut");
    assert!(requests[1].newest().contains("a repository of a test"));
    assert!(requests.iter().all(|request| request.header("x-api-key").is_some()));
    // The sum of the three replies: two of the script's usual 100 and 10, and the last.
    assert_eq!(session.results()[0]["usage"]["input_tokens"], 7200);
    assert_eq!(session.results()[0]["usage"]["output_tokens"], 62);
    let lines = transcript(&sandbox, session.id());
    let calls = |line: &&serde_json::Value| line["message"]["content"][0]["type"] == "tool_use";
    assert_eq!(lines.iter().filter(calls).count(), 1);
}

fn a_fault_of_the_scripted_api_fails_the_test_immediately(installed: &Installed) {
    let limit = Reply::error(429, "rate_limit_error", "wait a while").retry_after(1).no_retry();
    let dropped = Reply::text("never heard to its end").dropped();
    for (faults, retries) in [(vec![limit], "2"), (vec![dropped.clone(), dropped], "0")] {
        let sandbox = Sandbox::new();
        let requests = faults.len();
        let api = Api::scripted(faults);
        let client = Client::new(installed, &sandbox, &api).prompt("begin");
        let session = client.env("CLAUDE_CODE_MAX_RETRIES", retries).run();
        assert_eq!(session.status.code(), Some(1), "{session:#?}");
        assert_eq!(session.results()[0]["is_error"], true);
        assert!(session.result().contains("API Error"), "{session:#?}");
        assert_eq!(api.main_requests().len(), requests);
    }
}

fn sessions_that_share_a_server_are_distinguished(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::answering(|request| {
        let late = request.conversation().contains("take your time");
        let reply = Reply::text(if late { "late" } else { "soon" });
        let pause = Duration::from_millis(if late { 300 } else { 0 });
        (!request.newest().contains("once more")).then(|| reply.after(pause).pausing(pause))
    });
    let client = || Client::new(installed, &sandbox, &api);
    let late = client().prompt("take your time").start();
    let soon = client().prompt("hurry").prompt("once more").run();
    let late = late.wait();

    assert_eq!(late.result(), "late");
    assert_eq!(soon.results().len(), 2);
    assert_eq!((soon.results()[0]["result"].as_str(), soon.result()), (Some("soon"), OVERRUN));
    assert_eq!((api.overruns(), api.main_requests().len()), (1, 3));
    assert!(late.results()[0]["duration_ms"].as_u64().unwrap() >= 600);
}

fn the_options_of_a_test_reach_the_client(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted([Reply::bash("printenv CREW_HOME CREW_BIN ASKED; touch denied")
        .then(Reply::bash("printenv CREW_HOME CREW_BIN ASKED").then(Reply::text("seen")))]);
    let session = Client::new(installed, &sandbox, &api)
        .prompt("begin")
        .crew_home()
        .settings(&json!({"env": {"ASKED": "a setting"}}))
        .permission_mode("default")
        .arguments(&["--allowedTools", "Bash(printenv:*)"])
        .run();

    assert_eq!(session.result(), "seen", "{session:#?}");
    assert!(!sandbox.file("denied").exists());
    let answer = api.main_requests()[2].newest();
    assert!(answer.contains(&sandbox.crew_home().display().to_string()), "{answer}");
    assert!(answer.contains("/crew\n") && answer.contains("a setting"), "{answer}");
}

fn a_client_in_the_background_ends_at_a_signal(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted([Reply::text("never said").after(Duration::from_secs(60))]);
    let client = Client::new(installed, &sandbox, &api).prompt("begin").start();
    poll_until("a request of the model", || !api.main_requests().is_empty());
    client.running.signal(Signal::TERM);
    let session = client.wait();
    assert_eq!(session.status.code(), Some(143), "{session:#?}");
    assert!(session.results().is_empty() && session.stderr.is_empty(), "{session:#?}");
}

fn a_terminal_takes_typing_pasting_and_escape(installed: &Installed) {
    let sandbox = Sandbox::new();
    let endless =
        Reply::text("Half an answer.\n\nThe rest is never said.").pausing(Duration::from_secs(60));
    let api = Api::scripted([Reply::text("Before."), Reply::text("The first answer."), endless]);
    // A home in which the client has been before.
    Client::new(installed, &sandbox, &api).prompt("begin").run();
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("typed by hand");
    terminal.enter();
    terminal.wait_for_text("The first answer.");
    terminal.paste("pasted in\ntwo lines");
    terminal.enter();
    terminal.wait_for_text("Half an");
    terminal.escape();
    terminal.wait_for_text("Interrupted");

    let requests = api.main_requests();
    assert!(requests[1].newest().contains("typed by hand"));
    assert!(requests[2].newest().contains("pasted in\ntwo lines"));
    assert!(api.requests().iter().all(|request| request.kind != Kind::CountTokens));
    assert!(test_kill_process(terminal.pid()).is_ok());
}
