//! `crew show --log`: what an agent did, in the lines that `crew run -v` prints, or the bytes it
//! printed.

use super::claude::answer;
use super::{WORK, World};
use crate::sandbox::poll_until;

/// A call of a tool, and its result, as events.
fn call(id: &str, name: &str, input: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m{id}","role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}]}}}}"#
    )
}

fn result(id: &str, output: &str, is_error: bool) -> String {
    format!(
        r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","is_error":{is_error},"content":[{{"type":"text","text":"{output}"}}]}}]}}}}"#
    )
}

/// An agent that reads, edits, tests twice and reports. One of its events is larger than what is
/// read at once.
fn events() -> Vec<String> {
    let large = "x".repeat(300_000);
    let edit =
        r#"{"file_path":"/w/api/src/token.rs","old_string":"a\nb\nc","new_string":"a\nx\ny\nc"}"#;
    let failed = r"Exit code 101\nrunning 1 test\ntest t ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
    let passed = r"running 1 test\ntest t ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
    let test = r#"{"command":"cargo test reset::"}"#;
    vec![
        r#"{"type":"system","subtype":"init","cwd":"/w/api","model":"claude-opus"}"#.to_owned(),
        call("1", "Read", r#"{"file_path":"/w/api/src/token.rs"}"#),
        result("1", &large, false),
        call("2", "Bash", test),
        result("2", failed, true),
        call("3", "Edit", edit),
        result("3", "done", false),
        call("4", "Bash", test),
        result("4", passed, false),
        call("5", "Read", r#"{"file_path":"/etc/shadow"}"#),
        result("5", r"EACCES: permission denied\nmore", true),
    ]
}

const TOLD: &str = "\
read   src/token.rs
run    cargo test reset::  → 1 failed
edit   src/token.rs  +2 -1
run    cargo test reset::  → 1 passed
read   /etc/shadow  → failed: EACCES: permission denied
\"Expiry is compared in UTC now.\"
";

fn world() -> World {
    let world = World::claude(&["cat \"$notes/events\"; . \"$notes/last\""], "");
    std::fs::write(world.note("events"), events().join("\n") + "\n").unwrap();
    std::fs::write(world.note("last"), answer("Expiry is compared in UTC now.")).unwrap();
    world
}

#[test]
fn the_log_shows_what_the_agent_did_and_raw_shows_its_bytes() {
    let world = world();
    world.crew(&["run", "Do it", "-n", "1"]);
    assert_eq!(world.crew(&["show", "--log"]).success(), TOLD);
    let raw = world.crew(&["show", "--log", "--raw"]).success();
    assert!(raw.starts_with(&(events().join("\n") + "\n")), "{} bytes", raw.len());
    assert_eq!(world.crew(&["show", "--raw"]).code(), 2);
}

#[test]
fn standard_error_is_marked_in_a_log_and_not_in_its_raw_bytes() {
    let world = World::new(&["echo out; echo 'stderr: out'; echo err >&2"]);
    world.crew(&["run", "Do it", "-n", "1"]);
    let shown = |options: &[&str]| {
        let log = world.crew(&[&["show", "--log"], options].concat()).success();
        let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(shown(&[]), ["out", "stderr: err", "stderr: out"]);
    assert_eq!(shown(&["--raw"]), ["err", "out", "stderr: out"]);
}

#[test]
fn a_running_run_shows_the_same() {
    let ran = world().crew(&["run", "Do it", "-n", "1", "-v"]);
    // A command is told when it starts, and its result when it has one.
    let live = TOLD.replace("  → ", "\n       → ");
    assert!(ran.stdout.contains(&live), "{}", ran.stdout);
}

#[test]
fn a_follower_shows_a_command_before_its_result() {
    let world = World::claude(&["cat \"$notes/events\"; sleep 600"], "");
    let [begun, ended] = [4, 5].map(|count| events()[..count].join("\n") + "\n");
    std::fs::write(world.note("events"), &begun).unwrap();
    let run = world.sandbox.start_crew(&["run", "Do it", "-n", "1"]);
    poll_until("a log", || world.crew(&["show", "--log"]).stdout.contains("run    cargo test"));
    let following = world.sandbox.start_crew(&["show", "--log", "-f"]);
    poll_until("a call", || following.stdout().ends_with("run    cargo test reset::\n"));
    let log = world.file("iterations/0001.log");
    let mut log = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    std::io::Write::write_all(&mut log, &ended.as_bytes()[begun.len()..]).unwrap();
    poll_until("its result", || following.stdout().ends_with("       → 1 failed\n"));
    world.crew(&["cancel"]).success();
    let ended = following.wait(crate::sandbox::DEADLINE);
    assert!(ended.code() == 0 && ended.stderr.contains("is over: cancelled"), "{ended:#?}");
    run.wait(crate::sandbox::DEADLINE);
}

#[test]
fn the_output_of_an_agent_without_events_is_shown_unchanged() {
    let world = World::new(&[WORK]);
    world.crew(&["run", "Do it", "-n", "1"]);
    assert_eq!(world.crew(&["show", "--log"]).success(), "Wrote a line.\n");
}
