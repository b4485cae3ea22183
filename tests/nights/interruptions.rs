//! What the user interrupts stays interrupted until the user continues it; what the client
//! interrupts is repaired.

use std::time::Duration;

use rustix::process::{Signal, kill_process};

use super::{await_loop, await_outcome, newest, said, work};
use crate::client::{Api, Client, Installed, Reply, on_both_terminals, with_terminal};
use crate::sandbox::{Sandbox, poll_until};

on_both_terminals!(
    escape_and_a_question_pause_the_loop_and_resume_goes_on,
    escape_before_any_answer_pauses_the_loop_or_gives_way_to_the_corrected_command,
    a_compaction_in_mid_loop_reminds_the_agent_of_task_and_rules,
    a_killed_client_is_not_started_again_and_its_loop_is_reported_once,
    a_cleared_session_resumes_with_its_counters,
);

#[test]
fn a_pause_typed_during_a_turn_takes_effect_before_the_next_iteration_on_2_1_330() {
    with_terminal("2.1.330", a_pause_typed_in_mid_turn_takes_effect_before_the_next_iteration);
}

/// A command that only an interruption, or the end of the test, ends: a killed client leaves it
/// behind.
const ENDLESS: &str = "while test -d ~; do sleep 1; done";

fn slow(number: u32) -> Reply {
    Reply::bash("sleep 1").then(said(number).pausing(Duration::from_secs(4)))
}

fn escape_and_a_question_pause_the_loop_and_resume_goes_on(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::answering(|request| {
        let newest = request.newest();
        Some(if newest.contains("how far are you") {
            Reply::text("Half of it.")
        } else if newest.contains("iteration 3") {
            Reply::bash(ENDLESS)
        } else {
            work(1)
        })
    });
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 4");
    terminal.enter();
    terminal.wait_for_text(ENDLESS);
    terminal.escape();
    terminal.wait_for_text("Interrupted");
    terminal.type_text("how far are you?");
    terminal.enter();
    terminal.wait_for_text("Half of it.");
    let paused = await_loop(&sandbox, "the loop is paused", |it| it["status"] == "paused");
    assert_eq!(paused["completed_iterations"], 2);
    let asked = api.main_requests().len();
    terminal.type_text("/crew:resume -n 3");
    terminal.enter();
    poll_until("the loop goes on", || api.main_requests().len() > asked);
    let shown = api.main_requests()[asked].newest();
    assert!(shown.contains("iteration 3 of 3") && shown.contains("Build it"), "{shown}");
    terminal.wait_for_text(ENDLESS);
    sandbox.crew(&["cancel"]).success();
    terminal.escape();
}

fn escape_before_any_answer_pauses_the_loop_or_gives_way_to_the_corrected_command(
    installed: &Installed,
) {
    let sandbox = Sandbox::new();
    let api = Api::answering(|request| {
        let newest = request.newest();
        let soon = newest.contains("how far are you");
        let late = Reply::text("Never seen.").after(Duration::from_secs(60));
        Some(if soon { Reply::text("Not begun.") } else { late })
    });
    let terminal = Client::new(installed, &sandbox, &api).open();
    // The client puts the command back into its input line.
    let take_back = |command: &str, asked: usize| {
        terminal.type_text(command);
        terminal.enter();
        poll_until("the model is asked", || api.main_requests().len() == asked);
        std::thread::sleep(Duration::from_secs(1));
        terminal.escape();
        terminal.wait_for_screen("no loop's start", |screen| !screen.contains("up to"));
    };
    take_back("/crew:loop \"Build it\" --stall 0", 1);
    let first = newest(&sandbox)["id"].clone();
    take_back(" -n 4", 2);
    let second = await_loop(&sandbox, "a new loop", |it| it["id"] != first && !it.is_null());
    assert_eq!((&second["status"], &second["iteration"]), (&"running".into(), &1.into()));
    terminal.key("C-u");
    terminal.type_text("how far are you?");
    terminal.enter();
    terminal.wait_for_text("is paused at iteration 1, because you interrupted it");
    terminal.wait_for_text("Not begun.");
    take_back("/crew:resume", 4);
    assert_eq!(newest(&sandbox)["status"], "running");
    terminal.key("C-u");
    terminal.type_text("how far are you now?");
    terminal.enter();
    let paused = await_loop(&sandbox, "the loop is paused", |it| it["status"] == "paused");
    assert_eq!((&paused["id"], &paused["completed_iterations"]), (&second["id"], &0.into()));
    poll_until("the last answer", || api.main_requests().len() == 5);
}

