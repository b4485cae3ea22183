//! Processes that a killed crew left running: one that carries the mark of its loop is ended, any
//! other is named.

use rustix::process::{Pid, Signal, kill_process};

use super::{CLAIM, HANG, World};
use crate::sandbox::DEADLINE;

/// Starts a daemon, writes its id to the note of this name, and hangs.
fn daemon(name: &str, how: &str) -> String {
    format!(
        "setsid {how} sh -c 'echo $$ > \"$1\"; exec sleep 600' daemon \"$notes/{name}\" & \
         until test -s \"$notes/{name}\"; do sleep 0.01; done\n"
    )
}

#[test]
fn a_marked_daemon_of_a_killed_crew_is_ended_and_an_unmarked_one_is_named() {
    let step = daemon("marked", "") + &daemon("bare", "env -i PATH=\"$PATH\"") + HANG;
    let world = World::new(&[&step, CLAIM]);
    let running = world.hanging(&["run", "Do it"]);
    running.signal(Signal::KILL);
    running.wait(DEADLINE);
    let process = |note: &str| {
        let text = std::fs::read_to_string(world.note(note)).unwrap();
        Pid::from_raw(text.trim().parse().unwrap()).unwrap()
    };
    // Whoever adopts it may never reap it.
    let works = |process: Pid| {
        let command = format!("/proc/{}/cmdline", process.as_raw_nonzero());
        std::fs::read(command).is_ok_and(|command| command == b"sleep\x00600\x00")
    };
    let (marked, bare) = (process("marked"), process("bare"));
    assert!(works(marked), "it was to outlive its crew");
    let ran = world.crew(&["resume"]);
    let is_left = works(bare);
    kill_process(bare, Signal::KILL).ok();
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert!(!works(marked), "it is left");
    assert!(is_left, "it was ended, and might have been anybody's");
    let named =
        format!("perhaps left by loop {}: {} (sleep 600)", world.id(), bare.as_raw_nonzero());
    assert!(ran.stderr.contains(&named), "{ran:#?}");
}
