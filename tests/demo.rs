//! The demos, run as a visitor would run them: they must end well, show faults on the way, and
//! leave nothing behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, test_kill_process};

use crate::client::{Terminal, in_a_terminal};
use crate::sandbox::{DEADLINE, Sandbox, poll_until};
use crate::spawned::Ran;

/// The deadline of a demo of a fleet, in which a return after a limit follows the previous one
/// after 21 s.
const FLEET_DEADLINE: Duration = Duration::from_secs(240);

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
    leaves_nothing(sandbox, &["demo"])
}

#[track_caller]
fn leaves_nothing(sandbox: &Sandbox, words: &[&str]) -> Ran {
    let before = paths(sandbox.root());
    let ran = sandbox.start_crew(words).wait(FLEET_DEADLINE);
    assert_eq!(paths(sandbox.root()), before, "{ran:#?}");
    ran
}

#[track_caller]
fn assert_played(ran: Ran) {
    let shown = ran.success();
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
    let mut rest = shown.as_str();
    for scene in scenes {
        let (_, after) = rest.split_once(scene).unwrap_or_else(|| panic!("no {scene:?}: {shown}"));
        rest = after;
    }
    assert!(!rest.contains("* iteration"), "{shown}");
}

#[test]
fn the_demo_shows_a_refusal_then_a_checked_end_and_leaves_nothing_behind() {
    assert_played(demo_that_leaves_nothing(&Sandbox::new()));
}

#[test]
fn a_key_speeds_the_demo_up_and_the_terminal_is_restored() {
    in_a_terminal(|| {
        for (key, end) in [("x", "exit 0"), ("C-c", "exit 130")] {
            // Unless a key hurries it, the demo is still at its first line when the test gives up.
            let sandbox = Sandbox::new().with_faults().env("CREW_STAY_MS", "3600000");
            let mut shell = sandbox.command("sh");
            let typed = "trap : INT; stty -a > before; \"$0\" demo; echo exit $?; stty -a > after; read end";
            let demo = sandbox.build().path();
            shell.args(["-c", typed]).arg(demo).env("TERM", "xterm-256color").env_remove("CI");
            let terminal = Terminal::start(&sandbox, &shell);
            terminal.wait_for_text("A shell library");
            terminal.key(key);
            terminal.wait_for_text(end);
            let ended = terminal.screen();
            assert_eq!(ended.contains("crew install"), key == "x", "{ended}");
            let modes = |name| std::fs::read_to_string(sandbox.file(name)).unwrap();
            poll_until("the modes", || {
                sandbox.file("after").exists() && !modes("after").is_empty()
            });
            assert_eq!(modes("before"), modes("after"));
        }
    });
}

#[test]
fn the_demo_runs_inside_an_agent_in_a_git_hook_and_in_a_folder_with_a_space() {
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
fn without_git_the_demo_says_what_is_missing() {
    let sandbox = Sandbox::new();
    let bin = sandbox.root().join("bin").display().to_string();
    let ran = demo_that_leaves_nothing(&sandbox.env("PATH", &bin));
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains("cannot find git\nhint: "), "{ran:#?}");
}

#[test]
fn a_demo_interrupted_during_a_check_leaves_neither_files_nor_processes() {
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

/// The task that the first line with all these words is about.
#[track_caller]
fn task_of<'shown>(shown: &'shown str, words: &[&str]) -> &'shown str {
    let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
    let line = shown.lines().find(has_all).unwrap_or_else(|| panic!("no {words:?}: {shown}"));
    line.split_whitespace().nth(1).unwrap_or_default()
}

#[test]
#[ignore = "long"]
fn the_demo_of_a_fleet_has_a_conflict_a_failed_check_and_a_limit_and_all_of_it_lands() {
    let sandbox = Sandbox::new();
    let folder = sandbox.root().join("a folder");
    std::fs::create_dir(&folder).unwrap();
    let sandbox = sandbox
        .env("TMPDIR", folder.to_str().unwrap())
        .env("CLAUDECODE", "1")
        .env("GIT_DIR", "/nowhere")
        .env("GIT_AUTHOR_NAME", "")
        .env("GIT_COMMITTER_EMAIL", "");
    let shown = leaves_nothing(&sandbox, &["demo", "--fleet"]).success();
    let (_, run) = shown.split_once("> crew fleet run tasks --land --yes\n").unwrap();
    let (run, log) = run.split_once("> git log --oneline --graph main\n").unwrap();
    assert!(["smallest", "count"].contains(&task_of(run, &["sent back", "conflict: numbers.sh"])));
    assert!(["total", "average"].contains(&task_of(run, &["sent back", "red: "])));
    assert!(["guide", "changes"].contains(&task_of(run, &["429 rate limit reached"])));
    // The second meets the limit itself, or waits because the first has met it.
    for task in ["guide", "changes"] {
        for words in [[task, " waits until "], [task, " resumes"]] {
            assert_eq!(task_of(run, &words), task, "{shown}");
        }
    }
    for task in ["smallest", "count", "total", "average", "guide", "changes"] {
        assert_eq!(task_of(run, &[task, "landed as "]), task, "{shown}");
    }
    let (log, closing) = log.split_once("\n\n").unwrap();
    // A branch that was merged would have lines between the commits.
    assert!(log.lines().all(|line| line.starts_with("* ")), "{shown}");
    assert_eq!(log.lines().count(), 7, "{shown}");
    assert!(closing.contains("docs/guides/many-tasks.md"), "{shown}");
}

/// Tests that need the processes in `/proc`, or the options that `script` has on Linux.
#[cfg(target_os = "linux")]
mod on_linux {
    use super::*;
    use crate::sandbox::crew;
    use crate::spawned::Running;

    /// Whether a process exists whose environment names this folder.
    fn is_lived_in(folder: &Path) -> bool {
        let folder = folder.as_os_str().as_encoded_bytes();
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let variables = processes.filter_map(|it| std::fs::read(it.path().join("environ")).ok());
        variables.into_iter().any(|all| all.windows(folder.len()).any(|found| found == folder))
    }

    #[test]
    fn an_interrupted_demo_of_a_fleet_leaves_neither_files_nor_processes() {
        let sandbox = Sandbox::new();
        let before = paths(sandbox.root());
        let demo = sandbox.start_crew(&["demo", "--fleet"]);
        let runs = |demo: &Running| demo.stdout().lines().any(|line| line.contains("] count "));
        poll_until("a job", || runs(&demo));
        assert!(is_lived_in(sandbox.root()));
        demo.signal(Signal::INT);
        let ran = demo.wait(DEADLINE);
        assert_eq!(ran.code(), 130, "{ran:#?}");
        assert_eq!(paths(sandbox.root()), before, "{ran:#?}");
        assert!(!is_lived_in(sandbox.root()));
    }

    #[test]
    fn the_first_paragraph_of_the_demo_is_wrapped_to_the_terminal() {
        let sandbox = Sandbox::new();
        let line = format!("stty cols 80; exec {} demo --fast", crew().display());
        let mut terminal = sandbox.command("script");
        terminal.args(["-qec", &line, "/dev/null"]);
        let shown = Running::start(terminal, None).wait(DEADLINE).success().replace('\r', "");
        let opening = shown.split_once("\n\n").map(|(opening, _)| opening);
        insta::assert_snapshot!(opening.unwrap_or(&shown), @"
        A shell library with two faults, its tests, and an agent that follows a script
          instead of a model. Everything else is real: the hooks, the checks, the loop.
          All of it lives in a temporary folder that is removed at the end.
        ");
    }
}
