//! The isolation of a test: it sees nothing of the machine, and nothing it starts outlives it.

use std::time::Duration;

use rustix::process::{getsid, test_kill_process};
use serde_json::json;

use crate::sandbox::{DEADLINE, Sandbox, poll_until};
use crate::spawned::Running;

#[test]
fn a_child_sees_the_pinned_environment_and_nothing_else() {
    let sandbox = Sandbox::new().env("ASKED", "yes");
    let child = Running::start(sandbox.command("/usr/bin/env"), None);
    assert_eq!(getsid(Some(child.pid())).ok(), Some(child.pid()));
    let printed = child.wait(DEADLINE).success();
    let root = sandbox.root().display().to_string();
    for line in printed.lines() {
        let (name, value) = line.split_once('=').unwrap();
        let pinned = value.contains(&root) || !value.starts_with('/');
        assert!(pinned || ["/bin/sh", "/dev/null"].contains(&value), "{name}={value}");
    }
    assert!(printed.contains("ASKED=yes"));
}

#[test]
fn the_repository_of_a_test_begins_with_one_commit() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.git(&["log", "--format=%an %s"]), "A Tester Begin");
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## main");
    assert!(!Sandbox::without_git().file(".git").exists());
}

#[test]
fn a_script_of_the_test_is_first_on_the_path() {
    let sandbox = Sandbox::new();
    sandbox.program("git", "echo not the real one");
    assert_eq!(sandbox.git(&["--version"]), "not the real one");
}

#[test]
fn a_child_past_its_deadline_is_ended_with_its_group() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command("/bin/sh");
    command.args(["-c", "sleep 60 & echo $!; wait"]);
    let child = Running::start(command, None);
    poll_until("the grandchild's id", || child.stdout().ends_with('\n'));
    let grandchild = child.stdout().trim().parse().ok().and_then(rustix::process::Pid::from_raw);
    let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        child.wait(Duration::from_millis(50))
    }));
    assert!(waited.is_err());
    poll_until("the grandchild's end", || test_kill_process(grandchild.unwrap()).is_err());
}

#[test]
fn a_stop_without_a_loop_passes_silently() {
    let sandbox = Sandbox::new();
    let ran = sandbox.hook(json!({"hook_event_name": "Stop", "stop_hook_active": false}));
    assert_eq!((ran.code(), ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
}

#[test]
fn the_built_crew_runs() {
    let ran = Sandbox::new().crew(&["--version"]);
    assert!(ran.code() == 0 && ran.stderr.is_empty(), "{ran:?}");
}
