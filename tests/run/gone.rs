//! Things that a run finds missing or left over: its folder, its agent's program, and an earlier
//! interrupted loop.

use insta::assert_snapshot;
use rustix::process::Signal;

use super::{CLAIM, HANG, WORK, World};
use crate::sandbox::{DEADLINE, Sandbox, crew};
use crate::spawned::Running;

#[test]
fn a_start_points_out_an_interrupted_loop() {
    let world = World::new(&[HANG, CLAIM, HANG, CLAIM]);
    world.interrupted(&["run", "Do it"]);
    let ran = world.crew(&["run", "Do it"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_snapshot!(world.same(ran.stderr.lines().next().unwrap()), @"crew: loop ID was interrupted after 1 iteration; this is a new one · to resume that one: crew resume ID");
    assert_eq!(
        world
            .crew(&["run", "Do it", "--agent-cmd", "true", "-n", "1"])
            .stderr
            .matches("interrupted")
            .count(),
        0
    );
    // And one whose crew was killed.
    let running = world.hanging(&["run", "Do it"]);
    running.signal(Signal::KILL);
    running.wait(DEADLINE);
    let ran = world.crew(&["run", "Do it"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_snapshot!(world.same(ran.stderr.lines().next().unwrap()), @"crew: loop ID is now interrupted after 0 iterations; this is a new one · to resume that one: crew resume ID");
}

#[test]
fn a_loop_whose_folder_is_missing_is_not_resumed_and_nothing_is_counted() {
    let world = World::new(&[HANG, CLAIM]);
    world.interrupted(&["run", "Do it", "--worktree", "feat/it"]);
    let tree = world.sandbox.root().join("repo.worktrees/feat/it");
    std::fs::remove_dir_all(&tree).unwrap();
    let id = world.id();
    let refused = world.crew(&["resume", &id]);
    assert_eq!((refused.code(), world.calls()), (1, 1), "{refused:#?}");
    assert_snapshot!(world.same(&refused.stderr), @"
    crew: loop ID cannot be resumed: its folder ROOT/repo.worktrees/feat/it no longer exists
    hint: git -C ROOT/repo worktree add --force ROOT/repo.worktrees/feat/it feat/it
    ");
    assert_eq!(world.the_loop()["completed_iterations"], 1);
    let (repository, tree) = (world.sandbox.repository(), tree.display().to_string());
    let again = ["worktree", "add", "--quiet", "--force", &tree, "feat/it"];
    world.sandbox.git(&[&["-C", &repository.display().to_string()], &again[..]].concat());
    assert_eq!(world.crew(&["resume", &id]).code(), 0);
}

#[test]
fn a_folder_that_disappears_blocks_the_run_at_its_next_iteration() {
    let world = World::new(&["cd /; rm -rf \"$NOTES/../repo.worktrees/it\"; echo gone"]);
    let notes = world.note("").display().to_string();
    let mut command = world.sandbox.command(crew());
    command.args(["run", "Do it", "--worktree", "it"]).env("NOTES", notes);
    let ran = Running::start(command, None).wait(DEADLINE);
    assert_eq!((ran.code(), world.calls()), (13, 1), "{ran:#?}");
    let why =
        format!("its folder {}/repo.worktrees/it no longer exists", world.sandbox.root().display());
    assert_eq!(world.record()["state"]["ending"]["why"], why);
    assert!(!world.sandbox.root().join("repo.worktrees/it").exists(), "crew made it again");
}

#[test]
fn a_loop_whose_agent_is_no_longer_installed_is_not_resumed() {
    let world = World::of(Sandbox::new(), &[HANG]);
    world.interrupted(&["run", "Do it"]);
    std::fs::remove_file(world.sandbox.root().join("bin/agent")).unwrap();
    let refused = world.crew(&["resume"]);
    assert_eq!(refused.code(), 1, "{refused:#?}");
    assert_snapshot!(refused.stderr, @r#"
    crew: agent fake: there is no program `agent` on PATH
    hint: install it, or name another: --agent NAME, or --agent-cmd "COMMAND"
    "#);
    assert_eq!(world.the_loop()["completed_iterations"], 1);
}

#[test]
fn a_loop_of_another_working_tree_is_found_from_where_it_was_started() {
    let world = World::new(&[HANG, CLAIM, HANG]);
    let first = world.hanging(&["run", "Do it", "--worktree", "one"]);
    let id = world.id();
    for verb in ["status", "show"] {
        assert!(world.crew(&[verb]).success().contains(&id), "{verb}");
    }
    std::fs::create_dir_all(world.sandbox.file("sub")).unwrap();
    for verb in ["status", "show"] {
        assert!(world.crew_in("sub", &[verb]).success().contains(&id), "{verb}");
    }
    world.crew(&["tell", "use the parser"]).success();
    world.crew(&["set", "-n", "5"]).success();
    world.crew(&["pause", "--now"]).success();
    assert_eq!(first.wait(DEADLINE).code(), 130);
    let resumed = world.crew(&["resume"]);
    assert_eq!(resumed.code(), 0, "{resumed:#?}");
    assert!(world.crew(&["history"]).success().contains(&id));
    assert!(world.crew_in("sub", &["history"]).success().contains(&id));
    // One of this tree comes first, and mentions those that run beside it.
    let second = world.hanging(&["run", "Do more", "--worktree", "two"]);
    assert_eq!(world.crew(&["run", "Do this", "--agent-cmd", "true", "-n", "1"]).code(), 10);
    let shown = world.crew(&["status"]).success();
    let (here, beside) = shown.split_once("\nin other working trees:\n").unwrap();
    assert!(here.contains("exhausted") && beside.contains("Do more"), "{shown}");
    world.crew(&["cancel", beside.split(' ').next().unwrap()]).success();
    assert_eq!(second.wait(DEADLINE).code(), 14);
}

#[test]
fn a_loop_of_a_newer_crew_version_can_be_asked_to_pause() {
    let world = World::new(&[HANG]);
    world.interrupted(&["run", "Do it"]);
    let id = world.id();
    let mut record = world.record();
    record["version"] = 99.into();
    record["made_by"] = "9.9.9".into();
    record["state"]["status"] = "running".into();
    std::fs::write(world.file("loop.json"), record.to_string()).unwrap();
    let shown = world.crew(&["pause", &id]).success();
    assert_eq!(
        shown,
        format!("loop {id}: asked to pause; crew 9.9.9, which runs it, acts on it\n")
    );
    assert!(world.file("pause").exists());
}

#[test]
fn a_finished_loop_of_a_newer_crew_blocks_nothing() {
    let world = World::new(&[WORK]);
    assert_eq!(world.crew(&["run", "Do it", "-n", "1"]).code(), 10);
    let id = world.id();
    let mut record = world.record();
    record["version"] = 99.into();
    record["made_by"] = "9.9.9".into();
    std::fs::write(world.file("loop.json"), record.to_string()).unwrap();
    let shown = format!(
        "crew: loop {id} is over, recorded by crew 9.9.9, newer than this one; update crew to read it\n"
    );
    for arguments in [&["status", "--all"][..], &["history"], &["history", "--all"]] {
        let ran = world.crew(arguments);
        assert_eq!((ran.code(), &ran.stderr), (0, &shown), "{arguments:?}");
    }
    let cancelled = world.crew(&["cancel", &id]).success();
    assert_eq!(
        cancelled,
        format!("loop {id} is already over; crew 9.9.9, a newer version, recorded it\n")
    );
    assert_eq!(world.crew(&["pause", &id]).success(), cancelled);
    assert!(!world.file("cancel").exists() && !world.file("pause").exists());
    assert_eq!(world.crew(&["run", "Do it", "-n", "1"]).code(), 10);
}
