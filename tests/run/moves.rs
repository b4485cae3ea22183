//! A loop that moves: from a session of the real client into fresh processes, and back. Its
//! counters, its evidence and its costs go with it; its former owner is informed, and no longer
//! affects it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{assert_ended, the_loop};
use crate::client::{Api, Client, Installed, Reply, Request, on_both_clients, on_both_terminals};
use crate::sandbox::{Sandbox, checkout, poll_until};

on_both_terminals!(a_session_loop_paused_at_iteration_4_of_15_ends_at_15_in_fresh_processes);
on_both_clients!(
    a_paused_run_continues_in_a_session_with_its_counters,
    a_loop_whose_session_has_ended_continues_detached_and_completes,
    a_procedure_cannot_be_resumed_in_a_session,
);

/// A client with this checkout's plugin, and with permission to run its tools.
fn client<'world>(
    installed: &'world Installed,
    sandbox: &'world Sandbox,
    api: &Api,
) -> Client<'world> {
    Client::new(installed, sandbox, api).plugin(checkout())
}

/// An iteration that writes a line and uses 1,100 tokens of input and 30 of output.
fn work(number: u32) -> Reply {
    let call = Reply::bash("echo line >> work.txt").usage(1_000, 20);
    call.then(Reply::text(&format!("Wrote line {number}.")).usage(100, 10))
}

#[track_caller]
fn assert_used(record: &Value, iterations: u64) {
    let tokens = &record["usage"]["tokens"];
    let used = (tokens["input"].as_u64(), tokens["output"].as_u64());
    assert_eq!(used, (Some(1_100 * iterations), Some(30 * iterations)), "{record:#}");
    assert_eq!(record["usage"]["is_lower_bound"], false);
}

/// Works without end. The iteration number `held` is answered when the test allows it.
fn held_at(held: u32) -> (Api, Sender<()>) {
    let (go_on, reported): (Sender<()>, Receiver<()>) = channel();
    let mut asked = 0;
    let api = Api::answering(move |request| {
        if request.newest().contains("Just say hello.") {
            return Some(Reply::text("Hello."));
        }
        asked += 1;
        if asked == held {
            reported.recv_timeout(Duration::from_secs(60)).ok();
        }
        // Long enough for the former owner to stop in the meantime.
        let is_first_of_the_next = asked == held + 1;
        let wait = Duration::from_secs(if is_first_of_the_next { 4 } else { 0 });
        Some(work(asked).after(wait))
    });
    (api, go_on)
}

#[track_caller]
fn await_state(sandbox: &Sandbox, expected: &str, is_so: impl Fn(&Value) -> bool) {
    let newest = || {
        let reported = sandbox.crew(&["status", "--all", "--json"]).success();
        serde_json::from_str::<Value>(&reported).unwrap()["loops"][0].clone()
    };
    poll_until(expected, || is_so(&newest()));
}

