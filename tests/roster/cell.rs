//! One cell of the table: a scenario under `crew run` with one agent, and its result.

use std::process::Command;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::agent::{Agent, note};
use super::recording;
use super::scenario::{Scenario, reset};
use crate::client::{Api, ReportedUse, Tokens};
use crate::sandbox::Sandbox;
use crate::spawned::{Ran, Running};

/// The longest time that a cell may take; a run that is still at work then is cancelled, and the
/// row says so.
const DEADLINE: Duration = Duration::from_secs(300);
/// The time for a cancelled run to end.
const END: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
/// The idle timeout for an agent; no answer of the scenarios takes as long.
const IDLE: &str = "240s";
/// The value of a cell that is exact except for the cost of titles, which is not reported.
pub(super) const EXCEPT_TITLES: &str = "exact except titles";
const TASK: &str = "Do the job of the script.";

/// The result of a cell.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) scenario: &'static str,
    /// How it ended: `completed checked`, `waits`, `not over`.
    pub(super) end: String,
    pub(super) exit: Option<i32>,
    pub(super) iterations: u64,
    pub(super) failures: u64,
    /// The tokens: `exact`, `nothing`, `untold`, or the two sums that differ.
    pub(super) tokens: String,
    /// The cost: `exact`, `-` if there is none, or the two sums that differ.
    pub(super) cost: String,
    /// The time of the next start of a loop that waits.
    pub(super) next: String,
    pub(super) requests: usize,
    pub(super) seconds: u64,
    pub(super) why: String,
}

pub(super) fn run(agent: &Agent, scenario: &'static Scenario) -> Row {
    let sandbox = Sandbox::new();
    let mut replies = (scenario.replies)(&sandbox.file("made.txt"));
    replies.reverse();
    let api = Api::answering(move |_| {
        let last = replies.len() == 1;
        if last { replies.last().cloned() } else { replies.pop() }
    });
    let began = Instant::now();
    let running = start(agent, scenario, &sandbox, &api);
    let mut end = None;
    let mut signal = scenario.signal;
    while end.is_none() && !running.has_ended() {
        std::thread::sleep(POLL);
        if let Some(signal) = signal.take_if(|_| !api.main_requests().is_empty()) {
            interrupt(&sandbox, signal);
        }
        if !scenario.is_patient && running.stdout().contains("Waiting until") {
            end = Some("waits");
        } else if began.elapsed() > DEADLINE {
            end = Some("not over");
        }
    }
    let seconds = began.elapsed().as_secs();
    let next = end.and_then(|_| due(&sandbox)).map(ahead);
    if end.is_some() {
        sandbox.crew(&["cancel"]);
    }
    let ran = running.wait(END);
    recording::keep(agent, scenario, &sandbox, &api);
    let shown = the_loop(&sandbox, &ran);
    Row {
        scenario: scenario.name,
        end: end.map_or_else(|| ended(&shown), str::to_owned),
        exit: ran.status.code().filter(|_| end.is_none()),
        iterations: shown["completed_iterations"].as_u64().unwrap_or_default(),
        failures: shown["consecutive_failures"].as_u64().unwrap_or_default(),
        tokens: tokens(&shown["usage"], api.reported()),
        cost: cost(agent, &shown["usage"], api.reported()),
        next: next.unwrap_or_else(|| "-".to_owned()),
        requests: api.main_requests().len(),
        seconds,
        why: why(&ran.stdout, &shown),
    }
}

fn start(agent: &Agent, scenario: &Scenario, sandbox: &Sandbox, api: &Api) -> Running {
    let mut command = Command::new(sandbox.build().path());
    command.env_clear().envs(agent.settle(sandbox, api)).current_dir(sandbox.repository());
    command.args(["run", TASK, "--agent", agent.name, "--idle-timeout", IDLE]);
    if !scenario.arguments.contains(&"--permissions") {
        command.args(["--permissions", "bypass"]);
    }
    command.args(scenario.arguments);
    Running::start(command, None)
}

