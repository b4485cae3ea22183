//! The board of `crew watch` in a terminal: what it shows at three sizes, what each key does, and
//! that the terminal is restored, however the board ends.

use std::path::{Path, PathBuf};
use std::process::Command;

use chrono::{TimeDelta, Utc};
use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{HANG, WORK, World};
use crate::client::{Terminal, in_a_terminal};
use crate::sandbox::{Sandbox, poll_until};
use crate::tidy::pattern;

const BLOCKED: &str = "echo '<promise>BLOCKED: the password of database user backup_ro</promise>'";
const FOLDERS: [&str; 4] = ["w/api", "w/backup", "w/infra", "w/shop"];
const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 50)];

/// `crew watch` in the user's home.
fn watch(sandbox: &Sandbox) -> Command {
    let mut watch = sandbox.command(sandbox.build().path());
    watch.arg("watch").current_dir(sandbox.home()).env("LANG", "C.UTF-8");
    watch
}

/// The screen at each size, once it is drawn for that size.
fn at_all_sizes(terminal: &Terminal<'_>) -> String {
    let at = |(columns, rows): (u16, u16)| {
        terminal.resize(columns, rows);
        let columns = usize::from(columns);
        terminal.wait_for_screen("a head as wide as the window", |screen| {
            let head = screen.lines().next().unwrap_or_default();
            let is_head = head.contains(" loop") && head.chars().rev().nth(2) == Some(':');
            is_head && head.chars().count() == columns && screen.contains(" q quit")
        });
        settled(&terminal.screen())
    };
    SIZES.map(at).join("\n")
}

/// A screen without what differs between runs: times, and the folder of the test.
fn settled(screen: &str) -> String {
    let changes =
        [(r"\d\d:\d\d", "##:##"), (r"(?m) [ \d]\d[sm](  |$)", "  #s$1"), (r"(?m) +$", "")];
    let settle = |text: String, (regex, same): &(&str, &str)| {
        pattern(regex).replace_all(&text, *same).into_owned()
    };
    let screen = pattern(r"…[^ ]*/repo").replace_all(screen, |found: &regex::Captures<'_>| {
        format!("…{}", "~".repeat(found[0].chars().count() - 1))
    });
    changes.iter().fold(screen.into_owned(), settle)
}

/// Ends a loop whose agent does `step`, and moves its record to a folder outside crew's home.
fn model(world: &World, step: &str) -> PathBuf {
    world.steps(&[step]);
    world.crew(&["run", "Split a discount over the lines of an order", "-n", "1", "-q"]);
    let model = world.sandbox.root().join(format!("model{}", world.calls()));
    std::fs::rename(world.file(""), &model).unwrap();
    model
}

/// Copies a loop to one with another id that moved five hours ago in another folder.
fn copied(world: &World, from: &Path, number: usize) {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number).unwrap());
    let id = format!("{}{}loop00", letter(number / 26), letter(number % 26));
    let to = world.sandbox.crew_home().join("loops").join(&id);
    std::fs::create_dir_all(&to).unwrap();
    std::fs::copy(from.join("journal.jsonl"), to.join("journal.jsonl")).unwrap();
    let bytes = std::fs::read(from.join("loop.json")).unwrap();
    let mut record: Value = serde_json::from_slice(&bytes).unwrap();
    let folder = world.sandbox.home().join(format!("{}{number}", FOLDERS[number % 4]));
    let last =
        Utc::now() - TimeDelta::hours(5) - TimeDelta::seconds(i64::try_from(number).unwrap());
    record["id"] = json!(id);
    record["place"]["checkout"] = json!(folder);
    record["state"]["last_iteration_at"] = json!(last);
    record["state"]["ended_at"] = json!(last);
    if number % 10 == 1 {
        record["state"]["status"] = json!("paused");
        record["state"]["ended_at"].take();
        record["state"]["ending"] = Value::Null;
    }
    std::fs::write(to.join("loop.json"), record.to_string()).unwrap();
}

