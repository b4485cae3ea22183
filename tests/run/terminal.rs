//! A run that was started in a terminal: its children have no terminal, so none of them stops
//! there, asks there for a password, or writes into what the user reads.

use super::{CLAIM, HANG, World};
use crate::sandbox::{DEADLINE, Sandbox, crew};
use crate::spawned::{Ran, Running};

/// Runs this crew command at a terminal.
fn at_a_terminal(world: &World, words: &str, typed: &str) -> Ran {
    let run = format!("'{}' {words}", crew().display());
    let mut terminal = world.sandbox.command("script");
    terminal.args(["--quiet", "--return", "--command", &run, "/dev/null"]).env("TERM", "xterm");
    Running::start(terminal, Some(typed.as_bytes().to_vec())).wait(DEADLINE)
}

/// Tries what a program does that needs a person, and writes the result to the note `$1`.
const PROBE: &str = r#"
    note() { echo "$who $1: $2" >> "$NOTES/tried"; }
    who=$1
    (read -r answer < /dev/tty) 2> /dev/null && note read yes || note read no
    (stty -echo < /dev/tty) 2> /dev/null && note stty yes || note stty no
    (printf '\033[2Jwiped by %s' "$who" > /dev/tty) 2> /dev/null && note write yes || note write no
    asked=$(echo url=https://example.invalid | GIT_TERMINAL_PROMPT=1 git credential fill 2>&1)
    note password "$(echo "$asked" | grep -o 'No such device or address')"
"#;

#[test]
fn no_process_that_a_run_starts_has_access_to_its_terminal() {
    let sandbox = Sandbox::new();
    let notes = sandbox.root().join("notes").display().to_string();
    let world = World::of(sandbox.env("NOTES", &notes), &["probe agent; echo tried > work.txt"]);
    world.sandbox.program("probe", PROBE);
    world.settings("[on]\niteration_end = \"probe reaction\"\n");
    let run = format!("'{}' run 'Do it' -n 1 --gate 'probe check; true'", crew().display());
    let mut terminal = world.sandbox.command("script");
    terminal.args(["--quiet", "--return", "--command", &run, "/dev/null"]).env("TERM", "xterm");
    let ran = Running::start(terminal, None).wait(DEADLINE);
    let tried = std::fs::read_to_string(world.note("tried")).unwrap();
    let expected = |who| {
        format!(
            "{who} read: no\n{who} stty: no\n{who} write: no\n{who} password: No such device or address\n"
        )
    };
    assert_eq!(tried, ["agent", "reaction", "check"].map(expected).concat());
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(!ran.stdout.contains("wiped"), "{ran:#?}");
}

#[test]
fn an_interrupted_loop_is_resumed_at_a_terminal_if_the_person_agrees() {
    for (typed, loops) in [("y\n", 1), ("n\n", 2), ("\n", 2)] {
        let world = World::new(&[HANG, CLAIM]);
        world.interrupted(&["run", "Do it"]);
        let ran = at_a_terminal(&world, "run 'Do it now'", typed);
        let asked = "was interrupted after 1 iteration: Do it";
        assert!(ran.stdout.contains(asked), "{typed:?}: {ran:#?}");
        assert_eq!((ran.code(), world.calls()), (0, 2), "{typed:?}: {ran:#?}");
        assert_eq!(world.loops().len(), loops, "{typed:?}: {ran:#?}");
    }
}

#[test]
fn the_lines_of_a_run_are_wrapped_between_words() {
    let world = World::new(&[CLAIM]);
    let run = format!("stty cols 50; '{}' run 'Do it'", crew().display());
    let mut terminal = world.sandbox.command("script");
    terminal.args(["--quiet", "--return", "--command", &run, "/dev/null"]).env("TERM", "xterm");
    let shown = Running::start(terminal, None).wait(DEADLINE).success();
    let terms = "done when the agent says\r\n  COMPLETE; nothing checks it";
    assert!(shown.contains(terms), "{shown}");
}
