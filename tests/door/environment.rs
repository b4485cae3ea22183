//! The part of the hook's environment that reaches a check: what existed when the loop began. The
//! agent can make the client pass other variables to the next hook, and some make a failing check
//! pass.

use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Answer, Door};
use crate::sandbox::{DEADLINE, Sandbox};
use crate::spawned::Running;

/// The tests of the file `twice`, which report in TAP.
const TESTS: &str = "echo 1..1; test \"$(sh twice)\" = 4 && echo 'ok 1 - two' && exit\n\
    echo 'not ok 1 - two'; exit 1\n";

/// A claim with distinct words: two stops of one process with the same words in quick succession
/// are one stop.
fn claim() -> String {
    static TOLD: AtomicU32 = AtomicU32::new(0);
    let number = TOLD.fetch_add(1, Ordering::Relaxed);
    format!("All is well, {number}.\n\n<promise>COMPLETE</promise>")
}

/// How often the journal has this remark.
fn remarked(door: &Door, id: &str, what: &str) -> usize {
    door.remarks(id).lines().filter(|line| line.contains(what)).count()
}

/// A claim is refused, because the check fails.
#[track_caller]
fn assert_refused(answer: Answer, why: &str) {
    let answer = answer.assert_goes_on();
    assert!(answer.context().contains(why), "{why}: {answer:#?}");
}

/// Every file below a folder, with its text.
fn texts(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(texts(&path));
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            found.push((path.display().to_string(), text));
        }
    }
    found
}

#[test]
fn a_variable_added_during_the_loop_does_not_reach_the_checks() {
    for (name, value) in [
        ("MAKEFLAGS", "-n"),
        ("PYTEST_ADDOPTS", "--collect-only"),
        ("GOFLAGS", "-run=NONE"),
        ("CLAUDE_CODE_PLANTED", "1"),
        ("CLAUDE_EFFORT", "high"),
        ("COLUMNS", "1"),
    ] {
        let door = Door::new();
        // As `make`, `pytest` and `go` do: with its variable set, the tests do not run.
        door.sandbox.program("tests", &format!("test \"${name}\" = '{value}'"));
        let id = door.begin("\"go on\" -n 5 --stall 0 --verify tests");
        assert_refused(door.stop(&claim()), "`tests` failed (exit 1)");
        for _ in 0..2 {
            let answer = door.stopping(&claim()).env(name, value).send();
            assert_refused(answer, "`tests` failed (exit 1)");
        }
        let shown = format!("{name} is new in the environment; not passed to checks");
        let is_the_clients_own = ["CLAUDE_EFFORT", "COLUMNS"].contains(&name);
        assert_eq!(remarked(&door, &id, &shown), usize::from(!is_the_clients_own), "{name}");
        assert_eq!(remarked(&door, &id, value), 0, "{name}");
    }
}

#[test]
fn variables_from_before_the_start_reach_a_check_byte_for_byte() {
    let door = Door::of(Sandbox::new().env("THEIRS", "of old ☂").env("EMPTY", ""));
    let odd = std::ffi::OsString::from_vec(b"\xff odd".to_vec());
    door.sandbox.program(
        "seen",
        "test \"$THEIRS$EMPTY.\" = 'of old ☂.' && test \"$ODD\" = \"$(printf '\\377 odd')\"",
    );
    let begun = door.command("\"go on\" --verify seen").env("ODD", odd.clone()).send();
    begun.assert_goes_on();
    let answer = door.stopping(&claim()).env("ODD", odd).send().assert_lets_go();
    assert!(answer.line().contains("completed"), "{answer:#?}");
}

#[test]
fn a_path_changed_during_the_loop_is_restored() {
    let door = Door::new();
    let elsewhere = door.sandbox.root().join("elsewhere");
    crate::sandbox::write_executable(&elsewhere.join("tests"), "#!/bin/sh\nexit 0\n");
    door.sandbox.program("tests", "exit 1");
    let id = door.begin("\"go on\" -n 5 --stall 0 --verify tests");
    let path = format!("{}:/usr/bin:/bin", elsewhere.display());
    assert_refused(door.stopping(&claim()).env("PATH", &path).send(), "failed (exit 1)");
    let shown = "PATH is not as it was when the loop began; checks get the old value";
    assert_eq!(remarked(&door, &id, shown), 1, "{}", door.remarks(&id));
}