/// A machine with this many loops that are blocked, paused or have ended.
fn machine(loops: usize) -> World {
    let world = World::new(&[WORK]);
    let (over, blocked) = (model(&world, WORK), model(&world, BLOCKED));
    for number in 0..loops {
        copied(&world, if number % 20 == 0 { &blocked } else { &over }, number);
    }
    world
}

#[test]
fn an_empty_board_says_how_to_start_a_loop() {
    in_a_terminal(|| {
        let world = World::new(&[]);
        let terminal = Terminal::start(&world.sandbox, &watch(&world.sandbox));
        assert_snapshot!(at_all_sizes(&terminal));
    });
}

#[test]
fn the_board_of_one_loop_shows_what_it_needs() {
    in_a_terminal(|| {
        let world = machine(1);
        let terminal = Terminal::start(&world.sandbox, &watch(&world.sandbox));
        terminal.wait_for_text("backup_ro");
        assert_snapshot!(at_all_sizes(&terminal));
    });
}

#[test]
fn the_board_of_sixty_loops_scrolls_with_the_selection() {
    in_a_terminal(|| {
        let world = machine(59);
        world.steps(&[HANG]);
        let running = world.hanging(&["run", "Cut the deploy time", "-n", "5", "-q"]);
        let terminal = Terminal::start(&world.sandbox, &watch(&world.sandbox));
        terminal.wait_for_text("60 loops");
        let id = world.loops().iter().find(|it| it["status"] == "running").unwrap()["id"].clone();
        let first = at_all_sizes(&terminal).replace(&id.as_str().unwrap()[..4], "this");
        terminal.key("End");
        terminal.wait_for_text(">cglo");
        assert_snapshot!(first + "\n" + &at_all_sizes(&terminal));
        drop(running);
    });
}

#[test]
fn every_key_does_what_the_last_line_says() {
    in_a_terminal(|| {
        let world = World::new(&["echo one > work.txt; echo Wrote a line.", HANG]);
        let running = world.hanging(&["run", "Cut the deploy time", "-n", "5", "-q"]);
        let id = world.id();
        let terminal = Terminal::start(&world.sandbox, &watch(&world.sandbox));
        let sees = |key: &str, text: &str| {
            terminal.key(key);
            terminal.wait_for_text(text);
        };
        terminal.wait_for_text("Thinking.");
        sees("Enter", "running, iteration 2 of 5");
        sees("Escape", "⏎ open");
        sees("l", "· log");
        terminal.wait_for_text("Thinking.");
        sees("d", "+one");
        sees("Escape", "⏎ open");
        sees("?", "leave; every loop continues");
        sees("x", "⏎ open");
        sees("t", "tell ");
        terminal.type_text("use the cache");
        terminal.wait_for_text(": use the cache_");
        sees("Enter", "gets the message with its next prompt");
        assert_eq!(world.record()["state"]["words"], json!(["use the cache"]));
        sees("c", "cancel ");
        sees("n", "⏎ open");
        assert!(world.the_loop()["status"] == "running", "a no cancels nothing");
        sees("p", "pauses when iteration 2 ends");
        world.crew(&["pause", "--now"]).success();
        drop(running.wait(crate::sandbox::DEADLINE));
        terminal.wait_for_text("paused before iteration 2");
        std::fs::remove_file(world.note("hangs")).unwrap();
        sees("r", "resume ");
        sees("y", "is resumed by process");
        poll_until("the agent of the resumed loop", || world.note("hangs").exists());
        assert!(world.prompt(3).contains("use the cache"));
        terminal.wait_for_text("RUNNING");
        sees("c", "cancel ");
        sees("y", "loop ");
        poll_until("the end", || world.the_loop()["status"] == "finished");
        terminal.wait_for_text("cancelled");
        sees("p", &format!("loop {id} is already over"));
        sees("t", "tell ");
        terminal.type_text("late");
        sees("Enter", "with that message? y/n");
        sees("n", "⏎ open");
    });
}

