//! One loop, one owner, one working tree: who may start, who is refused, and which requests from
//! another terminal are carried out while a run is at work.

use std::path::PathBuf;
use std::time::Duration;

use insta::assert_snapshot;
use rustix::process::{Pid, test_kill_process};
use serde_json::Value;

use super::{CLAIM, HANG, WORK, World};
use crate::sandbox::{DEADLINE, crew, poll_until, write_executable};
use crate::spawned::Running;

/// A step that waits for the test.
const WAIT: &str = "echo Waiting.; touch \"$notes/hangs\"; \
                    until test -e \"$notes/go\"; do sleep 0.02; done; echo waited >> work.txt";

impl World {
    fn let_go(&self) {
        std::fs::write(self.note("go"), "").unwrap();
    }

    /// Puts the crew under test on the agent's `PATH`.
    fn with_crew(self) -> Self {
        self.sandbox.program("crew", &format!("exec '{}' \"$@\"", crew().display()));
        self
    }

    /// Makes a git filter of the user block every commit until there is a note `committed`.
    fn hold_up_commits(&self) {
        let filter = self.sandbox.root().join("filter");
        let notes = self.note("").display().to_string();
        let line = format!(
            "touch '{notes}/commits'; until test -e '{notes}/committed'; do sleep 0.02; done; cat"
        );
        write_executable(&filter, &format!("#!/bin/sh\n{line}\n"));
        let attributes = self.sandbox.file(".git/info/attributes");
        std::fs::create_dir_all(attributes.parent().unwrap()).unwrap();
        std::fs::write(attributes, "work.txt filter=slow\n").unwrap();
        self.sandbox.git(&["config", "filter.slow.clean", &filter.display().to_string()]);
    }

    /// The process whose id a step left in a note.
    #[track_caller]
    fn process(&self, note: &str) -> Pid {
        let text = std::fs::read_to_string(self.note(note)).unwrap();
        Pid::from_raw(text.trim().parse().unwrap()).unwrap()
    }
}

fn is_alive(process: Pid) -> bool {
    test_kill_process(process).is_ok()
}

fn id_of(record: &Value) -> &str {
    record["id"].as_str().unwrap()
}

#[test]
fn a_refused_second_run_in_a_working_tree_names_the_owner() {
    let world = World::new(&[HANG]);
    let first = world.hanging(&["run", "make it"]);
    let id = world.id();
    let pid = first.pid().as_raw_nonzero();
    world.sandbox.write("below/file", "");
    for folder in ["", "below"] {
        let mut command = world.sandbox.command(crew());
        command.args(["run", "another one"]).current_dir(world.sandbox.file(folder));
        let second = Running::start(command, None).wait(DEADLINE);
        assert_eq!(second.code(), 1);
        assert_eq!(
            second.stderr,
            format!(
                "crew: loop {id} is running here at iteration 1, owned by crew run, process {pid}\n\
                 hint: end it with `crew cancel {id}`, use another git worktree, or start with --replace\n"
            )
        );
    }
    let resumed = world.crew(&["resume"]);
    assert_eq!(resumed.code(), 1);
    assert!(resumed.stderr.contains(&format!("in crew run, process {pid}")), "{resumed:#?}");
    assert_eq!((world.calls(), &world.the_loop()["status"]), (1, &"running".into()));
}

