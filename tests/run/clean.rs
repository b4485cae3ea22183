//! `crew clean`: it removes exactly what it lists, with everything that belongs to it.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use serde_json::json;

use super::{CLAIM, HANG, WORK, World};
use crate::client::{Terminal, in_a_terminal};
use crate::sandbox::{DEADLINE, Sandbox, crew, poll_until};
use crate::spawned::{Ran, Running};

const DAY_MS: u64 = 24 * 3600 * 1000;

/// Runs crew this many days later, with a fault.
fn later(world: &World, days: u64, fault: &str, arguments: &[&str]) -> Ran {
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(arguments).env("CREW_CLOCK_OFFSET_MS", (days * DAY_MS).to_string());
    command.env("CREW_FAULT", fault);
    Running::start(command, None).wait(DEADLINE)
}

/// Two ended loops of one working tree, newest first, each with snapshots.
fn two_loops() -> (World, [String; 2]) {
    let world = World::of(Sandbox::new().with_faults(), &[WORK, CLAIM]);
    world.crew(&["run", "First of two", "-n", "1"]);
    world.crew(&["run", "Second of two", "-n", "2"]).success();
    let ids =
        world.loops().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let ids = ids.try_into().unwrap();
    (world, ids)
}

/// Every file below crew's home whose path or text names the loop, except the logs of others.
fn traces(world: &World, id: &str) -> String {
    let home = world.sandbox.crew_home();
    let mut find = world.sandbox.command("sh");
    let script =
        "find . -path \"*$0*\"; grep -rl \"$0\" sessions checkouts wakes 2> /dev/null; true";
    find.args(["-c", script, id]).current_dir(home);
    Running::start(find, None).wait(DEADLINE).success()
}

