//! `crew run` with the real client: its prompts, its costs, and each way in which its iterations
//! end.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use serde_json::{Value, json};

use crate::client::{Api, Client, Installed, Kind, Reply, on_both_clients};
use crate::sandbox::{Sandbox, poll_until};
use crate::spawned::Ran;

on_both_clients!(
    five_iterations_are_five_conversations_and_the_page_shows_the_usage_that_the_server_reported,
    an_echo_of_the_prompt_completes_nothing_and_a_proved_claim_does,
    a_limit_that_names_its_reset_is_waited_for_and_the_same_iteration_repeated,
    a_limit_reported_in_headers_is_waited_for_as_well,
    denied_tools_with_nothing_changed_block_the_run_and_are_named,
    an_agent_that_may_edit_may_run_exactly_the_commands_of_the_checks,
    the_plugin_in_the_clients_home_changes_no_request_and_finds_no_loop,
    the_client_gets_no_mark_of_a_nested_session_and_crew_inside_it_can_only_narrow,
    a_refused_key_blocks_the_run,
    the_next_iteration_continues_an_answer_truncated_by_the_token_limit,
    reaching_the_limit_on_turns_ends_an_iteration_without_a_failure,
);

pub(super) fn client<'world>(
    installed: &'world Installed,
    sandbox: &'world Sandbox,
    api: &Api,
) -> Client<'world> {
    let client = Client::new(installed, sandbox, api).installed_plugins();
    client.env("CLAUDE_CODE_MAX_RETRIES", "0")
}

/// The only loop of the sandbox.
#[track_caller]
pub(super) fn the_loop(sandbox: &Sandbox) -> Value {
    let shown = sandbox.crew(&["status", "--all", "--json"]).success();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["loops"].as_array().map(Vec::len), Some(1), "{shown:#}");
    shown["loops"][0].clone()
}

#[track_caller]
pub(super) fn assert_ended(sandbox: &Sandbox, ran: &Ran, code: i32, outcome: &str, count: u32) {
    assert_eq!(ran.code(), code, "{ran:#?}");
    let ended = the_loop(sandbox);
    let shown = (&ended["outcome"], &ended["completed_iterations"]);
    assert_eq!(shown, (&json!(outcome), &json!(count)), "{ended:#}\n{ran:#?}");
}

