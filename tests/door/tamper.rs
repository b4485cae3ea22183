//! An agent that can write to the whole checkout changes no limit, plants no command and redirects
//! no write. The journal reports its changes, and the files are restored.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::json;

use super::Door;
use crate::sandbox::{DEADLINE, poll_until};
use crate::spawned::Running;

const ALTERED: &str = "state.json was altered";
const DELETED: &str = "state.json was deleted";

/// Runs one boundary after `tamper` and asserts that the loop continued as if nothing had happened.
#[track_caller]
fn assert_only_remarked(door: &Door, what: &str, remark: &str, tamper: impl FnOnce(&Door)) {
    let id = door.begin("\"go on\" -n 3 --completion-promise DONE --stall 0 --replace");
    let contract = door.record(&id)["contract"].clone();
    tamper(door);
    let answer = door.stop("<promise>planted</promise>").assert_goes_on();
    assert!(answer.context().contains("iteration 2 of 3"), "{what}: {answer:#?}");
    let record = door.record(&id);
    assert_eq!(record["contract"], contract, "{what}");
    assert_eq!(record["state"]["completed"], 1, "{what}");
    assert_eq!(door.remarks(&id).matches(remark).count(), 1, "{what}: {}", door.remarks(&id));
    door.stop("still at it").assert_goes_on();
    door.stop("and again").assert_lets_go();
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "exhausted", "{what}");
    assert!(!door.sandbox.file("planted").exists(), "{what}: a planted check ran");
}

#[test]
fn an_edited_view_has_no_effect_but_a_line_in_the_journal() {
    let door = Door::new();
    let planted = json!([{ "run": "touch planted", "role": "gate" }]);
    for (key, value) in [
        ("maxIterations", json!(100_000)),
        ("iteration", json!(0)),
        ("completionPromise", json!("planted")),
        ("failureThreshold", json!(0)),
        ("consecutiveFailures", json!(-1)),
        ("id", json!("k3v9abcd")),
        ("sessionId", json!("")),
        ("status", json!("finished")),
        ("outcome", json!("completed")),
        ("prompt", json!("something else")),
        ("active", json!("false")),
        ("active", json!(null)),
    ] {
        assert_only_remarked(&door, key, ALTERED, |door| {
            let mut view = door.view();
            view["loop"][key] = value;
            view["loop"]["checks"] = planted.clone();
            view["checks"] = planted.clone();
            std::fs::write(door.view_file(), view.to_string()).unwrap();
        });
        assert_eq!(door.view()["loop"]["maxIterations"], 3, "{key}");
    }
}

#[test]
fn a_view_that_contains_junk_is_set_aside_and_written_again() {
    let door = Door::new();
    for junk in ["", "{", "not JSON", "null", "[1]", "{}", "{\"loop\":7}", "\u{0}\u{0}"] {
        assert_only_remarked(&door, junk, ALTERED, |door| {
            std::fs::write(door.view_file(), junk).unwrap();
        });
        assert_eq!(door.view()["loop"]["outcome"], "exhausted", "{junk:?}");
    }
    let folder = std::fs::read_dir(door.view_file().with_file_name("")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().any(|name| name.starts_with("state.json.corrupt-")));
}

#[test]
fn the_state_file_of_a_newer_crew_is_never_overwritten() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 3 --stall 0");
    let newer = r#"{"version":2,"loop":{"active":false}}"#;
    std::fs::write(door.view_file(), newer).unwrap();
    door.stop("first").assert_goes_on();
    door.stop("second").assert_goes_on();
    assert_eq!(std::fs::read_to_string(door.view_file()).unwrap(), newer);
    assert_eq!(door.record(&id)["state"]["completed"], 2);
}

#[test]
fn files_deleted_from_the_checkout_are_written_again() {
    let door = Door::new();
    assert_only_remarked(&door, "the view", DELETED, |door| {
        std::fs::remove_file(door.view_file()).unwrap();
    });
    assert_only_remarked(&door, "git clean", DELETED, |door| {
        door.sandbox.git(&["clean", "-fdxq"]);
        assert!(!door.view_file().exists());
    });
    assert_only_remarked(&door, "all of .claude", DELETED, |door| {
        std::fs::remove_dir_all(door.sandbox.file(".claude")).unwrap();
    });
    let task = door.view_file().with_file_name("task.md");
    assert_eq!(std::fs::read_to_string(task).unwrap(), "go on");
    assert_eq!(door.sandbox.git(&["status", "--short", "--untracked-files=all"]), "");
}

