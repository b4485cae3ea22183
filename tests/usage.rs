//! crew's count compared with the real client's own report of a session's cost.

use std::time::Duration;

use serde_json::Value;

use crate::client::{Api, Client, Installed, Reply, on_both_clients};
use crate::sandbox::Sandbox;

on_both_clients!(
    the_cost_and_tokens_of_five_iterations_match_the_client_and_the_script,
    a_limit_on_cost_ends_a_loop_at_the_first_boundary_past_it,
    the_usage_of_the_clients_own_agents_is_counted,
    every_price_is_the_clients_own,
);

fn the_loop(sandbox: &Sandbox) -> Value {
    let shown = sandbox.crew(&["status", "--all", "--json"]).success();
    serde_json::from_str::<Value>(&shown).unwrap()["loops"][0].clone()
}

#[track_caller]
fn assert_same_cost(ours: &Value, theirs: f64, of: &str) {
    let ours = ours["usage"]["cost_usd"].as_f64().unwrap();
    assert!((ours - theirs).abs() < 1e-9, "{of}: ours is {ours}, the client's {theirs}");
}

/// The cost that the client reported when the prompt of this number was answered.
fn cost(session: &crate::client::Session, prompt: usize) -> f64 {
    session.results()[prompt]["total_cost_usd"].as_f64().unwrap()
}

/// One iteration: a tool call and the answer to its result, each with different numbers.
fn mixed(number: u64) -> Reply {
    let hour = serde_json::json!({
        "ephemeral_1h_input_tokens": 100 * number, "ephemeral_5m_input_tokens": 30 * number,
    });
    let call =
        Reply::thinking("a thought").and_text("I will write.").and_bash("echo line >> work.txt");
    let call = call
        .usage(1_001 * number, 211 * number)
        .begun_with(1)
        .used("cache_creation_input_tokens", 130 * number)
        .used("cache_creation", hour)
        .used("cache_read_input_tokens", 70_000 * number);
    let said = Reply::text(&format!("Line {number}.")).and_text(&format!("Done with {number}."));
    let said = said.usage(3, 17 * number).begun_with(2).used("cache_creation_input_tokens", 5);
    call.then(said)
}

fn the_cost_and_tokens_of_five_iterations_match_the_client_and_the_script(installed: &Installed) {
    let sandbox = Sandbox::new();
    let before = Reply::text("Hello.").usage(90_000, 9_000);
    let api = Api::scripted([before].into_iter().chain((1..=9).map(mixed)));
    let session = Client::new(installed, &sandbox, &api)
        .prompt("hello")
        .prompt("/crew:loop \"Write lines\" --max-iterations 5")
        .run();
    let ended = the_loop(&sandbox);
    assert_eq!(ended["completed_iterations"], 5, "{ended:#}");
    let tokens = &ended["usage"]["tokens"];
    let sum = 15;
    assert_eq!(tokens["input"], 1_001 * sum + 3 * 5, "{ended:#}");
    assert_eq!(tokens["output"], (211 + 17) * sum, "{ended:#}");
    assert_eq!(tokens["cache_write"], 30 * sum + 5 * 5, "{ended:#}");
    assert_eq!(tokens["cache_write_hour"], 100 * sum, "{ended:#}");
    assert_eq!(tokens["cache_read"], 70_000 * sum, "{ended:#}");
    assert_same_cost(&ended, cost(&session, 1) - cost(&session, 0), "five iterations");
    assert_eq!(ended["usage"]["is_lower_bound"], false);
    let page = sandbox.crew(&["status"]).success();
    let cost = cost(&session, 1) - cost(&session, 0);
    let spent = format!(" · ${cost:.2} · 1M tokens\n");
    assert!(page.contains(&spent), "{spent}{page}");
}

fn a_limit_on_cost_ends_a_loop_at_the_first_boundary_past_it(installed: &Installed) {
    let sandbox = Sandbox::new();
    // A million tokens of input cost at least 4 dollars, so each of these at least 0.40.
    let work = |number: u64| {
        let call = Reply::bash("echo line >> work.txt").usage(50_000, 1);
        call.then(Reply::text(&format!("Line {number}.")).usage(50_000, 1))
    };
    let api = Api::scripted((1..=9).map(work));
    let prompt = "/crew:loop \"Write lines\" --max-cost 0.75";
    let session = Client::new(installed, &sandbox, &api).prompt(prompt).run();
    let ended = the_loop(&sandbox);
    let outcome = (&ended["outcome"], &ended["completed_iterations"]);
    assert_eq!(outcome, (&"exhausted".into(), &2.into()), "{ended:#}");
    let why = ended["why"].as_str().unwrap();
    assert!(why.starts_with("the cost limit of $0.75 is reached: $"), "{why}");
    assert_same_cost(&ended, cost(&session, 0), "a limit");
    assert_eq!(api.main_requests().len(), 4);
}

