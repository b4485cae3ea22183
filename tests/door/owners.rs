//! The owner of a loop: each loop has one owner and one working tree, and nobody else's stop is
//! ever blocked.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Answer, Dice, Door, Event, OTHER_SESSION};
use crate::sandbox::{DEADLINE, Sandbox, poll_until};

impl Event<'_> {
    fn of(self, session_id: &str) -> Self {
        self.with("session_id", session_id)
    }

    /// Sends the event from a client that was started in this folder and still runs.
    fn at(self, folder: &Path) -> Self {
        let folder = folder.to_str().unwrap();
        self.with("cwd", folder).env("CLAUDE_PROJECT_DIR", folder)
    }
}

#[track_caller]
fn assert_begun(answer: &Answer) -> String {
    let id = answer.line().strip_prefix("loop ").and_then(|rest| rest.split_once(':'));
    id.unwrap_or_else(|| panic!("no start: {answer:#?}")).0.to_owned()
}

fn worktree(door: &Door, name: &str) -> PathBuf {
    let path = door.sandbox.root().join(name);
    door.sandbox.git(&["worktree", "add", "--quiet", path.to_str().unwrap(), "-b", name]);
    path
}

#[test]
fn another_session_of_the_same_client_may_stop_at_any_time() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0");
    door.stopping("theirs").of(OTHER_SESSION).send().assert_silent();
    door.stopping("<promise>COMPLETE</promise>").of(OTHER_SESSION).send().assert_silent();
    door.event("SessionEnd").of(OTHER_SESSION).with("reason", "clear").send().assert_silent();
    door.event("SessionStart").of(OTHER_SESSION).with("source", "startup").send().assert_silent();
    assert_eq!(door.record(&id)["state"]["boundaries"], 0);
    door.stop("ours").assert_goes_on();
}

#[cfg(target_os = "linux")]
#[test]
fn the_same_session_in_another_client_may_stop_at_any_time() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0");
    door.stopping("theirs").through_another_client().send().assert_silent();
    door.event("SessionEnd")
        .through_another_client()
        .with("reason", "other")
        .send()
        .assert_silent();
    assert_eq!(door.record(&id)["state"]["boundaries"], 0);
    door.stop("ours").assert_goes_on();
}

#[test]
fn two_hundred_stops_of_two_sessions_in_one_folder_do_not_interfere() {
    const SEED: u64 = 0x5eed_0003;
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 1000 --stall 0");
    let mut dice = Dice(SEED);
    let mut ours = 0_u64;
    for turn in 0..200 {
        let words = format!("turn {turn}");
        if dice.below(2) == 0 {
            door.stop(&words).assert_goes_on();
            ours += 1;
        } else {
            door.stopping(&words).of(OTHER_SESSION).send().assert_silent();
        }
        assert_eq!(door.record(&id)["state"]["completed"], ours, "seed {SEED:#x}, turn {turn}");
    }
}

#[test]
fn a_loop_follows_its_owner_into_any_folder() {
    let door = Door::new();
    door.sandbox.write("deep/er/file", "");
    let tree = worktree(&door, "elsewhere");
    let id = door.begin("\"go on\" -n 9 --stall 0 --gate 'pwd > where'");
    let at = |words: &str, folder: &Path| door.stopping(words).with("cwd", folder.to_str()).send();
    at("a subfolder", &door.sandbox.file("deep/er")).assert_goes_on();
    door.sandbox.git(&["switch", "--quiet", "--create", "another/branch"]);
    at("another branch", &door.sandbox.repository()).assert_goes_on();
    at("a worktree", &tree).assert_goes_on();
    at("outside", Path::new("/")).assert_goes_on();
    at("gone", &door.sandbox.root().join("gone")).assert_goes_on();
    let nowhere = door.stopping("nowhere").without("cwd").send();
    nowhere.assert_goes_on();
    assert_eq!(door.record(&id)["state"]["completed"], 6);
    assert_eq!(door.view()["loop"]["iteration"], 7, "the branch it began on names its folder");
    let where_checks_ran = std::fs::read_to_string(door.sandbox.file("where")).unwrap();
    assert_eq!(Path::new(where_checks_ran.trim()), door.sandbox.repository());
}

#[test]
fn a_refused_second_start_names_the_owner_the_iteration_and_what_to_do() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0");
    door.stop("one").assert_goes_on();
    let tree = worktree(&door, "free");
    let deep = door.sandbox.write("deep/er/file", "").with_file_name("");
    for (second, owner) in [
        (door.command("\"another\"").of(OTHER_SESSION), super::SESSION),
        (door.command("\"another\"").of(OTHER_SESSION).at(&deep), super::SESSION),
        (door.command("\"another\"").with("prompt_id", "p-2"), "this session"),
        (door.command("\"another\"").with("prompt_id", "p-2").at(&tree), "this session"),
        // The same words again, but not the same command: the loop has continued since.
        (door.command("\"go on\" -n 9 --stall 0"), "this session"),
    ] {
        let answer = second.send();
        for expected in [&*id, "iteration 2", owner, "--replace", "crew cancel", "worktree"] {
            assert!(answer.refusal().contains(expected), "no {expected:?}: {answer:#?}");
        }
    }
    assert_eq!(door.record(&id)["state"]["boundaries"], 1);
    door.stop("two").assert_goes_on();
}

