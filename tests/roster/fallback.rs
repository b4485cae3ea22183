//! A loop whose agent reaches the limit of its plan, and whose fallback completes it: both are the
//! real programs, with one scripted server.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::agent::{claude, codex};
use super::scenario::{CLAIM, reset};
use super::{alone, cell, is_installed};
use crate::client::{Api, Refusal, Reply, Request};
use crate::sandbox::Sandbox;
use crate::spawned::Running;

const DEADLINE: Duration = Duration::from_secs(180);
/// The settings of a Codex with its own provider, which has no login.
const SETTINGS: &str = "agents.codex.login = []\n";

#[test]
fn a_fallback_takes_over_at_a_limit_in_iteration_3_of_8_and_completes_the_loop() {
    if is_installed(&claude()) && is_installed(&codex()) {
        alone::without_network(takes_over);
    }
}

/// Each iteration writes a line; from the third on Claude's plan is used up.
fn script(request: &Request, written: &mut u32) -> Reply {
    let body = request.body.to_string();
    let is_codex = request.body["input"].is_array();
    let reply = if body.contains(r#""type":"function_call""#) || body.contains("tool_use_id") {
        Reply::text(if *written == 8 { CLAIM } else { "Wrote a line." })
    } else if *written == 2 && !is_codex {
        return Reply::refusal(Refusal::Limit { reset: reset() });
    } else {
        *written += 1;
        Reply::text("I write a line.").and_bash("echo line >> work.txt")
    };
    reply.usage(if is_codex { 1_000 } else { 100 }, 10)
}

fn takes_over() {
    let sandbox = Sandbox::new();
    let mut written = 0;
    let api = Api::answering(move |request| Some(script(request, &mut written)));
    let settings = sandbox.home().join(".config/crew/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(settings, SETTINGS).unwrap();
    let mut command = Command::new(sandbox.build().path());
    command.env_clear().current_dir(sandbox.repository());
    command.envs(claude().settle(&sandbox, &api)).envs(codex().settle(&sandbox, &api));
    command.args(["run", "Write lines", "-n", "8", "--agent", "claude", "--fallback", "codex"]);
    command.args(["--permissions", "bypass", "--verify", "test $(wc -l < work.txt) -ge 8"]);
    let ran = Running::start(command, None).wait(DEADLINE);
    assert_eq!(ran.code(), 0, "{ran:#?}");

    let shown = cell::the_loop(&sandbox, &ran);
    let ended = (&shown["outcome"], &shown["proof"], &shown["completed_iterations"]);
    assert_eq!(ended, (&json!("completed"), &json!("checked"), &json!(8)), "{shown:#}");
    assert_eq!(shown["consecutive_failures"], 0);
    let share = |name: &str| &shown["shares"][name]["iterations"];
    assert_eq!((share("claude"), share("codex")), (&json!(2), &json!(6)), "{shown:#}");
    assert_eq!(cell::tokens(&shown["usage"], api.reported()), "exact", "{shown:#}");

    let loops = std::fs::read_dir(sandbox.crew_home().join("loops")).unwrap();
    let journals: Vec<String> = loops
        .map(|folder| {
            std::fs::read_to_string(folder.unwrap().path().join("journal.jsonl")).unwrap()
        })
        .collect();
    assert_eq!(journals.len(), 1, "one loop has one journal");
    let lines = journals[0].lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let over = lines.filter(|line| line.to_string().contains("takes over"));
    assert_eq!(over.count(), 1, "{}", journals[0]);
    assert!(ran.stderr.contains("codex takes over: claude is limited until "), "{ran:#?}");
}