#[test]
fn a_missing_variable_stays_missing_and_is_recorded() {
    let door = Door::of(Sandbox::new().env("THEIRS", "of old"));
    let id = door.begin("\"go on\" -n 5 --stall 0 --verify 'test \"${THEIRS-none}\" = none'");
    assert_refused(door.stop(&claim()), "failed (exit 1)");
    let answer = door.stopping(&claim()).without_env("THEIRS").send().assert_lets_go();
    assert!(answer.line().contains("completed"), "{answer:#?}");
    assert_eq!(remarked(&door, &id, "THEIRS is missing in the environment"), 1);
}

#[test]
fn a_value_that_the_checkouts_settings_gave_at_the_start_is_restored() {
    for (folder, name) in
        [("", "settings.json"), ("", "settings.local.json"), ("below/", "settings.json")]
    {
        let door = Door::new();
        let file = format!("{folder}.claude/{name}");
        door.sandbox.write(&file, r#"{"env":{"STRICT":"yes","TIMES":3},"other":1}"#);
        let project = door.sandbox.file(folder);
        let begun = door
            .command("\"go on\" -n 5 --stall 0 --verify 'test \"$STRICT$TIMES\" = yes3'")
            .env("CLAUDE_PROJECT_DIR", &project)
            .env("STRICT", "yes")
            .env("TIMES", "3")
            .send()
            .assert_goes_on();
        door.sandbox.write(&file, r#"{"env":{"STRICT":"no"}}"#);
        let stop = door.stopping(&claim()).env("STRICT", "no").env("TIMES", "4");
        let answer = stop.send().assert_lets_go();
        assert!(answer.line().contains("completed"), "{file}: {begun:#?}\n{answer:#?}");
    }
}

#[test]
fn a_variable_that_the_user_changed_makes_checks_unknown_until_a_resume_accepts_it() {
    let door = Door::of(Sandbox::new().env("AWS_PROFILE", "mine"));
    let check = "--verify 'test \"$AWS_PROFILE$MAKEFLAGS\" = theirs-n && touch ran'";
    let id = door.begin(&format!("\"go on\" -n 9 --stall 0 {check}"));
    let planted =
        |event: super::Event<'_>| event.env("AWS_PROFILE", "theirs").env("MAKEFLAGS", "-n").send();
    let why = "was not run: the variable AWS_PROFILE is not as it was when the loop began; \
               /crew:resume accepts it";
    assert_refused(planted(door.stopping(&claim())), why);
    assert!(!door.sandbox.file("ran").exists());
    let command = door.event("UserPromptExpansion").with("prompt_id", "p-7");
    let resumed = planted(command.with("command_name", "crew:resume").with("command_args", ""));
    let shown = "not as they were when the loop began: AWS_PROFILE, MAKEFLAGS";
    assert!(resumed.line().contains(shown), "{resumed:#?}");
    assert_eq!(remarked(&door, &id, shown), 1, "{}", door.remarks(&id));
    let answer = planted(door.stopping(&claim())).assert_lets_go();
    assert!(answer.line().contains("completed"), "{answer:#?}");
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "completed");
}

#[test]
fn a_person_proves_a_sessions_loop_in_a_terminal_with_another_environment() {
    let door = Door::of(Sandbox::new().env("TERM", "xterm").env("TMUX_PANE", "%1"));
    door.sandbox.write("tests/run.sh", TESTS);
    door.sandbox.write("twice", "echo 2\n");
    door.begin("\"go on\" -n 5 --stall 0 --verify 'sh tests/run.sh'");
    door.sandbox.write("twice", "echo 4\n");
    door.stop(&claim()).assert_lets_go();
    let mut command = door.sandbox.command(door.sandbox.build().path());
    command.arg("prove").env("TERM", "screen").env("LANG", "C").env("MORE", "1");
    command.env_remove("TMUX_PANE");
    let proven = Running::start(command, None).wait(DEADLINE).success();
    let shown = "proven: `sh tests/run.sh` passes, and without the work it fails in two\n";
    assert!(proven.ends_with(shown), "{proven}");
}

#[test]
fn no_value_of_the_users_variables_is_written_to_disk() {
    let secret = "sk-of-the-users-own-0123456789";
    let door = Door::of(Sandbox::new().env("THEIR_KEY", secret).env("OTHER_KEY", secret));
    // A setting that refers to a secret does not contain it.
    let settings = r#"{"env":{"THEIR_KEY":"${THEIR_KEY}","OTHER_KEY":"x","HELD":"by the file"}}"#;
    door.sandbox.write(".claude/settings.json", settings);
    let command = door.command("\"go on\" -n 3 --stall 0 --verify false");
    command.env("HELD", "by the file").send().assert_goes_on();
    let id = std::fs::read_dir(door.sandbox.crew_home().join("loops")).unwrap().next().unwrap();
    let id = id.unwrap().file_name().into_string().unwrap();
    for value in ["changed-to-this-value", secret] {
        door.stopping(&claim()).env("THEIR_KEY", value).env("NEW_KEY", "new-value").send();
    }
    door.stopping(&claim()).send().assert_lets_go();
    let all = texts(&door.sandbox.crew_home());
    assert!(all.iter().any(|(_, text)| text.contains("by the file")));
    for (path, text) in all.iter().chain(&texts(&door.sandbox.file(".claude/branches"))) {
        for value in [secret, "changed-to-this-value", "new-value"] {
            assert!(!text.contains(value), "{path} holds {value}");
        }
    }
    for name in ["loop.json", "journal.jsonl"] {
        let mode = std::fs::metadata(door.file(&id, name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{name}");
    }
}

#[test]
fn a_git_variable_planted_during_the_loop_has_no_effect_on_the_rules() {
    let door = Door::new();
    let other = door.sandbox.root().join("other");
    door.sandbox.git(&["init", "--quiet", &other.display().to_string()]);
    door.sandbox.write(".claude/crew.toml", "[loop]\nprotect = [\"README\"]\n");
    for plant in [
        &[("GIT_DIR", &*other.join(".git").display().to_string())][..],
        &[("GIT_INDEX_FILE", "/dev/null")],
        &[
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.worktree"),
            ("GIT_CONFIG_VALUE_0", "/"),
        ],
        &[("GIT_CONFIG_COUNT", "7")],
    ] {
        let planted = |words: &str| {
            let stop = door.stopping(words);
            plant.iter().fold(stop, |stop, (name, value)| stop.env(name, value)).send()
        };
        let id = door.begin("\"go on\" -n 9 --stall 3 --failure-threshold 9 --replace");
        door.sandbox.write("README", "another text\n");
        assert_refused(planted(&claim()), "protected paths were changed: `README`");
        planted("two").assert_goes_on();
        planted("three").assert_goes_on();
        planted("four").assert_lets_go();
        assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "stalled", "{plant:?}");
        door.sandbox.write("README", "a repository of a test\n");
    }
}

#[test]
fn a_loop_of_an_older_crew_keeps_its_path_and_inherits_the_other_variables() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 5 --stall 0 --verify 'test \"$MAKEFLAGS\" = -n'");
    let mut record = door.record(&id);
    record.as_object_mut().unwrap().remove("environment").unwrap();
    std::fs::write(door.file(&id, "loop.json"), record.to_string()).unwrap();
    assert_refused(door.stop(&claim()), "failed (exit 1)");
    let answer = door.stopping(&claim()).env("MAKEFLAGS", "-n").send().assert_lets_go();
    assert!(answer.line().contains("completed"), "{answer:#?}");
    assert_eq!(door.remarks(&id), "");
}