fn a_session_loop_paused_at_iteration_4_of_15_ends_at_15_in_fresh_processes(installed: &Installed) {
    let sandbox = Sandbox::new();
    let (api, go_on) = held_at(4);
    let terminal = client(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Write lines\" --stall 0 -n 15");
    terminal.enter();
    await_state(&sandbox, "iteration 4", |it| it["iteration"] == 4);

    let crew = client(installed, &sandbox, &api);
    let id = the_loop(&sandbox)["id"].as_str().unwrap().to_owned();
    let refused = crew.crew(&["resume"]);
    assert_eq!(refused.code(), 1, "{refused:#?}");
    let reported = format!("crew: loop {id} is running in session ");
    assert!(refused.stderr.starts_with(&reported), "{refused:#?}");
    assert!(refused.stderr.contains(&format!("hint: crew pause {id} or crew cancel {id} first")));

    let reported = sandbox.crew(&["pause"]).success();
    assert!(reported.contains("pauses when its turn ends; iteration 4 runs again"), "{reported}");
    go_on.send(()).unwrap();
    await_state(&sandbox, "the loop is paused", |it| it["status"] == "paused");
    let paused = the_loop(&sandbox);
    let done = paused["completed_iterations"].as_u64().unwrap();
    // A session's stop that pauses is not an iteration: the fourth is started again. Its usage is
    // counted.
    assert_eq!((done, &paused["iteration"]), (3, &json!(4)));
    assert_used(&paused, 4);

    let running = crew.start_crew(&["resume", "--permissions", "bypass"]);
    await_state(&sandbox, "a process owns it", |it| it["driver"] == "process");
    terminal.type_text("Just say hello.");
    terminal.enter();
    terminal.wait_for_text("Hello.");
    let meanwhile = the_loop(&sandbox);
    assert_eq!(meanwhile["completed_iterations"], done, "the stop of the session was counted");
    let ran = running.wait(Duration::from_secs(120));
    assert_ended(&sandbox, &ran, 10, "exhausted", 15);
    terminal.type_text("Just say hello. And again.");
    terminal.enter();
    let greeted = || {
        let asked = api.main_requests();
        asked.iter().filter(|request| request.newest().contains("Just say hello.")).count()
    };
    poll_until("the session is answered", || greeted() == 2);

    let ended = the_loop(&sandbox);
    assert_eq!(
        (&ended["completed_iterations"], &ended["outcome"]),
        (&15.into(), &json!("exhausted"))
    );
    assert_used(&ended, api.main_requests().len() as u64 / 2 - 1);
    let asked: Vec<String> = api.main_requests().iter().map(Request::newest).collect();
    let fresh: Vec<&String> = asked.iter().filter(|it| it.contains("# Loop Iteration")).collect();
    assert!(fresh[0].contains(&format!("This is iteration {} of 15.", done + 1)), "{}", fresh[0]);
    assert!(fresh[0].contains("(crew's own record)\n\nFrom /"), "{}", fresh[0]);
    assert!(fresh[0].contains(&format!("Loop {id}: ")), "{}", fresh[0]);
    assert!(fresh[1..].iter().all(|it| !it.contains("\n\nFrom /")));
    assert_drivers(&sandbox, ["session", "process"]);
}

