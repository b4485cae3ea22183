//! What a run sends to its terminal besides text: notices, and none if no person reads them.

use super::{CLAIM, WORK, World};
use crate::sandbox::{DEADLINE, crew};
use crate::spawned::{Ran, Running};

/// The beginning of a notice, and of a title.
const CODES: [&str; 3] = ["\u{1b}]2;", "\u{1b}]9;", "\u{1b}]777;"];

/// The bytes that a run in a terminal writes.
fn in_terminal(world: &World, arguments: &str, environment: &[(&str, &str)]) -> Ran {
    let run = format!("'{}' {arguments}", crew().display());
    let mut terminal = world.sandbox.command("script");
    terminal.args(["--quiet", "--return", "--command", &run, "/dev/null"]);
    terminal.env("TERM", "xterm-256color").envs(environment.iter().copied());
    Running::start(terminal, None).wait(DEADLINE)
}

fn has_codes(ran: &Ran) -> bool {
    CODES.iter().any(|code| ran.stdout.contains(code) || ran.stderr.contains(code))
}

#[test]
fn a_run_in_a_terminal_sends_a_notification_at_its_end_and_leaves_the_title_alone() {
    let world = World::new(&[WORK, CLAIM]);
    let ran = in_terminal(&world, "run 'Do it' -n 3 --gate 'echo 1..1; echo ok 1 - a'", &[]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let id = world.id();
    let shown =
        format!("\u{1b}]9;crew: loop {id}: completed after 2 iterations, proof: passing\u{7}");
    let (before, after) = ran.stdout.split_once(&shown).unwrap_or_else(|| panic!("{ran:#?}"));
    assert!(!CODES.iter().any(|code| before.contains(code) || after.contains(code)), "{ran:#?}");
}

#[test]
fn each_terminal_gets_the_notice_code_it_supports() {
    let world = World::new(&["echo '<promise>BLOCKED: no \"password\"; help</promise>'"]);
    let ran = in_terminal(&world, "run 'Do it'", &[("VTE_VERSION", "7600")]);
    let expected = format!("\u{1b}]777;notify;crew;crew: loop {} needs you: ", world.id());
    assert!(ran.stdout.contains(&expected) && !ran.stdout.contains("\u{1b}]9;"), "{ran:#?}");
    assert!(ran.stdout.contains("no \"password\", help\u{7}"), "{ran:#?}");
}

#[test]
fn a_pipe_gets_no_notice_code() {
    let pipe = World::new(&[CLAIM]);
    assert!(!has_codes(&pipe.crew(&["run", "Do it"])));
    for (arguments, environment) in [
        ("run 'Do it'", ("TERM", "dumb")),
        ("run 'Do it'", ("TERM", "linux")),
        ("run 'Do it'", ("CI", "true")),
        ("run 'Do it' -q", ("LANG", "C.UTF-8")),
        ("run 'Do it' --json", ("LANG", "C.UTF-8")),
        ("run 'Do it' > out 2> err; cat out err", ("LANG", "C.UTF-8")),
    ] {
        let world = World::new(&[CLAIM]);
        let ran = in_terminal(&world, arguments, &[environment]);
        assert!(world.calls() == 1 && !has_codes(&ran), "{arguments} {environment:?} {ran:#?}");
    }
    let world = World::new(&[CLAIM]);
    world.settings("loop.notices = false\n");
    let ran = in_terminal(&world, "run 'Do it'", &[]);
    assert!(world.calls() == 1 && !has_codes(&ran), "{ran:#?}");
}
