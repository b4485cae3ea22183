//! What a run sends to its terminal beside text: its title, which the user gets back, and notices.
//! Nothing of it where no person reads.

use super::{CLAIM, HANG, WORK, World};
use crate::child::{Ran, Running};
use crate::client::{Terminal, in_a_terminal};
use crate::sandbox::{DEADLINE, crew, poll_until};

const KEEP: &str = "\u{1b}[22;0t";
const RESTORE: &str = "\u{1b}[23;0t";
/// How a title and a notice begin.
const CODES: [&str; 5] = [KEEP, RESTORE, "\u{1b}]2;", "\u{1b}]9;", "\u{1b}]777;"];

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
fn a_run_in_a_terminal_shows_its_title_and_a_notice_at_its_end() {
    let world = World::new(&[WORK, CLAIM]);
    let ran = in_terminal(&world, "run 'Do it' -n 3 --gate 'echo 1..1; echo ok 1 - a'", &[]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let id = world.id();
    let at = |code: &str| ran.stdout.find(code).unwrap_or_else(|| panic!("no {code:?}: {ran:#?}"));
    let order = [
        at(KEEP),
        at(&format!("\u{1b}]2;crew {id} 1/3\u{7}")),
        at(&format!("\u{1b}]2;crew {id} 2/3 echo 1..1; echo ok 1 - a passes\u{7}")),
        at(&format!("\u{1b}]9;crew: loop {id}: completed after 2 iterations, proof: passing\u{7}")),
        at(RESTORE),
    ];
    assert!(order.is_sorted(), "{order:?} {ran:#?}");
    let (_, rest) = ran.stdout.split_once(RESTORE).unwrap();
    assert!(!CODES.iter().any(|code| rest.contains(code)), "{rest:?}");
    assert_eq!(ran.stdout.matches(KEEP).count(), 1);
}

#[test]
fn a_terminal_that_takes_the_other_code_gets_that_one() {
    let world = World::new(&["echo '<promise>BLOCKED: no \"password\"; help</promise>'"]);
    let ran = in_terminal(&world, "run 'Do it'", &[("VTE_VERSION", "7600")]);
    let expected = format!("\u{1b}]777;notify;crew;crew: loop {} needs you: ", world.id());
    assert!(ran.stdout.contains(&expected) && !ran.stdout.contains("\u{1b}]9;"), "{ran:#?}");
    assert!(ran.stdout.contains("no \"password\", help\u{7}"), "{ran:#?}");
}

#[test]
fn where_nobody_reads_there_is_no_code() {
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

#[test]
fn the_title_comes_back_after_ctrl_c_and_after_a_pause() {
    in_a_terminal(|| {
        for stop in ["cancel", "pause", "C-c"] {
            let world = World::new(&[HANG]);
            let mut run = world.sandbox.command(crew());
            run.args(["run", "Do it", "-n", "3"]).env("TERM", "xterm-256color").env_remove("CI");
            let terminal = Terminal::start(&world.sandbox, &run);
            let bytes = terminal.tap();
            poll_until("the agent hangs", || world.note("hangs").exists());
            match stop {
                "cancel" => drop(world.crew(&["cancel"])),
                "pause" => drop(world.crew(&["pause", "--now"])),
                key => terminal.key(key),
            }
            poll_until(&format!("the title after {stop}"), || {
                let bytes = std::fs::read(&bytes).unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                text.rfind(RESTORE).is_some_and(|at| at > text.rfind("\u{1b}]2;").unwrap_or(0))
            });
        }
    });
}