/// Asserts that `crew show` names both owners, in this order.
#[track_caller]
fn assert_drivers(sandbox: &Sandbox, expected: [&str; 2]) {
    let page = sandbox.crew(&["show"]).success();
    let owners = page.lines().find(|line| line.starts_with("  run by ")).unwrap();
    let reported =
        expected.map(|it| if it == "session" { "session " } else { "fresh processes of crew " });
    let places = reported.map(|it| owners.find(it));
    assert!(places[0].is_some() && places[0] < places[1], "{owners}");
    let story: Value = serde_json::from_str(&sandbox.crew(&["show", "--json"]).success()).unwrap();
    let drivers: Vec<&str> = story["drivers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["driver"].as_str().unwrap())
        .collect();
    assert_eq!(drivers, expected);
}

fn a_paused_run_continues_in_a_session_with_its_counters(installed: &Installed) {
    let sandbox = Sandbox::new();
    let (api, go_on) = held_at(3);
    let arguments = ["run", "Write lines", "--stall", "0", "-n6", "--permissions", "bypass"];
    let running = client(installed, &sandbox, &api).start_crew(&arguments);
    await_state(&sandbox, "iteration 3", |it| it["iteration"] == 3);
    let id = the_loop(&sandbox)["id"].as_str().unwrap().to_owned();
    let resume = || client(installed, &sandbox, &api).prompt("/crew:resume").run();
    let refused = resume();
    let reported = format!(
        "crew: loop {id} is running in crew run, process {}",
        running.pid().as_raw_nonzero()
    );
    assert!(refused.result().contains(&reported), "{}", refused.result());

    sandbox.crew(&["pause"]).success();
    go_on.send(()).unwrap();
    let ran = running.wait(Duration::from_secs(60));
    assert_eq!(ran.code(), 130, "{ran:#?}");
    let paused = the_loop(&sandbox);
    assert_eq!((&paused["status"], &paused["driver"]), (&json!("paused"), &json!("process")));
    assert_eq!(paused["owner_is_gone"], false, "its crew ended in good order");
    let another = client(installed, &sandbox, &api).crew(&["run", "Something else"]);
    assert!(another.stderr.contains(&format!("loop {id} is paused here")), "{another:#?}");
    let done = paused["completed_iterations"].as_u64().unwrap();
    assert_eq!(done, 3);
    assert_used(&paused, 3);

    let session = resume();
    let ended = the_loop(&sandbox);
    assert_eq!(
        (&ended["completed_iterations"], &ended["outcome"]),
        (&6.into(), &json!("exhausted"))
    );
    assert_used(&ended, api.main_requests().len() as u64 / 2);
    let asked: Vec<String> = api.main_requests().iter().map(Request::newest).collect();
    let first = asked.iter().find(|it| it.contains("crew loop ")).unwrap();
    let reported = format!("crew loop {id}: iteration {} of 6.", done + 1);
    assert!(first.contains(&reported), "{first}");
    assert!(first.contains(".claude/branches/main/handoffs/paused-"), "{first}");
    assert!(first.contains("Write lines"), "{first}");
    assert_eq!(session.result(), "Wrote line 6.");
    assert_drivers(&sandbox, ["process", "session"]);
}

fn a_loop_whose_session_has_ended_continues_detached_and_completes(installed: &Installed) {
    let sandbox = Sandbox::new();
    sandbox.write("check.sh", "test -e done\n");
    let mut asked = 0;
    let api = Api::answering(move |_| {
        asked += 1;
        let done = Reply::text("Done.\n<promise>COMPLETE</promise>").usage(100, 10);
        let call = Reply::bash("touch done").usage(1_000, 20);
        Some(match asked {
            1 => work(asked),
            2 => Reply::bash("true").usage(1_000, 20).then(done),
            _ => call.then(done),
        })
    });
    let prompt = "/crew:loop \"Write lines\" -n 2 --verify \"sh check.sh\"";
    let client = client(installed, &sandbox, &api).prompt(prompt);
    let crew = Client::new(installed, &sandbox, &api);
    client.run();
    assert_eq!(the_loop(&sandbox)["outcome"], "exhausted");
    let spent = crew.crew(&["resume"]);
    assert!(spent.stderr.contains("the limit of 2 iterations is reached"), "{spent:#?}");
    assert!(
        spent.stderr.contains("crew resume ") && spent.stderr.contains(" -n +10"),
        "{spent:#?}"
    );

    let reported =
        crew.crew(&["resume", "-n", "+3", "--permissions", "bypass", "--detach"]).success();
    assert!(reported.contains("runs in the background, process "), "{reported}");
    await_state(&sandbox, "the loop is over", |it| it["outcome"] == "completed");
    let ended = the_loop(&sandbox);
    assert_eq!((&ended["completed_iterations"], &ended["proof"]), (&3.into(), &json!("checked")));
    assert_used(&ended, 3);
    let asked = api.main_requests();
    let first = asked[4].newest();
    assert!(first.contains("### What was done") && first.contains("claimed, refused"), "{first}");
    let page = sandbox.crew(&["show"]).success();
    assert!(page.contains("  agent   claude, permissions bypass\n"), "{page}");
}

fn a_procedure_cannot_be_resumed_in_a_session(installed: &Installed) {
    let sandbox = Sandbox::new();
    sandbox.put_crew_on_the_path();
    let api = Api::scripted([]);
    sandbox.program("agent", "cat > prompt; echo Done.");
    let ran = sandbox.crew(&["run", "build", "-n1", "--agent-cmd", "agent"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let view = std::fs::read(sandbox.file(".claude/branches/main/state.json")).unwrap();
    let view: Value = serde_json::from_slice(&view).unwrap();
    let shown = ["procedure", "driver", "sessionId"].map(|key| view["loop"][key].clone());
    assert_eq!(shown, [json!("build"), json!("process"), Value::Null]);
    let page = sandbox.crew(&["status"]).success();
    assert!(page.contains("  then    crew resume "), "{page}");
    let listed = sandbox.crew(&["history"]).success();
    assert!(listed.contains("  procedure build\n"), "{listed}");

    let session = client(installed, &sandbox, &api).prompt("/crew:resume -n +1").run();
    let reported = session.result();
    assert!(reported.contains("runs a procedure, which a session cannot do"), "{reported}");
    assert!(reported.contains("hint: crew resume "), "{reported}");
    assert!(api.main_requests().is_empty());
    assert_eq!(the_loop(&sandbox)["outcome"], "exhausted");
}
