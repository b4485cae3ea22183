//! A loop that is left alone for a night, in the real client in a terminal: limits, interruptions,
//! compaction, closed sessions, background work.

mod agents;
mod background;
mod interruptions;
mod long_wait;
mod queued;
mod waits;
mod words;

use serde_json::{Value, json};

use crate::client::Reply;
use crate::sandbox::{Sandbox, poll_until};

/// The newest loop of the sandbox; null before there is one.
fn newest(sandbox: &Sandbox) -> Value {
    let shown = sandbox.crew(&["status", "--all", "--json"]).success();
    serde_json::from_str::<Value>(&shown).unwrap()["loops"][0].clone()
}

#[track_caller]
fn await_loop(sandbox: &Sandbox, expected: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        poll_until(expected, || {
            last = newest(sandbox);
            is_so(&last)
        });
    }));
    assert!(looked.is_ok(), "not so: {expected}\n{last:#}");
    last
}

#[track_caller]
fn await_outcome(sandbox: &Sandbox, outcome: &str) -> Value {
    await_loop(sandbox, &format!("the loop is {outcome}"), |it| it["outcome"] == json!(outcome))
}

fn said(number: u32) -> Reply {
    Reply::text(&format!("Working on it, {number}."))
}

/// Iterations that each use a tool.
fn work(number: u32) -> Reply {
    Reply::bash(&format!("echo {number} >> work.txt")).then(said(number))
}