#[test]
fn a_paused_run_keeps_its_working_tree() {
    let world = World::new(&[HANG]);
    let running = world.hanging(&["run", "make it"]);
    world.crew(&["pause", "--now"]).success();
    assert_eq!(running.wait(DEADLINE).code(), 130);
    let second = world.crew(&["run", "another one"]);
    assert_eq!(second.code(), 1);
    assert_snapshot!(world.same(&second.stderr), @"
    crew: loop ID is paused here before iteration 1; crew resume ID resumes it
    hint: end it with `crew cancel ID`, use another git worktree, or start with --replace
    ");
    let shown = world.crew(&["status"]).success();
    assert!(!shown.contains("gone"), "{shown}");
    assert_eq!(world.the_loop()["status"], "paused");
}

#[test]
fn a_paused_run_is_not_taken_over_while_its_crew_process_still_commits() {
    let world = World::new(&[WAIT]);
    world.hold_up_commits();
    let running = world.hanging(&["run", "make it", "--commit"]);
    world.crew(&["pause"]).success();
    world.let_go();
    poll_until("crew commits", || world.note("commits").exists());
    assert_eq!(world.the_loop()["status"], "paused");
    let refused = world.crew(&["resume"]);
    assert_eq!((refused.code(), world.calls()), (1, 1), "{refused:#?}");
    let pid = running.pid().as_raw_nonzero();
    let reported = format!("is paused, but its crew run, process {pid}, still works");
    assert!(refused.stderr.contains(&reported), "{refused:#?}");
    // Somebody took it anyway: the old crew writes nothing more.
    let file = world.sandbox.crew_home().join("loops").join(world.id()).join("loop.json");
    let mut record = world.record();
    record["state"]["owner"]["process"]["pid"] = 1.into();
    std::fs::write(&file, serde_json::to_vec(&record).unwrap()).unwrap();
    std::fs::write(world.note("committed"), "").unwrap();
    running.wait(DEADLINE);
    assert_eq!(world.record(), record);
}

#[test]
fn a_resume_waits_for_the_crew_of_a_pause_and_continues() {
    let world = World::new(&[WAIT, CLAIM]);
    world.hold_up_commits();
    let running = world.hanging(&["run", "make it", "--commit"]);
    world.crew(&["pause"]).success();
    world.let_go();
    poll_until("crew commits", || world.note("commits").exists());
    let resumed = world.sandbox.start_crew(&["resume"]);
    std::thread::sleep(Duration::from_secs(1));
    std::fs::write(world.note("committed"), "").unwrap();
    assert_eq!(running.wait(DEADLINE).code(), 130);
    let resumed = resumed.wait(DEADLINE);
    assert_eq!((resumed.code(), world.calls()), (0, 2), "{resumed:#?}");
}

#[test]
fn nothing_begins_while_another_process_still_commits_for_an_ended_loop() {
    let world = World::new(&[WORK]);
    world.hold_up_commits();
    let running = world.sandbox.start_crew(&["run", "make it", "-n", "1", "--commit"]);
    poll_until("crew commits", || world.note("commits").exists());
    assert_eq!(world.the_loop()["status"], "finished");
    let pid = running.pid().as_raw_nonzero();
    for arguments in [&["resume", "-n", "+1"][..], &["run", "another one"]] {
        let refused = world.crew(arguments);
        assert_eq!((refused.code(), world.calls()), (1, 1), "{refused:#?}");
        let reported = format!("crew run, process {pid}, still works in this working tree\nhint: ");
        assert!(refused.stderr.contains(&reported), "{refused:#?}");
    }
    std::fs::write(world.note("committed"), "").unwrap();
    assert_eq!(running.wait(DEADLINE).code(), 10);
    let ran = world.crew(&["resume", "-n", "+1"]);
    assert_eq!((ran.code(), world.calls()), (10, 2), "{ran:#?}");
}

#[test]
fn a_cancel_ends_a_running_commit() {
    let world = World::new(&[WAIT]);
    world.hold_up_commits();
    let running = world.hanging(&["run", "make it", "--commit"]);
    world.let_go();
    poll_until("crew commits", || world.note("commits").exists());
    world.crew(&["cancel"]).success();
    let ran = running.wait(DEADLINE);
    assert_eq!(ran.code(), 14, "{ran:#?}");
    assert_eq!(world.sandbox.git(&["rev-list", "--count", "HEAD"]), "1");
}

#[test]
fn two_working_trees_each_have_a_run() {
    let world = World::new(&[HANG, CLAIM, CLAIM]);
    let first = world.hanging(&["run", "make it"]);
    for made in ["made", "found"] {
        let ran = world.crew(&["run", "another one", "--worktree", "feat/other"]);
        assert_eq!(ran.code(), 0, "{ran:#?}");
        let path = world.sandbox.root().join("repo.worktrees/feat/other");
        let expected = format!("crew: working tree {made}: {}\n", path.display());
        assert!(ran.stderr.starts_with(&expected), "{}", ran.stderr);
    }
    let calls = std::fs::read_to_string(world.note("calls")).unwrap();
    let folders: Vec<PathBuf> = calls.lines().map(PathBuf::from).collect();
    let other = world.sandbox.root().join("repo.worktrees/feat/other");
    assert_eq!(folders, [world.sandbox.repository(), other.clone(), other]);
    assert_eq!(world.sandbox.git(&["branch", "--list", "feat/other"]), "+ feat/other");
    drop(first);
}

#[test]
fn a_replaced_run_ends_before_the_agent_of_the_new_one_begins() {
    let stubborn = "trap '' TERM; echo $$ > \"$notes/first\"; touch \"$notes/hangs\"; \
                    while :; do sleep 0.1; done";
    let look = "kill -0 $(cat \"$notes/first\") 2> /dev/null && touch \"$notes/both\"; \
                echo '<promise>COMPLETE</promise>'";
    let world = World::new(&[stubborn, look]);
    let first = world.hanging(&["run", "make it"]);
    let old = world.id();
    let second = world.crew(&["run", "another one", "--replace"]);
    assert_eq!(second.code(), 0, "{second:#?}");
    let expected = format!("crew: loop {old} is now cancelled after 0 iterations\n");
    assert!(second.stderr.starts_with(&expected), "{}", second.stderr);
    assert!(!world.note("both").exists(), "two agents were alive in one checkout");
    assert_eq!(first.wait(DEADLINE).code(), 14);
}

#[test]
fn the_agent_of_a_cancelled_run_may_end_gracefully() {
    let in_order = "trap 'sleep 0.5; touch \"$notes/in_order\"; exit 0' TERM; \
                    touch \"$notes/hangs\"; sleep 600 & wait";
    let world = World::new(&[in_order]);
    let running = world.hanging(&["run", "make it"]);
    world.crew(&["cancel"]).success();
    let ran = running.wait(DEADLINE);
    assert_eq!(ran.code(), 14, "{ran:#?}");
    assert!(world.note("in_order").exists(), "it was killed at once");
}

#[test]
fn after_a_cancel_the_agent_is_gone() {
    let world = World::new(&["echo $$ > \"$notes/agent\"; touch \"$notes/hangs\"; sleep 600"]);
    let running = world.hanging(&["run", "make it"]);
    let agent = world.process("agent");
    assert!(is_alive(agent));
    world.crew(&["cancel"]).success();
    poll_until("the agent is gone", || !is_alive(agent));
    assert_eq!(running.wait(DEADLINE).code(), 14);
}

#[test]
fn a_pause_lets_the_iteration_end_and_an_immediate_one_repeats_it() {
    let world = World::new(&[WAIT, HANG, CLAIM]);
    let running = world.hanging(&["run", "make it"]);
    let reported = world.crew(&["pause"]).success();
    assert!(reported.contains("pauses when iteration 1 ends"), "{reported}");
    world.let_go();
    assert_eq!(running.wait(DEADLINE).code(), 130);
    assert_eq!(world.the_loop()["completed_iterations"], 1);
    let running = world.hanging(&["resume"]);
    let reported = world.crew(&["pause", "--now"]).success();
    assert!(reported.contains("paused after 1 iteration · crew resume"), "{reported}");
    let ran = running.wait(DEADLINE);
    assert_eq!(ran.code(), 130);
    assert!(ran.stdout.contains("Paused before iteration 2/10."), "{ran:#?}");
    assert_eq!(world.the_loop()["completed_iterations"], 1);
    let ran = world.crew(&["resume"]);
    assert_eq!((ran.code(), world.calls()), (0, 3), "{ran:#?}");
    for call in [2, 3] {
        assert!(world.prompt(call).contains("This is iteration 2 of 10."), "call {call}");
    }
}

#[test]
fn an_immediate_pause_ends_a_check_and_repeats_its_iteration() {
    let check =
        |world: &World| format!("echo $$ > '{}'; exec sleep 600", world.note("check").display());
    for (role, completed, standing) in
        [("--gate", 0, "paused after 0 iterations"), ("--verify", 0, "paused after 0 iterations")]
    {
        let world = World::new(&[WORK]);
        let running = world.sandbox.start_crew(&["run", "make it", role, &check(&world)]);
        poll_until("the check", || {
            std::fs::read(world.note("check")).is_ok_and(|id| !id.is_empty())
        });
        let process = world.process("check");
        let reported = world.crew(&["pause", "--now"]).success();
        assert!(reported.contains(standing), "{role}: {reported}");
        let ran = running.wait(DEADLINE);
        assert_eq!(ran.code(), 130, "{role}: {ran:#?}");
        assert!(ran.stdout.contains("Paused before iteration 1/10."), "{role}: {ran:#?}");
        assert!(!is_alive(process), "{role}: the check is left");
        assert_eq!(world.the_loop()["completed_iterations"], completed, "{role}");
    }
}

#[test]
fn limits_changed_during_a_run_take_effect() {
    for (limit, typed, calls) in [("5", "2", 2), ("1", "+2", 3)] {
        let world = World::new(&[WAIT, WORK]);
        let running = world.hanging(&["run", "make it", "-n", limit]);
        world.crew(&["set", "-n", typed]).success();
        world.let_go();
        let ran = running.wait(DEADLINE);
        assert_eq!((ran.code(), world.calls()), (10, calls), "{ran:#?}");
        let last = format!("Iteration {calls}/{calls} completed");
        assert!(ran.stdout.contains(&last), "{ran:#?}");
    }
}

#[test]
fn an_agent_may_read_and_lower_limits_but_not_start_resume_or_raise_them() {
    let step = "crew run 'a loop of its own' 2> \"$notes/run\"; echo $? >> \"$notes/codes\"\n\
                crew run build --detach 2> \"$notes/detached\"; echo $? >> \"$notes/codes\"\n\
                crew resume 2> \"$notes/resume\"; echo $? >> \"$notes/codes\"\n\
                crew set -n 99 2> \"$notes/set\"; echo $? >> \"$notes/codes\"\n\
                crew status > \"$notes/status\"; echo $? >> \"$notes/codes\"\n\
                crew set -n 1 > \"$notes/lower\"; echo $? >> \"$notes/codes\"";
    let world = World::new(&[step]).with_crew();
    let ran = world.crew(&["run", "make it", "-n", "3"]);
    let read = |name: &str| std::fs::read_to_string(world.note(name)).unwrap();
    assert_eq!(read("codes"), "1\n1\n1\n1\n0\n0\n");
    assert_eq!((ran.code(), world.calls()), (10, 1), "{ran:#?}");
    assert!(read("run").contains("an agent cannot start a loop"), "{}", read("run"));
    assert!(read("detached").contains("an agent cannot start a loop"));
    assert!(read("resume").contains("an agent cannot resume a loop"), "{}", read("resume"));
    assert!(read("set").contains("an agent cannot raise a limit"), "{}", read("set"));
    assert!(read("status").contains("running"), "{}", read("status"));
    assert_eq!(world.loops().len(), 1);
}

#[test]
fn a_detached_run_can_be_seen_followed_and_cancelled_from_elsewhere() {
    let world = World::new(&["echo 'first words'; echo one >> work.txt", WAIT, HANG]);
    let ran = world.crew(&["run", "build", "--detach"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let id = world.id();
    let words = format!("loop {id} runs in the background, process ");
    assert!(ran.stdout.contains(&words), "{ran:#?}");
    poll_until("the second iteration waits", || world.note("hangs").exists());
    let record = world.the_loop();
    assert_eq!((id_of(&record), &record["iteration"]), (&*id, &2.into()));
    let shown = world.crew(&["status"]).success();
    assert!(shown.contains(&format!("loop {id} · running")), "{shown}");
    let following = world.sandbox.start_crew(&["show", "--log", "-f"]);
    poll_until("the log of the second iteration", || following.stdout().contains("Waiting."));
    std::fs::remove_file(world.note("hangs")).unwrap();
    world.let_go();
    poll_until("the third iteration hangs", || world.note("hangs").exists());
    let owner = world.record()["state"]["owner"]["process"]["pid"].as_i64().unwrap();
    let owner = Pid::from_raw(i32::try_from(owner).unwrap()).unwrap();
    assert!(is_alive(owner));
    poll_until("the log of the third iteration", || following.stdout().contains("Thinking."));
    world.crew(&["cancel", "--reason", "enough"]).success();
    let followed = following.wait(DEADLINE);
    assert!(followed.stderr.ends_with(&format!("loop {id} is over: cancelled\n")), "{followed:#?}");
    poll_until("its crew is gone", || !is_alive(owner));
    let log = world.sandbox.crew_home().join("loops").join(&id).join("run.log");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("Cancelled: cancelled by the user: enough"), "{log}");
}
