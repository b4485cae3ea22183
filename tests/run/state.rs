//! State that cannot be written: a run reports that once and enforces its limits from memory until
//! its end; a run that cannot write its first record does not begin.

use fs2::FileExt;
use serde_json::Value;

use super::{CLAIM, WORK, World};
use crate::sandbox::{DEADLINE, Sandbox};

/// Puts a file in place of the loop's folder.
const LOSE: &str = "mv \"$CREW_HOME/loops/$CREW_LOOP\" \"$notes/lost\"\n\
                    touch \"$CREW_HOME/loops/$CREW_LOOP\"\n";
/// Puts the folder back.
const FIND: &str = "rm \"$CREW_HOME/loops/$CREW_LOOP\"\n\
                    mv \"$notes/lost\" \"$CREW_HOME/loops/$CREW_LOOP\"\n";

/// Waits until the test releases it.
const PARK: &str = "rm -f \"$notes/go\"; touch \"$notes/hangs\"\n\
                    while ! test -e \"$notes/go\"; do sleep 0.05; done\n";

fn losing_at_the_second(then: &[&str]) -> World {
    let lose = format!("{LOSE}{WORK}");
    World::new(&[&[WORK, &lose], then].concat())
}

#[track_caller]
fn said_once(text: &str) {
    assert_eq!(text.matches("State cannot be written").count(), 1, "{text}");
}