/// Sends a signal to all of the agent's group: some agents are a launcher and its child, and the
/// launcher survives.
fn interrupt(sandbox: &Sandbox, signal: Signal) {
    let noted = std::fs::read_to_string(note(sandbox)).unwrap();
    let pid = Pid::from_raw(noted.trim().parse().unwrap()).unwrap();
    kill_process_group(pid, signal).unwrap();
}

/// The loop in `crew status --json`; a refused run has none.
pub(super) fn the_loop(sandbox: &Sandbox, ran: &Ran) -> Value {
    let shown = sandbox.crew(&["status", "--all", "--json"]).success();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    shown["loops"].get(0).cloned().unwrap_or_else(|| panic!("no loop: {ran:#?}"))
}

fn ended(shown: &Value) -> String {
    let words = [&shown["outcome"], &shown["proof"]].map(|word| word.as_str().unwrap_or_default());
    words.join(" ").trim().to_owned()
}

/// When the only loop tries again.
fn due(sandbox: &Sandbox) -> Option<DateTime<Utc>> {
    let loops = std::fs::read_dir(sandbox.crew_home().join("loops")).ok()?;
    let record = std::fs::read(loops.flatten().next()?.path().join("loop.json")).ok()?;
    let record: Value = serde_json::from_slice(&record).ok()?;
    record["state"]["due"].as_str()?.parse().ok()
}

/// The time until then, in minutes. `the reset` is that of the plan's limit, give or take the
/// minute that its text leaves open and the spread of a return.
fn ahead(due: DateTime<Utc>) -> String {
    let late = (due - reset()).num_seconds();
    if (-60..=120).contains(&late) {
        return "the reset".to_owned();
    }
    format!("{} min", ((due - Utc::now()).num_seconds() + 30) / 60)
}

/// crew's sums compared with those of the server.
pub(super) fn tokens(usage: &Value, shown: ReportedUse) -> String {
    let number = |name: &str| usage["tokens"][name].as_u64().unwrap_or_default();
    let ours = Tokens {
        input: number("input") + number("cache_write") + number("cache_write_hour"),
        cached: number("cache_read"),
        output: number("output"),
    };
    let all = shown.main + shown.side;
    let sum = |it: Tokens| format!("{}+{}+{}", it.input, it.cached, it.output);
    if ours == Tokens::default() {
        return if shown.main == ours { "nothing" } else { "untold" }.to_owned();
    }
    match ours {
        ours if ours == all => "exact".to_owned(),
        ours if ours == shown.main => EXCEPT_TITLES.to_owned(),
        ours => format!("{} of {}", sum(ours), sum(all)),
    }
}

/// crew's cost compared with the server's tokens at the agent's own prices.
#[expect(clippy::cast_precision_loss, reason = "a few thousand tokens")]
fn cost(agent: &Agent, usage: &Value, shown: ReportedUse) -> String {
    let ours = usage["cost_usd"].as_f64().unwrap_or_default();
    let (input, cached, output) = agent.prices.unwrap_or_default();
    let of = |it: Tokens| {
        let parts = [(it.input, input), (it.cached, cached), (it.output, output)];
        parts.iter().map(|(tokens, price)| *tokens as f64 * price / 1e6).sum::<f64>()
    };
    let is = |sum: f64| (ours - sum).abs() < 1e-6;
    if is(of(shown.main)) || is(of(shown.main + shown.side)) {
        return if ours == 0.0 { "-" } else { "exact" }.to_owned();
    }
    format!("${ours:.4} of ${:.4}", of(shown.main))
}

/// The last reported reason: of a wait, otherwise of the end.
fn why(stdout: &str, shown: &Value) -> String {
    let wait = stdout.lines().rev().find(|line| line.contains("Waiting until"));
    let why = wait.or(shown["why"].as_str()).unwrap_or_default();
    why.chars().take(150).collect()
}
