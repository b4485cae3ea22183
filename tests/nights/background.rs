//! Work that the client runs in the background: a job that ends, and one that never does.

use super::{await_loop, await_outcome, said, work};
use crate::client::{Api, Client, Installed, Reply, on_both_terminals};
use crate::sandbox::{Sandbox, poll_until};

on_both_terminals!(
    a_background_command_that_ends_is_waited_for_and_its_wait_is_no_iteration,
    a_server_the_agent_worked_beside_holds_nothing,
);

fn a_background_command_that_ends_is_waited_for_and_its_wait_is_no_iteration(
    installed: &Installed,
) {
    let sandbox = Sandbox::new();
    let mut asked = 0;
    let api = Api::answering(move |request| {
        asked += 1;
        Some(if asked == 1 {
            Reply::background("until test -e built; do sleep 0.2; done")
                .then(Reply::text("The build runs; I will look at it when it is done."))
        } else if request.newest().contains("<task-notification>") {
            Reply::text("The build is done.\n<promise>COMPLETE</promise>")
        } else {
            said(asked)
        })
    });
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 5");
    terminal.enter();
    terminal.wait_for_text("waits for background work");
    let held = await_loop(&sandbox, "the loop holds", |it| it["status"] == "running");
    assert_eq!((&held["iteration"], &held["completed_iterations"]), (&1.into(), &0.into()));
    sandbox.write("built", "");
    let ended = await_outcome(&sandbox, "completed");
    assert_eq!(ended["completed_iterations"], 1);
}

fn a_server_the_agent_worked_beside_holds_nothing(installed: &Installed) {
    let sandbox = Sandbox::new();
    let mut asked = 0;
    let api = Api::answering(move |_| {
        asked += 1;
        Some(match asked {
            1 => Reply::background("while :; do sleep 0.2; done")
                .then(Reply::text("The server runs.")),
            number => work(number),
        })
    });
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 4");
    terminal.enter();
    terminal.wait_for_text("waits for background work");
    // A message of the user begins a turn in which the agent works beside the server.
    terminal.type_text("go on, the server is up");
    terminal.enter();
    let ended = await_outcome(&sandbox, "exhausted");
    assert_eq!(ended["completed_iterations"], 4);
    poll_until("every iteration was asked for", || api.main_requests().len() >= 9);
}
