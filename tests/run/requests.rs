//! Requests that have not been carried out yet, and a request in the view: they are reported, and
//! the stronger one wins.

use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::Value;

use super::{CLAIM, HANG, World};
use crate::sandbox::DEADLINE;

/// A step that waits for the test.
const WAIT: &str = "echo Waiting.; touch \"$notes/hangs\"; \
                    until test -e \"$notes/go\"; do sleep 0.02; done; echo waited >> work.txt";

impl World {
    /// Switches the loop off by editing its view, as a user would.
    fn switch_off(&self) {
        let file: PathBuf = self.sandbox.file(".claude/branches/main/state.json");
        let mut view: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        view["loop"]["active"] = false.into();
        std::fs::write(file, view.to_string()).unwrap();
    }
}

#[test]
fn a_loop_made_inactive_in_its_state_file_is_cancelled_despite_other_requests() {
    let world = World::new(&[WAIT, HANG]);
    let running = world.hanging(&["run", "Do it"]);
    world.crew(&["pause"]).success();
    world.switch_off();
    std::fs::write(world.note("go"), "").unwrap();
    let ran = running.wait(DEADLINE);
    assert_eq!(
        (ran.code(), world.the_loop()["outcome"].as_str()),
        (14, Some("cancelled")),
        "{ran:#?}"
    );
}

#[test]
fn a_paused_loop_made_inactive_is_cancelled_at_the_next_resume_or_start() {
    let world = World::new(&[HANG, CLAIM]);
    let running = world.hanging(&["run", "Do it"]);
    world.crew(&["pause", "--now"]).success();
    running.wait(DEADLINE);
    world.switch_off();
    let refused = world.crew(&["resume"]);
    assert_eq!((refused.code(), world.calls()), (1, 1), "{refused:#?}");
    assert_snapshot!(world.same(&refused.stderr), @r#"
    crew: loop ID is cancelled now: "active": false in state.json
    hint: crew resume ID still resumes it
    "#);
    assert_eq!(world.the_loop()["outcome"], "cancelled");
    assert_eq!(world.crew(&["resume"]).code(), 0);
    world.steps(&[HANG, CLAIM]);
    let running = world.hanging(&["run", "Do it"]);
    world.crew(&["pause", "--now"]).success();
    running.wait(DEADLINE);
    world.switch_off();
    let ran = world.crew(&["run", "Do it"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert!(ran.stderr.contains("is now cancelled after 0 iterations"), "{ran:#?}");
}

#[test]
fn a_pending_pause_is_shown() {
    let world = World::new(&[WAIT]);
    let running = world.hanging(&["run", "Do it"]);
    let seen = || {
        let line = world.crew(&["status", "--line"]).success().contains(" · pausing");
        let page = world.crew(&["status"]).success();
        let page = page.contains("pending a pause, when iteration 1 ends");
        (world.the_loop()["pausing"] == true, line, page)
    };
    assert_eq!(seen(), (false, false, false));
    world.crew(&["pause"]).success();
    assert_eq!(seen(), (true, true, true));
    std::fs::write(world.note("go"), "").unwrap();
    assert_eq!(running.wait(DEADLINE).code(), 130);
    assert_eq!(seen(), (false, false, false));
}

#[test]
fn a_rebuilt_record_is_reported_once() {
    let world = World::new(&[CLAIM]);
    assert_eq!(world.crew(&["run", "Do it"]).code(), 0);
    let id = world.id();
    std::fs::write(world.file("loop.json"), "{\"version\":2,").unwrap();
    let shown = world.crew(&["status", &id]);
    assert_eq!(shown.code(), 0, "{shown:#?}");
    let begin = format!("crew: loop {id}: the record was broken (EOF");
    assert!(
        shown.stderr.starts_with(&begin) && shown.stderr.contains("; rebuilt, the old kept as")
    );
    assert_eq!(world.crew(&["status", &id]).stderr, "");
}

#[test]
fn an_empty_prompt_file_names_the_typed_command_in_its_hint() {
    let world = World::new(&[CLAIM]);
    world.sandbox.write("TASK.md", " \n");
    assert_snapshot!(world.crew(&["run", "--prompt-file", "TASK.md"]).stderr, @r#"
    crew: the task is empty
    hint: crew run "task" --verify "command"
    "#);
}