/// What the client printed in one iteration, one value per line.
fn log(sandbox: &Sandbox, iteration: u32) -> Vec<Value> {
    let id = the_loop(sandbox)["id"].as_str().unwrap().to_owned();
    let file = format!("loops/{id}/iterations/{iteration:04}.log");
    let text = std::fs::read_to_string(sandbox.crew_home().join(file)).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// One iteration: a tool call and the answer to its result, each with different numbers.
fn mixed(number: u64) -> Reply {
    let hour = json!({
        "ephemeral_1h_input_tokens": 100 * number, "ephemeral_5m_input_tokens": 30 * number,
    });
    let call = Reply::bash("echo line >> work.txt").usage(1_001 * number, 211 * number);
    let call = call
        .used("cache_creation_input_tokens", 130 * number)
        .used("cache_creation", hour)
        .used("cache_read_input_tokens", 70_000 * number);
    call.then(Reply::text(&format!("Line {number}.")).usage(3, 17 * number))
}

fn five_iterations_are_five_conversations_and_the_page_shows_the_usage_that_the_server_reported(
    installed: &Installed,
) {
    let sandbox = Sandbox::new();
    let api = Api::scripted((1..=9).map(mixed));
    let ran = client(installed, &sandbox, &api).crew(&[
        "run",
        "Write five lines",
        "-n5",
        "--agent",
        "claude",
        "--permissions",
        "bypass",
    ]);
    assert_ended(&sandbox, &ran, 10, "exhausted", 5);

    assert!(api.requests().iter().all(|request| request.kind != Kind::Side));
    let requests = api.main_requests();
    assert_eq!(requests.len(), 10);
    for (iteration, pair) in (1..).zip(requests.chunks(2)) {
        assert_eq!(pair[0].newest(), pair[0].conversation(), "it begins a conversation");
        assert!(pair[0].newest().contains("Write five lines"));
        let shown = format!("This is iteration {iteration} of 5.");
        assert!(pair[0].newest().contains(&shown), "{}", pair[0].newest());
        assert!(pair[1].conversation().contains(&shown), "the second request resumes it");
    }
    let sessions: std::collections::BTreeSet<String> = (1..=5)
        .map(|iteration| log(&sandbox, iteration)[0]["session_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(sessions.len(), 5);

    let usage = &the_loop(&sandbox)["usage"];
    let sum = 15;
    let tokens = json!({
        "input": 1_001 * sum + 3 * 5,
        "output": (211 + 17) * sum,
        "cache_write": 30 * sum,
        "cache_write_hour": 100 * sum,
        "cache_read": 70_000 * sum,
    });
    assert_eq!(usage["tokens"], tokens);
    assert_eq!(usage["is_lower_bound"], false);
    let costs = (1..=5).map(|iteration| {
        let lines = log(&sandbox, iteration);
        lines.iter().find_map(|line| line["total_cost_usd"].as_f64()).unwrap()
    });
    let cost: f64 = costs.sum();
    let ours = usage["cost_usd"].as_f64().unwrap();
    assert!((ours - cost).abs() < 1e-9, "ours is {ours}, the client's {cost}");
    let spent = format!(" · ${cost:.2} · 1M tokens\n");
    assert!(ran.stdout.contains(&spent), "{spent}{}", ran.stdout);
}

fn an_echo_of_the_prompt_completes_nothing_and_a_proved_claim_does(installed: &Installed) {
    let sandbox = Sandbox::new();
    sandbox.write("check.sh", "test -e done || { echo 'missing: the file done'; exit 3; }\n");
    let claim = "It is all there.\n\n<promise>SHIPPED</promise>";
    let mut asked = 0;
    let api = Api::answering(move |request| {
        asked += 1;
        Some(match asked {
            1 => Reply::text(&request.conversation()),
            2 => Reply::text(claim),
            _ => Reply::bash("touch done").then(Reply::text(claim)),
        })
    });
    let task = "Ship it. Say <promise>SHIPPED</promise> when it is done.";
    let arguments = ["run", task, "--verify", "sh check.sh", "--permissions", "bypass", "-n9"];
    let ran = client(installed, &sandbox, &api).crew(&arguments);
    assert_ended(&sandbox, &ran, 0, "completed", 3);
    assert_eq!(the_loop(&sandbox)["proof"], "checked");
    let requests = api.main_requests();
    assert_eq!(requests.len(), 4);
    let shown = requests[2].newest();
    let refused = "Its claim was not accepted.\nIt changed nothing.\n`sh check.sh` failed";
    assert!(shown.contains(refused), "{shown}");
    assert!(shown.contains("missing: the file done"), "{shown}");
    assert!(ran.stdout.contains("completed after 3 iterations · proof: checked"), "{ran:#?}");
}

fn soon(seconds: u64) -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds
}

/// Answers once, refuses once, and continues; the second iteration sends two requests.
#[track_caller]
pub(super) fn assert_repeated(sandbox: &Sandbox, ran: &Ran, api: &Api) {
    assert_ended(sandbox, ran, 10, "exhausted", 3);
    let requests = api.main_requests();
    let iterations = requests.iter().map(|request| {
        let shown = request.newest();
        let number = shown.split("This is iteration ").nth(1).unwrap();
        number.chars().next().unwrap()
    });
    assert_eq!(iterations.collect::<String>(), "1223");
    assert!(ran.stdout.to_lowercase().contains("waiting"), "{ran:#?}");
    assert_eq!(the_loop(sandbox)["consecutive_failures"], 0);
}

fn a_limit_that_names_its_reset_is_waited_for_and_the_same_iteration_repeated(
    installed: &Installed,
) {
    let sandbox = Sandbox::new();
    let limit = || {
        let message = format!("usage limit reached|{}", soon(4));
        Reply::error(429, "rate_limit_error", &message).no_retry()
    };
    let mut asked = 0;
    let api = Api::answering(move |_| {
        asked += 1;
        Some(if asked == 2 { limit() } else { Reply::text("Working on it.") })
    });
    let running = client(installed, &sandbox, &api).start_crew(&["run", "Build it", "-n3"]);
    let mut seen = String::new();
    poll_until("the status tells of the wait", || {
        seen = sandbox.crew(&["status"]).stdout;
        seen.contains("waiting until")
    });
    assert!(seen.contains(", then iteration 2 of 3 again"), "{seen}");
    let ran = running.wait(Duration::from_secs(60));
    assert_repeated(&sandbox, &ran, &api);
}

fn a_limit_reported_in_headers_is_waited_for_as_well(installed: &Installed) {
    let sandbox = Sandbox::new();
    let limit = || Reply::usage_limit(DateTime::from(SystemTime::now() + Duration::from_secs(4)));
    let mut asked = 0;
    let api = Api::answering(move |_| {
        asked += 1;
        Some(if asked == 2 { limit() } else { Reply::text("Working on it.") })
    });
    let client = client(installed, &sandbox, &api);
    let client = client.env("ANTHROPIC_API_KEY", "").env("CLAUDE_CODE_OAUTH_TOKEN", "fake");
    let ran = client.crew(&["run", "Build it", "-n3"]);
    assert_repeated(&sandbox, &ran, &api);
}

fn denied_tools_with_nothing_changed_block_the_run_and_are_named(installed: &Installed) {
    let sandbox = Sandbox::new();
    let call = Reply::bash("python3 -c 'print(1)'");
    let api = Api::scripted([call.then(Reply::text("I may not.")), Reply::text("Never asked.")]);
    let ran = client(installed, &sandbox, &api).crew(&["run", "Compute it"]);
    assert_ended(&sandbox, &ran, 13, "blocked", 1);
    let why = the_loop(&sandbox)["why"].as_str().unwrap().to_owned();
    assert!(why.contains("Bash") && why.contains("--permissions"), "{why}");
    assert!(ran.stdout.contains(&why), "{ran:#?}");
    assert_eq!(api.main_requests().len(), 2);
}

fn an_agent_that_may_edit_may_run_exactly_the_commands_of_the_checks(installed: &Installed) {
    let sandbox = Sandbox::new();
    sandbox.write("check.sh", "echo \"ran $*\" >> ran.txt\n");
    let checks = [
        "sh check.sh",
        "sh check.sh \"a, b\" 'it'",
        "cd . && sh check.sh cd",
        "sh check.sh x >> y",
    ];
    let others = ["sh check.sh more", "sh other.sh", "cd . && sh check.sh cd; sh check.sh end"];
    let call = |run: &&str| Reply::bash(run);
    let calls: Vec<Reply> = checks.iter().chain(&others).map(call).collect();
    let last = Reply::text("Those are all.");
    let reply = calls.into_iter().rev().fold(last, |after, call| call.then(after));
    let api = Api::scripted([reply]);
    let mut arguments = vec!["run", "Check it", "-n1"];
    arguments.extend(checks.iter().flat_map(|run| ["--until", *run]));
    arguments.extend(["--until", "false"]);
    let ran = client(installed, &sandbox, &api).crew(&arguments);
    let lines = log(&sandbox, 1);
    let result = lines.iter().find(|line| line["type"] == "result").unwrap();
    let denied = result["permission_denials"].as_array().map(Vec::len);
    assert_eq!(denied, Some(others.len()), "{result:#}");
    let did = std::fs::read_to_string(sandbox.file("ran.txt")).unwrap();
    let once = "ran \nran a, b it\nran cd\nran x\n";
    assert_eq!(did, once.repeat(3), "crew, the agent, and crew again: {ran:#?}");
}

fn the_plugin_in_the_clients_home_changes_no_request_and_finds_no_loop(installed: &Installed) {
    let asked = |has_plugin: bool| {
        let sandbox = Sandbox::new();
        let api = Api::scripted((1..=9).map(mixed));
        let client = client(installed, &sandbox, &api);
        if has_plugin {
            client.crew(&["install"]).success();
        }
        let ran = client.crew(&["run", "Write lines", "-n3", "--permissions", "bypass"]);
        assert_ended(&sandbox, &ran, 10, "exhausted", 3);
        let init = log(&sandbox, 1).into_iter().find(|line| line["subtype"] == "init").unwrap();
        let named = |plugin: &Value| plugin["name"] == "crew";
        assert_eq!(init["plugins"].as_array().unwrap().iter().any(named), has_plugin);
        for folder in ["sessions", "wakes"] {
            let files = std::fs::read_dir(sandbox.crew_home().join(folder));
            assert_eq!(files.into_iter().flatten().count(), 0, "{folder}");
        }
        let story = sandbox.crew(&["show"]).success();
        assert_eq!(story.matches("; run by ").count(), 0, "{story}");
        let root = sandbox.root().display().to_string();
        let head = sandbox.git(&["rev-parse", "--short", "HEAD"]);
        let asked = api.main_requests().into_iter().map(|request| {
            let tools = request.body["tools"].as_array().unwrap().iter();
            let tools: Vec<String> = tools.map(|tool| tool["name"].to_string()).collect();
            (request.conversation().replace(&root, "ROOT").replace(&head, "HEAD"), tools)
        });
        asked.collect::<Vec<_>>()
    };
    let (without, with) = (asked(false), asked(true));
    assert_eq!(without.len(), 6);
    for (without, with) in without.iter().zip(&with) {
        assert_similar(&without.0, &with.0);
        assert_eq!(without.1, with.1);
    }
    assert_eq!(without.len(), with.len());
}

/// Asserts that two texts are equal except for measured times and ids.
#[track_caller]
fn assert_similar(one: &str, other: &str) {
    let plain = |line: &str| line.replace(|letter: char| letter.is_ascii_digit(), "");
    assert_eq!(one.lines().count(), other.lines().count(), "{one}\n---\n{other}");
    for (one, other) in one.lines().zip(other.lines()) {
        assert_eq!(plain(one), plain(other));
    }
}

fn the_client_gets_no_mark_of_a_nested_session_and_crew_inside_it_can_only_narrow(
    installed: &Installed,
) {
    let sandbox = Sandbox::new();
    let nested = "\"$CREW_BIN\" run 'a loop in the loop'; \"$CREW_BIN\" set -n 99; echo over";
    let api = Api::scripted([Reply::bash(nested).then(Reply::text("Refused."))]);
    let ran = client(installed, &sandbox, &api)
        .env("CLAUDE_CODE_SESSION_ID", "of-another")
        .env("CLAUDE_PLUGIN_ROOT", "/of/another")
        .env("CLAUDE_CODE_ENTRYPOINT", "cli")
        .crew(&["run", "Build it", "-n1", "--permissions", "bypass"]);
    assert_ended(&sandbox, &ran, 10, "exhausted", 1);
    let environment = std::fs::read_to_string(sandbox.root().join("environment")).unwrap();
    let has = |line: &str| environment.lines().any(|it| it == line);
    let id = the_loop(&sandbox)["id"].as_str().unwrap().to_owned();
    assert!(has(&format!("CREW_LOOP={id}")) && has("CREW_ITERATION=1"), "{environment}");
    for name in ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PLUGIN_ROOT"] {
        assert!(!environment.contains(&format!("{name}=")), "{name}\n{environment}");
    }
    let shown = api.main_requests()[1].newest();
    assert!(shown.contains("an agent cannot start a loop"), "{shown}");
    assert!(shown.contains("an agent cannot raise a limit"), "{shown}");
}

fn a_refused_key_blocks_the_run(installed: &Installed) {
    let sandbox = Sandbox::new();
    let refused = Reply::error(401, "authentication_error", "invalid x-api-key").no_retry();
    let api = Api::scripted([Reply::text("Working on it."), refused]);
    let ran = client(installed, &sandbox, &api).crew(&["run", "Build it"]);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    let ended = the_loop(&sandbox);
    assert_eq!(ended["outcome"], "blocked");
    let why = ended["why"].as_str().unwrap();
    assert!(why.contains("API key"), "{why}");
    assert!(ran.stdout.contains("crew resume "), "{ran:#?}");
    assert_eq!(api.main_requests().len(), 2);
}

fn the_next_iteration_continues_an_answer_truncated_by_the_token_limit(installed: &Installed) {
    let sandbox = Sandbox::new();
    // After three attempts of its own the client gives up.
    let cut = |number: u32| {
        let part = format!("Part {number}.\n<promise>COMPLETE</promise>");
        Reply::text(&part).stop_reason("max_tokens")
    };
    let whole = Reply::text("Whole.\n<promise>COMPLETE</promise>");
    let api = Api::scripted((1..=4).map(cut).chain([whole]));
    let ran = client(installed, &sandbox, &api).crew(&["run", "Write it"]);
    assert_ended(&sandbox, &ran, 0, "completed", 2);
    let requests = api.main_requests();
    assert_eq!(requests.len(), 5);
    let shown = requests[4].newest();
    let carry_on = "The answer was truncated by the token limit; its changes are kept.";
    assert!(shown.contains(carry_on) && shown.contains("This is iteration 2 of 10."), "{shown}");
    assert!(!shown.contains("counts as a failure"), "{shown}");
}

fn reaching_the_limit_on_turns_ends_an_iteration_without_a_failure(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::answering(|_| Some(Reply::bash("date >> work.txt").and_text("More.")));
    let folder = sandbox.home().join(".config/crew");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "loop.max_turns = 2\n").unwrap();
    let arguments = ["run", "Work on it", "-n4", "--failure-threshold", "2", "--permissions"];
    let arguments = [&arguments[..], &["bypass"]].concat();
    let ran = client(installed, &sandbox, &api).crew(&arguments);
    assert_ended(&sandbox, &ran, 10, "exhausted", 4);
    assert_eq!(api.main_requests().len(), 8);
    let started = std::fs::read_to_string(sandbox.root().join("started")).unwrap();
    assert_eq!(started.lines().filter(|line| line.contains("--max-turns 2")).count(), 4);
    assert_eq!(the_loop(&sandbox)["consecutive_failures"], 0);
}
