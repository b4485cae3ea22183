//! Limits of the model's service, and background work.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{await_loop, await_outcome, newest, said};
use crate::client::{Api, Client, Installed, Reply, on_both_terminals};
use crate::sandbox::{Sandbox, poll_until};

on_both_terminals!(
    a_rate_limit_wakes_by_itself_and_repeats_the_same_iteration,
    a_cancel_during_a_wait_leaves_no_waiter_that_wakes_anything,
    a_prompt_during_a_wait_revokes_the_wake_and_the_loop_goes_on_after_it,
    leaving_during_a_wait_interrupts_the_loop_and_wakes_nothing,
    clearing_during_a_wait_interrupts_the_loop_and_wakes_nothing,
    forty_tool_less_iterations_lose_no_wake_and_double_none,
);

pub(super) fn limit(seconds: u64) -> Reply {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let message = format!("usage limit reached|{}", now + seconds);
    Reply::error(429, "rate_limit_error", &message).no_retry()
}

fn a_rate_limit_wakes_by_itself_and_repeats_the_same_iteration(installed: &Installed) {
    let sandbox = Sandbox::new();
    let mut asked = 0;
    let api = Api::answering(move |_| {
        asked += 1;
        Some(match asked {
            1 => said(1),
            2 => limit(3),
            number => said(number),
        })
    });
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 4");
    terminal.enter();
    let waiting = await_loop(&sandbox, "the loop waits", |it| it["status"] == "waiting");
    assert_eq!((&waiting["iteration"], &waiting["completed_iterations"]), (&2.into(), &1.into()));
    let ended = await_outcome(&sandbox, "exhausted");
    assert_eq!(ended["completed_iterations"], 4);
    assert_eq!(api.main_requests().len(), 5);
}

fn a_wait<'world>(
    installed: &'world Installed,
    sandbox: &'world Sandbox,
    api: &Api,
) -> crate::client::Terminal<'world> {
    let terminal = Client::new(installed, sandbox, api).open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 4");
    terminal.enter();
    await_loop(sandbox, "the loop waits", |it| it["status"] == "waiting");
    poll_until("a waiter has its ticket", || !waiters(sandbox).is_empty());
    terminal
}

/// Answers once, reaches a limit that ends in `seconds`, and answers everything after that.
fn limited(seconds: u64) -> Api {
    let mut asked = 0;
    Api::answering(move |_| {
        asked += 1;
        Some(if asked == 2 { limit(seconds) } else { said(asked) })
    })
}

/// The files of companions, by name; the name begins with the process.
fn waiters(sandbox: &Sandbox) -> Vec<String> {
    let Ok(sessions) = std::fs::read_dir(sandbox.crew_home().join("wakes")) else {
        return Vec::new();
    };
    let files = sessions.flat_map(|session| std::fs::read_dir(session.unwrap().path()).unwrap());
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('.')).collect()
}

#[track_caller]
fn await_their_end(waiters: &[String]) {
    poll_until("no waiter is left", || {
        waiters.iter().all(|name| {
            let pid = name.split('-').next().unwrap().parse().unwrap();
            rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid).unwrap())
                .is_err()
        })
    });
}

fn a_cancel_during_a_wait_leaves_no_waiter_that_wakes_anything(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = limited(3600);
    let _terminal = a_wait(installed, &sandbox, &api);
    let waiters = waiters(&sandbox);
    sandbox.crew(&["cancel"]).success();
    await_their_end(&waiters);
    assert_eq!(newest(&sandbox)["outcome"], "cancelled");
    assert_eq!(api.main_requests().len(), 2);
}

fn a_prompt_during_a_wait_revokes_the_wake_and_the_loop_goes_on_after_it(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = limited(3600);
    let terminal = a_wait(installed, &sandbox, &api);
    let waiters = waiters(&sandbox);
    terminal.type_text("the limit is lifted");
    terminal.enter();
    await_their_end(&waiters);
    let ended = await_outcome(&sandbox, "exhausted");
    assert_eq!(ended["completed_iterations"], 4);
    assert_eq!(api.main_requests().len(), 5);
}

fn leaving_during_a_wait_interrupts_the_loop_and_wakes_nothing(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = limited(3600);
    let terminal = a_wait(installed, &sandbox, &api);
    let waiters = waiters(&sandbox);
    terminal.type_text("/exit");
    terminal.enter();
    await_outcome(&sandbox, "interrupted");
    await_their_end(&waiters);
    assert_eq!(api.main_requests().len(), 2);
}

fn clearing_during_a_wait_interrupts_the_loop_and_wakes_nothing(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = limited(3600);
    let terminal = a_wait(installed, &sandbox, &api);
    let waiters = waiters(&sandbox);
    terminal.type_text("/clear");
    terminal.enter();
    await_outcome(&sandbox, "interrupted");
    await_their_end(&waiters);
    // A wake of the old session would land in the new one.
    terminal.type_text("hello");
    terminal.enter();
    poll_until("the new session was answered", || api.main_requests().len() == 3);
}

fn forty_tool_less_iterations_lose_no_wake_and_double_none(installed: &Installed) {
    let sandbox = Sandbox::new().with_faults();
    let mut asked = 0;
    let api = Api::answering(move |_| {
        asked += 1;
        Some(said(asked))
    });
    let terminal = Client::new(installed, &sandbox, &api).env("CREW_DELAY_MS", "300").open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 40");
    terminal.enter();
    let within = SystemTime::now();
    while newest(&sandbox)["outcome"].is_null() {
        assert!(within.elapsed().unwrap() < Duration::from_secs(120), "{:#}", newest(&sandbox));
        std::thread::sleep(Duration::from_millis(100));
    }
    let ended = await_outcome(&sandbox, "exhausted");
    assert_eq!(ended["completed_iterations"], 40);
    assert_eq!(api.main_requests().len(), 40);
    assert!(!terminal.screen().contains("overriding"), "{}", terminal.screen());
}