fn a_compaction_in_mid_loop_reminds_the_agent_of_task_and_rules(installed: &Installed) {
    let sandbox = Sandbox::new();
    let mut asked = 0;
    let api = Api::answering(move |request| {
        if request.newest().contains("CRITICAL: Respond with TEXT ONLY") {
            return Some(Reply::text("<summary>Something was built.</summary>"));
        }
        asked += 1;
        Some(match asked {
            3 => Reply::error(429, "rate_limit_error", "slow down").no_retry(),
            number => work(number),
        })
    });
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build the todo API\" --stall 0 -n 5");
    terminal.enter();
    await_loop(&sandbox, "the loop waits", |it| it["status"] == "waiting");
    terminal.type_text("/compact");
    terminal.enter();
    terminal.wait_for_text("the agent was reminded of its task");
    let before = api.main_requests().len();
    terminal.type_text("go on now");
    terminal.enter();
    let ended = await_outcome(&sandbox, "exhausted");
    assert_eq!(ended["completed_iterations"], 5);
    let shown = api.main_requests()[before].conversation();
    assert!(shown.contains("iteration 3 of 5.") && shown.contains("Build the todo API"), "{shown}");
    assert!(shown.contains("How to finish"), "{shown}");
}

fn a_killed_client_is_not_started_again_and_its_loop_is_reported_once(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::answering(|request| {
        Some(if request.newest().contains("hello") {
            Reply::text("Hello again.")
        } else if request.newest().contains("iteration 2") {
            Reply::bash(ENDLESS)
        } else {
            work(1)
        })
    });
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 9");
    terminal.enter();
    terminal.wait_for_text(ENDLESS);
    let session = newest(&sandbox)["owner"]["session_id"].as_str().unwrap().to_owned();
    kill_process(terminal.pid(), Signal::KILL).unwrap();
    drop(terminal);
    let terminal = Client::new(installed, &sandbox, &api).arguments(&["--resume", &session]).open();
    terminal.wait_for_text("was interrupted after 1 iteration");
    let asked = api.main_requests().len();
    terminal.type_text("hello");
    terminal.enter();
    terminal.wait_for_text("Hello again.");
    assert_eq!(newest(&sandbox)["outcome"], "interrupted");
    drop(terminal);
    let terminal = Client::new(installed, &sandbox, &api).arguments(&["--resume", &session]).open();
    terminal.type_text("hello");
    terminal.enter();
    poll_until("the second hello was answered", || api.main_requests().len() == asked + 2);
    let shown = terminal.screen().matches("was interrupted after").count();
    assert!(shown <= 1, "{}", terminal.screen());
}

fn a_cleared_session_resumes_with_its_counters(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::answering(|request| {
        Some(if request.newest().contains("iteration 3 of 9") {
            Reply::bash(ENDLESS)
        } else {
            work(1)
        })
    });
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 9");
    terminal.enter();
    terminal.wait_for_text(ENDLESS);
    terminal.escape();
    terminal.wait_for_text("Interrupted");
    terminal.type_text("/clear");
    terminal.enter();
    let interrupted = await_outcome(&sandbox, "interrupted");
    assert_eq!(interrupted["completed_iterations"], 2);
    terminal.wait_for_text(" resumes it");
    terminal.type_text("/crew:resume -n 4");
    terminal.enter();
    let ended = await_outcome(&sandbox, "exhausted");
    assert_eq!(ended["completed_iterations"], 4);
}

fn a_pause_typed_in_mid_turn_takes_effect_before_the_next_iteration(installed: &Installed) {
    let sandbox = Sandbox::new();
    let mut asked = 0;
    let api = Api::answering(move |_| {
        asked += 1;
        Some(slow(asked))
    });
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 9");
    terminal.enter();
    await_loop(&sandbox, "the second iteration runs", |it| it["iteration"] == 2);
    terminal.type_text("crew pause");
    terminal.enter();
    terminal.wait_for_text(
        " pauses when its turn ends; iteration 2 runs again (Ctrl-U clears the line)",
    );
    let paused = await_loop(&sandbox, "the loop is paused", |it| it["status"] == "paused");
    assert_eq!(paused["iteration"], 2);
    terminal.wait_for_text("/crew:resume resumes it");
}