#[test]
fn no_link_or_special_file_redirects_a_write_out_of_the_checkout() {
    let door = Door::new();
    let outside = door.sandbox.root().join("outside");
    let folder = |path: &'static str| {
        let outside = &outside;
        move |door: &Door| {
            let path = door.sandbox.file(path);
            std::fs::remove_dir_all(&path).unwrap();
            symlink(outside, path).unwrap();
        }
    };
    let file = |path: &'static str| {
        let outside = &outside;
        move |door: &Door| {
            let path = door.sandbox.file(path);
            std::fs::remove_file(&path).unwrap();
            symlink(outside.join("theirs"), path).unwrap();
        }
    };
    let branch = ".claude/branches/main";
    for tamper in [
        &folder(branch) as &dyn Fn(&Door),
        &folder(".claude/branches"),
        &folder(".claude"),
        &file(".claude/branches/main/state.json"),
        &file(".claude/branches/main/task.md"),
        &file(".claude/branches/.gitignore"),
        &|door| symlink(&outside, door.sandbox.file(branch).join("handoffs")).unwrap(),
        &|door| symlink(outside.join("new"), door.sandbox.file(branch).join("handoffs")).unwrap(),
    ] {
        std::fs::remove_dir_all(door.sandbox.file(".claude")).ok();
        std::fs::remove_file(door.sandbox.file(".claude")).ok();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("theirs"), "not ours").unwrap();
        let id = door.begin("\"go on\" -n 2 --stall 0 --replace");
        tamper(&door);
        door.stop("first").assert_goes_on();
        door.stop("second").assert_lets_go();
        assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "exhausted");
        assert_eq!(std::fs::read_to_string(outside.join("theirs")).unwrap(), "not ours");
        assert_eq!(
            std::fs::read_dir(&outside).unwrap().count(),
            1,
            "something was written outside"
        );
        std::fs::remove_dir_all(&outside).unwrap();
    }
}

#[test]
fn a_link_in_place_of_a_temporary_file_is_not_followed() {
    let door = Door::new();
    let theirs = door.sandbox.root().join("theirs");
    std::fs::write(&theirs, "not ours").unwrap();
    // The parent of a check is the hook, whose process id is in the names of its temporary files.
    let link = format!("ln -s '{}' .$name.$PPID.tmp", theirs.display());
    let plant = format!("for name in state.json task.md; do {link}; done");
    let gate = format!("\"cd .claude/branches/main; rm task.md; {plant}\"");
    door.begin(&format!("\"go on\" -n 2 --stall 0 --gate {gate}"));
    door.stop("first").assert_goes_on();
    assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "not ours");
    assert_eq!(door.view()["loop"]["iteration"], 2);
}

#[test]
fn a_pipe_or_a_folder_in_place_of_a_file_blocks_nothing() {
    let door = Door::new();
    for name in ["state.json", "task.md"] {
        for put in ["mkfifo", "mkdir"] {
            assert_only_remarked(&door, put, "state.json", |door| {
                let path = door.view_file().with_file_name(name);
                std::fs::remove_file(&path).unwrap();
                let mut command = door.sandbox.command(Path::new("/usr/bin").join(put));
                command.arg(&path);
                Running::start(command, None).wait(DEADLINE).success();
                // The view is also read, so that each of these leaves its remark.
                std::fs::remove_file(door.view_file()).ok();
            });
            let view = door.view();
            assert_eq!(view["loop"]["outcome"], "exhausted", "{put} {name}");
        }
    }
}

