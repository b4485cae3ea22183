//! The settings a loop starts with, through the built binary: which tier wins, what a project's
//! file may not decide alone, and what an agent cannot change.

mod runs;
mod trusted;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::spawned::Ran;

/// Types `/crew:loop ARGUMENTS` and returns the client's answer.
#[track_caller]
fn start(sandbox: &Sandbox, arguments: &str) -> String {
    let ran = sandbox.hook(json!({
        "hook_event_name": "UserPromptExpansion",
        "command_name": "crew:loop",
        "command_args": arguments,
    }));
    let reported: Value = serde_json::from_str(&ran.success()).unwrap();
    let text = if reported["decision"] == "block" {
        &reported["reason"]
    } else {
        &reported["systemMessage"]
    };
    text.as_str().unwrap().to_owned()
}

fn loops(sandbox: &Sandbox) -> Vec<Value> {
    let reported = sandbox.crew(&["status", "--all", "--json"]).success();
    serde_json::from_str::<Value>(&reported).unwrap()["loops"].as_array().unwrap().clone()
}

/// The contract of the only loop.
#[track_caller]
fn contract(sandbox: &Sandbox) -> (Value, Vec<String>) {
    let loops = loops(sandbox);
    assert_eq!(loops.len(), 1, "{loops:#?}");
    let checks = loops[0]["checks"].as_array().unwrap().iter();
    let checks = checks.map(|check| {
        format!("{}: {}", check["role"].as_str().unwrap(), check["run"].as_str().unwrap())
    });
    (loops[0]["limits"].clone(), checks.collect())
}

fn project(sandbox: &Sandbox, text: &str) {
    sandbox.put_crew_on_the_path();
    sandbox.write(".claude/crew.toml", text);
}

