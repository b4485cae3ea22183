//! `crew trust`: the list, the question, and what is trusted afterwards.

use super::{project, shown, start};
use crate::client::{Terminal, in_a_terminal};
use crate::sandbox::{Sandbox, crew};

const WANTED: &str = "[loop]\nmax_iterations = 30\nverify = [\"test -e done\"]\n";

#[test]
fn without_a_terminal_the_list_is_shown_and_nothing_is_trusted() {
    let sandbox = Sandbox::new();
    project(&sandbox, WANTED);
    insta::assert_snapshot!(shown(&sandbox, &sandbox.crew(&["trust"])), @"
    exit 2
    what needs trust in /repo/.claude/crew.toml:
      new      /repo/.claude/crew.toml:2: [loop] max-iterations = 30
      new      /repo/.claude/crew.toml:3: verify (within 600s, passes with 0): test -e done
    crew: no question can be asked here, so nothing was trusted
    hint: read the list, then run crew trust in a terminal, or with --yes
    ");
    assert!(start(&sandbox, "Build it").contains("which no person on this machine has given"));
}

#[test]
fn new_items_are_marked_and_forget_withdraws_all_trust() {
    let sandbox = Sandbox::new();
    project(&sandbox, WANTED);
    insta::assert_snapshot!(shown(&sandbox, &sandbox.crew(&["trust", "--yes"])), @"
    exit 0
    what needs trust in /repo/.claude/crew.toml:
      new      /repo/.claude/crew.toml:2: [loop] max-iterations = 30
      new      /repo/.claude/crew.toml:3: verify (within 600s, passes with 0): test -e done
    trusted 2 on this machine, for loops in /repo
    ");
    insta::assert_snapshot!(shown(&sandbox, &sandbox.crew(&["trust"])), @"
    exit 0
    what needs trust in /repo/.claude/crew.toml:
      trusted  /repo/.claude/crew.toml:2: [loop] max-iterations = 30
      trusted  /repo/.claude/crew.toml:3: verify (within 600s, passes with 0): test -e done
    all of it is trusted on this machine
    ");
    project(&sandbox, &format!("{WANTED}gate = [\"make lint\"]\n"));
    insta::assert_snapshot!(shown(&sandbox, &sandbox.crew(&["trust", "--yes"])), @"
    exit 0
    what needs trust in /repo/.claude/crew.toml:
      trusted  /repo/.claude/crew.toml:2: [loop] max-iterations = 30
      trusted  /repo/.claude/crew.toml:3: verify (within 600s, passes with 0): test -e done
      new      /repo/.claude/crew.toml:4: gate (within 600s, passes with 0): make lint
    trusted 1 on this machine, for loops in /repo
    ");
    assert!(start(&sandbox, "Build it").starts_with("loop "));
    insta::assert_snapshot!(shown(&sandbox, &sandbox.crew(&["trust", "--forget"])), @"
    exit 0
    no longer trusted on this machine, for loops in /repo:
      [loop] max-iterations = 30
      verify (within 600s, passes with 0): test -e done
      gate (within 600s, passes with 0): make lint
    ");
    assert!(
        start(&sandbox, "Build it --replace").contains("which no person on this machine has given")
    );
    insta::assert_snapshot!(shown(&sandbox, &sandbox.crew(&["trust", "--forget"])), @"
    exit 0
    nothing was trusted in /repo
    ");
    assert_eq!(sandbox.crew(&["trust", "--forget", "--yes"]).code(), 2);
}

#[test]
fn forget_fails_if_it_cannot_list_what_it_withdraws() {
    let sandbox = Sandbox::new();
    project(&sandbox, WANTED);
    sandbox.crew(&["trust", "--yes"]).success();
    let trust = sandbox.crew_home().join("trust");
    let file = std::fs::read_dir(&trust).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&trust, &file).unwrap();
    let ran = sandbox.crew(&["trust", "--forget"]);
    assert_eq!((ran.code(), &*ran.stdout), (1, ""), "{ran:#?}");
    let hash = file.file_name().unwrap().to_string_lossy().into_owned();
    insta::assert_snapshot!(shown(&sandbox, &ran).replace(&hash, "HASH"), @"
    exit 1
    crew: what was trusted in /repo cannot be listed: cannot read /home/.local/state/crew/trust/HASH: it is not a file
    hint: nothing there is trusted now; `crew trust` asks again
    ");
    assert!(start(&sandbox, "Build it").contains("which no person on this machine has given"));
}

#[test]
fn in_a_terminal_a_person_is_asked_to_trust_what_was_listed() {
    in_a_terminal(|| {
        for (answer, said) in [
            ("n", "crew: nothing was trusted"),
            ("", "crew: nothing was trusted"),
            ("y", "trusted 2 on"),
        ] {
            let sandbox = Sandbox::new();
            project(&sandbox, WANTED);
            let mut trust = sandbox.command(crew());
            trust.arg("trust");
            let terminal = Terminal::start_in_shell(&sandbox, &trust);
            terminal.wait_for_text("Trust these 2 on this machine? [y/N]");
            // The file changes between the list and the answer.
            project(&sandbox, &WANTED.replace("test -e done", "touch planted"));
            terminal.type_text(answer);
            terminal.enter();
            terminal.wait_for_text(said);
            let reported = start(&sandbox, "Build it");
            assert!(
                reported.contains("verify (within 600s, passes with 0): touch planted"),
                "{reported}"
            );
            assert_eq!(reported.contains("max-iterations = 30"), answer != "y", "{reported}");
            project(&sandbox, WANTED);
            assert_eq!(start(&sandbox, "Build it").starts_with("loop "), answer == "y");
        }
    });
}

#[test]
fn an_unused_key_is_named() {
    let sandbox = Sandbox::new();
    project(&sandbox, "[loop]\nstal = 3\n");
    insta::assert_snapshot!(shown(&sandbox, &sandbox.crew(&["trust"])), @"
    exit 0
    nothing in /repo/.claude/crew.toml needs trust
    crew: /repo/.claude/crew.toml:2: unknown key `stal` in [loop]: did you mean `stall`?
    ");
}
