//! The machine stays awake only while a run works, by the system's own program, here a fake one.

use rustix::process::{Pid, Signal, test_kill_process};

use super::{CLAIM, HANG, World};
use crate::sandbox::{DEADLINE, poll_until};

const TOLD: &str =
    "crew: keeping this machine awake (systemd-inhibit); awake = false in settings lets it sleep\n";

/// A world with a `systemd-inhibit` that records its arguments and each of its processes.
fn world(steps: &[&str]) -> World {
    let world = World::new(steps);
    let notes = world.note("").display().to_string();
    let script = format!(
        "echo \"$*\" >> '{notes}/asked'; echo $$ >> '{notes}/inhibitors'\n\
         while case \"$1\" in --*) true;; *) false;; esac; do shift; done; \"$@\""
    );
    world.sandbox.program("systemd-inhibit", &script);
    world
}

fn inhibitors(world: &World) -> Vec<bool> {
    let ids = std::fs::read_to_string(world.note("inhibitors")).unwrap_or_default();
    let ids = ids.lines().map(|id| Pid::from_raw(id.parse().unwrap()).unwrap());
    ids.map(|id| test_kill_process(id).is_ok()).collect()
}

#[test]
fn the_machine_is_kept_awake_by_one_process_until_the_run_is_over() {
    let seen = "test -d \"/proc/$(cat \"$notes/inhibitors\")\" && echo awake >> work.txt";
    let world = world(&[seen, seen, CLAIM]);
    let ran = world.crew(&["run", "Do it"]);
    assert_eq!((ran.code(), world.calls()), (0, 3), "{ran:#?}");
    assert_eq!(ran.stderr.matches(TOLD).count(), 1, "{ran:#?}");
    let asked = std::fs::read_to_string(world.note("asked")).unwrap();
    let expected = "--what=sleep:idle --who=crew --why=an agent is at work --mode=block sh -c ";
    assert!(asked.starts_with(expected) && asked.lines().count() == 1, "{asked}");
    let work = std::fs::read_to_string(world.sandbox.file("work.txt")).unwrap();
    assert_eq!(work, "awake\nawake\n", "it was ended with an iteration");
    poll_until("its end", || inhibitors(&world) == [false]);
}

#[test]
fn a_killed_or_paused_crew_lets_the_machine_sleep() {
    let world = world(&[HANG]);
    let running = world.hanging(&["run", "Do it"]);
    assert_eq!(inhibitors(&world), [true]);
    running.signal(Signal::KILL);
    running.wait(DEADLINE);
    poll_until("its end", || inhibitors(&world) == [false]);
    let running = world.hanging(&["resume"]);
    assert_eq!(inhibitors(&world), [false, true]);
    world.crew(&["pause", "--now"]).success();
    assert_eq!(running.wait(DEADLINE).code(), 130);
    poll_until("its end", || inhibitors(&world) == [false, false]);
}

#[test]
fn staying_awake_is_announced_only_if_it_was_requested_and_works() {
    let quiet = world(&[CLAIM]);
    quiet.settings("loop.awake = false\n");
    let ran = quiet.crew(&["run", "Do it"]);
    assert_eq!((ran.code(), ran.stderr.contains("awake")), (0, false), "{ran:#?}");
    assert!(!quiet.note("asked").exists());
    let broken = World::new(&[CLAIM]);
    broken.sandbox.program("systemd-inhibit", "echo no bus >&2; exit 1");
    let ran = broken.crew(&["run", "Do it"]);
    assert_eq!((ran.code(), ran.stderr.contains("awake")), (0, false), "{ran:#?}");
}
