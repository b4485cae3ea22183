//! Agents beside the loop's own: a fork of its session, a subagent, and the agent that calls crew
//! itself.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::{await_loop, await_outcome, newest, said, work};
use crate::client::{Api, Client, Installed, Reply, on_both_clients, on_both_terminals};
use crate::sandbox::{Sandbox, crew};

on_both_clients!(
    a_fork_of_a_session_with_a_loop_has_no_loop,
    an_agent_that_calls_crew_may_narrow_its_loop_and_never_widen_it,
);

on_both_terminals!(a_subagent_that_ends_neither_hangs_the_loop_nor_counts_as_an_iteration);

fn a_fork_of_a_session_with_a_loop_has_no_loop(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::answering(|request| {
        Some(if request.newest().contains("how are you") {
            Reply::text("Well, thank you.")
        } else if request.newest().contains("iteration 2") {
            // A client that is ended ends the command and asks once more.
            let never = Reply::text("Never said.").after(Duration::from_secs(60));
            Reply::bash("while test -d ~; do sleep 1; done").then(never)
        } else {
            work(1)
        })
    });
    let prompt = "/crew:loop \"Build it\" --stall 0 -n 9";
    let first = Client::new(installed, &sandbox, &api).prompt(prompt).start();
    let running = await_loop(&sandbox, "the second iteration runs", |it| it["iteration"] == 2);
    let session = running["owner"]["session_id"].as_str().unwrap().to_owned();
    let fork_and_greet = || {
        let fork = Client::new(installed, &sandbox, &api).prompt("how are you?");
        let fork = fork.arguments(&["--resume", &session, "--fork-session"]).run();
        assert_eq!(fork.result(), "Well, thank you.", "{fork:#?}");
        assert_ne!(fork.id(), session);
        let requests = api.main_requests();
        requests.iter().filter(|request| request.newest().contains("how are you")).count()
    };
    assert_eq!(fork_and_greet(), 1);
    let beside = newest(&sandbox);
    assert_eq!((&beside["status"], &beside["owner"]), (&"running".into(), &running["owner"]));
    first.running.signal(Signal::TERM);
    first.wait();
    assert_eq!(await_outcome(&sandbox, "interrupted")["completed_iterations"], 1);
    assert_eq!(fork_and_greet(), 2);
    let after = newest(&sandbox);
    assert_eq!((&after["outcome"], &after["owner"]), (&"interrupted".into(), &running["owner"]));
}

fn a_subagent_that_ends_neither_hangs_the_loop_nor_counts_as_an_iteration(installed: &Installed) {
    let sandbox = Sandbox::new();
    let mut asked = 0;
    let api = Api::answering(move |request| {
        if request.is_of_a_subagent() {
            return Some(Reply::text("Seven files.").after(Duration::from_secs(4)));
        }
        asked += 1;
        Some(match asked {
            1 => Reply::agent("Count the files.").then(Reply::text("A subagent counts them.")),
            number => said(number),
        })
    });
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 3");
    terminal.enter();
    // The older client's agent waits for its subagent, the newer one's stops meanwhile.
    let stops_meanwhile = installed.version == "2.1.330";
    if stops_meanwhile {
        terminal.wait_for_text("waits for background work");
        let held = newest(&sandbox);
        assert_eq!((&held["iteration"], &held["completed_iterations"]), (&1.into(), &0.into()));
    }
    let ended = await_outcome(&sandbox, "exhausted");
    assert_eq!(ended["completed_iterations"], 3);
    let requests = api.main_requests();
    let subagents = requests.iter().filter(|request| request.is_of_a_subagent()).count();
    assert_eq!(subagents, 1);
    assert_eq!(requests.len() - subagents, 4 + usize::from(stops_meanwhile));
    let shown = requests.iter().any(|request| request.newest().contains("Seven files."));
    assert!(shown, "the subagent's report never came");
}

fn journal(sandbox: &Sandbox, id: &Value) -> String {
    let folder = sandbox.crew_home().join("loops").join(id.as_str().unwrap());
    std::fs::read_to_string(folder.join("journal.jsonl")).unwrap()
}

fn an_agent_that_calls_crew_may_narrow_its_loop_and_never_widen_it(installed: &Installed) {
    let sandbox = Sandbox::new();
    sandbox.program("crew", &format!("exec '{}' \"$@\"", crew().display()));
    let orders = "crew set -n 50; echo \"set: $?\"; crew set --stall 0; echo \"stall: $?\"; \
                  crew tell 'be quick'; echo \"tell: $?\"; crew resume; echo \"resume: $?\"; \
                  crew trust; echo \"trust: $?\"; \
                  crew set -n 4; echo \"lower: $?\"; crew handoff 'Half is done.'; echo \"page: $?\"";
    let api = Api::scripted([
        Reply::bash(orders).then(said(1)),
        Reply::bash("crew cancel --reason 'out of ideas'").then(said(2)),
    ]);
    let prompt = "/crew:loop \"Build it\" -n 9";
    Client::new(installed, &sandbox, &api).prompt(prompt).run();
    let requests = api.main_requests();
    assert_eq!((requests.len(), api.overruns()), (4, 0));
    let shown = requests[1].newest();
    for expected in [
        "an agent cannot raise a limit of loop",
        "hint: a person can, in their own terminal",
        "set: 1",
        "stall: 1",
        "an agent cannot send a message to a loop, neither to its own nor to another",
        "tell: 1",
        "crew: an agent cannot resume a loop",
        "resume: 1",
        "only a person can trust a project's commands",
        "trust: 1",
        "up to 4 iterations",
        "lower: 0",
        "page: 0",
    ] {
        assert!(shown.contains(expected), "no {expected:?}: {shown}");
    }
    assert!(requests[2].newest().contains("iteration 2 of 4"), "{}", requests[2].newest());
    let ended = newest(&sandbox);
    assert_eq!(ended["outcome"], "cancelled");
    assert_eq!(ended["why"], "cancelled by the agent: out of ideas");
    assert_eq!(ended["completed_iterations"], 1);
    let journal = journal(&sandbox, &ended["id"]);
    for expected in ["limits set by the agent", "handoff written by the agent"] {
        assert_eq!(journal.matches(expected).count(), 1, "{expected}: {journal}");
    }
    let handoffs = std::fs::read_dir(sandbox.file(".claude/branches/main/handoffs")).unwrap();
    assert_eq!(handoffs.count(), 2);
}
