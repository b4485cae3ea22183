//! A paused loop of a session: messages sent to it meanwhile, and the work that its agent did
//! before.

use serde_json::json;

use super::Door;
#[cfg(target_os = "linux")]
use crate::run::HANG;
use crate::run::World;
use crate::sandbox::{DEADLINE, Sandbox, crew, poll_until};

fn paused(door: &Door) -> String {
    let id = door.begin("\"go on\" -n 9 --stall 2");
    door.stop("one").assert_goes_on();
    door.sandbox.write("half.txt", "half\n");
    door.sandbox.crew(&["pause", &id]).success();
    door.stop("two").assert_lets_go();
    assert_eq!(door.record(&id)["state"]["status"], "paused");
    id
}

fn resumed(door: &Door, id: &str) -> String {
    let answer = door.command(id).with("command_name", "crew:resume").send();
    answer.assert_goes_on().context().to_owned()
}

#[test]
fn a_message_to_a_paused_loop_is_in_the_prompt_of_its_resume_and_in_no_later_one() {
    let door = Door::new();
    let id = paused(&door);
    door.sandbox.crew(&["tell", "--loop", &id, "use the parser"]).success();
    let prompt = resumed(&door, &id);
    assert!(prompt.contains("The user says: use the parser\n"), "{prompt}");
    let page = door.sandbox.crew(&["status", &id]).success();
    assert!(page.contains("message \"use the parser\" (in the prompt of iteration 2)"), "{page}");
    let next = door.stop("three").assert_goes_on();
    assert!(!next.context().contains("The user says"), "{next:#?}");
}

#[test]
fn a_page_names_the_command_to_type_where_it_is_read() {
    let door = Door::new();
    let id = paused(&door);
    let page = door.sandbox.crew(&["status", &id]).success();
    assert!(page.contains(&format!("\n  next    crew resume {id}\n")), "{page}");
    let page = door.command("").with("command_name", "crew:status").send();
    assert!(page.refusal().ends_with(&format!("\n  next    /crew:resume {id}")), "{page:#?}");
    let page = door.sandbox.crew(&["cancel", &id]).success();
    assert!(page.contains(&format!("\n  then    crew resume {id}\n")), "{page}");
}

#[test]
fn a_page_in_a_session_shows_the_full_path_if_crew_is_not_on_the_path() {
    let world = World::new(&["echo '<promise>BLOCKED: which region?</promise>'"]);
    assert_eq!(world.crew(&["run", "Set up the backup"]).code(), 13);
    let id = world.id();
    let door = Door::of(world.sandbox);
    let status = door.command("").with("command_name", "crew:status");
    let page = status.env("PATH", "/usr/bin:/bin").send();
    let next = format!("  next    {} resume {id} --tell ", crew().display());
    assert!(page.refusal().contains(&next), "{page:#?}");
}

#[test]
fn a_session_learns_once_that_its_loop_was_cancelled_elsewhere() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9");
    door.sandbox.crew(&["cancel", &id, "--reason", "wrong branch"]).success();
    let shown = format!(
        "crew: loop {id} was cancelled after 0 iterations: cancelled by the user: wrong branch · \
         /crew:resume {id} resumes it"
    );
    assert_eq!(door.stop("one").assert_lets_go().line(), shown);
    door.stop("two").assert_silent();
    for typed in ["/crew:cancel-loop", "crew cancel", "another loop in its place"] {
        let id = door.begin("\"go on\" -n 9");
        match typed {
            "/crew:cancel-loop" => {
                drop(door.command("").with("command_name", "crew:cancel-loop").send());
            }
            "crew cancel" => drop(door.type_in(typed)),
            _ => drop(door.command("\"go further\" -n 9 --replace").send()),
        }
        assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "cancelled", "{typed}");
        let next = door.stop("three");
        assert!(!next.line().contains("was cancelled"), "{typed}: {next:#?}");
    }
}

