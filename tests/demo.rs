//! The demo, run as a visitor would: it must end well, show its refusal, and leave nothing behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, test_kill_process};

use crate::child::{Ran, Running};
use crate::sandbox::{DEADLINE, Sandbox, crew, poll_until};

/// Every path of a sandbox: its home, its temporary folder, its repository.
fn paths(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut found = BTreeSet::new();
    for entry in entries {
        if entry.file_type().unwrap().is_dir() {
            found.extend(paths(&entry.path()));
        }
        found.insert(entry.path());
    }
    found
}

#[track_caller]
fn demo_that_leaves_nothing(sandbox: &Sandbox) -> Ran {
    let before = paths(sandbox.root());
    let ran = sandbox.crew(&["demo"]);
    assert_eq!(paths(sandbox.root()), before, "{ran:#?}");
    ran
}

#[track_caller]
fn assert_played(ran: Ran) {
    let told = ran.success();
    let scenes = [
        "> /crew:loop ",
        "* iteration 1: ",
        "crew 1/5",
        "* iteration 2: ",
        "crew 2/5 · ",
        "claim refused: sh test.sh failed",
        "FAIL  largest of -5 -2 -8: expected -2, got 0",
        "* iteration 3: ",
        "completed after 3 iterations · proof: checked",
        "`sh test.sh` passes",
    ];
    let mut rest = told.as_str();
    for scene in scenes {
        let (_, after) = rest.split_once(scene).unwrap_or_else(|| panic!("no {scene:?}: {told}"));
        rest = after;
    }
    assert!(!rest.contains("* iteration"), "{told}");
}

#[test]
fn it_shows_a_refusal_then_a_checked_end_and_leaves_nothing() {
    assert_played(demo_that_leaves_nothing(&Sandbox::new()));
}

#[cfg(target_os = "linux")]
#[test]
fn its_first_paragraph_is_broken_where_the_terminal_ends() {
    let sandbox = Sandbox::new();
    let line = format!("stty cols 80; exec {} demo", crew().display());
    let mut terminal = sandbox.command("script");
    terminal.args(["-qec", &line, "/dev/null"]);
    let told = Running::start(terminal, None).wait(DEADLINE).success().replace('\r', "");
    let opening = told.split_once("\n\n").map(|(opening, _)| opening);
    insta::assert_snapshot!(opening.unwrap_or(&told), @"
    A shell library with two faults, its tests, and an agent that follows a script
      instead of a model. Everything else is real: the hooks, the checks, the loop.
      All of it lives in a temporary folder that is removed at the end.
    ");
}

#[test]
fn it_plays_inside_an_agent_in_a_git_hook_and_in_a_folder_with_a_blank() {
    let sandbox = Sandbox::new();
    let folder = sandbox.root().join("a folder");
    std::fs::create_dir(&folder).unwrap();
    let sandbox = sandbox
        .env("TMPDIR", folder.to_str().unwrap())
        .env("CLAUDECODE", "1")
        .env("CREW_LOOP", "k3v9k3v9")
        .env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "1")
        .env("CLAUDE_PLUGIN_DATA", "/nowhere")
        .env("GIT_DIR", "/nowhere")
        .env("GIT_INDEX_FILE", "/nowhere");
    assert_played(demo_that_leaves_nothing(&sandbox));
}

#[test]
fn without_git_it_says_what_is_missing() {
    let sandbox = Sandbox::new();
    let bin = sandbox.root().join("bin").display().to_string();
    let ran = demo_that_leaves_nothing(&sandbox.env("PATH", &bin));
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains("cannot find git\nhint: "), "{ran:#?}");
}

#[test]
fn interrupted_while_a_check_runs_it_leaves_neither_files_nor_processes() {
    for signal in [Signal::INT, Signal::TERM] {
        let sandbox = Sandbox::new();
        let mark = sandbox.root().join("bin/pid");
        std::fs::write(&mark, "").unwrap();
        let script = format!(r#"echo $$ > "{}"; exec sleep 60"#, mark.display());
        sandbox.program("sh", &script);
        let before = paths(sandbox.root());
        let demo = sandbox.start_crew(&["demo"]);
        let check = || std::fs::read_to_string(&mark).unwrap().trim().parse().ok();
        poll_until("a running check", || check().is_some());
        demo.signal(signal);
        let ran = demo.wait(DEADLINE);
        assert_eq!(ran.code(), 130, "{ran:#?}");
        assert_eq!(paths(sandbox.root()), before, "{ran:#?}");
        let check = check().and_then(Pid::from_raw).unwrap();
        poll_until("the check's end", || test_kill_process(check).is_err());
    }
}
