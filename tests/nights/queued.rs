//! crew's commands, typed in the real client while the agent works: each is carried out at the next
//! boundary, once, without a request to the model; a command that the user withdrew is not.

use std::time::Duration;

use serde_json::Value;

use super::{await_loop, newest};
use crate::client::{Api, Client, Installed, Reply, Terminal, on_both_terminals};
use crate::sandbox::{Sandbox, poll_until};

on_both_terminals!(
    commands_typed_in_mid_turn_are_executed_once_at_the_next_boundary,
    commands_typed_during_a_check_are_executed_at_its_boundary_unless_taken_back,
);

/// Iterations that take long enough to type in.
fn slow() -> Api {
    let mut asked = 0;
    Api::answering(move |_| {
        asked += 1;
        Some(Reply::text(&format!("Working on it, {asked}.")).after(Duration::from_secs(5)))
    })
}

fn enter(terminal: &Terminal<'_>, text: &str) {
    terminal.type_text(text);
    terminal.enter();
}

/// Types a command while the agent works; the older client loses input typed before it has queued
/// the last one.
#[track_caller]
fn queue(sandbox: &Sandbox, terminal: &Terminal<'_>, text: &str) {
    enter(terminal, text);
    poll_until(text, || {
        let queued = operations(sandbox);
        queued.iter().any(|it| it["operation"] == "enqueue" && it["content"] == text)
    });
}

/// The queue in the transcript.
fn operations(sandbox: &Sandbox) -> Vec<Value> {
    let folder = sandbox.home().join(".claude/projects");
    let projects = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let files = projects.flat_map(|it| std::fs::read_dir(it).unwrap()).map(|it| it.unwrap().path());
    let text: String = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["type"] == "queue-operation").collect()
}

#[track_caller]
fn await_operations(sandbox: &Sandbox, operation: &str, count: usize) {
    poll_until(&format!("{count} x {operation}"), || {
        operations(sandbox).iter().filter(|it| it["operation"] == operation).count() >= count
    });
}

fn handoffs(sandbox: &Sandbox, kind: &str) -> usize {
    let folder = sandbox.file(".claude/branches/main/handoffs");
    let names = std::fs::read_dir(folder).into_iter().flatten();
    let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(kind)).count()
}

fn commands_typed_in_mid_turn_are_executed_once_at_the_next_boundary(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = slow();
    let terminal = Client::new(installed, &sandbox, &api).open();
    enter(&terminal, "/crew:loop \"Build it\" --stall 0 -n 9");
    await_loop(&sandbox, "the second iteration runs", |it| it["iteration"] == 2);
    queue(&sandbox, &terminal, "/crew:status");
    queue(&sandbox, &terminal, "/crew:handoff review \"the parser is done\"");
    await_loop(&sandbox, "the third iteration runs", |it| it["iteration"] == 3);
    poll_until("the handoff", || handoffs(&sandbox, "review") == 1);
    terminal.wait_for_text("running, iteration 3 of 9");
    queue(&sandbox, &terminal, "/crew:pause");
    let paused = await_loop(&sandbox, "the loop is paused", |it| it["status"] == "paused");
    assert_eq!((&paused["iteration"], api.main_requests().len()), (&3.into(), 3));
    // Now the client delivers all three.
    await_operations(&sandbox, "dequeue", 3);
    terminal.wait_for_text("was paused already, at iteration 3");
    terminal.wait_for_text("/crew:status was answered already, at iteration 2");
    assert_eq!((handoffs(&sandbox, "review"), api.main_requests().len()), (1, 3));
    enter(&terminal, "/crew:resume");
    poll_until("the loop goes on", || api.main_requests().len() == 4);
    queue(&sandbox, &terminal, "/crew:cancel-loop wrong branch");
    let over = await_loop(&sandbox, "the loop is over", |it| it["outcome"] == "cancelled");
    assert_eq!(over["completed_iterations"], 2);
    terminal.wait_for_text("was cancelled already, at iteration 3");
    assert_eq!((handoffs(&sandbox, "cancelled"), api.main_requests().len()), (1, 4));
    enter(&terminal, "crew status");
    terminal.wait_for_text("is over: cancelled after 2 iterations");
    assert_eq!((api.main_requests().len(), api.overruns()), (4, 0));
}

fn commands_typed_during_a_check_are_executed_at_its_boundary_unless_taken_back(
    installed: &Installed,
) {
    let sandbox = Sandbox::new();
    let mut asked = 0;
    let api = Api::answering(move |_| {
        asked += 1;
        Some(Reply::text(&format!("Working on it, {asked}.")))
    });
    // The first check lasts until the test says so, the others for half a minute.
    sandbox.write(
        "check.sh",
        "touch checking\n\
         if test -e second; then sleep 30; else while test ! -e go; do sleep 0.1; done; fi\n\
         touch second; rm checking\n",
    );
    let checking = || sandbox.file("checking").exists();
    let terminal = Client::new(installed, &sandbox, &api).open();
    enter(&terminal, "/crew:loop \"Build it\" --stall 0 -n 9 --gate \"sh check.sh\"");
    poll_until("the first check", checking);
    queue(&sandbox, &terminal, "/crew:pause");
    queue(&sandbox, &terminal, "/crew:cancel-loop");
    terminal.key("Up");
    await_operations(&sandbox, "popAll", 2);
    // Two lines were put back.
    terminal.key("C-u");
    terminal.key("BSpace");
    terminal.key("C-u");
    sandbox.write("go", "");
    let running = await_loop(&sandbox, "the second iteration runs", |it| it["iteration"] == 2);
    assert_eq!(running["status"], "running");
    poll_until("the second check", checking);
    queue(&sandbox, &terminal, "/crew:status");
    queue(&sandbox, &terminal, "/crew:handoff review \"half of it\"");
    // What was taken back is an enqueue of the same words.
    enter(&terminal, "/crew:pause");
    await_operations(&sandbox, "enqueue", 5);
    assert!(checking() && handoffs(&sandbox, "review") == 0);
    await_loop(&sandbox, "the loop is paused", |it| it["status"] == "paused");
    terminal.wait_for_text("was paused already, at iteration 2");
    terminal.wait_for_text("/crew:status was answered already, at iteration 2");
    assert_eq!((newest(&sandbox)["iteration"].clone(), api.main_requests().len()), (2.into(), 2));
    assert_eq!(handoffs(&sandbox, "review"), 1);
    enter(&terminal, "/crew:resume");
    poll_until("the third check", checking);
    enter(&terminal, "/crew:cancel-loop wrong branch");
    await_operations(&sandbox, "enqueue", 6);
    await_loop(&sandbox, "the loop is over", |it| it["outcome"] == "cancelled");
    terminal.wait_for_text("was cancelled already, at iteration 2");
    assert_eq!((handoffs(&sandbox, "cancelled"), api.main_requests().len()), (1, 3));
}