#[test]
fn an_inactive_state_file_cancels_the_loop_with_a_handoff() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --gate 'touch planted' --stall 0");
    let mut view = door.view();
    view["loop"]["active"] = json!(false);
    std::fs::write(door.view_file(), view.to_string()).unwrap();
    let answer = door.stop("<promise>COMPLETE</promise>").assert_lets_go();
    assert!(answer.line().contains("cancelled"), "{answer:#?}");
    let state = &door.record(&id)["state"];
    assert_eq!(state["ending"]["outcome"], "cancelled");
    assert_eq!(state["completed"], 0);
    assert_eq!(door.handoffs().len(), 1);
    assert!(!door.sandbox.file("planted").exists());
    door.stop("once more").assert_silent();
    // The view it leaves does not end the next loop.
    let ended = std::fs::read(door.view_file()).unwrap();
    door.begin("\"go on\" -n 9 --stall 0");
    std::fs::write(door.view_file(), ended).unwrap();
    door.stop("the next loop's stop").assert_goes_on();
}

#[test]
fn a_state_file_that_becomes_inactive_during_a_check_ends_the_loop() {
    let door = Door::new();
    let view = door.view_file().display().to_string();
    let gate = format!("\"sed -i.old s/true/false/ '{view}'\"");
    let id = door.begin(&format!("\"go on\" -n 9 --stall 0 --gate {gate}"));
    door.stop("one").assert_lets_go();
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "cancelled");
}

#[test]
fn foreign_keys_in_the_state_file_survive_at_every_level() {
    let door = Door::new();
    door.begin("\"go on\" -n 3 --stall 0");
    let mut view = door.view();
    view["theirs"] = json!({ "deep": [1, { "x": null }] });
    view["loop"]["theirs"] = json!("kept");
    std::fs::write(door.view_file(), view.to_string()).unwrap();
    for words in ["one", "two", "three"] {
        door.stop(words);
        let view = door.view();
        assert_eq!(view["theirs"], json!({ "deep": [1, { "x": null }] }), "{words}");
        assert_eq!(view["loop"]["theirs"], "kept", "{words}");
    }
    assert_eq!(door.view()["loop"]["outcome"], "exhausted");
}

#[test]
fn a_check_that_is_planted_in_the_project_settings_does_not_run() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 3 --stall 0");
    let planted = "[[check]]\nrun = \"touch planted\"\nrole = \"gate\"\n\
                   [loop]\nmax_iterations = 1000\n[on]\niteration_end = \"touch planted\"\n";
    door.sandbox.write(".claude/crew.toml", planted);
    for words in ["one", "two", "three"] {
        door.stop(words);
    }
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "exhausted");
    assert!(!door.sandbox.file("planted").exists());
}

#[test]
fn a_crew_home_set_during_the_loop_has_no_effect() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 3 --stall 0");
    let elsewhere = door.sandbox.root().join("elsewhere");
    let theirs = elsewhere.display().to_string();
    door.stopping("one").env("CREW_HOME", &theirs).send().assert_goes_on();
    door.stopping("two")
        .env("XDG_STATE_HOME", &theirs)
        .env("CREW_HOME", "")
        .send()
        .assert_goes_on();
    assert!(!elsewhere.exists());
    assert_eq!(door.record(&id)["state"]["completed"], 2);
    assert!(door.remarks(&id).contains(&theirs), "{}", door.remarks(&id));
    // A second start goes where the first one went.
    door.command("\"go on\" --replace").env("CREW_HOME", &theirs).send().assert_goes_on();
    assert!(!elsewhere.exists());
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "cancelled");
}