fn user(sandbox: &Sandbox, text: &str) {
    let file = sandbox.home().join(".config/crew/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// The output, without the paths of this run.
fn shown(sandbox: &Sandbox, ran: &Ran) -> String {
    let root = sandbox.root().display().to_string();
    format!("exit {}\n{}{}", ran.code(), ran.stdout, ran.stderr).replace(&root, "")
}

#[test]
fn flags_override_the_projects_file_which_overrides_the_users_own() {
    let sandbox = Sandbox::new();
    sandbox.program("mine", "true");
    user(
        &sandbox,
        "[loop]\nmax_iterations = 20\nstall = 7\nmax_duration = \"3h\"\ngate = [\"mine\"]\n\
         max_cost = 9\nmax_tokens = \"3M\"\n",
    );
    project(
        &sandbox,
        "[loop]\nstall = 6\nmax_duration = \"2h\"\nmax_cost = 2.5\nmax_tokens = \"1M\"\n\
         verify = [\"test -e done\"]\n",
    );
    sandbox.crew(&["trust", "--yes"]).success();
    start(&sandbox, "\"Build it\" --max-duration 1h --max-tokens 500k");
    let (limits, checks) = contract(&sandbox);
    assert_eq!(
        [&limits["max_iterations"], &limits["stall"], &limits["max_duration_s"]],
        [&json!(20), &json!(6), &json!(3600)]
    );
    assert_eq!(
        [&limits["max_cost_micros"], &limits["max_tokens"]],
        [&json!(2_500_000), &json!(500_000)]
    );
    assert_eq!(checks, ["verify: test -e done", "gate: mine"]);
}

#[test]
fn a_variable_caps_the_cost_and_no_other_limit() {
    let sandbox = Sandbox::new().env("CREW_MAX_ITERATIONS", "3").env("CREW_MAX_COST", "2.50");
    user(&sandbox, "[loop]\nmax_cost = 4.0\n");
    let reported = start(&sandbox, "\"Build it\" --verify true --max-cost 5");
    let (limits, _) = contract(&sandbox);
    assert_eq!(
        [&limits["max_iterations"], &limits["max_cost_micros"]],
        [&json!(10), &json!(2_500_000)]
    );
    assert!(reported.contains("--max-cost 5.00 is ignored: CREW_MAX_COST=2.50"), "{reported}");
}

#[test]
fn no_command_of_a_project_runs_until_its_exact_text_is_trusted() {
    let sandbox = Sandbox::new().env("CREW_TRUST", "1");
    project(&sandbox, "[loop]\nmax_iterations = 30\nstall = 3\nverify = [\"test -e done\"]\n");
    let refused = start(&sandbox, "Build it");
    let refused = refused.replace(&sandbox.root().display().to_string(), "");
    insta::assert_snapshot!(refused, @"
    crew: the project's settings need trust, which no person on this machine has given:
      /repo/.claude/crew.toml:2: [loop] max-iterations = 30
      /repo/.claude/crew.toml:4: verify (within 600s, passes with 0): test -e done
    CREW_TRUST does not count here: a project can set it for Claude Code
    hint: read them, then run `crew trust` in a terminal here; `crew run --no-project` starts a loop without them
    ");
    assert!(loops(&sandbox).is_empty());
    sandbox.crew(&["trust", "--yes"]).success();
    assert!(start(&sandbox, "Build it").starts_with("loop "));
    let changed = "[loop]\nmax_iterations = 30\nverify = [\"test -e done\", \"touch x\"]\n";
    project(&sandbox, changed);
    let refused = start(&sandbox, "Build it --replace");
    assert!(refused.contains("touch x") && !refused.contains("test -e done"), "{refused}");
    project(&sandbox, "[loop]\nmax_iterations = 31\nverify = [\"test -e done\"]\n");
    assert!(start(&sandbox, "Build it --replace").contains("max-iterations = 31"));
}

#[test]
fn values_that_only_narrow_need_no_trust() {
    let sandbox = Sandbox::new();
    project(
        &sandbox,
        "[loop]\nmax_iterations = 3\ncompletion_promise = \"ALL DONE\"\n[wait]\nmax = \"1h\"\n",
    );
    let reported = start(&sandbox, "Build it");
    assert!(
        reported.contains("up to 3 iterations") && reported.contains("says ALL DONE"),
        "{reported}"
    );
    assert!(reported.contains("/repo/.claude/crew.toml apply"), "{reported}");
}

#[test]
fn a_project_cannot_disable_or_replace_the_users_promise() {
    let sandbox = Sandbox::new();
    let refusal = "the project's settings need trust, which no person on this machine has given";
    let assert_refused = |wanted: &str| {
        let reported = start(&sandbox, "\"Build it\" --verify false -n 1");
        assert!(reported.contains(refusal) && reported.contains(wanted), "{reported}");
        let run = ["run", "Build it", "-n", "1", "--verify", "false", "--agent-cmd", "touch x"];
        let ran = sandbox.crew(&run);
        assert_eq!(ran.code(), 1, "{ran:#?}");
        assert!(ran.stderr.contains(wanted), "{ran:#?}");
        assert!(loops(&sandbox).is_empty() && !sandbox.file("x").exists());
    };
    project(&sandbox, "[loop]\ncompletion_promise = false\n");
    assert_refused("crew.toml:2: [loop] completion-promise = false");
    user(&sandbox, "[loop]\ncompletion_promise = \"REALLY DONE\"\n");
    assert_refused("crew.toml:2: [loop] completion-promise = false");
    project(&sandbox, "[loop]\ncompletion_promise = \"on it\"\n");
    assert_refused("crew.toml:2: [loop] completion-promise = \"on it\"");
    user(&sandbox, "[loop]\ncompletion_promise = \"on it\"\n");
    assert!(start(&sandbox, "Build it").contains("says on it"));
}

#[test]
fn the_no_project_option_starts_without_the_projects_file() {
    let sandbox = Sandbox::new();
    project(&sandbox, "[loop]\nmax_iterations = 3\nverify = [\"touch x\"]\n");
    let reported = start(&sandbox, "Build it --no-project");
    assert!(
        reported.contains("up to 10 iterations") && reported.contains("nothing is checked"),
        "{reported}"
    );
}

#[test]
fn a_tasks_promise_overrides_the_settings_files() {
    let sandbox = Sandbox::new();
    project(&sandbox, "[loop]\ncompletion_promise = \"ALL DONE\"\n");
    let reported = start(&sandbox, "\"Say <promise>SHIPPED</promise> when done\"");
    assert!(reported.contains("says SHIPPED"), "{reported}");
}

#[test]
fn a_settings_file_written_during_a_loop_does_not_change_it() {
    let sandbox = Sandbox::new();
    start(&sandbox, "\"Build it\" --stall 0 -n 2");
    project(&sandbox, "[loop]\nmax_iterations = 0\nuntil = [\"touch x\"]\n");
    let stop = |words: &str| {
        sandbox.hook(json!({"hook_event_name": "Stop", "last_assistant_message": words})).success()
    };
    // The same words within a tick of the clock would be one stop.
    assert!(stop("on it").contains("crew 1/2"));
    assert!(stop("still on it").contains("exhausted"));
    assert!(!sandbox.file("x").exists());
}

#[test]
fn a_broken_file_refuses_the_start_with_its_line_and_a_misspelled_key_only_warns() {
    let sandbox = Sandbox::new();
    project(&sandbox, "[loop]\nmax_iterations = \"many\"\n");
    let reported = start(&sandbox, "Build it");
    let expected = "crew.toml:2: max_iterations = \"many\": expected a whole number, such as 15";
    assert!(reported.contains(expected) && reported.contains("--no-project"), "{reported}");
    project(&sandbox, "[loop]\nmax_iteration = 15\n");
    let reported = start(&sandbox, "Build it");
    assert!(reported.contains("crew.toml:2: unknown key `max_iteration` in [loop]"), "{reported}");
    let hidden = Sandbox::new().env("CREW_MAX_COST", "few");
    let reported = start(&hidden, "Build it");
    let expected = "CREW_MAX_COST takes US dollars, such as 5.00, not `few`";
    assert!(reported.contains(expected), "{reported}");
}

#[test]
fn config_shows_every_value_and_where_it_came_from() {
    let sandbox = Sandbox::new().env("CREW_MAX_COST", "2.50").env("CREW_ACCOUNT", "work");
    user(&sandbox, "[loop]\n\nmax_duration = \"90m\"\nmax_cost = 5\n");
    project(&sandbox, "[loop]\nmax_iterations = 15\nverify = [\"cargo test\"]\nstal = 3\n");
    insta::assert_snapshot!(shown(&sandbox, &sandbox.crew(&["config"])), @"
    exit 0
    [loop]
    * max-iterations      15            /repo/.claude/crew.toml:2
      failure-threshold   3             built-in
      stall               5             built-in
    * max-duration        1h 30m        /home/.config/crew/config.toml:3
    * max-cost            2.50          $CREW_MAX_COST
      max-tokens          0 (none)      built-in
      timeout             1h            built-in
      idle-timeout        15m           built-in
      delay               0 (none)      built-in
      max-turns           0 (none)      built-in
      token-budget        100k          built-in
      redline             80%           built-in
      completion-promise  COMPLETE      built-in
      test-changes        refuse        built-in
      questions           auto          built-in
      notices             true          built-in
      prove               checked       built-in
      prove-timeout       15m           built-in
      agent               claude        built-in
    * account             work          $CREW_ACCOUNT
      permissions         accept-edits  built-in
      commit              false         built-in
      push                false         built-in
      rebase              none          built-in
      awake               true          built-in
    * verify              cargo test    /repo/.claude/crew.toml:3
      gate                none          built-in
      until               none          built-in
    [wait]
      max                 12h           built-in
    [keep]
      logs                2GiB          built-in
      snapshots           10GiB         built-in
      days                90            built-in

    * is set, the others are built in
    user file: /home/.config/crew/config.toml
    project file: /repo/.claude/crew.toml
    crew: /repo/.claude/crew.toml:4: unknown key `stal` in [loop]: did you mean `stall`?
    crew: these are not trusted, so no loop starts here:
      /repo/.claude/crew.toml:2: [loop] max-iterations = 15
      /repo/.claude/crew.toml:3: verify (within 600s, passes with 0): cargo test
    hint: read them, then run `crew trust`
    ");
    let reported = sandbox.crew(&["config", "--json"]).success();
    let reported: Value = serde_json::from_str(&reported).unwrap();
    assert_eq!(reported["schema"], 2);
    assert_eq!(reported["settings"][0]["value"], 15);
    assert_eq!(reported["settings"][0]["origin"]["line"], 2);
    assert_eq!(reported["settings"][4]["origin"]["variable"], "CREW_MAX_COST");
    assert_eq!(reported["settings"][4]["value"], 2.5);
    assert_eq!(reported["settings"][4]["unit"], "usd");
    assert_eq!(reported["checks"][0]["run"], "cargo test");
    assert_eq!(reported["untrusted"].as_array().unwrap().len(), 2);
}

#[test]
fn the_schemas_are_printed_for_editors_in_any_folder() {
    let sandbox = Sandbox::new();
    project(&sandbox, "[loop\n");
    for (verb, title) in [("config", "Settings of crew"), ("fleet", "fleet.toml of crew")] {
        let schema: Value =
            serde_json::from_str(&sandbox.crew(&[verb, "--schema"]).success()).unwrap();
        assert_eq!(schema["title"], title);
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    }
    for words in
        [&["config", "--schema", "--json"][..], &["fleet", "--schema", "status"], &["fleet"]]
    {
        assert_eq!(sandbox.crew(words).code(), 2, "{words:?}");
    }
}

#[test]
fn init_writes_and_trusts_what_it_found_and_never_overwrites_a_file() {
    let sandbox = Sandbox::new();
    sandbox.write("package.json", r#"{"scripts":{"test":"vitest run"}}"#);
    sandbox.write("pnpm-lock.yaml", "");
    sandbox.program("pnpm", "true");
    insta::assert_snapshot!(shown(&sandbox, &sandbox.crew(&["init"])), @"
    exit 0
    wrote /repo/.claude/crew.toml
    a claim must pass `pnpm test`; trusted on this machine
    ");
    let config = sandbox.crew(&["config"]);
    assert!(config.stdout.contains("pnpm test") && config.stderr.is_empty(), "{config:?}");
    let reported = start(&sandbox, "Build it");
    assert!(reported.contains("`pnpm test` pass"), "{reported}");
    insta::assert_snapshot!(shown(&sandbox, &sandbox.crew(&["init"])), @"
    exit 1
    crew: /repo/.claude/crew.toml already exists
    hint: edit it, or remove it first; `crew config` shows what it says
    ");
}

#[test]
fn an_agent_can_write_the_file_and_cannot_trust_it() {
    let agent = Sandbox::new().env("CLAUDECODE", "1");
    agent.write("Cargo.toml", "[package]\n");
    insta::assert_snapshot!(shown(&agent, &agent.crew(&["init"])), @"
    exit 0
    wrote /repo/.claude/crew.toml
    a claim must pass `cargo test`, once a person has run `crew trust` in their own terminal
    ");
    for words in [&["trust"][..], &["trust", "--yes"], &["trust", "--forget"]] {
        insta::allow_duplicates! { insta::assert_snapshot!(shown(&agent, &agent.crew(words)), @"
        exit 1
        crew: only a person can trust a project's commands, and this shell is an agent's
        hint: run `crew trust` in your own terminal
        ") }
    }
    assert!(start(&agent, "Build it").contains("crew trust"));
    assert!(loops(&agent).is_empty());
}

#[test]
fn verify_auto_and_the_suggestion_at_a_start_agree() {
    let sandbox = Sandbox::new();
    let reported = start(&sandbox, "Build it --verify auto");
    assert!(
        reported.contains("--verify auto found no test command") && reported.contains("hint:"),
        "{reported}"
    );
    sandbox.write("go.mod", "module x\n");
    sandbox.program("go", "true");
    let reported = start(&sandbox, "Build it");
    assert!(reported.contains("Try --verify \"go test ./...\""), "{reported}");
    start(&sandbox, "Build it --verify auto --replace");
    let newest = &loops(&sandbox)[0];
    assert_eq!(newest["checks"][0]["run"], "go test ./...");
}