#[test]
fn loops_that_ended_long_ago_are_listed_and_removed_on_confirmation() {
    let (world, [second, first]) = two_loops();
    let soon = world.crew(&["clean"]).success();
    assert_eq!(soon, "nothing to remove: no loop ended more than 30d ago\n");
    let asked = later(&world, 31, "", &["clean"]);
    assert_eq!(asked.code(), 2, "{asked:#?}");
    assert!(asked.stdout.contains(&format!("{first}  31d ago  exhausted ")), "{asked:#?}");
    assert!(asked.stdout.contains("First of two") && asked.stdout.contains(&second), "{asked:#?}");
    insta::assert_snapshot!(asked.stderr, @"
    crew: no question can be asked here, so nothing was removed
    hint: read the list, then run crew clean in a terminal, or with --yes
    ");
    assert_eq!(world.loops().len(), 2);
    assert!(!traces(&world, &first).is_empty());
    let cleaned = later(&world, 31, "", &["clean", "--yes"]).success();
    assert!(
        cleaned.contains("\nremoved 2 loops with all snapshots, ") && cleaned.ends_with(" freed\n"),
        "{cleaned}"
    );
    assert!(world.loops().is_empty());
    assert_eq!([traces(&world, &first), traces(&world, &second)], ["", ""]);
    assert_eq!(
        std::fs::read_dir(world.sandbox.crew_home().join("trees"))
            .unwrap()
            .filter(|it| it.as_ref().unwrap().path().is_dir())
            .count(),
        0
    );
    world.crew(&["run", "A third", "-n", "3"]).success();
    assert_eq!(world.loops().len(), 1);
}

#[test]
fn only_a_named_loop_is_removed_and_the_other_keeps_its_snapshots() {
    let (world, [second, first]) = two_loops();
    let difference = world.crew(&["diff", &first]).success();
    assert!(difference.contains("work.txt"), "{difference}");
    let young = world.crew(&["clean", &second, "--older-than", "1h", "--yes"]).success();
    assert_eq!(young, "nothing to remove: no loop ended more than 1h ago\n");
    let short = world.crew(&["clean", &second[..6], "--yes"]);
    let shown =
        format!("crew: with --yes a loop is named by its whole id, not by `{}`\n", &second[..6]);
    assert!(short.code() == 2 && short.stderr.starts_with(&shown), "{short:#?}");
    let cleaned = world.crew(&["clean", &second, &second, "--yes"]).success();
    assert!(cleaned.contains("\nremoved 1 loop with all snapshots, "), "{cleaned}");
    assert_eq!(traces(&world, &second), "");
    assert_eq!(world.crew(&["diff", &first]).success(), difference);
    assert_eq!(world.id(), first);
    let gone = world.crew(&["show", &second]);
    assert!(gone.code() == 1 && gone.stderr.contains("no loop has an id"), "{gone:#?}");
}

#[test]
fn a_live_loop_is_never_removed() {
    let world = World::of(Sandbox::new().with_faults(), &[HANG]);
    let run = world.hanging(&["run", "Do it", "-n", "3"]);
    let id = world.id();
    for status in ["running", "paused"] {
        if status == "paused" {
            world.crew(&["pause", "--now"]).success();
        }
        poll_until("the status", || world.the_loop()["status"] == status);
        let named = world.crew(&["clean", &id, "--yes"]);
        assert_eq!(named.code(), 1, "{named:#?}");
        let expected = format!(
            "crew: loop {id} is {status}, so its record stays\nhint: crew cancel {id} ends it\n"
        );
        assert_eq!(named.stderr, expected);
        let old = later(&world, 400, "", &["clean", "--yes"]).success();
        assert!(old.starts_with("nothing to remove"), "{old}");
    }
    run.wait(DEADLINE);
    assert_eq!(world.loops().len(), 1);
}

#[test]
fn a_loop_that_an_open_client_could_resume_is_removed_only_by_name() {
    let world = World::of(Sandbox::new().with_faults(), &[WORK]);
    let start = json!({
        "hook_event_name": "UserPromptExpansion", "command_name": "crew:loop",
        "command_args": "\"Build it\" -n 1", "prompt_id": "p",
    });
    let stop = json!({
        "hook_event_name": "Stop", "prompt_id": "p", "last_assistant_message": "On it.",
    });
    world.sandbox.hook(start).success();
    world.sandbox.hook(stop.clone()).success();
    let id = world.id();
    assert_eq!(world.the_loop()["outcome"], "exhausted");
    let unnamed = later(&world, 31, "", &["clean", "--yes"]).success();
    assert_eq!(
        unnamed.replace('\n', " ").trim(),
        "nothing to remove: 1 loop ended more than 30d ago, but can still be resumed where it ran; \
         crew clean LOOP removes one all the same"
    );
    let named = world.crew(&["clean", &id, "--yes"]).success();
    assert!(named.contains("removed 1 loop with all snapshots, "), "{named}");
    assert_eq!(traces(&world, &id), "");
    assert_eq!(world.sandbox.hook(stop).success(), "");
}

#[test]
fn an_agent_removes_nothing() {
    let (world, [second, _]) = two_loops();
    let mut command = world.sandbox.command(crew());
    command.args(["clean", &second, "--yes"]).env("CLAUDECODE", "1");
    let ran = Running::start(command, None).wait(DEADLINE);
    assert_eq!(ran.code(), 1);
    assert_eq!(
        ran.stderr,
        "crew: an agent cannot remove records\nhint: a person can, in a terminal\n"
    );
    assert_eq!(world.loops().len(), 2);
}

#[test]
fn a_killed_removal_leaves_a_store_that_every_command_can_read() {
    for point in ["remove.taken", "remove.pointers", "remove.snapshots"] {
        let (world, [second, first]) = two_loops();
        let killed = later(&world, 0, &format!("{point}=kill"), &["clean", &second, "--yes"]);
        assert_eq!(killed.status.signal(), Some(Signal::KILL.as_raw()), "{point}: {killed:#?}");
        assert_eq!(world.loops().len(), 1, "{point}");
        for arguments in [
            &["status"][..],
            &["history", "--all"],
            &["show", &first],
            &["diff", &first],
            &["doctor"],
        ] {
            let ran = world.crew(arguments);
            assert!(!ran.stderr.contains(&second), "{point}: {arguments:?}: {ran:#?}");
            assert!(
                ran.code() == 0 || arguments[0] == "doctor",
                "{point}: {arguments:?}: {ran:#?}"
            );
        }
        assert!(!traces(&world, &second).is_empty(), "{point}");
        world.crew(&["clean"]).success();
        assert_eq!(traces(&world, &second), "", "{point}");
        assert_eq!(world.id(), first, "{point}");
    }
}

#[test]
fn a_person_is_asked_before_anything_is_removed() {
    in_a_terminal(|| {
        let (world, [second, _]) = two_loops();
        let mut shell = world.sandbox.command("sh");
        let clean =
            format!("'{0}' clean {second}; '{0}' clean {second}; read end", crew().display());
        shell.args(["-c", &clean]).env("TERM", "xterm-256color");
        let terminal = Terminal::start(&world.sandbox, &shell);
        terminal.wait_for_text("Remove their records, logs and snapshots? [y/N]");
        terminal.key("Enter");
        terminal.wait_for_text("crew: nothing was removed");
        assert_eq!(world.loops().len(), 2);
        terminal.wait_for_screen("a second question", |it| it.matches("[y/N]").count() == 2);
        terminal.type_text("y");
        terminal.key("Enter");
        terminal.wait_for_text("removed 1 loop with all snapshots, ");
        assert_eq!(world.loops().len(), 1);
    });
}

#[test]
fn a_busy_loop_stays_and_the_others_are_removed() {
    let (world, [second, first]) = two_loops();
    let folder = world.sandbox.crew_home().join("loops").join(&second);
    let lock = File::options().write(true).open(folder.join("boundary.lock")).unwrap();
    lock.lock().unwrap();
    let cleaned = world.crew(&["clean", &second, &first, "--yes"]);
    assert_eq!(cleaned.code(), 1, "{cleaned:#?}");
    assert!(cleaned.stdout.contains("\nremoved 1 loop with all snapshots, "), "{cleaned:#?}");
    let busy = format!("crew: loop {second} is busy\nhint: try again in a moment\n");
    assert_eq!((cleaned.stderr, world.id()), (busy, second));
}

#[test]
fn a_loop_that_cannot_be_removed_is_named_and_the_others_are_removed() {
    let (world, [second, first]) = two_loops();
    let trees = world.sandbox.crew_home().join("trees");
    let mut git_dirs = std::fs::read_dir(trees).unwrap().map(|it| it.unwrap().path());
    let refs = git_dirs.find(|it| it.is_dir()).unwrap().join("refs/crew").join(&second);
    std::fs::remove_dir_all(&refs).unwrap();
    std::fs::write(&refs, "").unwrap();
    let shown = format!(
        "crew: cannot remove all that is left of loop {second}: cannot remove {}: ",
        refs.display()
    );
    let cleaned = world.crew(&["clean", &second, &first, "--yes"]);
    assert_eq!(cleaned.code(), 1, "{cleaned:#?}");
    assert!(cleaned.stdout.contains("\nremoved 1 loop with all snapshots, "), "{cleaned:#?}");
    assert!(cleaned.stderr.starts_with(&shown), "{cleaned:#?}");
    assert_eq!(traces(&world, &first), "");
    let again = world.crew(&["clean"]);
    assert!(again.code() == 1 && again.stderr.starts_with(&shown), "{again:#?}");
    std::fs::remove_file(&refs).unwrap();
    assert_eq!(world.crew(&["clean"]).success().lines().count(), 1);
    assert_eq!(traces(&world, &second), "");
}