#[test]
fn crews_files_are_private_to_their_user() {
    fn assert_private(path: &Path) {
        let metadata = std::fs::metadata(path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{}", path.display());
        // Hard links to the repository's own files, in a folder that nobody else enters.
        if metadata.is_dir() && !path.ends_with("objects") {
            for entry in std::fs::read_dir(path).unwrap() {
                assert_private(&entry.unwrap().path());
            }
        }
    }
    let door = Door::new();
    door.begin("\"go on\" -n 1 --gate 'echo secret; false' --stall 0");
    door.stop("<promise>COMPLETE</promise>").assert_lets_go();
    assert_private(&door.sandbox.crew_home());
}

/// Creates the agent's program and returns the file that it creates when it is run.
fn planted(door: &Door) -> (String, std::path::PathBuf) {
    let ran = door.sandbox.root().join("ran");
    let script = format!("touch '{}'; cat", ran.display());
    (door.sandbox.program("planted", &script).display().to_string(), ran)
}

type Plant = (&'static str, fn(&Door, &str), &'static [&'static str]);

/// Programs that an agent can make git run, each with a git command that runs it.
const PLANTS: [Plant; 6] = [
    (
        "a file-system monitor",
        |door, program| drop(door.sandbox.git(&["config", "core.fsmonitor", program])),
        &["status"],
    ),
    (
        "a hook",
        |door, program| {
            let hook = door.sandbox.file(".git/hooks/post-index-change");
            std::fs::copy(program, hook).unwrap();
            // With another stamp its line of the index is out of date, however slow the machine is.
            door.sandbox.write("README", "a repository of a test\n");
        },
        &["status"],
    ),
    ("a content filter", |door, program| filter(door, "", "evil", program), &["status"]),
    ("a filter of an odd name", |door, program| filter(door, "", "a=b", program), &["status"]),
    (
        "a filter of a submodule",
        |door, program| {
            for command in [
                &["init", "--quiet", "sub"][..],
                &["-C", "sub", "commit", "--quiet", "--allow-empty", "--message", "Begin"],
                &["add", "sub"],
                &["commit", "--quiet", "--message", "Add sub"],
            ] {
                door.sandbox.git(command);
            }
            door.sandbox.write("sub/README", "a file of the submodule\n");
            door.sandbox.git(&["-C", "sub", "add", "README"]);
            filter(door, "sub", "evil", program);
        },
        &["status"],
    ),
    (
        "a remote that is asked for a missing object",
        |door, program| {
            let url = format!("ext::{program}");
            for (name, value) in [
                ("core.repositoryFormatVersion", "1"),
                ("extensions.partialClone", "origin"),
                ("remote.origin.promisor", "true"),
                ("remote.origin.url", &url),
                ("protocol.ext.allow", "always"),
            ] {
                door.sandbox.git(&["config", name, value]);
            }
            let blob = door.sandbox.git(&["rev-parse", "HEAD:README"]);
            let (folder, name) = blob.split_at(2);
            std::fs::remove_file(door.sandbox.file(".git/objects").join(folder).join(name))
                .unwrap();
            door.sandbox.write("README", "another text\n");
        },
        &["diff", "--stat"],
    ),
];

/// Makes a repository's git run a program on every file whose stamp changed.
fn filter(door: &Door, repository: &str, name: &str, program: &str) {
    let folder = door.sandbox.file(repository);
    let attributes = format!("README filter={name}\n");
    let inside = folder.join(".git/info/attributes");
    std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
    std::fs::write(inside, attributes).unwrap();
    let folder = folder.display().to_string();
    door.sandbox.git(&["-C", &folder, "config", &format!("filter.{name}.clean"), program]);
    let readme = Path::new(&folder).join("README");
    let size = std::fs::read(&readme).unwrap().len();
    std::fs::write(readme, "x".repeat(size)).unwrap();
}

#[test]
fn nothing_that_is_planted_in_the_git_configuration_runs() {
    for (what, plant, runs_it) in PLANTS {
        let door = Door::new();
        let (program, ran) = planted(&door);
        let id = door.begin("\"go on\" -n 3 --stall 5");
        plant(&door, &program);
        door.stop("one").assert_goes_on();
        assert!(!ran.exists(), "{what} ran at a boundary");
        door.sandbox.crew(&["status"]).success();
        assert!(!ran.exists(), "{what} ran for a status");
        door.sandbox.crew(&["cancel", &id]).success();
        assert!(!ran.exists(), "{what} ran at the end");
        door.begin("\"go on\" -n 3 --stall 5");
        assert!(!ran.exists(), "{what} ran at a start");
        // And it does run for a git that is not careful.
        let mut command = door.sandbox.command("git");
        command.args(runs_it);
        let careless = Running::start(command, None);
        poll_until(&format!("{what} at work"), || ran.exists());
        drop(careless);
    }
}