#[test]
fn a_replaced_loop_is_cancelled_and_its_owner_may_stop() {
    let door = Door::new();
    let first = door.begin("\"go on\" -n 9 --stall 0");
    let second = door.command("\"another\" -n 9 --stall 0 --replace").of(OTHER_SESSION).send();
    let second = assert_begun(&second);
    assert_eq!(door.record(&first)["state"]["ending"]["outcome"], "cancelled");
    let reported = door.stop("the replaced one").assert_lets_go();
    assert!(
        reported.line().contains(": cancelled by the user: replaced by a new loop · "),
        "{reported:#?}"
    );
    door.stop("the replaced one, again").assert_silent();
    door.stopping("the new one").of(OTHER_SESSION).send().assert_goes_on();
    assert_eq!(door.record(&second)["state"]["completed"], 1);
}

#[test]
fn two_working_trees_run_two_loops_side_by_side() {
    let door = Door::new();
    let tree = worktree(&door, "side");
    let here = door.begin("\"here\" -n 9 --stall 5");
    let there = door.command("\"there\" -n 9 --stall 5").of(OTHER_SESSION).at(&tree).send();
    let there = assert_begun(&there);
    for turn in 0..3 {
        let words = format!("turn {turn}");
        assert!(door.stop(&words).assert_goes_on().context().contains("here"));
        let answer = door.stopping(&words).of(OTHER_SESSION).at(&tree).send();
        assert!(answer.assert_goes_on().context().contains("there"));
    }
    for id in [&here, &there] {
        assert_eq!(door.record(id)["state"]["completed"], 3);
    }
    let view: Value = serde_json::from_slice(
        &std::fs::read(tree.join(".claude/branches/side/state.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(view["loop"]["id"], *there);
}

#[cfg(target_os = "linux")]
#[test]
fn a_loop_whose_client_has_exited_is_interrupted_and_reported_once() {
    let door = Door::new();
    let started = door.command("\"go on\" -n 9 --stall 0").through_another_client().send();
    let id = assert_begun(&started);
    assert_eq!(door.status(&id)["owner_is_gone"], true);
    door.stop("of the next client").assert_silent();
    let begin = || door.event("SessionStart").of(OTHER_SESSION).with("source", "startup").send();
    let reported = begin();
    assert!(
        reported.line().contains(&id) && reported.line().contains("interrupted"),
        "{reported:#?}"
    );
    assert!(!reported.goes_on(), "never continued unasked: {reported:#?}");
    begin().assert_silent();
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "interrupted");
    assert_eq!(door.handoffs().len(), 1);
    door.stop("once more").assert_silent();
    door.begin("\"the next\" -n 9");
}

#[cfg(target_os = "linux")]
#[test]
fn time_without_an_owner_does_not_count_as_the_loops() {
    let door = Door::new();
    let started = door.command("\"go on\" -n 9 --stall 0").through_another_client().send();
    let id = assert_begun(&started);
    std::thread::sleep(std::time::Duration::from_millis(300));
    door.sandbox.crew(&["cancel", &id]).success();
    assert_eq!(door.record(&id)["state"]["awake_ms"], 0);
}

#[test]
fn a_cancel_in_a_terminal_says_that_a_working_agent_finishes_its_turn() {
    let door = Door::new();
    let reported = "\n  now     its agent finishes the turn it is in; Esc in the client stops it\n";
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let page = door.sandbox.crew(&["cancel", &id]).success();
    assert!(page.contains(reported), "{page}");
    let shown = door.sandbox.crew(&["show", &id]).success();
    assert!(!shown.contains("finishes the turn"), "the turn is soon over: {shown}");
    let id = door.begin("\"rest\" -n 9 --stall 0");
    door.sandbox.crew(&["pause", &id]).success();
    door.stop("one").assert_lets_go();
    let page = door.sandbox.crew(&["cancel", &id]).success();
    assert!(page.contains("cancelled") && !page.contains("finishes the turn"), "{page}");
    door.begin("\"end it there\" -n 9 --stall 0");
    let answer = door.event("UserPromptExpansion").with("prompt_id", "p-9");
    let answer = answer.with("command_name", "crew:cancel-loop").with("command_args", "").send();
    assert!(answer.refusal().contains("cancelled by the user"), "{answer:#?}");
    assert!(!answer.refusal().contains("finishes the turn"), "{answer:#?}");
}

#[test]
fn a_session_whose_loop_was_taken_over_keeps_its_present_loop() {
    let door = Door::new();
    let first = door.begin("\"go on\" -n 1 --stall 0");
    door.stop("one").assert_lets_go();
    let other = worktree(&door, "other");
    let second = assert_begun(&door.command("\"another\" -n 9 --stall 0").at(&other).send());
    let taken = door
        .command(&format!("{first} -n +5"))
        .with("command_name", "crew:resume")
        .of(OTHER_SESSION)
        .send();
    assert!(taken.line().starts_with(&format!("resumed loop {first}")), "{taken:#?}");
    door.stopping("of the second").at(&other).send().assert_goes_on();
    door.stopping("of the first").of(OTHER_SESSION).send().assert_goes_on();
    assert_eq!(door.record(&second)["state"]["completed"], 1);
    assert_eq!(door.record(&first)["state"]["completed"], 2);
}

#[test]
fn a_boundary_that_outlives_its_owner_counts_nothing_for_the_next_owner() {
    let door = Door::of(Sandbox::without_git());
    let check = |name: &str| format!("--gate 'touch {name}; sleep 300 & wait'");
    let id = door.begin(&format!("\"go on\" -n 9 --stall 0 {} {}", check("a"), check("b")));
    let hook = door.stopping("<promise>COMPLETE</promise>").start();
    poll_until("the first check at work", || door.sandbox.file("a").exists());
    door.event("SessionEnd").with("reason", "clear").send().assert_silent();
    poll_until("the second check at work", || door.sandbox.file("b").exists());
    let taken = door.command("").with("command_name", "crew:resume").of(OTHER_SESSION).send();
    assert!(taken.line().starts_with("resumed"), "{taken:#?}");
    Answer::of(hook.wait(DEADLINE)).assert_silent();
    let state = &door.record(&id)["state"];
    assert_eq!((&state["completed"], &state["status"]), (&0.into(), &"running".into()));
    assert_eq!(state["owner"]["session_id"], OTHER_SESSION);
    assert_eq!(state["session"]["prompt_id"], "p-0", "what the next owner remembers");
}

#[test]
fn the_end_of_its_session_interrupts_a_loop() {
    for reason in ["clear", "logout", "prompt_input_exit", "other"] {
        let door = Door::of(Sandbox::without_git());
        let id = door.begin("\"go on\" -n 9 --stall 0");
        door.event("SessionEnd").with("reason", reason).send().assert_silent();
        let ending = &door.record(&id)["state"]["ending"];
        assert_eq!(ending["outcome"], "interrupted");
        assert!(ending["why"].as_str().unwrap().contains(reason), "{ending}");
        door.stop("after the end").assert_silent();
    }
}

#[test]
fn a_record_without_an_owner_holds_no_session() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let sound = door.record(&id);
    for owner in ["", "null"] {
        let mut record = sound.clone();
        record["state"]["owner"]["session_id"] = owner.into();
        std::fs::write(door.file(&id, "loop.json"), record.to_string()).unwrap();
        for session in [super::SESSION, OTHER_SESSION, "", "null"] {
            door.stopping("a stop").of(session).send().assert_silent();
        }
        door.stopping("a stop").without("session_id").send().assert_silent();
    }
    assert_eq!(door.record(&id)["state"]["boundaries"], 0);
}

#[test]
fn a_folder_without_git_has_loops_that_run_and_stall() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 8 --stall 2");
    for turn in 1..5 {
        door.sandbox.write("work", &"x".repeat(turn));
        door.stop(&format!("turn {turn}")).assert_goes_on();
    }
    door.stop("nothing done").assert_goes_on();
    door.stop("nothing done again").assert_lets_go();
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "stalled");
    assert!(door.sandbox.file(".claude/branches/no-branch/state.json").exists());
}

#[test]
fn spaces_and_other_scripts_in_a_path_do_no_harm() {
    let door = Door::new();
    let folder = door.sandbox.root().join("ein Ordner 日本 'mit \"allem\" $HOME");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.to_str().unwrap();
    door.sandbox.git(&["init", "--quiet", "--initial-branch=zweig/ä", path]);
    let command = door.command("\"go on\" -n 2 --gate 'touch \"lief hier\"' --stall 2").at(&folder);
    let id = assert_begun(&command.send());
    door.stopping("one").at(&folder).send().assert_goes_on();
    assert!(folder.join("lief hier").exists());
    let answer = door.stopping("two").at(&folder).send().assert_lets_go();
    assert!(answer.line().contains("handoff"), "{answer:#?}");
    let branch = folder.join(".claude/branches/zweig-ä");
    let view: Value =
        serde_json::from_slice(&std::fs::read(branch.join("state.json")).unwrap()).unwrap();
    assert_eq!(view["branch"], "zweig/ä");
    assert_eq!(view["loop"]["id"], *id);
    assert_eq!(std::fs::read_dir(branch.join("handoffs")).unwrap().count(), 1);
}