/// The screen of a shell after a board in it was ended in this way.
fn left(sandbox: &Sandbox, end: impl FnOnce(&Terminal<'_>, Pid)) -> String {
    let (crew, note) = (sandbox.build().path().display(), sandbox.root().join("pid"));
    let script = format!(
        "echo before; sh -c 'echo $$ > \"{}\"; exec \"{crew}\" watch'; echo \"code $?\"; \
         stty -a | tr ' ;' '\\n' | grep -x -e icanon -e echo -e isig; sleep 600",
        note.display()
    );
    let mut shell = sandbox.command("sh");
    shell.args(["-c", &script]).current_dir(sandbox.home()).env("LANG", "C.UTF-8");
    let terminal = Terminal::start(sandbox, &shell);
    let pid = || std::fs::read_to_string(&note).ok()?.trim().parse().ok().and_then(Pid::from_raw);
    poll_until("the board's process", || pid().is_some());
    end(&terminal, pid().unwrap());
    terminal.wait_for_screen("a terminal as it was", |screen| screen.contains("\necho\n"));
    terminal.screen().lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_terminal_is_restored_however_the_board_ends() {
    in_a_terminal(|| {
        let back = |code: u8| format!("before\ncode {code}\nisig\nicanon\necho");
        for (key, code) in [("q", 0), ("C-c", 0)] {
            let sandbox = Sandbox::new();
            let ended = |terminal: &Terminal<'_>, _| {
                terminal.wait_for_text("No loop");
                terminal.key(key);
            };
            assert_eq!(left(&sandbox, ended), back(code), "{key}");
        }
        for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
            let sandbox = Sandbox::new();
            let ended = |terminal: &Terminal<'_>, pid| {
                terminal.wait_for_text("No loop");
                kill_process(pid, signal).unwrap();
            };
            assert_eq!(left(&sandbox, ended), back(code), "{signal:?}");
        }
        let sandbox = Sandbox::new().with_faults().env("CREW_PANIC", "board");
        let screen = left(&sandbox, |_, _| {});
        let shown = screen.contains("a test asked for this panic at board");
        assert!(shown && screen.starts_with("before\n"), "{screen}");
        assert!(screen.ends_with("code 101\nisig\nicanon\necho"), "{screen}");
    });
}

#[test]
fn a_board_ends_with_its_terminal() {
    in_a_terminal(|| {
        let sandbox = Sandbox::new();
        let terminal = Terminal::start(&sandbox, &watch(&sandbox));
        terminal.wait_for_text("No loop");
        let board = terminal.pid();
        drop(terminal);
        poll_until("the end of the board", || rustix::process::test_kill_process(board).is_err());
    });
}

#[test]
fn a_terminal_without_colour_gets_none() {
    in_a_terminal(|| {
        let world = machine(1);
        let mut watch = watch(&world.sandbox);
        watch.env("NO_COLOR", "1");
        let terminal = Terminal::start(&world.sandbox, &watch);
        let bytes = terminal.tap();
        terminal.wait_for_text("backup_ro");
        terminal.key("?");
        terminal.wait_for_text("choose a loop");
        let sent = String::from_utf8_lossy(&std::fs::read(bytes).unwrap()).into_owned();
        let colour = pattern("\u{1b}\\[(3[0-7]|9[0-7]|38;[25])");
        assert!(!colour.is_match(&sent), "{sent:?}");
    });
}

#[test]
fn the_board_opens_a_named_loop_at_once() {
    in_a_terminal(|| {
        let world = machine(3);
        let mut watch = watch(&world.sandbox);
        watch.arg("acl");
        let terminal = Terminal::start(&world.sandbox, &watch);
        terminal.wait_for_text("loop acloop00 · exhausted after 1 iteration");
        terminal.escape();
        terminal.wait_for_text(">aclo");
    });
}