#[test]
fn a_start_names_an_unreadable_loop_with_its_folder_and_a_hint() {
    let world = World::new(&[WORK]);
    world.crew(&["run", "Do it", "-n", "1", "-q"]);
    let (id, folder) = (world.id(), world.file(""));
    for file in ["loop.json", "journal.jsonl"] {
        std::fs::write(world.file(file), "junk").unwrap();
    }
    let ran = world.crew(&["run", "Do it", "-n", "1"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let folder = folder.display().to_string();
    for part in [
        &format!("the record of loop {id} is broken"),
        folder.trim_end_matches('/'),
        "remove that folder",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {ran:#?}");
    }
}

#[test]
fn a_run_whose_record_cannot_be_written_says_so_once_and_ends_at_its_limit() {
    let world = losing_at_the_second(&[WORK]);
    let ran = world.crew(&["run", "Do it", "-n", "5"]);
    assert_eq!((ran.code(), world.calls()), (10, 5), "{ran:#?}");
    said_once(&ran.stdout);
    insta::assert_snapshot!(world.lines(&ran), @r#"
    [10:00:00] Starting: "Do it" (max 5 iterations)
    [10:00:00] Iteration 1/5 starting...
    [10:00:00] Iteration 1/5 completed in 1.0s
    [10:00:00] Iteration 2/5 starting...
    [10:00:00] ERROR: State cannot be written: there is no loop ID. The run continues within its limits; this is reported only once
    [10:00:00] Iteration 2/5 completed in 1.0s
    [10:00:00] Iteration 3/5 starting...
    [10:00:00] Iteration 3/5 completed in 1.0s
    [10:00:00] Iteration 4/5 starting...
    [10:00:00] Iteration 4/5 completed in 1.0s
    [10:00:00] Iteration 5/5 starting...
    [10:00:00] Iteration 5/5 completed in 1.0s
    [10:00:00] Reached max iterations: 5 (total: 1.0s)
    "#);
}

#[test]
fn failures_are_counted_even_if_the_record_exists_only_in_memory() {
    let world = losing_at_the_second(&["exit 1"]);
    let ran = world.crew(&["run", "Do it", "-n", "9"]);
    assert_eq!((ran.code(), world.calls()), (11, 5), "{ran:#?}");
    said_once(&ran.stdout);
}

#[test]
fn a_claim_is_checked_from_memory() {
    let claim_done = format!("touch done\n{CLAIM}");
    let world = losing_at_the_second(&[CLAIM, &claim_done]);
    let ran = world.crew(&["run", "Do it", "-n", "9", "--verify", "test -e done"]);
    assert_eq!((ran.code(), world.calls()), (0, 4), "{ran:#?}");
    said_once(&ran.stdout);
}

#[test]
fn the_record_is_written_again_when_the_disk_recovers() {
    let find = format!("{FIND}{WORK}");
    let world = losing_at_the_second(&[WORK, &find, WORK]);
    let ran = world.crew(&["run", "Do it", "-n", "5"]);
    assert_eq!((ran.code(), world.calls()), (10, 5), "{ran:#?}");
    said_once(&ran.stdout);
    let shown = world.the_loop();
    let ended = (&shown["outcome"], &shown["completed_iterations"]);
    assert_eq!(ended, (&"exhausted".into(), &5.into()), "{shown:#}");
    assert_eq!(shown["iterations_ms"].as_array().unwrap().len(), 5);
}

/// Each point of a write fails once, at an early, a middle and the last boundary of a run of three:
/// before the first iteration, `write` is passed four times and the others once.
#[test]
fn every_write_may_fail_once_without_changing_the_end() {
    let journal = ["journal.open", "journal.write", "journal.sync", "record.between"];
    let state = ["write.open", "write.data", "write.sync", "write.rename", "write.folder"];
    let faults = journal.iter().flat_map(|point| [2, 3, 4].map(|nth| (point, nth)));
    let faults = faults.chain(state.iter().flat_map(|point| [5, 6, 7, 8].map(|nth| (point, nth))));
    for (point, nth) in faults {
        let fault = format!("{point}#{nth}=28");
        let world = World::of(Sandbox::new().with_faults().env("CREW_FAULT", &fault), &[WORK]);
        let ran = world.crew(&["run", "Do it", "-n", "3"]);
        assert_eq!((ran.code(), world.calls()), (10, 3), "{fault}: {ran:#?}");
        let said = ran.stdout.matches("State cannot be written").count();
        assert!(said <= 1, "{fault}: {ran:#?}");
        let shown = world.the_loop();
        let ended = (&shown["outcome"], &shown["completed_iterations"]);
        assert_eq!(ended, (&"exhausted".into(), &3.into()), "{fault}: {shown:#}");
    }
}

#[test]
fn a_run_whose_first_write_fails_is_refused() {
    for point in ["journal.open", "journal.write", "journal.sync", "write.open", "write.rename"] {
        let fault = format!("{point}=28");
        let world = World::of(Sandbox::new().with_faults().env("CREW_FAULT", &fault), &[WORK]);
        let ran = world.crew(&["run", "Do it", "-n", "3"]);
        assert_eq!((ran.code(), world.calls()), (1, 0), "{fault}: {ran:#?}");
        assert!(ran.stderr.contains("No space left on device"), "{fault}: {ran:#?}");
        assert_eq!(world.loops(), Vec::<Value>::new(), "{fault}");
    }
}

#[test]
fn no_run_starts_if_the_home_cannot_be_created() {
    let world = World::new(&[WORK]);
    let home = world.sandbox.crew_home();
    std::fs::create_dir_all(home.parent().unwrap()).unwrap();
    std::fs::write(&home, "a file").unwrap();
    let ran = world.crew(&["run", "Do it", "-n", "3"]);
    assert_eq!((ran.code(), world.calls()), (1, 0), "{ran:#?}");
    assert!(ran.stderr.contains("cannot keep loops in"), "{ran:#?}");
}

#[test]
fn ctrl_c_ends_a_run_without_a_record_gracefully() {
    let world = losing_at_the_second(&[super::HANG]);
    let ran = world.interrupted(&["run", "Do it", "-n", "9"]);
    assert_eq!(ran.code(), 130, "{ran:#?}");
    assert!(ran.stdout.contains("Interrupted. State could not be saved"), "{ran:#?}");
}

#[test]
fn a_lock_that_is_never_released_loses_no_iteration() {
    let park = format!("{PARK}{WORK}");
    let world = World::new(&[&park, WORK]);
    let running = world.hanging(&["run", "Do it", "-n", "3"]);
    let lock = world.file("boundary.lock");
    let lock = std::fs::OpenOptions::new().create(true).append(true).open(lock).unwrap();
    lock.lock_exclusive().unwrap();
    std::fs::write(world.note("go"), "").unwrap();
    let ran = running.wait(DEADLINE);
    drop(lock);
    assert_eq!((ran.code(), world.calls()), (10, 3), "{ran:#?}");
    said_once(&ran.stdout);
    assert!(ran.stdout.contains("another process is judging an iteration"), "{ran:#?}");
    assert_eq!(world.the_loop()["completed_iterations"], 3);
}

#[test]
fn a_record_that_the_agent_deletes_is_counted_from_memory_and_written_again() {
    let delete = format!("rm \"$CREW_HOME/loops/$CREW_LOOP/loop.json\"\n{WORK}");
    for steps in [[&delete, WORK, WORK], [WORK, WORK, &delete]] {
        let world = World::new(&steps);
        let ran = world.crew(&["run", "Do it", "-n", "3"]);
        assert_eq!((ran.code(), world.calls()), (10, 3), "{ran:#?}");
        said_once(&ran.stdout);
        assert_eq!(world.the_loop()["completed_iterations"], 3);
    }
}

#[test]
fn a_request_is_kept_while_nothing_can_be_recorded() {
    let find = format!("{FIND}{PARK}{WORK}");
    let world = losing_at_the_second(&[&find, WORK]);
    let running = world.hanging(&["run", "Do it", "-n", "9"]);
    let id = world.id();
    world.crew(&["set", &id, "-n", "4"]).success();
    world.crew(&["tell", "--loop", &id, "Use the parser."]).success();
    std::fs::write(world.note("go"), "").unwrap();
    let ran = running.wait(DEADLINE);
    assert_eq!((ran.code(), world.calls()), (10, 4), "{ran:#?}");
    assert!(world.prompt(4).contains("Use the parser."), "{}", world.prompt(4));
}

#[test]
fn a_loop_rebuilt_after_unsaved_boundaries_is_complete() {
    let find = format!("{FIND}{WORK}");
    let world = losing_at_the_second(&[WORK, &find, WORK]);
    world.crew(&["run", "Do it", "-n", "5"]);
    std::fs::write(world.file("loop.json"), "").unwrap();
    assert_eq!(world.the_loop()["iterations_ms"].as_array().unwrap().len(), 5);
}

#[test]
fn a_rebuilt_loop_has_the_agent_it_was_resumed_with() {
    let world = World::new(&[WORK]);
    world.crew(&["run", "Do it", "-n", "1"]);
    let ran = world.crew(&["resume", "-n", "2", "--agent-cmd", "agent other"]);
    assert_eq!((ran.code(), world.calls()), (10, 2), "{ran:#?}");
    let resumed = world.record()["contract"]["run"].clone();
    std::fs::write(world.file("loop.json"), "").unwrap();
    world.the_loop();
    assert_eq!(resumed["agent"]["command"], serde_json::json!(["agent", "other"]));
    assert_eq!(world.record()["contract"]["run"], resumed);
}

#[test]
fn a_record_of_a_newer_crew_ends_the_run_and_is_left_unchanged() {
    let renew = "cd \"$CREW_HOME/loops/$CREW_LOOP\"\n\
                 sed 's/\"version\":[0-9]*,/\"version\":99,/' loop.json > new && mv new loop.json\n\
                 cp loop.json \"$notes/newer\"\n";
    let world = World::new(&[WORK, renew]);
    let ran = world.crew(&["run", "Do it", "-n", "9"]);
    assert_eq!((ran.code(), world.calls()), (1, 2), "{ran:#?}");
    assert!(ran.stderr.contains("newer than this one; update crew to continue it"), "{ran:#?}");
    let newer = std::fs::read(world.note("newer")).unwrap();
    assert_eq!(std::fs::read(world.file("loop.json")).unwrap(), newer);
}

#[test]
fn an_unreadable_cancel_request_cancels() {
    let order =
        format!("head -c 100000 /dev/zero > \"$CREW_HOME/loops/$CREW_LOOP/cancel\"\n{WORK}");
    let world = World::new(&[&order, WORK]);
    world.crew(&["run", "Do it", "-n", "2"]);
    assert_eq!((world.calls(), &world.the_loop()["outcome"]), (1, &"cancelled".into()));
}