#[test]
fn a_message_from_before_the_first_boundary_is_delivered_at_a_resume_too() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9");
    door.sandbox.crew(&["pause", &id]).success();
    door.stop("one").assert_lets_go();
    door.sandbox.crew(&["tell", "--loop", &id, "use the parser"]).success();
    let prompt = resumed(&door, &id);
    assert!(prompt.contains("The user says: use the parser\n"), "{prompt}");
}

#[test]
fn work_done_before_a_pause_counts_for_the_repeated_iteration() {
    let door = Door::new();
    let id = paused(&door);
    let page = door.sandbox.crew(&["status", &id]).success();
    assert!(page.contains("half.txt"), "while it rests: {page}");
    door.sandbox.write("mine.txt", "a person's\n");
    resumed(&door, &id);
    door.stop("three").assert_goes_on();
    let diff = door.sandbox.crew(&["diff", &id, "2"]).success();
    assert!(diff.contains("half.txt") && !diff.contains("mine.txt"), "{diff}");
    assert_eq!(door.record(&id)["state"]["still"], 0, "it made progress");
}

#[test]
fn a_pause_during_a_check_does_not_hide_the_work_done_before_it() {
    let door = Door::new();
    let gate = "test ! -e half.txt || test -e ../go || { touch ../checks; until test -e ../go; do sleep 0.05; done; }";
    let id = door.begin(&format!("\"go on\" -n 9 --stall 2 --gate '{gate}'"));
    door.sandbox.write("half.txt", "half\n");
    let boundary = door.stopping("one").start();
    poll_until("the check", || door.sandbox.file("../checks").exists());
    door.sandbox.crew(&["pause", &id]).success();
    door.sandbox.write("../go", "");
    boundary.wait(DEADLINE);
    assert_eq!(door.record(&id)["state"]["status"], "paused");
    resumed(&door, &id);
    door.sandbox.write("rest.txt", "rest\n");
    door.stop("two").assert_goes_on();
    let diff = door.sandbox.crew(&["diff", &id, "1"]).success();
    assert!(diff.contains("+half") && diff.contains("+rest"), "{diff}");
}

#[test]
fn a_loop_resumed_by_its_own_session_counts_as_driven_all_the_time() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9");
    door.sandbox.write("half.txt", "half\n");
    resumed(&door, &id);
    let page = door.sandbox.crew(&["status", &id]).success();
    assert!(!page.contains("was gone"), "{page}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_page_says_that_the_client_had_exited_after_another_took_over_its_loop() {
    let door = Door::of(World::of(Sandbox::new(), &[HANG]).sandbox);
    let begun = door.command("\"go on\" -n 9").through_another_client().send();
    assert!(begun.goes_on(), "{begun:#?}");
    let running = door.sandbox.start_crew(&["resume", "-q"]);
    poll_until("the agent hangs", || door.sandbox.root().join("notes/hangs").exists());
    door.sandbox.crew(&["pause", "--now"]).success();
    running.wait(DEADLINE);
    let page = door.sandbox.crew(&["status"]).success();
    let note = "note    everything that changed in the tree until now counts as the loop's: its client was gone";
    assert!(page.contains(note), "{page}");
}

#[test]
fn a_message_in_the_last_iteration_is_delivered_by_the_pending_wake() {
    let sandbox = Sandbox::new().with_faults().env("CLAUDE_CODE_SESSION_ATTENDED", "1");
    let door = Door::of(sandbox);
    let id = door.begin("\"go on\" -n 1");
    let job = json!([{ "id": "b1", "type": "shell", "status": "running", "description": "build" }]);
    door.stopping("The build runs.").with("background_tasks", job).send().assert_lets_go();
    let shown = door.sandbox.crew(&["tell", "--loop", &id, "use the parser"]).success();
    let expected = format!("loop {id}: the agent gets the message with its next prompt\n");
    assert_eq!(shown, expected);
    let idle = door.event("Notification").with("notification_type", "idle_prompt");
    let woken = idle.env("CREW_CLOCK_OFFSET_MS", "3600000").start().wait(DEADLINE);
    assert_eq!(woken.code(), 2, "{woken:#?}");
    assert!(woken.stderr.contains("The user says: use the parser\n"), "{woken:#?}");
}