fn the_usage_of_the_clients_own_agents_is_counted(installed: &Installed) {
    let sandbox = Sandbox::new();
    let mut asked = 0;
    let api = Api::answering(move |request| {
        if request.newest().contains("the part of an agent") {
            // The newer client's agent works in the background. Were it done before the turn that
            // started it, its news could begin a turn after the loop's end, which is not counted.
            let part = Reply::text("The part is done.").usage(10_007, 103);
            return Some(part.after(Duration::from_secs(3)));
        }
        asked += 1;
        Some(match asked {
            1 => Reply::agent("the part of an agent").usage(1_009, 11),
            number => Reply::text(&format!("Heard of it, {number}.")).usage(5, 1),
        })
    });
    let prompt = "/crew:loop \"Have it done\" --max-iterations 3 --stall 0";
    let session = Client::new(installed, &sandbox, &api).prompt(prompt).run();
    let ended = the_loop(&sandbox);
    let said = session.results().len();
    assert_eq!(ended["completed_iterations"], 3, "{ended:#}");
    assert_same_cost(&ended, cost(&session, said - 1), "agents");
    assert!(ended["usage"]["tokens"]["input"].as_u64().unwrap() > 11_016, "{ended:#}");
}

/// Models at each kind of price that both clients know. The older client charges models it does not
/// know at another model's price.
const BOTH: [&str; 4] = [
    "claude-haiku-4-5-20251001",
    "claude-sonnet-4-5-20250929",
    "claude-opus-4-1-20250805",
    "claude-opus-4-8",
];
/// The other rows of the table, for the newer client.
const NEWER: [&str; 20] = [
    "claude-3-5-haiku-20241022",
    "claude-haiku-5-5",
    "claude-3-5-sonnet-20241022",
    "claude-3-7-sonnet-20250219",
    "claude-sonnet-4-20250514",
    "claude-sonnet-4-6",
    "claude-sonnet-5",
    "claude-sonnet-5-5",
    "claude-opus-4-20250514",
    "claude-opus-4-5-20251101",
    "claude-opus-4-6",
    "claude-opus-4-7",
    "claude-opus-5",
    "claude-opus-5-5",
    "claude-fable-5",
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-mythos-5",
    "claude-mythos-5-1",
    "claude-mythos-5-2",
];

/// An iteration of eight messages: one of each kind of token alone, one in fast mode, one that is
/// long, and one with what only the newer client prices.
fn of_every_kind(is_newer: bool) -> Reply {
    let written = |name: &str, count: u64| {
        let mut parts = serde_json::json!({});
        parts[name] = count.into();
        let call = Reply::bash("true").usage(0, 0);
        call.used("cache_creation_input_tokens", count).used("cache_creation", parts)
    };
    let fast = Reply::bash("true").usage(10_007, 1_013).used("speed", "fast");
    let long = Reply::bash("true").usage(110_003, 1_009);
    let mut last = Reply::text("Done.").usage(1_021, 0);
    if is_newer {
        let searches = serde_json::json!({"web_search_requests": 3, "web_fetch_requests": 1});
        last = last.used("inference_geo", "us").used("server_tool_use", searches);
    }
    let messages = [
        Reply::bash("true").usage(20_011, 0),
        Reply::bash("true").usage(0, 30_011),
        Reply::bash("true").usage(0, 0).used("cache_read_input_tokens", 70_001),
        written("ephemeral_5m_input_tokens", 40_009),
        written("ephemeral_1h_input_tokens", 50_021),
        fast,
        long,
    ];
    messages.into_iter().rev().fold(last, |then, message| message.then(then))
}

fn every_price_is_the_clients_own(installed: &Installed) {
    let is_newer = installed.version == "2.1.330";
    let newer = NEWER.iter().filter(|_| is_newer);
    for model in BOTH.iter().chain(newer) {
        let sandbox = Sandbox::new();
        let api = Api::scripted([of_every_kind(is_newer)]);
        let session = Client::new(installed, &sandbox, &api)
            .prompt("/crew:loop \"Count\" --max-iterations 1 --stall 0")
            // Otherwise the client answers for the oldest models with its newest.
            .env("CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP", "1")
            .arguments(&["--model", model])
            .run();
        assert_eq!(api.main_requests()[0].body["model"], *model);
        assert_same_cost(&the_loop(&sandbox), cost(&session, 0), model);
    }
}
